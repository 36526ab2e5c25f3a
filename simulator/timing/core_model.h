// SPDX-License-Identifier: Apache-2.0
// One core in a timed run: resident blocks and warps, readiness, issue and booking.
#pragma once

#include "isa/machine.h"
#include "simulator/timing/core_memory.h"
#include "simulator/timing/counters.h"
#include "simulator/timing/l1_ledger.h"
#include "simulator/timing/scoreboard.h"
#include "simulator/timing/server.h"
#include "simulator/timing/timing_model.h"

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

namespace pto::sim {

struct TimedBlock;

/// What holds a warp's next issue, each with the cycle in which it lets go.
struct Holds {
  uint64_t fetch = 0;
  uint64_t branch = 0;
  uint64_t hold = 0; // barrier, nop, start of the block
  StallReason hold_reason = StallReason::kEmpty;
  ScoreEntry operand; // the latest of the operands, copies and stores that are awaited
  ScoreIndex operand_index = kScoreCount;

  [[nodiscard]] uint64_t ready() const {
    return std::max(std::max(fetch, branch), std::max(hold, operand.done_cycle));
  }
};

/// A warp's state but for its scoreboard.
struct WarpProgress {
  TimedBlock* block = nullptr;
  uint32_t warp = 0; // within the block
  uint32_t pc = 0;
  bool is_done = false;
  bool is_blocked = false; // at a barrier, until another warp releases it
  StallReason blocked_reason = StallReason::kBlockBarrier;
  uint64_t cursor = 0; // first cycle that is not accounted for
  uint64_t branch_ready = 0;
  uint64_t hold_until = 0;
  StallReason hold_reason = StallReason::kEmpty;
  ScoreEntry stores;  // the latest store, for fences
  uint64_t ready = 0; // Holds::ready() of the next insn; kNever while blocked
  uint64_t sight = 0; // CoreModel::sight_ when `ready` was found
  int unit = -1;      // that the next insn needs; -1: none
  bool is_free = false;
  uint32_t scheduler = 0;
  uint32_t slot = 0; // in the scheduler's list
  Holds holds;
  WarpCounters counters;
};

struct TimedWarp : WarpProgress {
  Scoreboard score;
};

struct TimedBlock {
  /// As new, with so many warps; each has to be started before it is used.
  void restart(uint32_t warp_count);
  /// A warp as new. Of its scoreboard only what the program writes can be set.
  void start_warp(uint32_t number, const ProgramTiming& program);

  uint32_t place = 0;
  uint32_t live_warps = 0;
  uint32_t blocked_warps = 0;
  uint32_t pending_atomics = 0;
  /// Its warps have been in step from the start: the first one's state, and the number, is the
  /// state of each. The others are not started and no scheduler knows any of them.
  bool is_as_first = false;
  uint64_t end_cycle = 0; // all results so far
  BlockSpan span;
  std::vector<TimedWarp> warps;
  std::array<ScoreEntry, isa::kEventCount> events{};
  ScoreEntry copies; // the latest of all copies
  std::vector<std::pair<uint32_t, ScoreEntry>> tiles;
  L1Ledger l1;

  ScoreEntry& tile(uint32_t key);
};

/// What the cores count together.
struct RunCounts {
  std::vector<PcCounters> by_pc;
  uint64_t warp_insns = 0;
  uint64_t lane_insns = 0;
  uint64_t latest_issue = 0;
  uint64_t next_token = 0;
};

/// What the cores share in one run.
struct RunState : RunCounts {
  const isa::MachineProfile& machine;
  const ProgramTiming& program;
  SharedMemory& shared;
  TimedHost& host;
  const TimingOptions& options;
  Timeline timeline;
  bool has_fault = false; // the latest insn ended the run
  bool is_gated = true;   // TimedHost::is_gated()
  struct PendingAtomic {
    TimedWarp* warp = nullptr;
    uint32_t pc = 0;
    uint64_t base_cycle = 0;
    size_t timeline_index = SIZE_MAX;
    bool writes_result = false;
  };
  std::unordered_map<uint64_t, PendingAtomic> atomics;
};

/// Where the copy of a warp is.
using WarpCopies = std::unordered_map<const TimedWarp*, TimedWarp*>;

class CoreModel {
public:
  CoreModel(RunState& run, uint32_t core);
  /// A deep copy for snapshots, and back from one; tells where each warp's copy is.
  CoreModel(const CoreModel& other, WarpCopies& copies);

