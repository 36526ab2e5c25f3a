// SPDX-License-Identifier: Apache-2.0
// f16, bf16 and f32 arithmetic against exact integers: all values, edge grids, random samples.
#include "exact_float.h"
#include "isa/float16.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace pto::isa {
namespace {

using test::Exact;
using test::Format;
using test::Random;

constexpr std::array kModes = {
    Rounding::kNearestEven, Rounding::kTowardZero, Rounding::kDown, Rounding::kUp};

template <class F> struct Traits;
template <> struct Traits<F16> {
  static constexpr Format kFormat = test::kF16Format;
  static F16 of(std::uint32_t bits) { return F16{static_cast<std::uint16_t>(bits)}; }
  static std::uint32_t bits(F16 x) { return x.bits; }
};
template <> struct Traits<BF16> {
  static constexpr Format kFormat = test::kBf16Format;
  static BF16 of(std::uint32_t bits) { return BF16{static_cast<std::uint16_t>(bits)}; }
  static std::uint32_t bits(BF16 x) { return x.bits; }
};
template <> struct Traits<float> {
  static constexpr Format kFormat = test::kF32Format;
  static float of(std::uint32_t bits) { return std::bit_cast<float>(bits); }
  static std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
};

template <class F> struct Number {
  static constexpr Format kFormat = Traits<F>::kFormat;
  std::uint32_t pattern;
  bool negative() const { return (pattern & kFormat.sign) != 0; }
  std::uint32_t size() const { return pattern & (kFormat.sign - 1); }
  bool is_nan() const { return size() > kFormat.infinity; }
  bool is_infinite() const { return size() == kFormat.infinity; }
  bool is_finite() const { return size() < kFormat.infinity; }
  bool is_zero() const { return size() == 0; }
  Exact exact() const { return test::exact(kFormat, pattern); }
};

template <class F> std::uint32_t expected_fused(Number<F> a, Number<F> b, Number<F> c) {
  const Format& format = Traits<F>::kFormat;
  const bool negative = a.negative() != b.negative();
  if (a.is_nan() || b.is_nan() || c.is_nan()) {
    return format.nan;
  }
  if (a.is_infinite() || b.is_infinite()) {
    const bool invalid =
        a.is_zero() || b.is_zero() || (c.is_infinite() && c.negative() != negative);
    return invalid ? format.nan : format.infinity | (negative ? format.sign : 0);
  }
  if (c.is_infinite()) {
    return c.pattern;
  }
  return test::reference_fused(format, a.exact() * b.exact(), negative, c.exact(), c.negative());
}

template <class F> std::uint32_t expected_add(Number<F> a, Number<F> b) {
  const Format& format = Traits<F>::kFormat;
  const std::uint32_t one = static_cast<std::uint32_t>(format.bias) << format.fraction_bits;
  return expected_fused(a, Number<F>{one}, b);
}

template <class F> std::uint32_t expected_mul(Number<F> a, Number<F> b) {
  const bool negative = a.negative() != b.negative();
  return expected_fused(a, b, Number<F>{negative ? Traits<F>::kFormat.sign : 0});
}

template <class F> std::uint32_t expected_div(Number<F> a, Number<F> b) {
  const Format& format = Traits<F>::kFormat;
  const bool negative = a.negative() != b.negative();
  const std::uint32_t sign = negative ? format.sign : 0;
  if (a.is_nan() || b.is_nan() || (a.is_zero() && b.is_zero()) ||
      (a.is_infinite() && b.is_infinite())) {
    return format.nan;
  }
  if (a.is_infinite() || b.is_zero()) {
    return format.infinity | sign;
  }
  if (b.is_infinite()) {
    return sign;
  }
  return test::reference_div(format, a.exact(), b.exact(), negative);
}

template <class F> std::uint32_t expected_sqrt(Number<F> a) {
  const Format& format = Traits<F>::kFormat;
  if (a.is_nan() || (a.negative() && !a.is_zero())) {
    return format.nan;
  }
  return a.is_zero() || a.is_infinite() ? a.pattern : test::reference_sqrt(format, a.exact());
}

template <class F> std::uint32_t expected_min(Number<F> a, Number<F> b, bool greatest) {
  if (a.is_nan() || b.is_nan()) {
    return !a.is_nan() ? a.pattern : !b.is_nan() ? b.pattern : Traits<F>::kFormat.nan;
  }
  const auto key = [](Number<F> x) {
    const auto size = static_cast<std::int64_t>(x.size());
    return x.negative() ? -size - 1 : size;
  };
  return (key(a) < key(b)) != greatest ? a.pattern : b.pattern;
}

/// Zeros, subnormals, powers of two, their neighbours, largest values, infinities, NaNs.
template <class F> std::vector<std::uint32_t> edge_values() {
  const Format& format = Traits<F>::kFormat;
  const std::uint32_t unit = 1U << format.fraction_bits;
  std::vector<std::uint32_t> sizes = {0,
                                      1,
                                      2,
                                      3,
                                      unit / 2,
                                      unit - 1,
                                      unit,
                                      unit + 1,
                                      format.infinity - 1,
                                      format.infinity,
                                      format.nan,
                                      format.infinity + 1};
  for (const int exponent : {2,
                             8,
                             -1,
                             -2,
                             -format.fraction_bits,
                             -format.fraction_bits - 1,
                             -format.fraction_bits - 2,
                             format.fraction_bits}) {
    const std::uint32_t power = static_cast<std::uint32_t>(format.bias + exponent)
                                << format.fraction_bits;
    sizes.insert(sizes.end(), {power - 1, power, power + 1, power + unit / 2 + 1});
  }
  std::vector<std::uint32_t> all;
  for (const std::uint32_t size : sizes) {
    all.push_back(size);
    all.push_back(size | format.sign);
  }
  return all;
}

template <class F> void check_pair(std::uint32_t a_bits, std::uint32_t b_bits) {
  using T = Traits<F>;
  const F a = T::of(a_bits);
  const F b = T::of(b_bits);
  const Number<F> x{a_bits};
  const Number<F> y{b_bits};
  const Number<F> minus_y{b_bits ^ T::kFormat.sign};
  const bool good =
      T::bits(add(a, b)) == expected_add(x, y) && T::bits(sub(a, b)) == expected_add(x, minus_y) &&
      T::bits(mul(a, b)) == expected_mul(x, y) && T::bits(div(a, b)) == expected_div(x, y) &&
      T::bits(min(a, b)) == expected_min(x, y, false) &&
      T::bits(max(a, b)) == expected_min(x, y, true);
  if (!good) { // doctest's own checks are too slow for every sample
    CAPTURE(a_bits);
    CAPTURE(b_bits);
    CHECK(T::bits(add(a, b)) == expected_add(x, y));
    CHECK(T::bits(sub(a, b)) == expected_add(x, minus_y));
    CHECK(T::bits(mul(a, b)) == expected_mul(x, y));
    CHECK(T::bits(div(a, b)) == expected_div(x, y));
    CHECK(T::bits(min(a, b)) == expected_min(x, y, false));
    CHECK(T::bits(max(a, b)) == expected_min(x, y, true));
  }
}

template <class F> void check_fused(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  using T = Traits<F>;
  const std::uint32_t got = T::bits(fused(T::of(a), T::of(b), T::of(c)));
  const std::uint32_t want = expected_fused(Number<F>{a}, Number<F>{b}, Number<F>{c});
  if (got != want) {
    CAPTURE(a);
    CAPTURE(b);
    CAPTURE(c);
    CHECK(got == want);
  }
}

template <class F> void check_sqrt(std::uint32_t a) {
  const std::uint32_t got = Traits<F>::bits(sqrt(Traits<F>::of(a)));
  const std::uint32_t want = expected_sqrt(Number<F>{a});
  if (got != want) {
    CAPTURE(a);
    CHECK(got == want);
  }
}

/// A random value; every fourth pair of draws has few fraction bits, so that ties happen.
template <class F> std::uint32_t random_value(Random& random) {
  const Format& format = Traits<F>::kFormat;
  std::uint32_t bits = random.bits32() & (format.sign | (format.sign - 1));
  const std::uint32_t choice = random.bits32();
  if (choice % 4 == 0) {
    bits &= ~((1U << (format.fraction_bits / 2 + 1)) - 1);
  }
  if (choice % 8 < 4) { // exponents near one another
    const std::uint32_t near = static_cast<std::uint32_t>(format.bias) - 6 + (choice >> 8) % 12;
    bits = (bits & (format.sign | ((1U << format.fraction_bits) - 1))) |
           (near << format.fraction_bits);
  }
  return bits;
}

template <class F> void check_arithmetic(int pairs, int triples, std::uint64_t seed) {
  const std::vector<std::uint32_t> edges = edge_values<F>();
  for (const std::uint32_t a : edges) {
    check_sqrt<F>(a);
    for (const std::uint32_t b : edges) {
      check_pair<F>(a, b);
      for (const std::uint32_t c : edges) {
        check_fused<F>(a, b, c);
      }
    }
  }
  Random random(seed);
  for (int i = 0; i < pairs; ++i) {
    const std::uint32_t a = random_value<F>(random);
    check_pair<F>(a, random_value<F>(random));
  }
  for (int i = 0; i < triples; ++i) {
    const std::uint32_t a = random_value<F>(random);
    const std::uint32_t b = random_value<F>(random);
    check_fused<F>(a, b, random_value<F>(random));
    // An addend near the negated product cancels; one far below leaves only a sticky bit.
    const std::uint32_t product = Traits<F>::bits(mul(Traits<F>::of(a), Traits<F>::of(b)));
    check_fused<F>(a, b, (product ^ Traits<F>::kFormat.sign) + i % 3);
  }
}

TEST_CASE("widening f16 is exact for all values") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Number<F16> x{bits};
    const float wide = widen(Traits<F16>::of(bits));
    if (x.is_nan()) {
      CHECK(std::isnan(wide));
      continue;
    }
    const Exact exact = x.exact();
    const double want = x.is_infinite()
                            ? std::numeric_limits<double>::infinity()
                            : std::ldexp(static_cast<double>(std::abs(exact.m)), exact.e);
    CHECK(std::abs(static_cast<double>(wide)) == want);
    CHECK(std::signbit(wide) == x.negative());
    CHECK(narrow<F16>(wide).bits == bits);
  }
}

