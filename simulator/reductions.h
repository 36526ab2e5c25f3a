// SPDX-License-Identifier: Apache-2.0
// Atomics whose old value nobody reads, put off until what comes before them is done. Private to
// the simulator.
#pragma once

#include "isa/exec_context.h"
#include "simulator/memory_element.h"

#include <cstdint>
#include <vector>

namespace pto::sim {

class Reductions {
public:
  void clear() {
    batches_.clear();
    items_.clear();
  }
  uint64_t size_bytes() const {
    return items_.size() * sizeof(Item) + batches_.size() * sizeof(Batch);
  }

  /// What add() says from now on is `fn(old, value)` of elements of 4 or 8 bytes.
  void begin(isa::AtomicFn fn, uint32_t element_bytes) {
    if (batches_.empty() || batches_.back().fn != fn ||
        batches_.back().element_bytes != element_bytes) {
      batches_.push_back({fn, element_bytes, items_.size()});
    }
  }
  void add(uint8_t* host, uint64_t value) { items_.push_back({host, value}); }

  /// All of them, in order.
  void apply() const {
    for (size_t i = 0; i < batches_.size(); ++i) {
      const Batch& batch = batches_[i];
      const size_t end = i + 1 < batches_.size() ? batches_[i + 1].first : items_.size();
      if (batch.element_bytes == 8) {
        apply_as<uint64_t>(batch, end);
      } else {
        apply_as<uint32_t>(batch, end);
      }
    }
  }

private:
  struct Batch {
    isa::AtomicFn fn = nullptr;
    uint32_t element_bytes = 0;
    size_t first = 0; // of its items
  };
  struct Item {
    uint8_t* host = nullptr;
    uint64_t value = 0;
  };

  template <class T> void apply_as(const Batch& batch, size_t end) const {
    for (size_t at = batch.first; at < end; ++at) {
      const Item& item = items_[at];
      const auto old = load_element<T, T>(item.host);
      store_element<T>(item.host, static_cast<T>(batch.fn(old, item.value, item.value)));
    }
  }

  std::vector<Batch> batches_;
  std::vector<Item> items_;
};

} // namespace pto::sim
