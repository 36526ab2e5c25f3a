// SPDX-License-Identifier: Apache-2.0
// ptodbg: steps through a kernel, forwards and backwards.
#include "debugger/dap/server.h"
#include "debugger/repl.h"
#include "isa/option_values.h"
#include "isa/run_program.h"
#include "simulator/launch_setup.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdlib>
#include <unistd.h>

namespace {

using namespace pto;

constexpr const char* kExamples = R"(Example:
  ptodbg vector_add.pto --grid 4 --block 256 --arg a=rand:f32[1024]:seed=1 \
         --arg b=ones:f32[1024] --arg o=zeros:f32[1024] --arg n=1024
  (pto) break 9 if $lane == 3
  (pto) run

Without a terminal it reads commands from stdin, prints no prompt, and exits with 1 if a command
failed or the kernel ended badly. --batch runs -x and -ex only and ends at the first failure.

Exit status: 0 success, 1 a command or the kernel failed, 2 wrong usage, 3 internal error,
130 interrupted.)";

struct Options {
  dbg::TargetOptions target;
  dbg::ReplOptions repl;
  std::string grid = "1";
  std::string block = "1";
  std::string checks;
  std::vector<std::string> scripts;
  std::vector<std::string> commands;
  bool has_no_init = false;
  bool is_lockstep = false;
  bool is_dap = false;
  uint64_t history_mb = 512;
};

void declare(CLI::App& app, Options& options) {
  app.footer(kExamples);
  app.set_version_flag("--version", "ptodbg " PTO_VERSION);
  app.add_option("file", options.target.file, "Program: .pto text or .ptobj")->type_name("FILE");
  app.add_option("-k,--kernel", options.target.kernel, "Kernel; not needed where there is one only")
      ->type_name("NAME");
  app.add_option("-g,--grid", options.grid, "Blocks in the grid: X, X,Y,Z or XxYxZ (default 1)")
      ->type_name("SIZE");
  app.add_option("-b,--block", options.block, "Lanes in a block: X, X,Y,Z or XxYxZ (default 1)")
      ->type_name("SIZE");
  const auto add_list =
      [&](const char* names, std::vector<std::string>& target, const char* help, const char* type) {
        app.add_option(names, target, help)->type_name(type)->allow_extra_args(false);
      };
  add_list("-a,--arg", options.target.args, "Argument of the kernel, as for ptosim", "NAME=VALUE");
  app.add_option("-m,--profile", options.target.profile, "Machine profile, name or JSON file")
      ->type_name("PROFILE");
  add_list("--set", options.target.overrides, "Change a figure of the profile", "KEY.PATH=VALUE");
  app.add_option("--checks",
                 options.checks,
                 "What to look for: mem, init, race, sync, nan (a list with commas), or all")
      ->type_name("LIST");
  app.add_option("--dyn-l1", options.target.dynamic_l1_bytes, "Scratchpad after the kernel's own")
      ->type_name("BYTES")
      ->check(isa::whole_number<uint32_t>());
  app.add_flag("--lockstep", options.is_lockstep, "Without time: every warp one insn in turn");
  app.add_option("--history", options.history_mb, "Megabytes for going back (default 512); 0: none")
      ->type_name("MB")
      ->check(isa::whole_number<uint64_t>(0, dbg::kMostHistoryMb));
  add_list("-I", options.target.include_dirs, "Folder for .include", "DIR");
  add_list("-D", options.target.defines, "Define a constant for the assembler", "NAME[=VALUE]");
  add_list("-x", options.scripts, "Run the commands in a file", "FILE");
  add_list("--ex", options.commands, "Run a command (also -ex)", "COMMAND");
  app.add_flag("--dap",
               options.is_dap,
               "Serve an editor: the Debug Adapter Protocol on stdin and stdout (see docs/dap.md)")
      ->excludes("file");
  app.add_flag("--batch", options.repl.is_batch, "End after -x and -ex, or their first failure");
  app.add_flag("--nx", options.has_no_init, "Do not run ~/.ptodbginit (also -nx)");
  app.add_flag("--json", options.repl.is_json, "One JSON object for each command");
  app.add_flag("--echo", options.repl.echoes, "Print each command before what it says");
  app.add_flag("-q,--quiet", options.repl.is_quiet, "No greeting");
}

/// The order of -x and -ex among each other, which CLI11 keeps only for each on its own.
void order_steps(const CLI::App& app, Options& options) {
  size_t script = 0;
  size_t command = 0;
  for (const CLI::Option* option : app.parse_order()) {
    if (option->check_name("-x") && script < options.scripts.size()) {
      options.repl.steps.push_back({true, options.scripts[script++]});
    } else if (option->check_name("--ex") && command < options.commands.size()) {
      options.repl.steps.push_back({false, options.commands[command++]});
    }
  }
}

void complete(const CLI::App& app, Options& options) {
  // An empty command is one that does nothing.
  if (const std::string name = isa::empty_option(app, {"--ex"}); !name.empty()) {
    throw CLI::ValidationError(name, isa::kEmptyValue);
  }
  std::string error;
  const auto size = [&](const char* option, const std::string& text) {
    const auto dim = sim::parse_dim3(text, error);
    if (!dim) {
      throw CLI::ValidationError(option, error);
    }
    return *dim;
  };
  options.target.grid = size("--grid", options.grid);
  options.target.block = size("--block", options.block);
  const auto checks = sim::parse_checks(options.checks, error);
  if (!checks) {
    throw CLI::ValidationError("--checks", error);
  }
  options.target.checks = *checks;
  if (options.history_mb > dbg::kMostHistoryMb) {
    throw CLI::ValidationError("--history", fmt::format("at most {} MB", dbg::kMostHistoryMb));
  }
  order_steps(app, options);
  const char* home = std::getenv("HOME");
  if (!options.has_no_init && home != nullptr) {
    options.repl.init_files.push_back(std::string(home) + "/.ptodbginit");
  }
}

int run(int argc, char** argv, const isa::ProgramState& state) {
  CLI::App app("Steps through a PTO kernel on a simulated machine, forwards and backwards.",
               "ptodbg");
  Options options;
  declare(app, options);
  // gdb's -ex and -nx, which an option parser would read as bundles of letters.
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) {
    const std::string text = argv[i];
    arguments.push_back(text == "-ex"      ? "--ex"
                        : text == "-nx"    ? "--nx"
                        : text == "-batch" ? "--batch"
                                           : text);
  }
  try {
    app.parse(arguments);
    complete(app, options);
  } catch (const CLI::Success& success) {
    isa::print_success(app, success); // prints help or version
    return 0;
  } catch (const CLI::ParseError& error) {
    isa::print_error(state, isa::message_of(app, error), "Run ptodbg --help for the options.");
    return 2;
  }
  if (options.is_dap) {
    return dbg::serve_dap(STDIN_FILENO, STDOUT_FILENO);
  }
  dbg::Debugger debugger(options.target);
  debugger.settings().is_lockstep = options.is_lockstep;
  debugger.settings().history_mb = options.history_mb;
  return dbg::run_repl(debugger, options.repl);
}

} // namespace

int main(int argc, char** argv) {
  return isa::run_program("ptodbg", "the commands", argc, argv, [&](isa::ProgramState& state) {
    return run(argc, argv, state);
  });
}
