// SPDX-License-Identifier: Apache-2.0
// Operands of an insn as registers: vectors take several, addresses read what they are made of.
#include "isa/register_use.h"

#include "isa/insn_desc.h"

#include <fmt/format.h>

#include <bit>

namespace pto::isa {

unsigned RegSet::count32() const {
  return static_cast<unsigned>(std::popcount(words_[0]) + std::popcount(words_[1]));
}

unsigned RegSet::count64() const {
  return static_cast<unsigned>(std::popcount(words_[2]));
}

RegSet RegSet::all() {
  RegSet out;
  out.words_.fill(~uint64_t{0});
  return out;
}

std::string register_name(unsigned reg) {
  return reg < RegSet::kReg64First  ? fmt::format("r{}", reg)
         : reg < RegSet::kPredFirst ? fmt::format("d{}", reg - RegSet::kReg64First)
                                    : fmt::format("p{}", reg - RegSet::kPredFirst);
}

InsnRegisters registers_of(const Insn& insn) {
  InsnRegisters out;
  if (insn.guard.present) {
    out.reads.add(RegSet::kPredFirst + insn.guard.pred);
  }
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    const Operand& operand = insn.operands[i];
    if (operand.kind == OperandKind::kMem) {
      const MemRef ref = operand.mem();
      if (ref.base == BaseKind::kReg) {
        out.reads.add((ref.space == Space::kHbm ? RegSet::kReg64First : 0U) + ref.base_index);
      }
      if (ref.index_reg != kNoIndexReg) {
        out.reads.add(ref.index_reg);
      }
      continue;
    }
    unsigned first = 0;
    switch (operand.kind) {
    case OperandKind::kReg32:
      break;
    case OperandKind::kReg64:
      first = RegSet::kReg64First;
      break;
    case OperandKind::kPred:
      first = RegSet::kPredFirst;
      break;
    default:
      continue;
    }
    const OperandSpec& spec = spec_of(insn, i);
    const unsigned count = spec.vector ? vector_count(insn) : 1;
    for (unsigned k = 0; k < count; ++k) {
      if (reads(spec.role)) {
        out.reads.add(first + operand.index + k);
      }
      if (writes(spec.role)) {
        out.writes.add(first + operand.index + k);
      }
    }
  }
  return out;
}

} // namespace pto::isa
