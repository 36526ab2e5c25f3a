// SPDX-License-Identifier: Apache-2.0
// The event loop over cores, atomics and the block dispatcher.
#include "simulator/timing/timing_model.h"

#include "simulator/timing/core_model.h"
#include "simulator/timing/core_queue.h"

#include <algorithm>
#include <limits>
#include <queue>

namespace pto::sim {

namespace {

struct FreePlace {
  double cycle = 0;
  uint32_t rank = 0; // which block of its core: cores get their first block before a second
  uint32_t core = 0;
  bool operator<(const FreePlace& other) const { // for a min-heap
    return std::tie(cycle, rank, core) > std::tie(other.cycle, other.rank, other.core);
  }
};

/// How far the event loop has come.
struct LoopState {
  CoreQueue core_events;
  std::priority_queue<FreePlace> free_places;
  double dispatcher_free = 0;
  bool is_grid_empty = false; // no block is left to hand out
  uint64_t live_blocks = 0;
  uint64_t end_cycle = 0;
  uint64_t issued_cycles = 0;
  StallCycles stalls;
};

} // namespace

struct TimingModel::Impl : LoopState {
  Impl(const isa::MachineProfile& machine,
       const ProgramTiming& program,
       SharedMemory& shared,
       TimedHost& host,
       const TimingOptions& options)
      : options_copy(options),
        run{{}, machine, program, shared, host, options_copy, Timeline(options.timeline_limits)} {
    run.by_pc.resize(program.size());
    cores.resize(machine.cores);
    core_events = CoreQueue(machine.cores);
    shared.start_launch();
    for (uint32_t rank = 0; rank < machine.blocks_per_core; ++rank) {
      for (uint32_t core = 0; core < machine.cores; ++core) {
        free_places.push({0, rank, core});
      }
    }
    dispatcher_free = machine.launch.task_cycles;
  }

  TimingOptions options_copy;
  RunState run;
  std::vector<std::unique_ptr<CoreModel>> cores;        // made when a core gets its first block
  std::vector<std::unique_ptr<TimedBlock>> idle_blocks; // to be used again
  std::vector<BlockSpan> spans;
  std::vector<WarpCounters> warps;

  [[nodiscard]] TimedCounters counters(std::vector<BlockSpan> ended_blocks,
                                       std::vector<WarpCounters> ended_warps) const;

  [[nodiscard]] uint32_t place_of(uint32_t core, uint32_t rank) const {
    return core * run.machine.blocks_per_core + rank;
  }

  void watch(uint32_t core) { core_events.set(core, cores[core]->next_cycle()); }

  void count_ended(const TimedBlock& block) {
    const bool is_kept = spans.size() < TimedCounters::kMaxSpans;
    const auto count = static_cast<uint32_t>(block.warps.size());
    if (is_kept) {
      spans.push_back(block.span);
    }
    if (!block.is_as_first) {
      for (const TimedWarp& warp : block.warps) {
        issued_cycles += warp.counters.issued_cycles;
        stalls.add(warp.counters.stalls);
        if (is_kept) {
          warps.push_back(warp.counters);
        }
      }
      return;
    }
    const WarpCounters& of_each = block.warps[0].counters;
    issued_cycles += count * of_each.issued_cycles;
    for (unsigned reason = 0; reason < kStallReasonCount; ++reason) {
      stalls.cycles[reason] += count * of_each.stalls.cycles[reason];
    }
    for (uint32_t w = 0; is_kept && w < count; ++w) {
      warps.push_back(of_each);
      warps.back().warp = w;
    }
  }

  void collect_ended(uint32_t core) {
    while (cores[core]->has_ended()) {
      std::unique_ptr<TimedBlock> block = cores[core]->take_ended();
      if (spans.empty()) { // address space alone, until it is used
        spans.reserve(TimedCounters::kMaxSpans);
        warps.reserve(TimedCounters::kMaxSpans * block->warps.size());
      }
      --live_blocks;
      end_cycle = std::max(end_cycle, block->span.end_cycle + run.machine.launch.block_end_cycles);
      count_ended(*block);
      run.host.retire(block->place);
      free_places.push(
          {static_cast<double>(block->span.end_cycle) + run.machine.launch.block_end_cycles,
           block->place % run.machine.blocks_per_core,
           core});
      idle_blocks.push_back(std::move(block));
    }
  }

