// SPDX-License-Identifier: Apache-2.0
// Values that are an affine function of a lane's place in the grid, and regions of the grid.
//
// What linear values (isa/linear.h) are to the lanes of a span, affine values are to all lanes of a
// launch: seven numbers follow them through an insn at once. Where some lanes have left, or pass
// over a part of the code, the others are a region: a box of places, cut by half-spaces. Regions
// may hold more than the lanes that are meant, so what holds in a region holds for all of those.
#pragma once

#include "isa/insn.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace pto::isa {

/// A lane's place: tid.x, tid.y, tid.z, ctaid.x, ctaid.y, ctaid.z.
inline constexpr size_t kAxes = 6;
inline constexpr size_t kFirstBlockAxis = 3;

/// The lane at `place` holds base + sum of place[i] * steps[i], modulo 2^64, of which a 32-bit
/// register keeps the low half. Fields of a 32-bit value are zero-extended.
struct AffineValue {
  uint64_t base = 0;
  std::array<uint64_t, kAxes> steps{};

  constexpr bool is_uniform() const {
    uint64_t all = 0;
    for (const uint64_t step : steps) {
      all |= step;
    }
    return all == 0;
  }
  static constexpr AffineValue uniform(uint64_t value) { return {.base = value, .steps = {}}; }
  /// Of a value of 64 bits, which they change by so much modulo 2^64.
  constexpr std::array<int64_t, kAxes> signed_steps() const {
    std::array<int64_t, kAxes> numbers{};
    for (size_t i = 0; i < kAxes; ++i) {
      numbers[i] = static_cast<int64_t>(steps[i]);
    }
    return numbers;
  }
  constexpr AffineValue operator+(const AffineValue& other) const {
    AffineValue sum = *this;
    sum.base += other.base;
    for (size_t i = 0; i < kAxes; ++i) {
      sum.steps[i] += other.steps[i];
    }
    return sum;
  }
  constexpr AffineValue operator-(const AffineValue& other) const {
    return *this + other.scaled(~uint64_t{0}); // times -1
  }
  constexpr AffineValue scaled(uint64_t factor) const {
    AffineValue product = *this;
    product.base *= factor;
    for (uint64_t& step : product.steps) {
      step *= factor;
    }
    return product;
  }
  constexpr AffineValue low_half() const {
    AffineValue low{.base = static_cast<uint32_t>(base), .steps = {}};
    for (size_t i = 0; i < kAxes; ++i) {
      low.steps[i] = static_cast<uint32_t>(steps[i]);
    }
    return low;
  }
};

/// Rounded down.
constexpr int64_t floor_div(int64_t a, int64_t positive) {
  return a / positive - (a % positive < 0 ? 1 : 0);
}

/// Places where the sum of place[i] * steps[i] is `most` at most.
struct HalfSpace {
  std::array<int64_t, kAxes> steps{};
  int64_t most = 0;

  bool operator==(const HalfSpace&) const = default;
  /// All other places; nullopt where the numbers get too large.
  std::optional<HalfSpace> complement() const;
};

/// Lowest and highest of a number in a region.
struct Bounds {
  int64_t lowest = 0;
  int64_t highest = 0;
};

class AffineRegion {
public:
  /// All places with place[i] < extents[i]; no extent is 0.
  explicit AffineRegion(const std::array<uint32_t, kAxes>& extents) : extents_(extents) {}

  /// Of a box that holds all places; cuts make it smaller.
  const std::array<uint32_t, kAxes>& extents() const { return extents_; }
  bool operator==(const AffineRegion&) const = default;
  /// In lowest terms: their steps have no common factor, and are 0 where there is one place.
  const std::vector<HalfSpace>& cuts() const { return cuts_; }
  /// Leaves out the places outside of `half`, as far as a region can say.
  void cut(const HalfSpace& half);

  /// Of the sum of place[i] * steps[i]; wider than need be where cuts say too little, nullopt where
  /// numbers get too large.
  std::optional<Bounds> bounds(const std::array<int64_t, kAxes>& steps) const;
  /// A 32-bit value as plain numbers, if no lane of the region wraps around.
  std::optional<AffineValue> widened(const AffineValue& value, bool is_signed) const;

private:
  bool shrink(const HalfSpace& half);
  std::optional<int64_t> highest(const std::array<int64_t, kAxes>& steps) const;

  std::array<uint32_t, kAxes> extents_;
  std::vector<HalfSpace> cuts_;
};

/// Operands of an insn by their position, see LinearSources. Active are the lanes of `region`.
struct AffineSources {
  std::array<AffineValue, 4> at{};
  const AffineRegion* region = nullptr;

  std::optional<AffineValue> widened(unsigned i, bool is_signed) const {
    return region->widened(at[i], is_signed);
  }
};

} // namespace pto::isa
