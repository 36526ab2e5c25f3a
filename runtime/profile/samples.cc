// SPDX-License-Identifier: Apache-2.0
// Robust statistics of cycle counts (ideas in the header).
#include "runtime/profile/samples.h"

#include "isa/error.h"
#include "simulator/report/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pto::rt {
namespace {

constexpr double kMadToDeviation = 1.4826; // of a normal distribution
constexpr double kRejectDeviations = 6;
constexpr double kRejectAtLeast = 0.02; // of the median: less is never an outlier
// With few samples the deviation is little known: only what is far off is rejected.
constexpr size_t kFewSamples = 16;
constexpr double kRejectAtLeastOfFew = 0.25;

double deviation_of(const std::vector<double>& values, double centre) {
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) {
    distances.push_back(std::abs(value - centre));
  }
  return kMadToDeviation * median_of(std::move(distances));
}

/// Weighted least squares over the points whose flag is set; false for fewer than two different n.
bool solve(std::span<const LinePoint> points,
           const std::vector<double>& weights,
           const std::vector<bool>& uses,
           LineFit& fit) {
  double sum = 0;
  double sum_n = 0;
  double sum_y = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    if (uses[i]) {
      sum += weights[i];
      sum_n += weights[i] * points[i].n;
      sum_y += weights[i] * points[i].value;
    }
  }
  if (!(sum > 0)) {
    return false;
  }
  const double mean_n = sum_n / sum;
  const double mean_y = sum_y / sum;
  double spread_n = 0;
  double product = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    if (uses[i]) {
      spread_n += weights[i] * (points[i].n - mean_n) * (points[i].n - mean_n);
      product += weights[i] * (points[i].n - mean_n) * (points[i].value - mean_y);
    }
  }
  if (!(spread_n > 0)) {
    return false;
  }
  fit.step = product / spread_n;
  fit.start = mean_y - fit.step * mean_n;
  fit.step_error = std::sqrt(1 / spread_n);
  fit.start_error = std::sqrt(1 / sum + mean_n * mean_n / spread_n);
  return true;
}

double held_out(std::span<const LinePoint> points,
                const std::vector<double>& weights,
                const std::vector<bool>& uses) {
  double total = 0;
  size_t count = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    if (!uses[i] || points[i].value == 0) {
      continue;
    }
    std::vector<bool> others = uses;
    others[i] = false;
    LineFit fit;
    if (solve(points, weights, others, fit)) {
      total += std::abs(fit.at(points[i].n) - points[i].value) / std::abs(points[i].value);
      ++count;
    }
  }
  return count == 0 ? 0 : total / static_cast<double>(count);
}

} // namespace

double median_of(std::vector<double> values) {
  if (values.empty()) {
    return 0;
  }
  const size_t middle = values.size() / 2;
  std::nth_element(
      values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle), values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) {
    return upper;
  }
  return (upper +
          *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle))) /
         2;
}

SampleSummary summarise(std::span<const double> samples) {
  SampleSummary summary;
  if (samples.empty()) {
    return summary;
  }
  const std::vector<double> values(samples.begin(), samples.end());
  summary.median = median_of(values);
  const double least = values.size() < kFewSamples ? kRejectAtLeastOfFew : kRejectAtLeast;
  const double limit = std::max(kRejectDeviations * deviation_of(values, summary.median),
                                least * std::abs(summary.median));
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    // Two samples that disagree cannot say which of them is wrong.
    if (values.size() > 2 && std::abs(values[i] - summary.median) > limit) {
      summary.rejected.push_back(i);
    } else {
      sum += values[i];
      ++summary.used;
    }
  }
  summary.centre = sum / static_cast<double>(summary.used);
  double squares = 0;
  size_t next = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (next < summary.rejected.size() && summary.rejected[next] == i) {
      ++next;
    } else {
      squares += (values[i] - summary.centre) * (values[i] - summary.centre);
    }
  }
  if (summary.used > 1) {
    summary.spread = std::sqrt(squares / static_cast<double>(summary.used - 1));
    summary.error = summary.spread / std::sqrt(static_cast<double>(summary.used));
  }
  return summary;
}

