// SPDX-License-Identifier: Apache-2.0
// One insn of one warp, and the record of what it did: for whoever decides by himself which warp
// goes next.
#include "isa/error.h"
#include "simulator/block_context.h"

namespace pto::sim {

const IssueRecord& BlockContext::step(uint32_t warp) {
  stand_apart();
  PTO_CHECK(warp < run_.warp_count() && run_.is_ready(warp) && !run_.fault_.has_value());
  if (registers_are_zero_) {
    zero_registers();
  }
  const ProgramInsn& insn = insns_[state_.warps[warp].pc];
  if (insn.is_block_scoped || observers().wants_insns()) {
    return execute_recorded(warp);
  }
  return insn.is_pure ? record_pure(warp) : record_lanes(warp);
}

bool BlockContext::step_pure(uint32_t warp, uint32_t& exec_mask) {
  stand_apart(); // before that the warp's pc may not be written
  const WarpState& state = state_.warps[warp];
  if (!insns_[state.pc].is_pure || observers().wants_insns()) {
    return false;
  }
  PTO_CHECK(state.status == WarpStatus::kReady && !run_.fault_.has_value());
  if (registers_are_zero_) {
    zero_registers();
  }
  exec_mask = begin_warp(warp);
  execute_pure(warp, exec_mask);
  return true;
}

void BlockContext::begin_record(uint32_t warp, uint32_t exec_mask) {
  record_.insn = &insn_->insn;
  record_.decoded = insn_;
  record_.pc = pc_;
  record_.core = state_.core;
  record_.block = state_.index;
  record_.warp = warp;
  record_.active_mask = masks_[0];
  record_.exec_mask = exec_mask;
  record_.issue_index = state_.warps[warp].issued;
  record_.passed_over = insn_->is_block_scoped && warp != 0;
}

void BlockContext::clear_record() {
  record_.addresses = nullptr;
  record_.access_bytes = 0;
  record_.reads_memory = false;
  record_.writes_memory = false;
  record_.is_atomic = false;
  record_.is_result_read = true;
  record_.is_strided = false;
  record_.l1_count = 0;
  record_.tile = -1;
  record_.copy = nullptr;
  record_.m = record_.n = record_.k = 0;
  record_.nop_cycles = 0;
  record_.wait_event = -1;
  record_.barrier_id = -1;
  record_.releases_barrier = false;
  record_.taken_mask = 0;
  record_.diverged = false;
  record_.exited_mask = 0;
}

inline uint32_t BlockContext::begin_warp(uint32_t warp) {
  bind_warp(warp);
  pc_ = state_.warps[warp].pc;
  insn_ = insns_ + pc_;
  if (!insn_->is_guarded) {
    return masks_[0];
  }
  const isa::Guard guard = insn_->insn.guard;
  const uint32_t word = preds_[size_t{guard.pred} * stride_pred_];
  return masks_[0] & (guard.negated ? ~word : word);
}

inline void BlockContext::activate_warp(uint32_t exec_mask) {
  guarded_[0] = exec_mask; // and not masks_, which the insn may change
  active_ = guarded_.data();
  all_active_ = exec_mask == ~0u;
  state_.counts.lane_insns += all_active_ ? isa::kWarpLanes : lane_count(exec_mask);
}

inline void BlockContext::execute_pure(uint32_t warp, uint32_t exec_mask) {
  WarpState& state = state_.warps[warp];
  ++state_.counts.warp_insns;
  ++state.issued;
  if (exec_mask != 0) {
    activate_warp(exec_mask);
    PTO_CHECK(insn_->exec(*this, insn_->insn) == isa::Outcome::kNext);
  }
  state.pc = pc_ + 1;
  if (state.pc == state.join_pc) {
    settle(warp);
  }
}

const IssueRecord& BlockContext::record_pure(uint32_t warp) {
  const uint32_t exec_mask = begin_warp(warp);
  if (has_more_record_) {
    clear_record();
    has_more_record_ = false;
  }
  begin_record(warp, exec_mask);
  execute_pure(warp, exec_mask);
  record_.outcome = isa::Outcome::kNext;
  record_.next_pc = state_.warps[warp].pc;
  record_.next_mask = masks_[0];
  return record_;
}

const IssueRecord& BlockContext::record_lanes(uint32_t warp) {
  WarpState& state = state_.warps[warp];
  const uint32_t exec_mask = begin_warp(warp);
  clear_record();
  has_more_record_ = true;
  begin_record(warp, exec_mask);
  pcs_written_ = false;
  ++state_.counts.warp_insns;
  ++state.issued;
  isa::Outcome outcome = isa::Outcome::kNext;
  if (exec_mask != 0) {
    activate_warp(exec_mask);
    is_recording_ = true;
    outcome = insn_->exec(*this, insn_->insn);
    is_recording_ = false;
  }
  const bool goes_on = outcome == isa::Outcome::kNext || outcome == isa::Outcome::kControl;
  if (goes_on && !pcs_written_) {
    state.pc = pc_ + (outcome == isa::Outcome::kNext ? 1 : 0);
    if (state.pc == state.join_pc) {
      settle(warp);
    }
  }
  are_warps_fresh_ = are_warps_fresh_ && run_.live_warps_ == 0;
  record_.outcome = outcome;
  record_.next_pc = outcome == isa::Outcome::kBlocked ? record_.pc + 1 : state.pc;
  record_.next_mask = masks_[0];
  return record_;
}

const IssueRecord& BlockContext::execute_recorded(uint32_t warp) {
  WarpState& state = state_.warps[warp];
  if (registers_are_zero_) {
    zero_registers();
  }
  bind_span(warp, 1);
  pc_ = state.pc;
  insn_ = insns_ + pc_;
  measure_warp(state);
  pcs_written_ = false;

  IssueRecord& record = record_;
  clear_record();
  has_more_record_ = true;
  begin_record(warp, insn_->is_guarded ? run_.next_exec_mask(warp) : masks_[0]);

  const ObserverList& watching = observers();
  if (watching.wants(kWantsBefore)) {
    watching.notify_insn(kWantsBefore, record.pc, Interest::kWarp, [&](Observer& observer) {
      observer.before_insn(site(warp), record.active_mask, record.exec_mask);
    });
  }
  is_recording_ = true;
  const isa::Outcome outcome = execute_span_observed(watching.wants(kWantsSpan));
  is_recording_ = false;
  record.outcome = outcome;
  if (outcome == isa::Outcome::kNext) {
    ++pc_;
  }
  const bool goes_on = outcome == isa::Outcome::kNext || outcome == isa::Outcome::kControl;
  if (goes_on && !pcs_written_ && reaches_join()) {
    settle_span();
  }
  flush();
  record.next_pc = outcome == isa::Outcome::kBlocked ? record.pc + 1 : state.pc;
  record.next_mask = masks_[0];
  if (insn_->mnk[0] >= 0 && record.exec_mask != 0 && !record.passed_over) {
    const auto value = [&](unsigned i) {
      const isa::Operand& operand = insn_->insn.operand(static_cast<unsigned>(insn_->mnk[i]));
      return static_cast<uint32_t>(uniform_value(operand, isa::Type::kU32));
    };
    record.m = value(0);
    record.n = value(1);
    record.k = value(2);
  }
  if (outcome != isa::Outcome::kFault && watching.wants(kWantsIssue)) {
    watching.notify_insn(kWantsIssue, record.pc, Interest::kWarp, [&](Observer& observer) {
      observer.after_insn(run_, record);
    });
  }
  return record;
}

} // namespace pto::sim
