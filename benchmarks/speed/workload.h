// SPDX-License-Identifier: Apache-2.0
// The kernels whose speed is measured: inputs, launch and output, the same for the simulator, for
// plain compiled loops and for OpenCL. Inputs follow from the name alone.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <vector>

namespace pto::bench {

struct Array {
  std::string name;
  std::vector<uint8_t> bytes;
  bool is_float = true;

  template <class T> T* as() { return reinterpret_cast<T*>(bytes.data()); }
  template <class T> const T* as() const { return reinterpret_cast<const T*>(bytes.data()); }
};

/// A parameter of the kernel: an array, or the bits of a scalar.
struct Param {
  int array = -1;
  uint32_t bits = 0;
};

struct Workload {
  std::string name;
  std::string file;   // below examples/ or benchmarks/speed/
  std::string kernel; // of `file`, and of the OpenCL program
  std::vector<Array> arrays;
  std::vector<Param> params;
  std::array<uint32_t, 3> grid{1, 1, 1};
  std::array<uint32_t, 3> block{1, 1, 1};
  size_t output = 0;     // index of an array
  uint64_t elements = 0; // what a rate counts: outputs, or inputs of a reduction
  uint64_t flops = 0;    // of matrix products
  uint32_t n = 0;        // the problem's size, for the compiled loops
  /// Sum of the output: equal on all sides to some digits.
  double checksum() const;
};

/// Every name that make_workload knows.
const std::vector<std::string>& workload_names();
/// `is_small` gives a size for simulators that need a microsecond an element. Empty name: unknown.
Workload make_workload(std::string_view name, bool is_small);

/// User time of this process and time of day, in seconds.
struct Stopwatch {
  double user = user_now();
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();

  static double user_now() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec) +
           1e-6 * static_cast<double>(usage.ru_utime.tv_usec);
  }
  double user_seconds() const { return user_now() - user; }
  double wall_seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};

/// Calls run() until it took about `seconds` of user time, at least `least` times. Returns the user
/// and wall seconds of the fastest call. User time comes in ticks on some systems: calls too short
/// for it are counted together.
struct Timing {
  double user = 0;
  double wall = 0;
  unsigned calls = 0;
};
template <class Run> Timing measure(Run run, double seconds, unsigned least) {
  constexpr double kBatchSeconds = 0.05;
  Timing best;
  Stopwatch whole;
  while (best.calls < least || whole.wall_seconds() < seconds) {
    Stopwatch watch;
    unsigned batch = 0;
    do {
      run();
      ++batch;
    } while (watch.wall_seconds() < kBatchSeconds);
    const double user = watch.user_seconds() / batch;
    const double wall = watch.wall_seconds() / batch;
    best.user = best.calls == 0 || user < best.user ? user : best.user;
    best.wall = best.calls == 0 || wall < best.wall ? wall : best.wall;
    best.calls += batch;
  }
  return best;
}

/// One JSON line for benchmarks/run. `sum`: of the output, after one run; `more`: further members,
/// such as "\"cycles\": 7, ".
void print_result(const Workload& work,
                  const Timing& timing,
                  double sum,
                  const std::string& more = {});

} // namespace pto::bench
