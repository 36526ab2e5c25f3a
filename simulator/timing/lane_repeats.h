// SPDX-License-Identifier: Apache-2.0
// Which lanes of a warp have a number that a lane before them has, by comparing vectors.
#pragma once

#include "isa/host_level.h"
#include "isa/insn.h"

#include <array>
#include <cstdint>

namespace pto::sim {

// Vectors by name, where compilers make a detour over single lanes of loops that say the same.
using HalfWarp = uint16_t __attribute__((vector_size(32)));
using ByteWarp = uint8_t __attribute__((vector_size(32)));
using QuarterWarp = uint32_t __attribute__((vector_size(32)));

template <class Vector, class Element>
PTO_HOST_LOOP void read_vector(Vector& to, const Element* from) {
  __builtin_memcpy(&to, from, sizeof(Vector));
}

/// Numbers below kNone of a warp's lanes, behind so many that are kNone, which no lane has.
template <class Number, Number kNoNumber> struct NumbersOfLanes {
  static constexpr unsigned kLanes = isa::kWarpLanes;
  static constexpr Number kNone = kNoNumber;
  alignas(32) std::array<Number, 2 * kLanes> number;

  [[nodiscard]] Number* lanes() { return number.data() + kLanes; }
  [[nodiscard]] const Number* lanes() const { return number.data() + kLanes; }
};
using TinyLaneNumbers = NumbersOfLanes<uint8_t, 0xFF>;
using SmallLaneNumbers = NumbersOfLanes<uint16_t, 0xFFFF>;
using LaneNumbers = NumbersOfLanes<uint32_t, 1u << 31>;

/// Calls act(half, own, other) for each pair of a lane and one before it: numbers of one half of
/// the lanes, and of those so many lanes before them.
template <class Act>
PTO_HOST_LOOP void for_each_pair(const SmallLaneNumbers& numbers, const Act& act) {
  constexpr unsigned kHalf = SmallLaneNumbers::kLanes / 2;
  const uint16_t* lanes = numbers.lanes();
  HalfWarp low;
  HalfWarp high;
  HalfWarp other;
  read_vector(low, lanes);
  read_vector(high, lanes + kHalf);
  for (unsigned back = 1; back < kHalf; ++back) {
    read_vector(other, lanes - back);
    act(0, low, other);
    read_vector(other, lanes + kHalf - back);
    act(1, high, other);
  }
  for (unsigned back = kHalf; back < SmallLaneNumbers::kLanes; ++back) {
    read_vector(other, lanes + kHalf - back);
    act(1, high, other);
  }
}

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
