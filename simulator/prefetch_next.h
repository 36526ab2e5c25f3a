// SPDX-License-Identifier: Apache-2.0
// Asking the host's cache for what the next block will access. Private to the simulator.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pto::sim {

/// The next block mostly goes on where this one stands, and its piece of an array is too short for
/// the host's own prefetching to begin. Addresses past the end do no harm.
inline void prefetch_next(const uint8_t* host, size_t bytes) {
  constexpr size_t kLineBytes = 64;
  constexpr size_t kMostBytes = 4096;
  for (size_t at = 0; at < bytes && bytes <= kMostBytes; at += kLineBytes) {
    __builtin_prefetch(host + bytes + at, 0, 2); // the second level: the first one holds registers
  }
}

} // namespace pto::sim
