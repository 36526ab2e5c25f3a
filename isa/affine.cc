// SPDX-License-Identifier: Apache-2.0
#include "isa/affine.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace pto::isa {

namespace {

/// A sum of products that knows when it no longer fits.
class Sum {
public:
  explicit Sum(int64_t value) : value_(value) {}
  void add(int64_t a, int64_t b) {
    int64_t product = 0;
    fits_ = fits_ && !__builtin_mul_overflow(a, b, &product) &&
            !__builtin_add_overflow(value_, product, &value_);
  }
  std::optional<int64_t> value() const { return fits_ ? std::optional(value_) : std::nullopt; }

private:
  int64_t value_;
  bool fits_ = true;
};

/// How many times `unit` the steps are on the axes of `unit`; 0: no whole number of times.
int64_t multiple_of(const std::array<int64_t, kAxes>& steps,
                    const std::array<int64_t, kAxes>& unit) {
  int64_t times = 0;
  for (size_t i = 0; i < kAxes; ++i) {
    if (unit[i] == 0) {
      continue;
    }
    if (unit[i] == -1 && steps[i] == std::numeric_limits<int64_t>::min()) {
      return 0;
    }
    if (steps[i] % unit[i] != 0 || (times != 0 && steps[i] / unit[i] != times)) {
      return 0;
    }
    times = steps[i] / unit[i];
    if (times == 0) {
      return 0;
    }
  }
  return times;
}

} // namespace

std::optional<HalfSpace> HalfSpace::complement() const {
  HalfSpace other;
  for (size_t i = 0; i < kAxes; ++i) {
    if (steps[i] == std::numeric_limits<int64_t>::min()) {
      return std::nullopt;
    }
    other.steps[i] = -steps[i];
  }
  other.most = ~most; // -most - 1
  return other;
}

void AffineRegion::cut(const HalfSpace& half) {
  constexpr size_t kMostCuts = 16; // leaving one out is allowed
  HalfSpace lowest = half;
  int64_t common = 0;
  for (size_t i = 0; i < kAxes; ++i) {
    if (half.steps[i] == std::numeric_limits<int64_t>::min()) {
      return;
    }
    lowest.steps[i] = extents_[i] == 1 ? 0 : half.steps[i];
    common = std::gcd(common, lowest.steps[i]);
  }
  if (common == 0 || !shrink(lowest)) {
    return;
  }
  lowest.most = floor_div(half.most, common);
  for (int64_t& step : lowest.steps) {
    step /= common;
  }
  const auto same = std::find_if(
      cuts_.begin(), cuts_.end(), [&](const HalfSpace& cut) { return cut.steps == lowest.steps; });
  if (same != cuts_.end()) {
    same->most = std::min(same->most, lowest.most);
  } else if (cuts_.size() < kMostCuts) {
    cuts_.push_back(lowest);
  }
}

/// Makes the box as small as the half-space alone allows. False: numbers get too large.
bool AffineRegion::shrink(const HalfSpace& half) {
  Sum lowest(0);
  for (size_t i = 0; i < kAxes; ++i) {
    lowest.add(std::min<int64_t>(half.steps[i], 0), int64_t{extents_[i]} - 1);
  }
  int64_t room = 0; // what all axes together may add to the lowest sum
  if (!lowest.value() || __builtin_sub_overflow(half.most, *lowest.value(), &room)) {
    return false;
  }
  for (size_t i = 0; i < kAxes && room >= 0; ++i) { // else there is no place at all
    if (half.steps[i] > 0) {
      extents_[i] = static_cast<uint32_t>(
          std::min<int64_t>(int64_t{extents_[i]} - 1, room / half.steps[i]) + 1);
    }
  }
  return true;
}

std::optional<int64_t> AffineRegion::highest(const std::array<int64_t, kAxes>& steps) const {
  // Each axis counts once: in the box, or with the others of one cut.
  Sum sum(0);
  std::array<int64_t, kAxes> left = steps;
  for (const HalfSpace& cut : cuts_) {
    const int64_t times = multiple_of(left, cut.steps);
    if (times <= 0) {
      continue;
    }
    Sum boxed(0);
    for (size_t i = 0; i < kAxes; ++i) {
      if (cut.steps[i] > 0) {
        boxed.add(cut.steps[i], int64_t{extents_[i]} - 1);
      }
    }
    if (boxed.value() && *boxed.value() <= cut.most) {
      continue;
    }
    sum.add(times, cut.most);
    for (size_t i = 0; i < kAxes; ++i) {
      left[i] = cut.steps[i] == 0 ? left[i] : 0;
    }
  }
  for (size_t i = 0; i < kAxes; ++i) {
    if (left[i] > 0) {
      sum.add(left[i], int64_t{extents_[i]} - 1);
    }
  }
  return sum.value();
}

std::optional<Bounds> AffineRegion::bounds(const std::array<int64_t, kAxes>& steps) const {
  std::array<int64_t, kAxes> downwards{};
  for (size_t i = 0; i < kAxes; ++i) {
    if (steps[i] == std::numeric_limits<int64_t>::min()) {
      return std::nullopt;
    }
    downwards[i] = -steps[i];
  }
  const std::optional<int64_t> up = highest(steps);
  const std::optional<int64_t> down = highest(downwards);
  if (!up || !down || *down == std::numeric_limits<int64_t>::min()) {
    return std::nullopt;
  }
  return Bounds{-*down, *up};
}

std::optional<AffineValue> AffineRegion::widened(const AffineValue& value, bool is_signed) const {
  const auto as_signed = [](uint64_t bits) {
    return int64_t{static_cast<int32_t>(static_cast<uint32_t>(bits))};
  };
  const int64_t base =
      is_signed ? as_signed(value.base) : int64_t{static_cast<uint32_t>(value.base)};
  std::array<int64_t, kAxes> steps{};
  std::transform(value.steps.begin(), value.steps.end(), steps.begin(), as_signed);
  const int64_t least = is_signed ? std::numeric_limits<int32_t>::min() : 0;
  const int64_t most = is_signed ? std::numeric_limits<int32_t>::max()
                                 : int64_t{std::numeric_limits<uint32_t>::max()};
  const std::optional<Bounds> range = bounds(steps);
  if (!range || range->lowest < least - base || range->highest > most - base) {
    return std::nullopt;
  }
  AffineValue wide{.base = static_cast<uint64_t>(base), .steps = {}};
  std::copy(steps.begin(), steps.end(), wide.steps.begin());
  return wide;
}

} // namespace pto::isa
