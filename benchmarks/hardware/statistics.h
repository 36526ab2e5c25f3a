// SPDX-License-Identifier: Apache-2.0
// How far predictions are off, and whether they put variants in the right order.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace pto::bench {

/// One case, measured and predicted, in the same unit.
struct Outcome {
  std::string id;
  std::string family;
  double measured = 0;
  double predicted = 0;
  [[nodiscard]] double error() const { return predicted / measured - 1; }
};

struct Summary {
  size_t count = 0;
  double mape = 0; // mean of |error|, in per cent
  double median = 0;
  double worst = 0;
  std::string worst_id;
  double tau = 0; // Kendall's tau-b of measured and predicted
  bool has_tau = false;
};
[[nodiscard]] Summary summarise(const std::vector<Outcome>& outcomes);

/// Two times this close are taken as equal. Published measurements of one kernel under two names
/// (with and without the vector function's wrapper) differ by 1.0 % in the root mean square.
inline constexpr double kTieWidth = 0.01;

/// Kendall's tau-b: pairs in the same order less those in the opposite one, over the geometric mean
/// of the pairs that are no tie in the measurement and those that are none in the prediction. So
/// predicting a tie where there is none costs, and so does seeing a difference where there is none.
/// `has_pairs` is false, and the result 0, where one side has nothing but ties.
[[nodiscard]] double kendall_tau(const std::vector<Outcome>& outcomes, bool& has_pairs);

} // namespace pto::bench
