// SPDX-License-Identifier: Apache-2.0
// One resident block: the state of its lanes, warps and scratchpad, and its execution.
//
// Two ways to run it. step(warp) executes one insn of one warp and says what happened; drivers that
// choose an order (timing, schedules, debugger) use that. run(budget) executes many: while warps
// stand at one pc it executes an insn for all their lanes at once (a span), otherwise warp by warp,
// and rejoins them where their paths meet.
//
// Divergence. A warp has a current part (pc, mask, join) and a stack of waiting parts. A branch
// that splits it leaves the whole at the branch's join and runs first the lanes that fall through,
// then those that jump. A part that reaches its join is dropped and the part below goes on with all
// lanes. EXIT takes lanes out of every part. CALL puts the caller's lanes at the next insn and
// starts a part for the function; RET takes lanes out of the parts of that call, so that lanes that
// return early, and lanes whose guard kept them from calling, wait for the others.
//
// BARRIER_BLOCK joins all lanes of the block that have not exited. A warp arrives with the lanes
// that execute it; if others of its lanes live they cannot run before these go on, so the barrier
// never fills: a deadlock, which deadlock_fault() explains. A warp none of whose lanes execute it
// (guard) passes over it. Warps that arrive at different ids wait for each other in vain, too.
#pragma once

#include "simulator/fault.h"
#include "simulator/issue_record.h"
#include "simulator/launch.h"
#include "simulator/scratchpad.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace pto::sim {

class AccessGate;
class AccessLedger;
class BlockContext;

enum class WarpStatus : uint8_t {
  kReady,
  kAtBlockBarrier, // WarpState::barrier_id
  kWaitingEvent,   // WarpState::wait_event
  kWaitingAll,
  kDone,
};
std::string_view name(WarpStatus status);

/// A waiting part of a diverged warp: goes on at pc when the parts above are gone.
struct StackEntry {
  uint32_t pc = 0;
  uint32_t join_pc = isa::kNoReconvergence;
  uint32_t mask = 0;
  bool is_call_base = false; // the outermost part of a called function
};

struct WarpState {
  uint32_t pc = 0;
  uint32_t join_pc = isa::kNoReconvergence;
  bool is_call_base = false;
  WarpStatus status = WarpStatus::kReady;
  uint8_t barrier_id = 0;
  int8_t wait_event = -1;
  uint32_t arrived_mask = 0; // lanes that wait at the block barrier
  uint32_t call_depth = 0;
  uint64_t issued = 0;           // insns
  std::vector<StackEntry> stack; // innermost last
};

/// What an `t` register holds.
struct TileState {
  bool is_live = false;
  uint32_t offset = 0;
  uint32_t size_bytes = 0;
};

/// Everything that a block's run changes, hbm apart. A value: copy it to keep a snapshot.
struct BlockState {
  uint64_t index = 0; // linear
  Dim3 ctaid{};
  uint32_t core = 0;
  std::vector<uint32_t> reg32; // [register][lane of the block]
  std::vector<uint64_t> reg64;
  std::vector<uint32_t> preds;  // [predicate][warp]
  std::vector<uint32_t> masks;  // active lanes of each warp's current part; 0: done
  std::vector<uint32_t> exited; // lanes that ended
  std::vector<WarpState> warps;
  Scratchpad scratchpad;
  std::array<TileState, isa::kTileCount> tiles{};
  std::vector<CopyRecord> pending; // copies whose data has not moved, in order of start
  uint64_t copies_started = 0;
  uint8_t events_used = 0; // bit e: some copy was tagged e
  uint64_t barriers_passed = 0;
  InsnCounts counts;
  uint64_t clock = 0;     // %clock, where a driver sets it
  bool has_clock = false; // else %clock counts the insns of the warp
  // Order of run(): which warps have reached the meeting point.
  uint32_t turn = 0;
  uint32_t meeting_pc = isa::kNoReconvergence;
  uint32_t meeting_depth = 0;
  std::vector<uint8_t> parked;
};

enum class BlockStop : uint8_t {
  kDone,    // every lane ended
  kBudget,  // the budget is used up
  kBlocked, // no warp is ready: with copies that the driver holds back, else a deadlock
  kFault,
};

class BlockRun {
public:
  /// Made by Launch::next_block / make_block.
  explicit BlockRun(Launch& launch);
  ~BlockRun();
  BlockRun(const BlockRun&) = delete;
  BlockRun& operator=(const BlockRun&) = delete;

  /// Starts block `index` on `core`; everything else is as new.
  void start(uint64_t index, uint32_t core);

