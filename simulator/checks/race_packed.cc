// SPDX-License-Identifier: Apache-2.0
// Accesses of words next to each other in a packed line.
#include "simulator/checks/race_packed.h"

namespace pto::sim {

uint64_t
RaceCheck::touch_packed(PackedLine& line, uint64_t begin, uint64_t end, const Access& access) {
  const bool is_copy = (access.agent & kCopyBit) != 0;
  // Words that warps take turns at by atomics often have fences between, so other times each.
  if (access.is_atomic || (!is_copy && access.by.warp() >= PackedLine::kMaxWarps)) {
    return begin;
  }
  const unsigned first = AccessShadow::word_of(begin);
  unsigned stop = first + static_cast<unsigned>((end - begin) / AccessShadow::kWordBytes);
  const uint32_t warp = is_copy ? 0 : access.by.warp();
  const PackedLine::Shared shared = {
      is_copy ? access.agent : access.by.first_agent(), access.time, access.pc};
  PackedLine::Code slot = line.find_slot(shared);
  const bool keeps_read = keeps_read_of(access);
  PackedTouch touch(order_, line, access);
  if (stop - first > 1) {
    touch.look_at_slots(first, stop);
  }
  for (unsigned word = first; word < stop; ++word) {
    if (!touch.is_undisputed(word)) {
      stop = word;
    }
  }
  const uint64_t done = begin + (stop - first) * AccessShadow::kWordBytes;
  if (stop == first || !(access.writes || keeps_read)) {
    return done;
  }
  if (slot == 0) {
    slot = line.take_slot(shared, first, access.writes ? stop : first);
    if (slot == 0) {
      return begin;
    }
  }
  for (unsigned word = first; word < stop; ++word) {
    const uint64_t address = begin + (word - first) * AccessShadow::kWordBytes;
    const PackedLine::Code code = PackedLine::code(slot, warp, lane_of(address, access));
    if (access.writes) {
      touch.write(word, code);
    }
    if (keeps_read) {
      touch.read(word, code);
    }
  }
  return done;
}

} // namespace pto::sim