  /// The block has been restarted.
  void start_block(std::unique_ptr<TimedBlock> block, uint32_t scratchpad_bytes);
  /// Issues what may issue in this cycle. False when the host wants to stop or, with `only_one`,
  /// after one insn; the cycle is then unfinished and a further call goes on with it.
  bool tick(uint64_t cycle, bool only_one);
  /// The next cycle in which something may issue; kNever: only an event from outside helps.
  [[nodiscard]] uint64_t next_cycle() const { return next_cycle_; }
  /// A warp's atomic has its result.
  void finish_atomic(const RunState::PendingAtomic& atomic, double cycle);
  [[nodiscard]] bool has_ended() const { return !ended_.empty(); }
  /// A block that has ended; there must be one.
  std::unique_ptr<TimedBlock> take_ended();

  /// Between two runs of the model everything is there warp by warp.
  void stand_apart() {
    if (together_ != nullptr) {
      part();
    }
  }

  [[nodiscard]] const TimedBlock* block_at(uint32_t place) const;
  [[nodiscard]] bool has_blocks() const { return !blocks_.empty(); }
  [[nodiscard]] const CoreMemory& memory() const { return memory_; }
  [[nodiscard]] CoreCounters counters() const;
  [[nodiscard]] std::vector<const TimedBlock*> blocks() const;
  [[nodiscard]] uint64_t size_bytes() const;
  /// Until when the unit of the warp's next insn was seen busy, and why; cycle 0: it was not.
  struct UnitWait {
    uint64_t until = 0;
    StallReason reason = StallReason::kUnit;
  };
  [[nodiscard]] UnitWait unit_wait(const TimedWarp& warp) const;

private:
  struct Scheduler {
    std::vector<TimedWarp*> warps; // oldest first
    // Of these: TimedWarp::ready and unit + 1, side by side because every choice looks at many.
    std::vector<uint64_t> ready;
    std::vector<uint8_t> unit;
    size_t after = 0;    // round robin: where to look first
    uint32_t issued = 0; // in the current cycle

    void add(TimedWarp& warp);
    void remove(const TimedBlock& block);
  };

