// SPDX-License-Identifier: Apache-2.0
// speed_native WORKLOAD [seconds]: the same work as plain loops for this computer's processor, on
// one thread, as a C++ programmer would write them. Matrix products go to Eigen where it is
// installed.
#include "workload.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#ifdef PTO_HAS_EIGEN
#include <Eigen/Dense>
#endif

namespace pto::bench {
namespace {

void vector_add(const float* __restrict a, const float* __restrict b, float* __restrict o, int n) {
  for (int i = 0; i < n; ++i) {
    o[i] = a[i] + b[i];
  }
}

void saxpy(const float* __restrict x, float* __restrict y, float alpha, int n) {
  for (int i = 0; i < n; ++i) {
    y[i] += alpha * x[i];
  }
}

void exp_log(const float* __restrict x, float* __restrict y, int n) {
  for (int i = 0; i < n; ++i) {
    const float half = x[i] * 0.5F;
    const float e = std::exp(half);
    const float f = e * e + 1.0F;
    const float l = std::log(f);
    float p = l * 0.25F + x[i];
    p = p * l + 0.125F;
    p = p * l - 0.5F;
    p = p * l + 1.5F;
    p = p * l + e;
    p = p * half - 0.75F;
    y[i] = (p - x[i] + f) * 0.0625F;
  }
}

void mandelbrot(uint32_t* out, uint32_t edge, float x0, float y0, float step, uint32_t limit) {
  for (uint32_t row = 0; row < edge; ++row) {
    for (uint32_t col = 0; col < edge; ++col) {
      const float cx = static_cast<float>(col) * step + x0;
      const float cy = static_cast<float>(row) * step + y0;
      float re = 0;
      float im = 0;
      float re2 = 0;
      float im2 = 0;
      uint32_t count = 0;
      while (count < limit && re2 + im2 <= 4.0F) {
        im = 2 * re * im + cy;
        re = re2 - im2 + cx;
        re2 = re * re;
        im2 = im * im;
        ++count;
      }
      out[row * edge + col] = count;
    }
  }
}

// Eight sums: a plain loop may not be reordered, and would wait for each addition.
void reduction(const float* x, float* sums, int blocks) {
  std::fill_n(sums, blocks, 0.0F);
  constexpr int kPiece = 256 * 16;
  for (int b = 0; b < blocks; ++b) {
    float partial[32] = {};
    for (int i = 0; i < kPiece; i += 32) {
      for (int j = 0; j < 32; ++j) {
        partial[j] += x[b * kPiece + i + j];
      }
    }
    for (float value : partial) {
      sums[b] += value;
    }
  }
}

void histogram(const uint8_t* x, uint32_t* bins, int n) {
  for (int i = 0; i < n; ++i) {
    ++bins[x[i]];
  }
}

void transpose(const float* __restrict in, float* __restrict out, int edge) {
  constexpr int kTile = 32;
  for (int row = 0; row < edge; row += kTile) {
    for (int col = 0; col < edge; col += kTile) {
      for (int j = col; j < col + kTile; ++j) {
        for (int i = row; i < row + kTile; ++i) {
          out[j * edge + i] = in[i * edge + j];
        }
      }
    }
  }
}

void spmv(const float* values,
          const uint32_t* columns,
          const uint32_t* start,
          const float* x,
          float* y,
          uint32_t rows) {
  for (uint32_t row = 0; row < rows; ++row) {
    float sum = 0;
    for (uint32_t i = start[row]; i < start[row + 1]; ++i) {
      sum += values[i] * x[columns[i]];
    }
    y[row] = sum;
  }
}

void matmul(const float* a, const float* b, float* c, int n) {
#ifdef PTO_HAS_EIGEN
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Eigen::Map<Matrix>(c, n, n).noalias() =
      Eigen::Map<const Matrix>(a, n, n) * Eigen::Map<const Matrix>(b, n, n);
#else
  std::fill_n(c, n * n, 0.0F);
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < n; ++k) {
      for (int j = 0; j < n; ++j) {
        c[i * n + j] += a[i * n + k] * b[k * n + j];
      }
    }
  }
#endif
}

void run_once(Workload& work) {
  const int n = static_cast<int>(work.n);
  std::vector<Array>& at = work.arrays;
  const std::string& kernel = work.kernel;
  if (kernel == "vector_add") {
    vector_add(at[0].as<float>(), at[1].as<float>(), at[2].as<float>(), n);
  } else if (kernel == "saxpy") {
    saxpy(at[0].as<float>(), at[1].as<float>(), 0.5F, n);
  } else if (kernel == "exp_log") {
    exp_log(at[0].as<float>(), at[1].as<float>(), n);
  } else if (kernel == "mandelbrot") {
    const float step = 2.5F / static_cast<float>(n);
    mandelbrot(at[0].as<uint32_t>(), work.n, -2.0F, -1.25F, step, 192);
  } else if (kernel == "block_sum") {
    reduction(at[0].as<float>(), at[1].as<float>(), n / 4096);
  } else if (kernel == "histogram_shared") {
    histogram(at[0].bytes.data(), at[1].as<uint32_t>(), n);
  } else if (kernel == "transpose_padded") {
    transpose(at[0].as<float>(), at[1].as<float>(), n);
  } else if (kernel == "spmv_lane") {
    spmv(at[0].as<float>(),
         at[1].as<uint32_t>(),
         at[2].as<uint32_t>(),
         at[3].as<float>(),
         at[4].as<float>(),
         work.n);
  } else {
    matmul(at[0].as<float>(), at[1].as<float>(), at[2].as<float>(), n);
  }
}

} // namespace
} // namespace pto::bench

int main(int argc, char** argv) {
  using namespace pto::bench;
  Workload work = make_workload(argc > 1 ? argv[1] : "", false);
  if (work.name.empty()) {
    std::fprintf(stderr, "usage: speed_native WORKLOAD [SECONDS]\n");
    return 2;
  }
  run_once(work);
  const double sum = work.checksum();
  const Timing timing =
      measure([&] { run_once(work); }, argc > 2 ? std::strtod(argv[2], nullptr) : 0.5, 3);
  print_result(work, timing, sum);
  return 0;
}
