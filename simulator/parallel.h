// SPDX-License-Identifier: Apache-2.0
// Functional runs on several host threads, with the results of one.
//
// Workers take chunks of consecutive blocks and execute them directly on hbm. Before a worker
// touches a granule of hbm it claims it: many may read it, or one alone may use it. Two chunks in
// flight that both need one granule, at least one of them to write it, are a conflict: then the
// order of blocks could be seen, so what uncommitted chunks wrote is put back and the rest of the
// launch runs in order on one thread. Claims come before accesses, so host threads never race,
// whatever the kernel does. Anything else whose outcome depends on the order (a fault, a deadlock,
// the insn limit) ends in the same way.
#pragma once

#include "simulator/launch.h"

namespace pto::sim {

/// A block of so many warp insns takes turns with others on one thread (functional.cc).
inline constexpr uint64_t kQuantumInsns = uint64_t{1} << 16;

/// Runs all blocks and returns true; or none or the first ones, credits them to the launch, and
/// returns false: the kernel or the options rule it out, or the order of blocks matters.
[[nodiscard]] bool run_parallel(Launch& launch, const RunOptions& options);

} // namespace pto::sim
