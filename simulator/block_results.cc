// SPDX-License-Identifier: Apache-2.0
// Results that are computed where they are stored.
//
// Mostly the last insn of a chain is followed by the store of its result. Where the store is one
// run of memory for the span, the insn writes its lanes straight there, and its destination becomes
// a view of them (block_views.cc): nothing goes through the register's storage. Both insns count as
// if they had run one after the other, which nobody can tell who does not look in between; so this
// is for spans that nobody observes, and not where the span may end between the two.
#include "simulator/block_context.h"
#include "simulator/prefetch_next.h"

namespace pto::sim {

using isa::LinearValue;

bool BlockContext::execute_into_memory(uint64_t end) {
  if (!keeps_views_ || !is_full_ || insn_->reads.is_within(linear_) ||
      state_.counts.warp_insns + span_warps_ >= end) {
    return false;
  }
  ++pc_;
  uint8_t* const host = reaches_join() || at_meeting() ? nullptr : place_result(insns_[pc_]);
  if (host == nullptr) {
    --pc_;
    return false;
  }
  const isa::Operand& dst = insn_->insn.operand(0);
  const bool is_wide = dst.kind == isa::OperandKind::kReg64;
  ResourceSet in_place; // the old value, if it lies in the very lanes that are overwritten
  if (is_wide && has_view64(dst.index) &&
      reinterpret_cast<const uint8_t*>(views64_[dst.index]) == host) {
    in_place.add_reg64(dst.index);
  } else if (!is_wide && has_view32(dst.index) &&
             reinterpret_cast<const uint8_t*>(views32_[dst.index]) == host) {
    in_place.add_reg32(dst.index);
  }
  settle_views_in(
      host, uint64_t{lanes_} * (is_wide ? sizeof(uint64_t) : sizeof(uint32_t)), in_place);
  active_ = masks_;
  all_active_ = true;
  state_.counts.warp_insns += uint64_t{2} * span_warps_;
  state_.counts.lane_insns += uint64_t{2} * span_lanes_;
  span_issued_ += 2;
  result_at_ = host;
  execute_active();
  result_at_ = nullptr;
  loaded_view_ = host;
  keep_view();
  return true;
}

uint8_t* BlockContext::place_result(const ProgramInsn& store) {
  const isa::Operand& operand = store.insn.operand(0);
  const isa::MemRef mem = operand.mem();
  const unsigned element_bytes = isa::size_bytes(store.insn.type);
  if (mem.base == isa::BaseKind::kTile && !state_.tiles[mem.base_index].is_live) {
    return nullptr; // the store says so
  }
  all_active_ = true;
  AddressForm form;
  const std::optional<LinearValue> at =
      resolve(operand, form) ? linear_address(operand, form) : std::nullopt;
  Lanes lanes;
  if (!at || !is_one_run(*at, element_bytes, count_) ||
      !plan_linear(operand, form, element_bytes, 1, false, true, lanes) ||
      gate_stopped_) { // refused: it will be once more, and end the span
    return nullptr;
  }
  if (mem.space == isa::Space::kHbm) {
    prefetch_next(lanes.host, uint64_t{lanes_} * element_bytes);
  }
  return lanes.host;
}

} // namespace pto::sim
