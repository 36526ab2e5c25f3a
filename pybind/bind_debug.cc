// SPDX-License-Identifier: Apache-2.0
// The debugger's session for pypto.debug.
//
// A session runs on a view of the device's memory, so the device must be a simulated one. While it
// runs it holds a Turn of its tensors: launches and copies that use them come before or after.
#include "debugger/command.h"
#include "debugger/session.h"
#include "pybind/bindings.h"
#include "simulator/report/reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace pto::py {

namespace {

namespace pyb = pybind11;

/// A sentence about what the user asked for: pypto.errors.DebugError.
[[noreturn]] void refuse(const std::string& message) {
  throw DebugError(message);
}

class PySession {
public:
  PySession(const DeviceHandle& device,
            const ProgramHandle& program,
            const Dim& grid,
            const Dim& block,
            const pyb::list& args,
            const pyb::dict& options)
      : device_(*device), program_(program.program) {
    sim::LaunchConfig config;
    config.grid = to_dim3(grid);
    config.block = to_dim3(block);
    config.dynamic_l1_bytes = options["dynamic_l1"].cast<uint32_t>();
    for (const pyb::handle& item : args) {
      const auto pair = pyb::reinterpret_borrow<pyb::tuple>(item);
      const rt::LaunchArgument arg = to_argument(item);
      if (arg.buffer != nullptr) {
        buffers_.push_back(pyb::reinterpret_borrow<pyb::object>(pair[0]));
        used_.push_back(arg.buffer);
        config.args.push_back({.bits = arg.buffer->address() + arg.bits,
                               .type = isa::Type::kU64,
                               .is_pointer = true});
      } else {
        config.args.push_back({.bits = arg.bits, .type = arg.type, .is_pointer = false});
      }
    }
    dbg::SessionOptions session_options;
    session_options.mode =
        options["lockstep"].cast<bool>() ? dbg::RunMode::kLockstep : dbg::RunMode::kTimed;
    session_options.checks = read_checks_or_throw(options["checks"].cast<std::string>());
    session_options.history_bytes = options["history_bytes"].cast<uint64_t>();
    if (!options["max_instructions"].is_none()) {
      session_options.max_insns = options["max_instructions"].cast<uint64_t>();
    }
    if (!options["max_cycles"].is_none()) {
      session_options.max_cycles = options["max_cycles"].cast<uint64_t>();
    }
    session_options.progress = [this](uint64_t /*position*/, uint64_t /*cycle*/) {
      if (signals_.look()) {
        session_->interrupt();
      }
    };
    const auto turn = take_turn(); // what was launched before is done
    machine_ = device_.view();
    if (!options["profile"].is_none()) {
      machine_->profile = options["profile"].cast<const isa::MachineProfile&>();
    }
    session_ = std::make_unique<dbg::Session>(
        *machine_, program_, std::move(config), std::move(session_options));
  }

  // ------------------------------------------------ running

  /// Runs and returns the stop as JSON, and what a step did and why it stopped as text.
  pyb::dict resume(const std::string& kind, uint64_t count, const std::string& location) {
    const dbg::Until until = to_until(kind, count, location);
    return run([&] { return session_->resume(until); }, until);
  }
  pyb::dict reverse(const std::string& kind, uint64_t count) {
    const dbg::Until until = to_until(kind, count, {});
    return run([&] { return session_->reverse(until); }, until);
  }
  void interrupt() { session_->interrupt(); }

  dbg::Session& session() { return *session_; }
  const sim::Program& program() const { return *program_; }

  // ------------------------------------------------ state

