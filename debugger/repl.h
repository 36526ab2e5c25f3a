// SPDX-License-Identifier: Apache-2.0
// The prompt: lines from a terminal, a pipe or options, results to stdout and stderr.
#pragma once

#include "debugger/debugger.h"

#include <string>
#include <vector>

namespace pto::dbg {

struct ReplOptions {
  std::vector<std::string> init_files; // run first where they exist
  /// -x FILE and -ex COMMAND in their order.
  struct Step {
    bool is_file = false;
    std::string text;
  };
  std::vector<Step> steps;
  bool is_batch = false; // no stdin; ends with the first command that fails
  bool is_json = false;  // one JSON object a command
  bool echoes = false;   // prints each command before its results
  bool is_quiet = false; // no greeting
};

/// Runs until the end of input or `quit`; returns the exit status: 0, or what `quit` said, or, off
/// a terminal, 1 if a command failed or the kernel ended badly, 2 if profile or arguments were
/// wrong from the start, 130 if Ctrl-C ended the latest command or the wait for one.
int run_repl(Debugger& debugger, const ReplOptions& options);

} // namespace pto::dbg
