// SPDX-License-Identifier: Apache-2.0
// Which registers a kernel may read before it has written them.
#pragma once

#include "simulator/program.h"

namespace pto::sim {

/// r, d and p registers that on some path of the control flow are read where not every path has
/// written them. A write under a guard, or in lanes that a branch singled out, counts only where
/// all paths have it; what a called function writes does not count after the call.
ResourceSet read_before_write(const Program& program);

} // namespace pto::sim
