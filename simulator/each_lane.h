// SPDX-License-Identifier: Apache-2.0
// Going through the active lanes of warps.
#pragma once

#include "isa/insn.h"

#include <cstdint>

namespace pto::sim {

/// Calls act(lane) for every set bit of the words, ascending.
template <class Act> inline void for_each_lane(const uint32_t* words, unsigned warps, Act&& act) {
  for (unsigned w = 0; w < warps; ++w) {
    uint32_t word = words[w];
    const unsigned base = w * isa::kWarpLanes;
    if (word == ~0u) {
      for (unsigned i = 0; i < isa::kWarpLanes; ++i) {
        act(base + i);
      }
      continue;
    }
    while (word != 0) {
      act(base + static_cast<unsigned>(__builtin_ctz(word)));
      word &= word - 1;
    }
  }
}

} // namespace pto::sim
