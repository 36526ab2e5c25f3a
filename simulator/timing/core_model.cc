// SPDX-License-Identifier: Apache-2.0
// Issue on one core. Order of the checks in front of an issue, which is also the order in which
// waiting cycles are charged: fetch, branch, barrier or nop, operands, unit, scheduler. What an
// insn then takes up is in core_booking.cc.
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

void TimedBlock::restart(uint32_t warp_count, const ProgramTiming& program) {
  std::vector<TimedWarp> kept = std::move(warps);
  *this = TimedBlock{};
  warps = std::move(kept);
  warps.resize(warp_count);
  for (uint32_t w = 0; w < warp_count; ++w) {
    TimedWarp& warp = warps[w];
    static_cast<WarpProgress&>(warp) = {};
    warp.warp = w;
    for (const ScoreIndex index : program.written()) {
      warp.score[index] = {};
    }
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
      shares_memory_pipe_(run.machine.units.m_pipes < run.machine.warp_schedulers) {
  const auto counts = pipe_counts(run.machine.units);
  for (unsigned unit = 0; unit < isa::kUnitCount; ++unit) {
    pipes_[unit].resize(counts[unit]);
  }
}

CoreModel::CoreModel(const CoreModel& other, WarpCopies& copies)
    : run_(other.run_), core_(other.core_), memory_(other.memory_), code_(other.code_),
      pipes_(other.pipes_), schedulers_(other.schedulers_), issue_width_(other.issue_width_),
      is_round_robin_(other.is_round_robin_), shares_memory_pipe_(other.shares_memory_pipe_),
      first_scheduler_(other.first_scheduler_), next_cycle_(other.next_cycle_),
      ticked_cycle_(other.ticked_cycle_), ticked_first_(other.ticked_first_),
      next_scheduler_(other.next_scheduler_), counters_(other.counters_) {
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
  TimedBlock& block = *owned;
  if (blocks_.empty()) {
    memory_.configure(scratchpad_bytes);
  }
  blocks_.push_back(std::move(owned));
  ++counters_.blocks;
  block.live_warps = static_cast<uint32_t>(block.warps.size());
  block.end_cycle = block.span.start_cycle;
  for (TimedWarp& warp : block.warps) {
    warp.block = &block;
    warp.cursor = block.span.start_cycle;
    warp.hold_until =
        block.span.start_cycle + whole_cycle(warp.warp * run_.machine.launch.warp_start_cycles);
    warp.counters.block = block.span.block;
    warp.counters.warp = warp.warp;
    warp.counters.core = core_;
    warp.counters.start_cycle = block.span.start_cycle;
    schedulers_[(next_scheduler_ + warp.warp) % schedulers_.size()].warps.push_back(&warp);
    prepare(warp);
  }
  next_scheduler_ =
      (next_scheduler_ + block.live_warps) % static_cast<uint32_t>(schedulers_.size());
  uint64_t first = kNever;
  for (const TimedWarp& warp : block.warps) {
    first = std::min(first, warp.ready);
  }
  next_cycle_ = std::min(next_cycle_, first);
  maybe_end_block(block);
}

uint64_t CoreModel::fetch_ready(uint32_t pc, uint64_t cycle) {
  const auto& fetch = run_.machine.fetch;
  if (fetch.miss_latency_cycles == 0) {
    return cycle;
  }
  const uint64_t line = static_cast<uint64_t>(pc) * fetch.insn_bytes / fetch.line_bytes;
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

double CoreModel::unit_free(int unit) const {
  if (unit < 0) {
    return 0;
  }
  if (unit == static_cast<int>(Unit::kM)) {
    return memory_.pipe_free_cycle();
  }
  return first_free(pipes_[static_cast<unsigned>(unit)]).next_free();
}

void CoreModel::find_holds(TimedWarp& warp, const InsnTiming& timing) {
  Holds& holds = warp.holds;
  holds = {};
  holds.branch = warp.branch_ready;
  holds.hold = warp.hold_until;
  holds.hold_reason = warp.hold_reason;
  const uint64_t reached = std::max({warp.cursor, holds.branch, holds.hold});
  holds.fetch = fetch_ready(warp.pc, reached);
  if (holds.fetch == reached) {
    holds.fetch = 0;
  }
  const auto wait_for = [&](const ScoreEntry& entry, ScoreIndex index) {
    if (entry.done_cycle > holds.operand.done_cycle) {
      holds.operand = entry;
      holds.operand_index = index;
    }
  };
  const isa::InsnDesc& desc = *timing.insn->desc;
  const bool passes_over = desc.scope == isa::Scope::kBlock && warp.warp != 0;
  if (passes_over) {
    return;
  }
  for (const ScoreIndex index : timing.reads) {
    wait_for(warp.score[index], index);
  }
  for (const ScoreIndex index : timing.writes) {
    wait_for(warp.score[index], index);
  }
  for (const std::vector<uint32_t>* keys : {&timing.tile_reads, &timing.tile_writes}) {
    for (const uint32_t key : *keys) {
      wait_for(warp.block->tile(key), kScoreCount);
    }
  }
  if (desc.has(isa::kWaits)) {
    const isa::Operand* event = nullptr;
    for (unsigned i = 0; i < timing.insn->operand_count; ++i) {
      if (timing.insn->operand(i).kind == isa::OperandKind::kEvent) {
        event = &timing.insn->operand(i);
      }
    }
    wait_for(event != nullptr ? warp.block->events[event->index % isa::kEventCount]
                              : warp.block->copies,
             kScoreCount);
  }
  if (desc.has(isa::kFence)) {
    wait_for(warp.stores, kScoreCount);
  }
}

void CoreModel::prepare(TimedWarp& warp) {
  const TimedHost::Next next = run_.host.next(warp.block->place, warp.warp);
  warp.pc = next.pc;
  warp.is_blocked = next.is_blocked;
  warp.unit_until = 0;
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
  const isa::InsnDesc& desc = *timing.insn->desc;
  const bool passes_over = desc.scope == isa::Scope::kBlock && warp.warp != 0;
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

void CoreModel::maybe_end_block(TimedBlock& block) {
  if (block.live_warps != 0 || block.pending_atomics != 0) {
    return;
  }
  block.span.end_cycle = block.end_cycle;
  for (TimedWarp& warp : block.warps) {
    warp.counters.stalls[StallReason::kEmpty] += block.end_cycle - warp.cursor;
    warp.counters.elapsed_cycles = block.end_cycle - block.span.start_cycle;
  }
  counters_.occupied_cycles += block.end_cycle - block.span.start_cycle;
  for (Scheduler& scheduler : schedulers_) {
    std::erase_if(scheduler.warps, [&](const TimedWarp* w) { return w->block == &block; });
    scheduler.after = 0;
  }
  const auto at = std::find_if(
      blocks_.begin(), blocks_.end(), [&](const auto& owned) { return owned.get() == &block; });
  ended_.push_back(std::move(*at));
  blocks_.erase(at);
}

std::vector<std::unique_ptr<TimedBlock>> CoreModel::take_ended() {
  return std::exchange(ended_, {});
}

TimedWarp* CoreModel::pick(Scheduler& scheduler, uint64_t cycle) {
  const size_t count = scheduler.warps.size();
  for (size_t i = 0; i < count; ++i) {
    const size_t at = is_round_robin_ ? (scheduler.after + i) % count : i;
    TimedWarp& warp = *scheduler.warps[at];
    if (warp.ready > cycle) {
      continue;
    }
    const double free = unit_free(warp.unit);
    if (free < static_cast<double>(cycle + 1)) {
      scheduler.after = at + 1;
      return &warp;
    }
    note_busy_unit(warp, free);
  }
  return nullptr;
}

void CoreModel::note_busy_unit(TimedWarp& warp, double free) {
  warp.unit_until = static_cast<uint64_t>(free);
  const bool is_memory = warp.unit == static_cast<int>(Unit::kM);
  warp.unit_reason =
      is_memory && memory_.held_until() >= free ? StallReason::kBandwidth : StallReason::kUnit;
}

bool CoreModel::tick(uint64_t cycle, bool only_one) {
  if (ticked_cycle_ != cycle) {
    ticked_cycle_ = cycle;
    ticked_first_ = first_scheduler_;
    for (Scheduler& scheduler : schedulers_) {
      scheduler.issued = 0;
    }
    ++counters_.busy_cycles;
  }
  const size_t count = schedulers_.size();
  const size_t first = ticked_first_; // a cycle that is gone on with keeps its order
  for (size_t i = 0; i < count; ++i) {
    Scheduler& scheduler = schedulers_[(first + i) % count];
    while (scheduler.issued < issue_width_) {
      const size_t after = scheduler.after;
      TimedWarp* warp = pick(scheduler, cycle);
      if (warp == nullptr) {
        break;
      }
      if (!run_.host.may_issue(warp->block->place, warp->warp, cycle)) {
        scheduler.after = after;
        find_next_cycle(cycle);
        next_cycle_ = std::min(next_cycle_, cycle);
        return false;
      }
      scheduler.issued += warp->is_free ? 0 : 1;
      if (shares_memory_pipe_ && warp->unit == static_cast<int>(Unit::kM)) {
        first_scheduler_ = (first + i + 1) % count;
      }
      issue(*warp, cycle);
      if (only_one || run_.host.wants_stop()) {
        find_next_cycle(cycle);
        next_cycle_ = std::min(next_cycle_, cycle);
        return false;
      }
    }
  }
  find_next_cycle(cycle + 1);
  return true;
}

void CoreModel::find_next_cycle(uint64_t from) {
  std::array<double, isa::kUnitCount + 1> free; // by unit + 1
  for (unsigned i = 0; i < free.size(); ++i) {
    free[i] = i == 0 || i - 1 == unit_index(Unit::kM) || !pipes_[i - 1].empty()
                  ? unit_free(static_cast<int>(i) - 1)
                  : 0;
  }
  uint64_t next = kNever;
  for (const Scheduler& scheduler : schedulers_) {
    for (TimedWarp* warp : scheduler.warps) {
      if (warp->ready == kNever) {
        continue;
      }
      const double unit_cycle = free[static_cast<size_t>(warp->unit + 1)];
      const uint64_t unit = static_cast<uint64_t>(unit_cycle);
      if (unit > warp->ready) {
        note_busy_unit(*warp, unit_cycle);
      }
      next = std::min(next, std::max({warp->ready, unit, from}));
    }
  }
  next_cycle_ = next;
}

void CoreModel::charge(TimedWarp& warp, uint64_t cycle, bool is_free, TimelineEntry& entry) {
  const uint64_t begin = warp.cursor;
  entry.stall_cycles = static_cast<uint32_t>(cycle - begin);
  if (!is_free) {
    ++warp.counters.issued_cycles;
  }
  warp.cursor = is_free ? cycle : cycle + 1;
  if (begin >= cycle) {
    return;
  }
  // Few reasons of the many: kept as a list, each once.
  struct Part {
    StallReason reason = StallReason::kOperand;
    bool has_operand = false; // some of it is the operand's
    uint64_t cycles = 0;
  };
  std::array<Part, 8> parts;
  unsigned count = 0;
  uint64_t cursor = begin;
  const auto until = [&](uint64_t end, StallReason reason, bool is_operand = false) {
    end = std::min(end, cycle);
    if (end <= cursor) {
      return;
    }
    unsigned at = 0;
    while (at < count && parts[at].reason != reason) {
      ++at;
    }
    parts[at].reason = reason;
    parts[at].has_operand = parts[at].has_operand || is_operand;
    parts[at].cycles += end - cursor;
    count = std::max(count, at + 1);
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
  until(warp.unit_until, warp.unit_reason);
  until(cycle, StallReason::kIssueSlot);
  StallCycles& of_pc = run_.by_pc[warp.pc].stalls;
  const Part* most = nullptr;
  for (unsigned i = 0; i < count; ++i) {
    const Part& part = parts[i];
    warp.counters.stalls[part.reason] += part.cycles;
    of_pc[part.reason] += part.cycles;
    if (most == nullptr || part.cycles > most->cycles ||
        (part.cycles == most->cycles && part.reason < most->reason)) {
      most = &part;
    }
  }
  if (most == nullptr) {
    return;
  }
  entry.reason = most->reason;
  // Who wrote the operand explains the wait only where the operand was most of it.
  if (most->has_operand) {
    entry.cause_pc = operand.writer_pc;
  }
}

void CoreModel::release_blocked(TimedBlock& block, uint64_t cycle) {
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

void CoreModel::issue(TimedWarp& warp, uint64_t cycle) {
  TimedBlock& block = *warp.block;
  const InsnTiming& timing = run_.program[warp.pc];
  TimelineEntry entry;
  charge(warp, cycle, timing.is_free, entry);
  const isa::FusionRule* rule = timing.fused_with_next;
  const uint32_t pc = warp.pc;
  const ResultTime first = execute(warp, cycle, entry, 0);
  warp.blocked_reason = timing.insn->desc->has(isa::kBlockBarrier) ? StallReason::kBlockBarrier
                                                                   : StallReason::kBarrier;
  if (rule != nullptr && !run_.has_fault) { // a stop waits for the second half
    const TimedHost::Next next = run_.host.next(block.place, warp.warp);
    if (!next.is_done && !next.is_blocked && next.pc == pc + 1) {
      // The pair is one operation: the second half issues with the first.
      const double late = first.done_cycle - first.base_cycle;
      warp.pc = next.pc;
      TimelineEntry joined;
      joined.is_fused = true;
      (void)execute(warp, cycle, joined, timing.fused_latency_cycles + late);
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
    for (const Server& pipe : pipes_[unit]) {
      counters.unit_busy_cycles[unit] =
          std::max(counters.unit_busy_cycles[unit], pipe.busy_cycles());
    }
  }
  counters.unit_busy_cycles[unit_index(Unit::kM)] = memory_.pipe_busy_cycles();
  counters.unit_busy_cycles[unit_index(Unit::kD)] =
      std::max(counters.unit_busy_cycles[unit_index(Unit::kD)], memory_.copy_busy_cycles());
  return counters;
}

} // namespace pto::sim
