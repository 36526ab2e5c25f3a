// SPDX-License-Identifier: Apache-2.0
// What ptoas does once its command line is read.
#pragma once

#include "assembler/cli_options.h"

namespace pto::as {

/// What --emit can give.
[[nodiscard]] std::vector<std::string> emit_forms();

/// What --instrument can read clocks around.
[[nodiscard]] std::vector<std::string> instrument_forms();

/// Reads, assembles, writes. Returns the exit status: 0, 1 (errors in the input, or an output that
/// cannot be written) or 2 (usage). With --json there is one object on stderr, also where all is
/// well.
[[nodiscard]] int run_asm(const AsmOptions& options, isa::ProgramState& state);

} // namespace pto::as
