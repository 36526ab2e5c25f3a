// SPDX-License-Identifier: Apache-2.0
// Accesses of words next to each other in a packed line.
#include "simulator/checks/race_packed.h"

namespace pto::sim {

uint64_t
RaceCheck::touch_packed(PackedLine& line, uint64_t begin, uint64_t end, const Access& access) {
  const unsigned first = AccessShadow::word_of(begin);
  const unsigned stop = first + static_cast<unsigned>((end - begin) / AccessShadow::kWordBytes);
  const auto lane = [&](unsigned word) {
    return lane_of(begin + (word - first) * AccessShadow::kWordBytes, access);
  };
  const unsigned done = PackedTouch(order_, access).words(line, first, stop, lane);
  return begin + (done - first) * AccessShadow::kWordBytes;
}

} // namespace pto::sim
