// SPDX-License-Identifier: Apache-2.0
// readline at a terminal, plain lines elsewhere.
//
// readline and signal handlers know no objects: one pointer to the debugger of this process stands
// here, set while the prompt runs.
#include "debugger/repl.h"

#include "debugger/command.h"
#include "isa/run_program.h"

#include <readline/history.h>
#include <readline/readline.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <poll.h>
#include <unistd.h>
#include <utility>

namespace pto::dbg {

namespace {

using isa::exit_status::kFailed;

constexpr int kHistoryLines = 5000;
constexpr const char* kPrompt = "(pto) ";
constexpr const char* kMorePrompt = "> ";

std::atomic<Debugger*> g_debugger{nullptr};
volatile std::sig_atomic_t g_is_interrupted = 0;

void on_interrupt(int /*signal*/) {
  g_is_interrupted = 1;
  if (Debugger* debugger = g_debugger.load()) {
    debugger->interrupt();
  }
}

/// Ctrl-C stops the kernel. In a batch the second one ends the program, which may be waiting for
/// somebody to read what it prints.
class SignalScope {
public:
  SignalScope(Debugger& debugger, bool is_batch) {
    g_debugger = &debugger;
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    // A write that a signal interrupts goes on.
    action.sa_flags =
        static_cast<int>(SA_RESTART | (is_batch ? static_cast<unsigned>(SA_RESETHAND) : 0u));
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &before_);
  }
  ~SignalScope() {
    sigaction(SIGINT, &before_, nullptr);
    g_debugger = nullptr;
  }
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;

private:
  struct sigaction before_ {};
};

// ---------------------------------------------------------------- readline

/// readline takes malloc'ed copies.
char** complete_line(const char* word, int start, int end) {
  rl_attempted_completion_over = 1;
  const Debugger* debugger = g_debugger.load();
  if (debugger == nullptr) {
    return nullptr;
  }
  const std::string_view line(rl_line_buffer, static_cast<size_t>(end));
  std::vector<std::string> words = debugger->complete(line);
  if (words.empty()) {
    return nullptr;
  }
  // What is completed may begin behind the start of readline's own word, as in `3-$r1`.
  static_cast<void>(word);
  const std::string_view typed = line.substr(static_cast<size_t>(start));
  size_t lead = 0;
  while (lead < typed.size() && !words[0].starts_with(typed.substr(lead))) {
    ++lead;
  }
  for (std::string& one : words) {
    one.insert(0, typed.substr(0, lead));
  }
  std::string common = words[0];
  for (const std::string& one : words) {
    size_t same = 0;
    while (same < common.size() && same < one.size() && common[same] == one[same]) {
      ++same;
    }
    common.resize(same);
  }
  if (common.size() < typed.size()) {
    common = typed;
  }
  auto** matches = static_cast<char**>(std::malloc((words.size() + 2) * sizeof(char*)));
  matches[0] = strdup(words.size() == 1 ? words[0].c_str() : common.c_str());
  size_t count = 1;
  if (words.size() > 1) {
    for (const std::string& one : words) {
      matches[count++] = strdup(one.c_str());
    }
  }
  matches[count] = nullptr;
  const char last = words[0].empty() ? ' ' : words[0].back();
  rl_completion_append_character = words.size() == 1 && (last == '/' || last == ':') ? '\0' : ' ';
  return matches;
}

std::string history_path() {
  if (const char* path = std::getenv("PTODBG_HISTORY")) {
    return path;
  }
  const char* home = std::getenv("HOME");
  return home != nullptr ? std::string(home) + "/.ptodbg_history" : std::string();
}

class Terminal {
public:
  Terminal() {
    rl_readline_name = "ptodbg";
    rl_attempted_completion_function = complete_line;
    rl_basic_word_break_characters = " \t\n,()[]+*&|^!=<>?~{};";
    rl_completer_word_break_characters = " \t\n,()[]+*&|^!=<>?~{};";
    rl_catch_signals = 0; // Ctrl-C at the prompt: see read()
    rl_catch_sigwinch = 1;
    using_history();
    stifle_history(kHistoryLines);
    path_ = history_path();
    if (!path_.empty()) {
      static_cast<void>(read_history(path_.c_str()));
    }
  }
  ~Terminal() {
    if (!path_.empty()) {
      static_cast<void>(write_history(path_.c_str()));
    }
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// False at the end of input.
  bool read(const char* prompt, std::string& line) {
    // Ctrl-C drops the line that is being typed; other signals (a new window size) do not.
    g_is_interrupted = 0;
    rl_signal_event_hook = [] {
      if (g_is_interrupted == 0) {
        return 0;
      }
      g_is_interrupted = 0;
      std::fputs("^C\n", rl_outstream);
      rl_replace_line("", 0);
      rl_on_new_line();
      rl_redisplay();
      return 0;
    };
    char* text = readline(prompt);
    if (text == nullptr) {
      return false;
    }
    line = text;
    std::free(text);
    if (!trim(line).empty()) {
      const HIST_ENTRY* last = history_length > 0 ? history_get(history_length) : nullptr;
      if (last == nullptr || line != last->line) {
        add_history(line.c_str());
      }
    }
    return true;
  }

private:
  std::string path_;
};

// ---------------------------------------------------------------- pipes

/// Lines of standard input where that is no terminal to edit them on.
class InputLines {
public:
  /// False at the end of input, or if Ctrl-C ends the wait for it.
  bool read(std::string& line) {
    size_t end = 0;
    while ((end = text_.find('\n', at_)) == std::string::npos) {
      if (!read_more()) {
        end = text_.size();
        break;
      }
    }
    if (at_ == text_.size() || g_is_interrupted != 0) {
      return false;
    }
    line = text_.substr(at_, end - at_);
    at_ = std::min(end + 1, text_.size());
    return true;
  }

private:
  bool read_more() {
    text_.erase(0, std::exchange(at_, 0));
    // Between a look at the flag and the wait no signal may be missed.
    sigset_t interrupt;
    sigset_t before;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigprocmask(SIG_BLOCK, &interrupt, &before);
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    while (g_is_interrupted == 0 && ::ppoll(&input, 1, nullptr, &before) < 0 && errno == EINTR) {
    }
    sigprocmask(SIG_SETMASK, &before, nullptr);
    if (g_is_interrupted != 0) {
      return false;
    }
    char buffer[65536];
    const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
    text_.append(buffer, got > 0 ? static_cast<size_t>(got) : 0);
    return got > 0;
  }

