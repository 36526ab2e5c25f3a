// SPDX-License-Identifier: Apache-2.0
// `ptosim diff before.json after.json`: compares two runs that --report F.json saved.
#pragma once

namespace pto::sim {

/// The whole command with its own command line (argv[1] is "diff"); returns the exit status.
int diff_command(int argc, char** argv);

} // namespace pto::sim
