// SPDX-License-Identifier: Apache-2.0
// What ptosim does once its command line is read.
#pragma once

#include "simulator/cli_options.h"

namespace pto::sim {

/// Loads, runs, reports. Returns the exit status: 0, 1 (input, kernel or comparison failed),
/// 2 (usage) or 130 (interrupted). With --json all messages are one object on stderr.
[[nodiscard]] int run_command(const SimOptions& options, isa::ProgramState& state);

} // namespace pto::sim
