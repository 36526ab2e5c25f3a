// SPDX-License-Identifier: Apache-2.0
// Values of each type, seen as mathematics sees them: the second implementation that semantics are
// compared with. Integers are 128 bits wide, f16 and bf16 exact integers, f32 the host's double
// arithmetic, whose 53 bits round a sum, product, quotient or root of f32 as one rounding would.
#pragma once

#include "../unit/exact_float.h"
#include "isa/types.h"

#include <cstdint>
#include <vector>

namespace pto::test {

__extension__ using Int128 = __int128;

/// The integer that the low bits of a register stand for.
Int128 integer_of(isa::Type type, uint64_t slot);
/// The register that holds an integer wrapped to the type.
uint64_t slot_of(isa::Type type, Int128 value);
/// The value of a float type, exactly.
double number_of(isa::Type type, uint64_t slot);
bool is_nan(isa::Type type, uint64_t slot);
uint64_t canonical_nan(isa::Type type);
/// A double that the float type can hold, or a NaN, as a register.
uint64_t slot_of_number(isa::Type type, double value);
/// A double rounded to the float type.
uint64_t slot_of_rounded(isa::Type type, double value, isa::Rounding mode);
/// An integer rounded to the float type.
uint64_t slot_of_rounded(isa::Type type, Int128 value, isa::Rounding mode);
/// The nearest integral value in the mode's direction.
double integral_of(double value, isa::Rounding mode);

// a + b and so on of f16, bf16, f32 or, on both halves, f16x2.
uint64_t float_add(isa::Type type, uint64_t a, uint64_t b);
uint64_t float_mul(isa::Type type, uint64_t a, uint64_t b);
uint64_t float_div(isa::Type type, uint64_t a, uint64_t b);
uint64_t float_fma(isa::Type type, uint64_t a, uint64_t b, uint64_t c);
uint64_t float_sqrt(isa::Type type, uint64_t a);
uint64_t float_least(isa::Type type, uint64_t a, uint64_t b, bool greatest);
uint64_t float_negated(isa::Type type, uint64_t a);
uint64_t float_magnitude(isa::Type type, uint64_t a);

/// Zeros, ones, extremes, powers of two, subnormals, infinities, NaNs, shift counts past any width.
std::vector<uint64_t> edge_values(isa::Type type);
/// The most telling of them, for products over three operands.
std::vector<uint64_t> few_edge_values(isa::Type type);
/// Uniform bits, small integers and edge values in turn; bits above a narrow type may be anything.
uint64_t random_value(isa::Type type, Random& random);

} // namespace pto::test
