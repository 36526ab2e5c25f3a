// SPDX-License-Identifier: Apache-2.0
// Finding the cycle in the states of a block, see the header.
#include "simulator/repeat_probe.h"

#include "simulator/program.h"

#include <algorithm>

namespace pto::sim {

namespace {

// Each of the following names all members, so that a new one does not compile before somebody has
// decided what it means here.

bool is_same_part(const StackEntry& a, const StackEntry& b) {
  const auto& [pc, join_pc, mask, is_call_base] = a;
  return pc == b.pc && join_pc == b.join_pc && mask == b.mask && is_call_base == b.is_call_base;
}

bool is_same_tile(const TileState& a, const TileState& b) {
  const auto& [is_live, offset, size_bytes] = a;
  return is_live == b.is_live && offset == b.offset && size_bytes == b.size_bytes;
}

bool is_same_segment(const ScratchpadSegment& a, const ScratchpadSegment& b) {
  const auto& [offset, size_bytes, tile, pc] = a;
  return offset == b.offset && size_bytes == b.size_bytes && tile == b.tile && pc == b.pc;
}

/// Of ranges, each element for itself.
template <class Range, class Same> bool are_same(const Range& a, const Range& b, Same same) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

bool is_same_warp(const WarpState& a, const WarpState& b) {
  const auto& [pc,
               join_pc,
               is_call_base,
               status,
               barrier_id,
               wait_event,
               arrived_mask,
               call_depth,
               issued, // seen by %clock alone
               stack] = a;
  return pc == b.pc && join_pc == b.join_pc && is_call_base == b.is_call_base &&
         status == b.status && barrier_id == b.barrier_id && wait_event == b.wait_event &&
         arrived_mask == b.arrived_mask && call_depth == b.call_depth &&
         are_same(stack, b.stack, is_same_part);
}

bool is_same_scratchpad(const Scratchpad& a, const Scratchpad& b) {
  return a.data_bytes() == b.data_bytes() &&
         are_same(a.segments(), b.segments(), is_same_segment) &&
         std::equal(a.data(), a.data() + a.data_bytes(), b.data());
}

/// What decides how the block goes on, least first.
bool is_same(const BlockState& a, const BlockState& b) {
  const auto& [index,
               ctaid,
               core,
               reg32,
               reg64,
               preds,
               masks,
               exited,
               warps,
               scratchpad,
               tiles,
               pending,
               copies_started, // counters, which nothing in the program can see
               events_used,
               barriers_passed,
               counts,
               clock,
               has_clock,
               turn,
               meeting_pc,
               meeting_depth,
               parked] = a;
  // Copies that are pending have numbers of their own each time.
  return turn == b.turn && meeting_pc == b.meeting_pc && meeting_depth == b.meeting_depth &&
         are_same(warps, b.warps, is_same_warp) && pending.empty() && b.pending.empty() &&
         masks == b.masks && exited == b.exited && preds == b.preds && parked == b.parked &&
         events_used == b.events_used && are_same(tiles, b.tiles, is_same_tile) &&
         clock == b.clock && has_clock == b.has_clock && index == b.index && ctaid == b.ctaid &&
         core == b.core && reg32 == b.reg32 && reg64 == b.reg64 &&
         is_same_scratchpad(scratchpad, b.scratchpad);
}

} // namespace

RepeatProbe::RepeatProbe(Launch& launch, AccessGate& gate)
    : copy_(launch), reads_clock_(launch.program().reads_clock()) {
  copy_.set_gate(&gate);
}

bool RepeatProbe::repeats(const BlockRun& block, uint64_t steps) {
  if (reads_clock_) {
    return false;
  }
  copy_.restore(block.state());
  BlockState mark = copy_.state();
  uint64_t since_mark = 0;
  uint64_t most = 1; // then the mark moves on (Brent)
  for (uint64_t step = 0; step < steps; ++step) {
    if (copy_.run(1) != BlockStop::kBudget) {
      return false;
    }
    if (is_same(copy_.state(), mark)) {
      return true;
    }
    if (++since_mark == most) {
      mark = copy_.state();
      since_mark = 0;
      most *= 2;
    }
  }
  return false;
}

} // namespace pto::sim
