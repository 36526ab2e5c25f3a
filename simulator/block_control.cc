// SPDX-License-Identifier: Apache-2.0
// Control flow of warps: divergence, calls, exits, barriers and waits. The rules are in block.h.
#include "simulator/block_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace pto::sim {

using isa::Outcome;

namespace {

void mark_done(WarpState& warp) {
  warp.status = WarpStatus::kDone;
  warp.join_pc = isa::kNoReconvergence;
  warp.is_call_base = false;
  warp.call_depth = 0;
}

} // namespace

// ---------------------------------------------------------------- parts of a warp

void BlockContext::pop_part(uint32_t w) {
  WarpState& warp = state_.warps[w];
  warp.call_depth -= warp.is_call_base ? 1 : 0;
  const StackEntry& below = warp.stack.back();
  warp.pc = below.pc;
  warp.join_pc = below.join_pc;
  warp.is_call_base = below.is_call_base;
  state_.masks[w] = below.mask;
  warp.stack.pop_back();
}

void BlockContext::push_part(
    uint32_t w, uint32_t pc, uint32_t join_pc, uint32_t mask, bool is_call_base) {
  has_parts_ = true;
  state_.warps[w].stack.push_back(
      {.pc = pc, .join_pc = join_pc, .mask = mask, .is_call_base = is_call_base});
}

void BlockContext::settle(uint32_t w) {
  WarpState& warp = state_.warps[w];
  bool has_joined = false;
  while (true) {
    const bool is_empty = state_.masks[w] == 0;
    const bool is_joined = !is_empty && warp.pc == warp.join_pc;
    if (!is_empty && !is_joined) {
      break;
    }
    if (warp.stack.empty()) {
      if (is_empty) {
        finish_warp(w);
      } else {
        warp.join_pc = isa::kNoReconvergence;
      }
      break;
    }
    has_joined = has_joined || is_joined;
    pop_part(w);
  }
  if (has_joined && state_.masks[w] != 0 && observers().wants(kWantsDivergence)) {
    const EventSite where{run_, w, warp.pc};
    observers().notify(kWantsDivergence,
                       [&](Observer& observer) { observer.reconverge(where, state_.masks[w]); });
  }
}

void BlockContext::finish_warp(uint32_t w) {
  mark_done(state_.warps[w]);
  --run_.live_warps_;
  release_barrier_if_full();
}

// ---------------------------------------------------------------- branches

void BlockContext::split(uint32_t w, uint32_t taken, uint32_t target_pc) {
  WarpState& warp = state_.warps[w];
  const uint32_t all = state_.masks[w];
  const uint32_t rest = all & ~taken;
  if (rest == 0) {
    warp.pc = target_pc;
    return;
  }
  const uint32_t join_pc = insn_->join_pc;
  if (observers().wants(kWantsDivergence)) {
    const EventSite where{run_, w, pc_};
    observers().notify(kWantsDivergence,
                       [&](Observer& observer) { observer.diverge(where, taken, rest, join_pc); });
  }
  if (is_recording_) {
    record_.diverged = true;
  }
  if (join_pc == isa::kNoReconvergence) {
    // Two parts that never meet again here; the lower one keeps the call.
    push_part(w, target_pc, warp.join_pc, taken, warp.is_call_base);
    warp.is_call_base = false;
    warp.pc = pc_ + 1;
    state_.masks[w] = rest;
    return;
  }
  push_part(w, join_pc, warp.join_pc, all, warp.is_call_base);
  warp.is_call_base = false;
  warp.join_pc = join_pc;
  if (pc_ + 1 == join_pc) {
    warp.pc = target_pc;
    state_.masks[w] = taken;
    return;
  }
  if (target_pc != join_pc) {
    push_part(w, target_pc, join_pc, taken, false);
  }
  warp.pc = pc_ + 1;
  state_.masks[w] = rest;
}

