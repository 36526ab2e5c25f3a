// SPDX-License-Identifier: Apache-2.0
// Breakpoints, watchpoints and catchpoints at work.
#include "debugger/session_impl.h"
#include "isa/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace pto::dbg {

std::string_view name(StopReason reason) {
  static constexpr std::string_view kNames[] = {"launch",
                                                "step",
                                                "location",
                                                "breakpoint",
                                                "watchpoint",
                                                "catchpoint",
                                                "fault",
                                                "deadlock",
                                                "finished",
                                                "interrupted",
                                                "limit",
                                                "history-start"};
  return kNames[static_cast<unsigned>(reason)];
}

namespace {

constexpr std::string_view kCatchNames[kCatchKindCount] = {
    "nan", "race", "init", "sync", "barrier", "trap", "launch", "fault"};

bool overlaps(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes) {
  return a_bytes != 0 && b_bytes != 0 && a < b + b_bytes && b < a + a_bytes;
}

/// Lanes of the insn that touch the watched bytes.
uint32_t touching_lanes(const WatchTarget& target, const sim::IssueRecord& record) {
  if (record.addresses == nullptr || record.space != target.space) {
    return 0;
  }
  uint32_t lanes = 0;
  for (uint32_t mask = record.exec_mask; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(mask));
    if (overlaps(record.addresses[lane], record.access_bytes, target.address, target.size_bytes)) {
      lanes |= 1u << lane;
    }
  }
  return lanes;
}

bool contains(const sim::ResourceSet& set, RegisterRef reg) {
  return reg.file == RegisterFile::kReg32   ? set.has_reg32(reg.index)
         : reg.file == RegisterFile::kReg64 ? set.has_reg64(reg.index)
                                            : ((set.preds >> reg.index) & 1) != 0;
}

/// The lowest lane of the mask, the preferred one first; 0 if there is none.
uint32_t pick_lane(uint32_t active, uint32_t preferred) {
  if ((active >> preferred & 1) != 0) {
    return preferred;
  }
  return active != 0 ? static_cast<uint32_t>(std::countr_zero(active)) : 0;
}

/// Events that a check finds.
constexpr std::pair<CatchKind, sim::CheckKind> kChecked[] = {
    {CatchKind::kNan, sim::CheckKind::kNan},
    {CatchKind::kRace, sim::CheckKind::kRace},
    {CatchKind::kInit, sim::CheckKind::kInit},
    {CatchKind::kSync, sim::CheckKind::kSync},
};

CatchKind catch_kind(sim::CheckKind kind) {
  for (const auto& [event, check] : kChecked) {
    if (check == kind) {
      return event;
    }
  }
  return CatchKind::kFault;
}

} // namespace

std::string_view name(CatchKind kind) {
  return kCatchNames[static_cast<unsigned>(kind)];
}

std::optional<CatchKind> find_catch_kind(std::string_view name) {
  for (unsigned i = 0; i < kCatchKindCount; ++i) {
    if (kCatchNames[i] == name) {
      return static_cast<CatchKind>(i);
    }
  }
  return std::nullopt;
}

std::optional<StopPoint> make_catch(std::string_view event, std::string& error) {
  const std::optional<CatchKind> kind = find_catch_kind(event);
  if (!kind) {
    const std::vector<std::string_view> names(std::begin(kCatchNames), std::end(kCatchNames));
    error = fmt::format("there is no event '{}'{}; expected one of {}",
                        event,
                        isa::did_you_mean(event, names),
                        fmt::join(names, ", "));
    return std::nullopt;
  }
  StopPoint point;
  point.kind = StopKind::kCatch;
  point.text = event;
  point.event = *kind;
  return point;
}

bool set_condition(StopPoint& point,
                   std::string_view text,
                   const sim::Program& program,
                   std::string& error) {
  std::shared_ptr<const Expression> parsed;
  if (!text.empty()) {
    parsed = Expression::parse(text, program, error);
    if (!parsed) {
      return false;
    }
  }
  point.condition = std::move(parsed);
  point.condition_text = text;
  return true;
}

// ---------------------------------------------------------------- the table

StopPoint& StopTable::add(StopPoint point) {
  point.id = next_id_++;
  points_.push_back(std::move(point));
  return points_.back();
}

StopPoint* StopTable::find(int id) {
  for (StopPoint& point : points_) {
    if (point.id == id) {
      return &point;
    }
  }
  return nullptr;
}

const StopPoint* StopTable::find(int id) const {
  return const_cast<StopTable*>(this)->find(id);
}

bool StopTable::erase(int id) {
  return std::erase_if(points_, [&](const StopPoint& point) { return point.id == id; }) != 0;
}

// ---------------------------------------------------------------- at work

