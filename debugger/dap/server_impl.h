// SPDX-License-Identifier: Apache-2.0
// The server's inside: a thread that reads, one that answers and runs the kernel.
//
// A request's handler returns the body of its response or throws RequestError with the sentence
// that the client shows. What has to happen behind the response (run, send `initialized`) it leaves
// in `after_`.
#pragma once

#include "debugger/dap/message_stream.h"
#include "debugger/debugger.h"
#include "debugger/session.h"

#include <nlohmann/json.hpp>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace pto::dbg {

using Json = nlohmann::json;

/// A request that cannot be answered as asked; the message is for the user.
class RequestError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// A field of a request's arguments. A value of another kind is a RequestError that names both.
[[nodiscard]] std::optional<int64_t> find_integer(const Json& arguments, std::string_view name);
[[nodiscard]] int64_t need_integer(const Json& arguments, std::string_view name);
[[nodiscard]] std::optional<std::string> find_string(const Json& arguments, std::string_view name);
[[nodiscard]] std::string need_string(const Json& arguments, std::string_view name);
[[nodiscard]] bool find_bool(const Json& arguments, std::string_view name, bool otherwise);
[[nodiscard]] std::vector<std::string> find_strings(const Json& arguments, std::string_view name);
/// The array of that name; empty if there is none.
[[nodiscard]] const Json& find_array(const Json& arguments, std::string_view name);

/// The protocol's address of an insn.
[[nodiscard]] std::string code_address(uint32_t pc);
/// A number, hexadecimal behind 0x; nothing for anything else.
[[nodiscard]] std::optional<uint64_t> parse_code_address(std::string_view text);

/// What a launch request asks for.
struct LaunchRequest {
  TargetOptions target;
  DebuggerSettings settings;
};
/// Throws RequestError; unknown names are errors with the nearest one, so that a slip in
/// launch.json does not go unnoticed.
[[nodiscard]] LaunchRequest read_launch(const Json& arguments);

/// Where something with children belongs; handed out as variablesReference, valid until the kernel
/// runs again.
struct VariableParent {
  enum class Kind : uint8_t {
    kRegisters,
    kPredicates,
    kTiles,
    kParameters,
    kSymbols,
    kPosition,
    kValue
  };
  Kind kind = Kind::kRegisters;
  Focus focus;
  std::string expression; // kValue: the array or the register, with its children
};

class DapServer {
public:
  DapServer(int input_fd, int output_fd);
  ~DapServer();
  DapServer(const DapServer&) = delete;
  DapServer& operator=(const DapServer&) = delete;
  int serve();

private:
  struct Handler;
  static const std::vector<Handler>& handlers();

  // ------------------------------------------------ messages (server.cc)
  void read_loop();
  std::optional<Json> take(bool may_wait);
  void handle(const Json& request);
  void answer(const Json& request, const Handler& handler);
  void send(Json message);
  void send_event(std::string_view name, Json body = Json::object());
  void respond(const Json& request, Json body);
  void refuse(const Json& request, const std::string& message);
  void output(std::string_view category, std::string text);

  // ------------------------------------------------ start and end (requests_start.cc)
  Json on_initialize(const Json& arguments);
  Json on_launch(const Json& arguments);
  Json on_attach(const Json& arguments);
  Json on_configuration_done(const Json& arguments);
  Json on_restart(const Json& arguments);
  Json on_disconnect(const Json& arguments);
  Json on_terminate(const Json& arguments);
  void start_session();
  void begin_session();
  void end_debuggee(int exit_code);

  // ------------------------------------------------ running (requests_run.cc)
  Json on_continue(const Json& arguments);
  Json on_next(const Json& arguments);
  Json on_step_in(const Json& arguments);
  Json on_step_out(const Json& arguments);
  Json on_step_back(const Json& arguments);
  Json on_reverse_continue(const Json& arguments);
  Json on_pause(const Json& arguments);
  void run_after(const Until& until, bool is_reverse);
  void run(const Until& until, bool is_reverse);
  bool passes_log_points(const StopEvent& stop);
  void report_stop(const StopEvent& stop);
  void report_output();
  void focus_thread(const Json& arguments);

