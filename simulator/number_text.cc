// SPDX-License-Identifier: Apache-2.0
// Text to number: integers by hand (separators, limits), floats by from_chars (exact, no locale).
#include "simulator/number_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace pto::sim {
namespace {

enum class Scan : uint8_t { kGood, kMalformed, kTooLarge };

struct ScannedInteger {
  Scan scan = Scan::kMalformed;
  bool is_negative = false;
  uint64_t magnitude = 0;
};

unsigned digit_value(char c) {
  if (c >= '0' && c <= '9') {
    return static_cast<unsigned>(c - '0');
  }
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? static_cast<unsigned>(lower - 'a') + 10 : 99;
}

bool has_prefix(std::string_view text, std::string_view lower_case_prefix) {
  return text.size() > lower_case_prefix.size() &&
         std::equal(lower_case_prefix.begin(),
                    lower_case_prefix.end(),
                    text.begin(),
                    [](char want, char c) { return want == c || want == (c | 0x20); });
}

/// Removes a sign; true if it was a minus.
bool take_sign(std::string_view& text) {
  if (text.empty() || (text.front() != '-' && text.front() != '+')) {
    return false;
  }
  const bool is_negative = text.front() == '-';
  text.remove_prefix(1);
  return is_negative;
}

ScannedInteger scan_integer(std::string_view text) {
  ScannedInteger result;
  result.is_negative = take_sign(text);
  unsigned base = 10;
  if (has_prefix(text, "0x")) {
    base = 16;
  } else if (has_prefix(text, "0b")) {
    base = 2;
  }
  if (base != 10) {
    text.remove_prefix(2);
  }
  if (text.empty() || text.front() == '_' || text.back() == '_') {
    return result;
  }
  bool is_too_large = false;
  for (const char c : text) {
    if (c == '_') {
      continue;
    }
    const unsigned digit = digit_value(c);
    if (digit >= base) {
      return result;
    }
    is_too_large = is_too_large || result.magnitude > (UINT64_MAX - digit) / base;
    result.magnitude = result.magnitude * base + digit;
  }
  result.scan = is_too_large ? Scan::kTooLarge : Scan::kGood;
  return result;
}

std::optional<uint64_t> fit_integer(std::string_view text, ElementType type, std::string& error) {
  const ScannedInteger integer = scan_integer(text);
  if (integer.scan == Scan::kMalformed) {
    error = fmt::format("'{}' is not an integer; expected one for {}, such as 42, -1 or 0x2a",
                        text,
                        to_string(type));
    return std::nullopt;
  }
  const unsigned width = 8U * type.size_bytes;
  const uint64_t all_ones = UINT64_MAX >> (64 - width);
  const uint64_t smallest = uint64_t{1} << (width - 1); // as a magnitude
  const bool takes_sign = type.element_class != ElementClass::kUnsigned;
  const uint64_t low = takes_sign ? smallest : 0;
  const uint64_t high = type.is_signed() ? smallest - 1 : all_ones;
  const bool is_good =
      integer.scan == Scan::kGood && integer.magnitude <= (integer.is_negative ? low : high);
  if (!is_good) {
    error = fmt::format("{} does not fit {}; expected {}{} to {}",
                        text,
                        to_string(type),
                        low == 0 ? "" : "-",
                        low,
                        high);
    return std::nullopt;
  }
  const uint64_t bits = integer.is_negative ? 0 - integer.magnitude : integer.magnitude;
  return type.is_signed() ? bits : bits & all_ones;
}

struct ScannedReal {
  Scan scan = Scan::kMalformed;
  double value = 0;
};

/// A finite text whose value from_chars could not represent: too large, or so small that it is 0.
template <typename Float> ScannedReal out_of_range(std::string_view text, bool is_hex) {
  const auto mark = is_hex ? text.find_first_of("pP") : text.find_first_of("eE");
  const bool has_minus =
      mark != std::string_view::npos && mark + 1 < text.size() && text[mark + 1] == '-';
  double wide = 0;
  const auto [end, failure] =
      std::from_chars(text.data(),
                      text.data() + text.size(),
                      wide,
                      is_hex ? std::chars_format::hex : std::chars_format::general);
  static_cast<void>(end);
  const bool is_small = failure == std::errc{} ? std::abs(wide) < 1 : has_minus;
  return is_small ? ScannedReal{Scan::kGood, 0.0} : ScannedReal{Scan::kTooLarge, 0.0};
}

/// Reads text (without sign) as Float, rounded once.
template <typename Float> ScannedReal scan_real(std::string_view text) {
  const bool is_hex = has_prefix(text, "0x");
  if (is_hex) {
    text.remove_prefix(2);
  }
  const std::string_view allowed =
      is_hex ? "0123456789abcdefABCDEFpP+-." : "0123456789eE+-.infatyINFATY";
  if (text.empty() || text.front() == '-' ||
      text.find_first_not_of(allowed) != std::string_view::npos) {
    return {};
  }
  Float value = 0;
  const auto [end, failure] =
      std::from_chars(text.data(),
                      text.data() + text.size(),
                      value,
                      is_hex ? std::chars_format::hex : std::chars_format::general);
  if (failure == std::errc::invalid_argument || end != text.data() + text.size()) {
    return {};
  }
  if (failure == std::errc::result_out_of_range) {
    return out_of_range<Float>(text, is_hex);
  }
  const bool says_infinity = (text.front() | 0x20) == 'i';
  if (std::isinf(value) && !says_infinity) {
    return {Scan::kTooLarge, 0};
  }
  return {Scan::kGood, static_cast<double>(value)};
}

/// 0f3f800000 and 0h3c00.
std::optional<uint64_t> scan_float_bits(std::string_view text, ElementType type) {
  const size_t digits = 2U * type.size_bytes;
  const std::string_view prefix = type.size_bytes == 2 ? "0h" : "0f";
  if (type.size_bytes == 8 || !has_prefix(text, prefix) || text.size() != 2 + digits) {
    return std::nullopt;
  }
  uint64_t bits = 0;
  for (const char c : text.substr(2)) {
    if (digit_value(c) >= 16) {
      return std::nullopt;
    }
    bits = bits * 16 + digit_value(c);
  }
  return bits;
}

std::optional<uint64_t> fit_real(std::string_view text, ElementType type, std::string& error) {
  if (const std::optional<uint64_t> bits = scan_float_bits(text, type)) {
    return bits;
  }
  std::string digits;
  for (const char c : text) {
    if (c != '_') {
      digits += c;
    }
  }
  std::string_view rest = digits;
  const bool is_negative = take_sign(rest);
  // f16 and bf16 go by way of double: a decimal within 2^-53 of a midpoint may round to its other
  // side, anything shorter than 16 digits does not.
  ScannedReal real = type.size_bytes == 4 ? scan_real<float>(rest) : scan_real<double>(rest);
  std::byte storage[8] = {};
  if (real.scan == Scan::kGood) {
    const double value = is_negative ? -real.value : real.value;
    store_real(type, value, storage);
    if (std::isfinite(value) && std::isinf(load_real(type, storage))) {
      real.scan = Scan::kTooLarge;
    }
  }
  if (real.scan == Scan::kMalformed) {
    error = fmt::format("'{}' is not a number; expected one for {}, such as 1.5, -2, 1e-3, inf "
                        "or nan",
                        text,
                        to_string(type));
    return std::nullopt;
  }
  if (real.scan == Scan::kTooLarge) {
    error = fmt::format(
        "{} is too large for {}; write inf if infinity is meant", text, to_string(type));
    return std::nullopt;
  }
  return load_integer(ElementType{ElementClass::kUnsigned, 8}, storage);
}

} // namespace

std::optional<uint64_t> parse_number(std::string_view text, ElementType type, std::string& error) {
  if (type.is_float()) {
    return fit_real(text, type, error);
  }
  if (type.element_class == ElementClass::kBool) {
    if (text == "true" || text == "1") {
      return 1;
    }
    if (text == "false" || text == "0") {
      return 0;
    }
    error = fmt::format("'{}' is no bool; expected true or false", text);
    return std::nullopt;
  }
  return fit_integer(text, type, error);
}

std::optional<uint64_t> parse_count(std::string_view text, std::string& error) {
  return fit_integer(text, ElementType{ElementClass::kUnsigned, 8}, error);
}

} // namespace pto::sim