void Session::Impl::index_stops() {
  has_break.assign(program->insns().size() + 1, 0);
  watches.clear();
  catches_barrier = false;
  for (StopPoint& point : stops.all()) {
    if (!point.is_enabled) {
      continue;
    }
    if (point.kind == StopKind::kBreak) {
      for (const uint32_t pc : point.pcs) {
        has_break[pc] = 1;
      }
    } else if (!are_stops_on) {
      continue;
    } else if (point.kind == StopKind::kWatch) {
      watches.push_back(&point);
    } else {
      catches_barrier = catches_barrier || point.event == CatchKind::kBarrier;
    }
  }
}

void Session::Impl::fire(StopPoint& point, StopReason reason, const Focus* where) {
  if (is_scanning) {
    if (scan_writer || scan_undo) {
      return; // it looks for something else
    }
    if (hits.empty() || hits.back().position != issue_position) {
      hits.push_back({issue_position, {}, {}});
    }
    StopEvent& hit = hits.back().event;
    hit.reason = reason;
    hit.ids.push_back(point.id);
    hit.focus = where != nullptr ? *where : focus;
    return;
  }
  ++point.hits;
  if (point.ignore > 0) {
    --point.ignore;
    return;
  }
  event.reason = reason;
  event.ids.push_back(point.id);
  if (where != nullptr) {
    event.focus = *where;
  }
  must_stop = true;
}

uint32_t
Session::Impl::condition_lanes(const StopPoint& point, const sim::BlockRun& run, uint32_t warp) {
  const uint32_t active = run.active_mask(warp);
  if (!point.condition) {
    return active;
  }
  EvalContext context;
  context.session = owner;
  context.block = &run;
  context.warp = warp;
  uint32_t lanes = 0;
  for (uint32_t mask = active; mask != 0; mask &= mask - 1) {
    context.lane = static_cast<uint32_t>(std::countr_zero(mask));
    std::string error;
    const std::optional<Evaluated> result = point.condition->evaluate(context, error);
    if (!result) {
      if (are_stops_on) {
        event.note = fmt::format(
            "the condition of {} cannot be evaluated and counts as true: {}", point.id, error);
      }
      return active;
    }
    if (result->value.is_true()) {
      lanes |= 1u << context.lane;
    }
  }
  return lanes;
}

bool Session::Impl::check_breaks(const sim::BlockRun& run, uint32_t warp) {
  const sim::WarpState& state = run.warp(warp);
  const uint32_t pc = state.pc;
  const bool takes_next = has_break[pc + 1] != 0 && engine->model() != nullptr &&
                          engine->model()->is_fused_with_previous(pc + 1);
  if (has_break[pc] == 0 && !takes_next) {
    return false;
  }
  bool has_fired = false;
  for (StopPoint& point : stops.all()) {
    if (point.kind != StopKind::kBreak || !point.is_enabled ||
        std::none_of(point.pcs.begin(), point.pcs.end(), [&](uint32_t p) {
          return p == pc || (takes_next && p == pc + 1);
        })) {
      continue;
    }
    BreakVisits& seen = break_states[point.id][run.index()];
    seen.visits.resize(run.warp_count());
    seen.seen_at.resize(run.warp_count());
    if (seen.seen_at[warp] == state.issued + 1) {
      continue; // this very visit: the run goes on from here
    }
    seen.seen_at[warp] = state.issued + 1;
    const uint32_t lanes = condition_lanes(point, run, warp);
    if (lanes == 0 || ++seen.visits[warp] <= seen.stopped) {
      continue;
    }
    seen.stopped = seen.visits[warp];
    if (!are_stops_on) {
      continue;
    }
    const bool is_focused = run.index() == focus.block && warp == focus.warp;
    const Focus where{run.index(), warp, pick_lane(lanes, is_focused ? focus.lane : 0)};
    fire(point, StopReason::kBreakpoint, &where);
    has_fired = has_fired || must_stop;
  }
  return has_fired;
}

/// A stop that no breakpoint caused may stand at one: it is not hit again when the run goes on.
void Session::Impl::mark_seen(const Focus& where) {
  const sim::BlockRun* run = block(where.block);
  if (run == nullptr) {
    return;
  }
  const sim::WarpState& state = run->warp(where.warp);
  if (state.status != sim::WarpStatus::kReady) {
    return;
  }
  const std::string note = event.note; // it is about the stop, not about what is seen here
  for (StopPoint& point : stops.all()) {
    if (point.kind != StopKind::kBreak || !point.is_enabled ||
        std::find(point.pcs.begin(), point.pcs.end(), state.pc) == point.pcs.end()) {
      continue;
    }
    BreakVisits& seen = break_states[point.id][run->index()];
    seen.visits.resize(run->warp_count());
    seen.seen_at.resize(run->warp_count());
    if (seen.seen_at[where.warp] == state.issued + 1 ||
        condition_lanes(point, *run, where.warp) == 0) {
      continue;
    }
    seen.seen_at[where.warp] = state.issued + 1;
    seen.stopped = std::max(seen.stopped, ++seen.visits[where.warp]);
  }
  event.note = note;
}

