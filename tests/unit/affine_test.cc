// SPDX-License-Identifier: Apache-2.0
// Regions of a grid hold what they must, and their bounds hold for every lane.
#include "isa/affine.h"
#include "random_choice.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace pto::isa {
namespace {

using Steps = std::array<int64_t, kAxes>;
using Place = std::array<uint32_t, kAxes>;

int64_t at(const Steps& steps, const Place& place) {
  int64_t sum = 0;
  for (size_t i = 0; i < kAxes; ++i) {
    sum += steps[i] * int64_t{place[i]};
  }
  return sum;
}

template <class Call> void each_place(const Place& extents, Call&& call) {
  Place place{};
  while (true) {
    call(place);
    size_t i = 0;
    while (i < kAxes && ++place[i] == extents[i]) {
      place[i++] = 0;
    }
    if (i == kAxes) {
      return;
    }
  }
}

bool holds(const HalfSpace& half, const Place& place) {
  return at(half.steps, place) <= half.most;
}

} // namespace

TEST_CASE("bounds of a box are exact") {
  const AffineRegion box({32, 8, 1, 5, 6, 1});
  const auto bounds = box.bounds({4, -128, 1000, 128, 0, 7});
  REQUIRE(bounds.has_value());
  CHECK(bounds->lowest == -128 * 7);
  CHECK(bounds->highest == 4 * 31 + 128 * 4);
}

TEST_CASE("a cut bounds what goes with it") {
  AffineRegion columns({32, 8, 1, 4, 6, 1}); // 128 columns, of which 100 are
  columns.cut({{1, 0, 0, 32, 0, 0}, 99});
  CHECK(columns.bounds({1, 0, 0, 32, 0, 0})->highest == 99);
  CHECK(columns.bounds({4, 0, 0, 128, 400, 0})->highest == 4 * 99 + 5 * 400);
  CHECK(columns.bounds({-4, 0, 0, -128, 0, 0})->lowest == -4 * 99);
  CHECK(columns.bounds({1, 0, 0, 31, 0, 0})->highest == 31 + 3 * 31); // does not go with it
  columns.cut({{2, 0, 0, 64, 0, 0}, 101}); // the same axes, in other terms
  REQUIRE(columns.cuts().size() == 1);
  CHECK(columns.bounds({1, 0, 0, 32, 0, 0})->highest == 50);
  columns.cut({{-1, 0, 0, -32, 0, 0}, -10}); // from column 10 on
  CHECK(columns.bounds({3, 0, 0, 96, 0, 0})->lowest == 30);
}

TEST_CASE("random regions hold what they must") {
  std::mt19937 random(11);
  RandomChoice choose(random);
  unsigned exact = 0;
  for (int round = 0; round < 3000; ++round) {
    Place extents{};
    std::generate(extents.begin(), extents.end(), [&] {
      return static_cast<uint32_t>(choose.between(1, 4));
    });
    const auto some_steps = [&] {
      Steps steps{};
      std::generate(steps.begin(), steps.end(), [&] {
        return choose.between(0, 2) == 0 ? 0 : int64_t{choose.between(-3, 6)};
      });
      return steps;
    };
    const Steps unit = some_steps();
    AffineRegion region(extents);
    std::vector<HalfSpace> halves;
    for (int i = choose.between(0, 3); i > 0; --i) {
      HalfSpace half{choose.between(0, 1) == 0 ? unit : some_steps(), choose.between(-3, 20)};
      const auto other = half.complement();
      REQUIRE(other.has_value());
      each_place(extents,
                 [&](const Place& place) { REQUIRE(holds(half, place) != holds(*other, place)); });
      halves.push_back(choose.between(0, 1) == 0 ? half : *other);
      region.cut(halves.back());
    }
    const int64_t times = choose.between(1, 5);
    Steps steps = choose.between(0, 2) == 0 ? some_steps() : unit;
    std::for_each(steps.begin(), steps.end(), [&](int64_t& step) { step *= times; });
    const auto bounds = region.bounds(steps);
    REQUIRE(bounds.has_value());
    int64_t lowest = std::numeric_limits<int64_t>::max();
    int64_t highest = std::numeric_limits<int64_t>::min();
    each_place(extents, [&](const Place& place) {
      const bool is_in = std::all_of(
          halves.begin(), halves.end(), [&](const HalfSpace& half) { return holds(half, place); });
      for (const HalfSpace& cut : region.cuts()) {
        REQUIRE((!is_in || holds(cut, place)));
      }
      if (is_in) {
        lowest = std::min(lowest, at(steps, place));
        highest = std::max(highest, at(steps, place));
      }
    });
    if (lowest <= highest) {
      REQUIRE(bounds->lowest <= lowest);
      REQUIRE(bounds->highest >= highest);
      exact += bounds->lowest == lowest && bounds->highest == highest ? 1 : 0;
    }
  }
  CHECK(exact > 1000);
}

TEST_CASE("numbers that are too large are none") {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  AffineRegion box({2, 3, 1, 1, 1, 1});
  CHECK(box.bounds({kMost, 0, 0, 0, 0, 0})->highest == kMost);
  CHECK_FALSE(box.bounds({0, kMost, 0, 0, 0, 0}).has_value());
  CHECK_FALSE(box.bounds({kMost, 1, 0, 0, 0, 0}).has_value());
  CHECK_FALSE(box.bounds({kLeast, 0, 0, 0, 0, 0}).has_value());
  CHECK_FALSE(HalfSpace{{kLeast}, 1}.complement().has_value());
  box.cut({{kLeast}, 1});
  box.cut({{}, 1});
  CHECK(box.cuts().empty());
  box.cut({{-1, 0, 0, 0, 0, 0}, 0});
  CHECK_FALSE(box.bounds({kLeast, 0, 0, 0, 0, 0}).has_value());
}

TEST_CASE("values of 32 bits as plain numbers") {
  const AffineRegion box({32, 1, 1, 4, 1, 1});
  const AffineValue down{.base = 127, .steps = {0xFFFFFFFF, 0, 0, 0xFFFFFFE0, 0, 0}};
  const auto wide = box.widened(down, false);
  REQUIRE(wide.has_value());
  CHECK(wide->base == 127);
  CHECK(wide->steps[0] == ~uint64_t{0});
  CHECK(wide->steps[3] == static_cast<uint64_t>(-32));
  AffineValue lower = down;
  lower.base = 126; // the last lane has -1
  CHECK_FALSE(box.widened(lower, false).has_value());
  CHECK(box.widened(lower, true).has_value());
  AffineRegion without(box);
  without.cut({{1, 0, 0, 32, 0, 0}, 126}); // not the last one
  CHECK(without.widened(lower, false).has_value());
  const AffineValue high{.base = 0x7FFFFFFF, .steps = {1, 0, 0, 0, 0, 0}};
  CHECK_FALSE(box.widened(high, true).has_value());
  CHECK(box.widened(high, false).has_value());
}

} // namespace pto::isa
