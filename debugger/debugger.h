// SPDX-License-Identifier: Apache-2.0
// The command language of ptodbg without a terminal: a line goes in, text comes out. The prompt,
// scripts and tests use it alike.
#pragma once

#include "debugger/session.h"
#include "debugger/target.h"
#include "isa/diag.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pto::dbg {

/// For going back, in megabytes: more than any host has.
inline constexpr uint64_t kMostHistoryMb = uint64_t{1} << 20;

struct DebuggerSettings {
  uint64_t lanes_shown = 2; // of a step, for each group
  uint64_t elements = 200;  // of an array that is printed
  uint64_t list_lines = 10;
  uint64_t history_mb = 512;
  uint64_t max_insns = UINT64_MAX;
  uint64_t max_cycles = UINT64_MAX;
  bool is_lockstep = false;
};

/// What a command printed.
struct CommandResult {
  bool is_good = true;
  bool is_quit = false;
  int exit_status = 0;         // with is_quit, and of check_target()
  std::string text;            // results, lines ended
  std::string error;           // one message or several lines, lines ended; empty if good
  nlohmann::ordered_json data; // the same for programs; null where text says all
};

class Debugger {
public:
  explicit Debugger(TargetOptions target);
  ~Debugger();
  Debugger(const Debugger&) = delete;
  Debugger& operator=(const Debugger&) = delete;

  /// Loads the target's file. Messages come in the result.
  CommandResult open();
  /// Looks at the profile and, where some are given, the arguments, which otherwise wait for the
  /// first run; that run takes what is read here. A failure has the status to exit with.
  CommandResult check_target();
  /// Runs one line. Never throws for what a user writes.
  CommandResult execute(std::string_view line);
  /// Words that may stand at the end of `line` (for completion), complete, in order.
  [[nodiscard]] std::vector<std::string> complete(std::string_view line) const;
  /// Stops what execute() is running, scripts included, from a signal handler or another thread.
  void interrupt();
  /// The last line was one that an empty line at a terminal repeats; what to run then.
  [[nodiscard]] const std::string& repeat_line() const { return repeat_; }
  /// The kernel ended badly, or checks found something: for exit statuses.
  [[nodiscard]] bool has_kernel_failed() const;
  /// More lines belong to the command that was begun (`commands`); what to prompt with.
  [[nodiscard]] bool needs_more() const { return !commands_for_.empty(); }

  // ------------------------------------------------ for the commands
  template <class... Args> void print(fmt::format_string<Args...> format, Args&&... args) {
    result_.text += fmt::format(format, std::forward<Args>(args)...);
  }
  /// Records the error; always false, for `return fail(...)`.
  template <class... Args> bool fail(fmt::format_string<Args...> format, Args&&... args) {
    return fail_text(fmt::format(format, std::forward<Args>(args)...));
  }
  bool fail_text(const std::string& message);
  bool fail_with(const isa::Diagnostics& diags);
  CommandResult& result() { return result_; }
  /// The session, or null after an error that says that there is none.
  Session* need_session();
  /// The focused block's state, or null after an error.
  const sim::BlockRun* need_block();
  [[nodiscard]] Session* session() const { return session_.get(); }
  /// The pc of the focused warp; nothing without a session or where the warp has ended.
  [[nodiscard]] std::optional<uint32_t> here() const;
  [[nodiscard]] const sim::Program* program() const { return program_.get(); }
  const sim::Program* need_program();
  TargetOptions& target() { return target_; }
  DebuggerSettings& settings() { return settings_; }
  StopTable& stops();
  /// Assembles the file again.
  bool load();
  /// A new session with the target as it is, stop points kept.
  bool launch();
  void kill();
  /// Prints a stop, its trace, displays; runs the stop points' command lists.
  bool report(const StopEvent& stop);
  void show_focus_line();
  /// Evaluates in the focus with the value history; false after an error.
  bool evaluate(std::string_view text, Evaluated& value);
  std::vector<Evaluated>& values() { return values_; }

  struct Display {
    int id = 0;
    char format = '\0'; // a letter of print; 0: as the type says
    std::string text;
  };
  std::vector<Display>& displays() { return displays_; }
  int next_display() { return next_display_++; }
  struct Checkpoint {
    int id = 0;
    Moment moment;
    uint64_t cycle = 0;
    Focus focus;
    std::string place;
  };
  std::vector<Checkpoint>& checkpoints() { return checkpoints_; }
  int next_checkpoint() { return next_checkpoint_++; }
  void begin_commands(std::vector<int> ids) { commands_for_ = std::move(ids); }
  void set_repeat(std::string line) { repeat_ = std::move(line); }
  /// Lines of a source file, read once; null if it cannot be read.
  const std::vector<std::string>* source_lines(const std::string& file);
  bool run_script(const std::string& path);
  uint32_t list_line = 0; // where `list` goes on; 0: at the focus
  std::string list_file;
  std::string examine_format = "4xw"; // of the latest x
  uint64_t examine_next = 0;
  isa::Space examine_space = isa::Space::kHbm;

private:
  bool dispatch(std::string_view line);
  bool collect(std::string_view line);

  TargetOptions target_;
  DebuggerSettings settings_;
  std::shared_ptr<const sim::Program> program_;
  std::optional<Target> prepared_; // of check_target(), for options that stay as they were then
  TargetOptions prepared_for_;
  std::unique_ptr<Target> machine_; // the session's; goes after it
  std::unique_ptr<Session> session_;
  std::atomic<Session*> running_{nullptr};
  std::atomic<bool> is_interrupted_{false}; // the line that execute() runs
  StopTable stops_;                         // without a session
  CommandResult result_;
  std::vector<Evaluated> values_;
  std::vector<Display> displays_;
  int next_display_ = 1;
  std::vector<Checkpoint> checkpoints_;
  int next_checkpoint_ = 1;
  std::string repeat_;
  std::vector<int> commands_for_;
  std::vector<std::string> collected_;
  std::map<std::string, std::vector<std::string>> sources_;
  int depth_ = 0; // scripts and command lists inside each other
};

} // namespace pto::dbg