  std::vector<uint64_t>
  read_register(const std::string& name, uint64_t block, uint32_t first, uint32_t count) {
    std::string error;
    const auto values = session_->read_register(find_register(name), block, first, count, error);
    if (!values) {
      refuse(error);
    }
    return *values;
  }
  std::string register_type(const std::string& name, uint32_t pc) const {
    return std::string(isa::name(dbg::register_type(*program_, find_register(name), pc)));
  }
  pyb::bytes
  read_memory(const std::string& space, uint64_t block, uint64_t address, uint64_t size) const {
    std::string bytes(size, '\0');
    std::string error;
    if (!session_->read_memory(to_space(space),
                               block,
                               address,
                               {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()},
                               error)) {
      refuse(error);
    }
    return {bytes};
  }
  std::pair<pyb::bytes, pyb::bytes> read_l1(uint64_t block, uint64_t offset, uint64_t size) const {
    const dbg::L1Bytes l1 = session_->read_l1(block, offset, size);
    std::string held(l1.is_held.size(), '\0');
    for (size_t i = 0; i < held.size(); ++i) {
      held[i] = l1.is_held[i] ? '\1' : '\0';
    }
    return {pyb::bytes(reinterpret_cast<const char*>(l1.bytes.data()), l1.bytes.size()),
            pyb::bytes(held)};
  }
  std::string evaluate(const std::string& text) const {
    std::string error;
    const std::optional<dbg::Evaluated> value = session_->evaluate(text, error);
    if (!value) {
      refuse(error);
    }
    return dbg::value_json(*value, dbg::Evaluated::kMaxElements).dump();
  }
  void assign(const std::string& place, const std::string& value) {
    std::string error;
    const std::optional<dbg::Evaluated> from = session_->evaluate(value, error);
    if (!from) {
      refuse(error);
    }
    assign_value(place, *from);
  }
  void assign_real(const std::string& place, double value) {
    dbg::Evaluated from;
    from.value = dbg::Value::of_real(value);
    assign_value(place, from);
  }
  void assign_truth(const std::string& place, bool value) {
    std::string error;
    const std::optional<dbg::Evaluated> to = session_->evaluate(place, error);
    if (!to) {
      refuse(error);
    }
    if (to->place.type != isa::Type::kPred) {
      refuse(
          fmt::format("only a predicate takes True or False, and {} is none; write 1 or 0", place));
    }
    dbg::Evaluated from;
    from.value = {isa::Type::kPred, false, value ? uint64_t{1} : uint64_t{0}, 0};
    assign_value(place, from);
  }

  // ------------------------------------------------ stop points

  int add_break(const std::string& location, const std::string& condition) {
    std::string error;
    return id_or_refuse(session_->add_break(location, condition, error), error);
  }
  int add_watch(const std::string& expression,
                const std::string& access,
                const std::string& condition) {
    const dbg::WatchAccess kind = access == "read"  ? dbg::WatchAccess::kRead
                                  : access == "any" ? dbg::WatchAccess::kAny
                                                    : dbg::WatchAccess::kChange;
    std::string error;
    return id_or_refuse(session_->add_watch(expression, kind, condition, error), error);
  }
  int add_catch(const std::string& event) {
    std::string error;
    return id_or_refuse(session_->add_catch(event, error), error);
  }
  void delete_stop(int id) {
    if (!session_->stops().erase(id)) {
      refuse(fmt::format("there is no stop point {}", id));
    }
    session_->stops_changed();
  }
  void enable_stop(int id, bool is_enabled) {
    dbg::StopPoint* const point = session_->stops().find(id);
    if (point == nullptr) {
      refuse(fmt::format("there is no stop point {}", id));
    }
    point->is_enabled = is_enabled;
    session_->stops_changed();
  }
  pyb::list stops() const {
    pyb::list result;
    for (const dbg::StopPoint& point : session_->stops().all()) {
      result.append(pyb::make_tuple(
          point.id, point.text, point.condition_text, point.is_enabled, point.hits));
    }
    return result;
  }

  // ------------------------------------------------ reports

