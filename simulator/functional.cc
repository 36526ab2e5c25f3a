// SPDX-License-Identifier: Apache-2.0
// The functional driver: blocks in order, one at a time as long as they do not take turns.
#include "simulator/functional.h"

#include "simulator/block.h"
#include "simulator/gang.h"
#include "simulator/parallel.h"
#include "simulator/run_loop.h"

#include <algorithm>
#include <deque>

namespace pto::sim {

RunResult run_remaining(Launch& launch, const RunOptions& options, uint64_t max_blocks) {
  RunLoop loop(launch, options, kQuantumInsns);
  std::deque<std::unique_ptr<BlockRun>> resident;
  const uint32_t limit = launch.resident_limit();
  const uint32_t cores = std::max(1u, launch.machine().profile.cores);
  const std::unique_ptr<Gang> gang = launch.has_next_block() ? Gang::make(launch) : nullptr;
  if (gang != nullptr) {
    gang->trust(prove_grid(launch));
  }
  const uint64_t block_limit = std::min(launch.block_count(), max_blocks);
  const auto has_next = [&] { return launch.blocks_started() < block_limit; };
  while (loop.goes_on(has_next() || !resident.empty())) {
    const uint64_t first = launch.blocks_started();
    // A gang may end some insns past its turn, and must not end past the limit.
    if (gang != nullptr && resident.empty() && gang->covers(first, block_limit) &&
        loop.has_room(2 * kQuantumInsns) && gang->run(first) == Gang::Stop::kDone) {
      launch.credit_blocks(first + gang->size(), gang->counts());
      loop.add_executed(gang->counts().warp_insns);
      continue;
    }
    // A further block starts only when all resident ones had their turn. A kernel in which blocks
    // wait for each other pays one turn for each wait; others never notice.
    std::unique_ptr<BlockRun> block;
    if (resident.size() < limit && has_next()) {
      block = launch.next_block(static_cast<uint32_t>(launch.blocks_started() % cores));
      if (launch.observers().empty()) {
        block->forget_when_ended();
      }
    } else {
      block = std::move(resident.front());
      resident.pop_front();
    }
    const BlockStop stop = loop.run_block(*block, kQuantumInsns);
    if (stop == BlockStop::kDone) {
      launch.retire_block(std::move(block));
    } else if (stop == BlockStop::kBudget) {
      resident.push_back(std::move(block));
    } else if (stop == BlockStop::kFault) {
      loop.end_with(*block->fault());
      resident.push_back(std::move(block));
    } else if (!block->pending_copies().empty()) {
      block->complete_copy(0); // CopyPolicy::kByDriver: nobody else decides
      resident.push_back(std::move(block));
    } else {
      loop.end_with(block->deadlock_fault());
      resident.push_back(std::move(block));
    }
    loop.look_for_spinning(resident);
  }
  for (std::unique_ptr<BlockRun>& block : resident) {
    launch.retire_block(std::move(block));
  }
  RunResult result = loop.result();
  if (result.status == RunStatus::kCompleted && block_limit < launch.block_count()) {
    result.status = RunStatus::kLimit;
  }
  return result;
}

RunResult run_functional(Launch& launch, const RunOptions& options) {
  launch.set_copy_policy(options.copies);
  launch.observers().notify(kWantsLaunch,
                            [&](Observer& observer) { observer.launch_begin(launch); });
  // What is left for the loop after a parallel run are the blocks that it left, and the result.
  const bool was_parallel = run_parallel(launch, options);
  RunResult result = run_remaining(launch, options);
  result.is_parallel = was_parallel;
  launch.observers().notify(kWantsLaunch,
                            [&](Observer& observer) { observer.launch_end(launch, result); });
  return result;
}

} // namespace pto::sim
