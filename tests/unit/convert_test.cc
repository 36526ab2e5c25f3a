// SPDX-License-Identifier: Apache-2.0
// Every pair of CVT in every rounding mode, against exact integers and the host's own rounding.
#include "exact_float.h"
#include "isa/convert.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace pto::isa {
namespace {

using test::Exact;
using test::Format;
using test::Random;

__extension__ using Int128 = __int128;

constexpr Rounding kRn = Rounding::kNearestEven;
constexpr Rounding kRz = Rounding::kTowardZero;
constexpr Rounding kRm = Rounding::kDown;
constexpr Rounding kRp = Rounding::kUp;

constexpr Format format_of(F16 /*type*/) {
  return test::kF16Format;
}
constexpr Format format_of(BF16 /*type*/) {
  return test::kBf16Format;
}
constexpr Format format_of(float /*type*/) {
  return test::kF32Format;
}
std::uint32_t bits_of(F16 x) {
  return x.bits;
}
std::uint32_t bits_of(BF16 x) {
  return x.bits;
}
std::uint32_t bits_of(float x) {
  return std::bit_cast<std::uint32_t>(x);
}
template <class F> F from_bits(std::uint32_t bits) {
  if constexpr (std::is_same_v<F, float>) {
    return std::bit_cast<float>(bits);
  } else {
    return F{static_cast<std::uint16_t>(bits)};
  }
}

/// The integer that a finite number rounds to.
Int128 rounded(Exact x, Rounding mode) {
  if (x.e >= 0) {
    return x.e > 70 ? Int128{x.m < 0 ? -1 : 1} << 100 : Int128{x.m} * (Int128{1} << x.e);
  }
  const int shift = x.e < -60 ? 60 : -x.e;
  const std::int64_t floor = x.m >> shift;
  const std::int64_t rest = x.m - floor * (std::int64_t{1} << shift); // only its sign if x.e < -60
  const std::int64_t twice = x.e < -60 ? (rest != 0 ? 1 : 0) : 2 * rest;
  const bool negative_tiny = x.e < -60 && x.m < 0;
  const std::int64_t half = std::int64_t{1} << shift;
  switch (mode) {
  case kRm:
    return floor;
  case kRp:
    return floor + (rest != 0 ? 1 : 0);
  case kRz:
    return floor + (rest != 0 && x.m < 0 ? 1 : 0);
  default:
    if (negative_tiny) {
      return 0;
    }
    return floor + (twice > half || (twice == half && floor % 2 != 0) ? 1 : 0);
  }
}

template <class To, class From> To expected_integer(From x, Rounding mode) {
  const Format format = format_of(From{});
  const std::uint32_t size = bits_of(x) & (format.sign - 1);
  if (size > format.infinity) {
    return 0;
  }
  const bool is_negative = (bits_of(x) & format.sign) != 0;
  Int128 value = Int128{is_negative ? -1 : 1} << 100;
  if (size != format.infinity) {
    value = rounded(test::exact(format, bits_of(x)), mode);
  }
  const Int128 low = std::numeric_limits<To>::min();
  const Int128 high = std::numeric_limits<To>::max();
  return static_cast<To>(value < low ? low : value > high ? high : value);
}

template <class To, Rounding mode, class From> void check_to_integer(From x) {
  const To got = convert<To, mode>(x);
  const To want = expected_integer<To>(x, mode);
  if (got != want) {
    CAPTURE(bits_of(x));
    CAPTURE(static_cast<int>(mode));
    CAPTURE(sizeof(To));
    CHECK(got == want);
  }
}

template <class To, class From> void check_to_integer_modes(From x) {
  check_to_integer<To, kRn>(x);
  check_to_integer<To, kRz>(x);
  check_to_integer<To, kRm>(x);
  check_to_integer<To, kRp>(x);
}

template <class From> void check_to_all_integers(From x) {
  check_to_integer_modes<std::int8_t>(x);
  check_to_integer_modes<std::uint8_t>(x);
  check_to_integer_modes<std::int16_t>(x);
  check_to_integer_modes<std::uint16_t>(x);
  check_to_integer_modes<std::int32_t>(x);
  check_to_integer_modes<std::uint32_t>(x);
  check_to_integer_modes<std::int64_t>(x);
  check_to_integer_modes<std::uint64_t>(x);
}

TEST_CASE("f16 and bf16 to integers, all values") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    check_to_all_integers(from_bits<F16>(bits));
    check_to_all_integers(from_bits<BF16>(bits));
  }
}

