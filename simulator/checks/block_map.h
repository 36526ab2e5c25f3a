// SPDX-License-Identifier: Apache-2.0
// What a check knows of each resident block, by the block's index. Events of one block follow each
// other, so the last one asked for is at hand. A block that ends leaves its memory to the next one.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pto::sim {

/// Data has a function renew(), which brings it to the state of a new one.
template <class Data> class BlockMap {
public:
  /// The data of a block that begins: as new, or as they were if it is known.
  Data& begin(uint64_t block) {
    if (idle_.empty() || blocks_.count(block) != 0) {
      return blocks_[block];
    }
    auto node = std::move(idle_.back());
    idle_.pop_back();
    node.key() = block;
    node.mapped().renew();
    return blocks_.insert(std::move(node)).position->second;
  }
  void end(uint64_t block) {
    auto node = blocks_.extract(block);
    if (!node.empty()) {
      idle_.push_back(std::move(node));
    }
    last_block_ = kNone;
  }
  void clear() {
    blocks_.clear();
    idle_.clear();
    last_block_ = kNone;
  }
  /// Of a block that has begun.
  Data& at(uint64_t block) { return *find(block); }
  const Data& at(uint64_t block) const { return *find(block); }

private:
  static constexpr uint64_t kNone = ~uint64_t{0};
  using Blocks = std::unordered_map<uint64_t, Data>;

  Data* find(uint64_t block) const {
    if (block != last_block_) {
      last_ = &blocks_.at(block); // nodes stay where they are
      last_block_ = block;
    }
    return last_;
  }

  mutable Blocks blocks_;
  std::vector<typename Blocks::node_type> idle_;
  mutable uint64_t last_block_ = kNone;
  mutable Data* last_ = nullptr;
};

} // namespace pto::sim
