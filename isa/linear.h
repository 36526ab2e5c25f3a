// SPDX-License-Identifier: Apache-2.0
// Values that are a linear function of the lane number, as indices and addresses mostly are.
//
// While all lanes of a span compute such a value, an engine may keep three numbers in place of the
// lanes: adding, scaling and comparing them costs the same for one lane and for a thousand, and a
// memory access with such an address is known to be one run, or a strided one, without looking.
// A row's `linear` function (isa/insn_desc.h) says what the insn makes of them; it returns false
// where the outcome is not linear, and the lanes are computed as ever. Both ways give the same
// bits.
#pragma once

#include "isa/insn.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>

namespace pto::isa {

/// Lane i of warp w of the span holds base + i * lane_step + w * warp_step, modulo 2^64, of which a
/// 32-bit register keeps the low half. Fields of a 32-bit value are zero-extended.
struct LinearValue {
  uint64_t base = 0;
  uint64_t lane_step = 0;
  uint64_t warp_step = 0;

  constexpr bool is_uniform() const { return (lane_step | warp_step) == 0; }
  static constexpr LinearValue uniform(uint64_t value) { return {.base = value}; }
  constexpr LinearValue low_half() const {
    return {static_cast<uint32_t>(base),
            static_cast<uint32_t>(lane_step),
            static_cast<uint32_t>(warp_step)};
  }
  constexpr LinearValue operator+(const LinearValue& other) const {
    return {base + other.base, lane_step + other.lane_step, warp_step + other.warp_step};
  }
  constexpr LinearValue operator-(const LinearValue& other) const {
    return {base - other.base, lane_step - other.lane_step, warp_step - other.warp_step};
  }
  constexpr LinearValue scaled(uint64_t factor) const {
    return {base * factor, lane_step * factor, warp_step * factor};
  }
};

/// Operands of an insn by their position; those that are no source are zero.
struct LinearSources {
  std::array<LinearValue, 4> at{};
  unsigned warps = 1; // that the values are of

  /// As plain numbers of 64 bits, if no lane wraps around.
  std::optional<LinearValue> widened(unsigned i, bool is_signed) const;
};

// The functions return true, and `result` is what the destination register holds; or true after
// writing all words of a destination predicate by `span`, which may have fewer warps than the
// values: they are alike; or false: not linear. Every lane is active.

/// A 32-bit linear value as plain integers: no lane wraps around.
struct LinearRange {
  int64_t base = 0;
  int64_t lane_step = 0;
  int64_t warp_step = 0;
  int64_t lowest = 0;
  int64_t highest = 0;

  /// The same numbers in 64 bits.
  constexpr LinearValue widened() const {
    return {static_cast<uint64_t>(base),
            static_cast<uint64_t>(lane_step),
            static_cast<uint64_t>(warp_step)};
  }
};
constexpr std::optional<LinearRange>
linear_range(const LinearValue& value, unsigned warps, bool is_signed) {
  const auto as_signed = [](uint64_t bits) {
    return int64_t{static_cast<int32_t>(static_cast<uint32_t>(bits))};
  };
  LinearRange range;
  range.base = is_signed ? as_signed(value.base) : int64_t{static_cast<uint32_t>(value.base)};
  range.lane_step = as_signed(value.lane_step);
  range.warp_step = as_signed(value.warp_step);
  const int64_t over_lanes = range.lane_step * (kWarpLanes - 1);
  const int64_t over_warps = range.warp_step * (int64_t{warps} - 1);
  range.lowest = range.base + std::min<int64_t>(0, over_lanes) + std::min<int64_t>(0, over_warps);
  range.highest = range.base + std::max<int64_t>(0, over_lanes) + std::max<int64_t>(0, over_warps);
  const int64_t least = is_signed ? std::numeric_limits<int32_t>::min() : 0;
  const int64_t most = is_signed ? std::numeric_limits<int32_t>::max()
                                 : int64_t{std::numeric_limits<uint32_t>::max()};
  if (range.lowest < least || range.highest > most) {
    return std::nullopt;
  }
  return range;
}
inline std::optional<LinearValue> LinearSources::widened(unsigned i, bool is_signed) const {
  const std::optional<LinearRange> range = linear_range(at[i], warps, is_signed);
  return range ? std::optional<LinearValue>(range->widened()) : std::nullopt;
}

/// Types whose arithmetic is that of LinearValue: 32- and 64-bit integers.
constexpr bool is_linear_type(Type type) {
  return (is_integer(type) || is_bits(type)) && bits(type) >= 32;
}

} // namespace pto::isa
