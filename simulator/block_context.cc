// SPDX-License-Identifier: Apache-2.0
// Running spans: which warps go on together, for how long, and what is written down about it.
//
// While warps stand at one pc an insn costs one dispatch for all of them. When a branch sends them
// apart, they run one after the other to the branch's join (the meeting point) and go on together
// from there. None of this changes what a race-free program computes; for a racy one the order is a
// function of the program alone. Warps run at most kSlice insns before others have their turn, so
// that one that spins on what another must write cannot hold the block.
#include "simulator/block_context.h"

#include "isa/error.h"

#include <algorithm>

namespace pto::sim {

namespace {

constexpr uint64_t kSlice = 4096; // warp insns of one turn while warps are apart

struct GuardedWords {
  uint32_t all = ~0u; // lanes where every warp's bit is set
  uint32_t any = 0;
};

/// The active lanes of each warp in which a guard holds.
PTO_HOST_LOOP void guard_words(uint32_t* __restrict to,
                               const uint32_t* __restrict masks,
                               const uint32_t* __restrict pred,
                               uint32_t flip,
                               unsigned warps,
                               GuardedWords& __restrict found) {
  uint32_t all = ~0u;
  uint32_t any = 0;
  for (unsigned i = 0; i < warps; ++i) {
    const uint32_t word = masks[i] & (pred[i] ^ flip);
    to[i] = word;
    all &= word;
    any |= word;
  }
  found = {all, any};
}

} // namespace

BlockContext::BlockContext(BlockRun& run)
    : run_(run), state_(run.state_), image_(run.launch_.image()), hbm_(*image_.hbm),
      insns_(image_.program->insns().data()) {
  guarded_.resize(image_.warps);
  addresses_.resize(image_.padded_lanes);
  pointers_.resize(image_.padded_lanes);
  for (unsigned i = 0; i < image_.program->reg32_limit(); ++i) {
    all_registers_.add_reg32(i);
  }
  for (unsigned i = 0; i < image_.program->reg64_limit(); ++i) {
    all_registers_.add_reg64(i);
  }
}

void BlockContext::rebind() {
  gate_stopped_ = false;
  count_ = 0; // the state lies elsewhere
  is_together_ = false;
  uses_linear_ = false;
  has_parts_ = true;
  are_warps_fresh_ = false;
  has_ended_fresh_ = false;
  span_issued_ = 0;
  last_allocation_ = nullptr;
  registers_are_zero_ = false;
  run_.launch_.observers().refresh_interests();
  linear_ = {};
  uniform_ = {};
  drop_views(all_registers_);
}

void BlockContext::bind_span(uint32_t first, uint32_t count) {
  first_ = first;
  count_ = count;
  lanes_ = count * isa::kWarpLanes;
  masks_ = state_.masks.data() + first;
  // A kernel without registers of a file has no storage for it, and nothing may be added to null.
  const size_t first_lane = size_t{first} * isa::kWarpLanes;
  regs32_ = state_.reg32.empty() ? nullptr : state_.reg32.data() + first_lane;
  regs64_ = state_.reg64.empty() ? nullptr : state_.reg64.data() + first_lane;
  preds_ = state_.preds.data() + first;
  stride32_ = image_.padded_lanes;
  stride64_ = image_.padded_lanes;
  stride_pred_ = image_.warps;
  span_issued_ = 0;
}

void BlockContext::measure_span() {
  uint32_t all = ~0u;
  span_warps_ = 0;
  span_lanes_ = 0;
  span_join_ = isa::kNoReconvergence;
  joins_differ_ = false;
  for (uint32_t i = 0; i < count_; ++i) {
    const uint32_t mask = masks_[i];
    all &= mask;
    if (mask == 0) {
      continue;
    }
    ++span_warps_;
    span_lanes_ += lane_count(mask);
    const uint32_t join = state_.warps[first_ + i].join_pc;
    if (join != isa::kNoReconvergence && join != span_join_) {
      joins_differ_ = joins_differ_ || span_join_ != isa::kNoReconvergence;
      span_join_ = join;
    }
  }
  is_full_ = all == ~0u;
}

void BlockContext::measure_start() {
  span_warps_ = count_;
  span_lanes_ = image_.lanes;
  span_join_ = isa::kNoReconvergence;
  joins_differ_ = false;
  is_full_ = image_.lanes == image_.padded_lanes;
}

void BlockContext::measure_warp(const WarpState& warp) {
  span_warps_ = masks_[0] != 0 ? 1 : 0;
  span_lanes_ = lane_count(masks_[0]);
  span_join_ = masks_[0] != 0 ? warp.join_pc : isa::kNoReconvergence;
  joins_differ_ = false;
  is_full_ = masks_[0] == ~0u;
}

bool BlockContext::choose_span() {
  const uint32_t warps = run_.warp_count();
  const auto is_open = [&](uint32_t w) {
    return state_.warps[w].status == WarpStatus::kReady && state_.parked[w] == 0;
  };
  uint32_t lowest = warps;
  for (int attempt = 0; attempt < 2 && lowest == warps; ++attempt) {
    lowest = 0;
    while (lowest < warps && !is_open(lowest)) {
      ++lowest;
    }
    if (lowest == warps && state_.meeting_pc != isa::kNoReconvergence) {
      // All that can have met; the others wait for something else.
      state_.meeting_pc = isa::kNoReconvergence;
      std::fill(state_.parked.begin(), state_.parked.end(), uint8_t{0});
    }
  }
  if (lowest == warps) {
    return false;
  }
  // Extends a span from `from` over warps at its pc; warps that are done may lie between.
  const auto extent = [&](uint32_t from) {
    uint32_t last = from;
    for (uint32_t w = from + 1; w < warps; ++w) {
      if (is_open(w) && state_.warps[w].pc == state_.warps[from].pc) {
        last = w;
      } else if (state_.warps[w].status != WarpStatus::kDone) {
        break;
      }
    }
    return last - from + 1;
  };
  uint32_t first = lowest;
  uint32_t count = extent(first);
  bool is_whole = true;
  for (uint32_t w = first + count; w < warps; ++w) {
    is_whole = is_whole && !is_open(w);
  }
  if (!is_whole) { // apart: take turns
    first = state_.turn < warps ? state_.turn : 0;
    while (!is_open(first)) {
      first = first + 1 < warps ? first + 1 : 0;
    }
    count = extent(first);
    state_.turn = first + count;
  }
  bind_span(first, count);
  pc_ = state_.warps[first].pc;
  measure_span();
  return true;
}

BlockStop BlockContext::run(uint64_t budget) {
  stand_apart();
  const uint64_t begin = state_.counts.warp_insns;
  const uint64_t end = budget > UINT64_MAX - begin ? UINT64_MAX : begin + budget;
  const bool is_observed = observers().wants_insns();
  uses_linear_ = image_.data_caches == nullptr;
  keeps_views_ = uses_linear_ && !is_observed;
  while (true) {
    if (run_.fault_.has_value() || gate_stopped_) {
      return BlockStop::kFault;
    }
    if (run_.live_warps_ == 0) {
      return BlockStop::kDone;
    }
    if (state_.counts.warp_insns >= end) {
      return BlockStop::kBudget;
    }
    if (registers_are_zero_) { // nothing ran yet: all warps stand at the entry
      bind_span(0, run_.warp_count());
      pc_ = image_.program->entry_pc();
      measure_start();
      start_registers();
    } else if (!choose_span()) {
      return BlockStop::kBlocked;
    }
    const bool is_apart = span_warps_ < run_.live_warps_;
    if (is_apart && ledger_ != nullptr) {
      return BlockStop::kBudget;
    }
    const uint64_t slice_end = state_.counts.warp_insns + kSlice;
    const uint64_t stop = is_apart ? std::min(end, slice_end) : end;
    if (is_observed) {
      run_span_observed(stop);
    } else {
      run_span(stop);
    }
    if (is_apart && state_.counts.warp_insns >= slice_end &&
        state_.meeting_pc != isa::kNoReconvergence) {
      // A long way to the meeting point, or one that needs the parked warps: no longer wait there.
      state_.meeting_pc = isa::kNoReconvergence;
      std::fill(state_.parked.begin(), state_.parked.end(), uint8_t{0});
    }
  }
}

bool BlockContext::set_active() {
  if (insn_->is_guarded) {
    const isa::Guard guard = insn_->insn.guard;
    const uint32_t* pred = state_.preds.data() + size_t{guard.pred} * image_.warps + first_;
    const uint32_t flip = guard.negated ? ~0u : 0u;
    GuardedWords words;
    isa::host_loop<guard_words>.on_host()(guarded_.data(), masks_, pred, flip, count_, words);
    if (words.any == 0) {
      return false;
    }
    active_ = guarded_.data();
    all_active_ = words.all == ~0u;
    if (all_active_) {
      state_.counts.lane_insns += lanes_;
    } else {
      uint32_t lanes = 0;
      for (uint32_t i = 0; i < count_; ++i) {
        lanes += lane_count(guarded_[i]);
      }
      state_.counts.lane_insns += lanes;
    }
  } else {
    active_ = masks_;
    all_active_ = is_full_;
    state_.counts.lane_insns += span_lanes_;
  }
  // Block-scoped insns are warp 0's alone.
  return !insn_->is_block_scoped || (first_ == 0 && active_[0] != 0);
}

isa::Outcome BlockContext::execute_span() {
  state_.counts.warp_insns += span_warps_;
  ++span_issued_;
  return set_active() ? execute_active() : isa::Outcome::kNext;
}

isa::Outcome BlockContext::execute_active() {
  const ProgramInsn& insn = *insn_;
  if (!uses_linear_) {
    return insn.exec(*this, insn.insn);
  }
  if (insn.may_be_linear && all_active_ && insn.reads.is_within(linear_) && execute_linear()) {
    return isa::Outcome::kNext;
  }
  const bool has_linear_ones = has_linear();
  const bool has_viewed_ones = has_views();
  if (has_viewed_ones && !insn.keeps_memory) {
    settle_views(all_registers_);
  }
  if (has_linear_ones && !insn.is_block_scoped) { // these ask for one lane's values
    settle(insn.lane_reads);
  }
  if (!all_active_ && (has_linear_ones || has_viewed_ones)) {
    settle(insn.writes);
    settle_views(insn.writes);
  }
  const isa::Outcome outcome = insn.exec(*this, insn.insn);
  if (outcome == isa::Outcome::kNext) {
    if (has_linear_ones) {
      forget_linear(insn.writes);
    }
    if (has_viewed_ones) {
      drop_views(insn.writes);
    }
  }
  if (loaded_count_ != 0) {
    keep_loaded();
  } else if (loaded_view_ != nullptr) {
    keep_view();
  }
  return outcome;
}

void BlockContext::keep_loaded() {
  const isa::Operand& dst = insn_->insn.operand(0);
  for (unsigned j = 0; j < loaded_count_; ++j) {
    const isa::LinearValue value = isa::LinearValue::uniform(loaded_[j]);
    if (dst.kind == isa::OperandKind::kReg64) {
      set_linear64(dst.index + j, value);
    } else {
      set_linear32(dst.index + j, value);
    }
  }
  loaded_count_ = 0;
}

void BlockContext::flush() {
  if (run_.live_warps_ != 0) { // whoever looks at a block that has ended settles it (BlockRun)
    settle_all();
    are_warps_fresh_ = false;
  } else if (has_views()) { // their memory may change from here on
    if (forgets_ended_) {
      drop_views(all_registers_);
    } else {
      settle_views(all_registers_);
    }
  }
  for (uint32_t i = 0; i < count_ && !has_ended_fresh_; ++i) {
    WarpState& warp = state_.warps[first_ + i];
    if (!pcs_written_ && masks_[i] != 0) {
      warp.pc = pc_;
    }
    warp.issued += span_issued_;
  }
  span_issued_ = 0;
}

bool BlockContext::reaches_join() const {
  if (!joins_differ_) {
    return pc_ == span_join_;
  }
  for (uint32_t i = 0; i < count_; ++i) {
    if (masks_[i] != 0 && state_.warps[first_ + i].join_pc == pc_) {
      return true;
    }
  }
  return false;
}

void BlockContext::settle_span() {
  for (uint32_t i = 0; i < count_; ++i) {
    if (masks_[i] != 0) {
      state_.warps[first_ + i].pc = pc_;
      settle(first_ + i);
    }
  }
  pcs_written_ = true;
}

bool BlockContext::regroup() {
  bool found = false;
  for (uint32_t i = 0; i < count_; ++i) {
    const WarpState& warp = state_.warps[first_ + i];
    if (warp.status == WarpStatus::kDone) {
      continue;
    }
    if (warp.status != WarpStatus::kReady || (found && warp.pc != pc_)) {
      return false;
    }
    pc_ = warp.pc;
    found = true;
  }
  if (found) {
    measure_span();
  }
  return found;
}

void BlockContext::plan_meeting(uint32_t join_pc) {
  if (state_.meeting_pc == isa::kNoReconvergence && join_pc != isa::kNoReconvergence) {
    state_.meeting_pc = join_pc;
    state_.meeting_depth = state_.warps[first_].call_depth;
  }
  if (state_.meeting_pc == isa::kNoReconvergence) {
    return;
  }
  for (uint32_t i = 0; i < count_; ++i) {
    const WarpState& warp = state_.warps[first_ + i];
    if (warp.status == WarpStatus::kReady && warp.pc == state_.meeting_pc &&
        warp.call_depth == state_.meeting_depth) {
      state_.parked[first_ + i] = 1;
    }
  }
}

bool BlockContext::at_meeting() const {
  return pc_ == state_.meeting_pc && state_.warps[first_].call_depth == state_.meeting_depth;
}

void BlockContext::run_span(uint64_t end) {
  is_recording_ = false;
  pcs_written_ = false;
  // The slice of a whole span ends with the budget, however far joins are away.
  while (true) {
    insn_ = insns_ + pc_;
    const uint32_t issued_pc = pc_;
    const isa::Outcome outcome =
        insn_->feeds_store && execute_into_memory(end) ? isa::Outcome::kNext : execute_span();
    if (outcome == isa::Outcome::kNext) {
      ++pc_;
    } else if (outcome != isa::Outcome::kControl) {
      break; // blocked or faulted: the warps stay at this insn
    }
    // kControl with pcs_written_ false is a jump of all warps alike to pc_.
    if (!pcs_written_ && reaches_join()) {
      settle_span();
    }
    if (pcs_written_) {
      if (run_.live_warps_ == 0) {
        break;
      }
      are_warps_fresh_ = false;
      if (!regroup()) {
        plan_meeting(insns_[issued_pc].join_pc);
        break;
      }
      pcs_written_ = false;
    }
    if (at_meeting()) {
      flush();
      plan_meeting(isa::kNoReconvergence);
      return;
    }
    if (state_.counts.warp_insns >= end) {
      break;
    }
  }
  flush();
}

isa::Outcome BlockContext::execute_span_observed(bool is_told) {
  const uint32_t pc = pc_;
  if (!is_told) {
    return execute_span();
  }
  state_.counts.warp_insns += span_warps_;
  ++span_issued_;
  if (!set_active()) {
    return isa::Outcome::kNext;
  }
  span_.block = &run_;
  span_.decoded = insn_;
  span_.pc = pc;
  span_.first_warp = first_;
  span_.warp_count = count_;
  span_.exec_masks = active_;
  span_.has_access = false;
  const ObserverList& watching = observers();
  watching.notify_insn(
      kWantsSpan, pc, Interest::kSpan, [&](Observer& observer) { observer.before_span(span_); });
  is_span_told_ = true;
  const isa::Outcome outcome = execute_active();
  is_span_told_ = false;
  if (outcome == isa::Outcome::kNext) {
    watching.notify_insn(
        kWantsSpan, pc, Interest::kSpan, [&](Observer& observer) { observer.after_span(span_); });
  }
  return outcome;
}

bool BlockContext::execute_warps_observed() {
  const uint32_t first = first_;
  const uint32_t count = count_;
  flush();
  const bool uses_linear = uses_linear_;
  uses_linear_ = false;
  for (uint32_t w = first; w < first + count; ++w) {
    if (state_.warps[w].status != WarpStatus::kReady) {
      continue; // done
    }
    execute_recorded(w);
    if (run_.fault_.has_value()) {
      return false;
    }
  }
  uses_linear_ = uses_linear;
  bind_span(first, count);
  pcs_written_ = true;
  return true;
}

// As run_span; insns that some observer wants by the warp are executed so.
void BlockContext::run_span_observed(uint64_t end) {
  is_recording_ = false;
  pcs_written_ = false;
  while (true) {
    insn_ = insns_ + pc_;
    const uint32_t issued_pc = pc_;
    const Interest interest = observers().interest(pc_);
    if (interest == Interest::kWarp) {
      if (!execute_warps_observed()) {
        return;
      }
    } else {
      const isa::Outcome outcome = execute_span_observed(interest == Interest::kSpan);
      if (outcome == isa::Outcome::kNext) {
        ++pc_;
      } else if (outcome != isa::Outcome::kControl) {
        break;
      }
      if (!pcs_written_ && reaches_join()) {
        settle_span();
      }
    }
    if (pcs_written_) {
      if (run_.live_warps_ == 0) {
        break;
      }
      if (!regroup()) {
        plan_meeting(insns_[issued_pc].join_pc);
        break;
      }
      pcs_written_ = false;
    }
    if (at_meeting()) {
      flush();
      plan_meeting(isa::kNoReconvergence);
      return;
    }
    if (state_.counts.warp_insns >= end) {
      break;
    }
  }
  flush();
}

} // namespace pto::sim
