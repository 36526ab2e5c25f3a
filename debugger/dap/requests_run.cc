// SPDX-License-Identifier: Apache-2.0
// continue, steps, going back, pause; what the client hears when the kernel stops.
#include "debugger/command.h"
#include "debugger/dap/server_impl.h"
#include "simulator/fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pto::dbg {
namespace {

/// The protocol's own words where it has some.
std::string reason_word(const StopEvent& stop) {
  switch (stop.reason) {
  case StopReason::kLaunch:
    return "entry";
  case StopReason::kStep:
  case StopReason::kLocation:
  case StopReason::kHistoryStart:
    return "step";
  case StopReason::kBreakpoint:
    return "breakpoint";
  case StopReason::kWatchpoint:
    return "data breakpoint";
  case StopReason::kCatchpoint:
  case StopReason::kFault:
  case StopReason::kDeadlock:
    return "exception";
  case StopReason::kInterrupted:
  case StopReason::kLimit:
    return "pause";
  case StopReason::kFinished:
    return "exited";
  }
  return "pause";
}

std::string watch_text(const WatchHit& hit) {
  const auto shown = [&](const std::vector<uint8_t>& bytes) {
    return fmt::format("{}", fmt::join(watch_values(hit, bytes, 4), ", "));
  };
  return hit.is_read
             ? fmt::format("{} was read: {}", hit.text, shown(hit.new_bytes))
             : fmt::format("{}: {} -> {}", hit.text, shown(hit.old_bytes), shown(hit.new_bytes));
}

std::string description_of(const StopEvent& stop) {
  if (stop.fault) {
    return fmt::format("{}: {}", name(stop.fault->kind), stop.fault->message);
  }
  if (!stop.watches.empty()) {
    return watch_text(stop.watches.front());
  }
  if (stop.reason == StopReason::kCatchpoint && !stop.findings.empty()) {
    return stop.findings.front().message;
  }
  if (stop.reason == StopReason::kHistoryStart) {
    return "The history begins here";
  }
  if (stop.reason == StopReason::kFinished) {
    return "The kernel has finished";
  }
  if (stop.reason == StopReason::kLimit) {
    return "The limit on cycles was reached";
  }
  return {};
}

/// Interrupted for an answer, it can be taken up again with the same wish.
bool can_be_resumed(const Until& until) {
  return until.kind == Until::Kind::kStop;
}

} // namespace

void DapServer::focus_thread(const Json& arguments) {
  if (!find_integer(arguments, "threadId")) {
    return;
  }
  std::string error;
  if (!session().set_focus(thread_focus(arguments), error)) {
    throw RequestError(error);
  }
}

Json DapServer::on_continue(const Json& /*arguments*/) {
  run_after(Until::stop(), false);
  return {{"allThreadsContinued", true}};
}

Json DapServer::on_next(const Json& arguments) {
  focus_thread(arguments);
  run_after(find_bool(arguments, "singleThread", false) ? Until::step_warp() : Until::next(),
            false);
  return Json();
}

Json DapServer::on_step_in(const Json& arguments) {
  focus_thread(arguments);
  run_after(find_bool(arguments, "singleThread", false) ? Until::step_warp() : Until::step(),
            false);
  return Json();
}

Json DapServer::on_step_out(const Json& arguments) {
  focus_thread(arguments);
  run_after(Until::finish(), false);
  return Json();
}

Json DapServer::on_step_back(const Json& arguments) {
  focus_thread(arguments);
  run_after(find_bool(arguments, "singleThread", false) ? Until::step_warp() : Until::step(), true);
  return Json();
}

Json DapServer::on_reverse_continue(const Json& /*arguments*/) {
  run_after(Until::stop(), true);
  return Json();
}

Json DapServer::on_pause(const Json& /*arguments*/) {
  if (is_running_) {
    must_pause_ = true;
  }
  return Json();
}

void DapServer::run_after(const Until& until, bool is_reverse) {
  after_ = [this, until, is_reverse] { run(until, is_reverse); };
}

