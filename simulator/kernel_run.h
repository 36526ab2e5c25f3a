// SPDX-License-Identifier: Apache-2.0
// One launch of a kernel on one machine profile, with its arrays before and after.
#pragma once

#include "isa/machine.h"
#include "simulator/argument.h"
#include "simulator/checks/finding.h"
#include "simulator/cli_options.h"
#include "simulator/launch.h"
#include "simulator/timed.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pto::sim {

struct KernelRun {
  isa::MachineProfile profile;
  RunResult result;
  std::optional<TimedResult> timed; // its `run` is moved to `result`
  std::vector<Finding> findings;    // of options.checks
  uint64_t findings_dropped = 0;    // past Findings::kLimit
  std::string device;               // of --device: its description; empty: none
  double device_microseconds = 0;   // by its own clock; 0: it has none
  /// Contents of every pointer argument when the run ended, by parameter; empty for scalars.
  std::vector<HostArray> arrays;

  [[nodiscard]] bool is_completed() const { return result.status == RunStatus::kCompleted; }
};

/// Allocates the arrays, launches, runs as the options say and reads everything back. Throws
/// LaunchError and HbmError.
[[nodiscard]] KernelRun run_kernel(const SimOptions& options,
                                   std::shared_ptr<const Program> program,
                                   const std::vector<Argument>& arguments,
                                   const isa::MachineProfile& profile,
                                   const std::atomic<bool>& interrupt,
                                   bool records_timeline = false);

/// The same on options.device through the runtime. Throws what that throws.
[[nodiscard]] KernelRun run_on_device(const SimOptions& options,
                                      std::shared_ptr<const Program> program,
                                      const std::vector<Argument>& arguments,
                                      const std::atomic<bool>& interrupt);

} // namespace pto::sim
