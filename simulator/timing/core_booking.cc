// SPDX-License-Identifier: Apache-2.0
// What an insn that issues takes up: memory, units, bytes of l1; and when its results are there.
#include "simulator/timing/core_model.h"

#include <algorithm>
#include <bit>

namespace pto::sim {

ResultTime CoreModel::book_memory(TimedWarp& warp,
                                  const IssueRecord& record,
                                  const InsnTiming& timing,
                                  uint64_t cycle,
                                  const TimelineEntry* entry,
                                  bool& is_pending) {
  const auto has = [&](isa::Flags flag) { return (timing.flags & flag) != 0; };
  const auto now = static_cast<double>(cycle);
  const PipeTime time{timing.latency_cycles, timing.interval_cycles};
  const ResultTime plain{now + time.latency, now + time.latency, now + time.latency};
  if (record.addresses == nullptr || record.exec_mask == 0) {
    memory_.occupy(now, time.interval);
    if (has(isa::kCacheControl) && record.addresses == nullptr && record.exec_mask != 0) {
      memory_.invalidate_all();
    }
    return plain;
  }
  const bool is_run =
      record.is_strided && record.exec_mask == ~0u && record.stride == int64_t{record.access_bytes};
  const WarpAddresses access{record.exec_mask,
                             record.addresses,
                             record.access_bytes,
                             is_run,
                             record.is_strided && record.stride == 0};
  if (has(isa::kCacheControl)) {
    if (has(isa::kReadsMem)) { // PREFETCH
      (void)memory_.load_hbm(now, access, isa::CacheHint::kCached, time);
    } else {
      memory_.occupy(now, time.interval);
      memory_.invalidate(access);
    }
    return plain;
  }
  if (record.space == isa::Space::kConst) {
    memory_.occupy(now, time.interval);
    return plain;
  }
  if (record.space == isa::Space::kL1) {
    return has(isa::kAtomic) ? memory_.atomic_l1(now, access, time)
                             : memory_.access_l1(now, access, time);
  }
  if (!has(isa::kAtomic)) {
    return has(isa::kWritesMem) ? memory_.store_hbm(now, access, record.hint, time)
                                : memory_.load_hbm(now, access, record.hint, time);
  }
  const double start = memory_.issue_atomic(now, access, time);
  const AtomicGroups groups = atomic_groups(access, run_.machine.l1.sector_bytes);
  if (!record.is_result_read && record.access_bytes <= 4) {
    memory_.hold_pipe(run_.shared.start_reduction(start, groups, core_));
    return plain;
  }
  is_pending = true;
  const uint64_t token = run_.next_token++;
  RunState::PendingAtomic pending;
  pending.warp = &warp;
  pending.pc = record.pc;
  pending.base_cycle = cycle + whole_cycle(time.latency);
  pending.timeline_index = entry != nullptr ? run_.timeline.add(*entry) : SIZE_MAX;
  pending.writes_result = record.is_result_read;
  run_.atomics[token] = pending;
  ++warp.block->pending_atomics;
  const auto first = static_cast<unsigned>(std::countr_zero(record.exec_mask));
  run_.shared.start_atomic(memory_.translate(start, record.addresses[first]), groups, token);
  return plain;
}

ResultTime CoreModel::book_unit(TimedBlock& block,
                                const IssueRecord& record,
                                const InsnTiming& timing,
                                double latency,
                                uint64_t cycle,
                                TimelineEntry* entry) {
  const auto now = static_cast<double>(cycle);
  double interval = timing.interval_cycles;
  Servers& pipe = pipes_[timing.unit + 1];
  if (record.copy != nullptr) {
    const CopyRecord& copy = *record.copy;
    pipe.reserve(now, 1);
    const double handed_over = now + latency;
    L1Ledger::Use use{
        L1Range::strided(
            copy.l1_offset, copy.shape.row_bytes, copy.shape.rows, copy.shape.l1_stride),
        0,
        record.pc,
        copy.direction == isa::CopyDirection::kHbmToL1,
        true};
    const L1Ledger::Hold hold = block.l1.hold(use, handed_over);
    const ResultTime result = memory_.copy(handed_over,
                                           std::max(handed_over, hold.cycle),
                                           copy.direction,
                                           copy.hbm_address,
                                           copy.shape,
                                           {latency, interval});
    use.done_cycle = result.done_cycle;
    block.l1.add(use, now);
    if (entry != nullptr) {
      entry->start_cycle = whole_cycle(result.start_cycle);
      entry->held_by_pc = hold.pc;
    }
    const ScoreEntry done = ScoreEntry::from(result, record.pc);
    if (copy.event >= 0) {
      ScoreEntry& event = block.events[static_cast<unsigned>(copy.event) % isa::kEventCount];
      event = done.done_cycle > event.done_cycle ? done : event;
    }
    block.copies = done.done_cycle > block.copies.done_cycle ? done : block.copies;
    return result;
  }
  if (record.m != 0 && timing.entry != nullptr) {
    const double steps =
        static_cast<double>(timing.entry->tile_steps(record.m, record.n, record.k)) *
        timing.entry->step_cycles;
    latency += steps;
    interval += steps;
  }
  L1Ledger::Hold hold;
  for (unsigned i = 0; i < record.l1_count; ++i) {
    const L1Record& l1 = record.l1[i];
    const L1Ledger::Hold other =
        block.l1.hold({{l1.offset, l1.size_bytes}, 0, record.pc, l1.writes, false}, now);
    hold = other.cycle > hold.cycle ? other : hold;
  }
  const double start = pipe.reserve(std::max(now, hold.cycle), interval);
  const double done = start + latency;
  for (unsigned i = 0; i < record.l1_count; ++i) {
    const L1Record& l1 = record.l1[i];
    if (l1.reads || l1.writes) {
      block.l1.add({{l1.offset, l1.size_bytes}, done, record.pc, l1.writes, false}, now);
    }
  }
  if (entry != nullptr) {
    entry->start_cycle = whole_cycle(start);
    entry->held_by_pc = hold.pc;
  }
  return {done, done, done, StallReason::kOperand};
}

void CoreModel::delay_in_l1(TimedBlock& block,
                            const IssueRecord& record,
                            uint64_t cycle,
                            ResultTime& result) const {
  if (!run_.program.shares_l1() || record.addresses == nullptr || record.exec_mask == 0 ||
      record.space != isa::Space::kL1) {
    return;
  }
  const auto first = static_cast<unsigned>(std::countr_zero(record.exec_mask));
  const auto last = 31 - static_cast<unsigned>(std::countl_zero(record.exec_mask));
  L1Range range = L1Range::strided(
      record.addresses[first], record.access_bytes, last - first + 1, record.stride);
  if (!record.is_strided) {
    uint64_t begin = UINT64_MAX;
    uint64_t end = 0;
    for (unsigned lane = first; lane <= last; ++lane) {
      if ((record.exec_mask >> lane & 1) != 0) {
        begin = std::min(begin, record.addresses[lane]);
        end = std::max(end, record.addresses[lane] + record.access_bytes);
      }
    }
    range = {begin, end - begin};
  }
  const auto now = static_cast<double>(cycle);
  L1Ledger::Use use{range, 0, record.pc, record.writes_memory, false};
  const L1Ledger::Hold hold = block.l1.hold(use, now);
  if (hold.cycle > now) {
    const double delay = hold.cycle - now;
    result.base_cycle += delay;
    result.unloaded_cycle += delay;
    result.done_cycle += delay;
  }
  use.done_cycle = result.done_cycle;
  block.l1.add(use, now);
}

void CoreModel::book_control(TimedWarp& warp,
                             uint32_t nop_cycles,
                             const InsnTiming& timing,
                             uint64_t cycle) const {
  constexpr isa::Flags kJumps = isa::kBranch | isa::kCall | isa::kReturn;
  if (nop_cycles == 0 && (timing.flags & (kJumps | isa::kWarpBarrier | isa::kBlockBarrier)) == 0) {
    return;
  }
  const uint64_t after = cycle + std::max<uint64_t>(1, whole_cycle(timing.latency_cycles));
  const auto hold = [&](uint64_t until, StallReason reason) {
    if (until > warp.cursor) {
      warp.hold_until = until;
      warp.hold_reason = reason;
    }
  };
  if ((timing.flags & kJumps) != 0) {
    warp.branch_ready = after;
  }
  if ((timing.flags & isa::kWarpBarrier) != 0) {
    hold(after + run_.machine.sync.barrier_cycles, StallReason::kBarrier);
  }
  if ((timing.flags & isa::kBlockBarrier) != 0) {
    hold(after + run_.machine.sync.block_barrier_cycles, StallReason::kBlockBarrier);
  }
  if (nop_cycles != 0) {
    hold(cycle + nop_cycles, StallReason::kNop);
  }
}

void CoreModel::describe(const TimedBlock& block,
                         uint32_t warp,
                         uint32_t pc,
                         uint32_t active_mask,
                         uint32_t exec_mask,
                         const InsnTiming& timing,
                         uint64_t cycle,
                         TimelineEntry& entry) const {
  const uint32_t lanes = exec_mask != 0 ? exec_mask : active_mask;
  entry.issue_cycle = cycle;
  entry.start_cycle = cycle;
  entry.block = block.span.block;
  entry.core = core_;
  entry.pc = pc;
  entry.first_warp = warp;
  entry.last_warp = warp;
  entry.unit = timing.unit;
  entry.active_lanes = lane_count(exec_mask);
  if (lanes != 0) {
    entry.first_lane = warp * isa::kWarpLanes + static_cast<uint32_t>(std::countr_zero(lanes));
    entry.last_lane = warp * isa::kWarpLanes + 31 - static_cast<uint32_t>(std::countl_zero(lanes));
    const bool has_all = entry.last_lane - entry.first_lane + 1 == entry.active_lanes;
    entry.lane_mask = has_all ? 0 : exec_mask;
  }
}

void CoreModel::settle(TimedWarp& warp,
                       const InsnTiming& timing,
                       ScoreEntry score,
                       uint64_t cycle) const {
  for (const ScoreIndex index : timing.writes) {
    warp.score[index] = score;
  }
  for (const uint32_t key : timing.tile_writes) {
    warp.block->tile(key) = score;
  }
  // An atomic under way (kNever) is waited for by its results.
  if (timing.is_memory_pipe && (timing.flags & isa::kWritesMem) != 0 &&
      score.done_cycle != kNever) {
    score.reason = StallReason::kFence;
    score.late_cycles = static_cast<uint32_t>(score.done_cycle - cycle);
    warp.stores = score.done_cycle > warp.stores.done_cycle ? score : warp.stores;
  }
}

ResultTime
CoreModel::execute(TimedWarp& warp, uint64_t cycle, TimelineEntry* entry, double fused_latency) {
  const uint32_t pc = warp.pc;
  const InsnTiming& timing = run_.program[pc];
  const IssueRecord& record = run_.host.step(warp.block->place, warp.warp, cycle);
  run_.has_fault = record.outcome == isa::Outcome::kFault;
  const auto now = static_cast<double>(cycle);
  const uint32_t active_lanes = lane_count(record.exec_mask);
  if (entry != nullptr) {
    describe(
        *warp.block, warp.warp, pc, record.active_mask, record.exec_mask, timing, cycle, *entry);
  }
  count_issues(pc, 1, active_lanes, cycle);
  if (record.m != 0 && !record.passed_over) {
    run_.by_pc[pc].matrix_macs += uint64_t{record.m} * record.n * record.k;
  }

  double latency = timing.latency_cycles;
  ResultTime result{now + latency, now + latency, now + latency, StallReason::kOperand};
  const bool passes_over = timing.is_block_scoped && warp.warp != 0;
  bool is_pending = false;
  if (passes_over) {
    result = {now + 1, now + 1, now + 1, StallReason::kOperand};
  } else if (timing.is_memory_pipe) {
    result = book_memory(warp, record, timing, cycle, entry, is_pending);
    delay_in_l1(*warp.block, record, cycle, result);
  } else if (!timing.is_free) {
    // As part of a pair it holds its tiles for as long as the pair takes.
    latency = fused_latency != 0 ? fused_latency : latency;
    if (timing.is_of_lanes) { // nothing but a pipe
      const double start = pipes_[timing.unit + 1].reserve(now, timing.interval_cycles);
      const double done = start + latency;
      result = {done, done, done, StallReason::kOperand};
      if (entry != nullptr) {
        entry->start_cycle = whole_cycle(start);
      }
    } else {
      result = book_unit(*warp.block, record, timing, latency, cycle, entry);
    }
  }
  if (fused_latency != 0) {
    // What the memory added to the first half comes on top of the pair's latency.
    const double fused = now + fused_latency;
    const double added = result.done_cycle - now - latency;
    result = {fused, fused, std::max(fused, fused + added), result.reason};
  }
  ScoreEntry score = ScoreEntry::from(result, pc);
  if (is_pending) {
    score.done_cycle = kNever;
    score.late_cycles = 0;
  } else {
    warp.block->end_cycle = std::max(warp.block->end_cycle, score.done_cycle);
  }
  if (!passes_over) {
    settle(warp, timing, score, cycle);
  }
  book_control(warp, record.nop_cycles, timing, cycle);
  if (entry != nullptr && !is_pending) {
    entry->done_cycle = score.done_cycle;
    run_.timeline.add(*entry);
  }
  if ((timing.flags & kReleases) != 0 || record.outcome != isa::Outcome::kNext) {
    release_blocked(*warp.block, cycle, timing);
  }
  return result;
}

} // namespace pto::sim
