// SPDX-License-Identifier: Apache-2.0
// A resource that serves one request at a time: a pipe, a bus, an engine. Cycles are fractions so
// that 2.4 cycles a line stays 2.4 on average.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace pto::sim {

class Server {
public:
  /// Takes the resource for `duration` cycles, from `now` at the earliest; returns the start.
  double reserve(double now, double duration) {
    const double start = std::max(now, next_free_);
    next_free_ = start + duration;
    busy_ += duration;
    return start;
  }
  /// The same for a shared path and a request that only leaves its core at `leaves`, later than
  /// now: it uses up bandwidth from now on, so that requests of others in between need not wait.
  double reserve_for(double now, double leaves, double duration) {
    return std::max(leaves, reserve(now, duration));
  }
  /// Holds the resource until `cycle` without counting it as work.
  void hold_until(double cycle) { next_free_ = std::max(next_free_, cycle); }
  [[nodiscard]] double next_free() const { return next_free_; }
  [[nodiscard]] double busy_cycles() const { return busy_; }

private:
  double next_free_ = 0;
  double busy_ = 0;
};

/// Of a vector of servers, not empty: the one that is free first.
template <class Servers> auto& first_free(Servers& servers) {
  return *std::min_element(servers.begin(), servers.end(), [](const Server& a, const Server& b) {
    return a.next_free() < b.next_free();
  });
}

/// Equal servers of which each request takes the one that is free first; of those that are free at
/// the same time the one with the lowest number. They stand in a ring in the order of their turns:
/// whoever has been served mostly goes to its end, a few steps at most.
class Servers {
public:
  explicit Servers(size_t count = 0) : servers_(count), turns_(std::bit_ceil(count)) {
    start_turns(0);
  }

  [[nodiscard]] bool empty() const { return servers_.empty(); }
  [[nodiscard]] size_t size() const { return servers_.size(); }
  /// When a request would be served; 0 without servers.
  [[nodiscard]] double next_free() const { return next_free_; }
  /// There must be one.
  double reserve(double now, double duration) {
    const double start = servers_[turns_[first_]].reserve(now, duration);
    find_next();
    return start;
  }
  /// Lets `act` reserve or hold the one that is free first; there must be one.
  template <class Act> void serve(Act act) {
    act(servers_[turns_[first_]]);
    find_next();
  }
  /// How many would start at once on a request at `cycle` or before.
  [[nodiscard]] size_t count_free(double cycle) const {
    if (last_free_ <= cycle) {
      return servers_.size();
    }
    size_t count = 0;
    for (const Server& server : servers_) {
      count += server.next_free() <= cycle ? 1 : 0;
    }
    return count;
  }
  /// So many equal requests one after the other; all servers are free now.
  void reserve_many(size_t requests, double now, double duration) {
    if (requests == servers_.size() && duration > 0) { // each takes one
      for (Server& server : servers_) {
        server.reserve(now, duration);
      }
      start_turns(now + duration);
      return;
    }
    for (size_t i = 0; i < requests; ++i) {
      reserve(now, duration);
    }
  }
  [[nodiscard]] double most_busy_cycles() const {
    double most = 0;
    for (const Server& server : servers_) {
      most = std::max(most, server.busy_cycles());
    }
    return most;
  }

private:
  /// All are free at the same cycle.
  void start_turns(double free) {
    std::iota(turns_.begin(), turns_.end(), 0u);
    first_ = 0;
    next_free_ = last_free_ = free;
  }
  /// After the first one was served, from when on it is free later or at the same time.
  void find_next() {
    const size_t mask = turns_.size() - 1;
    const uint32_t served = turns_[first_];
    const double free = servers_[served].next_free();
    last_free_ = std::max(last_free_, free);
    size_t at = (first_ + servers_.size()) & mask; // behind the last one
    first_ = (first_ + 1) & mask;
    for (; at != first_; at = (at - 1) & mask) {
      const uint32_t before = turns_[(at - 1) & mask];
      const double before_free = servers_[before].next_free();
      if (before_free < free || (before_free == free && before < served)) {
        break;
      }
      turns_[at] = before;
    }
    turns_[at] = served;
    next_free_ = servers_[turns_[first_]].next_free();
  }

  std::vector<Server> servers_;
  std::vector<uint32_t> turns_; // numbers of servers, a ring from first_ on of a power of two
  size_t first_ = 0;
  double next_free_ = 0; // of the first one
  double last_free_ = 0; // of all, the latest
};

} // namespace pto::sim