TEST_CASE("bf16 is the upper half of f32") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Number<BF16> x{bits};
    const float wide = widen(Traits<BF16>::of(bits));
    CHECK(std::bit_cast<std::uint32_t>(wide) == bits << 16);
    CHECK(narrow<BF16>(wide).bits == (x.is_nan() ? 0x7fc0U : bits));
  }
}

template <class F, Rounding mode> void check_narrow(float x) {
  const Number<float> number{std::bit_cast<std::uint32_t>(x)};
  const Format& format = Traits<F>::kFormat;
  const std::uint32_t sign = number.negative() ? format.sign : 0;
  const std::uint32_t want =
      number.is_nan() ? format.nan
      : number.is_infinite()
          ? format.infinity | sign
          : test::reference_narrow(format, number.exact(), number.negative(), mode);
  const std::uint32_t got = Traits<F>::bits(narrow<F, mode>(x));
  const std::uint32_t got_from_double = Traits<F>::bits(narrow<F, mode>(static_cast<double>(x)));
  if (got != want || got_from_double != want) {
    CAPTURE(number.pattern);
    CAPTURE(static_cast<int>(mode));
    CHECK(got == want);
    CHECK(got_from_double == want);
  }
}

template <class F> void check_narrow_all_modes(float x) {
  check_narrow<F, Rounding::kNearestEven>(x);
  check_narrow<F, Rounding::kTowardZero>(x);
  check_narrow<F, Rounding::kDown>(x);
  check_narrow<F, Rounding::kUp>(x);
}

