// SPDX-License-Identifier: Apache-2.0
// When each register of a warp is usable, and whose fault it is when not yet.
#pragma once

#include "simulator/timing/core_memory.h"
#include "simulator/timing/insn_timing.h"
#include "simulator/timing/stall.h"

#include <array>
#include <cmath>
#include <cstdint>

namespace pto::sim {

inline constexpr uint64_t kNever = UINT64_MAX;

/// Rounds a fraction of a cycle up to the cycle in which it is over.
[[nodiscard]] inline uint64_t whole_cycle(double cycle) {
  const double least = cycle - 1e-6;
  // ceil() is a call on old hosts, and signed conversions are the cheap ones.
  const auto whole = static_cast<int64_t>(least > 0 ? least : 0);
  return static_cast<uint64_t>(whole + (static_cast<double>(whole) < least ? 1 : 0));
}

/// One late result. The wait up to done - late is the operand's own latency, the next part
/// `reason`'s (a miss, a conflict), and the last `bandwidth_cycles` are the shared paths'.
struct ScoreEntry {
  uint64_t done_cycle = 0;       // kNever: not known yet (an atomic under way)
  uint32_t late_cycles = 0;      // beyond the latency of the table
  uint32_t bandwidth_cycles = 0; // of these, for want of bandwidth
  uint32_t writer_pc = UINT32_MAX;
  StallReason reason = StallReason::kOperand;

  static ScoreEntry from(const ResultTime& time, uint32_t pc) {
    ScoreEntry entry;
    entry.done_cycle = whole_cycle(time.done_cycle);
    entry.writer_pc = pc;
    entry.reason = time.reason;
    if (time.base_cycle == time.done_cycle) {
      return entry;
    }
    const uint64_t base = std::min(whole_cycle(time.base_cycle), entry.done_cycle);
    const uint64_t unloaded = std::clamp(whole_cycle(time.unloaded_cycle), base, entry.done_cycle);
    entry.late_cycles = static_cast<uint32_t>(entry.done_cycle - base);
    entry.bandwidth_cycles = static_cast<uint32_t>(entry.done_cycle - unloaded);
    return entry;
  }
};

class Scoreboard {
public:
  ScoreEntry& operator[](ScoreIndex index) { return entries_[index]; }
  const ScoreEntry& operator[](ScoreIndex index) const { return entries_[index]; }
  void reset() { entries_.fill({}); }

private:
  std::array<ScoreEntry, kScoreCount> entries_{};
};

} // namespace pto::sim