  [[nodiscard]] double next_dispatch() const {
    if (is_grid_empty || free_places.empty()) {
      return std::numeric_limits<double>::infinity();
    }
    return std::max(free_places.top().cycle, dispatcher_free);
  }

  void dispatch(double cycle) {
    const FreePlace place = free_places.top();
    const std::optional<AdmittedBlock> admitted =
        run.host.admit(place_of(place.core, place.rank), place.core);
    if (!admitted) {
      is_grid_empty = true;
      return;
    }
    free_places.pop();
    dispatcher_free = cycle + run.machine.launch.dispatch_interval_cycles;
    std::unique_ptr<TimedBlock> block;
    if (idle_blocks.empty()) {
      block = std::make_unique<TimedBlock>();
    } else {
      block = std::move(idle_blocks.back());
      idle_blocks.pop_back();
    }
    block->restart(admitted->warps);
    block->place = place_of(place.core, place.rank);
    block->span.block = admitted->block;
    block->span.core = place.core;
    block->span.dispatch_cycle = whole_cycle(cycle);
    block->span.start_cycle = whole_cycle(cycle) + run.machine.launch.block_start_cycles;
    ++live_blocks;
    if (!cores[place.core]) {
      cores[place.core] = std::make_unique<CoreModel>(run, place.core);
    }
    cores[place.core]->start_block(std::move(block), admitted->scratchpad_bytes);
    collect_ended(place.core);
    watch(place.core);
  }

  void finish_atomics(double cycle) {
    run.shared.run_atomics(cycle, [&](uint64_t token, double done) {
      const auto found = run.atomics.find(token);
      const RunState::PendingAtomic atomic = found->second;
      run.atomics.erase(found);
      const uint32_t core = atomic.warp->block->span.core;
      cores[core]->finish_atomic(atomic, done);
      collect_ended(core);
      watch(core);
    });
  }

  TimedStop run_on(bool only_one) {
    run.is_gated = run.host.is_gated();
    const TimedStop stop = advance(only_one);
    for (const std::unique_ptr<CoreModel>& core : cores) {
      if (core) {
        core->stand_apart();
      }
    }
    return stop;
  }

  /// Every block has ended; the last cycle may yet lie past the limit.
  [[nodiscard]] TimedStop finished() const {
    return end_cycle > options_copy.max_cycles ? TimedStop::kMaxCycles : TimedStop::kFinished;
  }

