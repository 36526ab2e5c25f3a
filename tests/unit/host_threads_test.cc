// SPDX-License-Identifier: Apache-2.0
#include "simulator/host_threads.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <string>

namespace pto::sim {

TEST_CASE("each number is worked on once, number 0 by the caller") {
  for (const unsigned threads : {1u, 2u, 7u}) {
    std::mutex mutex;
    std::multiset<unsigned> numbers;
    std::thread::id first;
    work_on_threads(threads, [&](unsigned number) {
      const std::lock_guard<std::mutex> lock(mutex);
      numbers.insert(number);
      first = number == 0 ? std::this_thread::get_id() : first;
    });
    CHECK(first == std::this_thread::get_id());
    REQUIRE(numbers.size() == threads);
    CHECK(*numbers.rbegin() == threads - 1);
    CHECK(std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end());
  }
}

TEST_CASE("what work throws comes to the caller when all others are done") {
  for (const unsigned thrower : {0u, 2u}) {
    std::atomic<unsigned> done{0};
    std::string message;
    try {
      work_on_threads(4, [&](unsigned number) {
        if (number == thrower) {
          throw std::runtime_error("from " + std::to_string(number));
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        ++done;
      });
    } catch (const std::runtime_error& error) {
      message = error.what();
    }
    CHECK(message == "from " + std::to_string(thrower));
    CHECK(done == 3);
  }
}

} // namespace pto::sim
