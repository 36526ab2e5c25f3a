// SPDX-License-Identifier: Apache-2.0
// Which core has something to do first: a binary heap with one entry a core, kept in place.
#pragma once

#include <cstdint>
#include <vector>

namespace pto::sim {

class CoreQueue {
public:
  struct Event {
    uint64_t cycle = UINT64_MAX; // UINT64_MAX: no core waits for its time to come
    uint32_t core = 0;
  };

  explicit CoreQueue(uint32_t cores = 0) : heap_(cores), places_(cores) {
    for (uint32_t core = 0; core < cores; ++core) {
      heap_[core].core = core;
      places_[core] = core;
    }
  }

  /// The earliest; of equal cycles the core with the lowest number.
  [[nodiscard]] const Event& first() const { return heap_[0]; }
  void set(uint32_t core, uint64_t cycle) {
    const size_t at = places_[core];
    const bool is_earlier = cycle < heap_[at].cycle;
    heap_[at].cycle = cycle;
    if (is_earlier) {
      rise(at);
    } else {
      sink(at);
    }
  }

private:
  static bool comes_before(const Event& a, const Event& b) {
    return a.cycle != b.cycle ? a.cycle < b.cycle : a.core < b.core;
  }
  void put(size_t at, const Event& event) {
    heap_[at] = event;
    places_[event.core] = at;
  }
  void rise(size_t at) {
    const Event event = heap_[at];
    while (at != 0 && comes_before(event, heap_[(at - 1) / 2])) {
      put(at, heap_[(at - 1) / 2]);
      at = (at - 1) / 2;
    }
    put(at, event);
  }
  void sink(size_t at) {
    const Event event = heap_[at];
    for (;;) {
      size_t child = 2 * at + 1;
      if (child >= heap_.size()) {
        break;
      }
      if (child + 1 < heap_.size() && comes_before(heap_[child + 1], heap_[child])) {
        ++child;
      }
      if (!comes_before(heap_[child], event)) {
        break;
      }
      put(at, heap_[child]);
      at = child;
    }
    put(at, event);
  }

  std::vector<Event> heap_;
  std::vector<size_t> places_; // by core
};

} // namespace pto::sim