Outcome BlockContext::branch(uint32_t target_pc) {
  bool all_jump = true;
  for (uint32_t i = 0; i < count_; ++i) {
    all_jump = all_jump && active_[i] == masks_[i];
  }
  if (is_recording_) {
    record_.taken_mask = active_[0];
  }
  if (all_jump) {
    pc_ = target_pc;
    return Outcome::kControl;
  }
  for (uint32_t i = 0; i < count_; ++i) {
    const uint32_t w = first_ + i;
    if (masks_[i] == 0) {
      continue;
    }
    if (active_[i] == 0) {
      state_.warps[w].pc = pc_ + 1;
    } else {
      split(w, active_[i], target_pc);
    }
    settle(w);
  }
  pcs_written_ = true;
  return Outcome::kControl;
}

// ---------------------------------------------------------------- calls and exits

Outcome BlockContext::call(uint32_t target_pc) {
  for (uint32_t i = 0; i < count_; ++i) {
    if (active_[i] != 0 && state_.warps[first_ + i].call_depth >= image_.call_depth) {
      Fault fault = make_fault(FaultKind::kCallDepth,
                               fmt::format("a call nests deeper than {} levels, the limit of "
                                           "machine {}: end the recursion earlier",
                                           image_.call_depth,
                                           image_.profile->name));
      fault.warp = first_ + i;
      fault.lane = std::countr_zero(active_[i]);
      fault.lane_mask = active_[i];
      return raise(std::move(fault));
    }
  }
  for (uint32_t i = 0; i < count_; ++i) {
    const uint32_t w = first_ + i;
    WarpState& warp = state_.warps[w];
    if (masks_[i] == 0) {
      continue;
    }
    if (active_[i] == 0) {
      warp.pc = pc_ + 1;
      settle(w);
      continue;
    }
    push_part(w, pc_ + 1, warp.join_pc, masks_[i], warp.is_call_base);
    warp.pc = target_pc;
    warp.join_pc = isa::kNoReconvergence;
    warp.is_call_base = true;
    ++warp.call_depth;
    state_.masks[w] = active_[i];
  }
  pcs_written_ = true;
  return Outcome::kControl;
}

Outcome BlockContext::ret() {
  for (uint32_t i = 0; i < count_; ++i) {
    const uint32_t w = first_ + i;
    WarpState& warp = state_.warps[w];
    if (active_[i] != 0 && warp.call_depth == 0) {
      return fault("ret outside a call: a kernel ends with exit");
    }
  }
  for (uint32_t i = 0; i < count_; ++i) {
    const uint32_t w = first_ + i;
    WarpState& warp = state_.warps[w];
    if (masks_[i] == 0) {
      continue;
    }
    const uint32_t leaving = active_[i];
    warp.pc = pc_ + 1; // of lanes that stay
    state_.masks[w] &= ~leaving;
    if (leaving != 0 && !warp.is_call_base) {
      for (size_t s = warp.stack.size(); s-- > 0;) {
        warp.stack[s].mask &= ~leaving;
        if (warp.stack[s].is_call_base) {
          break;
        }
      }
    }
    settle(w);
  }
  pcs_written_ = true;
  return Outcome::kControl;
}

bool BlockContext::end_together() {
  if (observers().wants(kWantsExit)) {
    return false;
  }
  if (active_ != masks_ && !std::equal(active_, active_ + count_, masks_)) {
    return false;
  }
  if (forgets_ended_ && are_warps_fresh_ && !has_parts_ && span_warps_ == run_.live_warps_) {
    has_ended_fresh_ = true;
    run_.live_warps_ = 0;
    pcs_written_ = true;
    return true;
  }
  WarpState* const warps = state_.warps.data() + first_;
  uint32_t* const exited = state_.exited.data() + first_;
  if (!has_parts_) { // no join and no call either
    for (uint32_t i = 0; i < count_; ++i) {
      exited[i] |= masks_[i];
    }
    for (uint32_t i = 0; i < count_; ++i) {
      warps[i].status = WarpStatus::kDone;
    }
  } else {
    for (uint32_t i = 0; i < count_; ++i) {
      if (!warps[i].stack.empty()) {
        return false;
      }
    }
    for (uint32_t i = 0; i < count_; ++i) {
      if (masks_[i] != 0) {
        exited[i] |= masks_[i];
        mark_done(warps[i]);
      }
    }
  }
  std::fill_n(masks_, count_, 0u);
  run_.live_warps_ -= span_warps_;
  if (run_.live_warps_ != 0) {
    release_barrier_if_full();
  }
  pcs_written_ = true;
  return true;
}

