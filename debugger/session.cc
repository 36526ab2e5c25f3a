// SPDX-License-Identifier: Apache-2.0
// The session as others see it: construction, questions about where it stands, stop points.
#include "debugger/session.h"

#include "debugger/session_impl.h"
#include "isa/error.h"
#include "isa/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pto::dbg {

Session::Impl::Impl(Session& session,
                    sim::Machine& the_machine,
                    std::shared_ptr<const sim::Program> the_program,
                    sim::LaunchConfig config,
                    SessionOptions the_options,
                    sim::SharedMemory* shared,
                    StopTable the_stops)
    : owner(&session), machine(the_machine), program(std::move(the_program)),
      options(std::move(the_options)),
      launch(std::make_unique<sim::Launch>(machine, program, std::move(config))),
      stops(std::move(the_stops)) {
  if (machine.hbm.history() != nullptr) {
    throw Error("this machine's memory is already followed by another debugger session; end that "
                "one first");
  }
  history = std::make_unique<History>(machine.hbm, options.history_bytes);
  check_set = options.checks;
  for (const StopPoint& point : stops.all()) {
    if (point.kind == StopKind::kCatch) {
      add_check(point.event);
    }
  }
  start_checks(check_set);
  sim::TimedOptions timed;
  timed.timing.max_cycles = options.max_cycles;
  timed.timing.record_timeline = options.timeline_entries != 0;
  timed.timing.timeline_limits.max_entries = options.timeline_entries;
  timed.interrupt = &interrupt_flag;
  timed.gate = this;
  attach();
  if (options.mode == RunMode::kTimed) {
    if (shared == nullptr) {
      own_shared = std::make_unique<sim::SharedMemory>(machine.profile);
      shared = own_shared.get();
    }
    engine = make_timed_engine(*launch, *shared, timed);
  } else {
    engine = make_lockstep_engine(*launch, timed);
  }
  take_point();
  last.focus = focus;
  last.has_block = block(0) != nullptr;
}

Session::Impl::~Impl() {
  engine.reset(); // before the history of the memory that it writes
}

Session::Session(sim::Machine& machine,
                 std::shared_ptr<const sim::Program> program,
                 sim::LaunchConfig config,
                 SessionOptions options,
                 sim::SharedMemory* shared,
                 StopTable stops)
    : impl_(std::make_unique<Impl>(*this,
                                   machine,
                                   std::move(program),
                                   std::move(config),
                                   std::move(options),
                                   shared,
                                   std::move(stops))) {}

Session::~Session() = default;

// ---------------------------------------------------------------- running

StopEvent Session::resume(const Until& until) {
  return impl_->resume(until);
}

StopEvent Session::reverse(const Until& until) {
  return impl_->reverse(until);
}

StopEvent Session::go_to(const Moment& moment) {
  return impl_->go_to(moment, StopReason::kLocation);
}

StopEvent Session::go_to_position(uint64_t position) {
  return impl_->go_to(impl_->moment_at(position), StopReason::kLocation);
}

StopEvent Session::go_to_cycle(uint64_t cycle) {
  return impl_->go_to_cycle(cycle);
}

void Session::interrupt() {
  impl_->interrupt_flag.store(true, std::memory_order_relaxed);
}

const StopEvent& Session::last_stop() const {
  return impl_->last;
}

uint64_t Session::position() const {
  return impl_->position();
}

Moment Session::moment() const {
  return impl_->moment();
}

uint64_t Session::cycle() const {
  return impl_->shown_cycle();
}

bool Session::is_finished() const {
  return impl_->engine->is_finished();
}

bool Session::is_over() const {
  return impl_->is_over();
}

const std::optional<sim::Fault>& Session::fault() const {
  return impl_->engine->fault();
}

RunMode Session::mode() const {
  return impl_->options.mode;
}

const SessionOptions& Session::options() const {
  return impl_->options;
}

// ---------------------------------------------------------------- focus

const Focus& Session::focus() const {
  return impl_->focus;
}

