// SPDX-License-Identifier: Apache-2.0
// CVT: conversion between every pair of value types, rounding once in the mode given.
#pragma once

#include "isa/float16.h"
#include "isa/float32.h"

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

// Types are int8_t ... uint64_t, F16, BF16 and float.
//
// - integer to integer: truncated, or extended by the signedness of the source;
// - float to integer: rounded in the mode, then saturated; NaN becomes 0;
// - integer to float: rounded once in the mode; beyond the range as IEEE 754 overflows (.rn to
//   infinity, .rz to the largest finite value, .rm and .rp to one or the other by sign);
// - float to another float: the same; widening is exact; a NaN becomes the canonical NaN;
// - float to the same type with a mode: the integral value; without one: the value itself.
namespace pto::isa {

template <class T>
inline constexpr bool kIsFloat =
    std::is_same_v<T, F16> || std::is_same_v<T, BF16> || std::is_same_v<T, float>;

/// What a CVT without a rounding suffix does: .rz to integers, .rn to floats.
template <class To>
inline constexpr Rounding kDefaultRounding =
    kIsFloat<To> ? Rounding::kNearestEven : Rounding::kTowardZero;

namespace detail {

template <class To, Rounding mode> constexpr To float_to_integer(float x) {
  using Limits = std::numeric_limits<To>;
  const float integral = round_integral<mode>(x == x ? x : 0.0F);
  if constexpr (sizeof(To) <= 2) {
    constexpr auto kLow = static_cast<float>(Limits::min());
    constexpr auto kHigh = static_cast<float>(Limits::max());
    const float above = integral < kLow ? kLow : integral;
    const float inside = above > kHigh ? kHigh : above;
    return static_cast<To>(static_cast<std::int32_t>(inside));
  } else if constexpr (sizeof(To) == 4) {
    // Both limits are exact in double only. Unsigned values are shifted into the range of s32,
    // which is what SSE2 converts.
    constexpr auto kLow = static_cast<double>(Limits::min());
    constexpr auto kHigh = static_cast<double>(Limits::max());
    constexpr double kShift = std::is_signed_v<To> ? 0.0 : 0x1p31;
    constexpr std::uint32_t kFlip = std::is_signed_v<To> ? 0U : 0x80000000U;
    const auto wide = static_cast<double>(integral);
    const double above = wide < kLow ? kLow : wide;
    const double inside = above > kHigh ? kHigh : above;
    const auto shifted = static_cast<std::int32_t>(inside - kShift);
    return static_cast<To>(static_cast<std::uint32_t>(shifted) ^ kFlip);
  } else {
    constexpr float kLow = std::is_signed_v<To> ? -0x1p63F : 0.0F;
    constexpr float kBeyond = std::is_signed_v<To> ? 0x1p63F : 0x1p64F;
    const float above = integral < kLow ? kLow : integral;
    const bool fits = above < kBeyond;
    const auto value = static_cast<To>(fits ? above : 0.0F);
    return fits ? value : Limits::max();
  }
}

/// The integer rounded to odd in double.
template <class From> constexpr double integer_to_odd_double(From value) {
  if constexpr (sizeof(From) < 8) {
    return static_cast<double>(value);
  } else {
    const bool is_negative = value < From{0};
    const auto bits = static_cast<std::uint64_t>(value);
    const std::uint64_t size = is_negative ? 0 - bits : bits;
    // 53 bits are left of 64, the last of them sticky: then the conversion is exact.
    const std::uint64_t sticky = ((size >> 11) | ((size & 0x7ffU) != 0 ? 1U : 0U)) << 11;
    const std::uint64_t kept = (size >> 53) != 0 ? sticky : size;
    const auto wide = static_cast<double>(kept);
    return is_negative ? -wide : wide;
  }
}

template <class To, Rounding mode, class From> constexpr To integer_to_float(From value) {
  if constexpr (sizeof(From) <= 2) {
    return narrow<To, mode>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, F16>) {
    // Every integer from 2^17 on becomes what 2^17 does, in every mode; below, f32 is exact.
    constexpr From kHigh = 0x20000;
    constexpr From kLow = std::is_signed_v<From> ? static_cast<From>(-0x20000) : From{0};
    const From above = value < kLow ? kLow : value;
    const From inside = above > kHigh ? kHigh : above;
    return narrow<To, mode>(static_cast<float>(static_cast<std::int32_t>(inside)));
  } else if constexpr (std::is_same_v<To, float> && std::is_same_v<From, std::int32_t> &&
                       mode == Rounding::kNearestEven) {
    return static_cast<float>(value); // the host rounds once
  } else {
    return narrow<To, mode>(integer_to_odd_double(value));
  }
}

template <class To, Rounding mode, class From> constexpr To any_conversion(From value) {
  if constexpr (kIsFloat<To> && std::is_same_v<To, From>) {
    return narrow<To>(round_integral<mode>(widen(value)));
  } else if constexpr (kIsFloat<To> && kIsFloat<From>) {
    return narrow<To, mode>(widen(value));
  } else if constexpr (kIsFloat<To>) {
    return integer_to_float<To, mode>(value);
  } else if constexpr (kIsFloat<From>) {
    return float_to_integer<To, mode>(widen(value));
  } else {
    return static_cast<To>(value);
  }
}

} // namespace detail

/// `value` as a To, rounded as the mode says.
template <class To, Rounding mode, class From> constexpr To convert(From value) {
  return detail::any_conversion<To, mode>(value);
}

/// `value` as a To, rounded as a CVT without a rounding suffix does.
template <class To, class From> constexpr To convert(From value) {
  if constexpr (kIsFloat<To> && std::is_same_v<To, From>) {
    return narrow<To>(widen(value));
  } else {
    return detail::any_conversion<To, kDefaultRounding<To>>(value);
  }
}

} // namespace pto::isa
