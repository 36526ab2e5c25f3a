// SPDX-License-Identifier: Apache-2.0
// An issue: the cycles that the warp waited for it are charged, in the order in which core_model.cc
// checks for reasons; the insn is executed, or a fused pair; the warp and those that it releases
// prepare for their next. What an insn takes up is in core_booking.cc.
#include "simulator/timing/core_model.h"

#include <algorithm>

namespace pto::sim {

void CoreModel::charge(
    TimedWarp& warp, uint64_t cycle, bool is_free, TimelineEntry* entry, uint32_t warps) {
  const uint64_t begin = warp.cursor;
  if (!is_free) {
    ++warp.counters.issued_cycles;
  }
  warp.cursor = is_free ? cycle : cycle + 1;
  if (entry != nullptr) {
    entry->stall_cycles = static_cast<uint32_t>(cycle - begin);
  }
  if (begin >= cycle) {
    return;
  }
  StallCycles& of_warp = warp.counters.stalls;
  StallCycles& of_pc = run_.by_pc[warp.pc].stalls;
  StallCycles parts; // of this wait, for the timeline
  uint32_t operand_reasons = 0;
  uint64_t cursor = begin;
  const auto until = [&](uint64_t end, StallReason reason, bool is_operand = false) {
    end = std::min(end, cycle);
    if (end <= cursor) {
      return;
    }
    of_warp[reason] += end - cursor;
    of_pc[reason] += (end - cursor) * warps;
    if (entry != nullptr) {
      parts[reason] += end - cursor;
      operand_reasons |= is_operand ? 1u << static_cast<unsigned>(reason) : 0;
    }
    cursor = end;
  };
  const Holds& holds = warp.holds;
  until(holds.branch, StallReason::kBranch);
  until(holds.hold, holds.hold_reason);
  until(holds.fetch, StallReason::kFetch);
  const ScoreEntry& operand = holds.operand;
  if (operand.done_cycle > cursor) {
    until(operand.done_cycle - operand.late_cycles, StallReason::kOperand, true);
    until(operand.done_cycle - operand.bandwidth_cycles, operand.reason, true);
    until(operand.done_cycle, StallReason::kBandwidth, true);
  }
  if (cursor < cycle) {
    const UnitWait unit = unit_wait(warp);
    until(unit.until, unit.reason);
    until(cycle, StallReason::kIssueSlot);
  }
  if (entry == nullptr) {
    return;
  }
  unsigned most = 0;
  for (unsigned reason = 1; reason < kStallReasonCount; ++reason) {
    most = parts.cycles[reason] > parts.cycles[most] ? reason : most;
  }
  entry->reason = static_cast<StallReason>(most);
  // Who wrote the operand explains the wait only where the operand was most of it.
  if ((operand_reasons >> most & 1) != 0) {
    entry->cause_pc = operand.writer_pc;
  }
}

void CoreModel::release_blocked(TimedBlock& block, uint64_t issue_cycle, const InsnTiming& by) {
  if (block.blocked_warps == 0) {
    return;
  }
  const bool is_barrier = (by.flags & isa::kBlockBarrier) != 0;
  const double released = is_barrier ? std::max(1.0, by.latency_cycles) : 1.0;
  const uint64_t cycle = issue_cycle + whole_cycle(released);
  for (TimedWarp& other : block.warps) {
    if (!other.is_blocked || other.is_done) {
      continue;
    }
    const TimedHost::Next next = run_.host.next(block.place, other.warp);
    if (next.is_blocked) {
      continue;
    }
    // The barrier that it waited at is over as if its own arrival had been the last.
    other.hold_until = cycle + run_.machine.sync.block_barrier_cycles;
    other.hold_reason = other.blocked_reason;
    prepare(other);
  }
}

inline ScoreEntry
CoreModel::book_pipe(const TimedWarp& warp, const InsnTiming& timing, uint64_t cycle) {
  Servers& pipe = pipes_[timing.unit + 1];
  const double start = pipe.reserve(static_cast<double>(cycle), timing.interval_cycles);
  ScoreEntry score;
  score.done_cycle = whole_cycle(start + timing.latency_cycles);
  score.writer_pc = warp.pc;
  return score;
}

bool CoreModel::issue_plain(TimedWarp& warp, const InsnTiming& timing, uint64_t cycle) {
  TimedBlock& block = *warp.block;
  uint32_t lanes = 0;
  TimedHost::Next next;
  if (!run_.host.step_plain(block.place, warp.warp, cycle, lanes, next)) {
    return false;
  }
  run_.has_fault = false;
  charge_issue(warp, cycle);
  count_issues(warp.pc, 1, lanes, cycle);
  const ScoreEntry score = book_pipe(warp, timing, cycle);
  block.end_cycle = std::max(block.end_cycle, score.done_cycle);
  for (const ScoreIndex index : timing.writes) {
    warp.score[index] = score;
  }
  warp.blocked_reason = StallReason::kBarrier;
  prepare(warp, next);
  maybe_end_block(block);
  return true;
}

void CoreModel::issue_of_lanes(TimedWarp& warp, const InsnTiming& timing, uint64_t cycle) {
  TimedBlock& block = *warp.block;
  charge_issue(warp, cycle);
  const IssueRecord& record = run_.host.step(block.place, warp.warp, cycle);
  run_.has_fault = record.outcome == isa::Outcome::kFault;
  count_issues(warp.pc, 1, lane_count(record.exec_mask), cycle);
  ScoreEntry score;
  if (timing.is_memory_pipe) {
    bool is_pending = false; // and stays so: an atomic on hbm is not of lanes alone
    const ResultTime result = book_memory(warp, record, timing, cycle, nullptr, is_pending);
    score = ScoreEntry::from(result, warp.pc);
  } else {
    score = book_pipe(warp, timing, cycle);
  }
  block.end_cycle = std::max(block.end_cycle, score.done_cycle);
  settle(warp, timing, score, cycle);
  book_control(warp, record.nop_cycles, timing, cycle);
  if (record.outcome != isa::Outcome::kNext || (timing.flags & kReleases) != 0) {
    release_blocked(block, cycle, timing);
  }
  const bool is_barrier = (timing.flags & isa::kBlockBarrier) != 0;
  warp.blocked_reason = is_barrier ? StallReason::kBlockBarrier : StallReason::kBarrier;
  const bool goes_on =
      record.outcome == isa::Outcome::kNext || record.outcome == isa::Outcome::kControl;
  if (goes_on && !is_barrier && record.next_mask != 0) {
    prepare(warp, {record.next_pc, false, false}); // as the host would say
  } else {
    prepare(warp);
  }
  maybe_end_block(block);
}

void CoreModel::issue_any(TimedWarp& warp, const InsnTiming& timing, uint64_t cycle) {
  TimedBlock& block = *warp.block;
  std::optional<TimelineEntry> recorded;
  TimelineEntry* entry = run_.options.record_timeline ? &recorded.emplace() : nullptr;
  charge(warp, cycle, timing.is_free, entry);
  const isa::FusionRule* rule = timing.fused_with_next;
  const uint32_t pc = warp.pc;
  const ResultTime first = execute(warp, cycle, entry, 0);
  warp.blocked_reason =
      (timing.flags & isa::kBlockBarrier) != 0 ? StallReason::kBlockBarrier : StallReason::kBarrier;
  if (rule != nullptr && !run_.has_fault) { // a stop waits for the second half
    const TimedHost::Next next = run_.host.next(block.place, warp.warp);
    if (!next.is_done && !next.is_blocked && next.pc == pc + 1) {
      // The pair is one operation: the second half issues with the first.
      const double late = first.done_cycle - first.base_cycle;
      warp.pc = next.pc;
      if (entry != nullptr) {
        *entry = {};
        entry->is_fused = true;
      }
      (void)execute(warp, cycle, entry, timing.fused_latency_cycles + late);
      if (!rule->keeps_first) {
        for (const ScoreIndex index : timing.writes) {
          warp.score[index].done_cycle = cycle + whole_cycle(timing.fused_latency_cycles + late);
        }
      }
    }
  }
  prepare(warp);
  maybe_end_block(block);
}

void CoreModel::finish_atomic(const RunState::PendingAtomic& atomic, double cycle) {
  TimedWarp& warp = *atomic.warp;
  TimedBlock& block = *warp.block;
  const uint64_t done = std::max(whole_cycle(cycle), atomic.base_cycle);
  --block.pending_atomics;
  block.end_cycle = std::max(block.end_cycle, done);
  run_.timeline.extend_done(atomic.timeline_index, done);
  if (atomic.writes_result) {
    for (const ScoreIndex index : run_.program[atomic.pc].writes) {
      ScoreEntry& entry = warp.score[index];
      if (entry.done_cycle == kNever && entry.writer_pc == atomic.pc) {
        entry.done_cycle = done;
        entry.late_cycles = static_cast<uint32_t>(done - atomic.base_cycle);
        entry.reason = StallReason::kAtomic;
      }
    }
  }
  if (!warp.is_done && !warp.is_blocked) {
    prepare(warp);
    next_cycle_ = std::min(next_cycle_, warp.ready);
  }
  maybe_end_block(block);
}

} // namespace pto::sim
