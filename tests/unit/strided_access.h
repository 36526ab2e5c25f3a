// SPDX-License-Identifier: Apache-2.0
// Addresses of a warp in even steps.
#pragma once

#include "isa/insn.h"
#include "simulator/timing/coalesce.h"

#include <array>
#include <cstdint>

namespace pto::sim::test {

/// Lane i at from + i * stride.
struct Strided {
  std::array<uint64_t, isa::kWarpLanes> addresses{};
  Strided(uint64_t from, uint64_t stride) {
    for (unsigned i = 0; i < addresses.size(); ++i) {
      addresses[i] = from + i * stride;
    }
  }
  /// Valid as long as the object.
  [[nodiscard]] WarpAddresses access(uint32_t bytes, uint32_t mask = ~0u) const {
    return {mask, addresses.data(), bytes};
  }
};

} // namespace pto::sim::test
