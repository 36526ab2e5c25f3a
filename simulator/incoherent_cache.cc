// SPDX-License-Identifier: Apache-2.0
// Lines of the incoherent data caches, see the header.
#include "simulator/incoherent_cache.h"

#include <algorithm>
#include <cstring>

namespace pto::sim {

IncoherentCache::Line& IncoherentCache::fetch(uint32_t core, const Hbm& hbm, uint64_t line) {
  Lines& lines = cores_[core % cores_.size()];
  const auto [entry, is_new] = lines.try_emplace(line);
  Line& bytes = entry->second;
  if (!is_new) {
    return bytes;
  }
  bytes.assign(line_bytes_, 0);
  const uint64_t begin = line * line_bytes_;
  // Allocations start at multiples of more than a line, so a line belongs to one at most.
  const Allocation* allocation = hbm.find(begin);
  if (allocation != nullptr) {
    const uint64_t held = std::min<uint64_t>(line_bytes_, allocation->end() - begin);
    std::memcpy(bytes.data(), allocation->host + (begin - allocation->base), held);
  }
  return bytes;
}

void IncoherentCache::read(
    uint32_t core, const Hbm& hbm, uint64_t address, uint64_t size_bytes, uint8_t* to) {
  for (uint64_t at = 0; at < size_bytes;) {
    const uint64_t line = (address + at) / line_bytes_;
    const uint64_t within = (address + at) % line_bytes_;
    const uint64_t count = std::min(size_bytes - at, line_bytes_ - within);
    std::memcpy(to + at, fetch(core, hbm, line).data() + within, count);
    at += count;
  }
}

void IncoherentCache::written(uint32_t core,
                              const Hbm& hbm,
                              uint64_t address,
                              uint64_t size_bytes) {
  Lines& lines = cores_[core % cores_.size()];
  for (uint64_t at = 0; at < size_bytes;) {
    const uint64_t within = (address + at) % line_bytes_;
    const uint64_t count = std::min(size_bytes - at, line_bytes_ - within);
    const auto held = lines.find((address + at) / line_bytes_);
    const uint8_t* memory = hbm.host(address + at, count);
    if (held != lines.end() && memory != nullptr) {
      std::memcpy(held->second.data() + within, memory, count);
    }
    at += count;
  }
}

void IncoherentCache::prefetch(uint32_t core, const Hbm& hbm, uint64_t address) {
  if (hbm.find(address) != nullptr) { // a hint: no address is wrong
    fetch(core, hbm, address / line_bytes_);
  }
}

void IncoherentCache::drop_line(uint32_t core, uint64_t address) {
  cores_[core % cores_.size()].erase(address / line_bytes_);
}

void IncoherentCache::drop_all(uint32_t core) {
  cores_[core % cores_.size()].clear();
}

} // namespace pto::sim