Outcome BlockContext::exit_lanes() {
  if (is_recording_) {
    record_.exited_mask = active_[0];
  } else if (end_together()) {
    return Outcome::kControl;
  }
  for (uint32_t i = 0; i < count_; ++i) {
    const uint32_t w = first_ + i;
    WarpState& warp = state_.warps[w];
    if (masks_[i] == 0) {
      continue;
    }
    const uint32_t leaving = active_[i];
    if (leaving == masks_[i] && warp.stack.empty()) { // the common end
      state_.exited[w] |= leaving;
      state_.masks[w] = 0;
      finish_warp(w);
    } else {
      warp.pc = pc_ + 1; // of lanes that stay
      state_.exited[w] |= leaving;
      state_.masks[w] &= ~leaving;
      for (StackEntry& part : warp.stack) {
        part.mask &= ~leaving;
      }
      settle(w);
    }
    if (leaving != 0 && observers().wants(kWantsExit)) {
      observers().notify(kWantsExit,
                         [&](Observer& observer) { observer.exit_lanes(site(w), leaving); });
    }
  }
  pcs_written_ = true;
  return Outcome::kControl;
}

// ---------------------------------------------------------------- barriers

Outcome BlockContext::barrier_warp() {
  return Outcome::kNext; // the active lanes are in step already
}

Outcome BlockContext::barrier_block(unsigned id) {
  bool all_arrive = true;
  for (uint32_t i = 0; i < count_; ++i) {
    const uint32_t w = first_ + i;
    WarpState& warp = state_.warps[w];
    if (active_[i] == 0) {
      all_arrive = all_arrive && masks_[i] == 0;
      continue;
    }
    warp.pc = pc_;
    warp.status = WarpStatus::kAtBlockBarrier;
    warp.barrier_id = static_cast<uint8_t>(id);
    warp.arrived_mask = active_[i];
    if (observers().wants(kWantsBarrier)) {
      observers().notify(kWantsBarrier, [&](Observer& observer) {
        observer.barrier_arrive(site(w), id, active_[i]);
      });
    }
  }
  if (is_recording_) {
    record_.barrier_id = static_cast<int>(id);
  }
  if (!all_arrive) { // warps whose guard holds nowhere pass over it
    for (uint32_t i = 0; i < count_; ++i) {
      if (masks_[i] != 0 && active_[i] == 0) {
        state_.warps[first_ + i].pc = pc_ + 1;
        settle(first_ + i);
      }
    }
    pcs_written_ = true;
    return Outcome::kControl;
  }
  const uint64_t passed = state_.barriers_passed;
  release_barrier_if_full();
  if (state_.barriers_passed == passed) {
    return Outcome::kBlocked;
  }
  pcs_written_ = true; // the release moved every warp
  return Outcome::kControl;
}

bool BlockContext::is_barrier_full(uint32_t& id) const {
  bool found = false;
  for (uint32_t w = 0; w < run_.warp_count(); ++w) {
    const WarpState& warp = state_.warps[w];
    if (warp.status == WarpStatus::kDone) {
      continue;
    }
    if (warp.status != WarpStatus::kAtBlockBarrier || warp.arrived_mask != run_.live_mask(w) ||
        (found && warp.barrier_id != id)) {
      return false;
    }
    id = warp.barrier_id;
    found = true;
  }
  return found;
}

