// SPDX-License-Identifier: Apache-2.0
// All warps of a block execute one insn each, for a driver that keeps time: what one warp after the
// other would do with nothing in between, as a span, with linear registers kept from insn to insn.
//
// Only what lanes do by themselves comes here (the driver sees to that), so the order of the warps
// shows in memory alone, and a span's lanes go in the same order.
#include "simulator/block_context.h"

#include <algorithm>

namespace pto::sim {

using isa::Outcome;

bool BlockContext::stand_together() {
  const WarpState& first = state_.warps[0];
  const bool are_alike =
      std::all_of(state_.warps.begin(), state_.warps.end(), [&](const WarpState& warp) {
        return warp.status == WarpStatus::kReady && warp.pc == first.pc;
      });
  if (!are_alike || run_.warp_count() > GroupRecord::kMaxWarps) {
    return false;
  }
  bind_span(0, run_.warp_count());
  pc_ = first.pc;
  measure_span();
  pcs_written_ = false;
  is_recording_ = false;
  uses_linear_ = true;
  if (registers_are_zero_) {
    start_registers();
  }
  is_together_ = true;
  group_.warps = count_;
  return true;
}

void BlockContext::note_masks() {
  const isa::Guard guard = insn_->insn.guard;
  const uint32_t* pred = insn_->is_guarded ? preds_ + guard.pred * stride_pred_ : nullptr;
  for (uint32_t w = 0; w < count_; ++w) {
    const uint32_t active = masks_[w];
    group_.active_masks[w] = active;
    group_.exec_masks[w] = pred == nullptr ? active : active & (guard.negated ? ~pred[w] : pred[w]);
  }
}

void BlockContext::note_access(isa::Space space, uint32_t access_bytes) {
  group_.has_access = true;
  group_.is_linear = false;
  group_.space = space;
  group_.access_bytes = access_bytes;
  group_.addresses = addresses_.data();
}

void BlockContext::note_linear_access(isa::Space space,
                                      uint32_t access_bytes,
                                      const isa::LinearValue& at) {
  note_access(space, access_bytes);
  group_.is_linear = true;
  group_.base = at.base;
  group_.lane_step = at.lane_step;
  group_.warp_step = at.warp_step;
}

const GroupRecord* BlockContext::step_together() {
  if (!observers().empty() || image_.data_caches != nullptr || gate_ != nullptr ||
      run_.fault_.has_value() || (!is_together_ && !stand_together())) {
    return nullptr;
  }
  insn_ = insns_ + pc_;
  group_.pc = pc_;
  group_.hint = isa::CacheHint::kCached;
  group_.has_access = false;
  group_.nop_cycles = 0;
  note_masks();
  const InsnCounts before = state_.counts;
  const Outcome outcome = execute_span();
  if (outcome == Outcome::kFault) { // without effect; the warps before the one at fault go on
    state_.counts = before;
    --span_issued_;
    run_.fault_.reset();
    stand_apart();
    return nullptr;
  }
  group_.lanes = static_cast<uint32_t>(state_.counts.lane_insns - before.lane_insns);
  if (outcome == Outcome::kNext) {
    ++pc_;
  }
  if (outcome != Outcome::kBlocked && !pcs_written_ && reaches_join()) {
    settle_span();
  }
  group_.are_together = outcome != Outcome::kBlocked;
  if (pcs_written_) {
    group_.are_together = regroup() && run_.live_warps_ == count_;
    pcs_written_ = !group_.are_together;
  }
  group_.have_ended = run_.live_warps_ == 0;
  group_.next_pc = pc_;
  if (!group_.are_together) {
    stand_apart();
  }
  return &group_;
}

} // namespace pto::sim
