// SPDX-License-Identifier: Apache-2.0
// The cycle-approximate model: decides in which cycle each warp issues its next insn.
//
// The model owns the order of a timed run. It asks a TimedHost (the engine) for blocks and for the
// next insn of each warp, lets the host execute one warp insn at the cycle where it issues, and
// books what the host's IssueRecord says. It sees no values, so results cannot depend on it.
//
// How it works. Cores are advanced by events: each knows the next cycle in which one of its warps
// may issue. A warp's next issue is held by, in this order: code fetch, the last branch, a barrier,
// wait or fence, its operands (scoreboard), its unit, and the scheduler's choice; each cycle
// without an issue is charged to the first of them that still holds, so that issued and stalled
// cycles add up to the elapsed ones by construction. Memory is in core_memory.h and
// shared_memory.h.
#pragma once

#include "isa/machine.h"
#include "isa/object.h"
#include "simulator/issue_record.h"
#include "simulator/timing/core_memory.h"
#include "simulator/timing/counters.h"
#include "simulator/timing/insn_timing.h"
#include "simulator/timing/shared_memory.h"
#include "simulator/timing/timeline.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace pto::sim {

/// A block that the host has put on a core.
struct AdmittedBlock {
  uint64_t block = 0; // linear index
  uint32_t warps = 0;
  uint32_t lanes = 0;
  uint32_t scratchpad_bytes = 0; // static use
};

/// What executes: implemented by the engine. `place` is the model's name of a resident block, below
/// cores * blocks_per_core.
class TimedHost {
public:
  virtual ~TimedHost() = default;
  /// Puts the next block of the grid on a core; nothing when none is left.
  virtual std::optional<AdmittedBlock> admit(uint32_t place, uint32_t core) = 0;
  /// admit() would give one.
  [[nodiscard]] virtual bool has_more_blocks() const = 0;
  /// The block has ended; its place is free.
  virtual void retire(uint32_t place) = 0;
  /// Where the warp stands. `is_blocked`: it waits at a barrier that others must reach.
  struct Next {
    uint32_t pc = 0;
    bool is_done = false;
    bool is_blocked = false;
  };
  virtual Next next(uint32_t place, uint32_t warp) = 0;
  /// Executes the warp's next insn; %clock reads `cycle`. The record is valid until the next call.
  virtual const IssueRecord& step(uint32_t place, uint32_t warp, uint64_t cycle) = 0;
  /// As step and then next, where the insn only writes registers and nothing else is to be known of
  /// it: `lanes` get the lanes that executed it. False, and nothing done: it takes a step.
  virtual bool step_plain(uint32_t /*place*/,
                          uint32_t /*warp*/,
                          uint64_t /*cycle*/,
                          uint32_t& /*lanes*/,
                          Next& /*next*/) {
    return false;
  }
  /// Executes the next insn of all warps of a block, in their order, as so many calls of step with
  /// nothing in between. Null: it did nothing, because it cannot or because one of them must stop
  /// the run. Where warps stand is to be asked for only after stand_apart, or when the record says
  /// that they no longer are together.
  virtual const GroupRecord* step_together(uint32_t /*place*/, uint64_t /*cycle*/) {
    return nullptr;
  }
  virtual void stand_apart(uint32_t /*place*/) {}
  /// True when the run must end now (fault, breakpoint, interrupt).
  virtual bool wants_stop() = 0;
  /// Asked right before a warp issues; false stops the run in front of that insn.
  virtual bool may_issue(uint32_t /*place*/, uint32_t /*warp*/, uint64_t /*cycle*/) { return true; }
  /// False: may_issue always agrees, and between two insns of a cycle must_stop() says as much as
  /// wants_stop(). Asked when a run starts.
  virtual bool is_gated() { return true; }
  [[nodiscard]] bool must_stop() const { return must_stop_; }

protected:
  bool must_stop_ = false; // after a fault or at a limit
};

/// The state of a TimingModel and of the SharedMemory it uses, as a value: see TimingModel::save.
class TimingState {
public:
  virtual ~TimingState() = default;
  [[nodiscard]] virtual uint64_t size_bytes() const = 0;
};

struct TimingOptions {
  uint64_t max_cycles = UINT64_MAX; // nothing happens from this cycle on
  bool record_timeline = false;
  TimelineLimits timeline_limits;
};

/// Why run() came back.
enum class TimedStop : uint8_t { kFinished, kHostStop, kMaxCycles, kDeadlock };

class TimingModel {
public:
  /// All references must outlive the model. `shared` carries L2 from launch to launch.
  TimingModel(const isa::MachineProfile& machine,
              const ProgramTiming& program,
              SharedMemory& shared,
              TimedHost& host,
              const TimingOptions& options = {});
  ~TimingModel();
  TimingModel(const TimingModel&) = delete;
  TimingModel& operator=(const TimingModel&) = delete;

  /// Runs until the grid is done or something stops it; may be called again after kHostStop.
  TimedStop run();
  /// Runs until one more warp insn has issued, or as run().
  TimedStop step();

  /// Cycle of the latest issue.
  [[nodiscard]] uint64_t cycle() const;
  [[nodiscard]] const Timeline& timeline() const;
  /// Counters up to now; complete after kFinished.
  [[nodiscard]] TimedCounters counters() const;
  /// The same of a model that will not run again and keeps no lists: they are long.
  [[nodiscard]] TimedCounters take_counters();
  [[nodiscard]] Timeline take_timeline();
  /// Why a warp is not issuing now, for the debugger.
  struct WarpStatus {
    bool is_done = false;
    bool is_blocked = false;  // at a barrier
    bool has_issued = false;  // in the latest cycle in which any warp did; it has had its turn
    uint64_t ready_cycle = 0; // earliest next issue; UINT64_MAX: depends on others
    StallReason reason = StallReason::kOperand;
    uint32_t cause_pc = UINT32_MAX; // insn whose result is awaited
    std::string operand;            // "r3"
  };
  [[nodiscard]] WarpStatus status(uint32_t place, uint32_t warp) const;
  /// The data cache of a core, for looking into it; null for a core that has run nothing.
  [[nodiscard]] const CoreMemory* core_memory(uint32_t core) const;
  /// True if `pc` issues together with the insn before it when that one comes first.
  [[nodiscard]] bool is_fused_with_previous(uint32_t pc) const;

  /// A copy of everything that changes while the model runs. Only while it does not run.
  [[nodiscard]] std::unique_ptr<const TimingState> save() const;
  /// Goes back to a state of this model; the host must go back as well. From there the run repeats
  /// itself exactly.
  void restore(const TimingState& state);

private:
  struct Saved;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace pto::sim
