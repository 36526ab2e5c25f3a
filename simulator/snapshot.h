// SPDX-License-Identifier: Apache-2.0
// The state of a running launch as a value: resident blocks and a mark in hbm's history. Restoring
// one and running on with the same driver repeats exactly what happened.
#pragma once

#include "simulator/block.h"
#include "simulator/launch.h"
#include "simulator/memory.h"

#include <memory>
#include <vector>

namespace pto::sim {

struct Snapshot {
  LaunchState launch;
  std::vector<std::unique_ptr<BlockState>> blocks; // by place; null: the place is free
  HbmHistory::Mark hbm = 0;
  uint64_t size_bytes() const; // of the block states
};

/// Blocks by place, as the driver holds them.
using ResidentBlocks = std::vector<std::unique_ptr<BlockRun>>;

Snapshot take_snapshot(const Launch& launch, const ResidentBlocks& blocks, HbmHistory& history);
/// False if hbm's history no longer reaches back so far (nothing changes then).
[[nodiscard]] bool restore_snapshot(const Snapshot& snapshot,
                                    Launch& launch,
                                    ResidentBlocks& blocks,
                                    HbmHistory& history);
/// Bytes that a BlockState takes.
uint64_t size_bytes(const BlockState& state);

} // namespace pto::sim
