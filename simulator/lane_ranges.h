// SPDX-License-Identifier: Apache-2.0
// Lanes of a warp as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pto::sim {

/// The set bits of the mask, neighbours joined: "0-15,17" with separator ",". Empty for no lane.
/// `first` is the number of the lane that bit 0 stands for.
[[nodiscard]] std::string
lane_ranges(uint32_t mask, std::string_view separator, uint32_t first = 0);

} // namespace pto::sim
