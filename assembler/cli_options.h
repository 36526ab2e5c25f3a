// SPDX-License-Identifier: Apache-2.0
// The command line of ptoas as values.
#pragma once

#include "assembler/assemble.h"
#include "isa/diag.h"
#include "isa/run_program.h"

#include <optional>
#include <string>
#include <vector>

namespace pto::as {

struct AsmOptions {
  std::string input; // "-": standard input
  std::string output;
  std::string emit = "obj";
  bool disassemble = false;
  bool without_loc = false;
  bool check = false;
  bool listing = false;
  bool list_instructions = false;
  bool list_warnings = false;
  bool manual = false;
  std::string explain;
  std::string kernel;
  std::string instrument; // of instrument_forms(); empty: no clock reads
  bool json = false;
  bool verbose = false;
  bool quiet = false;
  isa::ColorMode color = isa::ColorMode::kAuto;
  std::vector<std::string> warnings; // of -W, without it
  isa::DiagnosticOptions diagnostics;
  AssembleOptions assemble;

  /// One of the lists is asked for, which need no input.
  [[nodiscard]] bool is_table() const {
    return manual || list_instructions || list_warnings || !explain.empty();
  }
};

/// Options, or the status to exit with at once (0 after --help and --version, 2 after a mistake,
/// which has been reported on stderr).
struct ParsedAsmOptions {
  std::optional<AsmOptions> options;
  int exit_status = 0;
};
[[nodiscard]] ParsedAsmOptions
parse_asm_options(int argc, char** argv, const isa::ProgramState& state);

/// What to do after a mistake on the command line.
inline constexpr const char* kAsmHelpAdvice = "Try 'ptoas --help'.";

} // namespace pto::as
