// SPDX-License-Identifier: Apache-2.0
// Every row, type, modifier, operand form and kind of operand: word and text say all of an insn.
#include "insn_choices.h"
#include "isa/cfg.h"
#include "isa/codec.h"
#include "isa/object.h"
#include "isa/object_layout.h"
#include "isa/print.h"
#include "isa/table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

namespace pto::isa {
namespace {

// Every valid insn of the table with each guard.
const std::vector<Insn>& all_valid_insns() {
  static const std::vector<Insn> insns = [] {
    std::vector<Insn> all;
    for (const InsnDesc* row : all_insns()) {
      for (const Insn& shape : test::shapes_of(*row)) {
        std::vector<Insn> of_shape = test::insns_of(shape);
        const Insn first = of_shape.front();
        for (uint8_t guard = 0; guard < 2 * kPredCount; ++guard) {
          Insn guarded = first;
          guarded.guard = {.present = true,
                           .negated = guard >= kPredCount,
                           .pred = static_cast<uint8_t>(guard % kPredCount)};
          of_shape.push_back(guarded);
        }
        all.insert(all.end(), of_shape.begin(), of_shape.end());
      }
    }
    return all;
  }();
  return insns;
}

TEST_CASE("each row has valid insns with every type and modifier value") {
  for (const InsnDesc* row : all_insns()) {
    CAPTURE(row->mnemonic);
    TypeSet types;
    TypeSet types2;
    std::vector<std::vector<bool>> mods(row->mods.size());
    for (unsigned g = 0; g < row->mods.size(); ++g) {
      mods[g].resize(row->mods[g]->values.size());
    }
    std::vector<bool> forms(row->form_count());
    for (const Insn& shape : test::shapes_of(*row)) {
      types = types | shape.type;
      types2 = types2 | shape.type2;
      for (unsigned g = 0; g < row->mods.size(); ++g) {
        mods[g][shape.mods[g]] = true;
      }
      for (const Insn& insn : test::insns_of(shape)) {
        forms[insn.form] = true;
      }
    }
    CHECK(types == (row->types.empty() ? TypeSet(Type::kNone) : row->types));
    CHECK(types2 == (row->types2.empty() ? TypeSet(Type::kNone) : row->types2));
    for (const std::vector<bool>& values : mods) {
      CHECK(values == std::vector<bool>(values.size(), true));
    }
    CHECK(forms == std::vector<bool>(forms.size(), true));
  }
}

TEST_CASE("encoding and decoding is the identity") {
  Pool pool;
  std::string error;
  std::vector<Word> words;
  for (const Insn& insn : all_valid_insns()) {
    const auto word = encode(insn, pool, error);
    REQUIRE_MESSAGE(word, error);
    words.push_back(*word);
  }
  unsigned wrong = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    const Insn& insn = all_valid_insns()[i];
    const auto back = decode(words[i], pool.values(), error);
    if ((!back || *back != insn) && ++wrong < 10) {
      FAIL_CHECK(test::name_of(insn), " form ", int{insn.form}, ": ", error);
    }
  }
  CHECK(wrong == 0);
  CHECK(words.size() > 50000); // an enumeration that lost its choices would pass everything
}

TEST_CASE("texts are complete and distinct") {
  const Object object = test::object_with(all_valid_insns());
  const Function& kernel = object.functions[1];
  std::unordered_map<std::string, size_t> texts;
  unsigned wrong = 0;
  for (size_t i = 0; i < all_valid_insns().size(); ++i) {
    const Insn& insn = all_valid_insns()[i];
    const std::string text = print_insn(insn, object, kernel);
    const auto [entry, is_new] = texts.emplace(text, i);
    const bool good = is_new && text.find('?') == std::string::npos &&
                      text.find("param") == std::string::npos &&
                      text.find("symbol") == std::string::npos &&
                      text.find_first_of("\n\t") == std::string::npos &&
                      text.find("  ") == std::string::npos && text.find(", ,") == std::string::npos;
    if (!good && ++wrong < 10) {
      FAIL_CHECK(text, is_new ? "" : " stands for two insns");
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("texts follow the canonical order") {
  const Object object = test::object_with({});
  const Function& kernel = object.functions[1];
  const auto text_of = [&](std::string_view mnemonic, auto change) {
    Insn insn{.desc = find_insn(mnemonic)};
    change(insn);
    REQUIRE(validate(insn) == "");
    return print_insn(insn, object, kernel);
  };
  const auto reg = [](unsigned index) {
    return Operand{.kind = OperandKind::kReg32, .index = index};
  };
  CHECK(text_of("fma", [&](Insn& insn) {
          insn.type = Type::kF32;
          insn.guard = {.present = true, .negated = true, .pred = 0};
          insn.operand_count = 4;
          insn.operands = {reg(3), reg(1), Operand::immediate(0x3f800000), reg(2)};
        }) == "@!p0 fma.f32 r3, r1, 1.0, r2");
  CHECK(text_of("load", [&](Insn& insn) {
          insn.type = Type::kF32;
          insn.mods = {2, 2};
          insn.operand_count = 2;
          insn.operands = {reg(4),
                           Operand::memory(MemRef{.offset = -16,
                                                  .base_index = 0,
                                                  .index_reg = 9,
                                                  .base = BaseKind::kParam,
                                                  .scale_log2 = 2})};
        }) == "load.cg.x4.f32 r4, hbm[a + r9*4 - 16]");
  CHECK(text_of("cvt", [&](Insn& insn) {
          insn.type = Type::kS32;
          insn.type2 = Type::kF32;
          insn.mods = {2};
          insn.operand_count = 2;
          insn.operands = {reg(1), reg(0)};
        }) == "cvt.s32.f32.rz r1, r0");
  CHECK(text_of("atom", [&](Insn& insn) {
          insn.type = Type::kU32;
          insn.mods = {10};
          insn.operand_count = 4;
          insn.operands = {Operand{.kind = OperandKind::kDiscard},
                           Operand::memory(MemRef{.space = Space::kL1, .base = BaseKind::kSymbol}),
                           reg(1),
                           Operand{.kind = OperandKind::kParam, .index = 1}};
        }) == "atom.cas.u32 _, l1[shared], r1, n");
  CHECK(text_of("print", [&](Insn& insn) {
          insn.operand_count = 2;
          insn.operands = {Operand{.kind = OperandKind::kString, .index = 1}, reg(1)};
        }) == "print \"lane %d of \\\"%x\\\"\\n\", r1");
  CHECK(text_of("bra", [&](Insn& insn) {
          insn.operand_count = 1;
          insn.operands = {Operand{.kind = OperandKind::kLabel, .bits = 1}};
        }) == "bra L1");
}

// The object, stating what its code determines, as the reader of files demands it.
Object canonical(Object object) {
  object.symbols[0].owner = kFileScope; // it stands before those of the file
  std::vector<std::string> strings;
  for (Insn& insn : object.code) {
    if (insn.operand_count != 0 && insn.operands[0].kind == OperandKind::kString) {
      const std::string& format = object.strings[insn.operands[0].index];
      const auto known = std::find(strings.begin(), strings.end(), format);
      insn.operands[0].index = static_cast<uint32_t>(known - strings.begin());
      if (known == strings.end()) {
        strings.push_back(format);
      }
    }
  }
  object.strings = std::move(strings);
  const std::vector<FunctionReach> reach = find_reach(object);
  count_registers(object.functions, reach);
  REQUIRE(!place_scratchpad(object.symbols, object.functions, reach));
  for (Function& function : object.functions) {
    function.reconvergence = Cfg(object, function).reconvergence(object);
  }
  return object;
}

TEST_CASE("writing and reading an object is the identity on bytes and on values") {
  const Object object = canonical(test::object_with(all_valid_insns()));
  std::string error;
  const auto bytes = write_object(object, error);
  REQUIRE_MESSAGE(bytes, error);
  const auto back = read_object(*bytes, error);
  REQUIRE_MESSAGE(back, error);
  CHECK(*back == object);
  const auto again = write_object(*back, error);
  REQUIRE_MESSAGE(again, error);
  CHECK(*again == *bytes);
}

TEST_CASE("operands that their type forbids are refused") {
  const auto with = [](std::string_view mnemonic, Type type, std::vector<Operand> operands) {
    Insn insn{.desc = find_insn(mnemonic), .type = type};
    insn.operand_count = static_cast<uint8_t>(operands.size());
    std::copy(operands.begin(), operands.end(), insn.operands.begin());
    return std::string(validate(insn));
  };
  const Operand p0{.kind = OperandKind::kPred, .index = 0};
  const Operand r0{.kind = OperandKind::kReg32, .index = 0};
  const Operand d0{.kind = OperandKind::kReg64, .index = 0};
  const Operand param{.kind = OperandKind::kParam, .index = 40};
  const Operand lane{.kind = OperandKind::kSpecial, .index = 0};
  const Operand symbol{.kind = OperandKind::kSymbol, .index = 0};
  CHECK(with("mov", Type::kPred, {p0, p0}) == "");
  CHECK(with("mov", Type::kPred, {p0, Operand::immediate(1)}) == "");
  for (const Operand& wrong : {r0, d0, param, lane, symbol, Operand::immediate(2)}) {
    CHECK(with("mov", Type::kPred, {p0, wrong}) != "");
    CHECK(with("and", Type::kPred, {p0, wrong, p0}) != "");
  }
  CHECK(with("mov", Type::kU32, {r0, lane}) == "");
  CHECK(with("mov", Type::kU32, {r0, symbol}) == "");
  CHECK(with("mov", Type::kU64, {d0, lane}) != "");
  CHECK(with("mov", Type::kU64, {d0, symbol}) != "");
  CHECK(with("mov", Type::kU32, {d0, r0}) != "");
  CHECK(with("mov", Type::kU64, {d0, r0}) != "");
  CHECK(with("mov", Type::kU32, {Operand{.kind = OperandKind::kReg32, .index = 127}, r0}) != "");
  CHECK(with("mov", Type::kU64, {Operand{.kind = OperandKind::kReg64, .index = 63}, d0}) != "");
  CHECK(with("add", Type::kU16, {r0, r0, Operand::immediate(0x10000)}) != "");
  CHECK(with("add", Type::kU32, {r0, r0, lane}) != "");
  CHECK(with("add", Type::kU32, {r0, Operand::immediate(1), r0}) == "");
  CHECK(with("add", Type::kU32, {Operand::immediate(1), r0, r0}) != "");
  CHECK(with("add", Type::kB32, {r0, r0, r0}) != "");
  CHECK(with("add", Type::kU32, {r0, r0}) != "");
  CHECK(with("add", Type::kU32, {r0, r0, r0, r0}) != "");
}

TEST_CASE("vector accesses stay inside the register file") {
  for (const char* mnemonic : {"load", "store"}) {
    for (const Type type : {Type::kF32, Type::kU64}) {
      for (const unsigned count : {1u, 2u, 4u}) {
        Insn insn{.desc = find_insn(mnemonic), .type = type};
        insn.mods = {0, static_cast<uint8_t>(count / 2)};
        insn.operand_count = 2;
        const bool is_load = insn.desc->mnemonic == "load";
        const unsigned file = is_wide(type) ? kReg64Count : kReg32Count;
        insn.operands[is_load ? 1 : 0] =
            Operand::memory(MemRef{.base_index = 3, .base = BaseKind::kReg});
        Operand& reg = insn.operands[is_load ? 0 : 1];
        reg.kind = is_wide(type) ? OperandKind::kReg64 : OperandKind::kReg32;
        reg.index = file - count;
        CHECK(validate(insn) == "");
        reg.index = file - count + 1;
        CHECK(validate(insn) != "");
      }
    }
  }
}

} // namespace
} // namespace pto::isa