  pyb::list findings() const { return findings_list(session_->findings(), *program_); }
  pyb::list timeline() const {
    const sim::Timeline* const timeline = session_->timeline();
    return timeline == nullptr ? pyb::list() : timeline_list(*timeline, *program_);
  }
  pyb::dict counters() const {
    const std::optional<sim::TimedResult> timed = session_->timed_result();
    return timed ? counters_dict(*timed, *program_) : pyb::dict();
  }
  /// Texts of one report: "html", "trace", "stalls", "counters".
  std::vector<std::string> reports(const std::vector<std::string>& kinds,
                                   const std::vector<std::string>& stages) const {
    const sim::TimingReport report = timing_report(stages);
    std::vector<std::string> texts;
    for (const std::string& kind : kinds) {
      const auto* const found =
          std::find_if(std::begin(kReports), std::end(kReports), [&](const ReportKind& row) {
            return row.name == kind;
          });
      PTO_CHECK(found != std::end(kReports));
      texts.push_back(found->make(report));
    }
    return texts;
  }
  pyb::list bubbles() const {
    pyb::list result;
    for (const sim::Bubble& bubble : timing_report({}).bubbles) {
      pyb::dict row;
      row["unit"] = bubble.unit;
      row["cycles"] = bubble.total_cycles;
      row["count"] = bubble.count;
      row["longest"] = bubble.longest_cycles;
      row["start"] = bubble.longest_from;
      row["core"] = bubble.core;
      row["block"] = bubble.block;
      row["warp"] = bubble.warp;
      row["place"] = program_->place(bubble.ended_by_pc);
      row["cause"] =
          bubble.cause_pc == UINT32_MAX ? std::string() : program_->place(bubble.cause_pc);
      row["reason"] = std::string(sim::info(bubble.reason).name);
      row["text"] = bubble.text;
      row["hint"] = bubble.hint;
      result.append(row);
    }
    return result;
  }
  /// (warp, state, pc or None, why it does not issue) of a block's warps.
  pyb::list warps(uint64_t block) const {
    pyb::list result;
    if (block >= session_->launch().block_count()) {
      refuse(fmt::format(
          "there is no block {}; the grid has {}", block, session_->launch().block_count()));
    }
    const sim::BlockRun* const state = session_->block(block);
    if (state == nullptr) {
      return result;
    }
    for (uint32_t warp = 0; warp < state->image().warps; ++warp) {
      const uint32_t pc = session_->pc(block, warp);
      const auto status = session_->warp_status(block, warp);
      pyb::dict row;
      row["warp"] = warp;
      row["state"] = std::string(sim::name(state->state().warps[warp].status));
      row["place"] = pc == dbg::kNoPc ? std::string() : program_->place(pc);
      row["text"] = pc == dbg::kNoPc ? std::string() : program_->text(pc);
      row["reason"] =
          status && !status->is_done ? std::string(sim::info(status->reason).name) : std::string();
      row["waits_for"] = status ? status->operand : std::string();
      result.append(row);
    }
    return result;
  }

private:
  struct ReportKind {
    std::string_view name;
    std::string (*make)(const sim::TimingReport& report);
  };
  static constexpr ReportKind kReports[] = {
      {"html", [](const sim::TimingReport& report) { return sim::html_report(report); }},
      {"trace", [](const sim::TimingReport& report) { return sim::trace_json(report); }},
      {"stalls", [](const sim::TimingReport& report) { return sim::stalls_text(report); }},
      {"counters", [](const sim::TimingReport& report) { return sim::counters_text(report); }},
  };

  void assign_value(const std::string& place, const dbg::Evaluated& value) {
    std::string error;
    const std::optional<dbg::Evaluated> to = session_->evaluate(place, error);
    if (!to || !session_->assign_all(*to, value, error)) {
      refuse(error);
    }
  }

  sim::TimingReport timing_report(const std::vector<std::string>& stages) const {
    const std::optional<sim::TimedResult> timed = session_->timed_result();
    if (!timed) {
      refuse("this session has no timing (schedule=\"lockstep\"), so there is nothing to report; "
             "leave schedule out");
    }
    sim::ReportOptions options;
    options.grid = session_->launch().config().grid;
    options.block = session_->launch().config().block;
    options.sources = sim::read_sources(*program_);
    options.stages = stages;
    return sim::make_timing_report(*timed, *program_, machine_->profile, options);
  }

