// SPDX-License-Identifier: Apache-2.0
// Argument reduction of SIN and COS over the whole range of f32, and their forms over spans.
#include "isa/fmath.h"

#include "isa/error.h"

#include <algorithm>
#include <array>

// Reduction after Payne and Hanek. Let x = m * 2^e with a 24-bit integer m and e >= -3. Of the
// product m * (2^e * 2/pi) only the part modulo 4 matters, and since m is an integer, the bits of
// 2^e * 2/pi worth 4 or more may be dropped before the multiplication. What is left is a window of
// 2/pi: 2 integer bits and 126 fraction bits. Cutting it off there errs by 2^-126 * m < 2^-102,
// while no f32 comes nearer to a multiple of pi/2 than about 2^-30.
namespace pto::isa {
namespace {

// 2/pi = 0.a2f9836e..., the first word preceded by 64 zero bits for windows that begin before it.
constexpr std::array<std::uint64_t, 6> kTwoOverPi = {
    0,
    0xa2f9836e4e441529U,
    0xfc2757d1f534ddc0U,
    0xdb6295993c439041U,
    0xfe5163abdebbc561U,
    0xb7246e3a424dd2e0U,
};

/// 64 bits of the table from bit `at` on.
std::uint64_t window(unsigned at) {
  const std::uint64_t high = kTwoOverPi[at / 64] << (at % 64);
  return at % 64 == 0 ? high : high | (kTwoOverPi[at / 64 + 1] >> (64 - at % 64));
}

void over_span(std::span<const float> in, std::span<float> out, std::uint64_t quadrant) {
  PTO_CHECK(in.size() == out.size());
  std::array<float, 64> chunk; // a copy, since in and out may be the same memory
  for (std::size_t start = 0; start < in.size(); start += chunk.size()) {
    const std::size_t count = std::min(chunk.size(), in.size() - start);
    std::copy_n(in.begin() + start, count, chunk.begin());
    float* result = out.data() + start;
    for (std::size_t i = 0; i < count; ++i) {
      result[i] = detail::sin_of_moderate(chunk[i], quadrant);
    }
    std::uint32_t large = 0;
    for (std::size_t i = 0; i < count; ++i) {
      large |= magnitude(chunk[i]) < detail::kReduceInline ? 0U : 1U;
    }
    for (std::size_t i = 0; large != 0 && i < count; ++i) {
      if (!(magnitude(chunk[i]) < detail::kReduceInline)) {
        result[i] = detail::sin_of_large(chunk[i], quadrant);
      }
    }
  }
}

} // namespace

float detail::sin_of_large(float x, std::uint64_t quadrant) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const unsigned exponent = (bits >> 23) & 0xff;
  if (exponent == 0xff) {
    return kCanonicalNan;
  }
  const std::uint64_t m = (bits & 0x7fffffU) | 0x800000U;
  // The bit of 2/pi that is worth 2^1 after scaling by 2^e is fraction bit e - 1 (counted from 1);
  // in the table, where fraction bit 1 has the index 64, that is index 62 + e.
  const unsigned at = 62 + exponent - 127 - 23;
  const std::uint64_t high = window(at);
  const std::uint64_t low = window(at + 64);
  // (high:low) * m modulo 2^128.
  const std::uint64_t low_low = (low & 0xffffffffU) * m;
  const std::uint64_t low_high = (low >> 32) * m + (low_low >> 32);
  const std::uint64_t product = high * m + (low_high >> 32);
  const std::uint64_t rest = (low_high << 32) | (low_low & 0xffffffffU);
  // Round to the nearest multiple of pi/2: the fraction, taken as signed, lies in [-1/2, 1/2).
  const std::uint64_t turns = (product + (std::uint64_t{1} << 61)) >> 62;
  const auto fraction = static_cast<std::int64_t>((product << 2) | (rest >> 62));
  const std::uint64_t fraction_low = rest << 2;
  const double part =
      static_cast<double>(fraction) * 0x1p-64 + static_cast<double>(fraction_low) * 0x1p-128;
  const double r = part * 0x1.921fb54442d18p+0; // pi/2
  const bool is_negative = (bits >> 31) != 0;
  // sin(-a + q) with a = r + turns: the quadrant counts backwards.
  return is_negative ? sin_of_reduced(-r, quadrant - turns) : sin_of_reduced(r, quadrant + turns);
}

void sin(std::span<const float> in, std::span<float> out) {
  over_span(in, out, 0);
}

void cos(std::span<const float> in, std::span<float> out) {
  over_span(in, out, 1);
}

} // namespace pto::isa
