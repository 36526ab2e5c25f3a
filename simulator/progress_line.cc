// SPDX-License-Identifier: Apache-2.0
// Signal flag and terminal line of long runs.
#include "simulator/progress_line.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>

namespace pto::sim {
namespace {

std::atomic<bool>& interrupt_flag() {
  static std::atomic<bool> flag{false};
  return flag;
}
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

void on_interrupt(int /*signal*/) {
  interrupt_flag().store(true, std::memory_order_relaxed);
}

std::string duration(double seconds) {
  if (seconds < 100) {
    return fmt::format("{:.0f} s", seconds);
  }
  const auto minutes = static_cast<unsigned long long>(seconds / 60);
  return minutes < 100 ? fmt::format("{} min", minutes) : fmt::format("{} h", minutes / 60);
}

std::string magnitude(double value) {
  if (value >= 1e9) {
    return fmt::format("{:.3g} G", value / 1e9);
  }
  return value >= 1e6   ? fmt::format("{:.3g} M", value / 1e6)
         : value >= 1e3 ? fmt::format("{:.3g} k", value / 1e3)
                        : fmt::format("{:.0f} ", value);
}

} // namespace

const std::atomic<bool>& catch_interrupt() {
  static_cast<void>(interrupt_flag()); // made before a handler can run
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  // The second one ends the program. A write that the first one interrupts goes on.
  action.sa_flags = static_cast<int>(static_cast<unsigned>(SA_RESETHAND) | SA_RESTART);
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  return interrupt_flag();
}

ProgressLine::ProgressLine(bool is_enabled)
    : is_enabled_(is_enabled), start_(Clock::now()), last_(start_) {}

ProgressLine::~ProgressLine() {
  if (is_shown_) {
    fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
  }
}

void ProgressLine::update(const Progress& progress, uint64_t cycle) {
  if (!is_enabled_) {
    return;
  }
  const Clock::time_point now = Clock::now();
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  if (elapsed < 1.0 || std::chrono::duration<double>(now - last_).count() < 0.1) {
    return;
  }
  last_ = now;
  is_shown_ = true;
  const auto done = static_cast<double>(progress.blocks_done);
  const auto total = static_cast<double>(progress.block_count);
  std::string line = fmt::format("{} of {} blocks, {:.0f} %",
                                 progress.blocks_done,
                                 progress.block_count,
                                 100.0 * done / std::max(total, 1.0));
  if (cycle != 0) {
    line += fmt::format(", cycle {}", cycle);
  }
  line += fmt::format(", {}insns/s",
                      magnitude(static_cast<double>(progress.counts.warp_insns) / elapsed));
  if (progress.blocks_done != 0) {
    line += fmt::format(", {} left", duration(elapsed * (total - done) / done));
  }
  fmt::print(stderr, "\r{}\033[K", line);
  std::fflush(stderr);
}

} // namespace pto::sim