  static dbg::RegisterRef find_register(const std::string& name) {
    const std::optional<dbg::RegisterRef> reg = dbg::find_register(name);
    if (!reg) {
      refuse(fmt::format("there is no register '{}'; expected r0, d0, p0 or t0 and so on", name));
    }
    return *reg;
  }
  static isa::Space to_space(const std::string& name) {
    for (const isa::Space space : {isa::Space::kHbm, isa::Space::kL1, isa::Space::kConst}) {
      if (isa::name(space) == name) {
        return space;
      }
    }
    refuse(fmt::format("there is no memory '{}'; expected hbm, l1 or const", name));
  }
  static int id_or_refuse(std::optional<int> id, const std::string& error) {
    if (!id) {
      refuse(error);
    }
    return *id;
  }

  dbg::Until to_until(const std::string& kind, uint64_t count, const std::string& location) const {
    struct Row {
      std::string_view name;
      dbg::Until::Kind kind;
    };
    static constexpr Row kRows[] = {
        {"continue", dbg::Until::Kind::kStop},
        {"step", dbg::Until::Kind::kStep},
        {"step_warp", dbg::Until::Kind::kStepWarp},
        {"next", dbg::Until::Kind::kNext},
        {"finish", dbg::Until::Kind::kFinish},
        {"line", dbg::Until::Kind::kLine},
        {"cycle", dbg::Until::Kind::kCycle},
        {"position", dbg::Until::Kind::kPosition},
        {"location", dbg::Until::Kind::kLocation},
    };
    dbg::Until until;
    until.count = count;
    for (const Row& row : kRows) {
      if (row.name == kind) {
        until.kind = row.kind;
      }
    }
    if (until.kind == dbg::Until::Kind::kLocation) {
      std::string error;
      const uint32_t here = session_->last_stop().pc;
      const auto pcs =
          dbg::find_location(*program_,
                             location,
                             here == dbg::kNoPc ? std::nullopt : std::optional<uint32_t>(here),
                             error);
      if (!pcs) {
        refuse(error);
      }
      until.pcs = *pcs;
    }
    return until;
  }

  rt::Device::Turn take_turn() {
    std::vector<const rt::Buffer*> live;
    for (const rt::Buffer* buffer : used_) {
      if (!buffer->is_freed()) { // the view keeps the memory of the others
        live.push_back(buffer);
      }
    }
    return waiting(device_, [&] { return device_.take_turn(live); });
  }

  template <class Call> pyb::dict run(Call&& call, const dbg::Until& until) {
    const bool was_over = session_->is_over();
    std::optional<dbg::StopEvent> stop;
    {
      const auto turn = take_turn();
      waiting(device_, [&] { stop = call(); });
    }
    signals_.rethrow();
    pyb::dict result;
    result["json"] = dbg::stop_json(*session_, *stop).dump();
    result["text"] = dbg::describe_stop(*session_, *stop);
    const bool is_step = until.kind == dbg::Until::Kind::kStep ||
                         until.kind == dbg::Until::Kind::kStepWarp ||
                         until.kind == dbg::Until::Kind::kNext;
    result["trace"] = is_step ? dbg::describe_trace(*session_, lanes_shown) : std::string();
    if (!was_over && stop->fault &&
        (stop->reason == dbg::StopReason::kFault || stop->reason == dbg::StopReason::kDeadlock)) {
      throw_fault(*stop);
    }
    return result;
  }

  [[noreturn]] void throw_fault(const dbg::StopEvent& stop) const {
    std::string message = sim::format_fault(*stop.fault, *program_);
    while (!message.empty() && message.back() == '\n') {
      message.pop_back();
    }
    throw rt::KernelError(program_,
                          stop.reason == dbg::StopReason::kDeadlock ? sim::RunStatus::kDeadlock
                                                                    : sim::RunStatus::kFault,
                          stop.fault,
                          message);
  }