  TimedStop advance(bool only_one) {
    for (;;) {
      if (run.host.wants_stop()) {
        return TimedStop::kHostStop;
      }
      const CoreQueue::Event event = core_events.first();
      const double core_cycle = event.cycle == kNever ? std::numeric_limits<double>::infinity()
                                                      : static_cast<double>(event.cycle);
      const double atomic_cycle = run.shared.next_event();
      const double dispatch_cycle = next_dispatch();
      const double first = std::min({core_cycle, atomic_cycle, dispatch_cycle});
      if (first == std::numeric_limits<double>::infinity()) {
        return live_blocks == 0 ? finished() : TimedStop::kDeadlock;
      }
      if (live_blocks == 0 && is_grid_empty) {
        return finished(); // reductions that nobody waits for may still be under way
      }
      if (first >= static_cast<double>(options_copy.max_cycles)) {
        // The end is seen when no further block is there to dispatch, which may be later.
        is_grid_empty = is_grid_empty || !run.host.has_more_blocks();
        return live_blocks == 0 && is_grid_empty ? finished() : TimedStop::kMaxCycles;
      }
      if (dispatch_cycle == first) {
        dispatch(dispatch_cycle);
      } else if (atomic_cycle == first) {
        finish_atomics(atomic_cycle);
      } else {
        const bool is_complete = cores[event.core]->tick(event.cycle, only_one);
        collect_ended(event.core);
        watch(event.core);
        if (!is_complete) {
          return TimedStop::kHostStop;
        }
      }
    }
  }
};

TimingModel::TimingModel(const isa::MachineProfile& machine,
                         const ProgramTiming& program,
                         SharedMemory& shared,
                         TimedHost& host,
                         const TimingOptions& options)
    : impl_(std::make_unique<Impl>(machine, program, shared, host, options)) {}

TimingModel::~TimingModel() = default;

TimedStop TimingModel::run() {
  return impl_->run_on(false);
}

TimedStop TimingModel::step() {
  return impl_->run_on(true);
}

uint64_t TimingModel::cycle() const {
  return impl_->run.latest_issue;
}

const Timeline& TimingModel::timeline() const {
  return impl_->run.timeline;
}

Timeline TimingModel::take_timeline() {
  return std::move(impl_->run.timeline);
}

TimedCounters TimingModel::counters() const {
  return impl_->counters(impl_->spans, impl_->warps);
}

TimedCounters TimingModel::take_counters() {
  return impl_->counters(std::move(impl_->spans), std::move(impl_->warps));
}

TimedCounters TimingModel::Impl::counters(std::vector<BlockSpan> ended_blocks,
                                          std::vector<WarpCounters> ended_warps) const {
  const Impl& impl = *this;
  TimedCounters counters;
  counters.cycles = std::max(impl.end_cycle, impl.live_blocks == 0 ? 0 : impl.run.latest_issue + 1);
  counters.warp_insns = impl.run.warp_insns;
  counters.lane_insns = impl.run.lane_insns;
  counters.lane_slots = impl.run.warp_insns * isa::kWarpLanes;
  counters.issued_cycles = impl.issued_cycles;
  counters.stalls = impl.stalls;
  counters.by_pc = impl.run.by_pc;
  counters.shared = impl.run.shared.counters();
  counters.blocks = std::move(ended_blocks);
  counters.warps = std::move(ended_warps);
  for (const std::unique_ptr<CoreModel>& core : impl.cores) {
    // Warps of blocks that have not ended: what they have come to so far.
    for (const TimedBlock* block : core ? core->blocks() : std::vector<const TimedBlock*>()) {
      for (const TimedWarp& warp : block->warps) {
        counters.issued_cycles += warp.counters.issued_cycles;
        counters.stalls.add(warp.counters.stalls);
        if (counters.warps.size() < TimedCounters::kMaxSpans) {
          counters.warps.push_back(warp.counters);
          counters.warps.back().elapsed_cycles =
              warp.counters.issued_cycles + warp.counters.stalls.total();
        }
      }
    }
    counters.cores.push_back(core ? core->counters() : CoreCounters{});
    counters.memory.add(counters.cores.back().memory);
  }
  return counters;
}

TimingModel::WarpStatus TimingModel::status(uint32_t place, uint32_t warp) const {
  WarpStatus status;
  const uint32_t core = place / impl_->run.machine.blocks_per_core;
  const TimedBlock* block = core < impl_->cores.size() && impl_->cores[core]
                                ? impl_->cores[core]->block_at(place)
                                : nullptr;
  if (block == nullptr || warp >= block->warps.size()) {
    status.is_done = true;
    return status;
  }
  const TimedWarp& state = block->warps[warp];
  status.is_done = state.is_done;
  status.is_blocked = state.is_blocked;
  status.ready_cycle = state.ready;
  if (state.is_blocked) {
    status.reason = state.blocked_reason;
    return status;
  }
  const Holds& holds = state.holds;
  const uint64_t ready = holds.ready();
  const bool is_past_now = state.cursor > impl_->run.latest_issue;
  status.has_issued = is_past_now && state.counters.issued_cycles != 0;
  if (ready <= impl_->run.latest_issue && is_past_now && !status.has_issued) {
    status.reason = StallReason::kEmpty; // its block is still to begin
  } else if (ready <= impl_->run.latest_issue) {
    const CoreModel::UnitWait unit = impl_->cores[core]->unit_wait(state);
    status.reason = unit.until > impl_->run.latest_issue ? unit.reason : StallReason::kIssueSlot;
  } else if (ready == holds.operand.done_cycle) {
    status.reason = holds.operand.late_cycles != 0 ? holds.operand.reason : StallReason::kOperand;
    status.cause_pc = holds.operand.writer_pc;
    if (holds.operand_index < kScoreCount) {
      status.operand = score_name(holds.operand_index);
    }
  } else if (ready == holds.fetch) {
    status.reason = StallReason::kFetch;
  } else {
    status.reason = ready == holds.hold ? holds.hold_reason : StallReason::kBranch;
  }
  return status;
}

// What grows by appending alone is cut back to its length; the rest is copied.
struct TimingModel::Saved final : TimingState {
  explicit Saved(const SharedMemory& memory) : shared(memory) {}

