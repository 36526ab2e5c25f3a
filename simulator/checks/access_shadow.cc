// SPDX-License-Identifier: Apache-2.0
// Pages and splitting of the access shadow.
#include "simulator/checks/access_shadow.h"

namespace pto::sim {

AccessCell& AccessShadow::cell_of(uint64_t word) {
  const uint64_t page = word / kPageWords;
  if (page != last_page_) {
    std::unique_ptr<Page>& slot = pages_[page];
    if (slot == nullptr) {
      slot = std::make_unique<Page>();
    }
    last_page_ = page;
    last_ = slot.get();
  }
  return (*last_)[word % kPageWords];
}

void AccessShadow::split(uint64_t word, AccessCell& cell) {
  std::array<AccessCell, 4>& bytes = splits_[word];
  for (unsigned i = 0; i < 4; ++i) {
    AccessCell& byte = bytes[i];
    byte = AccessCell{};
    if ((cell.write_bytes >> i & 1) != 0) {
      byte.write = cell.write;
      byte.write_bytes = 1;
      byte.is_write_atomic = cell.is_write_atomic;
    }
    for (unsigned r = 0; r < 2; ++r) {
      if ((cell.read_bytes[r] >> i & 1) != 0) {
        byte.reads[r] = cell.reads[r];
        byte.read_bytes[r] = 1;
      }
    }
  }
  cell = AccessCell{};
  cell.is_split = true;
}

} // namespace pto::sim
