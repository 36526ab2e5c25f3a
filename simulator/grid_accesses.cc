// SPDX-License-Identifier: Apache-2.0
#include "simulator/grid_accesses.h"

#include <algorithm>
#include <cstdlib>

namespace pto::sim {

namespace {

using isa::floor_div;
using isa::kAxes;
using isa::kFirstBlockAxis;
using Access = GridAccesses::Access;
using Meeting = GridAccesses::Meeting;

/// An axis of the grid: the accesses of two places that are `n` apart on it are `step` * n bytes
/// apart, but for what the smaller digits add.
struct Digit {
  size_t axis = 0;
  int64_t step = 0;
  int64_t lowest_n = 0;
  int64_t highest_n = 0;
  isa::Bounds rest; // what smaller digits add
};

/// All pairs of places whose accesses share a byte.
class Pairs {
public:
  /// Of the same steps.
  Pairs(const Access& a, const Access& b)
      : apart_(static_cast<int64_t>(a.at.base - b.at.base)), overlap_{1 - size_of(a),
                                                                      size_of(b) - 1} {
    std::array<int64_t, kAxes> steps = a.at.signed_steps(); // of the digits that are left
    for (size_t i = 0; i < kAxes; ++i) {
      const Digit digit = {.axis = i,
                           .step = steps[i],
                           .lowest_n = 1 - int64_t{b.region.extents()[i]},
                           .highest_n = int64_t{a.region.extents()[i]} - 1};
      if (digit.lowest_n == 0 && digit.highest_n == 0) {
        steps[i] = 0;
        continue;
      }
      if (digit.step == 0) {
        free_axes_ |= 1u << i;
        continue;
      }
      is_too_large_ = is_too_large_ || digit.step < -kFarBytes || digit.step > kFarBytes;
      digits_.push_back(digit);
    }
    std::sort(digits_.begin(), digits_.end(), [](const Digit& x, const Digit& y) {
      return std::abs(x.step) > std::abs(y.step);
    });
    for (Digit& digit : digits_) {
      steps[digit.axis] = 0;
      const auto in_a = a.region.bounds(steps);
      const auto in_b = b.region.bounds(steps);
      if (!in_a || !in_b || !is_near(*in_a) || !is_near(*in_b)) {
        is_too_large_ = true;
        break;
      }
      digit.rest = {in_a->lowest - in_b->highest, in_a->highest - in_b->lowest};
    }
  }

  Meeting meeting() {
    if (is_too_large_ || !is_near({apart_, apart_})) {
      return Meeting::kAny;
    }
    look(0, apart_, free_axes_);
    return found_;
  }

private:
  static int64_t size_of(const Access& access) { return static_cast<int64_t>(access.bytes); }
  static bool is_near(const isa::Bounds& bounds) {
    return bounds.lowest >= -kFarBytes && bounds.highest <= kFarBytes;
  }

  /// `apart`: bytes between the accesses of two places that are chosen up to digit `index`;
  /// `different`: axes in which they may differ.
  void look(size_t index, int64_t apart, uint32_t different) {
    constexpr int kMostSteps = 1000;
    if (++steps_ > kMostSteps) {
      found_ = Meeting::kAny;
    }
    if (found_ == Meeting::kAny) {
      return;
    }
    if (index == digits_.size()) {
      if (apart >= overlap_.lowest && apart <= overlap_.highest && different != 0) {
        found_ = (different >> kFirstBlockAxis) != 0 ? Meeting::kAny : Meeting::kWithinBlock;
      }
      return;
    }
    // Every n with which the rest can still bring the two together.
    const Digit& digit = digits_[index];
    const int64_t lowest = overlap_.lowest - apart - digit.rest.highest;
    const int64_t highest = overlap_.highest - apart - digit.rest.lowest;
    const int64_t size = std::abs(digit.step);
    const int64_t first = -floor_div(digit.step > 0 ? -lowest : highest, size);
    const int64_t last = floor_div(digit.step > 0 ? highest : -lowest, size);
    for (int64_t n = std::max(first, digit.lowest_n);
         n <= std::min(last, digit.highest_n) && found_ != Meeting::kAny;
         ++n) {
      look(index + 1, apart + n * digit.step, different | (n != 0 ? 1u << digit.axis : 0));
    }
  }

  int64_t apart_;
  isa::Bounds overlap_; // of their distance, where they share a byte
  std::vector<Digit> digits_;
  uint32_t free_axes_ = 0; // that no address depends on
  bool is_too_large_ = false;
  Meeting found_ = Meeting::kNone;
  int steps_ = 0;
};

/// Somebody writes where the ranges overlap.
bool may_meet(const Access& a, const Access& b) {
  return (a.writes || b.writes) && a.begin < b.end && b.begin < a.end;
}

} // namespace

bool GridAccesses::add(Access access) {
  constexpr size_t kMost = 1024;
  const bool is_known = std::any_of(accesses_.begin(), accesses_.end(), [&](const Access& other) {
    return other.at.base == access.at.base && other.at.steps == access.at.steps &&
           other.bytes == access.bytes && other.writes == access.writes &&
           other.region == access.region;
  });
  if (!is_known) {
    accesses_.push_back(std::move(access));
  }
  return accesses_.size() <= kMost;
}

Meeting GridAccesses::meeting() const {
  constexpr size_t kMostPairs = 4096;
  Meeting found = Meeting::kNone;
  size_t pairs = 0;
  for (size_t i = 0; i < accesses_.size(); ++i) {
    for (size_t j = 0; j <= i; ++j) {
      const Access& a = accesses_[i];
      const Access& b = accesses_[j];
      if (!may_meet(a, b)) {
        continue;
      }
      if (a.at.steps != b.at.steps || ++pairs > kMostPairs) {
        return Meeting::kAny;
      }
      found = std::max(found, Pairs(a, b).meeting());
    }
  }
  return found;
}

} // namespace pto::sim