TEST_CASE("narrowing f32 rounds once in every mode") {
  // Every f16 value and every midpoint, and the f32 neighbours of both.
  for (std::uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const float low = widen(Traits<F16>::of(bits));
    const float high = bits == 0x7bff ? 65536.0F : widen(Traits<F16>::of(bits + 1));
    for (const float x : {low, (low + high) / 2}) {
      for (const float near : {x, std::nextafter(x, 1e9F), std::nextafter(x, -1e9F)}) {
        check_narrow_all_modes<F16>(near);
        check_narrow_all_modes<F16>(-near);
      }
    }
  }
  Random random(11);
  for (int i = 0; i < 200000; ++i) {
    const std::uint32_t bits = random.bits32();
    check_narrow_all_modes<F16>(std::bit_cast<float>(bits));
    check_narrow_all_modes<BF16>(std::bit_cast<float>(bits));
    const std::uint32_t low_bits = std::array<std::uint32_t, 4>{0, 1, 0x8000, 0x7fff}[i % 4];
    check_narrow_all_modes<BF16>(std::bit_cast<float>((bits & 0xffff0000U) | low_bits));
  }
}

template <class F> void check_narrow_double(double x) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  const auto exponent = static_cast<int>((bits >> 52) & 0x7ff);
  const std::int64_t m =
      static_cast<std::int64_t>(bits & 0xfffffffffffffU) + (std::int64_t{1} << 52);
  const Exact exact = {std::signbit(x) ? -m : m, exponent - 1075};
  const std::array got = {Traits<F>::bits(narrow<F, Rounding::kNearestEven>(x)),
                          Traits<F>::bits(narrow<F, Rounding::kTowardZero>(x)),
                          Traits<F>::bits(narrow<F, Rounding::kDown>(x)),
                          Traits<F>::bits(narrow<F, Rounding::kUp>(x))};
  for (const Rounding mode : kModes) {
    const std::uint32_t want =
        test::reference_narrow(Traits<F>::kFormat, exact, std::signbit(x), mode);
    if (got.at(static_cast<std::size_t>(mode)) != want) {
      CAPTURE(bits);
      CAPTURE(static_cast<int>(mode));
      CHECK(got.at(static_cast<std::size_t>(mode)) == want);
    }
  }
}

