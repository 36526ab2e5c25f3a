// SPDX-License-Identifier: Apache-2.0
// Going through the set bits of a word.
#pragma once

#include <cstdint>

namespace pto::sim {

/// Calls act(offset + i) for every set bit i, ascending.
template <class Act> inline void for_each_bit(uint64_t bits, unsigned offset, Act&& act) {
  while (bits != 0) {
    act(offset + static_cast<unsigned>(__builtin_ctzll(bits)));
    bits &= bits - 1;
  }
}

} // namespace pto::sim
