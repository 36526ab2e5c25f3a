// SPDX-License-Identifier: Apache-2.0
// Going back: restore the nearest snapshot and run forward again, once to find the moment that is
// wanted and once to get there.
#include "debugger/session_impl.h"

#include <algorithm>

namespace pto::dbg {

namespace {
/// Points are this much closer together where the user is going back and forth.
constexpr uint64_t kDensePoints = uint64_t{1} << 13;
} // namespace

void Session::Impl::restore(size_t index) {
  history->restore(*engine, index);
  is_settled = false;
  is_pending_known = false;
  const HistoryPoint& point = history->points()[index];
  edits_applied = point.edits;
  break_states = dynamic_cast<const BreakMemo&>(*point.memo).states;
  findings_seen = static_cast<size_t>(
      std::upper_bound(finding_positions.begin(), finding_positions.end(), position()) -
      finding_positions.begin());
  next_point = position() + (point_interval != 0 ? point_interval : history->interval());
  apply_edits();
}

bool Session::Impl::scan(size_t index, uint64_t end) {
  restore(index);
  begin_event();
  hits.clear();
  is_scanning = true;
  end_position = end;
  if (scan_undo && !undo_last_insn) {
    const sim::BlockRun* run = block(goal_block);
    is_undo_open = run != nullptr ? is_undone(run) : goal_block >= launch->blocks_started();
    if (is_undo_open && run != nullptr) {
      undo_position = position();
    }
  }
  if (position() < end) {
    run();
  }
  is_scanning = false;
  return event.reason != StopReason::kInterrupted;
}

Moment Session::Impl::moment_at(uint64_t target) const {
  if (target == position() && target != 0) {
    return moment();
  }
  // Before anything was handed out to a core there is nothing to look at.
  return {target, target == 0 || settled_stops.count(target) != 0};
}

StopEvent Session::Impl::go_to(const Moment& target, StopReason reason) {
  if (target < moment()) {
    const size_t index = history->at_or_before(target.position);
    if (index == SIZE_MAX) {
      begin_event();
      return end_event(StopReason::kHistoryStart);
    }
    restore(index);
  }
  if (!run_to(target)) {
    return end_event(StopReason::kInterrupted);
  }
  return end_event(is_over()                      ? over_reason()
                   : position() < target.position ? event.reason // a limit
                                                  : reason);
}

/// To where the history begins.
StopEvent Session::Impl::go_to_beginning() {
  return go_to(moment_at(history->points()[0].position), StopReason::kHistoryStart);
}

StopEvent Session::Impl::go_to_cycle(uint64_t cycle) {
  if (cycle <= engine->cycle()) {
    const std::vector<HistoryPoint>& points = history->points();
    size_t index = points.size();
    while (index > 1 && points[index - 1].cycle >= cycle) {
      --index;
    }
    if (index == 0) {
      begin_event();
      return end_event(StopReason::kHistoryStart);
    }
    restore(index - 1);
  }
  begin_event();
  are_stops_on = false;
  if (!is_over()) {
    set_goal(Until::cycle(cycle));
    run();
  } else {
    event.reason = over_reason();
    if (engine->fault()) {
      note_fault(*engine->fault());
    }
  }
  are_stops_on = true;
  return end_event(event.reason);
}

StopEvent Session::Impl::reverse(const Until& until) {
  if (!history->is_on() || history->points().empty()) {
    begin_event();
    event.note = "history is off, so there is no way back";
    return end_event(StopReason::kHistoryStart);
  }
  point_interval = kDensePoints;
  StopEvent result;
  switch (until.kind) {
  case Until::Kind::kStep:
  case Until::Kind::kStepWarp:
  case Until::Kind::kNext:
    result = reverse_step(until);
    break;
  case Until::Kind::kCycle:
    result = go_to_cycle(std::min(until.count, engine->cycle()));
    break;
  case Until::Kind::kPosition:
    result = go_to(moment_at(std::min(until.count, position())), StopReason::kLocation);
    break;
  default:
    result = reverse_continue();
  }
  point_interval = 0;
  return result;
}

// ---------------------------------------------------------------- steps

bool Session::Impl::is_undone(const sim::BlockRun* run) const {
  if (run == nullptr) {
    return false;
  }
  for (const auto& [warp, issued] : undo_targets) {
    if (run->warp(warp).issued > issued) {
      return false;
    }
  }
  return true;
}

void Session::Impl::note_undo(const sim::BlockRun& run, uint32_t warp) {
  if (undo_last_insn) {
    undo_position = issue_position;
    undo_end = issue_position;
    return;
  }
  const bool is_target = std::any_of(undo_targets.begin(),
                                     undo_targets.end(),
                                     [&](const auto& target) { return target.first == warp; });
  if (!is_target || !is_undo_open) {
    return;
  }
  is_undo_open = is_undone(&run);
  if (is_undo_open) {
    undo_position = position();
  } else {
    undo_end = issue_position;
  }
}

/// To where none of the warps had issued its last `count` insns: the moment of that time at which
/// the session stood in front of an issue, or else right behind the last issue that stays, where
/// steps end. Which warps: the focused one, or those of the focused block that can go on now (the
/// others wait for them).
StopEvent Session::Impl::reverse_step(const Until& until) {
  const uint64_t start = position();
  goal_block = focus.block;
  undo_targets.clear();
  undo_last_insn = false;
  undo_position.reset();
  undo_end.reset();
  const sim::BlockRun* run = block(focus.block);
  if (run == nullptr) {
    undo_last_insn = true;
  } else {
    const auto add = [&](uint32_t w) {
      const uint64_t issued = run->warp(w).issued;
      if (issued != 0) {
        undo_targets.emplace_back(w, issued - std::min(issued, until.count));
      }
    };
    if (until.kind == Until::Kind::kStepWarp) {
      add(focus.warp);
    } else {
      for (uint32_t w = 0; w < run->warp_count(); ++w) {
        if (run->is_ready(w)) {
          add(w);
        }
      }
      for (uint32_t w = 0; w < run->warp_count() && !run->has_ready_warp(); ++w) {
        add(w);
      }
    }
    if (undo_targets.empty()) {
      begin_event();
      event.note = "the focused block has executed nothing yet";
      return end_event(StopReason::kHistoryStart);
    }
  }
  scan_undo = true;
  uint64_t end = start;
  size_t index = history->at_or_before(start == 0 ? 0 : start - 1);
  bool is_good = true;
  while (index != SIZE_MAX && !undo_position && !undo_end && is_good) {
    const uint64_t begin = history->points()[index].position;
    is_good = scan(index, end);
    end = begin;
    index = index == 0 ? SIZE_MAX : index - 1;
  }
  scan_undo = false;
  if (!is_good) {
    return end_event(StopReason::kInterrupted);
  }
  if (!undo_position) { // they had not issued any before
    return undo_end && *undo_end != history->points()[0].position
               ? go_to({*undo_end, true}, StopReason::kStep)
               : go_to_beginning();
  }
  const auto stood = settled_stops.upper_bound(undo_end.value_or(*undo_position));
  const bool has_stood = stood != settled_stops.begin() && *std::prev(stood) >= *undo_position;
  return go_to(has_stood ? Moment{*std::prev(stood), true} : Moment{*undo_position, false},
               StopReason::kStep);
}

StopEvent Session::Impl::reverse_continue() {
  const uint64_t start = position();
  uint64_t end = start;
  size_t index = start == 0 ? SIZE_MAX : history->at_or_before(start - 1);
  while (index != SIZE_MAX) {
    const uint64_t begin = history->points()[index].position;
    if (!scan(index, end)) {
      return end_event(StopReason::kInterrupted);
    }
    std::erase_if(hits, [&](const ScannedHit& hit) { return hit.position >= start; });
    if (!hits.empty()) {
      const ScannedHit hit = std::move(hits.back());
      hits.clear();
      // Not by go_to: what the old focus sees there is no stop.
      restore(history->at_or_before(hit.position));
      if (!run_to({hit.position, true})) {
        return end_event(StopReason::kInterrupted);
      }
      const Focus before = focus;
      focus = hit.event.focus;
      begin_event();
      event = hit.event;
      for (const int id : event.ids) {
        if (StopPoint* point = stops.find(id)) {
          ++point->hits;
        }
      }
      event.has_moved_focus = !(before == focus);
      return end_event(hit.event.reason);
    }
    end = begin;
    index = index == 0 ? SIZE_MAX : index - 1;
  }
  return history->points().empty() || start == history->points()[0].position
             ? (begin_event(), end_event(StopReason::kHistoryStart))
             : go_to_beginning();
}

// ---------------------------------------------------------------- writers

std::optional<Writer> Session::Impl::last_writer(const WatchTarget& target) {
  if (!history->is_on() || history->points().empty()) {
    return std::nullopt;
  }
  const StopEvent kept_event = last;
  const Focus kept_focus = focus;
  const BreakStates kept_states = break_states;
  Trace kept_trace = std::move(trace);
  const Moment here = moment();
  const uint64_t start = here.position;
  scan_writer = StopPoint{};
  scan_writer->kind = StopKind::kWatch;
  scan_writer->target = target;
  std::optional<Writer> found;
  uint64_t end = start;
  point_interval = kDensePoints;
  size_t index = start == 0 ? SIZE_MAX : history->at_or_before(start - 1);
  bool is_good = true;
  while (index != SIZE_MAX && !found && is_good) {
    const uint64_t begin = history->points()[index].position;
    is_good = scan(index, end);
    if (!hits.empty()) {
      found = hits.back().writer;
    }
    end = begin;
    index = index == 0 ? SIZE_MAX : index - 1;
  }
  scan_writer.reset();
  hits.clear();
  (void)go_to(here, StopReason::kLocation);
  point_interval = 0;
  last = kept_event;
  focus = kept_focus;
  break_states = kept_states;
  trace = std::move(kept_trace);
  return found;
}

bool Session::Impl::reaches_launch() const {
  return position() == 0 ||
         (history->is_on() && !history->points().empty() && history->points()[0].position == 0);
}

/// Blocks that had begun before the first insn: their beginning is not repeated by running on.
void Session::Impl::show_resident_blocks() {
  for (const uint64_t index : owner->resident_blocks()) {
    const sim::BlockRun& run = *owner->block(index);
    for (const std::unique_ptr<CheckProxy>& proxy : check_proxies) {
      proxy->block_begin(run);
    }
    check_gate.blocks_begun = std::max(check_gate.blocks_begun, index + 1);
  }
}

/// Starts the checks afresh and shows them everything up to a position. Where the history does not
/// reach back to the launch they are over: a check that has not seen all would find too much.
void Session::Impl::replay_checks(const Moment& target) {
  start_checks(reaches_launch() ? check_set : sim::CheckSet());
  if (!checks) {
    return;
  }
  for (const std::unique_ptr<CheckProxy>& proxy : check_proxies) {
    proxy->launch_begin(*launch);
  }
  if (target.position == 0) {
    show_resident_blocks();
    return;
  }
  const StopEvent kept_event = last;
  const Focus kept_focus = focus;
  const BreakStates kept_states = break_states;
  high_water = 0;
  restore(0);
  show_resident_blocks();
  (void)run_to(target);
  last = kept_event;
  focus = kept_focus;
  break_states = kept_states;
}

} // namespace pto::dbg
