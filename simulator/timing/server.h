// SPDX-License-Identifier: Apache-2.0
// A resource that serves one request at a time: a pipe, a bus, an engine. Cycles are fractions so
// that 2.4 cycles a line stays 2.4 on average.
#pragma once

#include <algorithm>

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

} // namespace pto::sim
