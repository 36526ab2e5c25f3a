// SPDX-License-Identifier: Apache-2.0
// Array contents from a rule and a seed: the same bytes on every machine, for ever.
//
// Element i of a random array depends on seed and i alone, so a longer array begins with a shorter
// one. Its 64 random bits are those of SplitMix64 (Steele, Lea, Flood 2014) in counter form:
//   z(seed, i) = mix(mix(seed) + (i + 1) * 0x9e3779b97f4a7c15)
//   mix(x): x ^= x >> 30; x *= 0xbf58476d1ce4e5b9; x ^= x >> 27; x *= 0x94d049bb133111eb; x ^=
//   x>>31
// Uniform reals take the top p bits of z, p being the precision of the type (24 f32, 11 f16,
// 8 bf16, 53 f64), as u = bits / 2^p in [0, 1), and give lo + (hi - lo) * u, computed in double
// and rounded once; for the default [0, 1) every value is exact. Uniform integers are
// lo + floor(z * range / 2^64), where a range of 0 means all values of the type. Normal values are
// the inverse of the normal distribution (Wichura's AS 241, 1988) at ((z >> 12) + 0.5) / 2^52,
// times deviation plus mean. Nothing but IEEE +, -, *, / and sqrt is used: no libm.
#pragma once

#include "simulator/element.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace pto::sim {

/// The 64 random bits of element `index`.
[[nodiscard]] uint64_t random_bits(uint64_t seed, uint64_t index);

/// Quantile of the standard normal distribution for p in (0, 1), to about 1e-16 relative.
[[nodiscard]] double normal_quantile(double p);

/// Each of the following fills all of `data`, whose size is a multiple of the element's.
void fill_constant(std::span<std::byte> data, ElementType type, uint64_t bits);
void fill_uniform_real(
    std::span<std::byte> data, ElementType type, uint64_t seed, double lo, double hi);
void fill_uniform_integer(
    std::span<std::byte> data, ElementType type, uint64_t seed, uint64_t lo, uint64_t range);
void fill_normal(
    std::span<std::byte> data, ElementType type, uint64_t seed, double mean, double deviation);
/// start + i * step, in double and rounded once.
void fill_iota_real(std::span<std::byte> data, ElementType type, double start, double step);
/// start + i * step, modulo the width of the type.
void fill_iota_integer(std::span<std::byte> data, ElementType type, uint64_t start, uint64_t step);

} // namespace pto::sim
