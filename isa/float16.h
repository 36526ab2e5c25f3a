// SPDX-License-Identifier: Apache-2.0
// f16 and bf16: bit patterns, exact widening, narrowing with one rounding, arithmetic.
#pragma once

#include "isa/float32.h"

#include <bit>
#include <cstdint>
#include <type_traits>

// Both types are computed in f32 and rounded back. Why that is one rounding in effect:
//
// - ADD SUB MUL DIV SQRT. A result rounded first to q and then to p bits equals the one rounded
//   directly if q >= 2p + 2 (Figueroa 1995): an exact sum, product, quotient or root of p-bit
//   numbers is either a midpoint of two p-bit numbers or further from it than the first rounding
//   can move it. f32 has q = 24; f16 has p = 11 and meets it exactly, bf16 has p = 8.
//   Subnormal results have fewer bits and only gain, but f32 has to hold them to 24 bits. For f16
//   it does (its smallest results, 2^-48, are normal in f32). bf16 shares the f32 exponent range:
//   sums are exact there; a product of 16 bits that reaches the first midpoint, 2^-134, is a
//   multiple of 2^-149 and so exact; a quotient that is not a midpoint is at least 2^-143 away from
//   one and f32 errs by 2^-150.
// - FMA of f16. The product (22 bits, 2^-48 to 2^32) is exact in f32, the sum is rounded to odd in
//   24 bits >= p + 2, then narrowed.
// - FMA of bf16. The product (16 bits) is exact in double only, since exponents add; the sum is
//   rounded to odd in double, then to odd in f32, then narrowed.
namespace pto::isa {

struct F16 {
  std::uint16_t bits;
};

struct BF16 {
  std::uint16_t bits;
};

/// Two f16 in one register; `lo` lives in bits 0..15.
struct F16x2 {
  F16 lo;
  F16 hi;
};

/// Exact; a NaN keeps its payload.
constexpr float widen(F16 x) {
  const std::uint32_t sign = (x.bits & 0x8000U) << 16;
  const std::uint32_t shifted = (x.bits & 0x7fffU) << 13;
  const std::uint32_t normal = shifted + 0x38000000U; // exponent bias 15 -> 127
  // Subnormal: 2^-14 + m * 2^-24 has m as its mantissa; take the 2^-14 off again, exactly.
  const float subnormal = std::bit_cast<float>(shifted + 0x38800000U) - 0x1p-14F;
  const std::uint32_t special = shifted | 0x7f800000U;
  const auto size = static_cast<std::int32_t>(shifted);
  const std::uint32_t finite = size < 0x00800000 ? std::bit_cast<std::uint32_t>(subnormal) : normal;
  return std::bit_cast<float>(sign | (size >= 0x0f800000 ? special : finite));
}
constexpr float widen(BF16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}
constexpr float widen(float x) {
  return x;
}

namespace detail {

constexpr F16 f16_nearest(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const auto size = static_cast<std::int32_t>(bits & 0x7fffffffU);
  // Normal: change the bias, add just under half a unit, and one more if the result would be odd.
  const std::int32_t normal = (size - 0x38000000 + 0xfff + ((size >> 13) & 1)) >> 13;
  // Subnormal: 0.5 has the unit 2^-24 of the f16 subnormals in its last place, so the sum rounds.
  const std::int32_t subnormal =
      std::bit_cast<std::int32_t>(std::bit_cast<float>(size) + 0.5F) - 0x3f000000;
  const std::int32_t finite = size < 0x38800000 ? subnormal : normal;
  const std::int32_t special = size > 0x7f800000 ? 0x7e00 : 0x7c00;
  const std::uint32_t sign = size > 0x7f800000 ? 0U : (bits >> 16) & 0x8000U;
  const std::int32_t result = size >= 0x477ff000 ? special : finite; // 65520 and above: infinity
  return F16{static_cast<std::uint16_t>(static_cast<std::uint32_t>(result) | sign)};
}

constexpr BF16 bf16_nearest(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  return BF16{static_cast<std::uint16_t>(x == x ? rounded : 0x7fc0U)};
}

} // namespace detail

/// `x` rounded once to To (F16, BF16 or float); NaN becomes the canonical NaN.
template <class To, Rounding mode = Rounding::kNearestEven> constexpr To narrow(float x);
template <class To, Rounding mode = Rounding::kNearestEven> constexpr To narrow(double x);

template <class To, Rounding mode> constexpr To narrow(float x) {
  if constexpr (std::is_same_v<To, float>) {
    return canonical(x);
  } else {
    To nearest{};
    if constexpr (std::is_same_v<To, F16>) {
      nearest = detail::f16_nearest(x);
    } else {
      nearest = detail::bf16_nearest(x);
    }
    const std::int32_t excess = std::bit_cast<std::int32_t>(magnitude(widen(nearest))) -
                                std::bit_cast<std::int32_t>(magnitude(canonical(x)));
    const std::int32_t step = directed_step<mode>(excess, x < 0.0F);
    return To{static_cast<std::uint16_t>(nearest.bits + step)};
  }
}

template <class To, Rounding mode> constexpr To narrow(double x) {
  if constexpr (std::is_same_v<To, float>) {
    const float nearest = canonical(static_cast<float>(x));
    const std::int64_t excess = std::bit_cast<std::int64_t>(magnitude(double{nearest})) -
                                std::bit_cast<std::int64_t>(magnitude(x));
    const bool negative = std::bit_cast<std::int32_t>(nearest) < 0;
    const std::int32_t step = directed_step<mode>(excess, negative);
    // A step from the canonical NaN leads to another NaN.
    return canonical(std::bit_cast<float>(std::bit_cast<std::int32_t>(nearest) + step));
  } else {
    return narrow<To, mode>(narrow_to_odd(x));
  }
}

constexpr F16 add(F16 a, F16 b) {
  return narrow<F16>(widen(a) + widen(b));
}
constexpr F16 sub(F16 a, F16 b) {
  return narrow<F16>(widen(a) - widen(b));
}
constexpr F16 mul(F16 a, F16 b) {
  return narrow<F16>(widen(a) * widen(b));
}
constexpr F16 div(F16 a, F16 b) {
  return narrow<F16>(widen(a) / widen(b));
}
inline F16 sqrt(F16 x) {
  return narrow<F16>(std::sqrt(widen(x)));
}
/// a*b + c rounded once.
constexpr F16 fused(F16 a, F16 b, F16 c) {
  return narrow<F16>(add_to_odd(widen(a) * widen(b), widen(c)));
}

constexpr BF16 add(BF16 a, BF16 b) {
  return narrow<BF16>(widen(a) + widen(b));
}
constexpr BF16 sub(BF16 a, BF16 b) {
  return narrow<BF16>(widen(a) - widen(b));
}
constexpr BF16 mul(BF16 a, BF16 b) {
  return narrow<BF16>(widen(a) * widen(b));
}
constexpr BF16 div(BF16 a, BF16 b) {
  return narrow<BF16>(widen(a) / widen(b));
}
inline BF16 sqrt(BF16 x) {
  return narrow<BF16>(std::sqrt(widen(x)));
}
/// a*b + c rounded once.
constexpr BF16 fused(BF16 a, BF16 b, BF16 c) {
  const double product = static_cast<double>(widen(a)) * static_cast<double>(widen(b));
  return narrow<BF16>(add_to_odd(product, static_cast<double>(widen(c))));
}

constexpr F16 abs(F16 x) {
  return F16{static_cast<std::uint16_t>(x.bits & 0x7fffU)};
}
constexpr F16 neg(F16 x) {
  return F16{static_cast<std::uint16_t>(x.bits ^ 0x8000U)};
}
constexpr BF16 abs(BF16 x) {
  return BF16{static_cast<std::uint16_t>(x.bits & 0x7fffU)};
}
constexpr BF16 neg(BF16 x) {
  return BF16{static_cast<std::uint16_t>(x.bits ^ 0x8000U)};
}

namespace detail {

/// As order_key for f32; every NaN lies beyond the key 0x7c00 or below -0x7c01.
constexpr std::int16_t order_key(std::uint16_t bits) {
  const auto value = static_cast<std::int16_t>(bits);
  return static_cast<std::int16_t>(value ^ ((value >> 15) & 0x7fff));
}
constexpr bool is_number(F16 x) {
  return (x.bits & 0x7fff) <= 0x7c00;
}
constexpr bool is_number(BF16 x) {
  return (x.bits & 0x7fff) <= 0x7f80;
}

/// `first` where both are numbers, else the one that is, else the canonical NaN.
template <class F> constexpr F number_of(F a, F b, F first, std::uint16_t nan_bits) {
  const std::uint16_t beside_nan = is_number(a) ? a.bits : nan_bits;
  const std::uint16_t beside_number = is_number(a) ? first.bits : b.bits;
  return F{is_number(b) ? beside_number : beside_nan};
}
template <class F> constexpr F lesser(F a, F b, std::uint16_t nan_bits) {
  return number_of(a, b, F{order_key(a.bits) < order_key(b.bits) ? a.bits : b.bits}, nan_bits);
}
template <class F> constexpr F greater(F a, F b, std::uint16_t nan_bits) {
  return number_of(a, b, F{order_key(a.bits) > order_key(b.bits) ? a.bits : b.bits}, nan_bits);
}

} // namespace detail

/// As for f32: a number beats a NaN, -0 is less than +0.
constexpr F16 min(F16 a, F16 b) {
  return detail::lesser(a, b, 0x7e00);
}
constexpr F16 max(F16 a, F16 b) {
  return detail::greater(a, b, 0x7e00);
}
constexpr BF16 min(BF16 a, BF16 b) {
  return detail::lesser(a, b, 0x7fc0);
}
constexpr BF16 max(BF16 a, BF16 b) {
  return detail::greater(a, b, 0x7fc0);
}

constexpr F16x2 add(F16x2 a, F16x2 b) {
  return {add(a.lo, b.lo), add(a.hi, b.hi)};
}
constexpr F16x2 sub(F16x2 a, F16x2 b) {
  return {sub(a.lo, b.lo), sub(a.hi, b.hi)};
}
constexpr F16x2 mul(F16x2 a, F16x2 b) {
  return {mul(a.lo, b.lo), mul(a.hi, b.hi)};
}
constexpr F16x2 min(F16x2 a, F16x2 b) {
  return {min(a.lo, b.lo), min(a.hi, b.hi)};
}
constexpr F16x2 max(F16x2 a, F16x2 b) {
  return {max(a.lo, b.lo), max(a.hi, b.hi)};
}
constexpr F16x2 abs(F16x2 x) {
  return {abs(x.lo), abs(x.hi)};
}
constexpr F16x2 neg(F16x2 x) {
  return {neg(x.lo), neg(x.hi)};
}
constexpr F16x2 fused(F16x2 a, F16x2 b, F16x2 c) {
  return {fused(a.lo, b.lo, c.lo), fused(a.hi, b.hi, c.hi)};
}

} // namespace pto::isa
