// SPDX-License-Identifier: Apache-2.0
// Who last wrote and read each byte of a memory: the shadow that the race check compares with.
//
// Bytes are kept four to a word (40 bytes of shadow a word that was touched, 10 a byte), in pages
// made on first use. A word holds one write and two reads, each with the mask of its bytes; where
// different agents touch different bytes of one word it is split into four, kept apart. Two reads
// suffice: a later write by an agent conflicts with some reader if two distinct ones are unordered.
#pragma once

#include "simulator/checks/happens_before.h"

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace pto::sim {

struct AccessEntry {
  Agent agent = kNoAgent;
  uint32_t time = 0;
  uint32_t pc = 0;
  bool is_present() const { return agent != kNoAgent; }
};

struct AccessCell {
  AccessEntry write;
  std::array<AccessEntry, 2> reads;
  uint8_t write_bytes = 0; // mask of the word's bytes
  std::array<uint8_t, 2> read_bytes{};
  bool is_write_atomic : 1 = false;
  bool is_split : 1 = false; // four cells of one byte each, in Shadow::splits
};

class AccessShadow {
public:
  void clear() {
    pages_.clear();
    splits_.clear();
    last_page_ = ~uint64_t{0};
  }

  /// Calls visit(cell, byte_mask, first_address) for the cells of [address, address + bytes). The
  /// mask has bits within the cell: 0..3 of a word, or bit 0 of a split byte.
  template <class Visit> void visit(uint64_t address, uint64_t bytes, Visit&& visit) {
    const uint64_t end = address + bytes;
    for (uint64_t at = address; at < end;) {
      const uint64_t word = at / 4;
      const uint64_t next = (word + 1) * 4;
      const uint64_t stop = end < next ? end : next;
      const auto mask = static_cast<uint8_t>(((1u << (stop - at)) - 1) << (at % 4));
      AccessCell& cell = cell_of(word);
      if (cell.is_split) {
        visit_split(word, mask, visit);
      } else if (needs_split(cell, mask)) {
        split(word, cell);
        visit_split(word, mask, visit);
      } else {
        visit(cell, mask, at);
      }
      at = stop;
    }
  }

private:
  static constexpr uint64_t kPageWords = 1024;
  using Page = std::array<AccessCell, kPageWords>;

  AccessCell& cell_of(uint64_t word);
  // A word stays whole while every access to it touches the same bytes.
  static bool needs_split(const AccessCell& cell, uint8_t mask) {
    return (cell.write.is_present() && cell.write_bytes != mask) ||
           (cell.reads[0].is_present() && cell.read_bytes[0] != mask) ||
           (cell.reads[1].is_present() && cell.read_bytes[1] != mask);
  }
  void split(uint64_t word, AccessCell& cell);
  template <class Visit> void visit_split(uint64_t word, uint8_t mask, Visit& visit) {
    std::array<AccessCell, 4>& bytes = splits_[word];
    for (unsigned i = 0; i < 4; ++i) {
      if ((mask >> i & 1) != 0) {
        visit(bytes[i], uint8_t{1}, word * 4 + i);
      }
    }
  }

  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  std::unordered_map<uint64_t, std::array<AccessCell, 4>> splits_;
  uint64_t last_page_ = ~uint64_t{0};
  Page* last_ = nullptr;
};

} // namespace pto::sim
