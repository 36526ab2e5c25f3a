// SPDX-License-Identifier: Apache-2.0
// Lanes of a warp as text.
#include "simulator/lane_ranges.h"

#include "isa/insn.h"

#include <fmt/format.h>

namespace pto::sim {

std::string lane_ranges(uint32_t mask, std::string_view separator, uint32_t first) {
  std::string text;
  for (unsigned i = 0; i < isa::kWarpLanes;) {
    if (((mask >> i) & 1) == 0) {
      ++i;
      continue;
    }
    unsigned last = i;
    while (last + 1 < isa::kWarpLanes && ((mask >> (last + 1)) & 1) != 0) {
      ++last;
    }
    text += text.empty() ? std::string_view() : separator;
    text +=
        i == last ? fmt::format("{}", first + i) : fmt::format("{}-{}", first + i, first + last);
    i = last + 1;
  }
  return text;
}

} // namespace pto::sim
