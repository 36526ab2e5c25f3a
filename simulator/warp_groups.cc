// SPDX-License-Identifier: Apache-2.0
// Warps as text.
#include "simulator/warp_groups.h"

#include <fmt/format.h>

namespace pto::sim {

std::string list_warps(const std::vector<uint32_t>& warps) {
  std::string text = warps.size() == 1 ? "warp " : "warps ";
  for (size_t i = 0; i < warps.size();) {
    size_t last = i;
    while (last + 1 < warps.size() && warps[last + 1] == warps[last] + 1) {
      ++last;
    }
    text += i == 0 ? "" : ", ";
    text += i == last ? fmt::format("{}", warps[i]) : fmt::format("{}-{}", warps[i], warps[last]);
    i = last + 1;
  }
  return text;
}

} // namespace pto::sim
