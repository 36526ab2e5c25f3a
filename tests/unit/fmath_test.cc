// SPDX-License-Identifier: Apache-2.0
// Special functions: special values, error bounds against the host's libm, the same bits for ever.
#include "exact_float.h"
#include "isa/fmath.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace pto::isa {
namespace {

using test::Random;

using Function = float (*)(float);
using Reference = double (*)(double);

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Row {
  const char* name;
  Function function;
  Reference reference;
  std::uint32_t checksum; // of the results for a fixed sample, the same on every host
};

// libm in double is far closer to the exact value than the bound that is asserted.
constexpr std::array kRows = {
    Row{"exp", exp, [](double x) { return std::exp(x); }, 0x7c3eac69U},
    Row{"log", log, [](double x) { return std::log(x); }, 0xaaea9a93U},
    Row{"sin", sin, [](double x) { return std::sin(x); }, 0x092bdb92U},
    Row{"cos", cos, [](double x) { return std::cos(x); }, 0x20fe6122U},
    Row{"tanh", tanh, [](double x) { return std::tanh(x); }, 0xf6dd7e3eU},
    Row{"rsqrt", rsqrt, [](double x) { return 1.0 / std::sqrt(x); }, 0xa76076edU},
    Row{"rcp", rcp, [](double x) { return 1.0 / x; }, 0x3ed7becdU},
};

std::uint32_t bits_of(float x) {
  return std::bit_cast<std::uint32_t>(x);
}

/// The distance of adjacent f32 at that magnitude.
double ulp_at(double x) {
  const double size = std::min(std::max(std::abs(x), 0x1p-126), 0x1.fffffep127);
  int exponent = 0;
  std::frexp(size, &exponent);
  return std::ldexp(1.0, exponent - 24);
}

/// The error in ulp; huge if a NaN, an infinity or a sign is wrong.
double error_ulp(float got, double want) {
  constexpr double kWrong = 1e9;
  if (std::isnan(want)) {
    return bits_of(got) == 0x7fc00000U ? 0.0 : kWrong;
  }
  const auto nearest = static_cast<float>(want);
  if (std::signbit(got) != std::signbit(nearest)) {
    return kWrong;
  }
  if (std::isinf(got) || std::isinf(nearest)) {
    return got == nearest ? 0.0 : kWrong;
  }
  return std::abs(static_cast<double>(got) - want) / ulp_at(want);
}

struct Worst {
  double ulp = 0;
  float at = 0;
  void update(float x, double error) {
    if (error > ulp) {
      ulp = error;
      at = x;
    }
  }
};

Worst worst_of(const Row& row, const std::vector<float>& inputs) {
  Worst worst;
  for (const float x : inputs) {
    worst.update(x, error_ulp(row.function(x), row.reference(x)));
  }
  return worst;
}

/// Around every power of two, every small multiple of pi/4, and the limits of exp.
std::vector<float> edge_inputs() {
  std::vector<std::uint32_t> centres = {0, 0x7f800000U, 0x7fc00000U, 0x7f800001U};
  for (std::uint32_t exponent = 0; exponent < 255; ++exponent) {
    centres.push_back(exponent << 23);
    centres.push_back((exponent << 23) | 0x3504f3U); // sqrt(2)
  }
  for (int i = 1; i < 2000; ++i) {
    centres.push_back(bits_of(static_cast<float>(i * 0.78539816339744831)));
    centres.push_back(bits_of(static_cast<float>(i * 0.34657359027997265)));
  }
  for (const float x : {88.72284F, 87.33655F, 103.97208F, 103.27893F, 9.01091F, 1048576.0F}) {
    centres.push_back(bits_of(x));
  }
  std::vector<float> inputs;
  for (const std::uint32_t centre : centres) {
    for (std::uint32_t offset = 0; offset < 7; ++offset) {
      const std::uint32_t bits = (centre + offset - 3) & 0x7fffffffU;
      inputs.push_back(std::bit_cast<float>(bits));
      inputs.push_back(std::bit_cast<float>(bits | 0x80000000U));
    }
  }
  return inputs;
}

/// Half over all bit patterns, half between 2^-12 and 2^12.
std::vector<float> random_inputs(int count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> inputs;
  for (int i = 0; i < count; ++i) {
    const std::uint32_t bits = random.bits32();
    const std::uint32_t exponent = 115 + (bits >> 8) % 24;
    const std::uint32_t moderate = (random.bits32() & 0x807fffffU) | (exponent << 23);
    inputs.push_back(std::bit_cast<float>(i % 2 == 0 ? bits : moderate));
  }
  return inputs;
}

TEST_CASE("errors stay below 0.51 ulp") {
  const std::vector<float> edges = edge_inputs();
  const std::vector<float> samples = random_inputs(1000000, 31);
  for (const Row& row : kRows) {
    CAPTURE(std::string(row.name));
    for (const std::vector<float>* inputs : {&edges, &samples}) {
      const Worst worst = worst_of(row, *inputs);
      CAPTURE(bits_of(worst.at));
      CHECK(worst.ulp < 0.51);
    }
  }
}

// Takes minutes a function: fmath_test --no-skip -tc="*every f32*".
TEST_CASE("errors stay below 0.51 ulp for every f32" * doctest::skip()) {
  for (const Row& row : kRows) {
    Worst worst;
    for (std::uint64_t bits = 0; bits <= 0xffffffffU; ++bits) {
      const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      worst.update(x, error_ulp(row.function(x), row.reference(x)));
    }
    MESSAGE(row.name << ": " << worst.ulp << " ulp at " << worst.at);
    CHECK(worst.ulp < 0.51);
  }
}

TEST_CASE("sin and cos near multiples of pi/2 and where the reduction changes") {
  // 16367173 * 2^72 is the f32 nearest to such a multiple, 2^-29.2 away.
  for (const float x : {0x1.921fb6p+0F,
                        0x1.921fb6p+1F,
                        0x1.2d97c8p+2F,
                        16367173.0F * 0x1p72F,
                        0x1.fffffep+19F,
                        0x1p20F,
                        0x1.000002p+20F,
                        0x1p127F,
                        0x1.fffffep+127F}) {
    CAPTURE(x);
    CHECK(error_ulp(sin(x), std::sin(static_cast<double>(x))) < 0.51);
    CHECK(error_ulp(cos(x), std::cos(static_cast<double>(x))) < 0.51);
    CHECK(bits_of(sin(-x)) == bits_of(-sin(x)));
    CHECK(bits_of(cos(-x)) == bits_of(cos(x)));
  }
}

TEST_CASE("special values as in C99 Annex F") {
  const auto check = [](float got, float want) { CHECK(bits_of(got) == bits_of(want)); };
  check(exp(0.0F), 1.0F);
  check(exp(-0.0F), 1.0F);
  check(exp(kInfinity), kInfinity);
  check(exp(-kInfinity), 0.0F);
  check(exp(1.0F), 2.7182817F);
  check(exp(-104.0F), 0.0F);
  check(exp(-103.9F), 0x1p-149F);
  check(log(0.0F), -kInfinity);
  check(log(-0.0F), -kInfinity);
  check(log(1.0F), 0.0F);
  check(log(kInfinity), kInfinity);
  check(log(-1.0F), kCanonicalNan);
  check(log(-kInfinity), kCanonicalNan);
  check(log(0x1p-149F), -103.27893F);
  check(sin(-0.0F), -0.0F);
  check(sin(0x1p-149F), 0x1p-149F);
  check(sin(kInfinity), kCanonicalNan);
  check(cos(-kInfinity), kCanonicalNan);
  check(cos(0.0F), 1.0F);
  check(tanh(-0.0F), -0.0F);
  check(tanh(kInfinity), 1.0F);
  check(tanh(-kInfinity), -1.0F);
  check(tanh(-0x1p-149F), -0x1p-149F);
  check(rsqrt(0.0F), kInfinity);
  check(rsqrt(-0.0F), -kInfinity);
  check(rsqrt(kInfinity), 0.0F);
  check(rsqrt(4.0F), 0.5F);
  check(rsqrt(-1.0F), kCanonicalNan);
  check(rcp(-0.0F), -kInfinity);
  check(rcp(-kInfinity), -0.0F);
  check(rcp(3.0F), 0x1.555556p-2F);
  const float nan = std::bit_cast<float>(0xff812345U);
  for (const Row& row : kRows) {
    check(row.function(nan), kCanonicalNan);
  }
}

TEST_CASE("pow of every pair of special values") {
  const std::array<float, 28> values = {0.0F,
                                        0x1p-149F,
                                        0x1p-126F,
                                        0.25F,
                                        0.5F,
                                        0x1.fffffep-1F,
                                        1.0F,
                                        0x1.000002p0F,
                                        1.5F,
                                        2.0F,
                                        2.5F,
                                        3.0F,
                                        4.0F,
                                        5.5F,
                                        127.0F,
                                        128.0F,
                                        149.0F,
                                        150.0F,
                                        151.0F,
                                        0x1.fffffep22F,
                                        0x1.000002p23F,
                                        0x1.fffffep23F,
                                        0x1p24F,
                                        0x1.8p24F,
                                        0x1.fffffep127F,
                                        kInfinity,
                                        std::numeric_limits<float>::quiet_NaN(),
                                        10.0F};
  for (const float x_size : values) {
    for (const float y_size : values) {
      for (const float x : {x_size, -x_size}) {
        for (const float y : {y_size, -y_size}) {
          const double want = std::pow(static_cast<double>(x), static_cast<double>(y));
          const float got = pow(x, y);
          if (!(error_ulp(got, want) < 0.51)) {
            CAPTURE(x);
            CAPTURE(y);
            CHECK(got == want);
          }
        }
      }
    }
  }
}

TEST_CASE("pow stays below 0.51 ulp") {
  const std::vector<float> x = random_inputs(1000000, 32);
  const std::vector<float> y = random_inputs(1000000, 33);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float base = i % 4 < 3 ? std::abs(x[i]) : x[i];
    const float power = i % 8 < 4 ? y[i] : std::nearbyint(y[i]);
    const double want = std::pow(static_cast<double>(base), static_cast<double>(power));
    worst = std::max(worst, error_ulp(pow(base, power), want));
  }
  CHECK(worst < 0.51);
}

