// SPDX-License-Identifier: Apache-2.0
// Building the inputs of the measured kernels.
#include "workload.h"

#include <bit>
#include <cstdio>

namespace pto::bench {

namespace {

/// A hash of the counter: cheap, and the same everywhere.
uint32_t random_bits(uint64_t counter) {
  uint64_t x = counter * 0x9e3779b97f4a7c15U + 0x2545f4914f6cdd1dU;
  x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9U;
  return static_cast<uint32_t>((x ^ (x >> 29)) >> 16);
}

class Builder {
public:
  explicit Builder(Workload& work) : work_(work) {}

  void floats(std::string name, size_t count, float low, float high) {
    Array& array = add(std::move(name), count * 4, true);
    for (size_t i = 0; i < count; ++i) {
      const float unit = static_cast<float>(random_bits(i + seed_) >> 8) * 0x1p-24F;
      array.as<float>()[i] = low + (high - low) * unit;
    }
    seed_ += count;
  }
  void bytes(std::string name, size_t count) {
    Array& array = add(std::move(name), count, false);
    for (size_t i = 0; i < count; ++i) {
      array.bytes[i] = static_cast<uint8_t>(random_bits(i + seed_));
    }
    seed_ += count;
  }
  void words(std::string name, const std::vector<uint32_t>& values) {
    Array& array = add(std::move(name), values.size() * 4, false);
    std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  }
  void output(std::string name, size_t bytes, bool is_float) {
    work_.output = work_.arrays.size();
    add(std::move(name), bytes, is_float);
  }
  void word(uint32_t bits) { work_.params.push_back({.array = -1, .bits = bits}); }
  void number(float value) { word(std::bit_cast<uint32_t>(value)); }
  void shape(std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block) {
    work_.grid = grid;
    work_.block = block;
  }

private:
  Array& add(std::string name, size_t bytes, bool is_float) {
    work_.params.push_back({.array = static_cast<int>(work_.arrays.size())});
    work_.arrays.push_back({std::move(name), std::vector<uint8_t>(bytes), is_float});
    return work_.arrays.back();
  }

