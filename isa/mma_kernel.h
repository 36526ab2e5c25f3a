// SPDX-License-Identifier: Apache-2.0
// The arithmetic of MMA for float kinds: C[i][j] = fma(A[i][k], B[k][j], C[i][j]), k ascending.
#pragma once

#include <cstdint>

namespace pto::isa {

/// Sizes and leading dimensions, in elements; none of them 0, lda >= k, ldb >= n, ldc >= n.
struct MmaShape {
  uint64_t m, n, k, lda, ldb, ldc;
};

/// A and B do not overlap C. Every host gives the same bits, NaNs are canonical.
void multiply_floats(float* c, const float* a, const float* b, const MmaShape& shape);

namespace detail {

/// What multiply_floats does where the host has no fused multiply-add; tests compare the two.
void multiply_floats_portably(float* c, const float* a, const float* b, const MmaShape& shape);

} // namespace detail

} // namespace pto::isa