TEST_CASE("f16 functions for all values: f32, then rounded") {
  const auto check = [](F16 got, float want) {
    if (got.bits != narrow<F16>(want).bits) {
      CHECK(got.bits == narrow<F16>(want).bits);
    }
  };
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const F16 x{static_cast<std::uint16_t>(bits)};
    const float wide = widen(x);
    check(exp(x), exp(wide));
    check(log(x), log(wide));
    check(sin(x), sin(wide));
    check(cos(x), cos(wide));
    check(tanh(x), tanh(wide));
    check(rsqrt(x), rsqrt(wide));
    check(rcp(x), rcp(wide));
  }
  CHECK(exp(F16{0x3c00}).bits == 0x4170); // e = 2.71875
  CHECK(sin(F16{0x7c00}).bits == 0x7e00);
  CHECK(tanh(F16{0xfc01}).bits == 0x7e00);
}

TEST_CASE("sin and cos over spans are those of each element, also in place") {
  std::vector<float> inputs = random_inputs(1000, 34);
  inputs.insert(inputs.end(), {kInfinity, -kInfinity, kCanonicalNan, 0x1p20F, -0x1p100F, -0.0F});
  std::vector<float> sines(inputs.size());
  std::vector<float> cosines = inputs;
  sin(inputs, sines);
  cos(cosines, cosines);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    CHECK(bits_of(sines[i]) == bits_of(sin(inputs[i])));
    CHECK(bits_of(cosines[i]) == bits_of(cos(inputs[i])));
  }
}