TEST_CASE("f32 to integers") {
  for (const float x : {0.5F,
                        1.5F,
                        2.5F,
                        127.5F,
                        128.5F,
                        255.5F,
                        256.0F,
                        32767.5F,
                        65535.5F,
                        0x1p31F,
                        0x1.fffffep30F,
                        0x1p32F,
                        0x1.fffffep31F,
                        0x1p63F,
                        0x1.fffffep62F,
                        0x1p64F,
                        0x1.fffffep63F,
                        0x1p-149F,
                        3e38F,
                        8388607.5F,
                        8388609.0F,
                        std::numeric_limits<float>::infinity(),
                        std::numeric_limits<float>::quiet_NaN()}) {
    check_to_all_integers(x);
    check_to_all_integers(-x);
  }
  Random random(21);
  for (int i = 0; i < 100000; ++i) {
    const std::uint32_t bits = random.bits32();
    check_to_all_integers(std::bit_cast<float>(bits));
    const std::uint32_t exponent = 124 + (random.bits32() % 70);
    check_to_all_integers(std::bit_cast<float>((bits & 0x807fffffU) | (exponent << 23)));
  }
}

template <class To, Rounding mode, class From> void check_from_integer(From value) {
  const bool is_negative = value < From{0};
  const auto raw = static_cast<std::uint64_t>(value);
  const std::uint64_t size = is_negative ? 0 - raw : raw;
  const std::int64_t sign = is_negative ? -1 : 1;
  const Exact high = {sign * static_cast<std::int64_t>(size >> 32), 32};
  const Exact low = {sign * static_cast<std::int64_t>(size & 0xffffffffU), 0};
  const std::uint32_t want = test::reference_fused(
      format_of(To{}), high, is_negative, low, is_negative, value == 0 ? kRn : mode);
  const std::uint32_t got = bits_of(convert<To, mode>(value));
  if (got != want) {
    CAPTURE(value);
    CAPTURE(static_cast<int>(mode));
    CHECK(got == want);
  }
}

template <class To, class From> void check_from_integer_modes(From value) {
  check_from_integer<To, kRn>(value);
  check_from_integer<To, kRz>(value);
  check_from_integer<To, kRm>(value);
  check_from_integer<To, kRp>(value);
}

template <class From> void check_from_integer_all(From value) {
  check_from_integer_modes<F16>(value);
  check_from_integer_modes<BF16>(value);
  check_from_integer_modes<float>(value);
}

void check_all_integers(std::uint64_t value) {
  check_from_integer_all(static_cast<std::int8_t>(value));
  check_from_integer_all(static_cast<std::uint8_t>(value));
  check_from_integer_all(static_cast<std::int16_t>(value));
  check_from_integer_all(static_cast<std::uint16_t>(value));
  check_from_integer_all(static_cast<std::int32_t>(value));
  check_from_integer_all(static_cast<std::uint32_t>(value));
  check_from_integer_all(static_cast<std::int64_t>(value));
  check_from_integer_all(value);
}

TEST_CASE("integers to floats round once in every mode") {
  for (int shift = 0; shift < 64; ++shift) {
    const std::uint64_t power = std::uint64_t{1} << shift;
    for (const std::uint64_t value : {power,
                                      power - 1,
                                      power + 1,
                                      power + power / 2,
                                      power + power / 256,
                                      power + power / 256 + 1,
                                      power + power / 256 - 1,
                                      power + (power >> 11) + 1,
                                      power + (power >> 24) + 1,
                                      power + (power >> 24) - 1,
                                      power + (power >> 24)}) {
      check_all_integers(value);
      check_all_integers(0 - value);
    }
  }
  Random random(22);
  for (int i = 0; i < 2000; ++i) {
    check_all_integers(random.next() >> (random.bits32() % 64));
  }
}

TEST_CASE("16-bit integers to f16 and bf16, all values") {
  for (std::int32_t value = -0x8000; value < 0x8000; value += 3) { // odd step, ends included
    check_from_integer_modes<F16>(static_cast<std::int16_t>(value));
    check_from_integer_modes<BF16>(static_cast<std::int16_t>(value));
    check_from_integer_modes<F16>(static_cast<std::uint16_t>(value));
  }
}

TEST_CASE("a single rounding, where two would differ") {
  // By way of f32 each of these would land on a midpoint and then go the wrong way.
  CHECK(bits_of(convert<F16>(std::int32_t{65519})) == 0x7bff);
  CHECK(bits_of(convert<BF16>(std::uint32_t{0x80800001U})) == 0x4f01);
  CHECK(bits_of(convert<BF16>(std::int64_t{0x4040000000000001})) == 0x5e81);
  CHECK(bits_of(convert<BF16>(std::uint64_t{0x8080000000000001U})) == 0x5f01);
  CHECK(bits_of(convert<float>(std::uint64_t{0x8000008000000001U})) == 0x5f000001);
  CHECK(bits_of(convert<float>(std::uint64_t{0x8000008000000000U})) == 0x5f000000);
}

/// What the host itself computes in a rounding mode; volatile keeps the compiler from folding it.
template <class To, class From> To host_cast(From value, int host_mode) {
  volatile From source = value;
  std::fesetround(host_mode);
  volatile To result = static_cast<To>(source);
  std::fesetround(FE_TONEAREST);
  return result;
}

