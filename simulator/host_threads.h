// SPDX-License-Identifier: Apache-2.0
// Work on several host threads, the caller's among them. Private to the simulator.
#pragma once

#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace pto::sim {

/// Calls work(0) on this thread and work(1), ..., work(threads - 1) on others, or fewer of them if
/// the host has no more threads to give: work must get done with any number. Returns when all calls
/// have; what one of them threw, the first of several, is thrown again.
template <class Work> void work_on_threads(unsigned threads, const Work& work) {
  std::mutex mutex;
  std::exception_ptr thrown;
  const auto guarded = [&](unsigned number) {
    try {
      work(number);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex);
      thrown = thrown != nullptr ? thrown : std::current_exception();
    }
  };
  std::vector<std::thread> others;
  others.reserve(threads);
  for (unsigned i = 1; i < threads; ++i) {
    try {
      others.emplace_back(guarded, i);
    } catch (const std::system_error&) {
      break;
    }
  }
  guarded(0);
  for (std::thread& thread : others) {
    thread.join();
  }
  if (thrown != nullptr) {
    std::rethrow_exception(thrown);
  }
}

} // namespace pto::sim
