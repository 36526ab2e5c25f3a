// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and the progress line on a terminal.
#pragma once

#include "simulator/launch.h"

#include <atomic>
#include <chrono>

namespace pto::sim {

/// Makes Ctrl-C set a flag instead of ending the program; a second Ctrl-C ends it. The flag is the
/// same at every call.
[[nodiscard]] const std::atomic<bool>& catch_interrupt();

/// One line on stderr that rewrites itself: blocks done, rate, time left. It appears after a second
/// and is erased at the end. Does nothing when not enabled.
class ProgressLine {
public:
  explicit ProgressLine(bool is_enabled);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// `cycle` 0: the run has none.
  void update(const Progress& progress, uint64_t cycle);

private:
  using Clock = std::chrono::steady_clock;
  bool is_enabled_;
  bool is_shown_ = false;
  Clock::time_point start_;
  Clock::time_point last_;
};

} // namespace pto::sim
