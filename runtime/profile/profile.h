// SPDX-License-Identifier: Apache-2.0
// Profile: what was measured on a device, as a value, and its JSON form (profile.schema.json).
//
// A profile holds kernels; a kernel holds its runs (raw), and where the device's hook can see them
// the cycles of each insn key and of pairs of neighbouring insns. An insn key is a query of a
// machine profile's latency table, such as `LOAD.hbm.f32`. Cycles are the device's own clock.
//
// Everything that comes from an emulated device says so: Device::is_emulated, its name, and every
// text made from it.
#pragma once

#include "isa/machine.h"
#include "simulator/launch.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pto::rt {

struct ProfileDevice {
  std::string name; // "emulated:reference-fused", "npu:0", "Ascend950PR_9589"
  bool is_emulated = false;
  double clock_mhz = 0; // 0: unknown
  double noise = 0;     // of an emulated device: relative deviation of each run
  uint64_t seed = 0;
};

/// One run of a kernel. A rejected one stays here and says why it does not count.
struct RunSample {
  double cycles = 0;
  std::string rejected; // empty: counts
};

/// One insn key in one kernel.
struct InsnMeasurement {
  std::string key;        // "LOAD.hbm.f32"
  uint64_t count = 0;     // warp insns issued in a run
  double cycles = 0;      // of one, mean over issues and accepted runs
  double spread = 0;      // standard deviation of that over runs
  std::string definition; // what `cycles` runs from and to; empty: issue to result usable
};

/// Two neighbouring insns of a warp, the second using what the first wrote, or issued as one.
struct PairMeasurement {
  std::string first;
  std::string second;
  bool is_joined = false; // the device issued both as one
  uint64_t count = 0;
  double cycles = 0; // issue of the first to the second's result
  double spread = 0;
};

/// A source line, as a vendor's simulator counts it.
struct LineMeasurement {
  std::string place; // "add.asc:25"
  uint64_t count = 0;
  double cycles = 0; // of all its executions
};

/// Anything else that was counted: by a vendor's profiler under its own name, by the hook.
struct CounterMeasurement {
  std::string name; // "aiv_vec_ratio", "stall.Scoreboard_Not_Ready", "clock_reads.overhead_cycles"
  std::string combine; // how rows were combined: "sum", "mean" or "max"
  double value = 0;
};

/// Of a kernel that a microbenchmark set made: what it is for.
struct MicroTag {
  std::string role;    // "latency", "interval", "pair", ...; empty: no microbenchmark
  std::string first;   // insn key under test
  std::string second;  // of a pair; of a chain closed by a second insn, that one
  std::string variant; // "spaced", "tight", ...
  double repeats = 0;  // how often the pattern stands in the kernel
  double amount = 0;   // what the role varies: bytes, warps, lanes on one address, ...
  [[nodiscard]] bool is_set() const { return !role.empty(); }
};

/// What a machine profile predicts for a kernel.
struct SimulatedKernel {
  std::string machine;
  double cycles = 0;
  std::vector<InsnMeasurement> insns; // spread 0
};

/// What it takes to run the kernel again: text and arguments as `ptosim --arg` takes them.
struct ReplayInput {
  std::string text;
  std::string kernel;
  std::vector<std::string> args;
  uint32_t dynamic_l1_bytes = 0;
};

struct KernelProfile {
  std::string name;
  std::string group;  // kernels that do the same work in different ways share one; may be empty
  std::string source; // file, or where it was imported from
  sim::Dim3 grid{};
  sim::Dim3 block{};
  MicroTag micro;
  double cycles = 0; // mean of the accepted runs
  double spread = 0; // their standard deviation
  double error = 0;  // standard error of `cycles`
  std::vector<RunSample> runs;
  std::vector<InsnMeasurement> insns;                     // by key
  std::vector<PairMeasurement> pairs;                     // by first and second
  std::array<double, isa::kUnitCount> unit_busy_cycles{}; // sums over pipes; 0: unknown
  std::vector<LineMeasurement> lines;
  std::vector<CounterMeasurement> counters;
  std::vector<SimulatedKernel> simulated;
  std::optional<ReplayInput> replay;
  std::vector<std::string> warnings; // what to keep in mind about these figures

  /// What that machine profile predicts (empty: the first one recorded); null if there is nothing.
  [[nodiscard]] const SimulatedKernel* find_simulation(std::string_view machine) const;
};

struct Profile {
  static constexpr int kVersion = 1;
  ProfileDevice device;
  std::string date; // "2026-08-21"; empty: not recorded
  std::string tool; // what wrote it
  std::vector<std::string> notes;
  std::vector<KernelProfile> kernels;

  /// Null if there is none of that name.
  [[nodiscard]] const KernelProfile* find(std::string_view name) const;
  /// "emulated:reference-fused (emulated)", "npu:0"
  [[nodiscard]] std::string device_label() const;
};

/// "LOAD" of "LOAD.hbm.f32".
[[nodiscard]] std::string_view key_base(std::string_view key);
/// The key by which an insn asks the latency table.
[[nodiscard]] std::string latency_key(const isa::Insn& insn);

/// Fills cycles, spread and error from `runs` and marks those that do not belong.
void settle_runs(KernelProfile& kernel);

/// Indented JSON with a line end. read_profile of it gives the same value.
[[nodiscard]] std::string to_json_text(const Profile& profile);

/// Total: any bytes give a profile or issues (at most 20) that say what is wrong where and what was
/// expected. `file` is what messages call it.
[[nodiscard]] std::optional<Profile>
read_profile(std::string_view json_text, std::string_view file, isa::ProfileIssues& issues);
/// The same from a file.
[[nodiscard]] std::optional<Profile> load_profile(const std::string& path,
                                                  isa::ProfileIssues& issues);

/// The JSON schema of a profile file.
[[nodiscard]] std::string profile_schema_text();

} // namespace pto::rt