void BlockContext::release_barrier_if_full() {
  uint32_t id = 0;
  if (!is_barrier_full(id)) {
    return;
  }
  ++state_.barriers_passed;
  if (is_recording_) {
    record_.releases_barrier = true;
  }
  for (uint32_t w = 0; w < run_.warp_count(); ++w) {
    WarpState& warp = state_.warps[w];
    if (warp.status == WarpStatus::kAtBlockBarrier) {
      warp.status = WarpStatus::kReady;
      warp.arrived_mask = 0;
      ++warp.pc;
      settle(w);
    }
  }
  if (observers().wants(kWantsBarrier)) {
    observers().notify(kWantsBarrier,
                       [&](Observer& observer) { observer.barrier_release(run_, id); });
  }
}

// ---------------------------------------------------------------- waits

bool BlockContext::has_pending(int event) const {
  return std::any_of(state_.pending.begin(), state_.pending.end(), [&](const CopyRecord& copy) {
    return event < 0 || copy.event == event;
  });
}

Outcome BlockContext::wait(int event) {
  if (is_recording_) {
    record_.wait_event = event;
  }
  const auto tell = [&](auto member) {
    observers().notify(kWantsWait, [&](Observer& observer) {
      for (uint32_t i = 0; i < count_; ++i) {
        if (active_[i] != 0) {
          (observer.*member)(site(first_ + i), event);
        }
      }
    });
  };
  tell(&Observer::wait_begin);
  if (has_pending(event) && run_.launch_.copy_policy() == CopyPolicy::kByDriver) {
    bool all_wait = true;
    for (uint32_t i = 0; i < count_; ++i) {
      WarpState& warp = state_.warps[first_ + i];
      if (active_[i] != 0) {
        warp.pc = pc_;
        warp.status = event < 0 ? WarpStatus::kWaitingAll : WarpStatus::kWaitingEvent;
        warp.wait_event = static_cast<int8_t>(event);
      } else if (masks_[i] != 0) {
        all_wait = false;
        warp.pc = pc_ + 1;
        settle(first_ + i);
      }
    }
    if (all_wait) {
      return Outcome::kBlocked;
    }
    pcs_written_ = true;
    return Outcome::kControl;
  }
  for (size_t i = 0; i < state_.pending.size();) {
    if (event < 0 || state_.pending[i].event == event) {
      complete_copy(i, false);
    } else {
      ++i;
    }
  }
  tell(&Observer::wait_end);
  return gate_stopped_ ? Outcome::kFault : Outcome::kNext;
}

void BlockContext::wake_waiters() {
  for (uint32_t w = 0; w < run_.warp_count(); ++w) {
    WarpState& warp = state_.warps[w];
    const bool waits =
        warp.status == WarpStatus::kWaitingAll || warp.status == WarpStatus::kWaitingEvent;
    const int event = warp.wait_event;
    if (!waits || has_pending(event)) {
      continue;
    }
    const EventSite where{run_, w, warp.pc};
    warp.status = WarpStatus::kReady;
    warp.wait_event = -1;
    ++warp.pc;
    settle(w);
    observers().notify(kWantsWait, [&](Observer& observer) { observer.wait_end(where, event); });
  }
}

Outcome BlockContext::wait_event(unsigned event) {
  return wait(static_cast<int>(event));
}

Outcome BlockContext::wait_all() {
  return wait(-1);
}

Outcome BlockContext::nop(uint32_t cycles) {
  if (is_recording_) {
    record_.nop_cycles = cycles;
  }
  group_.nop_cycles = cycles;
  return Outcome::kNext;
}

Outcome BlockContext::fence(isa::FenceScope /*scope*/) {
  return Outcome::kNext; // accesses are in order here; checks and time look at the insn
}

} // namespace pto::sim
