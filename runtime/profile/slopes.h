// SPDX-License-Identifier: Apache-2.0
// From microbenchmark totals to figures: cycles per repeat, and the latencies that chains tell.
// Private to runtime/profile/.
#pragma once

#include "runtime/profile/profile.h"
#include "runtime/profile/samples.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace pto::rt::detail {

/// Cycles per repeat of one pattern.
struct Slope {
  MicroTag tag; // repeats: of the longest kernel
  double value = 0;
  double error = 0;
  LineFit fit;        // over repeats
  uint32_t lanes = 0; // of a block
};

/// Every pattern of the profile that was measured with two lengths at least; by role, keys, variant
/// and amount. The others are named in `problems`.
[[nodiscard]] std::vector<Slope> micro_slopes(const Profile& profile,
                                              std::vector<std::string>& problems);

[[nodiscard]] const Slope* find_slope(const std::vector<Slope>& slopes,
                                      std::string_view role,
                                      std::string_view first,
                                      std::string_view second,
                                      std::string_view variant);

struct ChainLatency {
  double cycles = 0;
  double error = 0;
  std::string definition; // empty: issue to dependent issue
  std::string evidence;   // "chain of FMA.f32 with nops: 5 cycles a link"
};

/// Latency by insn key, as chains tell it; what a chain needs that is itself unknown is named in
/// `problems`.
[[nodiscard]] std::map<std::string, ChainLatency>
chain_latencies(const std::vector<Slope>& slopes, std::vector<std::string>& problems);

/// What a NOP between two insns takes by itself: as the patterns of NOP say, else its cycle.
[[nodiscard]] double spacer_cycles(const std::vector<Slope>& slopes);

/// A link of a chain with a nop behind it cannot take less than its issue and the nop.
[[nodiscard]] inline double spaced_floor(double spacer_cycles) {
  return 1 + spacer_cycles;
}

} // namespace pto::rt::detail