bool Session::set_focus(const Focus& focus, std::string& error) {
  const sim::LaunchImage& image = impl_->launch->image();
  if (focus.block >= impl_->launch->block_count()) {
    error = fmt::format("there is no block {}: the grid has {} (0 to {})",
                        focus.block,
                        impl_->launch->block_count(),
                        impl_->launch->block_count() - 1);
    return false;
  }
  if (focus.warp >= image.warps) {
    error = fmt::format(
        "there is no warp {}: a block has {} (0 to {})", focus.warp, image.warps, image.warps - 1);
    return false;
  }
  if (focus.lane >= isa::kWarpLanes || (image.warp_masks[focus.warp] >> focus.lane & 1) == 0) {
    error = fmt::format("there is no lane {} in warp {}: it has {}",
                        focus.lane,
                        focus.warp,
                        __builtin_popcount(image.warp_masks[focus.warp]));
    return false;
  }
  impl_->focus = focus;
  return true;
}

sim::BlockRun* Session::block(uint64_t index) const {
  return impl_->block(index);
}

BlockPhase Session::phase(uint64_t index) const {
  if (const sim::BlockRun* run = impl_->block(index)) {
    return run->is_done() ? BlockPhase::kDone : BlockPhase::kResident;
  }
  return index < impl_->launch->blocks_started() ? BlockPhase::kDone : BlockPhase::kWaiting;
}

