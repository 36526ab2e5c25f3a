// SPDX-License-Identifier: Apache-2.0
// What follows from a row for one insn: operand types, modifiers, and complete validation.
#include "isa/insn_desc.h"

#include "isa/error.h"

namespace pto::isa {

namespace {

/// As spec_of().
inline const OperandSpec& find_spec(const OperandList& form, unsigned i) {
  PTO_CHECK(!form.empty());
  const unsigned last = form.size() - 1;
  PTO_CHECK(i <= last || form[last].variadic);
  return form[i < last ? i : last];
}

Type widened(Type type) {
  return is_signed(type) ? Type::kS64 : Type::kU64;
}

bool insn_is_wide(const Insn& insn) {
  for (unsigned g = 0; g < insn.desc->mods.size(); ++g) {
    if (insn.desc->mods[g]->values[insn.mods[g]].suffix == "wide") {
      return true;
    }
  }
  return false;
}

Type type_by_rule(const Insn& insn, unsigned i, TypeRule rule) {
  switch (rule) {
  case TypeRule::kFirst:
    return insn.type;
  case TypeRule::kSecond:
    return insn.type2;
  case TypeRule::kU32:
    return Type::kU32;
  case TypeRule::kS32:
    return Type::kS32;
  case TypeRule::kPred:
    return Type::kPred;
  case TypeRule::kWidened:
    return insn_is_wide(insn) ? widened(insn.type) : insn.type;
  case TypeRule::kAny:
    return insn.operands[i].kind == OperandKind::kReg64 ? Type::kB64 : Type::kB32;
  case TypeRule::kNone:
    break;
  }
  return Type::kNone;
}

std::string_view check_register(const Operand& operand, Type type, unsigned count) {
  const bool wants_wide = is_wide(type);
  if (operand.kind == OperandKind::kReg32) {
    if (wants_wide) {
      return "an r register (32 bit) where the type takes a d register (64 bit)";
    }
    return operand.index + count <= kReg32Count ? "" : "r register past r126";
  }
  if (!wants_wide) {
    return "a d register (64 bit) where the type takes an r register (32 bit)";
  }
  return operand.index + count <= kReg64Count ? "" : "d register past d62";
}

std::string_view check_mem(const MemRef& ref, Accepts accepts) {
  const Accepts needed = ref.space == Space::kHbm  ? kAcceptHbm
                         : ref.space == Space::kL1 ? kAcceptL1
                                                   : kAcceptConst;
  if ((accepts & needed) == 0) {
    return "a memory space that the insn does not access";
  }
  if (ref.scale_log2 > 4) {
    return "an index scale above 16";
  }
  if (ref.index_reg != kNoIndexReg && ref.index_reg >= kReg32Count) {
    return "an index register past r126";
  }
  if (ref.index_reg == kNoIndexReg && ref.scale_log2 != 0) {
    return "an index scale without an index";
  }
  switch (ref.base) {
  case BaseKind::kAbsolute:
    if (ref.space == Space::kHbm || ref.base_index != 0) {
      return "an hbm address without a base";
    }
    return "";
  case BaseKind::kParam:
    return ref.space == Space::kHbm ? "" : "a pointer parameter as base outside hbm";
  case BaseKind::kReg:
    return ref.base_index < (ref.space == Space::kHbm ? kReg64Count : kReg32Count)
               ? ""
               : "a base register out of range";
  case BaseKind::kTile:
    return ref.space == Space::kL1 && ref.base_index < kTileCount ? "" : "a tile as base";
  case BaseKind::kSymbol:
    return ref.space != Space::kHbm ? "" : "a scratchpad or const symbol as base in hbm";
  }
  return "an unknown kind of base";
}

// The accepted kinds of one operand; index ranges of parameters, symbols, labels and strings depend
// on the object and are checked by its reader.
std::string_view check_operand(const Insn& insn, unsigned i) {
  const Operand& operand = insn.operands[i];
  const OperandSpec& spec = find_spec(insn.desc->form(insn.form), i);
  const Type type = type_by_rule(insn, i, spec.type);
  const auto accepts = [&](Accepts kinds) { return (spec.accepts & kinds) != 0; };
  if (type == Type::kPred && operand.kind != OperandKind::kPred &&
      operand.kind != OperandKind::kImm) {
    return "something other than a predicate, 0 or 1 where the type is pred";
  }
  if (operand.negated && (operand.kind != OperandKind::kPred || writes(spec.role))) {
    return "a negation on something other than a predicate source";
  }
  switch (operand.kind) {
  case OperandKind::kReg32:
  case OperandKind::kReg64:
    if (!accepts(kAcceptReg) || type == Type::kPred) {
      return "a register where the operand takes none";
    }
    return check_register(operand, type, spec.vector ? vector_count(insn) : 1);
  case OperandKind::kPred:
    if (!accepts(kAcceptPred) || type != Type::kPred) {
      return "a predicate where the operand takes none";
    }
    return operand.index < kPredCount ? "" : "a predicate past p7";
  case OperandKind::kTile:
    return accepts(kAcceptTile) && operand.index < kTileCount ? "" : "a tile out of place";
  case OperandKind::kEvent:
    return accepts(kAcceptEvent) && operand.index < kEventCount ? "" : "an event out of place";
  case OperandKind::kImm:
    if (!accepts(kAcceptImm)) {
      return "an immediate where the operand takes none";
    }
    return bits(type) == 0 || bits(type) == 64 || operand.bits >> bits(type) == 0
               ? ""
               : "an immediate wider than its type";
  case OperandKind::kSpecial:
    if (!accepts(kAcceptSpecial) || operand.index >= kSpecialCount) {
      return "a special register out of place";
    }
    return (info(static_cast<Special>(operand.index)).bits == 64) == is_wide(type)
               ? ""
               : "a special register of another width";
  case OperandKind::kParam:
    return accepts(kAcceptParam) ? "" : "a parameter where the operand takes none";
  case OperandKind::kSymbol:
    if (!accepts(kAcceptTile | kAcceptAddress)) {
      return "a symbol where the operand takes none";
    }
    return is_wide(type) ? "the address of a symbol, which has 32 bits, where the type has 64" : "";
  case OperandKind::kMem:
    return check_mem(operand.mem(), spec.accepts);
  case OperandKind::kLabel:
    return accepts(kAcceptLabel) ? "" : "a label where the operand takes none";
  case OperandKind::kString:
    return accepts(kAcceptString) ? "" : "a string where the operand takes none";
  case OperandKind::kDiscard:
    return accepts(kAcceptDiscard) ? "" : "`_` where the operand must be given";
  case OperandKind::kNone:
    break;
  }
  return "a missing operand";
}

std::string_view check_suffixes(const Insn& insn) {
  const InsnDesc& desc = *insn.desc;
  const auto type_fits = [](TypeSet set, Type type) {
    return set.empty() ? type == Type::kNone : type != Type::kNone && set.contains(type);
  };
  if (!type_fits(desc.types, insn.type)) {
    return "a type that the insn does not have";
  }
  if (!type_fits(desc.types2, insn.type2)) {
    return "a second type that the insn does not have";
  }
  for (unsigned g = 0; g < kMaxModGroups; ++g) {
    const unsigned limit = g < desc.mods.size() ? desc.mods[g]->values.size() : 1;
    if (insn.mods[g] >= limit) {
      return "a modifier that the insn does not have";
    }
  }
  return "";
}

} // namespace

const OperandSpec& spec_of(const Insn& insn, unsigned i) {
  return find_spec(insn.desc->form(insn.form), i);
}

Type operand_type(const Insn& insn, unsigned i) {
  return type_by_rule(insn, i, find_spec(insn.desc->form(insn.form), i).type);
}

bool has_mod(const Insn& insn, const ModGroup& group, std::string_view suffix) {
  for (unsigned g = 0; g < insn.desc->mods.size(); ++g) {
    if (insn.desc->mods[g] == &group) {
      return group.values[insn.mods[g]].suffix == suffix;
    }
  }
  return false;
}

unsigned vector_count(const Insn& insn) {
  for (unsigned g = 0; g < insn.desc->mods.size(); ++g) {
    const std::string_view suffix = insn.desc->mods[g]->values[insn.mods[g]].suffix;
    if (suffix == "x2") {
      return 2;
    }
    if (suffix == "x4") {
      return 4;
    }
  }
  return 1;
}

uint32_t target_pc(const Insn& insn) {
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    if (insn.operands[i].kind == OperandKind::kLabel) {
      return static_cast<uint32_t>(insn.operands[i].bits);
    }
  }
  return kNoTarget;
}