#if defined(__x86_64__)
__attribute__((target("fma"))) float hardware_fused(float a, float b, float c) {
  return canonical(__builtin_fmaf(a, b, c));
}

TEST_CASE("fused has the bits of the hardware's multiply-add") {
  if (!__builtin_cpu_supports("fma")) {
    MESSAGE("this processor has no FMA: nothing to compare with");
    return;
  }
  const std::vector<float> edges = {0.0F,
                                    0x1p-149F,
                                    0x1p-126F,
                                    1.0F,
                                    0x1.000002p0F,
                                    0x1p-24F,
                                    0x1p-23F,
                                    0x1.fffffep127F,
                                    kInfinity,
                                    3.0F,
                                    0x1.8p-75F,
                                    0x1p-74F,
                                    kCanonicalNan};
  std::uint64_t differences = 0;
  const auto check = [&](float a, float b, float c) {
    differences += bits_of(fused(a, b, c)) != bits_of(hardware_fused(a, b, c)) ? 1U : 0U;
  };
  for (const float a : edges) {
    for (const float b : edges) {
      for (const float c : edges) {
        for (unsigned signs = 0; signs < 4; ++signs) {
          check((signs & 1) != 0 ? -a : a, b, (signs & 2) != 0 ? -c : c);
        }
      }
    }
  }
  const std::vector<float> a = random_inputs(1000000, 35);
  const std::vector<float> b = random_inputs(1000000, 36);
  const std::vector<float> c = random_inputs(1000000, 37);
  for (std::size_t i = 0; i < a.size(); ++i) {
    check(a[i], b[i], c[i]);
    check(a[i], b[i], -(a[i] * b[i])); // cancels to the rounding error of the product
  }
  CHECK(differences == 0);
}
#endif

TEST_CASE("the same bits on every host and compiler") {
  const std::vector<float> inputs = random_inputs(20000, 38);
  const auto mix = [](std::uint32_t sum, float x) { return (sum ^ bits_of(x)) * 0x01000193U; };
  for (const Row& row : kRows) {
    std::uint32_t sum = 0x811c9dc5U;
    for (const float x : inputs) {
      sum = mix(sum, row.function(x));
    }
    CAPTURE(std::string(row.name));
    CHECK(sum == row.checksum);
  }
  std::uint32_t sum = 0x811c9dc5U;
  for (std::size_t i = 0; i + 2 < inputs.size(); ++i) {
    sum = mix(sum, pow(std::abs(inputs[i]), inputs[i + 1]));
    sum = mix(sum, fused(inputs[i], inputs[i + 1], inputs[i + 2]));
  }
  CHECK(sum == 0xb11098ebU);
}

} // namespace
} // namespace pto::isa
