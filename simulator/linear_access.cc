// SPDX-License-Identifier: Apache-2.0
#include "simulator/linear_access.h"

#include <algorithm>
#include <cstdlib>

namespace pto::sim {

using isa::LinearValue;

std::optional<AccessRange>
linear_range_of(const LinearValue& at, uint32_t access_bytes, unsigned warps) {
  const auto lane_step = static_cast<int64_t>(at.lane_step);
  const auto warp_step = static_cast<int64_t>(at.warp_step);
  const int64_t most_step = (int64_t{1} << 61) / std::max(isa::kWarpLanes, warps);
  if (lane_step > most_step || lane_step < -most_step || warp_step > most_step ||
      warp_step < -most_step ||
      ((at.base | at.lane_step | at.warp_step) & (access_bytes - 1)) != 0) {
    return std::nullopt;
  }
  const int64_t over_lanes = lane_step * (isa::kWarpLanes - 1);
  const int64_t over_warps = warp_step * (int64_t{warps} - 1);
  const int64_t below = std::min<int64_t>(0, over_lanes) + std::min<int64_t>(0, over_warps);
  return AccessRange{.lowest = at.base + static_cast<uint64_t>(below),
                     .bytes = static_cast<uint64_t>(std::abs(over_lanes) + std::abs(over_warps)) +
                              access_bytes,
                     .before_first = static_cast<uint64_t>(-below)};
}

bool is_one_run(const LinearValue& at, uint32_t access_bytes, unsigned warps) {
  return at.lane_step == access_bytes &&
         (warps == 1 || at.warp_step == at.lane_step * isa::kWarpLanes);
}

} // namespace pto::sim
