// SPDX-License-Identifier: Apache-2.0
// What belongs to the process that made it.
//
// A child that fork() made has a copy of the runtime's memory, but none of its threads, and locks
// that they may have held. Whatever refers to a device must not be touched there, not even
// destroyed: it raises DeviceError when it is used, and is left to the end of the process.
#pragma once

#include "runtime/errors.h"

#include <atomic>
#include <memory>
#include <utility>

namespace pto::py {

/// How often this process and those before it have been forked, counted in the child.
inline std::atomic<unsigned>& forks() {
  static std::atomic<unsigned> count{0};
  return count;
}

template <class T> class OfProcess {
public:
  explicit OfProcess(T value) : OfProcess(std::make_unique<T>(std::move(value))) {}
  explicit OfProcess(std::unique_ptr<T> value) : value_(std::move(value)), forks_(forks()) {}
  OfProcess(OfProcess&&) noexcept = default;
  OfProcess& operator=(OfProcess&&) = delete;
  ~OfProcess() {
    if (forks_ != forks()) {
      static_cast<void>(value_.release());
    }
  }

  /// Throws DeviceError in a child of the process that made it.
  T& operator*() const {
    if (forks_ != forks()) {
      throw rt::DeviceError(
          "this was made before fork(), and the child process has devices of its own, with empty "
          "memory: make tensors, streams, launches and debug sessions in the process that uses "
          "them");
    }
    return *value_;
  }
  T* operator->() const { return &**this; }

private:
  std::unique_ptr<T> value_;
  unsigned forks_;
};

/// A member function of T as a function of the handle.
template <class T, class Result, class... Args> auto through(Result (T::*function)(Args...)) {
  return [function](const OfProcess<T>& self, Args... args) -> Result {
    return ((*self).*function)(std::forward<Args>(args)...);
  };
}
template <class T, class Result, class... Args> auto through(Result (T::*function)(Args...) const) {
  return [function](const OfProcess<T>& self, Args... args) -> Result {
    return ((*self).*function)(std::forward<Args>(args)...);
  };
}

} // namespace pto::py
