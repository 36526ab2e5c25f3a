// SPDX-License-Identifier: Apache-2.0
// The lanes that an insn acts on and their predicates: the part of ExecContext (isa/exec_context.h)
// that LinearFn needs, too.
#pragma once

#include "isa/insn.h"

#include <cstdint>

namespace pto::isa {

class SpanLanes {
public:
  /// Lanes in the span, a multiple of 32 (a partial last warp is padded with inactive lanes).
  unsigned lanes() const { return lanes_; }
  /// Lanes that execute this insn (active and guard holds), one word a warp of the span.
  const uint32_t* active_words() const { return active_; }
  /// True if every lane of the span is active: the fast path.
  bool all_active() const { return all_active_; }

  /// Storage of a predicate register: one word a warp of the span.
  uint32_t* pred(unsigned index) { return preds_ + index * stride_pred_; }
  /// Predicate source word of warp `warp` of the span, negation applied; an immediate 0/1 is
  /// broadcast.
  uint32_t source_pred(const Operand& operand, unsigned warp) {
    if (operand.kind == OperandKind::kImm) {
      return (operand.bits & 1) != 0 ? ~0u : 0u;
    }
    const uint32_t word = pred(operand.index)[warp];
    return operand.negated ? ~word : word;
  }

protected:
  SpanLanes() = default;

  unsigned lanes_ = kWarpLanes;
  bool all_active_ = false;
  const uint32_t* active_ = nullptr;
  uint32_t* preds_ = nullptr;
  unsigned stride_pred_ = 0; // words from one predicate to the next
};

} // namespace pto::isa
