// SPDX-License-Identifier: Apache-2.0
// `ptosim diff before.json after.json`: compares two runs that --report F.json saved.
#pragma once

#include "isa/run_program.h"

namespace pto::sim {

/// The whole command with its own command line (argv[1] is "diff"); returns the exit status.
[[nodiscard]] int diff_command(int argc, char** argv, const isa::ProgramState& state);

} // namespace pto::sim
