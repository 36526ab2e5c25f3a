// SPDX-License-Identifier: Apache-2.0
// A kernel under the debugger, as a library: it owns the loop, runs when told to, and returns why
// it stopped as a value. It prints nothing and knows no terminal: the ptodbg prompt, the Debug
// Adapter Protocol and pypto.debug are three ways to show what it says.
//
//   Session session(machine, program, config);
//   session.add_break("loop", "$lane == 3 && $r1 > 2.0", error);
//   StopEvent stop = session.resume(Until::stop());
//   ... session.focus(), session.read_register(...), session.read_memory(...)
//   stop = session.reverse(Until::step());
//
// Time. A position is the number of warp insns that were executed since the launch; together with
// the inputs and the edits it determines the state completely, cycles included. Stepping, running
// free and running from breakpoint to breakpoint therefore end alike. Two insns that the machine
// fuses issue as one: no position lies between them, and a breakpoint on the second stops in front
// of the pair.
//
// Going back restores the nearest snapshot and runs forward again. Snapshots are taken while
// running and thinned out as memory for them (SessionOptions::history_bytes) runs short: dense near
// the present, sparse far from it. What the user writes into registers and memory is remembered and
// repeated. A write in the past ends the former future.
//
// Checks and catchpoints see each insn once, the first time it is executed; a replay is silent. A
// write in the past restarts the checks from the launch.
//
// Thread rule: one thread at a time, but interrupt() may be called from any thread and from a
// signal handler. Machine, program and memory must outlive the session and must not be used by
// others meanwhile; allocate and free nothing in hbm between construction and destruction.
//
// Errors: launches that cannot be (LaunchError) throw from the constructor. What a user may get
// wrong is an optional or bool with a sentence in `error`.
#pragma once

