// SPDX-License-Identifier: Apache-2.0
// The allclose rule, statistics of errors, and the first-difference report.
#include "simulator/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace pto::sim {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Sign-and-magnitude bits of a float as an integer that counts representable values.
uint64_t ordered_bits(ElementType type, const std::byte* at) {
  const ElementType raw{ElementClass::kUnsigned, type.size_bytes};
  const uint64_t bits = load_integer(raw, at);
  const uint64_t sign = uint64_t{1} << (8U * type.size_bytes - 1);
  // The middle of the range stands for both zeros.
  constexpr uint64_t kZero = uint64_t{1} << 63;
  return (bits & sign) != 0 ? kZero - (bits & ~sign) : kZero + bits;
}

struct Pair {
  const std::byte* got;
  const std::byte* expected;
};

/// The arrays with their types settled.
class Comparer {
public:
  Comparer(const HostArray& got,
           ElementType got_type,
           const HostArray& expected,
           const Tolerance& tolerance)
      : got_(got), expected_(expected), got_type_(got_type), expected_type_(*expected.element),
        tolerance_(tolerance) {}

  Comparison run() {
    Comparison result;
    result.count = expected_.data.size() / expected_type_.size_bytes;
    result.shape = expected_.shape;
    result.is_float = expected_type_.is_float();
    for (uint64_t i = 0; i < result.count; ++i) {
      const Pair pair = at(i);
      const bool is_close = result.is_float ? check_real(pair, result) : check_integer(pair);
      if (is_close) {
        continue;
      }
      ++result.differing;
      ElementDifference difference = measure(i, pair);
      if (!result.worst || is_worse(difference, *result.worst)) {
        result.worst = difference;
      }
      if (!result.first) {
        result.first = std::move(difference);
      }
    }
    return result;
  }

private:
  [[nodiscard]] Pair at(uint64_t index) const {
    return {got_.data.data() + index * got_type_.size_bytes,
            expected_.data.data() + index * expected_type_.size_bytes};
  }

  bool check_real(const Pair& pair, Comparison& result) const {
    const double got = load_real(got_type_, pair.got);
    const double expected = load_real(expected_type_, pair.expected);
    if (std::isnan(got) || std::isnan(expected)) {
      return std::isnan(got) && std::isnan(expected) && tolerance_.nan_equals_nan;
    }
    if (std::isinf(got) || std::isinf(expected)) {
      return got == expected;
    }
    const double error = std::abs(got - expected);
    result.max_absolute = std::max(result.max_absolute, error);
    if (error != 0) {
      result.max_relative = std::max(result.max_relative, error / std::abs(expected));
    }
    return error <= tolerance_.atol + tolerance_.rtol * std::abs(expected);
  }

  [[nodiscard]] bool check_integer(const Pair& pair) const {
    const uint64_t got = load_integer(got_type_, pair.got);
    const uint64_t expected = load_integer(expected_type_, pair.expected);
    if (got != expected) {
      return false;
    }
    // Equal bits are different numbers where one is negative and the other unsigned.
    return got_type_.size_bytes == expected_type_.size_bytes ||
           got_type_.is_signed() == expected_type_.is_signed() || static_cast<int64_t>(got) >= 0;
  }

  [[nodiscard]] ElementDifference measure(uint64_t index, const Pair& pair) const {
    ElementDifference result;
    result.index = index;
    result.got = format_element(got_type_, pair.got);
    result.expected = format_element(expected_type_, pair.expected);
    const double got = load_as_double(got_type_, pair.got);
    const double expected = load_as_double(expected_type_, pair.expected);
    const bool has_nan = std::isnan(got) || std::isnan(expected);
    result.absolute = has_nan ? kNan : std::abs(got - expected);
    result.relative = has_nan ? kNan : result.absolute / std::abs(expected);
    if (!has_nan && expected_type_.is_float() && got_type_ == expected_type_) {
      const uint64_t a = ordered_bits(got_type_, pair.got);
      const uint64_t b = ordered_bits(got_type_, pair.expected);
      result.ulps = a > b ? a - b : b - a;
    }
    return result;
  }

  static bool is_worse(const ElementDifference& a, const ElementDifference& b) {
    if (std::isnan(b.absolute)) {
      return false;
    }
    return std::isnan(a.absolute) || a.absolute > b.absolute;
  }

  const HostArray& got_;
  const HostArray& expected_;
  ElementType got_type_;
  ElementType expected_type_;
  const Tolerance& tolerance_;
};

/// The type to read `got` with, beside `expected`.
std::optional<ElementType>
settle_type(const HostArray& got, ElementType expected, std::string& error) {
  if (!got.element) {
    return expected;
  }
  const ElementType type = *got.element;
  if (type.element_class == ElementClass::kBits && type.size_bytes == expected.size_bytes) {
    return expected; // bits take the meaning of what they are compared with
  }
  if (type.is_float() != expected.is_float()) {
    error = fmt::format("its elements are {}, the expected ones {}; expected the same kind of "
                        "numbers",
                        to_string(type),
                        to_string(expected));
    return std::nullopt;
  }
  return type;
}

std::string error_text(const ElementDifference& difference) {
  if (std::isnan(difference.absolute)) {
    return "NaN against a number";
  }
  std::string text = fmt::format("error {:.4g}", difference.absolute);
  if (std::isfinite(difference.relative)) {
    text += fmt::format(", relative {:.3g}", difference.relative);
  }
  if (difference.ulps) {
    text += fmt::format(", {} ulp", *difference.ulps);
  }
  return text;
}

} // namespace

