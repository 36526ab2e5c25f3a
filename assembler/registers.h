// SPDX-License-Identifier: Apache-2.0
// Names of registers, tiles, events and predicates: r7, d0, p1, t3, e2.
#pragma once

#include "isa/insn.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace pto::as {

struct RegisterFile {
  char letter;
  unsigned count;
  isa::OperandKind kind;
  std::string_view description; // "a 32-bit register"
};

inline constexpr RegisterFile kRegisterFiles[] = {
    {'r', isa::kReg32Count, isa::OperandKind::kReg32, "a 32-bit register"},
    {'d', isa::kReg64Count, isa::OperandKind::kReg64, "a 64-bit register"},
    {'p', isa::kPredCount, isa::OperandKind::kPred, "a predicate"},
    {'t', isa::kTileCount, isa::OperandKind::kTile, "a tile"},
    {'e', isa::kEventCount, isa::OperandKind::kEvent, "an event"},
};

/// A word that names a register: a letter of a file and digits. The number may be out of range.
struct RegisterName {
  const RegisterFile* file = nullptr;
  uint32_t index = 0;
  [[nodiscard]] bool in_range() const { return index < file->count; }
};

inline std::optional<RegisterName> parse_register(std::string_view word) {
  if (word.size() < 2 || word.size() > 10) {
    return std::nullopt;
  }
  const RegisterFile* file = nullptr;
  for (const RegisterFile& candidate : kRegisterFiles) {
    if (candidate.letter == word[0]) {
      file = &candidate;
      break;
    }
  }
  if (file == nullptr || (word[1] == '0' && word.size() > 2)) {
    return std::nullopt;
  }
  uint32_t index = 0;
  for (const char c : word.substr(1)) {
    if (c < '0' || c > '9') {
      return std::nullopt;
    }
    index = index * 10 + static_cast<uint32_t>(c - '0');
  }
  return RegisterName{file, index};
}

} // namespace pto::as
