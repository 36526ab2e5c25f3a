// SPDX-License-Identifier: Apache-2.0
// Eight threads that allocate, copy, launch, free, drop and synchronise at random on one device.
// Each thread knows what its own buffers must hold; ThreadSanitizer watches the rest.
#include "tests/unit/runtime_fixture.h"

#include <atomic>
#include <deque>
#include <optional>
#include <random>
#include <thread>

namespace pto::rt {
namespace {

/// One thread's life. Everything wrong is counted: doctest's macros are for one thread.
class Worker {
public:
  Worker(Device& device, Stream& shared_stream, Buffer& shared, uint32_t seed)
      : device_(device), shared_stream_(shared_stream), shared_(shared), random_(seed) {}

  int run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
    }
    while (!owned_.empty()) {
      verify(owned_.front());
      owned_.pop_front();
    }
    return wrong_;
  }

  uint32_t shared_launches() const { return shared_launches_; }

private:
  struct Owned {
    Buffer buffer;
    uint32_t expected = 0;
  };

  uint32_t pick(uint32_t count) { return static_cast<uint32_t>(random_() % count); }

  void step() {
    switch (pick(10)) {
    case 0:
      if (owned_.size() < 8) {
        owned_.push_back({device_.alloc(4 + 4 * pick(64)), 0});
      }
      break;
    case 1:
      if (!owned_.empty()) { // at times while a kernel uses it
        owned_.pop_front();
      }
      break;
    case 2:
      if (!owned_.empty()) {
        owned_.front().buffer.free("stress");
        try {
          owned_.front().buffer.free("stress");
          ++wrong_;
        } catch (const FreedBufferError&) {
        }
        owned_.pop_front();
      }
      break;
    case 3:
      if (pick(4) == 0) {
        device_.sync();
      } else {
        stream_.sync();
      }
      break;
    case 4:
      stream_ = device_.make_stream();
      break;
    case 5:
      event_ = pick(2) == 0 ? stream_.record() : shared_stream_.record();
      stream_.wait(event_);
      break;
    case 6:
      device_.launch(spin(shared_, 10), pick(2) == 0 ? stream_ : shared_stream_);
      ++shared_launches_;
      break;
    case 7:
      if (!owned_.empty()) {
        const uint32_t value = pick(1000);
        const std::vector<uint32_t> word{value};
        owned_.back().buffer.write(bytes_of(word));
        owned_.back().expected = value;
      }
      break;
    case 8:
      if (!owned_.empty()) {
        verify(owned_[pick(static_cast<uint32_t>(owned_.size()))]);
      }
      break;
    default:
      for (uint32_t i = 0; i < 3 && !owned_.empty(); ++i) {
        Owned& owned = owned_[pick(static_cast<uint32_t>(owned_.size()))];
        LaunchOptions options;
        if (pick(4) == 0) {
          options.checks.add(sim::CheckKind::kMem);
        }
        const Ticket ticket = device_.launch(spin(owned.buffer, 1 + pick(50), options),
                                             pick(3) == 0 ? shared_stream_ : stream_);
        ++owned.expected;
        if (pick(5) == 0) {
          ticket.wait();
        }
      }
      break;
    }
  }

  void verify(const Owned& owned) {
    if (first_word(owned.buffer) != owned.expected) {
      ++wrong_;
    }
  }

  Device& device_;
  Stream& shared_stream_;
  Buffer& shared_;
  std::mt19937 random_;
  Stream stream_ = device_.make_stream();
  Event event_;
  std::deque<Owned> owned_;
  int wrong_ = 0;
  uint32_t shared_launches_ = 0;
};

void run_stress(std::string_view device_name, int steps) {
  constexpr uint32_t kThreads = 8;
  Device device = Device::open(device_name);
  Stream shared_stream = device.make_stream();
  Buffer shared = device.alloc(4);
  std::atomic<int> wrong{0};
  std::atomic<uint32_t> launches{0};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      Worker worker(device, shared_stream, shared, i);
      wrong += worker.run(steps);
      launches += worker.shared_launches();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(wrong == 0);
  CHECK(first_word(shared) == launches);
  CHECK(device.usage().buffers == 1);
}

TEST_CASE("eight threads at random on one device") {
  run_stress("sim", 400);
}

TEST_CASE("eight threads at random on an emulated device") {
  run_stress("emulated:reference", 100);
}

TEST_CASE("threads that open, use and drop devices of their own") {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 10; ++round) {
        std::optional<Device> device = Device::open("sim");
        Buffer buffer = device->alloc(4);
        device->launch(spin(buffer, 100), device->make_stream());
        const Ticket ticket = device->launch(spin(buffer, 100));
        device.reset();
        wrong += first_word(buffer) == 2 ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(wrong == 0);
}

} // namespace
} // namespace pto::rt
