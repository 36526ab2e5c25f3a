// SPDX-License-Identifier: Apache-2.0
// Walks the rows of the instruction table and fills their operands by role.
#include "runtime/profile/microbench_insn.h"

#include "isa/error.h"
#include "isa/print.h"
#include "isa/table.h"
#include "runtime/profile/profile.h"

#include <algorithm>
#include <bit>

namespace pto::rt::detail {

using namespace pto::isa;

namespace {

// What has a benchmark of its own or none.
constexpr Flags kNotLaneWork = kAsync | kBranch | kCall | kReturn | kEndsLane | kWarpBarrier |
                               kBlockBarrier | kFence | kWaits | kAllocates | kFrees | kPrints |
                               kTraps | kCacheControl;

constexpr uint32_t kSharedSymbol = 0;
constexpr uint32_t kConstSymbol = 1;

Object make_object() {
  Object object;
  object.symbols.resize(2);
  object.symbols[kSharedSymbol].name = "s";
  object.symbols[kConstSymbol].name = "c";
  object.symbols[kConstSymbol].kind = SymbolKind::kConst;
  Function kernel;
  kernel.name = "k";
  kernel.is_kernel = true;
  kernel.params = {{"a", Type::kU64, true, Type::kNone},
                   {"o", Type::kU64, true, Type::kNone},
                   {"n", Type::kU32, false, Type::kNone}};
  object.functions.push_back(std::move(kernel));
  return object;
}

RegClass class_of(const Insn& insn, unsigned operand) {
  const OperandSpec& spec = spec_of(insn, operand);
  const Type type = operand_type(insn, operand);
  if (type == Type::kPred) {
    return (spec.accepts & kAcceptPred) != 0 ? RegClass::kP : RegClass::kNone;
  }
  if ((spec.accepts & kAcceptReg) == 0) {
    return RegClass::kNone;
  }
  return is_wide(type) ? RegClass::kD : RegClass::kR;
}

Operand reg(RegClass reg_class, unsigned index) {
  const OperandKind kind = reg_class == RegClass::kR   ? OperandKind::kReg32
                           : reg_class == RegClass::kD ? OperandKind::kReg64
                                                       : OperandKind::kPred;
  return {.kind = kind, .index = index};
}

/// hbm[a + r*size], l1[s + r*size] or const[c + r*size]; stores go to o.
Operand memory(Space space, Type type, bool is_output, unsigned index_reg) {
  MemRef ref;
  ref.space = space;
  ref.base = space == Space::kHbm ? BaseKind::kParam : BaseKind::kSymbol;
  ref.base_index = space == Space::kHbm  ? (is_output ? 1 : 0)
                   : space == Space::kL1 ? kSharedSymbol
                                         : kConstSymbol;
  ref.index_reg = static_cast<uint8_t>(index_reg);
  ref.scale_log2 = static_cast<uint8_t>(std::countr_zero(std::max(1U, size_bytes(type)))) & 7U;
  return Operand::memory(ref);
}

/// Fills the operands; false where a role has no place in these benchmarks.
bool fill(InsnForm& form, Space space) {
  Insn& insn = form.insn;
  const OperandList& specs = insn.desc->form(insn.form);
  const bool writes_memory = insn.desc->has(kWritesMem);
  insn.operand_count = 0;
  for (unsigned i = 0; i < specs.size(); ++i) {
    const OperandSpec& spec = specs[i];
    if (spec.optional || spec.variadic) {
      break;
    }
    ++insn.operand_count;
    Operand& operand = insn.operands[i];
    if ((spec.accepts & kAcceptMem) != 0 && (spec.accepts & kAcceptTile) == 0) {
      const Accepts wanted = space == Space::kHbm  ? kAcceptHbm
                             : space == Space::kL1 ? kAcceptL1
                                                   : kAcceptConst;
      if ((spec.accepts & wanted) == 0 || form.mem != -1) {
        return false;
      }
      form.mem = static_cast<int>(i);
      const bool is_store = writes_memory && !insn.desc->has(kReadsMem);
      operand = memory(space, insn.type, is_store && space == Space::kHbm, kZero);
      continue;
    }
    const RegClass reg_class = class_of(insn, i);
    if (reg_class == RegClass::kNone) {
      return false;
    }
    if (writes(spec.role)) {
      if (form.dst != -1) {
        return false;
      }
      form.dst = static_cast<int>(i);
      form.dst_class = reg_class;
      operand = reg(reg_class, kChain);
    } else {
      form.sources.push_back(static_cast<int>(i));
      form.source_classes.push_back(reg_class);
      // What is written to memory must not turn later addresses into wild ones.
      const bool is_zero = writes_memory && reg_class != RegClass::kP;
      operand = reg(reg_class, is_zero ? kZero : kConstant);
    }
  }
  return true;
}

void add_form(std::vector<InsnForm>& out, const Insn& shape, Space space) {
  InsnForm form;
  form.insn = shape;
  if (!fill(form, space) || !validate(form.insn).empty()) {
    return;
  }
  form.is_load = form.mem != -1 && form.dst != -1;
  form.is_store = form.mem != -1 && form.dst == -1;
  if (form.dst == -1 && !form.is_store) {
    return;
  }
  form.key = latency_key(form.insn);
  form.base = shape.desc->latency;
  const auto append = [&](std::string_view suffix) {
    form.base += '.';
    form.base += suffix;
  };
  if (form.mem != -1) {
    append(name(space));
  }
  for (const Type type : {shape.type, shape.type2}) {
    if (type != Type::kNone) {
      append(name(type));
    }
  }
  // Two forms of one row with the same key are the same measurement.
  if (std::none_of(out.begin(), out.end(), [&](const InsnForm& f) { return f.key == form.key; })) {
    out.push_back(std::move(form));
  }
}

std::vector<Type> types_in(const TypeSet& set) {
  std::vector<Type> types;
  for (unsigned i = 0; i < kTypeCount; ++i) {
    if (set.contains(static_cast<Type>(i))) {
      types.push_back(static_cast<Type>(i));
    }
  }
  return types.empty() ? std::vector<Type>{Type::kNone} : types;
}

void add_forms_of(std::vector<InsnForm>& out, const InsnDesc& row) {
  for (const Type type : types_in(row.types)) {
    for (const Type type2 : types_in(row.types2)) {
      // Conversions: from and to f32, and between integers of the two register classes.
      const bool is_32_or_64 = bits(type) >= 32 && bits(type2) >= 32;
      if (type2 != Type::kNone && type != Type::kF32 && type2 != Type::kF32 && !is_32_or_64) {
        continue;
      }
      for (unsigned form = 0; form < row.form_count(); ++form) {
        Insn shape;
        shape.desc = &row;
        shape.type = type;
        shape.type2 = type2;
        shape.form = static_cast<uint8_t>(form);
        for (const Space space : {Space::kHbm, Space::kL1, Space::kConst}) {
          add_form(out, shape, space);
        }
      }
    }
  }
}

} // namespace

RegClass InsnForm::entry_class() const {
  return is_load ? RegClass::kR : source_classes.empty() ? RegClass::kNone : source_classes.front();
}

int InsnForm::entry_of(RegClass wanted) const {
  if (wanted == RegClass::kNone) {
    return -1;
  }
  if (is_load) { // values that are loaded, not those that an atomic adds, make the chain
    return wanted == RegClass::kR ? -2 : -1;
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    if (source_classes[i] == wanted) {
      return sources[i];
    }
  }
  return -1;
}

const std::vector<InsnForm>& insn_forms() {
  static const std::vector<InsnForm> forms = [] {
    std::vector<InsnForm> list;
    for (const InsnDesc* row : all_insns()) {
      if (!row->has(kNotLaneWork) && row->scope != Scope::kBlock && row->unit != isa::Unit::kS) {
        add_forms_of(list, *row);
      }
    }
    return list;
  }();
  return forms;
}

const InsnForm* find_form(std::string_view key) {
  for (const InsnForm& form : insn_forms()) {
    if (form.key == key) {
      return &form;
    }
  }
  return nullptr;
}

std::string typed_key(const std::string& key) {
  const InsnForm* form = find_form(key);
  return form != nullptr ? form->base : key;
}

const InsnDesc* row_of(std::string_view key) {
  for (const InsnDesc* row : all_insns()) {
    if (row->latency == key_base(key)) {
      return row;
    }
  }
  return nullptr;
}
unsigned unit_of(std::string_view key) {
  const InsnDesc* row = row_of(key);
  return row == nullptr ? kUnitCount : static_cast<unsigned>(row->unit);
}

ClosingLink closing_link(RegClass reg_class) {
  if (reg_class == RegClass::kP) {
    return {"sel.b32 r0, r3, r3, p{}", "SEL.b32"};
  }
  return {"and.b32 r0, r{}, 0", "AND.b32"};
}

Insn with(const InsnForm& form, unsigned dst, int entry, unsigned source) {
  Insn insn = form.insn;
  if (form.dst >= 0) {
    insn.operands[static_cast<size_t>(form.dst)].index = dst;
  }
  if (entry == -2) {
    Operand& operand = insn.operands[static_cast<size_t>(form.mem)];
    MemRef ref = operand.mem();
    ref.index_reg = static_cast<uint8_t>(source);
    operand = Operand::memory(ref);
  } else if (entry >= 0) {
    insn.operands[static_cast<size_t>(entry)].index = source;
  }
  return insn;
}

Insn with_all(const InsnForm& form, unsigned dst, RegClass source_class, unsigned source) {
  Insn insn = with(form, dst, form.is_load ? form.entry_of(source_class) : -1, source);
  for (size_t i = 0; i < form.sources.size() && !form.is_load; ++i) {
    if (form.source_classes[i] == source_class) {
      insn.operands[static_cast<size_t>(form.sources[i])].index = source;
    }
  }
  return insn;
}

const Object& bench_object() {
  static const Object object = make_object();
  return object;
}

std::string text_of(const Insn& insn) {
  return print_insn(insn, bench_object(), bench_object().functions.front());
}

std::vector<const InsnDesc*> rows_with(Flags flags) {
  std::vector<const InsnDesc*> rows;
  for (const InsnDesc* row : all_insns()) {
    if ((row->flags & flags) == flags) {
      rows.push_back(row);
    }
  }
  return rows;
}

} // namespace pto::rt::detail
