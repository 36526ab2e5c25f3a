// SPDX-License-Identifier: Apache-2.0
// Joins the families into one table with look-ups by mnemonic and by opcode.
#include "isa/table.h"

#include "isa/error.h"
#include "isa/insns/families.h"

#include <algorithm>
#include <array>

namespace pto::isa {

namespace {

constexpr unsigned kOpcodeLimit = 512;
constexpr unsigned kHashSlots = 1024; // a power of two, sparse
constexpr size_t kLongestMnemonic = 31;

constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

unsigned hash_of(std::string_view name) {
  uint32_t hash = 2166136261u;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(lower(c))) * 16777619u;
  }
  return hash % kHashSlots;
}

bool same_name(std::string_view any_case, std::string_view lower_case) {
  return any_case.size() == lower_case.size() &&
         std::equal(any_case.begin(), any_case.end(), lower_case.begin(), [](char a, char b) {
           return lower(a) == b;
         });
}

// Built once; open addressing, so that the assembler's look-up neither allocates nor folds case.
struct Table {
  std::vector<const InsnDesc*> rows;
  std::vector<std::string_view> mnemonics;
  std::array<const InsnDesc*, kOpcodeLimit> by_opcode{};
  std::array<const InsnDesc*, kHashSlots> by_name{};

  Table() {
    for (const auto family : {arith_rows(),
                              float_rows(),
                              logic_rows(),
                              convert_rows(),
                              select_rows(),
                              memory_rows(),
                              atomic_rows(),
                              copy_rows(),
                              matrix_rows(),
                              warp_rows(),
                              control_rows()}) {
      for (const InsnDesc& row : family) {
        add(row);
      }
    }
    std::sort(rows.begin(), rows.end(), [](const InsnDesc* a, const InsnDesc* b) {
      return a->opcode < b->opcode;
    });
    std::sort(mnemonics.begin(), mnemonics.end());
  }

  void add(const InsnDesc& row) {
    PTO_CHECK(row.opcode < kOpcodeLimit && by_opcode[row.opcode] == nullptr);
    PTO_CHECK(row.mnemonic.size() <= kLongestMnemonic);
    by_opcode[row.opcode] = &row;
    unsigned slot = hash_of(row.mnemonic);
    while (by_name[slot] != nullptr) {
      PTO_CHECK(by_name[slot]->mnemonic != row.mnemonic);
      slot = (slot + 1) % kHashSlots;
    }
    by_name[slot] = &row;
    rows.push_back(&row);
    mnemonics.push_back(row.mnemonic);
  }
};

const Table& table() {
  static const Table instance;
  return instance;
}

} // namespace

std::span<const InsnDesc* const> all_insns() {
  return table().rows;
}

const InsnDesc* find_insn(std::string_view mnemonic) {
  if (mnemonic.size() > kLongestMnemonic) {
    return nullptr;
  }
  const Table& all = table();
  for (unsigned slot = hash_of(mnemonic); all.by_name[slot] != nullptr;
       slot = (slot + 1) % kHashSlots) {
    if (same_name(mnemonic, all.by_name[slot]->mnemonic)) {
      return all.by_name[slot];
    }
  }
  return nullptr;
}

const InsnDesc* find_opcode(unsigned opcode) {
  return opcode < kOpcodeLimit ? table().by_opcode[opcode] : nullptr;
}

const std::vector<std::string_view>& all_mnemonics() {
  return table().mnemonics;
}

} // namespace pto::isa
