// SPDX-License-Identifier: Apache-2.0
// Warps in step: while all warps of a core's only block have the same state and each has a
// scheduler and a pipe of its own, they issue the same insn in the same cycle, and the first stands
// for all.
//
// This is a shorter way to the same numbers. A block starts in step where nothing sets its warps
// apart. An insn is executed for all of them at once and booked for each in the order of the
// schedulers, which is that of the warps; what is equal for all (the wait before it, its result) is
// worked out once. They part as soon as anything differs: where they go on, when a result is there,
// a unit that has not a pipe for each, an insn that is not of lanes alone; and whenever the run
// stops, so that nobody else knows. They fall into step again when all have issued in one cycle and
// nothing differs that may still be felt.
#include "simulator/timing/core_model.h"

#include <algorithm>

namespace pto::sim {

namespace {

bool is_same(const ScoreEntry& a, const ScoreEntry& b) {
  return a.done_cycle == b.done_cycle && a.late_cycles == b.late_cycles &&
         a.bandwidth_cycles == b.bandwidth_cycles && a.reason == b.reason;
}

/// The same for whoever asks at `cycle` or later.
bool is_felt_alike(const ScoreEntry& a, const ScoreEntry& b, uint64_t cycle) {
  return (a.done_cycle <= cycle && b.done_cycle <= cycle) ||
         (is_same(a, b) && a.writer_pc == b.writer_pc);
}

bool is_alike(const TimedWarp& a, const TimedWarp& b, const std::vector<ScoreIndex>& written) {
  if (b.is_done || b.is_blocked || a.pc != b.pc || a.cursor != b.cursor || a.ready != b.ready ||
      a.sight != b.sight) {
    return false;
  }
  const auto are_over_alike = [&](uint64_t of_a, uint64_t of_b) {
    return std::max(of_a, a.cursor) == std::max(of_b, a.cursor);
  };
  if (!are_over_alike(a.branch_ready, b.branch_ready) ||
      !are_over_alike(a.holds.fetch, b.holds.fetch) ||
      !are_over_alike(a.hold_until, b.hold_until) ||
      (a.hold_until > a.cursor && a.hold_reason != b.hold_reason) ||
      !is_felt_alike(a.stores, b.stores, a.cursor)) {
    return false;
  }
  return std::all_of(written.begin(), written.end(), [&](ScoreIndex index) {
    return is_felt_alike(a.score[index], b.score[index], a.cursor);
  });
}

/// One warp's part of an access. `lanes` is filled where the addresses matter one by one.
WarpAddresses
access_of(const GroupRecord& record, uint32_t warp, std::array<uint64_t, isa::kWarpLanes>& lanes) {
  const uint32_t mask = record.exec_masks[warp];
  if (!record.is_linear) {
    return {mask, record.addresses + size_t{warp} * isa::kWarpLanes, record.access_bytes};
  }
  const uint64_t first = record.base + warp * record.warp_step;
  const bool is_run = mask == ~0u && record.lane_step == record.access_bytes;
  for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
    lanes[lane] = first + lane * record.lane_step;
  }
  return {mask, lanes.data(), record.access_bytes, is_run, record.lane_step == 0};
}

} // namespace

bool CoreModel::can_go_together(const TimedBlock& block) const {
  const size_t warps = block.warps.size();
  return !run_.is_gated && blocks_.size() == 1 && together_ == nullptr && warps > 1 &&
         warps <= GroupRecord::kMaxWarps && next_scheduler_ + warps <= schedulers_.size() &&
         issue_width_ == 1 && !shares_memory_pipe_ && run_.machine.launch.warp_start_cycles == 0;
}

void CoreModel::join(TimedBlock& block) {
  together_ = &block;
  together_cycle_ = kNever;
  together_from_ = block.warps[0].counters;
}

void CoreModel::join_if_alike(uint64_t cycle) {
  TimedBlock& block = *blocks_[0];
  const TimedWarp& first = block.warps[0];
  bool are_alike = !first.is_done && !first.is_blocked && block.pending_atomics == 0 &&
                   run_.program[first.pc].is_of_lanes;
  for (size_t w = 1; are_alike && w < block.warps.size(); ++w) {
    are_alike = is_alike(first, block.warps[w], run_.program.written());
  }
  if (!are_alike) {
    constexpr uint64_t kLongestPause = 64;
    next_join_cycle_ = cycle + join_pause_cycles_;
    join_pause_cycles_ = std::min(join_pause_cycles_ * 2, kLongestPause);
    return;
  }
  join_pause_cycles_ = 1;
  join(block);
  together_cycle_ = cycle;
  for (size_t w = 1; w < block.warps.size(); ++w) {
    const TimedWarp& warp = block.warps[w];
    schedulers_[warp.scheduler].ready[warp.slot] = kNever;
  }
}

void CoreModel::part(bool go_on) {
  TimedBlock& block = *together_;
  together_ = nullptr;
  const TimedWarp& first = block.warps[0];
  for (size_t w = 1; w < block.warps.size(); ++w) {
    TimedWarp& warp = block.warps[w];
    const WarpProgress own = warp;
    static_cast<WarpProgress&>(warp) = first;
    warp.warp = own.warp;
    warp.scheduler = own.scheduler;
    warp.slot = own.slot;
    warp.counters = own.counters;
    warp.counters.issued_cycles += first.counters.issued_cycles - together_from_.issued_cycles;
    for (unsigned reason = 0; reason < kStallReasonCount; ++reason) {
      warp.counters.stalls.cycles[reason] +=
          first.counters.stalls.cycles[reason] - together_from_.stalls.cycles[reason];
    }
    if (go_on) {
      for (const ScoreIndex index : run_.program.written()) {
        warp.score[index] = first.score[index];
      }
    }
    schedulers_[warp.scheduler].ready[warp.slot] = warp.ready;
    schedulers_[warp.scheduler].unit[warp.slot] = static_cast<uint8_t>(warp.unit + 1);
  }
  if (together_cycle_ != kNever) { // the schedulers have issued
    for (const TimedWarp& warp : block.warps) {
      Scheduler& scheduler = schedulers_[warp.scheduler];
      scheduler.after = 1;
      scheduler.issued = together_cycle_ == ticked_cycle_ ? 1 : scheduler.issued;
    }
  }
  run_.host.stand_apart(block.place);
}