  /// Finds when the warp's next insn may issue.
  void prepare(TimedWarp& warp) { prepare(warp, run_.host.next(warp.block->place, warp.warp)); }
  void prepare(TimedWarp& warp, const TimedHost::Next& next) {
    const bool goes_on = !next.is_done && !next.is_blocked && !warp.is_blocked;
    if (goes_on && !has_fetch_ && run_.program[next.pc].awaits_registers) {
      await_registers(warp, next.pc);
    } else {
      find_ready(warp, next);
    }
    Scheduler& scheduler = schedulers_[warp.scheduler];
    scheduler.ready[warp.slot] = warp.ready;
    scheduler.unit[warp.slot] = static_cast<uint8_t>(warp.unit + 1);
  }
  /// As find_ready of a warp that goes on, where code is there and the insn awaits_registers.
  void await_registers(TimedWarp& warp, uint32_t pc) const;
  void find_ready(TimedWarp& warp, const TimedHost::Next& next);
  void find_holds(TimedWarp& warp, const InsnTiming& timing);
  /// What may hold it, but for code: a branch, a barrier, the latest of its registers.
  static void hold_for_control(TimedWarp& warp);
  static void hold_for_registers(TimedWarp& warp, const InsnTiming& timing);
  [[nodiscard]] uint64_t fetch_ready(uint64_t line, uint64_t cycle);
  /// When a pipe of it is free; unit + 1, 0: no unit.
  [[nodiscard]] double unit_free(unsigned unit) const {
    return unit == kMemoryUnit ? memory_.pipe_free_cycle() : pipes_[unit].next_free();
  }
  /// Makes Scheduler::issued that of the cycle at hand.
  void begin_issues();
  TimedWarp* pick(Scheduler& scheduler, uint64_t cycle);
  [[nodiscard]] bool may_issue(const Scheduler& scheduler, size_t at, uint64_t cycle) const {
    return scheduler.ready[at] <= cycle &&
           unit_free(scheduler.unit[at]) < static_cast<double>(cycle + 1);
  }
  void issue(TimedWarp& warp, uint64_t cycle) {
    const InsnTiming& timing = run_.program[warp.pc];
    if (!timing.is_of_lanes || run_.options.record_timeline) {
      issue_any(warp, timing, cycle);
    } else if (!timing.is_plain || !issue_plain(warp, timing, cycle)) {
      issue_of_lanes(warp, timing, cycle);
    }
  }
  void issue_any(TimedWarp& warp, const InsnTiming& timing, uint64_t cycle);
  /// The same without a timeline of an insn of lanes alone, and of a plain one: most of what can
  /// come with others is left out. False, and nothing done: the host executes it as any other.
  void issue_of_lanes(TimedWarp& warp, const InsnTiming& timing, uint64_t cycle);
  bool issue_plain(TimedWarp& warp, const InsnTiming& timing, uint64_t cycle);
  /// Of an insn of lanes alone that does not go to memory: when its results are there.
  ScoreEntry book_pipe(const TimedWarp& warp, const InsnTiming& timing, uint64_t cycle);
  /// Accounts for the cycles since the warp's latest issue. `entry` may be null, here and below:
  /// no timeline is recorded.
  void
  charge(TimedWarp& warp, uint64_t cycle, bool is_free, TimelineEntry* entry, uint32_t warps = 1);
  /// The same of an insn that takes a slot, without a timeline.
  void charge_issue(TimedWarp& warp, uint64_t cycle) {
    if (warp.cursor < cycle) {
      charge(warp, cycle, false, nullptr);
      return;
    }
    ++warp.counters.issued_cycles;
    warp.cursor = cycle + 1;
  }
  /// Executes and books one insn; returns when its result is there.
  ResultTime execute(TimedWarp& warp, uint64_t cycle, TimelineEntry* entry, double fused_latency);
  ResultTime book_memory(TimedWarp& warp,
                         const IssueRecord& record,
                         const InsnTiming& timing,
                         uint64_t cycle,
                         const TimelineEntry* entry,
                         bool& is_pending);
  /// Copies and other work of a unit that is not the load/store pipe.
  ResultTime book_unit(TimedBlock& block,
                       const IssueRecord& record,
                       const InsnTiming& timing,
                       double latency,
                       uint64_t cycle,
                       TimelineEntry* entry);
  /// A lane access to bytes of l1 that a matrix operation still uses comes after it; and remembers
  /// the access for copies and matrix operations that follow.
  void delay_in_l1(TimedBlock& block,
                   const IssueRecord& record,
                   uint64_t cycle,
                   ResultTime& result) const;
  void book_control(TimedWarp& warp,
                    uint32_t nop_cycles,
                    const InsnTiming& timing,
                    uint64_t cycle) const;
  /// Notes in the scoreboard when the results of an insn are there.
  void settle(TimedWarp& warp, const InsnTiming& timing, ScoreEntry score, uint64_t cycle) const;
  void count_issues(uint32_t pc, uint32_t warps, uint32_t lanes, uint64_t cycle) {
    PcCounters& by_pc = run_.by_pc[pc];
    by_pc.issues += warps;
    by_pc.lane_ops += lanes;
    counters_.insns += warps;
    run_.warp_insns += warps;
    run_.lane_insns += lanes;
    run_.latest_issue = cycle;
  }

  // ------------------------------------------------ warps in step (lockstep.cc)
  [[nodiscard]] bool can_go_together(const TimedBlock& block) const;
  /// From now on the first warp stands for all; their state is the same.
  void join(TimedBlock& block);
  /// Starts the warps that the first one has stood for from the start.
  void start_others(TimedBlock& block);
  /// After a cycle in which every warp of the only block has issued.
  void join_if_alike(uint64_t cycle);
  /// As tick, which has begun. False: nothing issued, the warps go apart.
  bool tick_together(uint64_t cycle);
  /// Books an insn of each warp; scores_ says when the results are there. True if that is the same
  /// for all, and then scores_[0] says it.
  bool book_together(const GroupRecord& record, const InsnTiming& timing, uint64_t cycle);
  ResultTime
  book_access(const GroupRecord& record, uint32_t warp, const InsnTiming& timing, uint64_t cycle);
  void describe_together(const GroupRecord& record,
                         const InsnTiming& timing,
                         uint64_t cycle,
                         bool are_equal,
                         const TimelineEntry& first);
  /// Gives every warp what the first one stands for.
  void part();
  /// The same of warps that have ended, as far as anybody asks.
  void end_together();
  /// Adds what the first warp has counted since they fell into step.
  void add_counts_together(WarpCounters& counters) const;
  /// As find_next_cycle, for the insn that they all execute next.
  void find_next_together(uint64_t from);

