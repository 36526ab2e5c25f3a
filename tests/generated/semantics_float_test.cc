// SPDX-License-Identifier: Apache-2.0
// FMA and SQRT exactly; EXP LOG RSQRT RCP TANH SIN COS POW within 2 ulp of the host's double libm,
// special values exactly.
#include "semantics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace pto::test {

using namespace pto::isa;

namespace {

// The step of the format at the size of x.
double ulp_of(Type type, double x) {
  const Format& format = type == Type::kF16 ? kF16Format : kF32Format;
  const int least = 1 - format.bias;
  const int exponent = x == 0 ? least : std::max(std::ilogb(x), least);
  return std::ldexp(1.0, exponent - format.fraction_bits);
}

// `want` is the bits of a double. Results past the largest number may be infinite, as they are
// when rounded to nearest; what is infinite, zero or NaN in double must be so exactly.
bool within(Type type, double ulps, uint64_t got, uint64_t want_bits) {
  const double want = std::bit_cast<double>(want_bits);
  if (std::isnan(want)) {
    return got == canonical_nan(type);
  }
  const double value = number_of(type, got);
  if (std::isnan(value) || std::signbit(value) != std::signbit(want)) {
    return false;
  }
  if (std::isinf(want) || want == 0) {
    return value == want;
  }
  const double beyond = type == Type::kF16 ? 0x1p16 : 0x1p128; // infinity as a number
  const double near = std::copysign(std::min(std::abs(value), beyond), value);
  const double target = std::copysign(std::min(std::abs(want), beyond), want);
  return std::abs(near - target) <= ulps * ulp_of(type, target);
}

template <class F> void check_special(const Insn& shape, F of_double) {
  const Type type = shape.type;
  const double ulps = type == Type::kF16 ? 1.0 : 2.0; // f16 is rounded from f32: half a unit
  check_lanes(
      shape,
      [=](const uint64_t* s) { return std::bit_cast<uint64_t>(of_double(number_of(type, s[0]))); },
      [=](uint64_t got, uint64_t want) { return within(type, ulps, got, want); });
}

void test_fma(const Insn& shape) {
  const Type type = shape.type;
  check_lanes(shape, [type](const uint64_t* s) { return float_fma(type, s[0], s[1], s[2]); });
}

void test_sqrt(const Insn& shape) {
  const Type type = shape.type;
  check_lanes(shape, [type](const uint64_t* s) { return float_sqrt(type, s[0]); });
}

void test_exp(const Insn& shape) {
  check_special(shape, [](double x) { return std::exp(x); });
}
void test_log(const Insn& shape) {
  check_special(shape, [](double x) { return std::log(x); });
}
void test_rsqrt(const Insn& shape) {
  check_special(shape, [](double x) { return 1.0 / std::sqrt(x); });
}
void test_rcp(const Insn& shape) {
  check_special(shape, [](double x) { return 1.0 / x; });
}
void test_tanh(const Insn& shape) {
  check_special(shape, [](double x) { return std::tanh(x); });
}
void test_sin(const Insn& shape) {
  check_special(shape, [](double x) { return std::sin(x); });
}
void test_cos(const Insn& shape) {
  check_special(shape, [](double x) { return std::cos(x); });
}

void test_pow(const Insn& shape) {
  const Type type = shape.type;
  check_lanes(
      shape,
      [=](const uint64_t* s) {
        return std::bit_cast<uint64_t>(std::pow(number_of(type, s[0]), number_of(type, s[1])));
      },
      [=](uint64_t got, uint64_t want) { return within(type, 2.0, got, want); });
}

constexpr RowTest kTests[] = {
    {"fma", test_fma},
    {"exp", test_exp},
    {"log", test_log},
    {"sqrt", test_sqrt},
    {"rsqrt", test_rsqrt},
    {"rcp", test_rcp},
    {"tanh", test_tanh},
    {"sin", test_sin},
    {"cos", test_cos},
    {"pow", test_pow},
};

TEST_CASE("fused and special functions agree with exact floats and the host's libm") {
  run_family(kTests);
}

TEST_CASE("the measure of errors") {
  const auto bits = [](double x) { return std::bit_cast<uint64_t>(x); };
  CHECK(within(Type::kF32, 2.0, 0x3f800000, bits(1.0)));
  CHECK(within(Type::kF32, 2.0, 0x3f800002, bits(1.0)));
  CHECK(!within(Type::kF32, 2.0, 0x3f800003, bits(1.0)));
  CHECK(!within(Type::kF32, 2.0, 0x80000000, bits(0.0)));
  CHECK(!within(Type::kF32, 2.0, 0x7f7fffff, bits(INFINITY)));
  CHECK(within(Type::kF32, 2.0, 0x7f800000, bits(1e300)));
  CHECK(!within(Type::kF32, 2.0, 0x7f800000, bits(3e38)));
  CHECK(within(Type::kF32, 2.0, 1, bits(1e-46)));
  CHECK(!within(Type::kF32, 2.0, 0x7fc00001, bits(NAN)));
  CHECK(within(Type::kF16, 1.0, 0x7c00, bits(65519.0)));
}

} // namespace

std::span<const RowTest> float_tests() {
  return kTests;
}

} // namespace pto::test