// ---------------------------------------------------------------- watchpoints

std::vector<uint8_t> Session::Impl::watch_bytes(const WatchTarget& target) const {
  std::vector<uint8_t> bytes;
  const sim::BlockRun* run = block(target.block);
  if (target.is_register) {
    if (run == nullptr) {
      return bytes;
    }
    const unsigned size = target.reg.file == RegisterFile::kReg64   ? 8
                          : target.reg.file == RegisterFile::kReg32 ? 4
                                                                    : 1;
    for (uint32_t mask = target.lane_mask; mask != 0; mask &= mask - 1) {
      const uint32_t lane =
          target.warp * isa::kWarpLanes + static_cast<uint32_t>(std::countr_zero(mask));
      const uint64_t value = register_bits(*run, target.reg, lane);
      for (unsigned i = 0; i < size; ++i) {
        bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
      }
    }
    return bytes;
  }
  bytes.resize(target.size_bytes);
  std::string error;
  if (!owner->read_memory(target.space, target.block, target.address, bytes, error)) {
    bytes.clear();
  }
  return bytes;
}

void Session::Impl::refresh_watches() {
  for (const StopPoint* point : watches) {
    watch_values[point->id] = watch_bytes(point->target);
  }
  if (scan_writer) {
    watch_values[0] = watch_bytes(scan_writer->target);
  }
}

void Session::Impl::watch_touched(StopPoint& point, const WatchHit& where, bool wrote, bool read) {
  std::vector<uint8_t>& known = watch_values[point.id];
  std::vector<uint8_t> now = watch_bytes(point.target);
  const bool has_changed = wrote && now != known && !now.empty() && !known.empty();
  WatchHit hit = where;
  hit.id = point.id;
  hit.text = point.text;
  hit.type = point.target.type;
  hit.old_bytes = std::exchange(known, now);
  hit.new_bytes = std::move(now);
  hit.is_read = !wrote;
  if (scan_writer && point.id == 0) {
    if (wrote) {
      hits.push_back({issue_position,
                      {},
                      {issue_position,
                       engine->model() != nullptr ? pending_cycle : engine->cycle(),
                       hit.block,
                       hit.warp,
                       hit.lane_mask,
                       hit.pc,
                       hit.is_copy,
                       hit.old_bytes,
                       hit.new_bytes}});
    }
    return;
  }
  const bool is_hit = point.access == WatchAccess::kChange ? has_changed
                      : point.access == WatchAccess::kRead ? read
                                                           : read || wrote;
  if (!is_hit || !are_stops_on || (is_scanning && (scan_writer || scan_undo))) {
    return;
  }
  const sim::BlockRun* run = block(hit.block);
  const uint32_t lane =
      hit.lane_mask != 0 ? static_cast<uint32_t>(std::countr_zero(hit.lane_mask)) : 0;
  if (point.condition && run != nullptr) {
    EvalContext context;
    context.session = owner;
    context.block = run;
    context.warp = hit.warp;
    context.lane = lane;
    std::string error;
    const std::optional<Evaluated> result = point.condition->evaluate(context, error);
    if (result && !result->value.is_true()) {
      return;
    }
    if (!result) {
      event.note = fmt::format(
          "the condition of {} cannot be evaluated and counts as true: {}", point.id, error);
    }
  }
  const Focus place{hit.block, hit.warp, lane};
  const bool had_stopped = must_stop;
  fire(point, StopReason::kWatchpoint, &place);
  if (is_scanning) {
    hits.back().event.watches.push_back(std::move(hit));
  } else if (must_stop && (had_stopped || !event.ids.empty())) {
    event.watches.push_back(std::move(hit));
  }
}

void Session::Impl::check_watches(const sim::BlockRun& run, const sim::IssueRecord& record) {
  const auto look = [&](StopPoint& point) {
    const WatchTarget& target = point.target;
    const bool needs_block = target.is_register || target.space == isa::Space::kL1;
    if (needs_block && target.block != run.index()) {
      return;
    }
    WatchHit hit;
    hit.block = run.index();
    hit.warp = record.warp;
    hit.pc = record.pc;
    if (target.is_register) {
      hit.lane_mask = record.exec_mask & target.lane_mask;
      if (record.warp != target.warp || hit.lane_mask == 0) {
        return;
      }
      const bool wrote = contains(record.decoded->writes, target.reg);
      const bool read = contains(record.decoded->reads, target.reg);
      if (wrote || read) {
        watch_touched(point, hit, wrote, read);
      }
      return;
    }
    hit.lane_mask = touching_lanes(target, record);
    bool wrote = hit.lane_mask != 0 && record.writes_memory;
    bool read = hit.lane_mask != 0 && record.reads_memory;
    for (uint8_t i = 0; i < record.l1_count && target.space == isa::Space::kL1; ++i) {
      const sim::L1Record& range = record.l1[i];
      if (overlaps(range.offset, range.size_bytes, target.address, target.size_bytes)) {
        wrote = wrote || range.writes;
        read = read || range.reads;
      }
    }
    if (wrote || read) {
      watch_touched(point, hit, wrote, read);
    }
  };
  for (StopPoint* point : watches) {
    look(*point);
  }
  if (scan_writer) {
    look(*scan_writer);
  }
}