std::vector<uint64_t> Session::resident_blocks() const {
  std::vector<uint64_t> blocks;
  for (uint32_t place = 0; place < impl_->engine->place_count(); ++place) {
    if (const sim::BlockRun* run = impl_->engine->block_at(place)) {
      blocks.push_back(run->index());
    }
  }
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

uint32_t Session::pc(uint64_t block_index, uint32_t warp) const {
  const sim::BlockRun* run = impl_->block(block_index);
  return run != nullptr && warp < run->warp_count() &&
                 run->warp(warp).status != sim::WarpStatus::kDone
             ? run->warp(warp).pc
             : kNoPc;
}

std::optional<uint32_t> Session::here() const {
  const uint32_t found = pc(focus().block, focus().warp);
  return found == kNoPc ? std::nullopt : std::optional<uint32_t>(found);
}

std::optional<sim::TimingModel::WarpStatus> Session::warp_status(uint64_t block_index,
                                                                 uint32_t warp) const {
  if (impl_->engine->model() == nullptr) {
    return std::nullopt;
  }
  for (uint32_t place = 0; place < impl_->engine->place_count(); ++place) {
    const sim::BlockRun* run = impl_->engine->block_at(place);
    if (run != nullptr && run->index() == block_index) {
      return impl_->engine->model()->status(place, warp);
    }
  }
  return std::nullopt;
}

// ---------------------------------------------------------------- launch

const sim::Launch& Session::launch() const {
  return *impl_->launch;
}

const sim::Program& Session::program() const {
  return *impl_->program;
}

sim::Machine& Session::machine() const {
  return impl_->machine;
}

const std::vector<sim::PrintLine>& Session::prints() const {
  return impl_->launch->prints();
}

EvalContext Session::context() const {
  EvalContext context;
  context.session = this;
  context.block = focused_block();
  context.warp = focus().warp;
  context.lane = focus().lane;
  return context;
}

std::optional<Evaluated> Session::evaluate(std::string_view text, std::string& error) const {
  const auto expression = Expression::parse(text, program(), error);
  return expression ? expression->evaluate(context(), error) : std::nullopt;
}

// ---------------------------------------------------------------- stop points

StopTable& Session::stops() {
  return impl_->stops;
}

const StopTable& Session::stops() const {
  return impl_->stops;
}

StopTable Session::release_stops() {
  return std::exchange(impl_->stops, {});
}

std::optional<int>
Session::add_break(std::string_view location, std::string_view condition, std::string& error) {
  const auto pcs = find_location(program(), location, here(), error);
  if (!pcs) {
    return std::nullopt;
  }
  StopPoint point;
  point.kind = StopKind::kBreak;
  point.text = location.empty() ? fmt::format("*{}", (*pcs)[0]) : std::string(location);
  point.pcs = *pcs;
  if (!set_condition(point, condition, program(), error)) {
    return std::nullopt;
  }
  return impl_->stops.add(std::move(point)).id;
}

std::optional<int> Session::add_watch(std::string_view text,
                                      WatchAccess access,
                                      std::string_view condition,
                                      std::string& error) {
  const std::optional<Evaluated> value = evaluate(text, error);
  if (!value) {
    return std::nullopt;
  }
  StopPoint point;
  point.kind = StopKind::kWatch;
  point.text = text;
  point.access = access;
  const Place& place = value->place;
  if (place.kind == Place::Kind::kNone) {
    error = fmt::format("'{}' has no place to watch; expected a register ($r1), an element (a[3]) "
                        "or memory (l1:64)",
                        text);
    return std::nullopt;
  }
  WatchTarget& target = point.target;
  target.block = focus().block;
  target.type = place.type;
  const uint64_t count = value->is_array ? std::max<size_t>(1, value->array.size()) : 1;
  if (place.kind == Place::Kind::kRegister) {
    target.is_register = true;
    target.reg = place.reg;
    target.warp = place.first_lane / isa::kWarpLanes;
    const uint32_t first = place.first_lane % isa::kWarpLanes;
    const uint64_t lanes = std::min<uint64_t>(count, isa::kWarpLanes - first);
    target.lane_mask = (lanes == 32 ? ~0u : (1u << static_cast<unsigned>(lanes)) - 1) << first;
    if (value->is_lanes && count > lanes) { // all lanes of the block: those of the focused warp
      target.warp = focus().warp;
      target.lane_mask = ~0u;
    }
  } else {
    target.space = place.space;
    target.address = place.address;
    target.size_bytes = count * std::max(1u, isa::size_bytes(place.type));
  }
  if (!set_condition(point, condition, program(), error)) {
    return std::nullopt;
  }
  return impl_->stops.add(std::move(point)).id;
}

std::optional<int> Session::add_catch(std::string_view event, std::string& error) {
  const std::optional<StopPoint> point = make_catch(event, error);
  if (!point) {
    return std::nullopt;
  }
  const sim::CheckSet before = impl_->check_set;
  impl_->add_check(point->event);
  if (!(impl_->check_set == before)) {
    if (!impl_->reaches_launch()) {
      impl_->check_set = before;
      error = fmt::format("the {} check must see everything since the launch, and the history does "
                          "not reach back so far; turn it on before the next run",
                          event);
      return std::nullopt;
    }
    impl_->replay_checks(impl_->moment());
  }
  return impl_->stops.add(*point).id;
}

void Session::stops_changed() {
  impl_->index_stops();
}

// ---------------------------------------------------------------- results, history

const std::vector<sim::Finding>& Session::findings() const {
  static const std::vector<sim::Finding> kNone;
  return impl_->checks ? impl_->checks->findings().list() : kNone;
}

std::optional<sim::TimedResult> Session::timed_result() const {
  return impl_->engine->timed_result();
}

const sim::Timeline* Session::timeline() const {
  return impl_->engine->model() != nullptr ? &impl_->engine->model()->timeline() : nullptr;
}

sim::RunResult Session::run_result() const {
  return impl_->engine->run_result();
}

const Trace& Session::trace() const {
  return impl_->trace;
}

HistoryInfo Session::history() const {
  HistoryInfo info;
  info.limit_bytes = impl_->history->limit_bytes();
  info.used_bytes = impl_->history->used_bytes();
  info.snapshots = impl_->history->points().size();
  info.first_position =
      impl_->history->points().empty() ? position() : impl_->history->points()[0].position;
  info.last_position = impl_->high_water;
  return info;
}

void Session::set_history_bytes(uint64_t limit) {
  impl_->history->set_limit_bytes(limit);
  impl_->next_point = 0; // the next run begins with a point
}

std::optional<Writer> Session::last_writer(isa::Space space,
                                           uint64_t block_index,
                                           uint64_t address,
                                           uint64_t size_bytes) {
  WatchTarget target;
  target.space = space;
  target.block = block_index;
  target.address = address;
  target.size_bytes = size_bytes;
  return impl_->last_writer(target);
}

} // namespace pto::dbg
