// SPDX-License-Identifier: Apache-2.0
// The instruction table as a whole: nothing clashes, nothing is missing, every column makes sense.
#include "insn_choices.h"
#include "isa/machine.h"
#include "isa/table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace pto::isa {
namespace {

using namespace type_sets;

// The contract, copied by hand from the instruction table of the ISA document and not from ours:
// mnemonic, first suffix, second suffix, other suffixes, scope and unit.
struct Contract {
  std::string_view mnemonic;
  TypeSet types;
  TypeSet types2;
  std::vector<std::string_view> suffixes;
  Scope scope;
  Unit unit;
};

constexpr TypeSet kInt163264 = kU16 | kS16 | kU32 | kS32 | kU64 | kS64;
constexpr TypeSet kIntegers = kU8 | kS8 | kInt163264;
constexpr TypeSet kFloats = kF16 | kBF16 | kF32;
constexpr TypeSet kSized = kU8 | kS8 | kB8 | kU16 | kS16 | kB16 | kF16 | kBF16 | kU32 | kS32 |
                           kB32 | kF32 | kF16x2 | kU64 | kS64 | kB64;
constexpr TypeSet kAll = kU8 | kS8 | kU16 | kS16 | kU32 | kS32 | kU64 | kS64 | kF16 | kBF16 | kF32;

const std::vector<Contract>& contract() {
  constexpr Scope kL = Scope::kLane;
  constexpr Scope kW = Scope::kWarp;
  constexpr Scope kB = Scope::kBlock;
  constexpr Unit kS = Unit::kS;
  constexpr Unit kV = Unit::kV;
  constexpr Unit kX = Unit::kX;
  constexpr Unit kM = Unit::kM;
  constexpr Unit kD = Unit::kD;
  const std::vector<std::string_view> atomics = {
      "add", "sub", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas"};
  static const std::vector<Contract> rows = {
      {"mov", kB32 | kB64 | kPred | kU32 | kS32 | kF32 | kF16x2 | kU64 | kS64, {}, {}, kL, kV},
      {"cvt", kAll, kAll, {"rn", "rz", "rm", "rp"}, kL, kV},
      {"sel", kB32 | kB64, {}, {}, kL, kV},
      {"add", kInt163264 | kFloats | kF16x2, {}, {}, kL, kV},
      {"sub", kInt163264 | kFloats | kF16x2, {}, {}, kL, kV},
      {"mul", kInt163264 | kFloats | kF16x2, {}, {}, kL, kV},
      {"mulhi", kU32 | kS32, {}, {}, kL, kV},
      {"mad", kU32 | kS32, {}, {"wide"}, kL, kV},
      {"fma", kFloats | kF16x2, {}, {}, kL, kV},
      {"div", kU32 | kS32 | kU64 | kS64 | kFloats, {}, {}, kL, kX},
      {"rem", kU32 | kS32 | kU64 | kS64, {}, {}, kL, kX},
      {"min", kIntegers | kFloats | kF16x2, {}, {}, kL, kV},
      {"max", kIntegers | kFloats | kF16x2, {}, {}, kL, kV},
      {"abs", kS16 | kS32 | kS64 | kFloats | kF16x2, {}, {}, kL, kV},
      {"neg", kS16 | kS32 | kS64 | kFloats | kF16x2, {}, {}, kL, kV},
      {"exp", kF32 | kF16, {}, {}, kL, kX},
      {"log", kF32 | kF16, {}, {}, kL, kX},
      {"sqrt", kF32 | kF16, {}, {}, kL, kX},
      {"rsqrt", kF32 | kF16, {}, {}, kL, kX},
      {"rcp", kF32 | kF16, {}, {}, kL, kX},
      {"tanh", kF32 | kF16, {}, {}, kL, kX},
      {"sin", kF32 | kF16, {}, {}, kL, kX},
      {"cos", kF32 | kF16, {}, {}, kL, kX},
      {"pow", kF32, {}, {}, kL, kX},
      {"and", kB32 | kB64 | kPred, {}, {}, kL, kV},
      {"or", kB32 | kB64 | kPred, {}, {}, kL, kV},
      {"xor", kB32 | kB64 | kPred, {}, {}, kL, kV},
      {"not", kB32 | kB64 | kPred, {}, {}, kL, kV},
      {"shl", kB32 | kB64, {}, {}, kL, kV},
      {"shr", kB32 | kB64 | kS32 | kS64, {}, {}, kL, kV},
      {"popc", kB32 | kB64, {}, {}, kL, kV},
      {"clz", kB32 | kB64, {}, {}, kL, kV},
      {"brev", kB32 | kB64, {}, {}, kL, kV},
      {"prmt", kB32, {}, {}, kL, kV},
      {"cmp", kIntegers | kFloats, {}, {"eq", "ne", "lt", "le", "gt", "ge", "and", "or"}, kL, kV},
      {"load", kSized, {}, {"ca", "cg", "cv", "x2", "x4"}, kL, kM},
      {"store", kSized, {}, {"wt", "cg", "x2", "x4"}, kL, kM},
      {"atom", kU32 | kS32 | kU64 | kS64 | kF32, {}, atomics, kL, kM},
      {"prefetch", {}, {}, {}, kL, kM},
      {"inval", {}, {}, {"line", "all"}, kW, kM},
      {"fence", {}, {}, {"block", "device"}, kL, kM},
      {"alloc_local", {}, {}, {}, kB, kD},
      {"free_local", {}, {}, {}, kB, kD},
      {"fill", kB8 | kB16 | kB32, {}, {}, kB, kD},
      {"async_load", {}, {}, {}, kB, kD},
      {"async_store", {}, {}, {}, kB, kD},
      {"wait", {}, {}, {}, kW, kS},
      {"wait_all", {}, {}, {}, kW, kS},
      {"mma", kF32 | kS32, kF32 | kF16 | kBF16 | kS8 | kU8, {}, kB, Unit::kC},
      {"bra", {}, {}, {}, kW, kS},
      {"call", {}, {}, {}, kW, kS},
      {"ret", {}, {}, {}, kW, kS},
      {"exit", {}, {}, {}, kL, kS},
      {"nop", {}, {}, {}, kW, kS},
      {"shfl", kB32 | kB64, {}, {"idx", "up", "down", "xor"}, kW, kV},
      {"vote", {}, {}, {"all", "any", "uni", "ballot"}, kW, kV},
      {"reduce", kU32 | kS32 | kF32 | kF16, {}, {"add", "min", "max", "and", "or", "xor"}, kW, kX},
      {"barrier", {}, {}, {}, kW, kS},
      {"barrier_block", {}, {}, {}, kW, kS},
      {"print", {}, {}, {}, kL, kS},
      {"trap", {}, {}, {}, kL, kS},
  };
  return rows;
}

bool includes(TypeSet all, TypeSet some) {
  return (all | some) == all;
}

std::set<std::string_view> suffixes_of(const InsnDesc& row) {
  std::set<std::string_view> suffixes;
  for (const ModGroup* group : row.mods) {
    for (const ModValue& value : group->values) {
      if (!value.suffix.empty()) {
        suffixes.insert(value.suffix);
      }
    }
  }
  return suffixes;
}

bool is_lower_case(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

TEST_CASE("every insn of the ISA document is in the table with its types, suffixes and unit") {
  for (const Contract& want : contract()) {
    CAPTURE(want.mnemonic);
    const InsnDesc* row = find_insn(want.mnemonic);
    REQUIRE(row != nullptr);
    CHECK(includes(row->types, want.types));
    CHECK(includes(row->types2, want.types2));
    CHECK(row->types.empty() == want.types.empty());
    CHECK(row->types2.empty() == want.types2.empty());
    CHECK(suffixes_of(*row) ==
          std::set<std::string_view>(want.suffixes.begin(), want.suffixes.end()));
    CHECK(row->scope == want.scope);
    CHECK(row->unit == want.unit);
  }
}

TEST_CASE("every type and suffix in the contract can be written together in a valid insn") {
  // TypeSets alone would not notice a check that refuses what the document allows.
  std::set<std::string> names;
  for (const InsnDesc* row : all_insns()) {
    for (const Insn& shape : test::shapes_of(*row)) {
      names.insert(test::name_of(shape));
    }
  }
  for (const Contract& want : contract()) {
    for (unsigned t = 1; t < kTypeCount; ++t) {
      const auto type = static_cast<Type>(t);
      const std::string ending = "." + std::string(name(type));
      if (want.types.contains(type)) {
        const bool found = std::any_of(names.begin(), names.end(), [&](const std::string& text) {
          return text.starts_with(std::string(want.mnemonic) + ".") &&
                 text.find(ending) != std::string::npos;
        });
        CHECK_MESSAGE(found, want.mnemonic, ending, " is in no valid insn");
      }
    }
  }
  for (const char* insn :
       {"mma.f32.f32",    "mma.f32.f16",    "mma.f32.bf16",   "mma.s32.s8",      "mma.s32.u8",
        "mad.wide.u32",   "mad.wide.s32",   "cvt.f32.f32.rm", "cvt.s32.f32",     "cvt.u8.f16.rp",
        "atom.add.f32",   "atom.min.f32",   "atom.max.f32",   "atom.cas.u64",    "atom.inc.u32",
        "reduce.add.f16", "reduce.xor.s32", "load.cv.x4.u8",  "store.cg.x2.b64", "cmp.ne.or.bf16",
        "shfl.xor.b64",   "vote.ballot",    "inval.all",      "inval.line"}) {
    CHECK_MESSAGE(names.contains(insn), insn, " is in no valid insn");
  }
  for (const char* insn : {"mma.f32.s8",
                           "mma.s32.f16",
                           "atom.and.f32",
                           "atom.cas.f32",
                           "reduce.and.f32",
                           "reduce.or.f16",
                           "cvt.u8.u16.rz"}) {
    CHECK_MESSAGE(!names.contains(insn), insn, " should not be valid");
  }
}

TEST_CASE("mnemonics and opcodes are unique, and looked up in any case") {
  std::set<std::string_view> mnemonics;
  std::set<unsigned> opcodes;
  const InsnDesc* last = nullptr;
  for (const InsnDesc* row : all_insns()) {
    CAPTURE(row->mnemonic);
    CHECK(mnemonics.insert(row->mnemonic).second);
    CHECK(opcodes.insert(row->opcode).second);
    CHECK((last == nullptr || last->opcode < row->opcode));
    CHECK(is_lower_case(row->mnemonic));
    CHECK(find_insn(row->mnemonic) == row);
    std::string upper(row->mnemonic);
    std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) {
      return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    });
    CHECK(find_insn(upper) == row);
    CHECK(find_opcode(row->opcode) == row);
    last = row;
  }
  CHECK(std::vector<std::string_view>(mnemonics.begin(), mnemonics.end()) == all_mnemonics());
  CHECK(find_insn("") == nullptr);
  CHECK(find_insn("ad") == nullptr);
  CHECK(find_insn("addd") == nullptr);
  CHECK(find_insn(std::string(100, 'a')) == nullptr);
  for (unsigned opcode = 0; opcode < 600; ++opcode) {
    CHECK((find_opcode(opcode) != nullptr) == opcodes.contains(opcode));
  }
}

TEST_CASE("every column is filled in") {
  for (const InsnDesc* row : all_insns()) {
    CAPTURE(row->mnemonic);
    CHECK(bool{row->exec != nullptr});
    CHECK(row->opcode > 0);
    CHECK(row->opcode < 512);
    CHECK(!row->latency.empty());
    CHECK(!row->npu.empty());
    CHECK(!row->formula.empty());
    CHECK(row->summary.ends_with('.'));
    CHECK(row->summary[0] >= 'A');
    CHECK((row->details.empty() || row->details.ends_with('.')));
    CHECK(row->example.substr(0, row->mnemonic.size()) == row->mnemonic);
    if (!row->types2.empty()) {
      CHECK(!row->types.empty());
    }
    for (unsigned form = 0; form < row->form_count(); ++form) {
      std::set<std::string_view> names;
      bool optional_before = false;
      const OperandList& specs = row->form(form);
      for (unsigned i = 0; i < specs.size(); ++i) {
        const OperandSpec& spec = specs[i];
        CAPTURE(spec.name);
        CHECK(is_lower_case(spec.name));
        CHECK(names.insert(spec.name).second);
        CHECK(spec.accepts != 0);
        CHECK((spec.optional || !optional_before)); // optional ones come last
        CHECK((!spec.variadic || i + 1 == specs.size()));
        CHECK((!writes(spec.role) || (spec.accepts & (kAcceptImm | kAcceptParam)) == 0));
        optional_before = spec.optional;
      }
    }
  }
}

TEST_CASE("modifiers fit their eight bits and no suffix is ambiguous within a row") {
  for (const InsnDesc* row : all_insns()) {
    CAPTURE(row->mnemonic);
    unsigned choices = 1;
    std::set<std::string_view> seen;
    for (const ModGroup* group : row->mods) {
      choices *= group->values.size();
      CHECK(is_lower_case(group->name));
      for (unsigned v = 0; v < group->values.size(); ++v) {
        const std::string_view suffix = group->values[v].suffix;
        CHECK(suffix.empty() == (v == 0 && group->is_optional()));
        CHECK((suffix.empty() || seen.insert(suffix).second));
        CHECK(is_lower_case(suffix));
        CHECK(!find_type(suffix)); // suffixes come in any order
        CHECK(!group->values[v].summary.empty());
      }
    }
    CHECK(choices <= 256);
  }
}

TEST_CASE("every latency key is in the reference profile") {
  ProfileIssues issues;
  const auto profile = load_machine("reference", issues);
  REQUIRE(profile);
  for (const InsnDesc* row : all_insns()) {
    CAPTURE(row->mnemonic);
    CHECK_MESSAGE(profile->latency.find(row->latency) != nullptr, "no latency ", row->latency);
    CHECK(is_lower_case([&] {
      std::string lower(row->latency);
      std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
      });
      return lower;
    }()));
  }
  // And every entry of the profile belongs to a row: a renamed key would go unnoticed otherwise.
  for (const LatencyEntry& entry : profile->latency.entries()) {
    const std::string base = entry.key.substr(0, entry.key.find('.'));
    const auto rows = all_insns();
    CHECK_MESSAGE(std::any_of(rows.begin(),
                              rows.end(),
                              [&](const InsnDesc* row) { return row->latency == base; }),
                  entry.key,
                  " is the latency of no insn");
  }
}

