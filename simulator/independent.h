// SPDX-License-Identifier: Apache-2.0
// Runs on several host threads of launches whose blocks are proven independent (grid_proof.h).
// Private to the simulator.
#pragma once

#include "simulator/grid_proof.h"
#include "simulator/launch.h"

#include <cstdint>

namespace pto::sim {

/// `proof` is of this launch. Workers take chunks of `chunk_blocks` consecutive blocks until there
/// are none; nothing is noted, and nothing could have to be undone. Credits what ran to the launch.
/// True: all blocks; false: an interrupt left the last ones.
[[nodiscard]] bool run_independent(Launch& launch,
                                   const RunOptions& options,
                                   const GridProof& proof,
                                   unsigned threads,
                                   uint64_t chunk_blocks);

} // namespace pto::sim
