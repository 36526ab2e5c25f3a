// SPDX-License-Identifier: Apache-2.0
// Statistics of measurements: a centre with its error, runs that do not belong, straight lines with
// held-out error, and how well one list of figures predicts another.
//
// Measured cycles have a sharp body and now and then a run that was interrupted or found a slow
// clock. Such runs are rejected by their distance from the median in units of the median absolute
// deviation; among what is left the mean is the best estimate, and its error is known.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pto::rt {

struct SampleSummary {
  double centre = 0; // mean of the accepted samples
  double spread = 0; // standard deviation of the accepted samples
  double error = 0;  // standard error of the centre
  double median = 0; // of all
  size_t used = 0;
  std::vector<size_t> rejected; // indices, ascending
};

/// Of any samples; all zero for none. Samples must be finite.
[[nodiscard]] SampleSummary summarise(std::span<const double> samples);

/// Median; 0 of nothing.
[[nodiscard]] double median_of(std::vector<double> values);

struct LinePoint {
  double n = 0;
  double value = 0;
  double error = 0; // standard error; 0: unknown, all such points count alike
};

/// value = start + step * n.
struct LineFit {
  double start = 0;
  double step = 0;
  double start_error = 0;
  double step_error = 0;
  double n_min = 0; // of the points used
  double n_max = 0;
  double held_out_error = 0; // mean relative error of each point predicted from the others
  size_t used = 0;
  std::vector<size_t> rejected; // points that are not on the line

  [[nodiscard]] double at(double n) const { return start + step * n; }
  /// False: at(n) is an extrapolation, and whoever uses it must say so.
  [[nodiscard]] bool is_inside(double n) const { return n >= n_min && n <= n_max; }
  /// "25 + 8*n, n from 1 to 64"
  [[nodiscard]] std::string formula(const std::string& variable = "n") const;
};

/// Robust: the median of the slopes between points first, then least squares over the points near
/// that line. Nothing, with a sentence in `why`, for fewer than two different n.
[[nodiscard]] std::optional<LineFit> fit_line(std::span<const LinePoint> points, std::string& why);

/// How figures compare with what they predict; pairs whose truth is 0 are left out.
struct PredictionError {
  size_t count = 0;
  double mean = 0;  // mean absolute relative error
  double worst = 0; // largest absolute relative error
  size_t worst_index = 0;
  double kendall_tau = 0; // 1: the same ranking, -1: the reverse; 0 for fewer than two
};
[[nodiscard]] PredictionError prediction_error(std::span<const double> predicted,
                                               std::span<const double> truth);

/// A number as people write it: 3, 3.2, 0.05; at most `decimals` places, no trailing zeros.
[[nodiscard]] std::string short_number(double value, int decimals = 2);

} // namespace pto::rt
