// SPDX-License-Identifier: Apache-2.0
// Bubbles: stretches of a core in which a unit had nothing under way, or no warp issued at all;
// what ended them, which dependency caused them, and what to do about it.
#pragma once

#include "simulator/timing/stall.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pto::sim {

struct TimingReport;

/// Stretches of one kind: same unit, same insn that ended them, same cause.
struct Bubble {
  std::string unit;          // "issue" (no warp issued), or a unit's letter
  uint64_t total_cycles = 0; // of all of them, over all cores
  uint64_t count = 0;
  uint64_t longest_cycles = 0;
  uint64_t longest_from = 0; // cycle where the longest one begins
  uint32_t core = 0;         // of the longest one
  uint64_t block = 0;
  uint32_t warp = 0;
  uint32_t ended_by_pc = 0;
  uint32_t at_pc = 0;             // insn that waited: the same, or one before it in its warp
  uint32_t cause_pc = UINT32_MAX; // insn whose result or copy was awaited
  StallReason reason = StallReason::kOperand;
  std::string text; // one sentence: what happened
  std::string hint; // what a programmer may do
};

/// Looks through report.timeline; at most `max_bubbles`, largest total first, each
/// cause once, with the unit that lost most by it. Unit S does not count. Stretches before the
/// first and after the last insn of a core do not count, except for "issue".
[[nodiscard]] std::vector<Bubble> find_bubbles(const TimingReport& report, size_t max_bubbles);

} // namespace pto::sim
