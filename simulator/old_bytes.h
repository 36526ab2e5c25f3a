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

  /// Before `size` bytes at `host` are written.
  void save(uint8_t* host, uint64_t size) {
    if (!pieces_.empty() && pieces_.back().host + pieces_.back().size_bytes == host) {
      pieces_.back().size_bytes += size;
    } else {
      pieces_.push_back({host, bytes_.size(), size});
    }
    bytes_.insert(bytes_.end(), host, host + size);
  }
  /// The latest first: bytes that were saved twice end as the oldest ones.
  void undo() const {
    for (size_t i = pieces_.size(); i-- > 0;) {
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
};

} // namespace pto::sim