// The names in braces of an NPU template: "{a}", "{t#}", and two in "{bytes?t.bytes}".
std::vector<std::string> placeholders(std::string_view text) {
  std::vector<std::string> names;
  for (size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at)) {
    const size_t end = text.find('}', at);
    while (at < end) {
      const size_t stop = text.find_first_of("?}", at + 1);
      std::string_view name = text.substr(at + 1, stop - at - 1);
      names.emplace_back(name.substr(0, name.find_first_of("#.")));
      at = stop;
    }
  }
  return names;
}

TEST_CASE("placeholders of the NPU templates name operands, modifiers or types") {
  for (const InsnDesc* row : all_insns()) {
    CAPTURE(row->mnemonic);
    CHECK(std::count(row->npu.begin(), row->npu.end(), '{') ==
          std::count(row->npu.begin(), row->npu.end(), '}'));
    std::set<std::string> known;
    if (!row->types.empty()) {
      known.insert("type");
    }
    if (!row->types2.empty()) {
      known.insert("type2");
    }
    for (const ModGroup* group : row->mods) {
      known.emplace(group->name);
    }
    for (unsigned form = 0; form < row->form_count(); ++form) {
      for (const OperandSpec& spec : row->form(form)) {
        known.emplace(spec.name);
      }
    }
    std::set<std::string> used;
    for (const std::string& name : placeholders(row->npu)) {
      CHECK_MESSAGE(known.contains(name), "{", name, "} names nothing");
      used.insert(name);
    }
    for (const OperandSpec& spec : row->form(0)) {
      const bool is_used = used.contains(std::string(spec.name));
      CHECK_MESSAGE(is_used, spec.name, " is an operand that the template forgets");
    }
  }
}

} // namespace
} // namespace pto::isa
