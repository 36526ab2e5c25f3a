// SPDX-License-Identifier: Apache-2.0
// The seam between the runtime and what executes: memory and launches of one device.
//
// The runtime (runtime/device.h) does the rest once for all of them: order, threads, lifetimes,
// errors of misuse. A backend is a row in runtime/open.cc: a kind ("sim", "emulated", "npu"), how
// to open it, and how to list what there is.
//
// Thread rule: allocate, prepare and DeviceMemory::retire are called under the device's lock, one
// at a time. PreparedLaunch::run, DeviceMemory::read and write and the destructors are called from
// any thread, several at a time, but never two that touch one DeviceMemory.
#pragma once

#include "isa/machine.h"
#include "runtime/npu/probe.h"
#include "simulator/checks/checks.h"
#include "simulator/launch.h"
#include "simulator/schedule.h"
#include "simulator/timed.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pto::rt {

/// Memory on a device. The destructor releases it; until then its bytes stay what they are.
class DeviceMemory {
public:
  virtual ~DeviceMemory() = default;
  [[nodiscard]] virtual uint64_t address() const = 0;
  /// The range lies within the memory. Throw a DeviceError where the device refuses.
  virtual void write(uint64_t offset, std::span<const uint8_t> from) = 0;
  virtual void read(uint64_t offset, std::span<uint8_t> to) const = 0;
  /// Its owner gave it up: launches prepared from now on must not find it, those prepared before
  /// still use it. Once.
  virtual void retire(const std::string& /*freed_by*/) {}
};

/// How a launch runs. What a device cannot do it refuses with a DeviceError in prepare().
struct LaunchOptions {
  sim::CheckSet checks;
  std::optional<sim::Schedule> schedule; // untimed runs: an order other than the fastest
  std::optional<bool> is_timed;          // nothing: as the device does
  bool record_timeline = false;
  sim::TimelineLimits timeline_limits;
  uint32_t dynamic_l1_bytes = 0;
  uint64_t max_insns = UINT64_MAX;
  uint64_t max_cycles = UINT64_MAX;
  Instrument instrument = Instrument::kNone; // Backend::reads_clocks() only
  std::string launched_by;                   // "train.py:31"; may be empty
};

/// A launch as a backend sees it: pointers are device addresses.
struct LaunchRequest {
  std::shared_ptr<const sim::Program> program;
  sim::Dim3 grid{};
  sim::Dim3 block{};
  std::vector<sim::LaunchArg> args;
  LaunchOptions options;
  uint64_t sequence = 0; // counts the device's launches from 0: the seed of its noise
};

struct LaunchResult {
  sim::RunResult run;                    // status, counts, prints, fault
  std::optional<sim::TimedResult> timed; // its `run` is moved to `run`
  std::vector<sim::Finding> findings;    // of options.checks
  uint64_t findings_dropped = 0;
  /// What the device's own clock says, with its noise; 0 where nothing was timed.
  double cycles = 0;
  double microseconds = 0;
  std::optional<ProbeResult> probe; // of an instrumented launch
  /// Check mem only: where each allocation, by base, was accessed first.
  std::map<uint64_t, sim::FindingSite> first_accesses;

  [[nodiscard]] bool is_completed() const { return run.status == sim::RunStatus::kCompleted; }
};

/// A launch that was checked and keeps what it needs of the backend, memory excepted (the runtime
/// keeps the buffers of its arguments until run() has returned).
class PreparedLaunch {
public:
  virtual ~PreparedLaunch() = default;
  /// Once. Ends soon with RunStatus::kInterrupted when `interrupt` becomes true. Throws a
  /// DeviceError for what the device refuses; a fault of the kernel is a result.
  virtual LaunchResult run(const std::atomic<bool>& interrupt) = 0;
};

struct DeviceInfo {
  std::string name;        // "emulated:reference-fused": opens it again
  std::string kind;        // "emulated"
  std::string description; // one line, for people
  bool is_emulated = false;
};

class Backend {
public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual const DeviceInfo& info() const = 0;
  /// The machine whose limits hold for launches.
  [[nodiscard]] virtual const isa::MachineProfile& profile() const = 0;
  /// Zeroed memory, aligned to 256 bytes at least. Throws where there is not so much.
  [[nodiscard]] virtual std::unique_ptr<DeviceMemory>
  allocate(uint64_t size_bytes, const std::string& name, const std::string& made_by) = 0;
  /// Checks all that can be checked before running: shape, argument count and types, registers,
  /// scratchpad (sim::LaunchError), and what the device cannot do (DeviceError).
  [[nodiscard]] virtual std::unique_ptr<PreparedLaunch> prepare(LaunchRequest request) = 0;
  /// True where a launch's time depends on the launches before it: the runtime then runs all
  /// launches of the device one after another, in the order in which they were made.
  [[nodiscard]] virtual bool runs_in_order(const LaunchOptions& options) const = 0;
  /// True where launches can be instrumented with clock reads.
  [[nodiscard]] virtual bool reads_clocks() const { return false; }
  /// A simulated machine over this device's memory as it is now, for a debugger; null if the device
  /// is not simulated. Keeps the memory it sees.
  [[nodiscard]] virtual std::unique_ptr<sim::Machine> view() { return nullptr; }
};

/// How a device is opened.
struct DeviceOptions {
  /// Machine profile, shipped name or path; empty: what the device's name says, else "reference".
  std::string profile;
  /// Used instead of `profile` where set: one that was fitted or changed in memory.
  std::optional<isa::MachineProfile> machine;
  /// Emulated devices: relative standard deviation of what their clock says (0.05: 5 %), the same
  /// for the same seed and the same launches.
  double noise = 0;
  uint64_t noise_seed = 0;
  /// Host threads that one untimed launch may use; 0: as many as the host has. Results never
  /// depend on it.
  unsigned host_threads = 1;
  /// Called about every 50 ms by whoever waits for the device; may throw to give the wait up.
  std::function<void()> on_wait;
};

} // namespace pto::rt