void DapServer::run(const Until& until, bool is_reverse) {
  if (has_ended_) {
    return;
  }
  if (session().is_over() && !is_reverse) {
    end_debuggee(session().fault() ? 1 : 0);
    return;
  }
  forget_references();
  must_pause_ = false;
  is_running_ = true;
  StopEvent stop;
  for (;;) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      running_ = session_;
      is_interruptible_ = can_be_resumed(until);
      if (!inbox_.empty() || is_input_over_) {
        running_->interrupt();
      }
    }
    stop = is_reverse ? session_->reverse(until) : session_->resume(until);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      running_ = nullptr;
    }
    report_output();
    if (stop.reason == StopReason::kInterrupted) {
      while (std::optional<Json> message = take(false)) {
        const std::function<void()> outer = std::exchange(after_, nullptr);
        handle(*message);
        after_ = outer;
        if (must_pause_) {
          break;
        }
      }
      if (!must_pause_ && !is_over_ && !has_ended_) {
        continue;
      }
    } else if (passes_log_points(stop)) {
      continue;
    }
    break;
  }
  is_running_ = false;
  if (stop.reason == StopReason::kHistoryStart && stop.position == 0) {
    // In front of the first insn, so that there is a block to look at.
    stop.focus = session_->resume(Until::start()).focus;
  }
  if (!is_over_ && !has_ended_) {
    report_stop(stop);
  }
}

/// A breakpoint with a message prints it and lets the kernel go on.
bool DapServer::passes_log_points(const StopEvent& stop) {
  if (stop.reason != StopReason::kBreakpoint || stop.ids.empty()) {
    return false;
  }
  bool is_all_logged = true;
  for (const int id : stop.ids) {
    const auto found = log_points_.find(id);
    if (found == log_points_.end()) {
      is_all_logged = false;
      continue;
    }
    std::string text;
    const std::string& format = found->second;
    for (size_t at = 0; at < format.size(); ++at) {
      const size_t end = format[at] == '{' ? format.find('}', at) : std::string::npos;
      if (end == std::string::npos) {
        text += format[at];
        continue;
      }
      std::string error;
      const std::string expression = format.substr(at + 1, end - at - 1);
      const std::optional<Evaluated> value = evaluate(expression, session_->focus(), error);
      text += value ? to_string(value->value) : fmt::format("<{}>", error);
      at = end;
    }
    output("console", text + "\n");
  }
  return is_all_logged;
}

void DapServer::report_output() {
  const std::vector<sim::PrintLine>& prints = session_->prints();
  if (prints.size() < prints_shown_) {
    prints_shown_ = prints.size(); // it went back
  }
  for (; prints_shown_ < prints.size(); ++prints_shown_) {
    output("stdout", prints[prints_shown_].text + "\n");
  }
  const std::vector<sim::Finding>& findings = session_->findings();
  if (findings.size() < findings_shown_) {
    findings_shown_ = findings.size();
  }
  for (; findings_shown_ < findings.size(); ++findings_shown_) {
    output("stderr", sim::format_finding(findings[findings_shown_], session_->program()));
  }
}

void DapServer::report_stop(const StopEvent& stop) {
  last_ = stop;
  report_output();
  if (!stop.note.empty()) {
    output("console", stop.note + "\n");
  }
  if (stop.reason == StopReason::kFinished && !stops_at_end_) {
    output("console",
           fmt::format(
               "{} has finished after {} cycles\n", session_->program().kernel().name, stop.cycle));
    end_debuggee(session_->findings().empty() ? 0 : 1);
    return;
  }
  if (stop.fault) {
    output("stderr", sim::format_fault(*stop.fault, session_->program()));
  }
  Json body = {{"reason", reason_word(stop)},
               {"threadId", thread_id(stop.focus)},
               {"allThreadsStopped", true}};
  for (const int id : stop.ids) {
    const auto found = break_reasons_.find(id);
    if (stop.reason == StopReason::kBreakpoint && found != break_reasons_.end()) {
      body["reason"] = found->second;
    }
  }
  const std::string description = description_of(stop);
  if (!description.empty()) {
    body["description"] = description;
    body["text"] = description;
  }
  if (!stop.ids.empty()) {
    body["hitBreakpointIds"] = stop.ids;
  }
  send_event("stopped", std::move(body));
}

} // namespace pto::dbg
