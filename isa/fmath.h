// SPDX-License-Identifier: Apache-2.0
// EXP LOG SIN COS TANH RSQRT RCP POW of f32 and f16: the same bits on every host.
#pragma once

#include "isa/float16.h"
#include "isa/float32.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

// The host's libm is not used: its results change from version to version. Every function is
// evaluated in double with a short polynomial and rounded to f32 once, so its error is a little
// above half a unit in the last place (below 0.51 ulp, far from the 2 ulp that the ISA allows), on
// subnormal inputs and results too. Special values are those of C99 Annex F; RSQRT of -0 is -inf.
// The polynomials interpolate at Chebyshev nodes, computed with 110 digits.
//
// Loops over these functions vectorise, with two exceptions: SIN and COS of arguments from 2^20 on
// reduce them by multiplying with a window of the bits of 2/pi, out of line. The span forms of SIN
// and COS run the vectorised part first and come back for such arguments.
//
// Left out: errno and exception flags, rounding modes other than to nearest.
namespace pto::isa {

namespace detail {

// 1.5 * 2^52: adding it rounds a double below 2^51 to an integer, which then stands in the low bits
// of the sum as a two's complement number.
inline constexpr double kToInteger = 0x1.8p52;

inline constexpr std::uint64_t kExponentOne = 0x3ff0000000000000U; // the bits of 1.0

/// e^x = scale * (1 + tail), with tail exact to 2^-33 of itself, for |x| below 700.
struct ExpParts {
  double tail;
  std::uint64_t exponent; // to be added to the bits of a double
  double scale() const { return std::bit_cast<double>(kExponentOne + exponent); }
  double value() const {
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(1.0 + tail) + exponent);
  }
};

inline ExpParts exp_parts(double x) {
  const double shifted = x * 0x1.71547652b82fep+0 + kToInteger; // log2(e)
  const double power = shifted - kToInteger;
  const double r = x - power * 0x1.62e42fefa39efp-1; // ln 2; |r| <= ln(2)/2
  double p = 0x1.a15179d80ae96p-13;
  p = p * r + 0x1.6d7543e4127b8p-10;
  p = p * r + 0x1.1110c632a3088p-7;
  p = p * r + 0x1.5554accfdb593p-5;
  p = p * r + 0x1.55555567532adp-3;
  p = p * r + 0x1.000000287f871p-1;
  p = p * r + 1.0;
  return {p * r, std::bit_cast<std::uint64_t>(shifted) << 52};
}

/// e^x where x is no NaN, else anything.
inline float exp_of_number(float x) {
  const float low = x < -110.0F ? -110.0F : x; // e^-110 is zero and e^100 infinity in f32
  const float clamped = low > 100.0F ? 100.0F : low;
  return static_cast<float>(exp_parts(clamped).value());
}

/// tanh(x) where x is no NaN, else anything.
inline float tanh_of_number(float x) {
  const float size = magnitude(x);
  const float clamped = size > 10.0F ? 10.0F : size; // tanh 10 rounds to 1
  const ExpParts e = exp_parts(2.0 * static_cast<double>(clamped));
  const double scale = e.scale();
  const double minus_one = (scale - 1.0) + scale * e.tail; // e^2x - 1, accurate near zero
  return with_sign(static_cast<float>(minus_one / (minus_one + 2.0)), x);
}

/// ln(x) with a relative error below 2^-49 for positive, finite, normal x.
inline double log_of_normal(double x) {
  constexpr std::uint64_t kSqrtHalf = 0x3fe6a09e667f3bcdU;
  constexpr std::uint64_t kInt52 = 0x4330000000000000U; // the bits of 2^52
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  // x = 2^k * m with m in [sqrt(1/2), sqrt(2)); the biased k is converted by way of 2^52 + k.
  const std::uint64_t biased = (bits - kSqrtHalf + kExponentOne) >> 52;
  const double k = std::bit_cast<double>(biased | kInt52) - (0x1p52 + 1023.0);
  const double m = std::bit_cast<double>(bits - (biased << 52) + kExponentOne);
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double p = 0x1.54710166f7a8cp-3;
  p = p * z + 0x1.7382687cd8370p-3;
  p = p * z + 0x1.c71fcf7df6060p-3;
  p = p * z + 0x1.24924627dc195p-2;
  p = p * z + 0x1.9999999b88f9dp-2;
  p = p * z + 0x1.55555555553b6p-1;
  return k * 0x1.62e42fefa39efp-1 + (2.0 * s + s * (z * p));
}

/// sin(r + quadrant * pi/2) for |r| <= pi/4.
inline float sin_of_reduced(double r, std::uint64_t quadrant) {
  const double z = r * r;
  double s = 0x1.6dbdd26f56d2dp-19;
  s = s * z - 0x1.a013a6edc8f34p-13;
  s = s * z + 0x1.11110deeb33b2p-7;
  s = s * z - 0x1.555555545dd83p-3;
  const double sine = r * (1.0 + z * s); // keeps the sign of a zero
  double c = 0x1.9a6ee1e0c89e9p-16;
  c = c * z - 0x1.6c0e079b9e8ccp-10;
  c = c * z + 0x1.55554cb9f2c65p-5;
  c = c * z - 0x1.fffffffab0c4cp-2;
  const double cosine = 1.0 + z * c;
  const std::uint64_t odd = 0 - (quadrant & 1);
  const std::uint64_t chosen =
      (std::bit_cast<std::uint64_t>(sine) & ~odd) | (std::bit_cast<std::uint64_t>(cosine) & odd);
  return static_cast<float>(std::bit_cast<double>(chosen ^ ((quadrant & 2) << 62)));
}

inline constexpr float kReduceInline = 0x1p20F;

/// sin(x + quadrant * pi/2) for |x| below kReduceInline. pi/2 is taken in two parts; the product
/// with the upper one, of 33 bits, is exact, so no x comes so near a multiple that bits are short.
inline float sin_of_moderate(float x, std::uint64_t quadrant) {
  const auto wide = static_cast<double>(x);
  const double shifted = wide * 0x1.45f306dc9c883p-1 + kToInteger; // 2/pi
  const double turns = shifted - kToInteger;
  const double r = (wide - turns * 0x1.921fb54400000p+0) - turns * 0x1.0b4611a626331p-34;
  return sin_of_reduced(r, std::bit_cast<std::uint64_t>(shifted) + quadrant);
}

/// The same for every other x, infinity and NaN included.
float sin_of_large(float x, std::uint64_t quadrant);

} // namespace detail