  // ------------------------------------------------ stop points (requests_stops.cc)
  Json on_set_breakpoints(const Json& arguments);
  Json on_set_function_breakpoints(const Json& arguments);
  Json on_set_instruction_breakpoints(const Json& arguments);
  Json on_set_exception_breakpoints(const Json& arguments);
  Json on_data_breakpoint_info(const Json& arguments);
  Json on_set_data_breakpoints(const Json& arguments);
  Json on_breakpoint_locations(const Json& arguments);
  Json on_exception_info(const Json& arguments);
  Json add_break(const std::string& location, const Json& wish, std::vector<int>& ids);
  void remove(std::vector<int>& ids);
  std::optional<uint32_t> find_file(const Json& source) const;

  // ------------------------------------------------ looking (requests_look.cc, requests_memory.cc)
  Json on_threads(const Json& arguments);
  Json on_stack_trace(const Json& arguments);
  Json on_scopes(const Json& arguments);
  Json on_variables(const Json& arguments);
  Json on_set_variable(const Json& arguments);
  Json on_evaluate(const Json& arguments);
  Json run_command(const std::string& line);
  Json on_completions(const Json& arguments);
  Json on_loaded_sources(const Json& arguments);
  Json on_read_memory(const Json& arguments);
  Json on_write_memory(const Json& arguments);
  Json on_disassemble(const Json& arguments);

  [[nodiscard]] Session& session() const; // RequestError without one
  [[nodiscard]] uint64_t threads_per_block() const;
  [[nodiscard]] int64_t thread_id(const Focus& focus) const;
  [[nodiscard]] Focus thread_focus(const Json& arguments) const;
  /// Of the frame that a request names; the session's where it names none.
  [[nodiscard]] Focus frame_focus(const Json& arguments) const;
  [[nodiscard]] Json source_of(uint32_t file) const;
  [[nodiscard]] Json
  variable(const std::string& name, const std::string& expression, const Focus& focus);
  [[nodiscard]] Json variable(const std::string& name,
                              const std::string& expression,
                              const Focus& focus,
                              const Evaluated& value);
  [[nodiscard]] Json children_of(const VariableParent& parent);
  [[nodiscard]] Json elements_of(const VariableParent& parent);
  [[nodiscard]] std::optional<Evaluated>
  evaluate(const std::string& expression, const Focus& focus, std::string& error);
  int64_t add_parent(VariableParent parent);
  /// By its variablesReference; RequestError for one that is not valid any more.
  [[nodiscard]] const VariableParent& need_parent(int64_t reference) const;
  [[nodiscard]] std::string expression_of(const VariableParent& parent,
                                          const std::string& name) const;
  [[nodiscard]] std::string memory_reference(const Evaluated& value, const Focus& focus) const;
  /// Variables and frames of the last stop mean nothing any more.
  void forget_references();

  MessageReader reader_;
  MessageWriter writer_;
  int64_t next_seq_ = 1;

  // Shared with the reading thread.
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Json> inbox_;
  bool is_input_over_ = false;
  Session* running_ = nullptr; // what a request interrupts
  bool is_interruptible_ = false;

  std::unique_ptr<Debugger> debugger_;
  Session* session_ = nullptr; // the debugger's
  std::function<void()> after_;
  bool is_initialized_ = false;
  bool is_configured_ = false;
  bool is_over_ = false;    // disconnected
  bool has_ended_ = false;  // `terminated` was sent
  bool is_running_ = false; // inside run()
  bool must_pause_ = false; // pause, disconnect or terminate asked for
  bool stops_on_entry_ = false;
  bool stops_at_end_ = false;
  bool lines_start_at_1_ = true;
  bool columns_start_at_1_ = true;
  bool knows_invalidated_ = false;
  size_t prints_shown_ = 0;
  size_t findings_shown_ = 0;
  StopEvent last_;

  std::map<std::string, std::vector<int>> source_breaks_; // by path as the client calls it
  std::vector<int> function_breaks_;
  std::vector<int> insn_breaks_;
  std::vector<int> data_breaks_;
  std::vector<int> catches_;
  std::map<int, std::string> log_points_;    // message by breakpoint
  std::map<int, std::string> break_reasons_; // "function breakpoint", ...

  std::vector<VariableParent> parents_; // variablesReference - 1
  std::vector<Focus> frames_;           // frameId - 1: the warp
};

} // namespace pto::dbg
