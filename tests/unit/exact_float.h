// SPDX-License-Identifier: Apache-2.0
// A slow second implementation of binary floats for the tests: exact integers, no host arithmetic.
#pragma once

#include "isa/float32.h"

#include <array>
#include <bit>
#include <cstdint>
#include <limits>

// A result is found by search: the format's values are its bit patterns in order, and the exact
// result (a sum, quotient or root) is compared with values and midpoints by the sign of an exact
// wide integer. Nothing here is shared with the code under test.
namespace pto::test {

/// An exact number m * 2^e.
struct Exact {
  std::int64_t m = 0;
  int e = 0;
};

/// A sum of such numbers as one fixed-point integer; unit 2^-320, range beyond 2^330.
class ExactSum {
public:
  void add(std::int64_t m, int e) {
    const auto shift = static_cast<unsigned>(e + 320);
    const std::uint64_t size = m < 0 ? 0U - static_cast<std::uint64_t>(m) : m;
    const std::int64_t sign = m < 0 ? -1 : 1;
    for (unsigned part = 0; part < 2; ++part) {
      const std::uint64_t word = (size >> (32 * part)) & 0xffffffffU;
      const std::uint64_t shifted = word << (shift % 32);
      limbs_.at(shift / 32 + part) += sign * static_cast<std::int64_t>(shifted & 0xffffffffU);
      limbs_.at(shift / 32 + part + 1) += sign * static_cast<std::int64_t>(shifted >> 32);
    }
  }
  void add(Exact x) { add(x.m, x.e); }
  int sign() {
    std::int64_t carry = 0;
    bool any = false;
    for (std::int64_t& limb : limbs_) {
      limb += carry;
      carry = limb >> 32;
      limb -= carry * (std::int64_t{1} << 32);
      any = any || limb != 0;
    }
    return carry < 0 ? -1 : any ? 1 : 0;
  }

private:
  std::array<std::int64_t, 24> limbs_{};
};

/// The product of two numbers of at most 31 bits each.
inline Exact operator*(Exact a, Exact b) {
  return {a.m * b.m, a.e + b.e};
}

struct Format {
  int fraction_bits;
  int bias;
  std::uint32_t infinity; // bit pattern, without sign
  std::uint32_t sign;
  std::uint32_t nan;
};
inline constexpr Format kF16Format = {10, 15, 0x7c00, 0x8000, 0x7e00};
inline constexpr Format kBf16Format = {7, 127, 0x7f80, 0x8000, 0x7fc0};
inline constexpr Format kF32Format = {23, 127, 0x7f800000, 0x80000000, 0x7fc00000};

/// The value of a finite pattern; that of infinity is the next power of two.
inline Exact exact(const Format& format, std::uint32_t pattern) {
  const std::uint32_t size = pattern & (format.sign - 1);
  const auto exponent = static_cast<int>(size >> format.fraction_bits);
  std::int64_t m = size & ((1U << format.fraction_bits) - 1);
  m += exponent != 0 ? std::int64_t{1} << format.fraction_bits : 0;
  const int e = (exponent != 0 ? exponent : 1) - format.bias - format.fraction_bits;
  return {(pattern & format.sign) != 0 ? -m : m, e};
}

/// The pattern of a positive number. `compare(x)` is the sign of (exact result - x).
template <class Compare>
std::uint32_t
round_positive(const Format& format, isa::Rounding mode, bool negative, Compare compare) {
  std::uint32_t low = 0;
  std::uint32_t beyond = format.infinity + 1;
  while (low + 1 < beyond) { // greatest pattern whose value is not above the result
    const std::uint32_t middle = low + (beyond - low) / 2;
    (compare(exact(format, middle)) >= 0 ? low : beyond) = middle;
  }
  const bool outward = mode == isa::Rounding::kUp     ? !negative
                       : mode == isa::Rounding::kDown ? negative
                                                      : false;
  const Exact value = exact(format, low);
  const bool overflow = low == format.infinity;
  if (mode == isa::Rounding::kNearestEven) {
    const int side = overflow ? 0 : compare(Exact{2 * value.m + 1, value.e - 1});
    low += side > 0 || (side == 0 && low % 2 == 1) ? 1U : 0U;
    return low > format.infinity ? format.infinity : low;
  }
  if (overflow) {
    return outward ? format.infinity : format.infinity - 1;
  }
  return low + (outward && compare(value) != 0 ? 1U : 0U);
}

/// a*b + c, all finite, rounded once; b = 1 gives a sum. Exact zeros follow IEEE 754 section 6.3.
inline std::uint32_t reference_fused(const Format& format,
                                     Exact product,
                                     bool product_negative,
                                     Exact addend,
                                     bool addend_negative,
                                     isa::Rounding mode = isa::Rounding::kNearestEven) {
  ExactSum sum;
  sum.add(product);
  sum.add(addend);
  const int sign = sum.sign();
  if (sign == 0) {
    const bool negative = mode == isa::Rounding::kDown ? product_negative || addend_negative
                                                       : product_negative && addend_negative;
    return negative ? format.sign : 0;
  }
  const auto compare = [&](Exact x) {
    ExactSum rest;
    rest.add(sign * product.m, product.e);
    rest.add(sign * addend.m, addend.e);
    rest.add(-x.m, x.e);
    return rest.sign();
  };
  return round_positive(format, mode, sign < 0, compare) | (sign < 0 ? format.sign : 0);
}

/// a / b, b not zero.
inline std::uint32_t reference_div(const Format& format, Exact a, Exact b, bool negative) {
  const Exact a_size = {a.m < 0 ? -a.m : a.m, a.e};
  const Exact b_size = {b.m < 0 ? -b.m : b.m, b.e};
  const auto compare = [&](Exact x) {
    ExactSum rest;
    const Exact product = x * b_size;
    rest.add(a_size);
    rest.add(-product.m, product.e);
    return rest.sign();
  };
  return round_positive(format, isa::Rounding::kNearestEven, negative, compare) |
         (negative ? format.sign : 0);
}

/// The square root of a positive number.
inline std::uint32_t reference_sqrt(const Format& format, Exact a) {
  const auto compare = [&](Exact x) {
    ExactSum rest;
    const Exact square = x * x;
    rest.add(a);
    rest.add(-square.m, square.e);
    return rest.sign();
  };
  return round_positive(format, isa::Rounding::kNearestEven, false, compare);
}

/// A number m * 2^e rounded to the format.
inline std::uint32_t
reference_narrow(const Format& format, Exact x, bool negative, isa::Rounding mode) {
  return reference_fused(format, x, negative, Exact{0, x.e}, negative, mode);
}

/// Small, fast and the same on every host (xorshift64*).
class Random {
public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1dU;
  }
  std::uint32_t bits32() { return static_cast<std::uint32_t>(next() >> 32); }
  std::uint16_t bits16() { return static_cast<std::uint16_t>(next() >> 48); }

private:
  std::uint64_t state_;
};

} // namespace pto::test
