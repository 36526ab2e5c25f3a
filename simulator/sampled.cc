// SPDX-License-Identifier: Apache-2.0
// Timing a few waves of blocks and estimating the rest.
#include "simulator/sampled.h"

#include "simulator/functional.h"

#include <algorithm>
#include <cmath>

namespace pto::sim {

namespace {

/// Cycles from block to block while the machine was full: all but the first and the last wave.
double pace(const std::vector<BlockSpan>& spans, uint64_t wave) {
  std::vector<uint64_t> ends;
  ends.reserve(spans.size());
  for (const BlockSpan& span : spans) {
    ends.push_back(span.end_cycle);
  }
  std::sort(ends.begin(), ends.end());
  const uint64_t first = wave - 1;
  const uint64_t last = ends.size() - 1 - wave;
  return static_cast<double>(ends[last] - ends[first]) / static_cast<double>(last - first);
}

/// How many blocks of the grid end within `cycles` after the first `timed_blocks`, as
/// total_cycles() rounds.
uint64_t blocks_within(double cycles, double block_cycles, uint64_t timed_blocks) {
  constexpr uint64_t kMost = UINT64_MAX / 2; // more than any grid has
  const double rest =
      block_cycles > 0 ? std::ceil((cycles + 0.5) / block_cycles) - 1 : static_cast<double>(kMost);
  return rest < static_cast<double>(kMost) ? timed_blocks + static_cast<uint64_t>(rest) : kMost;
}

} // namespace

TimedResult
run_sampled(Launch& launch, SharedMemory& shared, const TimedOptions& options, uint32_t waves) {
  const uint64_t wave = launch.resident_limit();
  // Not more than there are spans of.
  const uint64_t timed_blocks =
      std::min<uint64_t>(wave * std::max(waves, kLeastWaves), TimedCounters::kMaxSpans);
  if (timed_blocks >= launch.block_count() || timed_blocks < wave * kLeastWaves) {
    return run_timed(launch, shared, options);
  }
  TimedOptions sampling = options;
  sampling.max_blocks = timed_blocks;
  TimedRun run(launch, shared, sampling);
  static_cast<void>(run.run_to_end());
  TimedResult result = run.result();
  if (result.run.status == RunStatus::kCompleted) {
    const auto timed_cycles = static_cast<double>(result.counters.cycles);
    const double block_cycles = pace(result.counters.blocks, wave);
    RunOptions functional;
    functional.max_insns = options.max_insns;
    functional.interrupt = options.interrupt;
    if (options.progress) {
      functional.progress = [&](const Progress& progress) {
        options.progress(progress, result.counters.cycles);
      };
    }
    result.run =
        run_remaining(launch,
                      functional,
                      blocks_within(static_cast<double>(options.timing.max_cycles) - timed_cycles,
                                    block_cycles,
                                    timed_blocks));
    // Of the blocks that came to their end: all of them, unless the run was stopped.
    const uint64_t rest = result.run.blocks_done - timed_blocks;
    result.sample =
        SampleEstimate{.timed_blocks = timed_blocks,
                       .cycles = timed_cycles + static_cast<double>(rest) * block_cycles};
  }
  launch.observers().notify(kWantsLaunch,
                            [&](Observer& observer) { observer.launch_end(launch, result.run); });
  return result;
}

} // namespace pto::sim