TEST_CASE("narrowing double rounds once in every mode") {
  Random random(12);
  for (int i = 0; i < 60000; ++i) {
    // Exponents from below the least f32 subnormal to above the largest f32, and half the time
    // fractions that lie within an ulp of a midpoint of the narrow types.
    const std::uint64_t exponent = 1023 - 160 + random.bits32() % 292;
    std::uint64_t fraction = random.next() >> 12;
    if (i % 2 == 0) {
      fraction &= ~((std::uint64_t{1} << (52 - random.bits32() % 26)) - 1);
      fraction += static_cast<std::uint64_t>(i % 3) - 1;
    }
    fraction &= 0xfffffffffffffU;
    const std::uint64_t sign = (random.next() >> 63) << 63;
    const double x = std::bit_cast<double>(sign | (exponent << 52) | fraction);
    check_narrow_double<F16>(x);
    check_narrow_double<BF16>(x);
    check_narrow_double<float>(x);
  }
}

TEST_CASE("f16 square root and sign operations for all values") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    check_sqrt<F16>(bits);
    check_sqrt<BF16>(bits);
    const F16 x = Traits<F16>::of(bits);
    CHECK(abs(x).bits == (bits & 0x7fff));
    CHECK(neg(x).bits == (bits ^ 0x8000));
    CHECK(abs(BF16{x.bits}).bits == (bits & 0x7fff));
    CHECK(neg(BF16{x.bits}).bits == (bits ^ 0x8000));
  }
}

TEST_CASE("f16 arithmetic is exactly rounded") {
  check_arithmetic<F16>(100000, 60000, 1);
}

TEST_CASE("bf16 arithmetic is exactly rounded") {
  check_arithmetic<BF16>(100000, 60000, 2);
}

TEST_CASE("f32 arithmetic is exactly rounded") {
  check_arithmetic<float>(60000, 60000, 3);
}

