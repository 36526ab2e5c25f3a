// SPDX-License-Identifier: Apache-2.0
#include "debugger/dap/server.h"

#include "debugger/dap/server_impl.h"
#include "isa/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <thread>
#include <utility>

namespace pto::dbg {

struct DapServer::Handler {
  std::string_view command;
  Json (DapServer::*handle)(const Json& arguments);
  bool needs_session; // there is a program
  bool needs_stop;    // makes no sense while the kernel runs
};

const std::vector<DapServer::Handler>& DapServer::handlers() {
  static const std::vector<Handler> kHandlers = {
      {"initialize", &DapServer::on_initialize, false, false},
      {"launch", &DapServer::on_launch, false, true},
      {"attach", &DapServer::on_attach, false, true},
      {"configurationDone", &DapServer::on_configuration_done, true, true},
      {"restart", &DapServer::on_restart, true, true},
      {"disconnect", &DapServer::on_disconnect, false, false},
      {"terminate", &DapServer::on_terminate, false, false},
      {"continue", &DapServer::on_continue, true, true},
      {"next", &DapServer::on_next, true, true},
      {"stepIn", &DapServer::on_step_in, true, true},
      {"stepOut", &DapServer::on_step_out, true, true},
      {"stepBack", &DapServer::on_step_back, true, true},
      {"reverseContinue", &DapServer::on_reverse_continue, true, true},
      {"pause", &DapServer::on_pause, true, false},
      {"setBreakpoints", &DapServer::on_set_breakpoints, true, false},
      {"setFunctionBreakpoints", &DapServer::on_set_function_breakpoints, true, false},
      {"setInstructionBreakpoints", &DapServer::on_set_instruction_breakpoints, true, false},
      {"setExceptionBreakpoints", &DapServer::on_set_exception_breakpoints, true, false},
      {"dataBreakpointInfo", &DapServer::on_data_breakpoint_info, true, true},
      {"setDataBreakpoints", &DapServer::on_set_data_breakpoints, true, false},
      {"breakpointLocations", &DapServer::on_breakpoint_locations, true, false},
      {"exceptionInfo", &DapServer::on_exception_info, true, true},
      {"threads", &DapServer::on_threads, true, false},
      {"stackTrace", &DapServer::on_stack_trace, true, true},
      {"scopes", &DapServer::on_scopes, true, true},
      {"variables", &DapServer::on_variables, true, true},
      {"setVariable", &DapServer::on_set_variable, true, true},
      {"evaluate", &DapServer::on_evaluate, true, true},
      {"completions", &DapServer::on_completions, true, false},
      {"loadedSources", &DapServer::on_loaded_sources, true, false},
      {"readMemory", &DapServer::on_read_memory, true, true},
      {"writeMemory", &DapServer::on_write_memory, true, true},
      {"disassemble", &DapServer::on_disassemble, true, false},
  };
  return kHandlers;
}

DapServer::DapServer(int input_fd, int output_fd) : reader_(input_fd), writer_(output_fd) {}
DapServer::~DapServer() = default;

// ------------------------------------------------ the reading thread

void DapServer::read_loop() {
  for (;;) {
    std::optional<std::string> body = reader_.read();
    std::optional<Json> message;
    if (body) {
      Json parsed = Json::parse(*body, nullptr, false);
      message = std::move(parsed); // discarded ones are answered by the other thread
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    if (message) {
      inbox_.push_back(std::move(*message));
    } else {
      is_input_over_ = true;
    }
    if (running_ != nullptr) {
      const Json command =
          message && inbox_.back().is_object() ? inbox_.back().value("command", Json()) : Json();
      const bool ends_run =
          !message || command == "pause" || command == "disconnect" || command == "terminate";
      if (ends_run || is_interruptible_) {
        running_->interrupt();
      }
    }
    arrived_.notify_one();
    if (!message) {
      return;
    }
  }
}

// ------------------------------------------------ the answering thread

std::optional<Json> DapServer::take(bool may_wait) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (may_wait) {
    arrived_.wait(lock, [&] { return !inbox_.empty() || is_input_over_; });
  }
  if (inbox_.empty()) {
    if (is_input_over_) {
      is_over_ = true;
      must_pause_ = true;
    }
    return std::nullopt;
  }
  Json message = std::move(inbox_.front());
  inbox_.pop_front();
  return message;
}

int DapServer::serve() {
  std::thread reading([this] { read_loop(); });
  while (!is_over_) {
    const std::optional<Json> message = take(true);
    if (message) {
      handle(*message);
    }
  }
  reader_.stop(); // it may wait for a client that has said goodbye
  reading.join();
  if (!reader_.error().empty()) {
    fmt::print(stderr,
               "ptodbg: error: the client's input is not the Debug Adapter Protocol: {}\n",
               reader_.error());
    return 2;
  }
  return 0;
}

void DapServer::handle(const Json& request) {
  if (!request.is_object() || request.value("type", Json()) != Json("request") ||
      !request.contains("seq") || !request.at("seq").is_number_integer() ||
      !request.contains("command") || !request.at("command").is_string()) {
    // Responses to requests of ours do not exist; what is no request cannot be answered by number.
    output("important", "ptodbg: ignored a message that is no request\n");
    return;
  }
  const std::string command = request.at("command").get<std::string>();
  for (const Handler& handler : handlers()) {
    if (handler.command == command) {
      answer(request, handler);
      return;
    }
  }
  std::vector<std::string> names;
  for (const Handler& handler : handlers()) {
    names.emplace_back(handler.command);
  }
  const std::optional<std::string_view> near = isa::nearest_name(command, names);
  refuse(request,
         fmt::format("this debugger has no request '{}'{}",
                     command,
                     near ? fmt::format("; did you mean '{}'?", *near) : std::string()));
}

void DapServer::answer(const Json& request, const Handler& handler) {
  static const Json kNone = Json::object();
  const auto found = request.find("arguments");
  const Json& arguments = found != request.end() && found->is_object() ? *found : kNone;
  after_ = nullptr;
  try {
    if (!is_initialized_ && handler.command != "initialize" && handler.command != "disconnect") {
      throw RequestError(fmt::format("{} before initialize", handler.command));
    }
    if (handler.needs_session && session_ == nullptr) {
      throw RequestError(fmt::format("{} needs a program: send launch first", handler.command));
    }
    if (handler.needs_stop && is_running_) {
      throw RequestError(fmt::format("the kernel is running: pause before {}", handler.command));
    }
    Json body = (this->*handler.handle)(arguments);
    respond(request, std::move(body));
  } catch (const RequestError& error) {
    after_ = nullptr;
    refuse(request, error.what());
  }
  if (after_) {
    const std::function<void()> action = std::exchange(after_, nullptr);
    action();
  }
}

void DapServer::send(Json message) {
  message["seq"] = next_seq_++;
  // Texts may hold any bytes of a source; the protocol wants UTF-8.
  if (!writer_.write(message.dump(-1, ' ', false, Json::error_handler_t::replace))) {
    is_over_ = true;
    must_pause_ = true;
  }
}

void DapServer::send_event(std::string_view name, Json body) {
  send({{"type", "event"}, {"event", name}, {"body", std::move(body)}});
}

void DapServer::respond(const Json& request, Json body) {
  Json message = {{"type", "response"},
                  {"request_seq", request.at("seq")},
                  {"success", true},
                  {"command", request.at("command")}};
  if (!body.is_null()) {
    message["body"] = std::move(body);
  }
  send(std::move(message));
}

void DapServer::refuse(const Json& request, const std::string& message) {
  send({{"type", "response"},
        {"request_seq", request.at("seq")},
        {"success", false},
        {"command", request.at("command")},
        {"message", message},
        {"body",
         {{"error",
           {{"id", 1},
            {"format", "{text}"},
            {"variables", {{"text", message}}},
            {"showUser", true}}}}}});
}

void DapServer::output(std::string_view category, std::string text) {
  send_event("output", {{"category", category}, {"output", std::move(text)}});
}

Session& DapServer::session() const {
  if (session_ == nullptr) {
    throw RequestError("there is no program: send launch first");
  }
  return *session_;
}

int serve_dap(int input_fd, int output_fd) {
  std::signal(SIGPIPE, SIG_IGN); // a client that has gone shows when writing fails
  DapServer server(input_fd, output_fd);
  return server.serve();
}

// ------------------------------------------------ fields of requests

namespace {

const Json* find(const Json& arguments, std::string_view name) {
  const auto found = arguments.find(std::string(name));
  return found == arguments.end() || found->is_null() ? nullptr : &*found;
}

[[noreturn]] void wrong_kind(std::string_view name, std::string_view expected, const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60) {
    text = text.substr(0, 57) + "...";
  }
  throw RequestError(fmt::format("'{}' is {}; expected {}", name, text, expected));
}

} // namespace