#include "debugger/expression.h"
#include "debugger/location.h"
#include "debugger/stop_event.h"
#include "debugger/stop_point.h"
#include "debugger/trace.h"
#include "simulator/checks/checks.h"
#include "simulator/launch.h"
#include "simulator/timed.h"

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pto::dbg {

enum class RunMode : uint8_t {
  kTimed,    // under the machine's timing model
  kLockstep, // without time: every ready warp of every resident block takes one insn in turn
};

struct SessionOptions {
  RunMode mode = RunMode::kTimed;
  sim::CheckSet checks;                          // catch nan and the like add theirs
  uint64_t history_bytes = uint64_t{512} << 20;  // for snapshots and old memory; 0: no going back
  uint64_t max_insns = UINT64_MAX;               // warp insns
  uint64_t max_cycles = UINT64_MAX;              // timed
  uint64_t timeline_entries = uint64_t{1} << 18; // kept; 0: none
  uint64_t trace_insns = 4096;                   // of one step, kept by trace()
  std::function<void(uint64_t position, uint64_t cycle)> progress; // now and then, while it runs
};

/// How far to run. Breakpoints, watchpoints, catchpoints, faults and the end stop it earlier.
struct Until {
  enum class Kind : uint8_t {
    kStop,     // something stops it
    kStep,     // every warp of the focused block that can go on has executed `count` insns more
    kStepWarp, // the focused warp has executed `count` insns more
    kNext,     // as kStep, but over a CALL until the focused warp is behind it
    kFinish,   // the focused warp has left its function; outside of one: the block has ended
    kLocation, // a warp of the focused block stands at one of `pcs`
    kLine,     // the focused warp stands at a higher pc (leaves a loop), or has left its function
    kCycle,    // in front of the first issue in cycle `count` or later
    kPosition, // `count` warp insns have been executed since the launch
    kStart,    // in front of the next issue of anyone
  };
  Kind kind = Kind::kStop;
  uint64_t count = 1;
  std::vector<uint32_t> pcs;

  static Until stop() { return {}; }
  static Until step(uint64_t n = 1) { return {Kind::kStep, n, {}}; }
  static Until step_warp(uint64_t n = 1) { return {Kind::kStepWarp, n, {}}; }
  static Until next(uint64_t n = 1) { return {Kind::kNext, n, {}}; }
  static Until finish() { return {Kind::kFinish, 1, {}}; }
  static Until location(std::vector<uint32_t> pcs) { return {Kind::kLocation, 1, std::move(pcs)}; }
  static Until line() { return {Kind::kLine, 1, {}}; }
  static Until cycle(uint64_t cycle) { return {Kind::kCycle, cycle, {}}; }
  static Until position(uint64_t position) { return {Kind::kPosition, position, {}}; }
  static Until start() { return {Kind::kStart, 1, {}}; }
};

/// A moment of a run. Insns alone do not name one: between an issue and the next blocks end and
/// begin, and time passes.
struct Moment {
  uint64_t position = 0; // warp insns executed since the launch
  /// All that comes before the next issue has happened as well: the run stands in front of that
  /// issue, or at its end. Steps and watchpoints stop before that, right behind an issue.
  bool is_settled = false;
  auto operator<=>(const Moment&) const = default; // earlier is less; NOLINT: has no pointers
};

enum class BlockPhase : uint8_t { kWaiting, kResident, kDone };

/// One line of a core's data cache.
struct CacheLine {
  uint32_t slot = 0;
  uint32_t l1_offset = 0; // byte offset in l1 where it lies
  uint64_t hbm_address = 0;
  uint32_t size_bytes = 0;
  bool is_arriving = false; // under way: usable from ready_cycle on
  uint64_t ready_cycle = 0;
};

/// On-chip memory as it lies there: scratchpad bytes and, behind them, lines of the data cache.
struct L1Bytes {
  std::vector<uint8_t> bytes; // 0 where nothing is held
  std::vector<bool> is_held;
};

/// Who wrote a byte last.
struct Writer {
  uint64_t position = 0; // in front of the insn
  uint64_t cycle = 0;
  uint64_t block = 0;
  uint32_t warp = 0;
  uint32_t lane_mask = 0; // 0: a copy, or the block as a whole
  uint32_t pc = 0;        // of the insn; of the one that started the copy
  bool is_copy = false;
  std::vector<uint8_t> old_bytes;
  std::vector<uint8_t> new_bytes;
};

struct HistoryInfo {
  uint64_t limit_bytes = 0;
  uint64_t used_bytes = 0;
  uint64_t snapshots = 0;
  uint64_t first_position = 0; // the earliest that can be reached
  uint64_t last_position = 0;  // the furthest that was reached
};

class Session {
public:
  /// A launch of `program` that has executed nothing yet. Arguments in `config` are device
  /// addresses and scalars. `shared` (timed mode) carries L2 from launch to launch; null: a cold
  /// one of its own. Stop points come along from an earlier session of the same program.
  Session(sim::Machine& machine,
          std::shared_ptr<const sim::Program> program,
          sim::LaunchConfig config,
          SessionOptions options = {},
          sim::SharedMemory* shared = nullptr,
          StopTable stops = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // ------------------------------------------------ running
  /// Runs forward. Steps fill trace().
  StopEvent resume(const Until& until);
  /// Runs backward: kStep, kStepWarp, kStop (to the stop point hit last before this moment, or
  /// where the history begins), kCycle and kPosition (of a moment before this one). Others are
  /// kStop. Stop points' ignore counts do not count backwards.
  StopEvent reverse(const Until& until);
  /// To a moment, forward or back, without stopping on the way.
  StopEvent go_to(const Moment& moment);
  /// Where so many warp insns have executed, as the session stood there last; where it never did,
  /// right behind the last of them.
  StopEvent go_to_position(uint64_t position);
  StopEvent go_to_cycle(uint64_t cycle);
  /// Makes a running resume() or reverse() come back with kInterrupted; the state stays whole. Safe
  /// in signal handlers. Cleared when it has been obeyed.
  void interrupt();

  // ------------------------------------------------ where
  [[nodiscard]] const StopEvent& last_stop() const;
  [[nodiscard]] uint64_t position() const;
  [[nodiscard]] Moment moment() const;
  [[nodiscard]] uint64_t cycle() const; // as StopEvent::cycle
  [[nodiscard]] bool is_finished() const;
  /// Nothing more can run: finished, or stopped by a fault or deadlock.
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] const std::optional<sim::Fault>& fault() const;
  [[nodiscard]] RunMode mode() const;
  [[nodiscard]] const SessionOptions& options() const;

  // ------------------------------------------------ focus
  [[nodiscard]] const Focus& focus() const;
  /// False, with a sentence in `error`, if there is no such block, warp or lane. The block need not
  /// be resident.
  [[nodiscard]] bool set_focus(const Focus& focus, std::string& error);
  /// The state of a block by its linear index; null unless it is resident.
  [[nodiscard]] sim::BlockRun* block(uint64_t index) const;
  [[nodiscard]] sim::BlockRun* focused_block() const { return block(focus().block); }
  [[nodiscard]] BlockPhase phase(uint64_t index) const;
  /// Linear indices of resident blocks, ascending.
  [[nodiscard]] std::vector<uint64_t> resident_blocks() const;
  /// The pc of a warp; kNoPc if it has ended or its block is not resident.
  [[nodiscard]] uint32_t pc(uint64_t block, uint32_t warp) const;
  /// The pc of the focused warp, as find_location takes it.
  [[nodiscard]] std::optional<uint32_t> here() const;
  /// Why a warp is not issuing; nothing without timing or if its block is not resident.
  [[nodiscard]] std::optional<sim::TimingModel::WarpStatus> warp_status(uint64_t block,
                                                                        uint32_t warp) const;

  // ------------------------------------------------ launch
  [[nodiscard]] const sim::Launch& launch() const;
  [[nodiscard]] const sim::Program& program() const;
  [[nodiscard]] sim::Machine& machine() const;
  /// Lines that PRINT has printed so far.
  [[nodiscard]] const std::vector<sim::PrintLine>& prints() const;

  // ------------------------------------------------ registers
  /// Raw bits in `count` lanes of a block from `first_lane` (counted in the block); a predicate is
  /// 0 or 1, a tile its byte offset. Nothing if the block is not resident or the lanes are not
  /// there.
  [[nodiscard]] std::optional<std::vector<uint64_t>> read_register(RegisterRef reg,
                                                                   uint64_t block,
                                                                   uint32_t first_lane,
                                                                   uint32_t count,
                                                                   std::string& error) const;
  /// In one lane. Not while the session is over; tiles cannot be written.
  [[nodiscard]] bool
  write_register(RegisterRef reg, uint64_t block, uint32_t lane, uint64_t bits, std::string& error);

  // ------------------------------------------------ memory
  /// `address`: of hbm, or a byte offset in the scratchpad of `block` or in const. False, with a
  /// sentence that names what is near, if not every byte is there.
  [[nodiscard]] bool read_memory(isa::Space space,
                                 uint64_t block,
                                 uint64_t address,
                                 std::span<uint8_t> to,
                                 std::string& error) const;
  /// hbm and scratchpad; const cannot be written. A kernel that is over can still have its hbm
  /// written.
  [[nodiscard]] bool write_memory(isa::Space space,
                                  uint64_t block,
                                  uint64_t address,
                                  std::span<const uint8_t> from,
                                  std::string& error);
  /// On-chip memory of the core that runs `block`, from byte `offset`: its scratchpad, then cached
  /// lines at their places (timed mode). When the block has ended: what its core's cache still
  /// holds. Bytes past the end of l1 are not held.
  [[nodiscard]] L1Bytes read_l1(uint64_t block, uint64_t offset, uint64_t size_bytes) const;
  /// Lines of a core's data cache, by slot; empty without timing.
  [[nodiscard]] std::vector<CacheLine> cache_lines(uint32_t core) const;
  /// The core that runs or ran the block; nothing while it waits.
  [[nodiscard]] std::optional<uint32_t> core_of(uint64_t block) const;

  // ------------------------------------------------ expressions
  /// In the focus.
  [[nodiscard]] EvalContext context() const;
  /// Parses and evaluates in the focus.
  [[nodiscard]] std::optional<Evaluated> evaluate(std::string_view text, std::string& error) const;
  /// Writes a value where an expression pointed, converted to the place's type.
  [[nodiscard]] bool assign(const Place& place, const Value& value, std::string& error);
  /// To every element of a place: one value, or as many. All or nothing as far as values go.
  [[nodiscard]] bool assign_all(const Evaluated& to, const Evaluated& from, std::string& error);

  // ------------------------------------------------ stop points
  [[nodiscard]] StopTable& stops();
  [[nodiscard]] const StopTable& stops() const;
  /// For the next session. This one must not run any more.
  [[nodiscard]] StopTable release_stops();
  /// Ids; nothing with a sentence in `error`. An empty condition is none.
  std::optional<int>
  add_break(std::string_view location, std::string_view condition, std::string& error);
  /// An expression with a place (`$r1`, `a[3]`, `a[0]@16`, `l1:64`), followed from now on.
  std::optional<int> add_watch(std::string_view expression,
                               WatchAccess access,
                               std::string_view condition,
                               std::string& error);
  /// nan, race, init and sync turn their check on where it was off; it is shown all since the
  /// launch, which fails where the history does not reach back so far.
  std::optional<int> add_catch(std::string_view event, std::string& error);
  /// After the table was changed from outside (enable, delete): looks at it again.
  void stops_changed();

  // ------------------------------------------------ results so far
  /// Everything that checks have found, in order.
  [[nodiscard]] const std::vector<sim::Finding>& findings() const;
  /// Counters and timeline; nothing without timing.
  [[nodiscard]] std::optional<sim::TimedResult> timed_result() const;
  [[nodiscard]] const sim::Timeline* timeline() const;
  [[nodiscard]] sim::RunResult run_result() const;

  // ------------------------------------------------ history
  /// What the last step executed in the focused block.
  [[nodiscard]] const Trace& trace() const;
  [[nodiscard]] HistoryInfo history() const;
  void set_history_bytes(uint64_t limit);
  /// The last write to any of these bytes before this moment; nothing if none is known. Runs
  /// through the history, then returns here.
  [[nodiscard]] std::optional<Writer>
  last_writer(isa::Space space, uint64_t block, uint64_t address, uint64_t size_bytes);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace pto::dbg