std::string LineFit::formula(const std::string& variable) const {
  return fmt::format("{} {} {}*{}, {} from {} to {}",
                     short_number(start),
                     step < 0 ? "-" : "+",
                     short_number(std::abs(step), 4),
                     variable,
                     variable,
                     short_number(n_min),
                     short_number(n_max));
}

std::optional<LineFit> fit_line(std::span<const LinePoint> points, std::string& why) {
  std::vector<double> slopes;
  for (size_t i = 0; i < points.size(); ++i) {
    for (size_t j = i + 1; j < points.size(); ++j) {
      if (points[i].n != points[j].n) {
        slopes.push_back((points[j].value - points[i].value) / (points[j].n - points[i].n));
      }
    }
  }
  if (slopes.empty()) {
    why = fmt::format("{} with one n give no line; measure at two sizes at least",
                      sim::counted(points.size(), "point"));
    return std::nullopt;
  }
  std::vector<double> weights;
  bool has_errors = true;
  for (const LinePoint& point : points) {
    has_errors = has_errors && point.error > 0;
  }
  for (const LinePoint& point : points) {
    weights.push_back(has_errors ? 1 / (point.error * point.error) : 1);
  }
  std::vector<bool> uses(points.size(), true);
  LineFit fit;
  if (points.size() > 3) { // fewer cannot tell which one is off
    const double slope = median_of(slopes);
    std::vector<double> starts;
    for (const LinePoint& point : points) {
      starts.push_back(point.value - slope * point.n);
    }
    const double start = median_of(starts);
    const double deviation = deviation_of(starts, start);
    for (size_t i = 0; i < points.size(); ++i) {
      const double limit = std::max({kRejectDeviations * deviation,
                                     kRejectDeviations * points[i].error,
                                     kRejectAtLeast * std::abs(points[i].value)});
      if (std::abs(starts[i] - start) > limit) {
        uses[i] = false;
      }
    }
    LineFit trial;
    if (!solve(points, weights, uses, trial)) {
      uses.assign(points.size(), true); // no line that most are on: take all, the error shows it
    }
  }
  PTO_CHECK(solve(points, weights, uses, fit));
  fit.held_out_error = held_out(points, weights, uses);
  bool is_first = true;
  double squares = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    if (!uses[i]) {
      fit.rejected.push_back(i);
      continue;
    }
    fit.n_min = is_first ? points[i].n : std::min(fit.n_min, points[i].n);
    fit.n_max = is_first ? points[i].n : std::max(fit.n_max, points[i].n);
    is_first = false;
    ++fit.used;
    squares += (fit.at(points[i].n) - points[i].value) * (fit.at(points[i].n) - points[i].value);
  }
  if (!has_errors) { // the residuals tell the error of a point
    const double deviation =
        fit.used > 2 ? std::sqrt(squares / static_cast<double>(fit.used - 2)) : 0;
    fit.step_error *= deviation;
    fit.start_error *= deviation;
  }
  return fit;
}

PredictionError prediction_error(std::span<const double> predicted, std::span<const double> truth) {
  PredictionError error;
  const size_t count = std::min(predicted.size(), truth.size());
  double sum = 0;
  for (size_t i = 0; i < count; ++i) {
    if (truth[i] == 0) {
      continue;
    }
    const double relative = std::abs(predicted[i] - truth[i]) / std::abs(truth[i]);
    sum += relative;
    ++error.count;
    if (relative > error.worst) {
      error.worst = relative;
      error.worst_index = i;
    }
  }
  error.mean = error.count == 0 ? 0 : sum / static_cast<double>(error.count);
  double agree = 0;
  double pairs = 0;
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = i + 1; j < count; ++j) {
      const double product = (predicted[i] - predicted[j]) * (truth[i] - truth[j]);
      if (truth[i] != truth[j]) {
        agree += product > 0 ? 1 : product < 0 ? -1 : 0;
        ++pairs;
      }
    }
  }
  error.kendall_tau = pairs == 0 ? 0 : agree / pairs;
  return error;
}

std::string short_number(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') {
      text.pop_back();
    }
  }
  return text == "-0" ? "0" : text;
}

} // namespace pto::rt
