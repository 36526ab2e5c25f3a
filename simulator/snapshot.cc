// SPDX-License-Identifier: Apache-2.0
// Taking and putting back the state of a launch.
#include "simulator/snapshot.h"

namespace pto::sim {

uint64_t size_bytes(const BlockState& state) {
  uint64_t sum = sizeof(BlockState) + state.reg32.size() * 4 + state.reg64.size() * 8 +
                 (state.preds.size() + state.masks.size() + state.exited.size()) * 4 +
                 state.scratchpad.data_bytes() + state.pending.size() * sizeof(CopyRecord) +
                 state.parked.size();
  for (const WarpState& warp : state.warps) {
    sum += sizeof(WarpState) + warp.stack.size() * sizeof(StackEntry);
  }
  return sum;
}

uint64_t Snapshot::size_bytes() const {
  uint64_t sum = sizeof(Snapshot);
  for (const std::unique_ptr<BlockState>& block : blocks) {
    sum += block != nullptr ? sim::size_bytes(*block) : 0;
  }
  return sum;
}

Snapshot take_snapshot(const Launch& launch, const ResidentBlocks& blocks, HbmHistory& history) {
  Snapshot snapshot;
  snapshot.launch = launch.save();
  for (const std::unique_ptr<BlockRun>& block : blocks) {
    snapshot.blocks.push_back(block != nullptr ? std::make_unique<BlockState>(block->state())
                                               : nullptr);
  }
  snapshot.hbm = history.mark();
  return snapshot;
}

bool restore_snapshot(const Snapshot& snapshot,
                      Launch& launch,
                      ResidentBlocks& blocks,
                      HbmHistory& history) {
  if (!history.rewind(snapshot.hbm)) {
    return false;
  }
  launch.restore(snapshot.launch);
  blocks.resize(snapshot.blocks.size());
  for (size_t place = 0; place < blocks.size(); ++place) {
    if (snapshot.blocks[place] == nullptr) {
      blocks[place] = nullptr;
      continue;
    }
    if (blocks[place] == nullptr) {
      blocks[place] = launch.make_block();
    }
    blocks[place]->restore(*snapshot.blocks[place]);
  }
  return true;
}

} // namespace pto::sim
