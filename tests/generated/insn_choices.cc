// SPDX-License-Identifier: Apache-2.0
// Walks rows, forms and operand specs; knows the columns of the table and no insn by name.
#include "insn_choices.h"

#include "isa/print.h"
#include "isa/table.h"

#include <algorithm>
#include <array>
#include <utility>

namespace pto::test {

using namespace pto::isa;

namespace {

struct ParamChoice {
  const char* name;
  Type type;
  bool is_pointer;
};
constexpr std::array<ParamChoice, 8> kParams = {{{"a", Type::kU64, true},
                                                 {"n", Type::kU32, false},
                                                 {"x", Type::kF32, false},
                                                 {"big", Type::kS64, false},
                                                 {"half", Type::kF16, false},
                                                 {"brain", Type::kBF16, false},
                                                 {"small", Type::kS16, false},
                                                 {"bits", Type::kB32, false}}};

constexpr uint32_t kSharedSymbol = 0;
constexpr uint32_t kTileSymbol = 1;
constexpr uint32_t kConstSymbol = 2;

bool same_kind_of_number(Type param, Type operand) {
  if (bits(operand) == 64) {
    return bits(param) == 64;
  }
  if (bits(param) == 64 || bits(param) > bits(operand)) {
    return false;
  }
  return is_bits(operand) || is_bits(param) || is_float(param) == is_float(operand);
}

void add_registers(std::vector<Operand>& out, Type type, unsigned count, bool any_width) {
  const bool wide = is_wide(type);
  if (!wide || any_width) {
    for (const unsigned index : {3u, 0u, kReg32Count - count}) {
      out.push_back({.kind = OperandKind::kReg32, .index = index});
    }
  }
  if (wide || any_width) {
    for (const unsigned index : {4u, 0u, kReg64Count - count}) {
      out.push_back({.kind = OperandKind::kReg64, .index = index});
    }
  }
}

void add_immediates(std::vector<Operand>& out, Type type) {
  std::vector<uint64_t> values = {
      0,          1,          2,          16,         32,         100,        0x7f,
      0x80,       0xff,       0x3c00,     0x7e01,     0x7fff,     0x8000,     0xfc00,
      0xffff,     0x7ffff,    0x80000,    0xfffff,    0x3f800000, 0x7f800000, 0x7fc00001,
      0x7fffffff, 0x80000000, 0xc2f60000, 0xff800000, 0xfff7ffff, 0xfff80000, 0xffffffff};
  if (is_wide(type)) {
    for (const uint64_t value : {0x100000000u,
                                 0x7fffffffffffffffu,
                                 0x8000000000000000u,
                                 0xfffffffffff7ffffu,
                                 0xfffffffffff80000u,
                                 0xffffffffffffffffu}) {
      values.push_back(value);
    }
  }
  const unsigned width = bits(type);
  for (const uint64_t value : values) {
    if (width >= 64 || value >> width == 0) {
      out.push_back(Operand::immediate(value));
    }
  }
}

void add_memory(std::vector<Operand>& out, Space space) {
  struct Base {
    BaseKind kind;
    uint16_t index;
  };
  std::vector<Base> bases;
  if (space == Space::kHbm) {
    bases = {{BaseKind::kParam, 0}, {BaseKind::kReg, 5}, {BaseKind::kReg, kReg64Count - 1}};
  } else if (space == Space::kL1) {
    bases = {{BaseKind::kTile, 2},
             {BaseKind::kTile, kTileCount - 1},
             {BaseKind::kSymbol, kSharedSymbol},
             {BaseKind::kSymbol, kTileSymbol},
             {BaseKind::kReg, 6},
             {BaseKind::kReg, kReg32Count - 1},
             {BaseKind::kAbsolute, 0}};
  } else {
    bases = {{BaseKind::kSymbol, kConstSymbol}, {BaseKind::kReg, 7}};
  }
  const auto add = [&](Base base, MemRef ref) {
    ref.space = space;
    ref.base = base.kind;
    ref.base_index = base.index;
    out.push_back(Operand::memory(ref));
  };
  for (const Base& base : bases) {
    add(base, MemRef{});
    add(base, MemRef{.offset = 64});
    add(base, MemRef{.index_reg = 0});
    add(base, MemRef{.offset = -4, .index_reg = 126, .scale_log2 = 4});
  }
  for (unsigned scale = 0; scale <= 4; ++scale) {
    MemRef scaled{.index_reg = 9};
    scaled.scale_log2 = scale & 7;
    add(bases[0], scaled);
  }
  for (const int32_t offset : {1, -1, INT32_MAX, INT32_MIN}) {
    add(bases[0], MemRef{.offset = offset});
  }
}

void add_symbols(std::vector<Operand>& out, std::initializer_list<uint32_t> symbols) {
  for (const uint32_t symbol : symbols) {
    out.push_back({.kind = OperandKind::kSymbol, .index = symbol});
  }
}

// The insn with the first choice for every operand, if the table allows that.
bool fill_first_choices(Insn& insn) {
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    const std::vector<Operand> choices = operand_choices(insn, i);
    if (choices.empty()) {
      return false;
    }
    insn.operands[i] = choices[0];
  }
  return true;
}

// Operand counts worth trying: all that the form allows, of a variadic form up to the limit.
std::pair<unsigned, unsigned> operand_counts(const OperandList& form) {
  unsigned least = 0;
  bool variadic = false;
  for (const OperandSpec& spec : form) {
    least += spec.optional || spec.variadic ? 0 : 1;
    variadic = variadic || spec.variadic;
  }
  return {least, variadic ? kMaxOperands : form.size()};
}

} // namespace

