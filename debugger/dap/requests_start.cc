// SPDX-License-Identifier: Apache-2.0
// initialize, launch, configurationDone, restart, terminate, disconnect.
#include "debugger/dap/server_impl.h"
#include "isa/suggest.h"
#include "simulator/launch_setup.h"

#include <fmt/format.h>

#include <array>
#include <unistd.h>
#include <utility>

namespace pto::dbg {
namespace {

/// "4", 4, "4x2" or [4, 2, 1].
sim::Dim3 dimensions(const Json& arguments, const char* name) {
  const auto found = arguments.find(name);
  if (found == arguments.end() || found->is_null()) {
    return {};
  }
  std::string text;
  if (found->is_string()) {
    text = found->get<std::string>();
  } else if (found->is_number_integer()) {
    text = found->dump();
  } else {
    for (const Json& entry : find_array(arguments, name)) {
      text += (text.empty() ? "" : ",") + entry.dump();
    }
  }
  std::string error;
  const std::optional<sim::Dim3> result = sim::parse_dim3(text, error);
  if (!result) {
    throw RequestError(fmt::format("'{}': {}", name, error));
  }
  return *result;
}

/// `"args": ["n=4", "a=rand:f32[4]"]` or `"args": {"n": 4, "a": "rand:f32[4]"}`.
std::vector<std::string> kernel_arguments(const Json& arguments) {
  const auto found = arguments.find("args");
  if (found == arguments.end() || !found->is_object()) {
    return find_strings(arguments, "args");
  }
  std::vector<std::string> texts;
  for (const auto& entry : found->items()) {
    const Json& value = entry.value();
    if (!value.is_string() && !value.is_number()) {
      throw RequestError(fmt::format("args.{} is {}; expected a number or a string such as "
                                     "\"rand:f32[1024]:seed=1\"",
                                     entry.key(),
                                     value.type_name()));
    }
    texts.push_back(entry.key() + "=" +
                    (value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return texts;
}

constexpr std::array<std::string_view, 17> kLaunchNames = {"program",
                                                           "kernel",
                                                           "grid",
                                                           "block",
                                                           "args",
                                                           "profile",
                                                           "set",
                                                           "checks",
                                                           "cwd",
                                                           "includeDirs",
                                                           "defines",
                                                           "dynamicL1",
                                                           "stopOnEntry",
                                                           "stopAtEnd",
                                                           "mode",
                                                           "maxCycles",
                                                           "historyMb"};
/// What clients add for themselves.
constexpr std::array<std::string_view, 12> kClientNames = {"name",
                                                           "type",
                                                           "request",
                                                           "noDebug",
                                                           "__restart",
                                                           "__sessionId",
                                                           "presentation",
                                                           "preLaunchTask",
                                                           "postDebugTask",
                                                           "internalConsoleOptions",
                                                           "debugServer",
                                                           "serverReadyAction"};

void check_names(const Json& arguments) {
  for (const auto& entry : arguments.items()) {
    const auto is_known = [&](const auto& names) {
      return std::find(names.begin(), names.end(), entry.key()) != names.end();
    };
    if (is_known(kLaunchNames) || is_known(kClientNames) || entry.key().starts_with("__")) {
      continue;
    }
    throw RequestError(fmt::format(
        "launch has no option '{}'{}", entry.key(), isa::did_you_mean(entry.key(), kLaunchNames)));
  }
}

uint64_t positive(const Json& arguments, std::string_view name, uint64_t otherwise) {
  const std::optional<int64_t> value = find_integer(arguments, name);
  if (value && *value < 0) {
    throw RequestError(fmt::format("'{}' is {}; expected 0 or more", name, *value));
  }
  return value ? static_cast<uint64_t>(*value) : otherwise;
}

} // namespace

LaunchRequest read_launch(const Json& arguments) {
  check_names(arguments);
  LaunchRequest request;
  TargetOptions& target = request.target;
  target.file = need_string(arguments, "program");
  target.kernel = find_string(arguments, "kernel").value_or("");
  target.grid = dimensions(arguments, "grid");
  target.block = dimensions(arguments, "block");
  target.args = kernel_arguments(arguments);
  target.profile = find_string(arguments, "profile").value_or("");
  target.overrides = find_strings(arguments, "set");
  target.include_dirs = find_strings(arguments, "includeDirs");
  target.defines = find_strings(arguments, "defines");
  std::string error;
  const std::optional<sim::CheckSet> checks =
      sim::parse_checks(find_string(arguments, "checks").value_or(""), error);
  if (!checks) {
    throw RequestError(fmt::format("'checks': {}", error));
  }
  target.checks = *checks;
  const uint64_t dynamic_l1 = positive(arguments, "dynamicL1", 0);
  if (dynamic_l1 > UINT32_MAX) {
    throw RequestError(
        fmt::format("'dynamicL1' is {} bytes; expected at most {}", dynamic_l1, UINT32_MAX));
  }
  target.dynamic_l1_bytes = static_cast<uint32_t>(dynamic_l1);
  const std::string mode = find_string(arguments, "mode").value_or("timed");
  if (mode != "timed" && mode != "lockstep") {
    throw RequestError(fmt::format("'mode' is '{}'; expected timed or lockstep", mode));
  }
  DebuggerSettings& settings = request.settings;
  settings.is_lockstep = mode == "lockstep";
  settings.max_cycles = positive(arguments, "maxCycles", settings.max_cycles);
  settings.history_mb = positive(arguments, "historyMb", settings.history_mb);
  if (settings.history_mb > kMostHistoryMb) {
    throw RequestError(
        fmt::format("'historyMb' is {}; expected at most {}", settings.history_mb, kMostHistoryMb));
  }
  return request;
}

Json DapServer::on_initialize(const Json& arguments) {
  if (is_initialized_) {
    throw RequestError("initialize came twice");
  }
  is_initialized_ = true;
  lines_start_at_1_ = find_bool(arguments, "linesStartAt1", true);
  columns_start_at_1_ = find_bool(arguments, "columnsStartAt1", true);
  knows_invalidated_ = find_bool(arguments, "supportsInvalidatedEvent", false);
  Json filters = Json::array();
  const auto add_filter = [&](const char* id, const char* label, const char* description) {
    filters.push_back({{"filter", id}, {"label", label}, {"description", description}});
  };
  add_filter("race", "Races", "Stop behind the insn with which the race check finds a race.");
  add_filter(
      "nan", "New NaN or infinity", "Stop where finite inputs first give a NaN or an infinity.");
  add_filter("init", "Undefined values", "Stop where a value that nobody wrote is used.");
  add_filter("sync", "Wrong synchronisation", "Stop at divergent barriers and the like.");
  add_filter("barrier", "Barriers", "Stop where a warp arrives at a barrier.");
  add_filter("trap", "Traps", "Stop at TRAP.");
  return {{"supportsConfigurationDoneRequest", true},
          {"supportsFunctionBreakpoints", true},
          {"supportsConditionalBreakpoints", true},
          {"supportsHitConditionalBreakpoints", true},
          {"supportsEvaluateForHovers", true},
          {"exceptionBreakpointFilters", filters},
          {"supportsStepBack", true},
          {"supportsSetVariable", true},
          {"supportsCompletionsRequest", true},
          {"supportsRestartRequest", true},
          {"supportsExceptionInfoRequest", true},
          {"supportTerminateDebuggee", true},
          {"supportsLoadedSourcesRequest", true},
          {"supportsLogPoints", true},
          {"supportsTerminateRequest", true},
          {"supportsDataBreakpoints", true},
          {"supportsReadMemoryRequest", true},
          {"supportsWriteMemoryRequest", true},
          {"supportsDisassembleRequest", true},
          {"supportsSteppingGranularity", true},
          {"supportsInstructionBreakpoints", true},
          {"supportsBreakpointLocationsRequest", true},
          {"supportsSingleThreadExecutionRequests", true}};
}

Json DapServer::on_attach(const Json& /*arguments*/) {
  throw RequestError("a kernel is simulated from its launch on, so there is nothing to attach to; "
                     "use \"request\": \"launch\"");
}

Json DapServer::on_launch(const Json& arguments) {
  if (session_ != nullptr) {
    throw RequestError("a program is loaded already; use restart");
  }
  LaunchRequest request = read_launch(arguments);
  stops_on_entry_ = find_bool(arguments, "stopOnEntry", false);
  stops_at_end_ = find_bool(arguments, "stopAtEnd", false);
  if (const std::optional<std::string> cwd = find_string(arguments, "cwd")) {
    if (chdir(cwd->c_str()) != 0) {
      throw RequestError(
          fmt::format("'cwd' is '{}', which is no directory that can be entered", *cwd));
    }
  }
  auto debugger = std::make_unique<Debugger>(std::move(request.target));
  debugger->settings() = request.settings;
  const CommandResult opened = debugger->open();
  if (!opened.is_good) {
    throw RequestError(opened.error);
  }
  debugger_ = std::move(debugger);
  try {
    begin_session();
  } catch (const RequestError&) {
    debugger_.reset();
    throw;
  }
  after_ = [this] { send_event("initialized"); };
  return Json();
}

/// A fresh launch: new memory, arguments as at first, stop points kept.
void DapServer::begin_session() {
  session_ = nullptr;
  debugger_->result() = {};
  if (!debugger_->launch()) {
    throw RequestError(debugger_->result().error);
  }
  session_ = debugger_->session();
  last_ = session_->last_stop();
  prints_shown_ = 0;
  findings_shown_ = 0;
  has_ended_ = false;
  forget_references();
}

void DapServer::start_session() {
  if (stops_on_entry_) {
    // Up to the first insn, so that there is a block to look at.
    StopEvent entry = session().resume(Until::start());
    entry.reason = StopReason::kLaunch;
    report_stop(entry);
  } else {
    run(Until::stop(), false);
  }
}

Json DapServer::on_configuration_done(const Json& /*arguments*/) {
  if (is_configured_) {
    throw RequestError("configurationDone came twice");
  }
  is_configured_ = true;
  after_ = [this] { start_session(); };
  return Json();
}

Json DapServer::on_restart(const Json& /*arguments*/) {
  begin_session();
  after_ = [this] { start_session(); };
  return Json();
}

Json DapServer::on_terminate(const Json& /*arguments*/) {
  must_pause_ = true;
  after_ = [this] { end_debuggee(0); };
  return Json();
}

Json DapServer::on_disconnect(const Json& /*arguments*/) {
  must_pause_ = true;
  is_over_ = true;
  return Json();
}

void DapServer::end_debuggee(int exit_code) {
  if (!has_ended_) {
    has_ended_ = true;
    send_event("exited", {{"exitCode", exit_code}});
    send_event("terminated");
  }
}

} // namespace pto::dbg
