// SPDX-License-Identifier: Apache-2.0
// Timing a few waves of blocks and estimating the rest.
#include "simulator/sampled.h"

#include "simulator/functional.h"

#include <algorithm>

namespace pto::sim {

namespace {

/// Cycles from block to block while the machine was full: all but the first and the last wave.
double pace(const std::vector<BlockSpan>& spans, uint64_t wave) {
  std::vector<uint64_t> ends;
  for (const BlockSpan& span : spans) {
    ends.push_back(span.end_cycle);
  }
  std::sort(ends.begin(), ends.end());
  const uint64_t first = wave - 1;
  const uint64_t last = ends.size() - 1 - wave;
  return static_cast<double>(ends[last] - ends[first]) / static_cast<double>(last - first);
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
  static_cast<void>(run.run());
  TimedResult result = run.result();
  if (result.run.status == RunStatus::kCompleted) {
    const uint64_t rest = launch.block_count() - timed_blocks;
    result.sample =
        SampleEstimate{.timed_blocks = timed_blocks,
                       .cycles = static_cast<double>(result.counters.cycles) +
                                 static_cast<double>(rest) * pace(result.counters.blocks, wave)};
    RunOptions functional;
    functional.max_insns = options.max_insns;
    functional.interrupt = options.interrupt;
    if (options.progress) {
      functional.progress = [&](const Progress& progress) {
        options.progress(progress, result.counters.cycles);
      };
    }
    result.run = run_remaining(launch, functional);
  }
  launch.observers().notify(kWantsLaunch,
                            [&](Observer& observer) { observer.launch_end(launch, result.run); });
  return result;
}

} // namespace pto::sim