std::string_view validate(const Insn& insn) {
  if (insn.desc == nullptr) {
    return "no insn";
  }
  if (std::string_view fault = check_suffixes(insn); !fault.empty()) {
    return fault;
  }
  if (insn.guard.pred >= kPredCount || (!insn.guard.present && insn.guard != Guard{})) {
    return "a guard that is no predicate";
  }
  if (insn.form >= insn.desc->form_count()) {
    return "an operand form that the insn does not have";
  }
  const OperandList& form = insn.desc->form(insn.form);
  const bool variadic = !form.empty() && form[form.size() - 1].variadic;
  if (insn.operand_count > (variadic ? kMaxOperands : form.size())) {
    return "too many operands";
  }
  for (unsigned i = insn.operand_count; i < form.size(); ++i) {
    if (!form[i].optional && !form[i].variadic) {
      return "too few operands";
    }
  }
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    if (std::string_view fault = check_operand(insn, i); !fault.empty()) {
      return fault;
    }
  }
  uint64_t stray = 0;
  for (unsigned i = insn.operand_count; i < kMaxOperands; ++i) {
    const Operand& operand = insn.operands[i];
    stray |= static_cast<uint64_t>(operand.kind) | (operand.negated ? 1 : 0) | operand.index |
             operand.bits;
  }
  if (stray != 0) {
    return "an operand past the last";
  }
  return insn.desc->check != nullptr ? insn.desc->check(insn) : std::string_view();
}

} // namespace pto::isa
