// SPDX-License-Identifier: Apache-2.0
// An allocator whose new elements are zero bytes that nobody wrote.
//
// The tags of a large L2 are tens of megabytes of which a short run touches a few pages; writing
// them all would be most of the time of a tiny launch. For plain aggregates of which zero bytes are
// a value; resize() gives zeros, copies are copies.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace pto::sim {

template <class T> struct ZeroedAllocator {
  using value_type = T;

  ZeroedAllocator() = default;
  template <class U> explicit ZeroedAllocator(const ZeroedAllocator<U>& /*other*/) {}

  T* allocate(size_t count) {
    void* memory = std::calloc(count, sizeof(T));
    if (memory == nullptr) {
      throw std::bad_alloc();
    }
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t /*count*/) { std::free(memory); }

  /// Without arguments: stays the zeros that it is.
  template <class U, class... Args> void construct(U* at, Args&&... args) {
    if constexpr (sizeof...(Args) != 0) {
      ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
    }
  }
  bool operator==(const ZeroedAllocator&) const { return true; }
};

} // namespace pto::sim
