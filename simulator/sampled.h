// SPDX-License-Identifier: Apache-2.0
// Long launches in less time: the first blocks under the timing model, the rest for results alone.
#pragma once

#include "simulator/timed.h"

namespace pto::sim {

/// Waves of blocks (each as many as the machine holds at once) that a sample needs at least: the
/// first fills the machine and the last drains it, the pace is taken from those between.
inline constexpr uint32_t kLeastWaves = 4;

/// Times the first `waves` waves of blocks and executes the others functionally. Results are those
/// of every other mode. The result's counters and timeline are of the timed blocks; result.sample
/// estimates the whole launch from the pace at which they ended, and is absent where all blocks
/// were timed, or the run ended among those. Of a run that ends later it estimates when the last
/// block that is done ended; max_cycles allows as many blocks as end by then. That assumes that
/// later blocks do the work of the first ones, and that none waits for a later one.
TimedResult
run_sampled(Launch& launch, SharedMemory& shared, const TimedOptions& options, uint32_t waves);

} // namespace pto::sim
