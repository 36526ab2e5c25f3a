// SPDX-License-Identifier: Apache-2.0
// f32 arithmetic as the ISA defines it: the same bits on every host, whatever the compiler.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

// Ground rules for this file, float16.h, fmath.h and convert.h:
//
// - The host has IEEE 754 binary32 and binary64, runs in its default environment (round to nearest
//   even, subnormals kept) and does not contract a*b+c (-ffp-contract=off).
// - NaN: an operation whose result is a NaN returns the canonical quiet NaN of its type (f32
//   7fc00000, f16 7e00, bf16 7fc0), as in RISC-V. Without this rule the payload would depend on
//   which operand order the compiler picked. ABS and NEG work on the sign bit and so keep payloads.
// - Everything is straight-line code over selects, so that a loop over arrays vectorises. Code on
//   doubles turns conditions into bits by arithmetic: SSE2 has no compare of 64-bit integers.
namespace pto::isa {

enum class Rounding : std::uint8_t {
  kNearestEven, // .rn
  kTowardZero,  // .rz
  kDown,        // .rm, toward minus infinity
  kUp,          // .rp, toward plus infinity
};

inline constexpr float kCanonicalNan = std::bit_cast<float>(0x7fc00000U);

/// The canonical NaN for any NaN, every other value unchanged.
constexpr float canonical(float x) {
  return x == x ? x : kCanonicalNan;
}

constexpr float magnitude(float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0x7fffffffU);
}
constexpr double magnitude(double x) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & 0x7fffffffffffffffU);
}

/// `x` with the sign of `sign`.
constexpr float with_sign(float x, float sign) {
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) & 0x7fffffffU) |
                              (std::bit_cast<std::uint32_t>(sign) & 0x80000000U));
}
constexpr double with_sign(double x, double sign) {
  return std::bit_cast<double>((std::bit_cast<std::uint64_t>(x) & 0x7fffffffffffffffU) |
                               (std::bit_cast<std::uint64_t>(sign) & 0x8000000000000000U));
}

// Rounding to odd: an inexact value becomes that neighbour whose last bit is 1. A later rounding to
// at least two bits less, in any mode, then gives what a single rounding of the exact value would
// give: the odd last bit remembers on which side of every shorter value, and of every midpoint of
// two such values, the exact one lies.

/// a + b rounded to odd. No overflow: |a + b| must stay below the largest finite value.
constexpr double add_to_odd(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  const double error = (a - (sum - b_part)) + (b - b_part); // exact (Knuth's two-sum)
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(sum);
  const std::uint64_t error_size = std::bit_cast<std::uint64_t>(magnitude(error));
  // 1 for an error that is neither zero nor, where the sum is infinite or NaN, NaN itself.
  const std::uint64_t inexact = ((0 - error_size) & ~(error_size + 0x0010000000000000U)) >> 63;
  const std::uint64_t rounded_away = ((bits ^ std::bit_cast<std::uint64_t>(error)) >> 63) & inexact;
  return std::bit_cast<double>((bits - rounded_away) | inexact);
}
constexpr float add_to_odd(float a, float b) {
  const float sum = a + b;
  const float b_part = sum - a;
  const float error = (a - (sum - b_part)) + (b - b_part);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(sum);
  const std::uint32_t inexact = magnitude(error) > 0.0F ? 1U : 0U;
  const std::uint32_t rounded_away = ((bits ^ std::bit_cast<std::uint32_t>(error)) >> 31) & inexact;
  return std::bit_cast<float>((bits - rounded_away) | inexact);
}

/// `x` rounded to odd in f32 (beyond the largest f32: that, which is odd, and not infinity).
constexpr float narrow_to_odd(double x) {
  const float nearest = static_cast<float>(x);
  const std::uint64_t excess = std::bit_cast<std::uint64_t>(magnitude(double{nearest})) -
                               std::bit_cast<std::uint64_t>(magnitude(x));
  // The sign bit of -excess: nearest lies outward of x. A NaN stays some NaN.
  const auto rounded_away = static_cast<std::uint32_t>((0 - excess) >> 63);
  const auto inexact = static_cast<std::uint32_t>((excess | (0 - excess)) >> 63);
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(nearest) - rounded_away) | inexact);
}