  // ------------------------------------------------ looking
  const LaunchImage& image() const;
  Launch& launch() const { return launch_; }
  uint64_t index() const { return state_.index; }
  uint32_t core() const { return state_.core; }
  uint32_t warp_count() const { return static_cast<uint32_t>(state_.warps.size()); }
  const WarpState& warp(uint32_t warp) const { return state_.warps[warp]; }
  uint32_t active_mask(uint32_t warp) const { return state_.masks[warp]; }
  /// Lanes of the warp that exist and have not exited.
  uint32_t live_mask(uint32_t warp) const;
  bool is_ready(uint32_t warp) const { return state_.warps[warp].status == WarpStatus::kReady; }
  bool is_done() const { return live_warps_ == 0; }
  bool has_fault() const { return fault_.has_value(); }
  const std::optional<Fault>& fault() const { return fault_; }
  bool has_ready_warp() const;
  /// The insn that the warp executes next. The warp must not be done.
  const ProgramInsn& next_insn(uint32_t warp) const;
  /// Lanes in which that insn's guard holds.
  uint32_t next_exec_mask(uint32_t warp) const;
  const InsnCounts& counts() const { return state_.counts; }

  /// `lane` counts within the block. Registers that the kernel does not use read 0.
  uint32_t reg32(unsigned index, uint32_t lane) const;
  uint64_t reg64(unsigned index, uint32_t lane) const;
  /// The 32 lanes of a warp, of a register that the kernel uses; those of the next warps follow.
  const uint32_t* reg32_of_warp(unsigned index, uint32_t warp) const;
  bool pred(unsigned index, uint32_t lane) const;
  void set_reg32(unsigned index, uint32_t lane, uint32_t value);
  void set_reg64(unsigned index, uint32_t lane, uint64_t value);
  void set_pred(unsigned index, uint32_t lane, bool value);
  /// Value that a source operand of that type has in a lane (register, immediate, parameter,
  /// symbol, special register); predicates as 0 / 1.
  uint64_t source_value(const isa::Operand& operand, isa::Type type, uint32_t lane) const;
  /// Address (hbm) or byte offset that a memory operand names in a lane; tile registers without a
  /// tile count as offset 0.
  uint64_t address(const isa::Operand& mem, uint32_t lane) const;
  uint64_t special_value(isa::Special special, uint32_t lane) const;
  const Scratchpad& scratchpad() const { return state_.scratchpad; }
  Scratchpad& scratchpad() { return state_.scratchpad; }
  const std::array<TileState, isa::kTileCount>& tiles() const { return state_.tiles; }
  const std::vector<CopyRecord>& pending_copies() const { return state_.pending; }

  // ------------------------------------------------ running
  /// Executes one insn of a ready warp. After a fault nothing more runs. The record is valid until
  /// the next step; addresses in it as well.
  const IssueRecord& step(uint32_t warp);
  /// The same of an insn that writes registers and of which nobody wants to know more than the
  /// lanes that executed it. False, and nothing done: it takes a step.
  bool step_pure(uint32_t warp, uint32_t& exec_mask);
  /// Executes one insn of every warp, as step() for one warp after the other would. Only while all
  /// warps are ready at one pc, and for insns that are of lanes alone. Null, and nothing happened,
  /// if they are not, if somebody observes the run, or if a warp would fault: step() says which.
  const GroupRecord* step_together();
  /// For who looks at the block between calls of step_together(): writes down where warps stand.
  void stand_apart();
  /// Executes up to about `budget` warp insns, in an order that depends on nothing outside.
  BlockStop run(uint64_t budget);
  /// %clock reads `cycle` from now on.
  void set_clock(uint64_t cycle);

  /// Moves the data of pending_copies()[i] and lets warps that waited for it go on.
  void complete_copy(size_t i);
  /// The block is done: moves what copies are still pending. Launch::retire_block calls it.
  void finish();
  /// For a block that is kBlocked with no copy pending: who waits where for what.
  Fault deadlock_fault() const;

  /// Every access to hbm first asks `gate` (parallel.cc); null: none.
  void set_gate(AccessGate* gate);
  /// Accesses to hbm have to fit `ledger` as well, and run() stops (kBudget) when the warps no
  /// longer stand at one insn: for a gang (gang.h).
  void set_ledger(AccessLedger* ledger);
  /// Promises for the block just started that nobody asks for its registers, warps and masks when
  /// it has ended, so that they need not be kept.
  void forget_when_ended();
  /// The gate or the ledger refused an access: the block stands before it and run() returns kFault,
  /// without a fault.
  bool was_stopped_by_gate() const;

  // ------------------------------------------------ snapshots
  const BlockState& state() const;
  /// Puts back a state of a block of this launch; clears a fault.
  void restore(const BlockState& state);

private:
  friend class BlockContext;

  void start_warps();

  Launch& launch_;
  BlockState state_;
  uint32_t live_warps_ = 0;
  std::optional<Fault> fault_;
  std::unique_ptr<BlockContext> context_;
};

} // namespace pto::sim
