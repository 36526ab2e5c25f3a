// SPDX-License-Identifier: Apache-2.0
// An array over a sparse 64-bit index: pages made on first use. A gather asks for another page in
// every lane, so the first pages, where all of a scratchpad lies, are found by their number, and
// the others by a hash table with open addressing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace pto::sim {

template <class Cell> class PagedArray {
public:
  static constexpr uint64_t kPageCells = 64;
  static constexpr uint64_t kFirstPages = 64;

  Cell& operator[](uint64_t index) { return page(index / kPageCells)[index % kPageCells]; }

  /// The same, for an index that is probably not on the page of the last one.
  Cell& scattered(uint64_t index) {
    const uint64_t number = index / kPageCells;
    if (!slots_.empty()) {
      const Slot& home = slots_[home_of(number)];
      if (home.number == number) {
        return (*home.page)[index % kPageCells];
      }
    }
    return find_page(number)[index % kPageCells];
  }

  /// The same, for an index that is probably on one of the first pages.
  Cell& among_first(uint64_t index) {
    const uint64_t number = index / kPageCells;
    if (number < kFirstPages && first_pages_[number] != nullptr) {
      return (*first_pages_[number])[index % kPageCells];
    }
    return find_page(number)[index % kPageCells];
  }

  /// All cells are as new. Keeps the memory, for an array that is soon used again.
  void clear() {
    for (size_t i = 0; i < used_; ++i) {
      pages_[i]->fill(Cell{});
    }
    used_ = 0;
    slots_.assign(slots_.size(), Slot{});
    first_pages_.fill(nullptr);
    last_ = {};
  }

private:
  using Page = std::array<Cell, kPageCells>;
  static constexpr size_t kFirstSlots = 16;
  struct Slot {
    uint64_t number = ~uint64_t{0}; // of no page
    Page* page = nullptr;           // null: free
  };

  Page& page(uint64_t number) {
    if (last_.number == number) {
      return *last_.page;
    }
    if (!slots_.empty()) {
      const Slot& home = slots_[home_of(number)];
      if (home.number == number) {
        last_ = home;
        return *home.page;
      }
    }
    return find_page(number);
  }
  size_t home_of(uint64_t number) const {
    return static_cast<size_t>(number * 0x9e3779b97f4a7c15U >> 32) & home_mask_;
  }
  [[gnu::noinline]] Page& find_page(uint64_t number) {
    if (2 * (used_ + 1) > slots_.size()) {
      grow();
    }
    Slot& slot = find(number);
    if (slot.page == nullptr) {
      if (used_ == pages_.size()) {
        pages_.push_back(std::make_unique<Page>());
      }
      slot = {number, pages_[used_++].get()};
      if (number < kFirstPages) {
        first_pages_[number] = slot.page;
      }
    }
    last_ = slot;
    return *slot.page;
  }
  /// The slot of that page, or the free one where it belongs.
  Slot& find(uint64_t number) {
    size_t at = home_of(number);
    while (slots_[at].page != nullptr && slots_[at].number != number) {
      at = (at + 1) & home_mask_;
    }
    return slots_[at];
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? kFirstSlots : 2 * slots_.size());
    old.swap(slots_);
    home_mask_ = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.page != nullptr) {
        find(slot.number) = slot;
      }
    }
  }

  std::vector<Slot> slots_; // a power of two of them
  size_t home_mask_ = 0;    // their number less one
  std::vector<std::unique_ptr<Page>> pages_;
  size_t used_ = 0;                              // pages; the others are as new
  std::array<Page*, kFirstPages> first_pages_{}; // null: not used
  Slot last_;
};

} // namespace pto::sim
