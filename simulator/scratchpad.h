// SPDX-License-Identifier: Apache-2.0
// The scratchpad of one resident block: statics at the bottom, tiles above them, first fit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pto::sim {

/// Who holds a range of scratchpad.
struct ScratchpadSegment {
  uint32_t offset = 0;
  uint32_t size_bytes = 0;
  int tile = -1;   // tile register that names it; -1: the kernel's statics
  uint32_t pc = 0; // of the ALLOC_LOCAL
  uint32_t end() const { return offset + size_bytes; }
};

/// A value: copying it copies the contents (snapshots do).
class Scratchpad {
public:
  static constexpr uint32_t kTileAlignBytes = 32;

  Scratchpad() = default;
  /// Forgets everything: `static_bytes` zeroed bytes from offset 0, room for `capacity_bytes`.
  void reset(uint32_t static_bytes, uint32_t capacity_bytes);

  uint32_t capacity_bytes() const { return capacity_bytes_; }
  uint32_t used_bytes() const;
  /// End of the highest segment so far in this block: what timing must not give to the cache.
  uint32_t high_water_bytes() const { return high_water_bytes_; }
  const std::vector<ScratchpadSegment>& segments() const { return segments_; } // by offset

  /// Offset of a new zeroed tile; nothing if no gap is large enough.
  std::optional<uint32_t> alloc(uint64_t size_bytes, unsigned tile, uint32_t pc);
  void free(uint32_t offset);

  /// True if every byte of the range is held by some segment. The first test is the fast one.
  bool holds(uint64_t offset, uint64_t bytes) const {
    return (offset <= packed_bytes_ && bytes <= packed_bytes_ - offset) ||
           holds_exactly(offset, bytes);
  }
  /// The segment that holds the byte, or null.
  const ScratchpadSegment* find(uint64_t offset) const;
  uint8_t* data() { return bytes_.data(); }
  const uint8_t* data() const { return bytes_.data(); }
  /// Bytes behind data(): covers every segment.
  size_t data_bytes() const { return bytes_.size(); }

  /// One line a segment and gap: "0..4095 statics", "4096..8191 t0 (pc 7)", "8192..65535 free".
  std::string map() const;
  uint64_t largest_gap_bytes() const;

private:
  bool holds_exactly(uint64_t offset, uint64_t bytes) const;
  void update_packed();

  std::vector<uint8_t> bytes_;
  std::vector<ScratchpadSegment> segments_;
  uint32_t capacity_bytes_ = 0;
  uint32_t packed_bytes_ = 0; // bytes from 0 without a gap
  uint32_t high_water_bytes_ = 0;
};

} // namespace pto::sim