TEST_CASE("known values") {
  const F16 one{0x3c00};
  const F16 third{0x3555};
  CHECK(add(one, third).bits == 0x3d55);
  CHECK(div(one, F16{0x4200}).bits == 0x3555); // 1/3
  CHECK(mul(F16{0x7bff}, F16{0x7bff}).bits == 0x7c00);
  CHECK(mul(F16{0x0001}, F16{0x3800}).bits == 0x0000); // tie to even zero
  CHECK(mul(F16{0x0003}, F16{0x3800}).bits == 0x0002);
  CHECK(fused(F16{0x3c01}, F16{0x3c01}, F16{0xbc02}).bits == 0x0010); // 2^-20 survives
  CHECK(fused(BF16{0x3f81}, BF16{0x3f81}, BF16{0xbf82}).bits == 0x3880);
  CHECK(sub(one, one).bits == 0x0000);
  CHECK(min(F16{0x8000}, F16{0x0000}).bits == 0x8000);
  CHECK(max(F16{0x8000}, F16{0x0000}).bits == 0x0000);
  CHECK(min(F16{0xfe01}, one).bits == one.bits);
  CHECK(max(F16{0x7c01}, F16{0xffff}).bits == 0x7e00);
  CHECK(narrow<F16>(65519.996F).bits == 0x7bff);
  CHECK(narrow<F16>(65520.0F).bits == 0x7c00);
  CHECK(narrow<F16, Rounding::kTowardZero>(1e30F).bits == 0x7bff);
  CHECK(narrow<F16, Rounding::kUp>(-1e30F).bits == 0xfbff);
  CHECK(narrow<F16, Rounding::kDown>(-1e30F).bits == 0xfc00);
  CHECK(narrow<F16, Rounding::kUp>(1e-30F).bits == 0x0001);
  CHECK(narrow<F16, Rounding::kDown>(-0.0F).bits == 0x8000);
}

TEST_CASE("f16x2 works on both halves") {
  const F16x2 a{F16{0x3c00}, F16{0x4000}};
  const F16x2 b{F16{0x4200}, F16{0xc400}};
  const F16x2 c{F16{0x3800}, F16{0x3c00}};
  CHECK(add(a, b).lo.bits == 0x4400);
  CHECK(add(a, b).hi.bits == 0xc000);
  CHECK(sub(a, b).lo.bits == 0xc000);
  CHECK(sub(a, b).hi.bits == 0x4600);
  CHECK(mul(a, b).lo.bits == 0x4200);
  CHECK(mul(a, b).hi.bits == 0xc800);
  CHECK(fused(a, b, c).lo.bits == 0x4300);
  CHECK(fused(a, b, c).hi.bits == 0xc700);
  CHECK(min(a, b).hi.bits == 0xc400);
  CHECK(max(a, b).hi.bits == 0x4000);
  CHECK(abs(b).hi.bits == 0x4400);
  CHECK(neg(b).lo.bits == 0xc200);
}

TEST_CASE("integral values of f32") {
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  const auto check = [&](float x) {
    CAPTURE(x);
    CHECK(bits(round_integral<Rounding::kNearestEven>(x)) == bits(std::nearbyint(x)));
    CHECK(bits(round_integral<Rounding::kTowardZero>(x)) == bits(std::trunc(x)));
    CHECK(bits(round_integral<Rounding::kDown>(x)) == bits(std::floor(x)));
    CHECK(bits(round_integral<Rounding::kUp>(x)) == bits(std::ceil(x)));
  };
  for (const float x : {0.0F,
                        0.25F,
                        0.5F,
                        0.75F,
                        1.0F,
                        1.5F,
                        2.5F,
                        0x1p-149F,
                        8388607.5F,
                        8388608.0F,
                        8388609.0F,
                        4194303.5F,
                        3e38F,
                        std::numeric_limits<float>::infinity()}) {
    check(x);
    check(-x);
  }
  Random random(4);
  for (int i = 0; i < 20000; ++i) {
    const std::uint32_t exponent = 120 + random.bits32() % 34;
    check(std::bit_cast<float>((random.bits32() & 0x807fffffU) | (exponent << 23)));
  }
  CHECK(bits(round_integral<Rounding::kUp>(std::bit_cast<float>(0xff800001U))) == 0x7fc00000U);
}

TEST_CASE("f32 NaN results are canonical") {
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  const float nan = std::bit_cast<float>(0xffc12345U);
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(bits(add(nan, 1.0F)) == 0x7fc00000U);
  CHECK(bits(sub(infinity, infinity)) == 0x7fc00000U);
  CHECK(bits(mul(infinity, 0.0F)) == 0x7fc00000U);
  CHECK(bits(div(0.0F, 0.0F)) == 0x7fc00000U);
  CHECK(bits(sqrt(-1.0F)) == 0x7fc00000U);
  CHECK(bits(fused(infinity, 1.0F, -infinity)) == 0x7fc00000U);
  CHECK(bits(abs(nan)) == 0x7fc12345U);
  CHECK(bits(neg(nan)) == 0x7fc12345U);
}

} // namespace
} // namespace pto::isa
