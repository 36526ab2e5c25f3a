// SPDX-License-Identifier: Apache-2.0
// The inside of a session. Private; session_run.cc runs, session_stops.cc decides where to stop,
// session_back.cc goes back, session_state.cc reads and writes, session_trace.cc notes what a step
// does.
#pragma once

#include "debugger/check_proxy.h"
#include "debugger/engine.h"
#include "debugger/history.h"
#include "debugger/session.h"

#include <atomic>
#include <map>
#include <set>
#include <unordered_map>

namespace pto::dbg {

/// How often the warps of a block have come to a breakpoint. The first warp of a block that comes
/// for the n-th time stops; the others pass, so that a block stops once, not once a warp.
struct BreakVisits {
  std::vector<uint32_t> visits;  // by warp
  std::vector<uint64_t> seen_at; // by warp: insns it had issued at its latest visit, plus 1
  uint32_t stopped = 0;          // visits that have been reported
};
using BreakStates = std::map<int, std::unordered_map<uint64_t, BreakVisits>>; // by id, block

struct BreakMemo final : SessionMemo {
  BreakStates states;
};

/// What the user wrote, to be repeated by a replay.
struct Edit {
  Moment moment;
  bool is_register = false;
  RegisterRef reg{};
  uint32_t lane = 0;
  isa::Space space = isa::Space::kHbm;
  uint64_t address = 0;
  uint64_t block = 0;
  std::vector<uint8_t> bytes;
};

/// A stop seen in passing while a stretch of history is scanned.
struct ScannedHit {
  uint64_t position = 0; // in front of the insn, settled
  StopEvent event;       // ids, watches, findings, focus
  Writer writer;         // for last_writer
};

struct Session::Impl final : sim::IssueGate, sim::Observer {
  Impl(Session& owner,
       sim::Machine& machine,
       std::shared_ptr<const sim::Program> program,
       sim::LaunchConfig config,
       SessionOptions options,
       sim::SharedMemory* shared,
       StopTable stops);
  ~Impl() override;

  // ------------------------------------------------ running (session_run.cc)
  StopEvent resume(const Until& until);
  /// Runs to the goal or a stop; what happened is in `event`.
  void run();
  /// Straight to a moment, blind to stop points. False if interrupted.
  bool run_to(const Moment& target);
  void begin_event();
  StopEvent end_event(StopReason reason);
  void set_goal(const Until& until);
  void aim_step();
  void check_goal(const sim::BlockRun& block, uint32_t warp);
  bool is_step_done(const sim::BlockRun& block) const;
  void arrive() { has_arrived = true; }
  void move_to_living_block();
  void attach();
  void note_end_of_run();
  void apply_edits();
  [[nodiscard]] bool has_edit_here() const;
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] StopReason over_reason() const;
  void note_settled(sim::RunStatus status);
  [[nodiscard]] bool is_at_end_position() const;
  void take_point();
  uint64_t next_limit();
  [[nodiscard]] uint64_t position() const { return engine->position(); }
  [[nodiscard]] Moment moment() const { return {position(), is_settled}; }
  [[nodiscard]] uint64_t shown_cycle() const;

  bool may_issue(const sim::BlockRun& block, uint32_t warp, uint64_t cycle) override;
  bool agrees(const sim::BlockRun& block, uint32_t warp, uint64_t cycle);
  void issued(const sim::BlockRun& block, const sim::IssueRecord& record) override;
  bool wants_stop() override;

  sim::Wants wants() const override;
  void block_begin(const sim::BlockRun& block) override;
  void block_end(const sim::BlockRun& block) override;
  void barrier_release(const sim::BlockRun& block, unsigned id) override;
  void copy_complete(const sim::BlockRun& block, const sim::CopyRecord& copy, bool forced) override;

  // ------------------------------------------------ trace of a step (session_trace.cc)
  void before_insn(const sim::EventSite& site, uint32_t active, uint32_t exec) override;
  void close_trace(const sim::BlockRun& block, const sim::IssueRecord& record);
  void print_line(const sim::EventSite& site, unsigned lane, std::string_view line) override;
  void finish_trace();

  // ------------------------------------------------ stops (session_stops.cc)
  void index_stops();
  /// True if a breakpoint stops the warp in front of its insn. Visits count in runs that are blind
  /// to stop points as well: what stops later must not depend on how one came here.
  bool check_breaks(const sim::BlockRun& block, uint32_t warp);
  /// The lanes of the warp (of its active ones) in which a condition holds.
  uint32_t condition_lanes(const StopPoint& point, const sim::BlockRun& block, uint32_t warp);
  void mark_seen(const Focus& where);
  void check_watches(const sim::BlockRun& block, const sim::IssueRecord& record);
  void check_watch_copy(const sim::BlockRun& block, const sim::CopyRecord& copy);
  void watch_touched(StopPoint& point, const WatchHit& where, bool wrote, bool read);
  std::vector<uint8_t> watch_bytes(const WatchTarget& target) const;
  void refresh_watches();
  void check_findings();
  void catch_event(CatchKind kind, const Focus* where);
  void note_fault(const sim::Fault& fault);
  void fire(StopPoint& point, StopReason reason, const Focus* where);
  void start_checks(sim::CheckSet set);
  void add_check(CatchKind kind);
  void show_resident_blocks();
  void open_checks(bool open) { check_gate.is_open = open; }
  bool is_watched() const { return !watches.empty() || scan_writer; }

