// SPDX-License-Identifier: Apache-2.0
// ptosim --schedule-fuzz: one kernel under many orders of its warps, whose results must agree.
//
// A run in the mode that was asked for is the reference; timed, functional, lockstep, greedy and
// N random orders follow, the seeds 1 to N, so that any of them can be run again by --schedule. The
// first that ends otherwise or leaves other bytes in an array ends the search.
#pragma once

#include "simulator/kernel_run.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pto::sim {

/// The first difference between two orders.
struct ScheduleDifference {
  std::string first; // the order of the reference run, as --schedule names it, or "functional"
  std::string other;
  // Either how the runs ended differs ...
  RunStatus first_status = RunStatus::kCompleted;
  RunStatus other_status = RunStatus::kCompleted;
  std::string other_fault; // its message
  // ... or an array does.
  std::string array;
  uint64_t index = 0;  // of the first element that differs
  std::string element; // with its index in the array's shape: "o[3,17]"
  std::string first_value;
  std::string other_value;
  uint64_t differing = 0; // elements of the array
  uint64_t count = 0;

  [[nodiscard]] bool is_value() const { return !array.empty(); }
};

struct ScheduleFuzz {
  std::vector<std::string> tried;  // in order, the reference first
  std::vector<std::string> arrays; // compared
  std::optional<ScheduleDifference> difference;
  bool is_interrupted = false;
  std::string skipped; // why nothing was compared; empty otherwise
};

/// Runs options.schedule_fuzz random orders and the fixed ones, and compares them with `reference`.
/// Arrays that --out or --expect name are compared, all where they name none.
[[nodiscard]] ScheduleFuzz fuzz_schedules(const SimOptions& options,
                                          const std::shared_ptr<const Program>& program,
                                          const std::vector<Argument>& arguments,
                                          const KernelRun& reference,
                                          const std::atomic<bool>& interrupt);

/// One or several lines, ended, for people.
[[nodiscard]] std::string describe(const ScheduleFuzz& fuzz, const Program& program);

} // namespace pto::sim
