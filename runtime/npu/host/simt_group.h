// SPDX-License-Identifier: Apache-2.0
// What a function of the interface asks of the lane that calls it and of those that came to it
// together. Private to this folder; simt_host.cc runs the lanes.
#pragma once

#include <array>
#include <cstdint>

namespace pto_host {

constexpr unsigned kWarp = 32;

/// The lanes of a warp that are at one call together, and what each of them brought.
struct Group {
  uint32_t active = 0;
  const std::array<uint64_t, kWarp>& values;
};

/// The number of the calling lane in its warp.
uint32_t own_lane();

/// Waits until all lanes that come to this call have come. `what` is its name in PTO_HOST_CYCLES.
Group collect(const char* what, uint64_t value);

/// Waits for all lanes of the block that have not ended.
void wait_for_block(const char* what);

/// Ends the launch with kTrapped.
void trap();

/// Cycles since the first launch, as PTO_HOST_CYCLES, _JITTER and _SLOW make them.
uint64_t read_clock();

} // namespace pto_host
