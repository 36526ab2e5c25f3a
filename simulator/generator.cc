// SPDX-License-Identifier: Apache-2.0
// Counter-based random contents and simple sequences (algorithms in the header).
#include "simulator/generator.h"

#include "isa/error.h"
#include "isa/fmath.h"

#include <cmath>

namespace pto::sim {
namespace {

uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9U;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

unsigned precision_bits(ElementType type) {
  PTO_CHECK(type.is_float());
  if (type.element_class == ElementClass::kBrainFloat) {
    return 8;
  }
  return type.size_bytes == 2 ? 11 : type.size_bytes == 4 ? 24 : 53;
}

/// Calls value(i) for each element and stores what it returns.
template <typename Value>
void fill_real(std::span<std::byte> data, ElementType type, const Value& value) {
  const uint64_t count = data.size() / type.size_bytes;
  for (uint64_t i = 0; i < count; ++i) {
    store_real(type, value(i), data.data() + i * type.size_bytes);
  }
}
template <typename Value>
void fill_bits(std::span<std::byte> data, ElementType type, const Value& value) {
  const uint64_t count = data.size() / type.size_bytes;
  for (uint64_t i = 0; i < count; ++i) {
    store_bits(type, value(i), data.data() + i * type.size_bytes);
  }
}

double polynomial(std::span<const double> coefficients, double x) {
  double value = 0;
  for (size_t i = coefficients.size(); i-- > 0;) {
    value = value * x + coefficients[i];
  }
  return value;
}

// Coefficients of PPND16 in AS 241, constant term first: |p - 0.5| <= 0.425, then the tail for
// sqrt(-ln p) up to 5, then the far tail.
constexpr double kCentreA[] = {3.3871328727963666080e0,
                               1.3314166789178437745e+2,
                               1.9715909503065514427e+3,
                               1.3731693765509461125e+4,
                               4.5921953931549871457e+4,
                               6.7265770927008700853e+4,
                               3.3430575583588128105e+4,
                               2.5090809287301226727e+3};
constexpr double kCentreB[] = {1.0,
                               4.2313330701600911252e+1,
                               6.8718700749205790830e+2,
                               5.3941960214247511077e+3,
                               2.1213794301586595867e+4,
                               3.9307895800092710610e+4,
                               2.8729085735721942674e+4,
                               5.2264952788528545610e+3};
constexpr double kTailC[] = {1.42343711074968357734e0,
                             4.63033784615654529590e0,
                             5.76949722146069140550e0,
                             3.64784832476320460504e0,
                             1.27045825245236838258e0,
                             2.41780725177450611770e-1,
                             2.27238449892691845833e-2,
                             7.74545014278341407640e-4};
constexpr double kTailD[] = {1.0,
                             2.05319162663775882187e0,
                             1.67638483018380384940e0,
                             6.89767334985100004550e-1,
                             1.48103976427480074590e-1,
                             1.51986665636164571966e-2,
                             5.47593808499534494600e-4,
                             1.05075007164441684324e-9};
constexpr double kFarE[] = {6.65790464350110377720e0,
                            5.46378491116411436990e0,
                            1.78482653991729133580e0,
                            2.96560571828504891230e-1,
                            2.65321895265761230930e-2,
                            1.24266094738807843860e-3,
                            2.71155556874348757815e-5,
                            2.01033439929228813265e-7};
constexpr double kFarF[] = {1.0,
                            5.99832206555887937690e-1,
                            1.36929880922735805310e-1,
                            1.48753612908506148525e-2,
                            7.86869131145613259100e-4,
                            1.84631831751005468180e-5,
                            1.42151175831644588870e-7,
                            2.04426310338993978564e-15};

} // namespace

uint64_t random_bits(uint64_t seed, uint64_t index) {
  return mix(mix(seed) + (index + 1) * 0x9e3779b97f4a7c15U);
}

double normal_quantile(double p) {
  PTO_CHECK(p > 0 && p < 1);
  const double q = p - 0.5;
  if (q >= -0.425 && q <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(kCentreA, r) / polynomial(kCentreB, r);
  }
  const double tail = q < 0 ? p : 1.0 - p;
  const double r = std::sqrt(-isa::detail::log_of_normal(tail));
  const double size = r <= 5.0 ? polynomial(kTailC, r - 1.6) / polynomial(kTailD, r - 1.6)
                               : polynomial(kFarE, r - 5.0) / polynomial(kFarF, r - 5.0);
  return q < 0 ? -size : size;
}

void fill_constant(std::span<std::byte> data, ElementType type, uint64_t bits) {
  fill_bits(data, type, [=](uint64_t) { return bits; });
}

void fill_uniform_real(
    std::span<std::byte> data, ElementType type, uint64_t seed, double lo, double hi) {
  const unsigned precision = precision_bits(type);
  const double unit = 1.0 / static_cast<double>(uint64_t{1} << precision);
  const double range = hi - lo;
  fill_real(data, type, [=](uint64_t i) {
    const double u = static_cast<double>(random_bits(seed, i) >> (64 - precision)) * unit;
    return lo + range * u;
  });
}

void fill_uniform_integer(
    std::span<std::byte> data, ElementType type, uint64_t seed, uint64_t lo, uint64_t range) {
  fill_bits(data, type, [=](uint64_t i) {
    const uint64_t z = random_bits(seed, i);
    __extension__ using Wide = unsigned __int128;
    const auto scaled = static_cast<uint64_t>((static_cast<Wide>(z) * range) >> 64);
    return lo + (range == 0 ? z >> (64 - 8U * type.size_bytes) : scaled);
  });
}

void fill_normal(
    std::span<std::byte> data, ElementType type, uint64_t seed, double mean, double deviation) {
  fill_real(data, type, [=](uint64_t i) {
    const double p = (static_cast<double>(random_bits(seed, i) >> 12) + 0.5) * 0x1p-52;
    return mean + deviation * normal_quantile(p);
  });
}

void fill_iota_real(std::span<std::byte> data, ElementType type, double start, double step) {
  fill_real(data, type, [=](uint64_t i) { return start + static_cast<double>(i) * step; });
}

void fill_iota_integer(std::span<std::byte> data, ElementType type, uint64_t start, uint64_t step) {
  fill_bits(data, type, [=](uint64_t i) { return start + i * step; });
}

} // namespace pto::sim
