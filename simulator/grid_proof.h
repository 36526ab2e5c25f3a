// SPDX-License-Identifier: Apache-2.0
// Whether the blocks of a launch are independent, told before any of them runs. Private to the
// simulator.
//
// Most kernels over arrays and tiles compute every address and every branch from the lane's place
// in the grid, parameters and constants. Such values are affine in the place (isa/affine.h), so one
// walk through the insns follows all lanes of the grid at once. If it comes to the end, nobody can
// fault or spin, and no block accesses what another one writes: blocks may run in any order, on any
// thread, without anything to be undone. Lanes past the end of the data may leave early, or pass
// over a part of the code; what depends on data may choose between ways, if all of them are good.
#pragma once

#include <cstdint>
#include <optional>

namespace pto::sim {

class Launch;

struct GridProof {
  uint64_t insns = 0;           // that a warp of the grid issues, at most
  bool are_lanes_apart = false; // no lane accesses what another one writes, nor waits for one
};

/// Nullopt: not proven. Only launches are with memory that all cores see alike, of kernels that
/// load from and store to hbm and scratchpad, and meet at block barriers alone.
std::optional<GridProof> prove_grid(const Launch& launch);

} // namespace pto::sim
