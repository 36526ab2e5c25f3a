// SPDX-License-Identifier: Apache-2.0
// Which bytes of a block's scratchpad are still read or written by what was issued before.
//
// Insns issue in order but end at their own time, so a copy into bytes that a matrix operation
// still reads has to wait for it. The scoreboard knows tiles as a whole; buffers that share a tile,
// or lie row by row beside each other, need the bytes. Order that a program must ask for with WAIT
// is not made here: only copies wait for copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pto::sim {

/// Rows of bytes at a constant distance.
struct L1Range {
  uint64_t begin = 0;
  uint64_t row_bytes = 0;
  uint64_t rows = 1;
  uint64_t stride = 0; // between the begins of two rows

  /// With a stride of any sign; the rows are taken from the lowest one up.
  static L1Range strided(uint64_t first, uint64_t row_bytes, uint64_t rows, int64_t stride);
  [[nodiscard]] uint64_t end() const { return begin + (rows - 1) * stride + row_bytes; }
  [[nodiscard]] bool empty() const { return row_bytes == 0 || rows == 0; }
  /// Whether at least one byte lies in both.
  [[nodiscard]] bool overlaps(const L1Range& other) const;
};

class L1Ledger {
public:
  struct Use {
    L1Range range;
    double done_cycle = 0; // no longer read or written from here on
    uint32_t pc = 0;
    bool writes = false;
    bool is_copy = false;
  };
  /// When nothing that conflicts is under way any more, and what was the last of it.
  struct Hold {
    double cycle = 0; // 0: nothing
    uint32_t pc = UINT32_MAX;
  };

  /// Looks for uses that `use` must come after: one of the two writes, and not after `now`.
  [[nodiscard]] Hold hold(const Use& use, double now) const;
  void add(const Use& use, double now);
  [[nodiscard]] size_t size() const { return uses_.size(); }

private:
  // More uses under way than this are merged into wider ones, which is slower, never too fast.
  static constexpr size_t kMaxUses = 256;
  std::vector<Use> uses_;
};

} // namespace pto::sim