  // ------------------------------------------------ back (session_back.cc)
  StopEvent reverse(const Until& until);
  StopEvent reverse_step(const Until& until);
  StopEvent reverse_continue();
  StopEvent go_to(const Moment& target, StopReason reason);
  StopEvent go_to_beginning();
  /// The moment that a position names by itself.
  [[nodiscard]] Moment moment_at(uint64_t position) const;
  StopEvent go_to_cycle(uint64_t cycle);
  void restore(size_t index);
  /// Runs from point `index` to `end`, noting hits instead of stopping. False if interrupted.
  bool scan(size_t index, uint64_t end);
  void note_undo(const sim::BlockRun& block, uint32_t warp);
  bool is_undone(const sim::BlockRun* block) const;
  std::optional<Writer> last_writer(const WatchTarget& target);
  void replay_checks(const Moment& target);
  [[nodiscard]] bool reaches_launch() const;

  // ------------------------------------------------ state (session_state.cc)
  [[nodiscard]] sim::BlockRun* block(uint64_t index) const;
  void edit(Edit edit);
  void apply(const Edit& edit);

  Session* owner = nullptr;
  sim::Machine& machine;
  std::shared_ptr<const sim::Program> program;
  SessionOptions options;
  std::unique_ptr<sim::SharedMemory> own_shared;
  std::unique_ptr<sim::Launch> launch;
  CheckGate check_gate;
  std::vector<std::unique_ptr<CheckProxy>> check_proxies; // one a check, in the launch's list
  sim::CheckSet check_set;
  std::unique_ptr<sim::Checks> checks;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<History> history;
  std::atomic<bool> interrupt_flag{false};
  std::unordered_map<uint64_t, uint32_t> core_of_block;

  StopTable stops;
  Focus focus;
  StopEvent last;
  Trace trace;

  // The present run.
  StopEvent event; // that is being put together
  Until goal;
  uint64_t goal_block = 0;
  uint32_t goal_warp = 0;
  uint64_t steps_left = 0;
  std::vector<uint64_t> targets;      // by warp: insns issued that end the step; 0: any
  std::vector<uint64_t> start_issued; // of the goal's block when the run began
  uint32_t start_pc = kNoPc;
  uint32_t start_depth = 0;
  std::vector<uint8_t> is_goal_pc;
  uint64_t end_position = UINT64_MAX;
  bool is_end_settled = false; // the run ends in front of the issue that follows
  bool has_arrived = false;    // the goal is reached
  bool must_stop = false;      // a stop point fired
  bool are_stops_on = true;
  bool is_tracing = false;
  bool is_settled = false;       // Moment::is_settled
  bool is_pending_known = false; // in front of an issue, in pending_cycle
  uint64_t pending_cycle = 0;
  uint64_t issue_position = 0; // in front of the insn (pair) at hand
  uint64_t next_point = 0;
  uint64_t point_interval = 0; // 0: the history's own
  uint64_t reported_progress = 0;
  uint64_t next_limit_asked = 0;
  std::optional<InsnTrace> open_trace;

  // Stop points at work.
  std::vector<uint8_t> has_break; // by pc
  std::vector<StopPoint*> watches;
  std::map<int, std::vector<uint8_t>> watch_values;
  BreakStates break_states;
  bool catches_barrier = false;
  bool is_launch_seen = false;
  bool has_stopped = false;         // once at least: `last` says where
  std::set<uint64_t> settled_stops; // positions where the latest stop was settled

  // Scanning.
  bool is_scanning = false;
  std::vector<ScannedHit> hits;
  bool scan_undo = false;
  std::vector<std::pair<uint32_t, uint64_t>> undo_targets; // warp, insns issued at most
  bool is_undo_open = false;             // up to here the insns that are undone have not issued
  std::optional<uint64_t> undo_position; // behind the last issue that stays
  std::optional<uint64_t> undo_end;      // in front of the first one that is undone
  bool undo_last_insn = false;           // the block has ended: in front of its last insn
  std::optional<StopPoint> scan_writer;

  // Time line of the session.
  std::vector<Edit> edits; // by position
  size_t edits_applied = 0;
  uint64_t high_water = 0; // furthest position reached
  bool is_end_noted = false;
  std::vector<uint64_t> finding_positions; // by index in the checks' list
  size_t findings_seen = 0;
};

} // namespace pto::dbg