  Workload& work_;
  uint64_t seed_ = 1;
};

void vector_add(Workload& work, Builder& build, uint32_t n) {
  work.file = "examples/vector_add.pto";
  work.kernel = "vector_add";
  work.n = n;
  work.elements = n;
  build.floats("a", n, -1, 1);
  build.floats("b", n, -1, 1);
  build.output("o", size_t{n} * 4, true);
  build.word(n);
  build.shape({n / 256, 1, 1}, {256, 1, 1});
}

void saxpy(Workload& work, Builder& build, uint32_t n) {
  work.file = "examples/saxpy/saxpy.pto";
  work.kernel = "saxpy";
  work.n = n;
  work.elements = n;
  build.floats("x", n, -1, 1);
  build.floats("y", n, -1, 1);
  work.output = 1;
  build.number(0.5F);
  build.word(n);
  build.shape({n / 256 / 16, 1, 1}, {256, 1, 1});
}

void exp_log(Workload& work, Builder& build, uint32_t n) {
  work.file = "benchmarks/speed/exp_log.pto";
  work.kernel = "exp_log";
  work.n = n;
  work.elements = n;
  build.floats("x", n, -4, 4);
  build.output("y", size_t{n} * 4, true);
  build.word(n);
  build.shape({n / 256, 1, 1}, {256, 1, 1});
}

void mandelbrot(Workload& work, Builder& build, uint32_t edge) {
  work.file = "examples/mandelbrot/mandelbrot.pto";
  work.kernel = "mandelbrot";
  work.n = edge;
  work.elements = uint64_t{edge} * edge;
  build.output("out", work.elements * 4, false);
  build.word(edge);
  build.word(edge);
  build.number(-2.0F);
  build.number(-1.25F);
  build.number(2.5F / static_cast<float>(edge));
  build.number(2.5F / static_cast<float>(edge));
  build.word(192); // 57 iterations on average
  build.shape({edge / 16, edge / 16, 1}, {16, 16, 1});
}

void reduction(Workload& work, Builder& build, uint32_t n) {
  work.file = "examples/reduction/block_sum.pto";
  work.kernel = "block_sum";
  work.n = n;
  work.elements = n;
  const uint32_t blocks = n / 256 / 16;
  build.floats("x", n, 0, 1);
  build.output("sums", size_t{blocks} * 4, true);
  build.word(n);
  build.shape({blocks, 1, 1}, {256, 1, 1});
}

void histogram(Workload& work, Builder& build, uint32_t n) {
  work.file = "examples/histogram/histogram.pto";
  work.kernel = "histogram_shared";
  work.n = n;
  work.elements = n;
  build.bytes("x", n);
  build.output("bins", 256 * 4, false);
  build.word(n);
  build.shape({n / 256 / 64, 1, 1}, {256, 1, 1});
}

void transpose(Workload& work, Builder& build, uint32_t edge) {
  work.file = "examples/transpose/transpose.pto";
  work.kernel = "transpose_padded";
  work.n = edge;
  work.elements = uint64_t{edge} * edge;
  build.floats("in", work.elements, -1, 1);
  build.output("out", work.elements * 4, true);
  build.word(edge);
  build.word(edge);
  build.shape({edge / 32, edge / 32, 1}, {32, 8, 1});
}

void spmv(Workload& work, Builder& build, uint32_t rows) {
  work.file = "examples/spmv/spmv.pto";
  work.kernel = "spmv_lane";
  work.n = rows;
  std::vector<uint32_t> start{0};
  for (uint32_t i = 0; i < rows; ++i) {
    start.push_back(start.back() + 8 + random_bits(i) % 17); // 16 a row on average
  }
  std::vector<uint32_t> columns(start.back());
  for (size_t i = 0; i < columns.size(); ++i) {
    columns[i] = random_bits(i + 12345) % rows;
  }
  work.elements = columns.size(); // nonzeros
  build.floats("values", columns.size(), 0, 1);
  build.words("columns", columns);
  build.words("row_start", start);
  build.floats("x", rows, 0, 1);
  build.output("y", size_t{rows} * 4, true);
  build.word(rows);
  build.shape({rows / 256, 1, 1}, {256, 1, 1});
}

void matmul(Workload& work, Builder& build, uint32_t edge, bool is_mma) {
  work.file = is_mma ? "examples/matmul/matmul_mma.pto" : "examples/matmul/matmul_lanes.pto";
  work.kernel = is_mma ? "matmul_mma_f32" : "matmul_lanes";
  work.n = edge;
  work.elements = uint64_t{edge} * edge;
  work.flops = 2 * work.elements * edge;
  build.floats("a", work.elements, 0, 1);
  build.floats("b", work.elements, 0, 1);
  build.output("c", work.elements * 4, true);
  build.word(edge);
  build.word(edge);
  build.word(edge);
  const uint32_t tiles = edge / 64;
  build.shape({tiles, tiles, 1}, {is_mma ? 32U : 256U, 1, 1});
}

} // namespace

double Workload::checksum() const {
  const Array& array = arrays[output];
  double sum = 0;
  for (size_t i = 0; i < array.bytes.size() / 4; ++i) {
    sum += array.is_float ? array.as<float>()[i] : static_cast<double>(array.as<uint32_t>()[i]);
  }
  return sum;
}

void print_result(const Workload& work, const Timing& timing, double sum, const std::string& more) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const uint64_t peak_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  std::printf("{\"workload\": \"%s\", \"user\": %.6g, \"wall\": %.6g, \"calls\": %u, "
              "\"elements\": %llu, \"flops\": %llu, %s\"peak_bytes\": %llu, "
              "\"checksum\": %.9g}\n",
              work.name.c_str(),
              timing.user,
              timing.wall,
              timing.calls,
              static_cast<unsigned long long>(work.elements),
              static_cast<unsigned long long>(work.flops),
              more.c_str(),
              static_cast<unsigned long long>(peak_bytes),
              sum);
}

const std::vector<std::string>& workload_names() {
  static const std::vector<std::string> kNames = {"vector_add_20",
                                                  "vector_add_24",
                                                  "saxpy",
                                                  "exp_log",
                                                  "mandelbrot",
                                                  "reduction",
                                                  "histogram",
                                                  "transpose",
                                                  "spmv",
                                                  "matmul_lanes",
                                                  "matmul_mma"};
  return kNames;
}

Workload make_workload(std::string_view name, bool is_small) {
  Workload work;
  Builder build(work);
  work.name = name;
  const auto size = [&](uint32_t log2, uint32_t small_log2) {
    return 1U << (is_small ? small_log2 : log2);
  };
  if (name == "vector_add_20") {
    vector_add(work, build, size(20, 17));
  } else if (name == "vector_add_24") {
    vector_add(work, build, size(24, 18));
  } else if (name == "saxpy") {
    saxpy(work, build, size(22, 17));
  } else if (name == "exp_log") {
    exp_log(work, build, size(20, 16));
  } else if (name == "mandelbrot") {
    mandelbrot(work, build, size(10, 7));
  } else if (name == "reduction") {
    reduction(work, build, size(22, 17));
  } else if (name == "histogram") {
    histogram(work, build, size(22, 16));
  } else if (name == "transpose") {
    transpose(work, build, size(10, 8));
  } else if (name == "spmv") {
    spmv(work, build, size(16, 12));
  } else if (name == "matmul_lanes") {
    matmul(work, build, size(9, 6), false);
  } else if (name == "matmul_mma") {
    matmul(work, build, size(9, 6), true);
  } else {
    work.name.clear();
  }
  return work;
}

} // namespace pto::bench
