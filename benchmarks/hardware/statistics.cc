// SPDX-License-Identifier: Apache-2.0
// Errors and rankings of the hardware benchmarks.
#include "benchmarks/hardware/statistics.h"

#include <algorithm>
#include <cmath>

namespace pto::bench {

namespace {

/// -1, 0 or 1: how `a` stands to `b`, which may be a tie.
int order(double a, double b) {
  const bool is_tie = std::fabs(a - b) <= kTieWidth * std::min(std::fabs(a), std::fabs(b));
  return is_tie ? 0 : a < b ? -1 : 1;
}

} // namespace

double kendall_tau(const std::vector<Outcome>& outcomes, bool& has_pairs) {
  double agree = 0;
  double measured_pairs = 0; // that are no tie
  double predicted_pairs = 0;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    for (size_t j = i + 1; j < outcomes.size(); ++j) {
      const int measured = order(outcomes[i].measured, outcomes[j].measured);
      const int predicted = order(outcomes[i].predicted, outcomes[j].predicted);
      measured_pairs += measured != 0 ? 1 : 0;
      predicted_pairs += predicted != 0 ? 1 : 0;
      agree += measured * predicted;
    }
  }
  has_pairs = measured_pairs != 0 && predicted_pairs != 0;
  return has_pairs ? agree / std::sqrt(measured_pairs * predicted_pairs) : 0;
}

Summary summarise(const std::vector<Outcome>& outcomes) {
  Summary summary;
  summary.count = outcomes.size();
  std::vector<double> errors;
  for (const Outcome& outcome : outcomes) {
    const double error = 100 * std::fabs(outcome.error());
    errors.push_back(error);
    summary.mape += error / static_cast<double>(outcomes.size());
    if (error >= summary.worst) {
      summary.worst = error;
      summary.worst_id = outcome.id;
    }
  }
  if (!errors.empty()) {
    std::sort(errors.begin(), errors.end());
    const size_t middle = errors.size() / 2;
    summary.median =
        errors.size() % 2 != 0 ? errors[middle] : (errors[middle - 1] + errors[middle]) / 2;
  }
  summary.tau = kendall_tau(outcomes, summary.has_tau);
  return summary;
}

} // namespace pto::bench