  /// What the timeline says of it, as far as its time is not needed.
  void describe(const TimedBlock& block,
                uint32_t warp,
                uint32_t pc,
                uint32_t active_mask,
                uint32_t exec_mask,
                const InsnTiming& timing,
                uint64_t cycle,
                TimelineEntry& entry) const;
  /// Insns after which a warp that waits may go on.
  static constexpr isa::Flags kReleases = isa::kBlockBarrier | isa::kEndsLane | isa::kWarpBarrier;
  /// Lets warps go on that the host no longer blocks, after an insn `by` that issued in that cycle.
  void release_blocked(TimedBlock& block, uint64_t issue_cycle, const InsnTiming& by);
  void end_warp(TimedWarp& warp);
  void maybe_end_block(TimedBlock& block) {
    if (block.live_warps == 0 && block.pending_atomics == 0) {
      end_block(block);
    }
  }
  void end_block(TimedBlock& block);
  void find_next_cycle(uint64_t cycle);
  /// The rest of tick. kIsWhole: neither is only_one set nor does a gate look on.
  template <bool kIsWhole> bool issue_in_turn(uint64_t cycle, bool only_one);

  static constexpr unsigned kMemoryUnit = static_cast<unsigned>(isa::Unit::kM) + 1;

  RunState& run_;
  uint32_t core_;
  CoreMemory memory_;
  CacheTags code_;
  std::array<Servers, isa::kUnitCount + 1> pipes_; // by unit + 1; M's are memory_'s
  std::vector<std::unique_ptr<TimedBlock>> blocks_;
  std::vector<std::unique_ptr<TimedBlock>> ended_;
  TimedBlock* together_ = nullptr;   // whose warps are in step: its first warp stands for all
  uint64_t together_cycle_ = kNever; // of the latest issue in step
  WarpCounters together_from_;       // the first warp's when they fell into step
  std::array<ScoreEntry, GroupRecord::kMaxWarps> scores_; // of the latest insn in step, by warp
  bool may_join_ = false;        // the only block is one that can go in step
  uint64_t next_join_cycle_ = 0; // not to look in vain too often
  uint64_t join_pause_cycles_ = 1;
  std::vector<Scheduler> schedulers_;
  uint32_t issue_width_ = 1; // of one scheduler
  bool is_round_robin_ = false;
  bool has_fetch_ = false;             // code may have to be waited for
  bool shares_memory_pipe_ = false;    // of the schedulers: they take turns
  size_t first_scheduler_ = 0;         // whose turn it is
  uint64_t fetched_line_ = UINT64_MAX; // of code, the latest that was there
  uint64_t fetched_ready_ = 0;
  uint64_t next_cycle_ = kNever;
  // What the latest find_next_cycle saw, by unit + 1.
  std::array<double, isa::kUnitCount + 1> seen_free_{};
  double seen_held_until_ = 0;
  uint64_t sight_ = 0; // counts its calls
  uint64_t ticked_cycle_ = kNever;
  uint64_t issued_cycle_ = kNever; // that Scheduler::issued is of
  size_t ticked_first_ = 0;        // first_scheduler_ when that cycle began
  uint32_t next_scheduler_ = 0;    // offset for new warps
  CoreCounters counters_;
};

inline void CoreModel::hold_for_control(TimedWarp& warp) {
  Holds& holds = warp.holds;
  holds.fetch = 0;
  holds.branch = warp.branch_ready;
  holds.hold = warp.hold_until;
  holds.hold_reason = warp.hold_reason;
}

inline void CoreModel::hold_for_registers(TimedWarp& warp, const InsnTiming& timing) {
  uint64_t latest = 0;
  ScoreIndex latest_index = kScoreCount;
  for (const ScoreIndex index : timing.awaits) {
    const uint64_t done = warp.score[index].done_cycle;
    if (done > latest) {
      latest = done;
      latest_index = index;
    }
  }
  warp.holds.operand_index = latest_index;
  if (latest != 0) {
    warp.holds.operand = warp.score[latest_index];
  } else {
    warp.holds.operand = {};
  }
}

inline void CoreModel::await_registers(TimedWarp& warp, uint32_t pc) const {
  const InsnTiming& timing = run_.program[pc];
  warp.pc = pc;
  warp.sight = sight_;
  warp.is_free = false;
  warp.unit = timing.unit;
  hold_for_control(warp);
  hold_for_registers(warp, timing);
  warp.ready = std::max(warp.cursor, warp.holds.ready());
}

} // namespace pto::sim
