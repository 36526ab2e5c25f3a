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
  if (scan_undo && is_undone(block(goal_block)) && !undo_last_insn) {
    undo_position = position();
  }
  if (position() < end) {
    run();
  }
  is_scanning = false;
  return event.reason != StopReason::kInterrupted;
}

StopEvent Session::Impl::go_to(uint64_t target, StopReason reason) {
  const uint64_t before = position();
  if (target < before) {
    const size_t index = history->at_or_before(target);
    if (index == SIZE_MAX) {
      begin_event();
      return end_event(StopReason::kHistoryStart);
    }
    restore(index);
  }
  const bool is_there = run_to(target);
  return end_event(!is_there                                      ? StopReason::kInterrupted
                   : engine->is_finished() && position() < target ? StopReason::kFinished
                   : engine->fault()                              ? event.reason
                                                                  : reason);
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
  if (!engine->is_finished() && !engine->fault()) {
    set_goal(Until::cycle(cycle));
    run();
  } else {
    event.reason = engine->is_finished() ? StopReason::kFinished : StopReason::kFault;
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
    result = go_to(std::min(until.count, position()), StopReason::kLocation);
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
    return;
  }
  const bool is_target = std::any_of(undo_targets.begin(),
                                     undo_targets.end(),
                                     [&](const auto& target) { return target.first == warp; });
  if (is_target && is_undone(&run)) {
    undo_position = position();
  }
}

/// The latest moment at which none of the warps had issued its last `count` insns. Which warps: the
/// focused one, or those of the focused block that can go on now (the others wait for them).
StopEvent Session::Impl::reverse_step(const Until& until) {
  const uint64_t start = position();
  goal_block = focus.block;
  undo_targets.clear();
  undo_last_insn = false;
  undo_position.reset();
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
  while (index != SIZE_MAX && !undo_position && is_good) {
    const uint64_t begin = history->points()[index].position;
    is_good = scan(index, end);
    end = begin;
    index = index == 0 ? SIZE_MAX : index - 1;
  }
  scan_undo = false;
  if (!is_good) {
    return end_event(StopReason::kInterrupted);
  }
  if (!undo_position) {
    return go_to(history->points()[0].position, StopReason::kHistoryStart);
  }
  return go_to(*undo_position, StopReason::kStep);
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
      (void)go_to(hit.position, StopReason::kLocation);
      const Focus before = focus;
      focus = hit.event.focus;
      last.has_moved_focus = !(before == focus);
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
             : go_to(history->points()[0].position, StopReason::kHistoryStart);
}

// ---------------------------------------------------------------- writers

std::optional<Writer> Session::Impl::last_writer(const WatchTarget& target) {
  if (!history->is_on() || history->points().empty()) {
    return std::nullopt;
  }
  const StopEvent kept_event = last;
  const Focus kept_focus = focus;
  Trace kept_trace = std::move(trace);
  const uint64_t start = position();
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
  (void)go_to(start, StopReason::kLocation);
  point_interval = 0;
  last = kept_event;
  focus = kept_focus;
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
void Session::Impl::replay_checks(uint64_t target) {
  start_checks(reaches_launch() ? check_set : sim::CheckSet());
  if (!checks) {
    return;
  }
  for (const std::unique_ptr<CheckProxy>& proxy : check_proxies) {
    proxy->launch_begin(*launch);
  }
  if (target == 0) {
    show_resident_blocks();
    return;
  }
  const StopEvent kept_event = last;
  const Focus kept_focus = focus;
  high_water = 0;
  restore(0);
  show_resident_blocks();
  (void)run_to(target);
  last = kept_event;
  focus = kept_focus;
}

} // namespace pto::dbg
