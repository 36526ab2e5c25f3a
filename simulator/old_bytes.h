// SPDX-License-Identifier: Apache-2.0
// What stood in memory before it was written, so that it can be put back. Private to the simulator.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace pto::sim {

class OldBytes {
public:
  void clear() {
    pieces_.clear();
    bytes_.clear();
  }
  uint64_t size_bytes() const { return bytes_.size(); }
  /// What is saved from here on can be undone by itself.
  size_t mark() {
    may_extend_ = false;
    return pieces_.size();
  }

  /// Before `size` bytes at `host` are written.
  void save(uint8_t* host, uint64_t size) {
    if (may_extend_ && !pieces_.empty() &&
        pieces_.back().host + pieces_.back().size_bytes == host) {
      pieces_.back().size_bytes += size;
    } else {
      pieces_.push_back({host, bytes_.size(), size});
    }
    may_extend_ = true;
    bytes_.insert(bytes_.end(), host, host + size);
  }
  /// The latest first: bytes that were saved twice end as the oldest ones.
  void undo() const { undo(0, pieces_.size()); }
  /// Of what was saved between two marks.
  void undo(size_t first, size_t end) const {
    for (size_t i = end; i-- > first;) {
      std::memcpy(pieces_[i].host, bytes_.data() + pieces_[i].at, pieces_[i].size_bytes);
    }
  }

private:
  struct Piece {
    uint8_t* host = nullptr;
    size_t at = 0; // in bytes_
    uint64_t size_bytes = 0;
  };

  std::vector<Piece> pieces_;
  std::vector<uint8_t> bytes_;
  bool may_extend_ = false; // the latest piece
};

} // namespace pto::sim
