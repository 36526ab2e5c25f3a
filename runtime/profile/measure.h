// SPDX-License-Identifier: Apache-2.0
// Measuring a kernel on an emulated device: the simulator with a machine profile of its own stands
// in for hardware, and seeded noise for what hardware adds to every run.
//
// The kernel executes once, since the simulator's cycles are the same every time; the runs differ
// by noise alone. The function needs nothing of a runtime: whoever owns a sim::Machine (a command,
// an emulated device of the runtime, a test) calls it.
#pragma once

#include "runtime/profile/profile.h"
#include "simulator/program.h"
#include "simulator/timed.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace pto::rt {

/// What emulated runs have beyond the simulator's cycles.
struct NoiseModel {
  double relative = 0;       // standard deviation of a run, as a part of its cycles
  uint64_t seed = 1;         // the same seed, kernel and run: the same noise
  uint32_t doubled_runs = 0; // so many runs take twice the time, as an interrupted one would
};

struct MeasureOptions {
  uint32_t runs = 5;
  NoiseModel noise;
  bool sees_insns = true;                 // the hook reads clocks around insns too
  size_t max_timeline_entries = 1u << 18; // of which insn figures are made
  uint64_t max_insns = UINT64_MAX;
  uint64_t max_cycles = UINT64_MAX;
  const std::atomic<bool>* interrupt = nullptr; // set: end soon, with MeasureError
  std::function<void()> progress;               // called every few milliseconds of a run
};

/// What to say where a kernel was measured on arrays of zeros.
inline constexpr const char* kZeroInputsWarning =
    "all input arrays are zero: on hardware such data run with less power and a higher clock than "
    "real ones; use rand or a file";

/// A kernel that did not run to its end.
class MeasureError : public Error {
public:
  using Error::Error;
};

/// "emulated:reference-fused" -> "reference-fused"; nothing for other devices.
[[nodiscard]] std::optional<std::string> emulated_profile_name(std::string_view device);

/// The device as profiles record it; `profile_name` is a shipped name or a path.
[[nodiscard]] ProfileDevice emulated_device(const std::string& profile_name,
                                            const isa::MachineProfile& machine,
                                            const NoiseModel& noise);

/// Launches the kernel on `machine` (whose profile is the device) and tells what a hook would have
/// measured. Memory is left as after one run. Throws LaunchError, and MeasureError if the kernel
/// faults, deadlocks or exceeds a limit.
[[nodiscard]] KernelProfile measure_emulated(sim::Machine& machine,
                                             std::shared_ptr<const sim::Program> program,
                                             const sim::LaunchConfig& config,
                                             const MeasureOptions& options = {});

/// The same with L2 carried from launch to launch; for many kernels in a row.
[[nodiscard]] KernelProfile measure_emulated(sim::Machine& machine,
                                             sim::SharedMemory& shared,
                                             std::shared_ptr<const sim::Program> program,
                                             const sim::LaunchConfig& config,
                                             const MeasureOptions& options);

/// What `machine.profile` predicts for a launch: one timed run, no noise.
[[nodiscard]] SimulatedKernel simulate(sim::Machine& machine,
                                       std::shared_ptr<const sim::Program> program,
                                       const sim::LaunchConfig& config,
                                       const MeasureOptions& options = {});

/// A run of the noise model; exposed for tests. `stream` tells kernels apart.
[[nodiscard]] double
noisy_cycles(double cycles, const NoiseModel& noise, uint64_t stream, uint32_t run, uint32_t runs);

} // namespace pto::rt
