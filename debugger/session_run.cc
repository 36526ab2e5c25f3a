// SPDX-License-Identifier: Apache-2.0
// Running forward: goals and the loop around the engine.
#include "debugger/session_impl.h"
#include "isa/insn_desc.h"

#include <algorithm>

namespace pto::dbg {

// ---------------------------------------------------------------- the loop

StopEvent Session::Impl::resume(const Until& until) {
  begin_event();
  is_tracing = until.kind == Until::Kind::kStep || until.kind == Until::Kind::kStepWarp ||
               until.kind == Until::Kind::kNext;
  if (is_over()) {
    is_tracing = false;
    return end_event(over_reason());
  }
  if (has_stopped && last.position == position()) {
    mark_seen(last.focus); // breakpoints that were set since then
  }
  set_goal(until);
  run();
  is_tracing = false;
  finish_trace();
  return end_event(event.reason);
}

void Session::Impl::begin_event() {
  event = {};
  trace = {};
  open_trace.reset();
  has_arrived = false;
  must_stop = false;
  are_stops_on = true;
  end_position = UINT64_MAX;
  is_end_settled = false;
  goal = {};
  targets.clear();
  event.focus = focus;
}

void Session::Impl::run() {
  index_stops();
  refresh_watches();
  attach();
  bool is_interrupted = false;
  for (;;) {
    engine->set_max_insns(next_limit());
    open_checks(position() >= high_water);
    const sim::RunStatus status = engine->run();
    check_findings();
    high_water = std::max(high_water, position());
    note_settled(status);
    if (has_edit_here()) {
      apply_edits();
      refresh_watches();
    }
    if (!is_over() && !is_settled && position() >= next_point) {
      take_point();
    }
    if (options.progress && position() - reported_progress >= (uint64_t{1} << 16)) {
      reported_progress = position();
      options.progress(position(), engine->cycle());
    }
    if (is_over()) {
      note_end_of_run();
    }
    if (must_stop) {
      return; // `event` says what fired
    }
    if (engine->fault()) {
      event.reason = over_reason();
      note_fault(*engine->fault());
      return;
    }
    if (has_arrived) {
      event.reason = goal.kind == Until::Kind::kStart && position() == 0 ? StopReason::kLaunch
                     : is_tracing                                        ? StopReason::kStep
                                                                         : StopReason::kLocation;
      return;
    }
    if (engine->is_finished()) {
      event.reason = StopReason::kFinished;
      return;
    }
    if (is_at_end_position()) {
      event.reason = is_interrupted ? StopReason::kInterrupted : StopReason::kLocation;
      return;
    }
    if (status == sim::RunStatus::kInterrupted) {
      // Somewhere between two issues, which is no moment that has a name: on to the next.
      interrupt_flag = false;
      is_interrupted = true;
      end_position = position();
      is_end_settled = true;
      continue;
    }
    if (status == sim::RunStatus::kLimit &&
        (position() < next_limit_asked ||
         (position() >= options.max_insns && engine->has_work_left()))) {
      event.reason = StopReason::kLimit;
      return;
    }
  }
}

bool Session::Impl::run_to(const Moment& target) {
  begin_event();
  are_stops_on = false;
  end_position = target.position;
  is_end_settled = target.is_settled;
  if (moment() < target) {
    run();
  } else if (engine->fault()) {
    note_fault(*engine->fault());
  }
  are_stops_on = true;
  return event.reason != StopReason::kInterrupted;
}

uint64_t Session::Impl::next_limit() {
  // A limit stops right behind an issue; in front of the next one it is the gate that stops.
  const auto behind = [](const Moment& end) {
    return end.is_settled && end.position != UINT64_MAX ? end.position + 1 : end.position;
  };
  // At the limit with nothing left to execute, the run may come to its end.
  const bool is_limited = position() < options.max_insns || engine->has_work_left();
  uint64_t limit = behind({end_position, is_end_settled});
  limit = is_limited ? std::min(options.max_insns, limit) : limit;
  if (position() < high_water) {
    limit = std::min(limit, high_water);
  }
  if (edits_applied < edits.size()) {
    limit = std::min(limit, behind(edits[edits_applied].moment));
  }
  if (history->is_on()) {
    limit = std::min(limit, std::max(next_point, position() + 1));
  }
  if (options.progress) {
    limit = std::min(limit, position() + (uint64_t{1} << 16));
  }
  next_limit_asked = limit;
  return limit;
}

void Session::Impl::take_point() {
  auto memo = std::make_unique<BreakMemo>();
  memo->states = break_states;
  history->add(*engine, edits_applied, std::move(memo));
  next_point = position() + (point_interval != 0 ? point_interval : history->interval());
}

bool Session::Impl::has_edit_here() const {
  return edits_applied < edits.size() && edits[edits_applied].moment <= moment();
}

void Session::Impl::apply_edits() {
  while (has_edit_here()) {
    apply(edits[edits_applied++]);
  }
}

/// At the end of a run nothing asks the gate.
void Session::Impl::note_settled(sim::RunStatus status) {
  const bool is_out_of_time = status == sim::RunStatus::kLimit && position() < next_limit_asked;
  if (engine->is_finished() || status == sim::RunStatus::kDeadlock || is_out_of_time) {
    is_settled = true;
  }
}

bool Session::Impl::is_at_end_position() const {
  return position() >= end_position && (is_settled || !is_end_settled);
}

void Session::Impl::attach() {
  launch->observers().detach(*this);
  launch->observers().attach(*this);
}

void Session::Impl::note_end_of_run() {
  if (is_end_noted || !checks) {
    return;
  }
  is_end_noted = true;
  const sim::RunResult result = engine->run_result();
  for (const std::unique_ptr<sim::Observer>& check : checks->observers()) {
    if ((check->wants() & sim::kWantsLaunch) != 0) {
      check->launch_end(*launch, result);
    }
  }
  checks->add_result(*launch, result);
  open_checks(true);
  check_findings();
}

bool Session::Impl::is_over() const {
  return engine->is_finished() || engine->fault().has_value();
}

/// Why nothing can run any more.
StopReason Session::Impl::over_reason() const {
  return engine->is_finished()                                ? StopReason::kFinished
         : engine->fault()->kind == sim::FaultKind::kDeadlock ? StopReason::kDeadlock
                                                              : StopReason::kFault;
}

uint64_t Session::Impl::shown_cycle() const {
  return is_pending_known ? pending_cycle : engine->cycle();
}

StopEvent Session::Impl::end_event(StopReason reason) {
  event.reason = reason;
  const Focus before = focus;
  if (event.focus != focus) {
    focus = event.focus;
  }
  if ((reason == StopReason::kFault || reason == StopReason::kDeadlock) && engine->fault()) {
    const sim::Fault& fault = *engine->fault();
    event.fault = fault;
    focus.block = fault.block;
    focus.warp = fault.warp;
    if (fault.lane != sim::kNoLane) {
      focus.lane = static_cast<uint32_t>(fault.lane);
    }
  }
  event.focus = focus;
  event.has_moved_focus = event.has_moved_focus || !(focus == before);
  const sim::BlockRun* run = block(focus.block);
  event.has_block = run != nullptr;
  event.pc = run != nullptr && run->warp(focus.warp).status != sim::WarpStatus::kDone
                 ? run->warp(focus.warp).pc
                 : kNoPc;
  event.cycle = shown_cycle();
  event.position = position();
  constexpr size_t kKeptStops = size_t{1} << 20;
  if (!is_settled) {
    settled_stops.erase(position());
  } else if (settled_stops.size() < kKeptStops) {
    settled_stops.insert(position());
  }
  std::sort(event.ids.begin(), event.ids.end());
  event.ids.erase(std::unique(event.ids.begin(), event.ids.end()), event.ids.end());
  if (!must_stop && !engine->is_finished()) {
    mark_seen(focus);
  }
  for (const int id : event.ids) {
    const StopPoint* point = stops.find(id);
    if (point == nullptr) {
      continue;
    }
    event.commands.insert(event.commands.end(), point->commands.begin(), point->commands.end());
    if (point->is_temporary) {
      stops.erase(id);
    }
  }
  goal = {};
  has_stopped = true;
  last = event;
  return last;
}

// ---------------------------------------------------------------- goals

void Session::Impl::move_to_living_block() {
  if (focus.block < launch->blocks_started() && block(focus.block) == nullptr) {
    for (uint32_t place = 0; place < engine->place_count(); ++place) {
      const sim::BlockRun* other = engine->block_at(place);
      if (other != nullptr && !other->is_done()) {
        focus = {other->index(), 0, 0};
        event.focus = focus;
        event.has_moved_focus = true;
        return;
      }
    }
    if (launch->has_next_block()) {
      focus = {launch->blocks_started(), 0, 0};
      event.focus = focus;
      event.has_moved_focus = true;
    }
  }
}

void Session::Impl::set_goal(const Until& until) {
  goal = until;
  if (is_tracing) {
    move_to_living_block();
  }
  goal_block = focus.block;
  goal_warp = focus.warp;
  steps_left = until.count;
  start_issued.clear();
  start_pc = kNoPc;
  start_depth = 0;
  is_goal_pc.assign(program->insns().size(), 0);
  const sim::BlockRun* run = block(goal_block);
  if (run != nullptr) {
    for (uint32_t w = 0; w < run->warp_count(); ++w) {
      start_issued.push_back(run->warp(w).issued);
    }
    const sim::WarpState& warp = run->warp(goal_warp);
    start_pc = warp.pc;
    start_depth = warp.call_depth;
  }
  for (const uint32_t pc : until.pcs) {
    if (pc < is_goal_pc.size()) {
      is_goal_pc[pc] = 1;
    }
  }
  if (goal.kind == Until::Kind::kPosition) {
    end_position = goal.count;
  }
  if ((goal.kind == Until::Kind::kStep || goal.kind == Until::Kind::kStepWarp ||
       goal.kind == Until::Kind::kNext) &&
      steps_left == 0) {
    has_arrived = true;
    end_position = position();
  }
  aim_step();
}

/// Sets what the step's warps must have issued. A step over a call has no targets.
void Session::Impl::aim_step() {
  targets.clear();
  const sim::BlockRun* run = block(goal_block);
  if (run == nullptr) {
    return;
  }
  const sim::WarpState& own = run->warp(goal_warp);
  if (goal.kind == Until::Kind::kNext) {
    start_pc = own.pc;
    start_depth = own.call_depth;
  }
  targets.assign(run->warp_count(), 0);
  if (goal.kind == Until::Kind::kStepWarp) {
    targets[goal_warp] = own.issued + 1;
    return;
  }
  uint64_t least = UINT64_MAX;
  for (uint32_t w = 0; w < run->warp_count(); ++w) {
    if (run->is_ready(w)) {
      least = std::min(least, run->warp(w).issued);
    }
  }
  for (uint32_t w = 0; w < run->warp_count(); ++w) {
    targets[w] = run->is_ready(w) ? least + 1 : 0;
  }
}

bool Session::Impl::is_step_done(const sim::BlockRun& run) const {
  const bool is_one_warp = goal.kind == Until::Kind::kStepWarp;
  for (uint32_t w = 0; w < run.warp_count(); ++w) {
    const sim::WarpState& warp = run.warp(w);
    if (is_one_warp && w != goal_warp) {
      continue;
    }
    const uint64_t target = targets.empty() ? 1 : targets[w];
    if (warp.status == sim::WarpStatus::kDone || warp.issued >= target) {
      continue;
    }
    if (is_one_warp || warp.status == sim::WarpStatus::kReady) {
      return false;
    }
  }
  return true;
}

void Session::Impl::check_goal(const sim::BlockRun& run, uint32_t w) {
  const sim::WarpState& own = run.warp(goal_warp);
  const bool is_done = own.status == sim::WarpStatus::kDone;
  switch (goal.kind) {
  case Until::Kind::kNext:
    if (start_pc != kNoPc && start_pc < program->insns().size() && !is_done &&
        program->at(start_pc).insn.desc->has(isa::kCall) &&
        !(own.call_depth <= start_depth && own.pc == start_pc + 1)) {
      return;
    }
    [[fallthrough]];
  case Until::Kind::kStep:
  case Until::Kind::kStepWarp:
    if (is_step_done(run)) {
      if (--steps_left == 0 || run.is_done()) {
        arrive();
      } else {
        aim_step();
      }
    }
    return;
  case Until::Kind::kFinish:
    if (start_depth == 0 ? run.is_done() : w == goal_warp && own.call_depth < start_depth) {
      arrive();
    }
    return;
  case Until::Kind::kLine:
    if (w == goal_warp && (is_done || own.call_depth < start_depth ||
                           (own.call_depth == start_depth && own.pc > start_pc))) {
      arrive();
    }
    return;
  default:
    return;
  }
}

// ---------------------------------------------------------------- the gate

bool Session::Impl::may_issue(const sim::BlockRun& run, uint32_t warp, uint64_t cycle) {
  issue_position = position();
  pending_cycle = cycle;
  is_pending_known = true;
  is_settled = true;
  if (!agrees(run, warp, cycle)) {
    return false;
  }
  is_pending_known = false;
  is_settled = false;
  return true;
}

bool Session::Impl::agrees(const sim::BlockRun& run, uint32_t warp, uint64_t cycle) {
  if (has_edit_here() || (is_end_settled && position() >= end_position)) {
    return false;
  }
  if (is_scanning) {
    (void)check_breaks(run, warp);
    return true;
  }
  if (goal.kind == Until::Kind::kStart ||
      (goal.kind == Until::Kind::kCycle && cycle >= goal.count)) {
    if (goal.kind == Until::Kind::kStart && event.position == 0 && position() == 0) {
      event.focus = {run.index(), warp, 0};
    }
    arrive();
    return false;
  }
  if (goal.kind == Until::Kind::kLocation && run.index() == goal_block) {
    const uint32_t pc = run.warp(warp).pc;
    const bool is_there =
        is_goal_pc[pc] != 0 ||
        (pc + 1 < is_goal_pc.size() && is_goal_pc[pc + 1] != 0 && engine->model() != nullptr &&
         engine->model()->is_fused_with_previous(pc + 1));
    if (is_there && !(warp < start_issued.size() && run.warp(warp).issued == start_issued[warp])) {
      event.focus = {run.index(), warp, focus.warp == warp ? focus.lane : 0};
      arrive();
      return false;
    }
  }
  if (are_stops_on) {
    if (position() == 0 && !is_launch_seen) {
      is_launch_seen = true;
      const Focus where{run.index(), warp, 0};
      catch_event(CatchKind::kLaunch, &where);
      if (must_stop) {
        return false;
      }
    }
  }
  return !check_breaks(run, warp);
}

void Session::Impl::issued(const sim::BlockRun& run, const sim::IssueRecord& record) {
  if (is_watched()) {
    check_watches(run, record);
  }
  if (run.index() == goal_block) {
    if (is_tracing && open_trace) {
      close_trace(run, record);
    }
    check_goal(run, record.warp);
  }
  if (scan_undo && run.index() == goal_block) {
    note_undo(run, record.warp);
  }
}

bool Session::Impl::wants_stop() {
  if (checks) {
    check_findings();
  }
  return must_stop || has_arrived;
}

// ---------------------------------------------------------------- looking on

sim::Wants Session::Impl::wants() const {
  sim::Wants wants = sim::kWantsBlock;
  if (is_tracing) {
    wants |= sim::kWantsBefore | sim::kWantsCopy | sim::kWantsPrint;
  }
  if (is_watched()) {
    wants |= sim::kWantsCopy;
  }
  if (catches_barrier) {
    wants |= sim::kWantsBarrier;
  }
  return wants;
}

void Session::Impl::block_begin(const sim::BlockRun& run) {
  constexpr size_t kKept = size_t{1} << 20;
  if (core_of_block.size() < kKept) {
    core_of_block[run.index()] = run.core();
  }
  check_gate.blocks_begun = std::max(check_gate.blocks_begun, run.index() + 1);
}

void Session::Impl::block_end(const sim::BlockRun& run) {
  for (auto& [id, blocks] : break_states) {
    blocks.erase(run.index());
  }
  check_gate.is_end_new = check_gate.blocks_ended.insert(run.index()).second;
}

void Session::Impl::barrier_release(const sim::BlockRun& run, unsigned /*id*/) {
  if (are_stops_on && catches_barrier) {
    const Focus where{
        run.index(), run.index() == focus.block ? focus.warp : 0, focus.lane % isa::kWarpLanes};
    catch_event(CatchKind::kBarrier, &where);
  }
}

void Session::Impl::copy_complete(const sim::BlockRun& run,
                                  const sim::CopyRecord& copy,
                                  bool /*forced*/) {
  if (is_tracing && run.index() == goal_block) {
    if (open_trace) {
      open_trace->moved.push_back(copy);
    } else if (!trace.insns.empty()) {
      trace.insns.back().moved.push_back(copy);
    }
  }
  if (is_watched()) {
    check_watch_copy(run, copy);
  }
}

} // namespace pto::dbg