  [[nodiscard]] uint64_t size_bytes() const override {
    uint64_t sum = sizeof(Saved) + counts.by_pc.size() * sizeof(PcCounters) + shared.size_bytes();
    for (const std::unique_ptr<CoreModel>& core : cores) {
      sum += core ? core->size_bytes() : 0;
    }
    return sum;
  }

  SharedMemory shared;
  std::vector<std::unique_ptr<CoreModel>> cores;
  std::unordered_map<uint64_t, RunState::PendingAtomic> atomics;
  Timeline::Mark timeline;
  RunCounts counts;
  LoopState loop;
  size_t span_count = 0;
  size_t warp_count = 0;
};

namespace {

/// Deep copies of the cores, and of the atomics that point into them.
void copy_cores(const std::vector<std::unique_ptr<CoreModel>>& from,
                const std::unordered_map<uint64_t, RunState::PendingAtomic>& atomics,
                std::vector<std::unique_ptr<CoreModel>>& to,
                std::unordered_map<uint64_t, RunState::PendingAtomic>& to_atomics) {
  WarpCopies copies;
  std::vector<std::unique_ptr<CoreModel>> cores;
  cores.reserve(from.size());
  for (const std::unique_ptr<CoreModel>& core : from) {
    cores.push_back(core ? std::make_unique<CoreModel>(*core, copies) : nullptr);
  }
  to_atomics = atomics;
  for (auto& [token, atomic] : to_atomics) {
    atomic.warp = copies.at(atomic.warp);
  }
  to = std::move(cores);
}

} // namespace

std::unique_ptr<const TimingState> TimingModel::save() const {
  const Impl& impl = *impl_;
  auto saved = std::make_unique<Saved>(impl.run.shared);
  copy_cores(impl.cores, impl.run.atomics, saved->cores, saved->atomics);
  saved->timeline = impl.run.timeline.mark();
  saved->counts = impl.run;
  saved->loop = impl;
  saved->span_count = impl.spans.size();
  saved->warp_count = impl.warps.size();
  return saved;
}

void TimingModel::restore(const TimingState& state) {
  const auto& saved = dynamic_cast<const Saved&>(state);
  Impl& impl = *impl_;
  copy_cores(saved.cores, saved.atomics, impl.cores, impl.run.atomics);
  impl.run.shared.restore(saved.shared);
  impl.run.timeline.rewind(saved.timeline);
  static_cast<RunCounts&>(impl.run) = saved.counts;
  impl.run.has_fault = false;
  static_cast<LoopState&>(impl) = saved.loop;
  impl.spans.resize(saved.span_count);
  impl.warps.resize(saved.warp_count);
}

bool TimingModel::is_fused_with_previous(uint32_t pc) const {
  return pc != 0 && pc < impl_->run.program.size() &&
         impl_->run.program[pc - 1].fused_with_next != nullptr;
}

const CoreMemory* TimingModel::core_memory(uint32_t core) const {
  return core < impl_->cores.size() && impl_->cores[core] ? &impl_->cores[core]->memory() : nullptr;
}

} // namespace pto::sim
