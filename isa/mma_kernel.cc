// SPDX-License-Identifier: Apache-2.0
// The order of each element's sum is fixed, so a faster kernel may only change which elements are
// worked on side by side: six rows by sixteen columns of C stay in registers while k runs, and the
// panel of B that they need is copied together first, because rows of B that are a power of two
// apart share the few sets of a cache. What is left at the right edge goes through masked loads.
//
// Canonical NaNs are made at the end: a NaN sum stays one whatever is added.
#include "isa/mma_kernel.h"

#include "isa/float32.h"
#include "isa/host_level.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

namespace pto::isa {

namespace detail {

void multiply_floats_portably(float* c, const float* a, const float* b, const MmaShape& s) {
  constexpr uint64_t kStrip = 256; // columns of C held at a time
  float sums[kStrip];
  for (uint64_t i = 0; i < s.m; ++i) {
    for (uint64_t from = 0; from < s.n; from += kStrip) {
      const uint64_t width = std::min(kStrip, s.n - from);
      float* out = c + i * s.ldc + from;
      std::copy_n(out, width, sums);
      for (uint64_t k = 0; k < s.k; ++k) {
        const float left = a[i * s.lda + k];
        const float* row = b + k * s.ldb + from;
        for (uint64_t j = 0; j < width; ++j) {
          sums[j] = fused(left, row[j], sums[j]);
        }
      }
      std::copy_n(sums, width, out);
    }
  }
}

} // namespace detail

#if defined(__x86_64__) && defined(__GNUC__)

namespace {

constexpr int kPanelRows = 6;
constexpr int kPanelColumns = 16;

PTO_AVX2 inline __m256 canonical_of(__m256 x) {
  const __m256 nan = _mm256_set1_ps(kCanonicalNan);
  return _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

// A row of C for each of kRow, 16 columns; `b` are rows of 16, `ldb` apart. Sums are indexed by
// constants only, so that they stay in registers.
template <int... kRow>
PTO_AVX2 void multiply_panel(std::integer_sequence<int, kRow...> /*rows*/,
                             float* c,
                             const float* a,
                             const float* b,
                             uint64_t ldb,
                             const MmaShape& s) {
  const uint64_t ldc = s.ldc;
  const uint64_t lda = s.lda;
  const float* end = a + s.k;
  __m256 low[] = {_mm256_loadu_ps(c + kRow * ldc)...};
  __m256 high[] = {_mm256_loadu_ps(c + kRow * ldc + 8)...};
  __m256 left;
  for (; a != end; ++a, b += ldb) {
    const __m256 b_low = _mm256_loadu_ps(b);
    const __m256 b_high = _mm256_loadu_ps(b + 8);
    ((left = _mm256_broadcast_ss(a + kRow * lda),
      low[kRow] = _mm256_fmadd_ps(left, b_low, low[kRow]),
      high[kRow] = _mm256_fmadd_ps(left, b_high, high[kRow])),
     ...);
  }
  ((_mm256_storeu_ps(c + kRow * ldc, canonical_of(low[kRow])),
    _mm256_storeu_ps(c + kRow * ldc + 8, canonical_of(high[kRow]))),
   ...);
}

template <int kRows>
PTO_AVX2 void
multiply_rows(float* c, const float* a, const float* b, uint64_t ldb, const MmaShape& s) {
  multiply_panel(std::make_integer_sequence<int, kRows>{}, c, a, b, ldb, s);
}

// kRows by up to 8 of C, `width` columns.
template <int kRows>
PTO_AVX2 void
multiply_edge(float* c, const float* a, const float* b, int width, const MmaShape& s) {
  const __m256i mask =
      _mm256_cmpgt_epi32(_mm256_set1_epi32(width), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  __m256 sums[kRows];
  for (int i = 0; i < kRows; ++i) {
    sums[i] = _mm256_maskload_ps(c + static_cast<uint64_t>(i) * s.ldc, mask);
  }
  for (uint64_t k = 0; k < s.k; ++k) {
    const __m256 row = _mm256_maskload_ps(b + k * s.ldb, mask);
    for (int i = 0; i < kRows; ++i) {
      const __m256 left = _mm256_broadcast_ss(a + static_cast<uint64_t>(i) * s.lda + k);
      sums[i] = _mm256_fmadd_ps(left, row, sums[i]);
    }
  }
  for (int i = 0; i < kRows; ++i) {
    _mm256_maskstore_ps(c + static_cast<uint64_t>(i) * s.ldc, mask, canonical_of(sums[i]));
  }
}

using Panel = void (*)(float*, const float*, const float*, uint64_t, const MmaShape&);
using Edge = void (*)(float*, const float*, const float*, int, const MmaShape&);
constexpr Panel kPanels[] = {&multiply_rows<1>,
                             &multiply_rows<2>,
                             &multiply_rows<3>,
                             &multiply_rows<4>,
                             &multiply_rows<5>,
                             &multiply_rows<6>};
constexpr Edge kEdges[] = {&multiply_edge<1>,
                           &multiply_edge<2>,
                           &multiply_edge<3>,
                           &multiply_edge<4>,
                           &multiply_edge<5>,
                           &multiply_edge<6>};

/// True if k rows of a panel, `ldb` floats apart, stay in a first-level cache of 64 sets with room
/// for the rest: then a copy of the panel is not worth its time.
bool panel_fits_cache(uint64_t k, uint64_t ldb) {
  constexpr uint64_t kLineFloats = 16;
  constexpr uint64_t kSets = 64;
  constexpr uint64_t kWaysForPanel = 4;
  if (ldb % kLineFloats != 0) {
    return k <= kSets * kWaysForPanel / 2; // rows spread over the sets, and over two lines each
  }
  const uint64_t sets = kSets / std::gcd(kSets, ldb / kLineFloats);
  return k <= sets * kWaysForPanel;
}

PTO_AVX2 void pack_panel(float* packed, const float* b, uint64_t ldb, uint64_t k) {
  for (uint64_t i = 0; i < k; ++i) {
    _mm256_storeu_ps(packed + i * kPanelColumns, _mm256_loadu_ps(b + i * ldb));
    _mm256_storeu_ps(packed + i * kPanelColumns + 8, _mm256_loadu_ps(b + i * ldb + 8));
  }
}

void multiply_with_fma(float* c, const float* a, const float* b, const MmaShape& s) {
  constexpr uint64_t kWorthPacking = 2 * kPanelRows; // rows of C that share a panel of B
  const bool packs = s.m >= kWorthPacking && !panel_fits_cache(s.k, s.ldb);
  std::vector<float> packed(packs ? s.k * kPanelColumns : 0);
  uint64_t column = 0;
  for (; column + kPanelColumns <= s.n; column += kPanelColumns) {
    const float* panel = b + column;
    uint64_t panel_ld = s.ldb;
    if (!packed.empty()) {
      pack_panel(packed.data(), b + column, s.ldb, s.k);
      panel = packed.data();
      panel_ld = kPanelColumns;
    }
    for (uint64_t i = 0; i < s.m; i += kPanelRows) {
      const uint64_t rows = std::min<uint64_t>(kPanelRows, s.m - i);
      kPanels[rows - 1](c + i * s.ldc + column, a + i * s.lda, panel, panel_ld, s);
    }
  }
  for (; column < s.n; column += 8) {
    const int width = static_cast<int>(std::min<uint64_t>(8, s.n - column));
    for (uint64_t i = 0; i < s.m; i += kPanelRows) {
      const uint64_t rows = std::min<uint64_t>(kPanelRows, s.m - i);
      kEdges[rows - 1](c + i * s.ldc + column, a + i * s.lda, b + column, width, s);
    }
  }
}

} // namespace

#endif

void multiply_floats(float* c, const float* a, const float* b, const MmaShape& shape) {
#if defined(__x86_64__) && defined(__GNUC__)
  if (host_level() >= HostLevel::kAvx2) {
    multiply_with_fma(c, a, b, shape);
    return;
  }
#endif
  detail::multiply_floats_portably(c, a, b, shape);
}

} // namespace pto::isa
