// SPDX-License-Identifier: Apache-2.0
// Which lanes of a warp have a number that a lane before them has, by comparing vectors.
#pragma once

#include "isa/host_level.h"
#include "isa/insn.h"

#include <array>
#include <cstdint>

namespace pto::sim {

/// Numbers below kNone of a warp's lanes, behind so many that are kNone, which no lane has.
struct LaneNumbers {
  static constexpr unsigned kLanes = isa::kWarpLanes;
  static constexpr uint32_t kNone = 1u << 31;
  std::array<uint32_t, 2 * kLanes> number;

  [[nodiscard]] uint32_t* lanes() { return number.data() + kLanes; }
  [[nodiscard]] const uint32_t* lanes() const { return number.data() + kLanes; }
};

/// repeats[i]: all bits set if a lane before lane i has the number of lane i. Compares all pairs,
/// in pieces of which the host does one at a time.
PTO_HOST_LOOP void find_repeats(const LaneNumbers& __restrict numbers,
                                uint32_t* __restrict repeats) {
  constexpr unsigned kPiece = 8;
  for (unsigned piece = 0; piece < LaneNumbers::kLanes; piece += kPiece) {
    const uint32_t* own = numbers.lanes() + piece;
    uint32_t found[kPiece] = {};
    for (unsigned back = 1; back < piece + kPiece; ++back) {
      for (unsigned i = 0; i < kPiece; ++i) {
        found[i] |= own[i] == *(own + i - back) ? ~0u : 0u;
      }
    }
    for (unsigned i = 0; i < kPiece; ++i) {
      repeats[piece + i] = found[i];
    }
  }
}

/// The same where numbers do not descend from lane to lane. False: they do.
PTO_HOST_LOOP bool find_repeats_ascending(const LaneNumbers& __restrict numbers,
                                          uint32_t* __restrict repeats) {
  const uint32_t* own = numbers.lanes();
  uint32_t descends = 0;
  repeats[0] = 0;
  for (unsigned i = 1; i < LaneNumbers::kLanes; ++i) {
    descends |= own[i] < own[i - 1] ? 1u : 0u;
    repeats[i] = own[i] == own[i - 1] ? ~0u : 0u;
  }
  return descends == 0;
}

} // namespace pto::sim