Object object_of_choices() {
  Object object;
  object.machine = "reference";
  const Insn ret{.desc = find_insn("ret")};
  object.code = {ret};
  object.functions.push_back({.name = "helper", .first_pc = 0, .insn_count = 1});
  Function kernel{.name = "all", .is_kernel = true, .first_pc = 1, .l1_bytes = 4096};
  for (const ParamChoice& param : kParams) {
    kernel.params.push_back(
        {.name = param.name, .type = param.type, .is_pointer = param.is_pointer});
  }
  object.functions.push_back(std::move(kernel));
  object.symbols = {{.name = "shared",
                     .kind = SymbolKind::kShared,
                     .type = Type::kU32,
                     .cols = 16,
                     .size_bytes = 64,
                     .align_bytes = 32,
                     .owner = 1},
                    {.name = "tile",
                     .kind = SymbolKind::kTile,
                     .type = Type::kF32,
                     .rows = 4,
                     .cols = 8,
                     .offset = 64,
                     .size_bytes = 128,
                     .align_bytes = 32},
                    {.name = "table",
                     .kind = SymbolKind::kConst,
                     .type = Type::kU16,
                     .cols = 4,
                     .size_bytes = 8,
                     .align_bytes = 2}};
  object.const_data = {1, 0, 2, 0, 3, 0, 4, 0};
  object.strings = {"no values", "lane %d of \"%x\"\n"};
  object.files = {"all.pto"};
  return object;
}

Object object_with(std::vector<Insn> code) {
  Object object = object_of_choices();
  object.functions[1].insn_count = static_cast<uint32_t>(code.size());
  object.functions[1].labels = {{.name = "first", .pc = 1}, {.name = "second", .pc = 2}};
  object.code.insert(object.code.end(), code.begin(), code.end());
  // The reader holds the format of PRINT against the values behind it.
  const auto first_format = static_cast<uint32_t>(object.strings.size());
  std::string format;
  for (unsigned values = 0; values < kMaxOperands; ++values, format += "%d ") {
    object.strings.push_back(format);
  }
  for (Insn& insn : object.code) {
    if (insn.operand_count != 0 && insn.operands[0].kind == OperandKind::kString) {
      insn.operands[0].index = first_format + insn.operand_count - 1;
    }
  }
  for (uint32_t pc = 0; pc < object.code.size(); ++pc) {
    object.locs.push_back({.file = 0, .line = pc + 1, .column = 5});
  }
  return object;
}

