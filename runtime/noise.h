// SPDX-License-Identifier: Apache-2.0
// What hardware adds to the time of a run, as emulated devices have it.
#pragma once

#include "simulator/generator.h"

#include <algorithm>
#include <cstdint>

namespace pto::rt {

/// Factor on the time of run `index`: 1 with the relative standard deviation `relative`. The same
/// for the same seed and index; never so small that a clock would stand still.
[[nodiscard]] inline double noise_factor(double relative, uint64_t seed, uint64_t index) {
  if (relative == 0) {
    return 1;
  }
  const double uniform = (static_cast<double>(sim::random_bits(seed, index) >> 12) + 0.5) * 0x1p-52;
  return std::max(0.05, 1 + relative * sim::normal_quantile(uniform));
}

} // namespace pto::rt