void CoreModel::book_together(const GroupRecord& record,
                              const InsnTiming& timing,
                              uint64_t cycle,
                              std::array<ResultTime, GroupRecord::kMaxWarps>& results) {
  const auto now = static_cast<double>(cycle);
  const PipeTime time{timing.latency_cycles, timing.interval_cycles};
  const double done = now + time.latency;
  const ResultTime plain{done, done, done};
  std::array<uint64_t, isa::kWarpLanes> lanes;
  for (uint32_t w = 0; w < record.warps; ++w) {
    results[w] = plain;
    if (!record.has_access || record.exec_masks[w] == 0 || record.space == isa::Space::kConst) {
      memory_.occupy(now, time.interval);
      continue;
    }
    const WarpAddresses access = access_of(record, w, lanes);
    if (record.space == isa::Space::kL1) {
      results[w] = (timing.flags & isa::kAtomic) != 0 ? memory_.atomic_l1(now, access, time)
                                                      : memory_.access_l1(now, access, time);
    } else if ((timing.flags & isa::kWritesMem) != 0) {
      results[w] = memory_.store_hbm(now, access, record.hint, time);
    } else {
      results[w] = memory_.load_hbm(now, access, record.hint, time);
    }
  }
}

void CoreModel::describe_together(const GroupRecord& record,
                                  const InsnTiming& timing,
                                  uint64_t cycle,
                                  const std::array<ScoreEntry, GroupRecord::kMaxWarps>& scores,
                                  const TimelineEntry& first) {
  for (uint32_t w = 0; w < record.warps; ++w) {
    TimelineEntry entry = first;
    TimedWarp& warp = together_->warps[w];
    warp.pc = record.pc;
    describe(warp, record.active_masks[w], record.exec_masks[w], timing, cycle, entry);
    entry.done_cycle = scores[w].done_cycle;
    run_.timeline.add(entry);
  }
}

bool CoreModel::tick_together(uint64_t cycle) {
  TimedBlock& block = *together_;
  TimedWarp& first = block.warps[0];
  const InsnTiming& timing = run_.program[first.pc];
  const auto warps = static_cast<uint32_t>(block.warps.size());
  const auto now = static_cast<double>(cycle);
  Servers& pipes = pipes_[timing.unit + 1];
  const Servers& unit = timing.is_memory_pipe ? memory_.pipes() : pipes;
  if (first.ready > cycle || unit.count_free(now) < warps) {
    return false;
  }
  const GroupRecord* stepped = run_.host.step_together(block.place, cycle);
  if (stepped == nullptr) { // and it will not for a while
    constexpr uint64_t kPause = 512;
    next_join_cycle_ = cycle + kPause;
    return false;
  }
  const GroupRecord& record = *stepped;
  together_cycle_ = cycle;
  std::optional<TimelineEntry> entry;
  if (run_.options.record_timeline) {
    entry.emplace();
  }
  charge(first, cycle, false, entry ? &*entry : nullptr, warps);
  count_issues(record.pc, warps, record.lanes, cycle);
  run_.has_fault = false;

  std::array<ScoreEntry, GroupRecord::kMaxWarps> scores;
  bool are_equal = true;
  if (timing.is_memory_pipe) {
    std::array<ResultTime, GroupRecord::kMaxWarps> results;
    book_together(record, timing, cycle, results);
    for (uint32_t w = 0; w < warps; ++w) {
      scores[w] = ScoreEntry::from(results[w], record.pc);
      are_equal = are_equal && is_same(scores[w], scores[0]);
      block.end_cycle = std::max(block.end_cycle, scores[w].done_cycle);
    }
  } else {
    pipes.reserve_many(warps, now, timing.interval_cycles);
    const double done = now + timing.latency_cycles;
    const ScoreEntry score = ScoreEntry::from({done, done, done}, record.pc);
    block.end_cycle = std::max(block.end_cycle, score.done_cycle);
    std::fill_n(scores.begin(), warps, score);
  }
  if (entry) {
    describe_together(record, timing, cycle, scores, *entry);
  }
  book_control(first, record.nop_cycles, timing, cycle);
  first.blocked_reason =
      (timing.flags & isa::kBlockBarrier) != 0 ? StallReason::kBlockBarrier : StallReason::kBarrier;
  // In front of an insn of the block the warps differ: most pass over it.
  if (are_equal && record.are_together && run_.program[record.next_pc].is_of_lanes) {
    settle(first, timing, scores[0], cycle);
    prepare(first, {record.next_pc, false, false});
  } else {
    part(!record.have_ended);
    for (uint32_t w = 0; w < warps; ++w) {
      settle(block.warps[w], timing, scores[w], cycle);
      prepare(block.warps[w]);
    }
    maybe_end_block(block);
  }
  find_next_cycle(cycle + 1);
  return true;
}

} // namespace pto::sim
