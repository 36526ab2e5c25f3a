// SPDX-License-Identifier: Apache-2.0
// Room for a large table that is filled once: a quarter of the time for a file of a million lines
// went into the page faults of its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace pto::as {

/// Reserves room for `count` elements and, if that is much, asks the host for large pages. A hint:
/// without them nothing but speed is lost, and room that is never filled is never touched.
template <class T> void reserve_large(std::vector<T>& table, size_t count) {
  table.reserve(count);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr size_t kLargePage = size_t{2} << 20;
  constexpr size_t kWorthIt = 8 * kLargePage;
  const size_t size = table.capacity() * sizeof(T);
  if (size >= kWorthIt) {
    auto* const begin = reinterpret_cast<char*>(table.data());
    const size_t past_page = reinterpret_cast<uintptr_t>(begin) % kLargePage;
    const size_t skipped = past_page == 0 ? 0 : kLargePage - past_page;
    static_cast<void>(::madvise(begin + skipped, size - skipped, MADV_HUGEPAGE));
  }
#endif
}

} // namespace pto::as
