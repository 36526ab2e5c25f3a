// SPDX-License-Identifier: Apache-2.0
// Errors and Kendall's tau-b of the hardware benchmarks, against values worked out by hand.
#include "benchmarks/hardware/statistics.h"

#include <doctest/doctest.h>

#include <cmath>

using pto::bench::kendall_tau;
using pto::bench::Outcome;
using pto::bench::summarise;

namespace {

std::vector<Outcome> outcomes(const std::vector<std::pair<double, double>>& pairs) {
  std::vector<Outcome> list;
  for (const auto& [measured, predicted] : pairs) {
    list.push_back({"case" + std::to_string(list.size()), "family", measured, predicted});
  }
  return list;
}

double tau(const std::vector<std::pair<double, double>>& pairs) {
  bool has_pairs = false;
  const double result = kendall_tau(outcomes(pairs), has_pairs);
  CHECK(has_pairs);
  return result;
}

} // namespace

TEST_CASE("tau-b is 1 for the same order and -1 for the reverse") {
  CHECK(tau({{1, 10}, {2, 20}, {3, 30}}) == 1);
  CHECK(tau({{1, 30}, {2, 20}, {3, 10}}) == -1);
}

TEST_CASE("one swapped pair of three costs two thirds") {
  CHECK(tau({{1, 20}, {2, 10}, {3, 30}}) == doctest::Approx(1.0 / 3));
}

TEST_CASE("a tie on one side alone costs, on both sides it does not") {
  // 3 pairs measured, 2 predicted, 2 agree: 2 / sqrt(3 * 2).
  CHECK(tau({{1, 10}, {2, 10}, {3, 30}}) == doctest::Approx(2 / std::sqrt(6.0)));
  CHECK(tau({{1, 10}, {1, 20}, {3, 30}}) == doctest::Approx(2 / std::sqrt(6.0)));
  CHECK(tau({{1, 10}, {1, 10}, {3, 30}}) == 1);
}

TEST_CASE("times within one per cent are ties, on either side") {
  CHECK(tau({{100, 10}, {100.9, 10.05}, {300, 30}}) == 1);
  CHECK(tau({{100, 10}, {102, 10.05}, {300, 30}}) < 1);
}

TEST_CASE("nothing but ties has no tau") {
  bool has_pairs = true;
  CHECK(kendall_tau(outcomes({{1, 5}, {1, 6}}), has_pairs) == 0);
  CHECK_FALSE(has_pairs);
  CHECK_FALSE(summarise(outcomes({{1, 5}})).has_tau);
}

TEST_CASE("errors: mean, median of an even count, and the worst by name") {
  const pto::bench::Summary summary =
      summarise(outcomes({{100, 110}, {100, 98}, {100, 100}, {100, 70}}));
  CHECK(summary.count == 4);
  CHECK(summary.mape == doctest::Approx((10 + 2 + 0 + 30) / 4.0));
  CHECK(summary.median == doctest::Approx(6));
  CHECK(summary.worst == doctest::Approx(30));
  CHECK(summary.worst_id == "case3");
}
