// SPDX-License-Identifier: Apache-2.0
// What the race check remembers of a place: the last write and two reads.
#pragma once

#include "simulator/checks/happens_before.h"

#include <array>
#include <cstdint>

namespace pto::sim {

struct AccessEntry {
  Agent agent = kNoAgent;
  uint32_t time = 0;
  uint32_t pc : 26 = 0;
  uint32_t is_line : 1 = 0; // the entry was made for a whole line
  uint32_t lane : 5 = 0;    // that accessed the cell, or the first byte of the line
  bool is_present() const { return agent != kNoAgent; }
};
static_assert(sizeof(AccessEntry) == 12);

struct AccessCell {
  AccessEntry write; // packed or split: its pc is the number of the part
  std::array<AccessEntry, 2> reads;
  uint8_t write_bytes = 0; // of a word: mask of its bytes; otherwise all
  std::array<uint8_t, 2> read_bytes{};
  bool is_write_atomic : 1 = false;
  bool is_packed : 1 = false; // a line whose words are in a PackedLine
  bool is_split : 1 = false;  // into cells of its own

  /// All bytes of a word, and nothing but atomics since the last write by something else: whatever
  /// atomic comes next cannot race with it.
  bool is_left_to_atomics() const {
    return ((write_bytes ^ 0xf) | read_bytes[0] | read_bytes[1]) == 0 && is_write_atomic &&
           !is_split;
  }
};
static_assert(sizeof(AccessCell) == 40);

} // namespace pto::sim
