// SPDX-License-Identifier: Apache-2.0
// The timeline of a run: one entry for each insn of a warp, and for neighbouring warps of a block
// that issue the same insn in the same cycle one entry together, where its lanes are all those from
// the first to the last, or none. Bounded: what is beyond the limits is counted, not kept, and
// reports say so.
#pragma once

#include "simulator/timing/stall.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pto::sim {

/// The wait of a warp before its issue.
struct WarpWait {
  uint32_t stall_cycles = 0;
  StallReason reason = StallReason::kOperand; // the largest part of them
  uint32_t cause_pc = UINT32_MAX; // insn that wrote the late operand, or started the awaited copy
  bool operator==(const WarpWait&) const = default;
};

struct TimelineEntry {
  uint64_t issue_cycle = 0;
  uint64_t done_cycle = 0;  // result usable
  uint64_t start_cycle = 0; // its unit begins: later than the issue for what queues (copies, MMA)
  uint64_t block = 0;
  uint32_t core = 0;
  uint32_t pc = 0;
  uint32_t first_warp = 0;
  uint32_t last_warp = 0;
  uint32_t first_lane = 0; // within the block, of the active lanes; without one, of those there
  uint32_t last_lane = 0;
  uint32_t lane_mask = 0;          // of its only warp, where some between them are missing; else 0
  uint32_t active_lanes = 0;       // all warps of the entry together; 0: a guard held for no lane
  uint32_t stall_cycles = 0;       // before the issue: the most of its warps
  uint32_t least_stall_cycles = 0; // and the least; the timeline sets it
  StallReason reason = StallReason::kOperand; // the largest part of them
  uint32_t cause_pc = UINT32_MAX;   // insn that wrote the late operand, or started the awaited copy
  uint32_t held_by_pc = UINT32_MAX; // insn that still used its bytes of l1 and delayed its start
  uint8_t unit = 0;                 // isa::Unit
  bool is_fused = false;            // joined with the insn before it
  std::vector<WarpWait> waits;      // by warp from first_warp, where they differ; else empty

  /// The active lanes: "0-255", "7", "0-2,5"; "none".
  [[nodiscard]] std::string lanes() const;
  /// For a reader: the same, but "none (warp 3)".
  [[nodiscard]] std::string lanes_text() const;
  /// The wait of the warp that waited longest.
  [[nodiscard]] WarpWait longest_wait() const { return {stall_cycles, reason, cause_pc}; }
  /// What a warp of the entry waited.
  [[nodiscard]] WarpWait wait_of(uint32_t warp) const;
  /// Cycles that its warps waited, for a reader: "75", "75-1222".
  [[nodiscard]] std::string stall_text() const;
  /// Of its warps the first one that waited least: of those that issue together it came last.
  [[nodiscard]] uint32_t latest_warp() const;
};

struct TimelineLimits {
  uint64_t max_entries = 1u << 18;
  uint64_t max_blocks = UINT64_MAX; // --trace-blocks: only blocks below this
  uint64_t from_cycle = 0;          // --trace-window
  uint64_t to_cycle = UINT64_MAX;
};

class Timeline {
public:
  explicit Timeline(TimelineLimits limits = {}) : limits_(limits) {}

  /// Adds an entry of one warp, or widens the latest entry of the same block, pc and cycle. Returns
  /// its index, or nothing (SIZE_MAX) when a limit leaves it out.
  size_t add(const TimelineEntry& entry);
  /// For a result whose cycle is known only later.
  void extend_done(size_t index, uint64_t done_cycle);

  /// How far the timeline has come, to go back to. Keeps the entries that add() may still widen.
  struct Mark {
    size_t count = 0;
    uint64_t dropped = 0;
    std::vector<TimelineEntry> last;
  };
  [[nodiscard]] Mark mark() const;
  void rewind(const Mark& mark);

  [[nodiscard]] const std::vector<TimelineEntry>& entries() const { return entries_; }
  /// Warp insns that limits left out.
  [[nodiscard]] uint64_t dropped() const { return dropped_; }
  [[nodiscard]] const TimelineLimits& limits() const { return limits_; }

private:
  TimelineLimits limits_;
  std::vector<TimelineEntry> entries_;
  uint64_t dropped_ = 0;
};

} // namespace pto::sim