std::optional<Comparison> compare_arrays(const HostArray& got,
                                         const HostArray& expected,
                                         const Tolerance& tolerance,
                                         std::string& error) {
  HostArray wanted = expected;
  if (!wanted.element) {
    if (!got.element) {
      wanted.element = ElementType{ElementClass::kUnsigned, 1};
    } else if (wanted.data.size() % got.element->size_bytes == 0) {
      wanted.element = got.element;
      const bool is_same_size = wanted.data.size() == got.data.size();
      wanted.shape = is_same_size
                         ? got.shape
                         : std::vector<uint64_t>{wanted.data.size() / got.element->size_bytes};
    } else {
      error = fmt::format("the expected data have {} bytes, no whole number of {} elements",
                          wanted.data.size(),
                          to_string(*got.element));
      return std::nullopt;
    }
  }
  if (got.element && is_compatible(*wanted.element, *got.element) &&
      got.element->element_class == ElementClass::kBrainFloat) {
    wanted.element = got.element; // numpy stores bf16 as u2
  }
  const std::optional<ElementType> type = settle_type(got, *wanted.element, error);
  if (!type) {
    return std::nullopt;
  }
  const uint64_t wanted_count = wanted.data.size() / wanted.element->size_bytes;
  if (got.data.size() % type->size_bytes != 0 ||
      got.data.size() / type->size_bytes != wanted_count) {
    error = fmt::format("it has {} bytes, {} elements of {}; the expected array {} has {} elements "
                        "of {}",
                        got.data.size(),
                        got.data.size() / type->size_bytes,
                        to_string(*type),
                        shape_to_string(wanted.shape),
                        wanted_count,
                        to_string(*wanted.element));
    return std::nullopt;
  }
  return Comparer(got, *type, wanted, tolerance).run();
}

std::string index_to_string(uint64_t linear, const std::vector<uint64_t>& shape) {
  std::vector<uint64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = shape[d] == 0 ? 0 : linear % shape[d];
    linear = shape[d] == 0 ? 0 : linear / shape[d];
  }
  return fmt::format("[{}]", fmt::join(index, ","));
}

std::string to_string(const Tolerance& tolerance) {
  if (tolerance.rtol == 0 && tolerance.atol == 0) {
    return "exactly";
  }
  return fmt::format("within rtol {:g}, atol {:g}", tolerance.rtol, tolerance.atol);
}

std::string describe_agreement(std::string_view array_name,
                               std::string_view expected_name,
                               const Comparison& comparison,
                               const Tolerance& tolerance) {
  std::string text =
      fmt::format("{}: all {} elements agree with {}", array_name, comparison.count, expected_name);
  if (comparison.is_float) {
    text += fmt::format(" {}", to_string(tolerance));
    if (comparison.max_absolute != 0) {
      text += fmt::format(" (largest error {:.3g}, relative {:.3g})",
                          comparison.max_absolute,
                          comparison.max_relative);
    }
  }
  return text;
}

std::string describe_difference(std::string_view array_name,
                                const Comparison& comparison,
                                const HostArray& got,
                                const HostArray& expected,
                                const Tolerance& tolerance) {
  const ElementDifference& first = *comparison.first;
  const ElementDifference& worst = *comparison.worst;
  const double percent =
      100.0 * static_cast<double>(comparison.differing) / static_cast<double>(comparison.count);
  const bool is_exact = tolerance.rtol == 0 && tolerance.atol == 0;
  const std::string rule =
      comparison.is_float
          ? fmt::format(" (wanted: {})", is_exact ? "exactly equal" : to_string(tolerance))
          : "";
  std::string text = fmt::format("{}: {} of {} elements differ, {:.3g} %{}\n",
                                 array_name,
                                 comparison.differing,
                                 comparison.count,
                                 percent,
                                 rule);
  const auto line = [&](std::string_view label, const ElementDifference& difference) {
    text += fmt::format("  {} {}{}: got {}, expected {} ({})\n",
                        label,
                        array_name,
                        index_to_string(difference.index, comparison.shape),
                        difference.got,
                        difference.expected,
                        error_text(difference));
  };
  line("first ", first);
  if (worst.index != first.index) {
    line("worst ", worst);
  }
  // The neighbourhood shows a shift, a stale block or a lone wrong element at a glance.
  constexpr uint64_t kAround = 3;
  const uint64_t begin = first.index < kAround ? 0 : first.index - kAround;
  const uint64_t end = std::min(comparison.count, first.index + kAround + 1);
  const uint64_t got_size = got.data.size() / comparison.count;
  const uint64_t expected_size = expected.data.size() / comparison.count;
  const ElementType raw{ElementClass::kBits, static_cast<uint8_t>(expected_size)};
  ElementType expected_type = expected.element.value_or(got.element.value_or(raw));
  ElementType got_type = got.element.value_or(expected_type);
  if (got_type.element_class == ElementClass::kBits && got_size == expected_size) {
    got_type = expected_type;
  } else if (got_type.element_class == ElementClass::kBrainFloat) {
    expected_type = got_type;
  }
  std::vector<std::string> rows[3] = {{"index"}, {"got"}, {"expected"}};
  for (uint64_t i = begin; i < end; ++i) {
    rows[0].push_back(index_to_string(i, comparison.shape));
    rows[1].push_back(format_element(got_type, got.data.data() + i * got_size));
    rows[2].push_back(format_element(expected_type, expected.data.data() + i * expected_size));
  }
  for (const std::vector<std::string>& row : rows) {
    text += "  ";
    for (size_t column = 0; column < row.size(); ++column) {
      size_t width = 0;
      for (const std::vector<std::string>& other : rows) {
        width = std::max(width, other[column].size());
      }
      const bool is_label = column == 0;
      text += is_label ? fmt::format("{:<{}}", row[column], width)
                       : fmt::format("  {:>{}}", row[column], width);
    }
    text += '\n';
  }
  return text;
}

} // namespace pto::sim
