// SPDX-License-Identifier: Apache-2.0
// An array over a sparse 64-bit index: pages made on first use, the last few of them at hand.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace pto::sim {

template <class Cell> class PagedArray {
public:
  static constexpr uint64_t kPageCells = 64;

  Cell& operator[](uint64_t index) {
    const uint64_t number = index / kPageCells;
    Recent& recent = recent_[(number ^ number >> 4 ^ number >> 8) % kRecent];
    if (recent.number != number) {
      std::unique_ptr<Page>& page = pages_[number];
      if (page == nullptr) {
        page = std::make_unique<Page>();
      }
      recent = {number, page.get()};
    }
    return (*recent.page)[index % kPageCells];
  }
  void clear() {
    pages_.clear();
    recent_.fill({});
  }

private:
  static constexpr size_t kRecent = 16;
  using Page = std::array<Cell, kPageCells>;
  struct Recent {
    uint64_t number = ~uint64_t{0};
    Page* page = nullptr;
  };

  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  std::array<Recent, kRecent> recent_{};
};

} // namespace pto::sim