TEST_CASE("directed rounding agrees with the host's") {
  const auto check = [](auto value) {
    CHECK(bits_of(convert<float, kRn>(value)) == bits_of(host_cast<float>(value, FE_TONEAREST)));
    CHECK(bits_of(convert<float, kRz>(value)) == bits_of(host_cast<float>(value, FE_TOWARDZERO)));
    CHECK(bits_of(convert<float, kRm>(value)) == bits_of(host_cast<float>(value, FE_DOWNWARD)));
    CHECK(bits_of(convert<float, kRp>(value)) == bits_of(host_cast<float>(value, FE_UPWARD)));
  };
  const auto check_double = [](double x) {
    CHECK(bits_of(narrow<float, kRn>(x)) == bits_of(host_cast<float>(x, FE_TONEAREST)));
    CHECK(bits_of(narrow<float, kRz>(x)) == bits_of(host_cast<float>(x, FE_TOWARDZERO)));
    CHECK(bits_of(narrow<float, kRm>(x)) == bits_of(host_cast<float>(x, FE_DOWNWARD)));
    CHECK(bits_of(narrow<float, kRp>(x)) == bits_of(host_cast<float>(x, FE_UPWARD)));
  };
  Random random(23);
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t bits = random.next();
    check(static_cast<std::int64_t>(bits) >> (i % 60));
    check(static_cast<std::int32_t>(bits));
    const std::uint64_t exponent = 1023 - 152 + bits % 281;
    check_double(std::bit_cast<double>((bits & 0x800fffffffffffffU) | (exponent << 52)));
  }
}

TEST_CASE("integers to integers") {
  CHECK(convert<std::int8_t>(std::int32_t{0x1ff}) == -1);
  CHECK(convert<std::uint8_t>(std::int64_t{-2}) == 254);
  CHECK(convert<std::int64_t>(std::uint32_t{0xffffffffU}) == 0xffffffffLL);
  CHECK(convert<std::int64_t>(std::int32_t{-5}) == -5);
  CHECK(convert<std::uint64_t>(std::int8_t{-1}) == 0xffffffffffffffffU);
  CHECK(convert<std::uint32_t>(std::int16_t{-2}) == 0xfffffffeU);
  CHECK(convert<std::int16_t>(std::uint16_t{0x8000}) == -0x8000);
}

template <class To, Rounding mode, class From> void check_float_to_float(From x) {
  const Format to = format_of(To{});
  const Format from = format_of(From{});
  const std::uint32_t size = bits_of(x) & (from.sign - 1);
  const bool is_negative = (bits_of(x) & from.sign) != 0;
  const std::uint32_t sign = is_negative ? to.sign : 0;
  const std::uint32_t want =
      size > from.infinity ? to.nan
      : size == from.infinity
          ? to.infinity | sign
          : test::reference_narrow(to, test::exact(from, bits_of(x)), is_negative, mode);
  const std::uint32_t got = bits_of(convert<To, mode>(x));
  if (got != want) {
    CAPTURE(bits_of(x));
    CHECK(got == want);
  }
}

template <class To, class From> void check_float_pair(From x) {
  check_float_to_float<To, kRn>(x);
  check_float_to_float<To, kRz>(x);
  check_float_to_float<To, kRm>(x);
  check_float_to_float<To, kRp>(x);
}

TEST_CASE("between f16 and bf16, all values") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    check_float_to_float<float, kRn>(from_bits<F16>(bits));
    check_float_to_float<float, kRn>(from_bits<BF16>(bits));
    check_float_pair<BF16>(from_bits<F16>(bits));
    check_float_pair<F16>(from_bits<BF16>(bits));
  }
}

TEST_CASE("f32 to f16 and bf16") {
  Random random(24);
  for (int i = 0; i < 20000; ++i) {
    check_float_pair<F16>(std::bit_cast<float>(random.bits32()));
    check_float_pair<BF16>(std::bit_cast<float>(random.bits32()));
  }
}

TEST_CASE("a float to its own type: the value, or the integral value in a mode") {
  CHECK(convert<float>(1.5F) == 1.5F);
  CHECK(bits_of(convert<float>(std::bit_cast<float>(0xff800001U))) == 0x7fc00000U);
  CHECK(convert<float, kRm>(-1.5F) == -2.0F);
  CHECK(convert<float, kRp>(-1.5F) == -1.0F);
  CHECK(bits_of(convert<float, kRz>(-0.5F)) == 0x80000000U);
  CHECK(convert<float, kRn>(2.5F) == 2.0F);
  CHECK(convert<F16, kRp>(F16{0x3e00}).bits == 0x4000); // 1.5 -> 2
  CHECK(convert<F16>(F16{0x3e00}).bits == 0x3e00);
  CHECK(convert<BF16, kRm>(BF16{0xbfc0}).bits == 0xc000); // -1.5 -> -2
}

} // namespace
} // namespace pto::isa
