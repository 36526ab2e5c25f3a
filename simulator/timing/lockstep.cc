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

bool is_same(const ResultTime& a, const ResultTime& b) {
  return a.done_cycle == b.done_cycle && a.unloaded_cycle == b.unloaded_cycle &&
         a.base_cycle == b.base_cycle && a.reason == b.reason;
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

/// One warp's part of an access. `lanes` is filled as far as anybody looks at it: of a run in hbm
/// the first.
WarpAddresses
access_of(const GroupRecord& record, uint32_t warp, std::array<uint64_t, isa::kWarpLanes>& lanes) {
  const uint32_t mask = record.exec_masks[warp];
  if (!record.is_linear) {
    return {mask, record.addresses + size_t{warp} * isa::kWarpLanes, record.access_bytes};
  }
  const uint64_t first = record.base + warp * record.warp_step;
  const bool is_run = mask == ~0u && record.lane_step == record.access_bytes;
  const unsigned used = is_run && record.space == isa::Space::kHbm ? 1 : isa::kWarpLanes;
  for (unsigned lane = 0; lane < used; ++lane) {
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

void CoreModel::start_others(TimedBlock& block) {
  block.is_as_first = false;
  const TimedWarp& first = block.warps[0];
  for (uint32_t w = 0; w < block.warps.size(); ++w) {
    if (w != 0) {
      block.start_warp(w, run_.program);
      block.warps[w].scheduler = first.scheduler + w;
    }
    schedulers_[block.warps[w].scheduler].add(block.warps[w]);
  }
}

void CoreModel::add_counts_together(WarpCounters& counters) const {
  const WarpCounters& first = together_->warps[0].counters;
  counters.issued_cycles += first.issued_cycles - together_from_.issued_cycles;
  for (unsigned reason = 0; reason < kStallReasonCount; ++reason) {
    counters.stalls.cycles[reason] +=
        first.stalls.cycles[reason] - together_from_.stalls.cycles[reason];
  }
}

void CoreModel::part() {
  TimedBlock& block = *together_;
  if (block.is_as_first) {
    start_others(block);
  }
  const TimedWarp& first = block.warps[0];
  for (size_t w = 0; w < block.warps.size(); ++w) {
    TimedWarp& warp = block.warps[w];
    if (w != 0) {
      const WarpProgress own = warp;
      static_cast<WarpProgress&>(warp) = first;
      warp.warp = own.warp;
      warp.scheduler = own.scheduler;
      warp.slot = own.slot;
      warp.counters = own.counters;
      add_counts_together(warp.counters);
      for (const ScoreIndex index : run_.program.written()) {
        warp.score[index] = first.score[index];
      }
    }
    schedulers_[warp.scheduler].ready[warp.slot] = warp.ready;
    schedulers_[warp.scheduler].unit[warp.slot] = static_cast<uint8_t>(warp.unit + 1);
  }
  if (together_cycle_ != kNever) { // the schedulers have issued
    begin_issues();
    for (const TimedWarp& warp : block.warps) {
      Scheduler& scheduler = schedulers_[warp.scheduler];
      scheduler.after = 1;
      scheduler.issued = together_cycle_ == ticked_cycle_ ? 1 : scheduler.issued;
    }
  }
  together_ = nullptr;
  run_.host.stand_apart(block.place);
}

void CoreModel::end_together() {
  TimedBlock& block = *together_;
  if (!block.is_as_first) {
    for (size_t w = 1; w < block.warps.size(); ++w) {
      add_counts_together(block.warps[w].counters);
      block.warps[w].cursor = block.warps[0].cursor;
    }
  }
  together_ = nullptr;
  block.live_warps = 0;
  block.end_cycle = std::max(block.end_cycle, block.warps[0].cursor);
  maybe_end_block(block);
}

void CoreModel::find_next_together(uint64_t from) {
  const TimedWarp& first = together_->warps[0];
  const auto unit = static_cast<unsigned>(first.unit + 1);
  ++sight_;
  seen_held_until_ = memory_.held_until();
  seen_free_[unit] = unit_free(unit); // nobody asks for others while all need this one
  const auto free = static_cast<uint64_t>(static_cast<int64_t>(seen_free_[unit]));
  next_cycle_ = std::max({from, free, first.ready});
}

ResultTime CoreModel::book_access(const GroupRecord& record,
                                  uint32_t warp,
                                  const InsnTiming& timing,
                                  uint64_t cycle) {
  const auto now = static_cast<double>(cycle);
  const PipeTime time{timing.latency_cycles, timing.interval_cycles};
  if (!record.has_access || record.exec_masks[warp] == 0 || record.space == isa::Space::kConst) {
    memory_.occupy(now, time.interval);
    const double done = now + time.latency;
    return {done, done, done};
  }
  std::array<uint64_t, isa::kWarpLanes> lanes;
  const WarpAddresses access = access_of(record, warp, lanes);
  if (record.space == isa::Space::kL1) {
    return (timing.flags & isa::kAtomic) != 0 ? memory_.atomic_l1(now, access, time)
                                              : memory_.access_l1(now, access, time);
  }
  return (timing.flags & isa::kWritesMem) != 0 ? memory_.store_hbm(now, access, record.hint, time)
                                               : memory_.load_hbm(now, access, record.hint, time);
}

bool CoreModel::book_together(const GroupRecord& record, const InsnTiming& timing, uint64_t cycle) {
  uint64_t& end_cycle = together_->end_cycle;
  if (!timing.is_memory_pipe) {
    const auto now = static_cast<double>(cycle);
    pipes_[timing.unit + 1].reserve_many(record.warps, now, timing.interval_cycles);
    const double done = now + timing.latency_cycles;
    scores_[0] = ScoreEntry::from({done, done, done}, record.pc);
    end_cycle = std::max(end_cycle, scores_[0].done_cycle);
    return true;
  }
  const ResultTime first = book_access(record, 0, timing, cycle);
  scores_[0] = ScoreEntry::from(first, record.pc);
  end_cycle = std::max(end_cycle, scores_[0].done_cycle);
  bool are_equal = true;
  for (uint32_t w = 1; w < record.warps; ++w) {
    const ResultTime result = book_access(record, w, timing, cycle);
    if (is_same(result, first)) {
      scores_[w] = scores_[0];
      continue;
    }
    scores_[w] = ScoreEntry::from(result, record.pc);
    are_equal = are_equal && is_same(scores_[w], scores_[0]);
    end_cycle = std::max(end_cycle, scores_[w].done_cycle);
  }
  return are_equal;
}

void CoreModel::describe_together(const GroupRecord& record,
                                  const InsnTiming& timing,
                                  uint64_t cycle,
                                  bool are_equal,
                                  const TimelineEntry& first) {
  for (uint32_t w = 0; w < record.warps; ++w) {
    TimelineEntry entry = first;
    describe(*together_,
             w,
             record.pc,
             record.active_masks[w],
             record.exec_masks[w],
             timing,
             cycle,
             entry);
    entry.done_cycle = scores_[are_equal ? 0 : w].done_cycle;
    run_.timeline.add(entry);
  }
}

bool CoreModel::tick_together(uint64_t cycle) {
  TimedBlock& block = *together_;
  TimedWarp& first = block.warps[0];
  const InsnTiming& timing = run_.program[first.pc];
  const auto warps = static_cast<uint32_t>(block.warps.size());
  const auto now = static_cast<double>(cycle);
  const Servers& unit = timing.is_memory_pipe ? memory_.pipes() : pipes_[timing.unit + 1];
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

  const bool are_equal = book_together(record, timing, cycle);
  if (entry) {
    describe_together(record, timing, cycle, are_equal, *entry);
  }
  book_control(first, record.nop_cycles, timing, cycle);
  first.blocked_reason =
      (timing.flags & isa::kBlockBarrier) != 0 ? StallReason::kBlockBarrier : StallReason::kBarrier;
  if (record.have_ended) {
    end_together();
  } else if (are_equal && record.are_together && run_.program[record.next_pc].is_of_lanes) {
    settle(first, timing, scores_[0], cycle);
    find_ready(first, {record.next_pc, false, false});
    find_next_together(cycle + 1);
    return true;
  } else { // also in front of an insn of the block, which most warps pass over
    part();
    for (uint32_t w = 0; w < warps; ++w) {
      settle(block.warps[w], timing, scores_[are_equal ? 0 : w], cycle);
      prepare(block.warps[w]);
    }
    maybe_end_block(block);
  }
  find_next_cycle(cycle + 1);
  return true;
}

} // namespace pto::sim