  std::string text_;
  size_t at_ = 0; // where the next line begins
};

// ---------------------------------------------------------------- the loop

class Repl {
public:
  Repl(Debugger& debugger, const ReplOptions& options)
      : debugger_(debugger), options_(options),
        is_terminal_(!options.is_batch && ::isatty(STDIN_FILENO) == 1 &&
                     ::isatty(STDOUT_FILENO) == 1) {}

  int run() {
    const SignalScope signals(debugger_, options_.is_batch);
    if (!open() && options_.is_batch) {
      return status();
    }
    for (const std::string& file : options_.init_files) {
      std::error_code problem;
      if (std::filesystem::exists(file, problem) && !step("source " + file)) {
        return status();
      }
    }
    for (const ReplOptions::Step& one : options_.steps) {
      if (!step(one.is_file ? "source " + one.text : one.text)) {
        return status();
      }
      if (options_.is_batch && (has_failed_ || is_interrupted_)) {
        return status();
      }
    }
    if (!options_.is_batch) {
      read_lines();
    }
    return status();
  }

private:
  bool open() {
    show(debugger_.open(), {});
    if (!has_failed_) {
      CommandResult checked = debugger_.check_target();
      failed_status_ = checked.is_good ? kFailed : checked.exit_status;
      show(std::move(checked), {});
    }
    return !has_failed_;
  }

  /// False when it was `quit`.
  bool step(const std::string& line) {
    if (options_.echoes && !options_.is_json) {
      fmt::print("(pto) {}\n", line);
    }
    g_is_interrupted = 0;
    CommandResult result = debugger_.execute(line);
    is_interrupted_ = g_is_interrupted != 0;
    g_is_interrupted = 0; // what comes before the next line is read, ends nothing
    const bool is_quit = result.is_quit;
    quit_status_ = is_quit ? result.exit_status : quit_status_;
    show(std::move(result), line);
    is_over_ = is_over_ || is_quit;
    return !is_quit;
  }

  void show(CommandResult result, std::string_view line) {
    has_failed_ = has_failed_ || !result.is_good;
    if (options_.is_json) {
      if (line.empty() && result.is_good) {
        return;
      }
      nlohmann::ordered_json out;
      out["command"] = line;
      out["ok"] = result.is_good;
      out["text"] = result.text;
      if (!result.error.empty()) {
        out["error"] = result.error;
      }
      if (!result.data.is_null()) {
        out["data"] = std::move(result.data);
      }
      fmt::print("{}\n",
                 out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    } else {
      fmt::print("{}", result.text);
      isa::flush_output();
      fmt::print(stderr, "{}", result.error);
    }
    isa::flush_output();
  }

  void read_lines() {
    if (!is_terminal_) {
      std::string line;
      InputLines lines;
      while (lines.read(line)) {
        if (!step(line)) {
          return;
        }
      }
      return;
    }
    Terminal terminal;
    if (!options_.is_quiet) {
      fmt::print("ptodbg: 'help' lists the commands, Tab completes, Ctrl-C stops a kernel.\n");
    }
    std::string line;
    while (true) {
      isa::flush_output();
      if (!terminal.read(debugger_.needs_more() ? kMorePrompt : kPrompt, line)) {
        fmt::print("quit\n");
        return;
      }
      const bool repeats = trim(line).empty() && !debugger_.needs_more();
      const std::string command = repeats ? debugger_.repeat_line() : line;
      if (!command.empty() && !step(command)) {
        return;
      }
    }
  }

  [[nodiscard]] int status() const {
    if (is_over_ && quit_status_ != 0) {
      return quit_status_;
    }
    if (is_terminal_) {
      return 0;
    }
    if (is_interrupted_ || g_is_interrupted != 0) {
      return isa::exit_status::kInterrupted;
    }
    return has_failed_ || debugger_.has_kernel_failed() ? failed_status_ : 0;
  }

  Debugger& debugger_;
  const ReplOptions& options_;
  bool is_terminal_;
  bool has_failed_ = false;
  bool is_over_ = false;
  bool is_interrupted_ = false; // the latest command
  int quit_status_ = 0;
  int failed_status_ = kFailed;
};

} // namespace

int run_repl(Debugger& debugger, const ReplOptions& options) {
  return Repl(debugger, options).run();
}

} // namespace pto::dbg