/// How a nearest result must move, in units of its bit pattern as a magnitude, to become the result
/// of `mode`: `excess` is the bit pattern of its magnitude less that of the exact value. A step
/// leads from infinity to the largest finite value and back, and from zero to the least subnormal.
template <Rounding mode, class Signed>
constexpr std::int32_t directed_step(Signed excess, bool negative) {
  constexpr int kSignBit = 8 * sizeof(Signed) - 1;
  using Bits = std::make_unsigned_t<Signed>;
  const auto too_large = static_cast<std::int32_t>(static_cast<Bits>(-excess) >> kSignBit);
  const auto too_small = static_cast<std::int32_t>(static_cast<Bits>(excess) >> kSignBit);
  if constexpr (mode == Rounding::kNearestEven) {
    return 0;
  } else if constexpr (mode == Rounding::kTowardZero) {
    return -too_large;
  } else {
    return negative == (mode == Rounding::kDown) ? too_small : -too_large;
  }
}

constexpr float add(float a, float b) {
  return canonical(a + b);
}
constexpr float sub(float a, float b) {
  return canonical(a - b);
}
constexpr float mul(float a, float b) {
  return canonical(a * b);
}
constexpr float div(float a, float b) {
  return canonical(a / b);
}
inline float sqrt(float x) {
  return canonical(std::sqrt(x));
}

constexpr float abs(float x) {
  return magnitude(x);
}
constexpr float neg(float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) ^ 0x80000000U);
}

/// a*b + c rounded once. The product of two f32 is exact in double (48 bits, exponents within
/// +-298), the sum is rounded to odd in 53 bits and then to nearest in at most 24, subnormals
/// included: one rounding in effect. A hardware multiply-add gives the same bits.
constexpr float fused(float a, float b, float c) {
#ifdef __FMA__
  if (!std::is_constant_evaluated()) {
    return canonical(__builtin_fmaf(a, b, c));
  }
#endif
  const double product = static_cast<double>(a) * static_cast<double>(b);
  return canonical(static_cast<float>(add_to_odd(product, static_cast<double>(c))));
}

/// Integers whose signed order is the order of the floats they stand for, with -0 below +0.
constexpr std::int32_t order_key(float x) {
  const std::int32_t bits = std::bit_cast<std::int32_t>(x);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

/// The lesser number; a number beats a NaN; -0 is less than +0.
constexpr float min(float a, float b) {
  const float number = order_key(a) < order_key(b) ? a : b;
  const float either = a == a ? number : b;
  return canonical(b == b ? either : a);
}
/// The greater number; a number beats a NaN; +0 is greater than -0.
constexpr float max(float a, float b) {
  const float number = order_key(a) > order_key(b) ? a : b;
  const float either = a == a ? number : b;
  return canonical(b == b ? either : a);
}

/// The integral value next to x as `mode` says; keeps the sign, also that of a zero result.
template <Rounding mode> constexpr float round_integral(float x) {
  constexpr float kAllIntegral = 0x1p23F; // every f32 from here on is an integer
  const float size = magnitude(x);
  const float sum = size + kAllIntegral;
  float nearest = sum - kAllIntegral;
  if constexpr (mode == Rounding::kTowardZero) {
    nearest -= nearest > size ? 1.0F : 0.0F;
  } else if constexpr (mode != Rounding::kNearestEven) {
    const bool outward = mode == Rounding::kUp ? x > 0.0F : x < 0.0F;
    const float up = nearest < size ? 1.0F : 0.0F;
    const float down = nearest > size ? -1.0F : 0.0F;
    nearest += outward ? up : down;
  }
  return canonical(with_sign(size < kAllIntegral ? nearest : size, x));
}

} // namespace pto::isa
