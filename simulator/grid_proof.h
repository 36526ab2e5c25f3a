// SPDX-License-Identifier: Apache-2.0
// Whether the blocks of a launch are independent, told before any of them runs. Private to the
// simulator.
//
// Kernels that stream over arrays compute every address and every branch from the lane's number in
// the grid, parameters and constants. Such values are linear in the lane (isa/linear.h) over the
// whole grid as over a block, so one walk through the insns with three numbers a register follows
// all lanes at once. If it comes to the end, nobody can fault or spin, and each lane has what it
// writes for itself: blocks may run in any order, on any thread, without anything to be undone.
// Lanes past the end of the data may leave early, or pass over a part of the code.
#pragma once

#include <cstdint>
#include <optional>

namespace pto::sim {

class Launch;
struct LaunchImage;

/// One-dimensional, of blocks of whole warps: a lane's number in the grid says all.
bool is_line_of_warps(const LaunchImage& image);

struct GridProof {
  uint64_t insns = 0; // that a warp of the grid issues, at most
};

/// Nullopt: not proven. Only one-dimensional launches of whole warps are, with memory that all
/// cores see alike, of kernels that access hbm alone.
std::optional<GridProof> prove_grid(const Launch& launch);

} // namespace pto::sim