std::optional<int64_t> find_integer(const Json& arguments, std::string_view name) {
  const Json* value = find(arguments, name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_number_integer() ||
      (value->is_number_unsigned() && value->get<uint64_t>() > uint64_t{INT64_MAX})) {
    wrong_kind(name, "an integer", *value);
  }
  return value->get<int64_t>();
}

int64_t need_integer(const Json& arguments, std::string_view name) {
  const std::optional<int64_t> value = find_integer(arguments, name);
  if (!value) {
    throw RequestError(fmt::format("'{}' is missing; expected an integer", name));
  }
  return *value;
}

std::optional<std::string> find_string(const Json& arguments, std::string_view name) {
  const Json* value = find(arguments, name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_string()) {
    wrong_kind(name, "a string", *value);
  }
  return value->get<std::string>();
}

std::string need_string(const Json& arguments, std::string_view name) {
  std::optional<std::string> value = find_string(arguments, name);
  if (!value) {
    throw RequestError(fmt::format("'{}' is missing; expected a string", name));
  }
  return std::move(*value);
}

bool find_bool(const Json& arguments, std::string_view name, bool otherwise) {
  const Json* value = find(arguments, name);
  if (value == nullptr) {
    return otherwise;
  }
  if (!value->is_boolean()) {
    wrong_kind(name, "true or false", *value);
  }
  return value->get<bool>();
}

const Json& find_array(const Json& arguments, std::string_view name) {
  static const Json kEmpty = Json::array();
  const Json* value = find(arguments, name);
  if (value == nullptr) {
    return kEmpty;
  }
  if (!value->is_array()) {
    wrong_kind(name, "an array", *value);
  }
  return *value;
}

std::vector<std::string> find_strings(const Json& arguments, std::string_view name) {
  std::vector<std::string> result;
  for (const Json& entry : find_array(arguments, name)) {
    if (!entry.is_string()) {
      wrong_kind(name, "an array of strings", entry);
    }
    result.push_back(entry.get<std::string>());
  }
  return result;
}

} // namespace pto::dbg