void Session::Impl::check_watch_copy(const sim::BlockRun& run, const sim::CopyRecord& copy) {
  const auto look = [&](StopPoint& point) {
    const WatchTarget& target = point.target;
    if (target.is_register || target.space == isa::Space::kConst ||
        (target.space == isa::Space::kL1 && target.block != run.index())) {
      return;
    }
    bool is_touched = false;
    for (uint32_t row = 0; row < copy.shape.rows && !is_touched; ++row) {
      const uint64_t begin =
          target.space == isa::Space::kHbm ? copy.hbm_row(row) : copy.l1_row(row);
      is_touched = overlaps(begin, copy.shape.row_bytes, target.address, target.size_bytes);
    }
    if (!is_touched) {
      return;
    }
    const bool writes_hbm = copy.direction == isa::CopyDirection::kL1ToHbm;
    const bool wrote = writes_hbm == (target.space == isa::Space::kHbm);
    WatchHit hit;
    hit.block = run.index();
    hit.pc = copy.pc;
    hit.is_copy = true;
    watch_touched(point, hit, wrote, !wrote);
  };
  for (StopPoint* point : watches) {
    look(*point);
  }
  if (scan_writer) {
    look(*scan_writer);
  }
}

// ---------------------------------------------------------------- events

void Session::Impl::catch_event(CatchKind kind, const Focus* where) {
  for (StopPoint& point : stops.all()) {
    if (point.kind == StopKind::kCatch && point.is_enabled && point.event == kind) {
      fire(point, StopReason::kCatchpoint, where);
    }
  }
}

/// The run ends here, whether or not somebody catches it: catchpoints are counted and named, and
/// only named by who goes there blind to stop points.
void Session::Impl::note_fault(const sim::Fault& fault) {
  for (StopPoint& point : stops.all()) {
    const bool is_caught =
        point.kind == StopKind::kCatch && point.is_enabled &&
        (point.event == CatchKind::kFault ||
         (point.event == CatchKind::kTrap && fault.kind == sim::FaultKind::kTrap));
    if (is_caught && !is_scanning) {
      point.hits += are_stops_on ? 1 : 0;
      event.ids.push_back(point.id);
    }
  }
}

void Session::Impl::check_findings() {
  if (!checks) {
    return;
  }
  const std::vector<sim::Finding>& list = checks->findings().list();
  if (check_gate.is_open) {
    finding_positions.resize(list.size(), position());
  }
  while (findings_seen < finding_positions.size() &&
         finding_positions[findings_seen] <= position()) {
    const sim::Finding& finding = list[findings_seen++];
    if (!are_stops_on) {
      continue;
    }
    const Focus where{finding.here.block,
                      finding.here.warp,
                      finding.here.lane_mask != 0
                          ? static_cast<uint32_t>(std::countr_zero(finding.here.lane_mask))
                          : 0};
    const size_t before = is_scanning ? hits.size() : 0;
    catch_event(catch_kind(finding.kind), &where);
    if (!is_scanning) {
      event.findings.push_back(finding);
    } else if (hits.size() > before) {
      hits.back().event.findings.push_back(finding);
    }
  }
}

void Session::Impl::add_check(CatchKind kind) {
  for (const auto& [caught, check] : kChecked) {
    if (caught == kind) {
      check_set.add(check);
    }
  }
}

void Session::Impl::start_checks(sim::CheckSet set) {
  check_set = set;
  finding_positions.clear();
  findings_seen = 0;
  is_end_noted = false;
  for (const std::unique_ptr<CheckProxy>& proxy : check_proxies) {
    launch->observers().detach(*proxy);
  }
  check_proxies.clear();
  check_gate = {};
  checks.reset();
  if (set.empty()) {
    return;
  }
  checks = std::make_unique<sim::Checks>(set);
  for (const std::unique_ptr<sim::Observer>& check : checks->observers()) {
    check_proxies.push_back(std::make_unique<CheckProxy>(*check, check_gate));
    launch->observers().attach(*check_proxies.back());
  }
  // Behind the proxies: block events are counted after they were passed on.
  attach();
}

} // namespace pto::dbg