inline float exp(float x) {
  return x == x ? detail::exp_of_number(x) : kCanonicalNan;
}

inline float log(float x) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto finite = static_cast<float>(detail::log_of_normal(x));
  const float positive = x < kInfinity ? finite : kInfinity;
  const float not_positive = x == 0.0F ? -kInfinity : kCanonicalNan;
  return x > 0.0F ? positive : not_positive;
}

inline float sin(float x) {
  return magnitude(x) < detail::kReduceInline ? detail::sin_of_moderate(x, 0)
                                              : detail::sin_of_large(x, 0);
}
inline float cos(float x) {
  return magnitude(x) < detail::kReduceInline ? detail::sin_of_moderate(x, 1)
                                              : detail::sin_of_large(x, 1);
}
/// out[i] = sin(in[i]); both of one size, either the same memory or apart.
void sin(std::span<const float> in, std::span<float> out);
void cos(std::span<const float> in, std::span<float> out);

inline float tanh(float x) {
  return x == x ? detail::tanh_of_number(x) : kCanonicalNan;
}

inline float rsqrt(float x) {
  return canonical(static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))));
}

/// Correctly rounded.
inline float rcp(float x) {
  return canonical(1.0F / x);
}

inline float pow(float x, float y) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kInt23 = 0x1p23F;
  const float x_size = magnitude(x);
  const float y_size = magnitude(y);
  const float half = y_size * 0.5F;
  const bool y_is_integer = (y_size >= kInt23) | ((y_size + kInt23) - kInt23 == y_size);
  const bool y_is_odd = y_is_integer & (y_size < 0x1p24F) & ((half + kInt23) - kInt23 != half);

  // ln x for the ends of the range is a number so large that any y but 0 sends the result to 0 or
  // infinity; clamping happens in f32, and 0 times infinity is dealt with below.
  const double log_x = detail::log_of_normal(static_cast<double>(x_size));
  const double product = static_cast<double>(y) * log_x;
  const auto rounded = static_cast<float>(product);
  const float at_ends = x_size == 0.0F ? -y : y;
  const bool x_is_end = (x_size == 0.0F) | (x_size == kInfinity);
  const float guide = x_is_end ? at_ends * kInfinity : rounded;
  const auto inside = static_cast<float>(detail::exp_parts(product).value());
  const float upper = guide > 100.0F ? kInfinity : inside;
  const float size = guide < -110.0F ? 0.0F : upper;

  const bool is_negative = (std::bit_cast<std::int32_t>(x) < 0) & y_is_odd;
  const float with_its_sign = is_negative ? -size : size;
  const bool invalid = (x < 0.0F) & (x_size < kInfinity) & !y_is_integer;
  const bool is_nan = invalid | (x != x) | (y != y);
  const bool is_one = (x == 1.0F) | (y == 0.0F) | ((x_size == 1.0F) & (y_size == kInfinity));
  const float number = is_nan ? kCanonicalNan : with_its_sign;
  return is_one ? 1.0F : number;
}

// f16: computed in f32 and narrowed. NaNs are seen to after narrowing, which canonicalises: GCC
// threads two tests of one value into a branch and then does not vectorise. No f16 is large enough
// for the cold path of SIN and COS, and infinity turns into a NaN by itself.
namespace detail {
constexpr F16 unless_nan(F16 x, F16 result) {
  return is_number(x) ? result : F16{0x7e00};
}
} // namespace detail

inline F16 exp(F16 x) {
  return detail::unless_nan(x, narrow<F16>(detail::exp_of_number(widen(x))));
}
inline F16 tanh(F16 x) {
  return detail::unless_nan(x, narrow<F16>(detail::tanh_of_number(widen(x))));
}
inline F16 log(F16 x) {
  return narrow<F16>(log(widen(x)));
}
inline F16 rsqrt(F16 x) {
  return narrow<F16>(static_cast<float>(1.0 / std::sqrt(static_cast<double>(widen(x)))));
}
inline F16 rcp(F16 x) {
  return narrow<F16>(1.0F / widen(x));
}
inline F16 sin(F16 x) {
  return narrow<F16>(detail::sin_of_moderate(widen(x), 0));
}
inline F16 cos(F16 x) {
  return narrow<F16>(detail::sin_of_moderate(widen(x), 1));
}

} // namespace pto::isa
