// SPDX-License-Identifier: Apache-2.0
// What a check knows of each resident block, by the block's index. Events of one block follow each
// other, so the last one asked for is at hand.
#pragma once

#include <cstdint>
#include <unordered_map>

namespace pto::sim {

template <class Data> class BlockMap {
public:
  /// The data of a block that begins: new, or as they were if it is known.
  Data& begin(uint64_t block) { return blocks_[block]; }
  void end(uint64_t block) {
    blocks_.erase(block);
    last_block_ = kNone;
  }
  void clear() {
    blocks_.clear();
    last_block_ = kNone;
  }
  /// Of a block that has begun.
  Data& at(uint64_t block) { return *find(block); }
  const Data& at(uint64_t block) const { return *find(block); }

private:
  static constexpr uint64_t kNone = ~uint64_t{0};

  Data* find(uint64_t block) const {
    if (block != last_block_) {
      last_ = &blocks_.at(block); // nodes stay where they are
      last_block_ = block;
    }
    return last_;
  }

  mutable std::unordered_map<uint64_t, Data> blocks_;
  mutable uint64_t last_block_ = kNone;
  mutable Data* last_ = nullptr;
};

} // namespace pto::sim
