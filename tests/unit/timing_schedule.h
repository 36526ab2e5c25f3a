// SPDX-License-Identifier: Apache-2.0
// Runs a script of timing_script.h and shows the cycles in which its instructions issue.
#pragma once

#include "timing_script.h"

#include <doctest/doctest.h>

namespace pto::sim::test {

/// What a run of a script came to.
struct Result {
  TimedCounters counters;
  std::vector<TimelineEntry> entries;
  /// Issue cycles of one warp in program order.
  std::vector<uint64_t> issues(uint32_t warp = 0, uint64_t block = 0) const {
    std::vector<uint64_t> cycles;
    for (const TimelineEntry& e : entries) {
      if (e.block == block && e.first_warp <= warp && warp <= e.last_warp) {
        cycles.push_back(e.issue_cycle);
      }
    }
    return cycles;
  }
  uint64_t stalled(StallReason reason) const { return counters.stalls[reason]; }
};

inline void check_invariants(const TimedCounters& c) {
  for (const WarpCounters& warp : c.warps) {
    CHECK(warp.issued_cycles + warp.stalls.total() == warp.elapsed_cycles);
  }
  for (const CoreCounters& core : c.cores) {
    for (const double busy : core.unit_busy_cycles) {
      CHECK(busy <= static_cast<double>(c.cycles) + 1e-6);
    }
    CHECK(core.busy_cycles <= c.cycles);
  }
}

/// Runs a script on its own, with a timeline; fails where an invariant does not hold.
inline Result
run(const isa::MachineProfile& profile, Script& script, SharedMemory* shared = nullptr) {
  SharedMemory own(profile);
  const ProgramTiming program(script.object, profile);
  CHECK(program.missing_keys().empty());
  TimingOptions options;
  options.record_timeline = true;
  TimingModel model(profile, program, shared != nullptr ? *shared : own, script, options);
  REQUIRE(model.run() == TimedStop::kFinished);
  Result result{model.counters(), model.timeline().entries()};
  check_invariants(result.counters);
  return result;
}

using Cycles = std::vector<uint64_t>;

} // namespace pto::sim::test
