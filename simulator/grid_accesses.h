// SPDX-License-Identifier: Apache-2.0
// Accesses to hbm of all lanes of a launch, by affine address: whether lanes can meet. Private to
// the simulator.
//
// Two lanes meet where one writes a byte that the other one accesses, too. Of two accesses whose
// addresses go the same way over the grid (equal steps), all pairs of lanes with equal bytes are
// found digit by digit: the axes are the digits of the address, the one with the largest step
// first, and what all smaller ones can add bounds by how much it may differ. Two accesses that do
// not go the same way must lie apart.
#pragma once

#include "isa/affine.h"

#include <cstdint>
#include <vector>

namespace pto::sim {

/// More than any allocation has: what is farther apart is apart.
inline constexpr int64_t kFarBytes = int64_t{1} << 48;

class GridAccesses {
public:
  struct Access {
    isa::AffineValue at;
    uint64_t bytes = 0; // of one lane
    bool writes = false;
    uint64_t begin = 0; // bytes [begin, end) hold those of all lanes
    uint64_t end = 0;
    isa::AffineRegion region; // lanes
  };

  /// False: too many to look at.
  [[nodiscard]] bool add(Access access);

  enum class Meeting : uint8_t {
    kNone,        // no two lanes
    kWithinBlock, // lanes of one block at most
    kAny,         // cannot be ruled out for lanes of different blocks
  };
  Meeting meeting() const;

private:
  std::vector<Access> accesses_; // all different
};

} // namespace pto::sim
