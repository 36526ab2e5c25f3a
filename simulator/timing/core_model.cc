// SPDX-License-Identifier: Apache-2.0
// One core: its blocks, when each warp can issue, and whose turn it is. Order of the checks in
// front of an issue: fetch, branch, barrier or nop, operands, unit, scheduler. The issue itself is
// in core_issue.cc.
#include "simulator/timing/core_model.h"

#include <algorithm>
#include <utility>

namespace pto::sim {

using isa::Unit;

namespace {

constexpr unsigned unit_index(Unit unit) {
  return static_cast<unsigned>(unit);
}

std::array<uint32_t, isa::kUnitCount> pipe_counts(const isa::MachineProfile::Units& units) {
  std::array<uint32_t, isa::kUnitCount> counts{};
  counts[unit_index(Unit::kS)] = units.s_pipes;
  counts[unit_index(Unit::kV)] = units.v_pipes;
  counts[unit_index(Unit::kX)] = units.x_pipes;
  counts[unit_index(Unit::kD)] = units.d_pipes;
  counts[unit_index(Unit::kC)] = units.c_pipes;
  return counts; // M is CoreMemory's
}

} // namespace

void TimedBlock::restart(uint32_t warp_count) {
  std::vector<TimedWarp> kept = std::move(warps);
  *this = TimedBlock{};
  warps = std::move(kept);
  warps.resize(warp_count);
}

void TimedBlock::start_warp(uint32_t number, const ProgramTiming& program) {
  TimedWarp& warp = warps[number];
  static_cast<WarpProgress&>(warp) = {};
  warp.block = this;
  warp.warp = number;
  warp.cursor = span.start_cycle;
  warp.hold_until = span.start_cycle;
  warp.counters.block = span.block;
  warp.counters.warp = number;
  warp.counters.core = span.core;
  warp.counters.start_cycle = span.start_cycle;
  for (const ScoreIndex index : program.written()) {
    warp.score[index] = {};
  }
}

ScoreEntry& TimedBlock::tile(uint32_t key) {
  for (auto& tile : tiles) {
    if (tile.first == key) {
      return tile.second;
    }
  }
  return tiles.emplace_back(key, ScoreEntry{}).second;
}

CoreModel::CoreModel(RunState& run, uint32_t core)
    : run_(run), core_(core), memory_(run.machine, run.shared),
      code_(run.machine.fetch.cache_bytes / run.machine.fetch.line_bytes,
            0,
            CacheTags::Replacement::kLru),
      schedulers_(run.machine.warp_schedulers),
      issue_width_(run.machine.issue_warps_per_cycle / run.machine.warp_schedulers),
      is_round_robin_(run.machine.warp_policy == "round_robin"),
      has_fetch_(run.machine.fetch.miss_latency_cycles != 0),
      shares_memory_pipe_(run.machine.units.m_pipes < run.machine.warp_schedulers) {
  const auto counts = pipe_counts(run.machine.units);
  for (unsigned unit = 0; unit < isa::kUnitCount; ++unit) {
    pipes_[unit + 1] = Servers(counts[unit]);
  }
}

CoreModel::CoreModel(const CoreModel& other, WarpCopies& copies)
    : run_(other.run_), core_(other.core_), memory_(other.memory_), code_(other.code_),
      pipes_(other.pipes_), schedulers_(other.schedulers_), issue_width_(other.issue_width_),
      is_round_robin_(other.is_round_robin_), has_fetch_(other.has_fetch_),
      shares_memory_pipe_(other.shares_memory_pipe_), first_scheduler_(other.first_scheduler_),
      next_cycle_(other.next_cycle_), seen_free_(other.seen_free_),
      seen_held_until_(other.seen_held_until_), sight_(other.sight_),
      ticked_cycle_(other.ticked_cycle_), issued_cycle_(other.issued_cycle_),
      ticked_first_(other.ticked_first_), next_scheduler_(other.next_scheduler_),
      counters_(other.counters_) {
  for (const std::unique_ptr<TimedBlock>& block : other.blocks_) {
    blocks_.push_back(std::make_unique<TimedBlock>(*block));
    TimedBlock& copy = *blocks_.back();
    for (size_t w = 0; w < copy.warps.size(); ++w) {
      copy.warps[w].block = &copy;
      copies[&block->warps[w]] = &copy.warps[w];
    }
  }
  for (Scheduler& scheduler : schedulers_) {
    for (TimedWarp*& warp : scheduler.warps) {
      warp = copies.at(warp);
    }
  }
}

uint64_t CoreModel::size_bytes() const {
  uint64_t sum = sizeof(CoreModel) + memory_.data_cache().size_bytes() + code_.size_bytes();
  for (const std::unique_ptr<TimedBlock>& block : blocks_) {
    sum += sizeof(TimedBlock) + block->warps.size() * sizeof(TimedWarp);
  }
  return sum;
}

void CoreModel::start_block(std::unique_ptr<TimedBlock> owned, uint32_t scratchpad_bytes) {
  stand_apart(); // two blocks share the schedulers
  TimedBlock& block = *owned;
  if (blocks_.empty()) {
    memory_.configure(scratchpad_bytes);
  }
  blocks_.push_back(std::move(owned));
  ++counters_.blocks;
  block.live_warps = static_cast<uint32_t>(block.warps.size());
  block.end_cycle = block.span.start_cycle;
  may_join_ = can_go_together(block);
  next_join_cycle_ = 0;
  join_pause_cycles_ = 1;
  const auto schedulers = static_cast<uint32_t>(schedulers_.size());
  if (may_join_ && run_.program[run_.host.next(block.place, 0).pc].is_of_lanes) {
    block.is_as_first = true;
    block.start_warp(0, run_.program);
    block.warps[0].scheduler = next_scheduler_;
    join(block);
    find_ready(block.warps[0], run_.host.next(block.place, 0));
    next_cycle_ = std::min(next_cycle_, block.warps[0].ready);
  } else {
    for (uint32_t w = 0; w < block.live_warps; ++w) {
      block.start_warp(w, run_.program);
      TimedWarp& warp = block.warps[w];
      warp.hold_until += whole_cycle(w * run_.machine.launch.warp_start_cycles);
      warp.scheduler = (next_scheduler_ + w) % schedulers;
      schedulers_[warp.scheduler].add(warp);
    }
    for (TimedWarp& warp : block.warps) {
      prepare(warp);
      next_cycle_ = std::min(next_cycle_, schedulers_[warp.scheduler].ready[warp.slot]);
    }
  }
  next_scheduler_ = (next_scheduler_ + static_cast<uint32_t>(block.warps.size())) % schedulers;
  maybe_end_block(block);
}

void CoreModel::Scheduler::add(TimedWarp& warp) {
  warp.slot = static_cast<uint32_t>(warps.size());
  warps.push_back(&warp);
  ready.push_back(kNever);
  unit.push_back(0);
}

void CoreModel::Scheduler::remove(const TimedBlock& block) {
  size_t kept = 0;
  for (size_t i = 0; i < warps.size(); ++i) {
    if (warps[i]->block != &block) {
      warps[kept] = warps[i];
      ready[kept] = ready[i];
      unit[kept] = unit[i];
      warps[kept]->slot = static_cast<uint32_t>(kept);
      ++kept;
    }
  }
  warps.resize(kept);
  ready.resize(kept);
  unit.resize(kept);
  after = 0;
}

uint64_t CoreModel::fetch_ready(uint64_t line, uint64_t cycle) {
  const auto& fetch = run_.machine.fetch;
  if (line == fetched_line_) { // still the newest of the code cache
    return std::max(cycle, fetched_ready_);
  }
  if (const std::optional<uint32_t> slot = code_.touch(line)) {
    fetched_line_ = line;
    fetched_ready_ = whole_cycle(code_.ready(*slot));
    return std::max(cycle, fetched_ready_);
  }
  // The line comes with those after it.
  fetched_line_ = UINT64_MAX;
  const uint64_t ready = cycle + fetch.miss_latency_cycles;
  for (uint64_t next = line; next <= line + fetch.ahead_bytes / fetch.line_bytes; ++next) {
    if (!code_.find(next)) {
      if (const std::optional<CacheTags::Fill> fill = code_.fill(next)) {
        code_.set_ready(fill->slot, static_cast<double>(ready));
      }
    }
  }
  return ready;
}

void CoreModel::find_holds(TimedWarp& warp, const InsnTiming& timing) {
  hold_for_control(warp);
  Holds& holds = warp.holds;
  if (has_fetch_) {
    const uint64_t reached = std::max({warp.cursor, holds.branch, holds.hold});
    const uint64_t fetched = fetch_ready(timing.fetch_line, reached);
    holds.fetch = fetched == reached ? 0 : fetched;
  }
  const bool passes_over = timing.is_block_scoped && warp.warp != 0;
  if (passes_over) {
    holds.operand = {};
    holds.operand_index = kScoreCount;
  } else {
    hold_for_registers(warp, timing);
    if (timing.waits_for_more) {
      const auto wait_for = [&](const ScoreEntry& entry, ScoreIndex index) {
        if (entry.done_cycle > holds.operand.done_cycle) {
          holds.operand = entry;
          holds.operand_index = index;
        }
      };
      for (const std::vector<uint32_t>* keys : {&timing.tile_reads, &timing.tile_writes}) {
        for (const uint32_t key : *keys) {
          wait_for(warp.block->tile(key), kScoreCount);
        }
      }
      if ((timing.flags & isa::kWaits) != 0) {
        wait_for(timing.wait_event >= 0
                     ? warp.block->events[static_cast<unsigned>(timing.wait_event)]
                     : warp.block->copies,
                 kScoreCount);
      }
      if ((timing.flags & isa::kFence) != 0) {
        wait_for(warp.stores, kScoreCount);
      }
    }
  }
}

void CoreModel::find_ready(TimedWarp& warp, const TimedHost::Next& next) {
  warp.pc = next.pc;
  if (warp.is_blocked != next.is_blocked) {
    warp.block->blocked_warps += next.is_blocked ? 1 : ~0u;
    warp.is_blocked = next.is_blocked;
  }
  warp.sight = sight_;
  if (next.is_done) {
    end_warp(warp);
    return;
  }
  if (next.is_blocked) {
    warp.ready = kNever;
    return;
  }
  const InsnTiming& timing = run_.program[next.pc];
  find_holds(warp, timing);
  warp.is_free = timing.is_free;
  const bool passes_over = timing.is_block_scoped && warp.warp != 0;
  warp.unit = timing.is_free || passes_over ? -1 : timing.unit;
  warp.ready = std::max(warp.cursor, warp.holds.ready());
  if (timing.fused_with_next != nullptr && warp.ready != kNever) {
    // Both halves need their other operands; the second's registers from the first do not count.
    const InsnTiming& second = run_.program[next.pc + 1];
    for (const ScoreIndex index : second.reads) {
      const bool is_inner =
          std::find(timing.writes.begin(), timing.writes.end(), index) != timing.writes.end();
      const ScoreEntry& entry = warp.score[index];
      if (!is_inner && entry.done_cycle > warp.holds.operand.done_cycle) {
        warp.holds.operand = entry;
        warp.holds.operand_index = index;
      }
    }
    warp.ready = std::max(warp.cursor, warp.holds.ready());
  }
}

void CoreModel::end_warp(TimedWarp& warp) {
  warp.is_done = true;
  warp.ready = kNever;
  warp.block->end_cycle = std::max(warp.block->end_cycle, warp.cursor);
  --warp.block->live_warps;
}

void CoreModel::end_block(TimedBlock& block) {
  block.span.end_cycle = block.end_cycle;
  const size_t started = block.is_as_first ? 1 : block.warps.size();
  for (size_t w = 0; w < started; ++w) {
    WarpCounters& counters = block.warps[w].counters;
    counters.stalls[StallReason::kEmpty] += block.end_cycle - block.warps[w].cursor;
    counters.elapsed_cycles = block.end_cycle - block.span.start_cycle;
  }
  counters_.occupied_cycles += block.end_cycle - block.span.start_cycle;
  if (!block.is_as_first) {
    for (Scheduler& scheduler : schedulers_) {
      scheduler.remove(block);
    }
  }
  const auto at = std::find_if(
      blocks_.begin(), blocks_.end(), [&](const auto& owned) { return owned.get() == &block; });
  ended_.push_back(std::move(*at));
  blocks_.erase(at);
}

std::unique_ptr<TimedBlock> CoreModel::take_ended() {
  std::unique_ptr<TimedBlock> block = std::move(ended_.front());
  ended_.erase(ended_.begin());
  return block;
}

void CoreModel::begin_issues() {
  if (issued_cycle_ == ticked_cycle_) {
    return;
  }
  issued_cycle_ = ticked_cycle_;
  for (Scheduler& scheduler : schedulers_) {
    scheduler.issued = 0;
  }
}

TimedWarp* CoreModel::pick(Scheduler& scheduler, uint64_t cycle) {
  const size_t count = scheduler.ready.size();
  const size_t first = is_round_robin_ && scheduler.after < count ? scheduler.after : 0;
  const auto look = [&](size_t from, size_t to) -> TimedWarp* {
    for (size_t at = from; at < to; ++at) {
      if (may_issue(scheduler, at, cycle)) {
        scheduler.after = at + 1;
        return scheduler.warps[at];
      }
    }
    return nullptr;
  };
  TimedWarp* warp = look(first, count);
  return warp != nullptr ? warp : look(0, first);
}

bool CoreModel::tick(uint64_t cycle, bool only_one) {
  if (ticked_cycle_ != cycle) {
    ticked_cycle_ = cycle;
    ticked_first_ = first_scheduler_;
    ++counters_.busy_cycles;
  }
  if (together_ != nullptr) {
    if (only_one || !tick_together(cycle)) {
      stand_apart();
    } else {
      return true;
    }
  }
  begin_issues();
  return only_one || run_.is_gated ? issue_in_turn<false>(cycle, only_one)
                                   : issue_in_turn<true>(cycle, false);
}

template <bool kIsWhole> bool CoreModel::issue_in_turn(uint64_t cycle, bool only_one) {
  const size_t count = schedulers_.size();
  size_t at = ticked_first_; // a cycle that is gone on with keeps its order
  size_t issues = 0;
  for (size_t i = 0; i < count; ++i, at = at + 1 < count ? at + 1 : 0) {
    Scheduler& scheduler = schedulers_[at];
    bool is_found = scheduler.ready.size() == 1;
    if (is_found && !may_issue(scheduler, 0, cycle)) {
      continue;
    }
    while (scheduler.issued < issue_width_) {
      const size_t after = scheduler.after;
      TimedWarp* warp = is_found ? scheduler.warps[0] : pick(scheduler, cycle);
      scheduler.after = is_found ? 1 : scheduler.after;
      is_found = false;
      if (warp == nullptr) {
        break;
      }
      if (!kIsWhole && run_.is_gated &&
          !run_.host.may_issue(warp->block->place, warp->warp, cycle)) {
        scheduler.after = after;
        find_next_cycle(cycle);
        next_cycle_ = std::min(next_cycle_, cycle);
        return false;
      }
      scheduler.issued += warp->is_free ? 0 : 1;
      if (shares_memory_pipe_ && warp->unit == static_cast<int>(Unit::kM)) {
        first_scheduler_ = (at + 1) % count;
      }
      issue(*warp, cycle);
      ++issues;
      if (run_.host.must_stop() ||
          (!kIsWhole && (only_one || (run_.is_gated && run_.host.wants_stop())))) {
        find_next_cycle(cycle);
        next_cycle_ = std::min(next_cycle_, cycle);
        return false;
      }
    }
  }
  find_next_cycle(cycle + 1);
  if (may_join_ && !run_.is_gated && blocks_.size() == 1 && issues == blocks_[0]->warps.size() &&
      cycle >= next_join_cycle_) {
    join_if_alike(cycle);
  }
  return true;
}

void CoreModel::find_next_cycle(uint64_t from) {
  ++sight_;
  seen_held_until_ = memory_.held_until();
  std::array<uint64_t, isa::kUnitCount + 1> free;
  for (unsigned unit = 0; unit < free.size(); ++unit) {
    seen_free_[unit] = unit_free(unit);
    free[unit] = std::max(from, static_cast<uint64_t>(static_cast<int64_t>(seen_free_[unit])));
  }
  uint64_t next = kNever;
  for (const Scheduler& scheduler : schedulers_) {
    const size_t count = scheduler.ready.size();
    for (size_t i = 0; i < count; ++i) {
      next = std::min(next, std::max(scheduler.ready[i], free[scheduler.unit[i]]));
    }
    if (next == from) {
      break;
    }
  }
  next_cycle_ = next;
}

CoreModel::UnitWait CoreModel::unit_wait(const TimedWarp& warp) const {
  const auto unit = static_cast<unsigned>(warp.unit + 1);
  const double free = seen_free_[unit];
  const auto until = static_cast<uint64_t>(free);
  if (warp.sight == sight_ || until <= warp.ready) {
    return {};
  }
  const bool is_held = unit == kMemoryUnit && seen_held_until_ >= free;
  return {until, is_held ? StallReason::kBandwidth : StallReason::kUnit};
}

const TimedBlock* CoreModel::block_at(uint32_t place) const {
  for (const auto& block : blocks_) {
    if (block->place == place) {
      return block.get();
    }
  }
  return nullptr;
}

std::vector<const TimedBlock*> CoreModel::blocks() const {
  std::vector<const TimedBlock*> result;
  for (const auto& block : blocks_) {
    result.push_back(block.get());
  }
  return result;
}

CoreCounters CoreModel::counters() const {
  CoreCounters counters = counters_;
  counters.memory = memory_.counters();
  for (unsigned unit = 0; unit < isa::kUnitCount; ++unit) {
    counters.unit_busy_cycles[unit] = pipes_[unit + 1].most_busy_cycles();
  }
  counters.unit_busy_cycles[unit_index(Unit::kM)] = memory_.pipe_busy_cycles();
  counters.unit_busy_cycles[unit_index(Unit::kD)] =
      std::max(counters.unit_busy_cycles[unit_index(Unit::kD)], memory_.copy_busy_cycles());
  return counters;
}

} // namespace pto::sim