std::vector<Operand> operand_choices(const Insn& insn, unsigned i) {
  const OperandSpec& spec = spec_of(insn, i);
  const bool any_width = spec.type == TypeRule::kAny;
  const Type type = any_width ? Type::kB32 : operand_type(insn, i);
  const auto accepts = [&](Accepts kinds) { return (spec.accepts & kinds) != 0; };
  std::vector<Operand> out;
  if (type == Type::kPred) {
    if (accepts(kAcceptPred)) {
      out.push_back({.kind = OperandKind::kPred, .index = 1});
      out.push_back({.kind = OperandKind::kPred, .index = kPredCount - 1});
      if (!writes(spec.role)) {
        out.push_back({.kind = OperandKind::kPred, .negated = true, .index = 0});
      }
    }
    if (accepts(kAcceptImm)) {
      out.push_back(Operand::immediate(0));
      out.push_back(Operand::immediate(1));
    }
    return out;
  }
  if (accepts(kAcceptReg)) {
    add_registers(out, type, spec.vector ? vector_count(insn) : 1, any_width);
  }
  if (accepts(kAcceptTile)) {
    out.push_back({.kind = OperandKind::kTile, .index = 1});
    out.push_back({.kind = OperandKind::kTile, .index = kTileCount - 1});
    add_symbols(out, {kSharedSymbol, kTileSymbol});
  }
  if (accepts(kAcceptHbm)) {
    add_memory(out, Space::kHbm);
  }
  if (accepts(kAcceptL1)) {
    add_memory(out, Space::kL1);
  }
  if (accepts(kAcceptConst)) {
    add_memory(out, Space::kConst);
  }
  if (accepts(kAcceptImm)) {
    add_immediates(out, type);
  }
  for (uint32_t p = 0; accepts(kAcceptParam) && p < kParams.size(); ++p) {
    if (same_kind_of_number(kParams[p].type, type)) {
      out.push_back({.kind = OperandKind::kParam, .index = p});
    }
  }
  for (uint32_t s = 0; accepts(kAcceptSpecial) && !is_float(type) && s < kSpecialCount; ++s) {
    if ((kSpecials[s].bits == 64) == is_wide(type)) {
      out.push_back({.kind = OperandKind::kSpecial, .index = s});
    }
  }
  if (accepts(kAcceptAddress) && bits(type) == 32 && (is_integer(type) || is_bits(type))) {
    add_symbols(out, {kSharedSymbol, kTileSymbol, kConstSymbol});
  }
  if (accepts(kAcceptEvent)) {
    out.push_back({.kind = OperandKind::kEvent, .index = 0});
    out.push_back({.kind = OperandKind::kEvent, .index = kEventCount - 1});
  }
  if (accepts(kAcceptLabel)) {
    const bool calls = insn.desc->has(kCall);
    out.push_back({.kind = OperandKind::kLabel, .bits = calls ? 0u : 1u});
    if (!calls) {
      out.push_back({.kind = OperandKind::kLabel, .bits = 2});
    }
  }
  if (accepts(kAcceptString)) {
    out.push_back({.kind = OperandKind::kString, .index = 0});
    out.push_back({.kind = OperandKind::kString, .index = 1});
  }
  if (accepts(kAcceptDiscard)) {
    out.push_back({.kind = OperandKind::kDiscard});
  }
  return out;
}

std::vector<Insn> shapes_of(const InsnDesc& row) {
  std::vector<Insn> shapes;
  const auto types_in = [](TypeSet set) {
    std::vector<Type> types;
    for (unsigned t = 0; t < kTypeCount; ++t) {
      if (set.empty() ? t == 0 : set.contains(static_cast<Type>(t))) {
        types.push_back(static_cast<Type>(t));
      }
    }
    return types;
  };
  unsigned mod_choices = 1;
  for (const ModGroup* group : row.mods) {
    mod_choices *= group->values.size();
  }
  for (const Type type : types_in(row.types)) {
    for (const Type type2 : types_in(row.types2)) {
      for (unsigned choice = 0; choice < mod_choices; ++choice) {
        Insn shape{.desc = &row, .type = type, .type2 = type2};
        unsigned rest = choice;
        for (unsigned g = 0; g < row.mods.size(); ++g) {
          shape.mods[g] = static_cast<uint8_t>(rest % row.mods[g]->values.size());
          rest /= row.mods[g]->values.size();
        }
        if (!insns_of(shape).empty()) {
          shapes.push_back(shape);
        }
      }
    }
  }
  return shapes;
}

std::vector<Insn> insns_of(const Insn& shape) {
  std::vector<Insn> insns;
  const auto add = [&](const Insn& insn) {
    if (validate(insn).empty() && std::find(insns.begin(), insns.end(), insn) == insns.end()) {
      insns.push_back(insn);
    }
  };
  for (unsigned form = 0; form < shape.desc->form_count(); ++form) {
    const auto [least, most] = operand_counts(shape.desc->form(form));
    for (unsigned count = least; count <= most; ++count) {
      Insn first = shape;
      first.form = static_cast<uint8_t>(form);
      first.operand_count = static_cast<uint8_t>(count);
      if (!fill_first_choices(first)) {
        continue;
      }
      add(first);
      for (unsigned i = 0; i < count; ++i) {
        for (const Operand& choice : operand_choices(first, i)) {
          Insn varied = first;
          varied.operands[i] = choice;
          add(varied);
        }
      }
    }
  }
  return insns;
}

Insn with_registers(const Insn& shape, unsigned dst_index) {
  for (unsigned form = 0; form < shape.desc->form_count(); ++form) {
    for (unsigned count = shape.desc->form(form).size(); count > 0; --count) {
      Insn insn = shape;
      insn.form = static_cast<uint8_t>(form);
      insn.operand_count = static_cast<uint8_t>(count);
      for (unsigned i = 0; i < count; ++i) {
        const Type type = operand_type(insn, i);
        const OperandKind kind = type == Type::kPred ? OperandKind::kPred
                                 : is_wide(type)     ? OperandKind::kReg64
                                                     : OperandKind::kReg32;
        insn.operands[i] = {.kind = kind, .index = i == 0 ? dst_index : i};
      }
      if (validate(insn).empty()) {
        return insn;
      }
    }
  }
  return shape;
}

std::string name_of(const Insn& shape) {
  return print_mnemonic(shape);
}

} // namespace pto::test