  rt::Device device_;
  std::shared_ptr<const sim::Program> program_;
  std::vector<pyb::object> buffers_; // keep what used_ points to
  std::vector<const rt::Buffer*> used_;
  std::unique_ptr<sim::Machine> machine_;
  std::unique_ptr<dbg::Session> session_; // goes before the machine
  SignalWatch signals_;

public:
  uint64_t lanes_shown = 2; // of each group of a step's text
};

using SessionHandle = OfProcess<PySession>;

} // namespace

void bind_debug(pyb::module_& module) {
  pyb::class_<SessionHandle>(module, "Session")
      .def(pyb::init([](const DeviceHandle& device,
                        const ProgramHandle& program,
                        const Dim& grid,
                        const Dim& block,
                        const pyb::list& args,
                        const pyb::dict& options) {
        return SessionHandle(
            std::make_unique<PySession>(device, program, grid, block, args, options));
      }))
      .def("resume", through(&PySession::resume))
      .def("reverse", through(&PySession::reverse))
      .def("interrupt", through(&PySession::interrupt))
      .def("show_lanes",
           [](const SessionHandle& self, uint64_t count) { self->lanes_shown = count; })
      .def_property_readonly("is_over",
                             [](const SessionHandle& self) { return self->session().is_over(); })
      .def_property_readonly("cycle",
                             [](const SessionHandle& self) { return self->session().cycle(); })
      .def_property_readonly("position",
                             [](const SessionHandle& self) { return self->session().position(); })
      .def_property_readonly("pc",
                             [](const SessionHandle& self) -> std::optional<uint32_t> {
                               const dbg::Focus& focus = self->session().focus();
                               const uint32_t pc = self->session().pc(focus.block, focus.warp);
                               return pc == dbg::kNoPc ? std::nullopt : std::optional<uint32_t>(pc);
                             })
      .def_property_readonly("focus",
                             [](const SessionHandle& self) {
                               const dbg::Focus& focus = self->session().focus();
                               return pyb::make_tuple(focus.block, focus.warp, focus.lane);
                             })
      .def("set_focus",
           [](const SessionHandle& self, uint64_t block, uint32_t warp, uint32_t lane) {
             std::string error;
             if (!self->session().set_focus({block, warp, lane}, error)) {
               refuse(error);
             }
           })
      .def_property_readonly(
          "block_lanes",
          [](const SessionHandle& self) { return self->session().launch().image().lanes; })
      .def_property_readonly("register_counts",
                             [](const SessionHandle& self) {
                               return pyb::make_tuple(self->program().reg32_limit(),
                                                      self->program().reg64_limit());
                             })
      .def("read_register", through(&PySession::read_register))
      .def("register_type", through(&PySession::register_type))
      .def("read_memory", through(&PySession::read_memory))
      .def("read_l1", through(&PySession::read_l1))
      .def("evaluate", through(&PySession::evaluate))
      .def("assign", through(&PySession::assign))
      .def("assign_real", through(&PySession::assign_real))
      .def("assign_truth", through(&PySession::assign_truth))
      .def("add_break", through(&PySession::add_break))
      .def("add_watch", through(&PySession::add_watch))
      .def("add_catch", through(&PySession::add_catch))
      .def("delete_stop", through(&PySession::delete_stop))
      .def("enable_stop", through(&PySession::enable_stop))
      .def("stops", through(&PySession::stops))
      .def("findings", through(&PySession::findings))
      .def("timeline", through(&PySession::timeline))
      .def_property_readonly("timeline_dropped",
                             [](const SessionHandle& self) -> uint64_t {
                               const sim::Timeline* const timeline = self->session().timeline();
                               return timeline == nullptr ? 0 : timeline->dropped();
                             })
      .def("counters", through(&PySession::counters))
      .def("reports", through(&PySession::reports))
      .def("bubbles", through(&PySession::bubbles))
      .def("warps", through(&PySession::warps))
      .def("prints", [](const SessionHandle& self) {
        std::vector<std::string> lines;
        for (const sim::PrintLine& line : self->session().prints()) {
          lines.push_back(line.text);
        }
        return lines;
      });
}

} // namespace pto::py
