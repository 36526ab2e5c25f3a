// SPDX-License-Identifier: Apache-2.0
// Overlap of strided ranges and the list of uses under way.
#include "simulator/timing/l1_ledger.h"

#include <algorithm>

namespace pto::sim {

namespace {

/// Whether a row of `range` meets [begin, end). Rows lie apart or touch: stride >= row_bytes or a
/// single row; overlapping rows (stride < row_bytes) are one solid range.
bool meets(const L1Range& range, uint64_t begin, uint64_t end) {
  if (begin >= range.end() || end <= range.begin) {
    return false;
  }
  if (range.rows == 1 || range.stride <= range.row_bytes) {
    return true;
  }
  // The first row that ends after `begin`.
  const uint64_t row = begin < range.begin + range.row_bytes
                           ? 0
                           : (begin - range.begin - range.row_bytes) / range.stride + 1;
  return row < range.rows && range.begin + row * range.stride < end;
}

} // namespace

L1Range L1Range::strided(uint64_t first, uint64_t row_bytes, uint64_t rows, int64_t stride) {
  L1Range range{first, row_bytes, rows, static_cast<uint64_t>(stride)};
  if (rows <= 1) {
    range.stride = 0;
  } else if (stride < 0) {
    range.stride = static_cast<uint64_t>(-stride);
    range.begin = first - (rows - 1) * range.stride;
  }
  return range;
}

bool L1Range::overlaps(const L1Range& other) const {
  if (empty() || other.empty() || begin >= other.end() || other.begin >= end()) {
    return false;
  }
  const L1Range& few = rows <= other.rows ? *this : other;
  const L1Range& many = rows <= other.rows ? other : *this;
  if (few.rows == 1 || few.stride <= few.row_bytes) {
    return meets(many, few.begin, few.end());
  }
  for (uint64_t row = 0; row < few.rows; ++row) {
    const uint64_t at = few.begin + row * few.stride;
    if (meets(many, at, at + few.row_bytes)) {
      return true;
    }
  }
  return false;
}

L1Ledger::Hold L1Ledger::hold(const Use& use, double now) const {
  const auto conflicts = [&](const Use& other) {
    if (other.is_copy) {
      // Copies in one direction follow each other anyway.
      return use.is_copy && use.writes != other.writes;
    }
    return use.writes || other.writes;
  };
  Hold hold;
  for (const Use& other : uses_) {
    if (other.done_cycle > std::max(now, hold.cycle) && conflicts(other) &&
        use.range.overlaps(other.range)) {
      hold = {other.done_cycle, other.pc};
    }
  }
  return hold;
}

void L1Ledger::add(const Use& use, double now) {
  if (use.range.empty() || use.done_cycle <= now) {
    return;
  }
  std::erase_if(uses_, [&](const Use& other) { return other.done_cycle <= now; });
  if (uses_.size() >= kMaxUses) {
    // The two oldest of one kind become one solid range.
    Use& first = uses_.front();
    const auto second = std::find_if(uses_.begin() + 1, uses_.end(), [&](const Use& other) {
      return other.writes == first.writes && other.is_copy == first.is_copy;
    });
    if (second != uses_.end()) {
      const uint64_t begin = std::min(first.range.begin, second->range.begin);
      const uint64_t end = std::max(first.range.end(), second->range.end());
      first.range = {begin, end - begin};
      if (second->done_cycle > first.done_cycle) {
        first.done_cycle = second->done_cycle;
        first.pc = second->pc;
      }
      uses_.erase(second);
    }
  }
  uses_.push_back(use);
}

} // namespace pto::sim
