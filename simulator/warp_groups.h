// SPDX-License-Identifier: Apache-2.0
// Warps of a block that stand alike, told of together. Private to the simulator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pto::sim {

/// Warps by a key, in the order of the lowest warp of each.
template <class Key> class WarpGroups {
public:
  void add(const Key& key, uint32_t warp) {
    const auto found = std::find_if(
        groups_.begin(), groups_.end(), [&](const auto& group) { return group.first == key; });
    if (found != groups_.end()) {
      found->second.push_back(warp);
    } else {
      groups_.push_back({key, {warp}});
    }
  }
  auto begin() const { return groups_.begin(); }
  auto end() const { return groups_.end(); }

private:
  std::vector<std::pair<Key, std::vector<uint32_t>>> groups_;
};

/// "warp 3", "warps 0-7, 9"; ascending.
[[nodiscard]] std::string list_warps(const std::vector<uint32_t>& warps);

} // namespace pto::sim
