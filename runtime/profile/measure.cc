// SPDX-License-Identifier: Apache-2.0
// From a timed run to what an on-device hook would have seen.
#include "runtime/profile/measure.h"

#include "isa/hash.h"
#include "runtime/noise.h"
#include "runtime/profile/samples.h"
#include "simulator/block.h"
#include "simulator/fault.h"
#include "simulator/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

namespace pto::rt {
namespace {

constexpr std::string_view kEmulatedPrefix = "emulated:";

/// On hardware data that are all zero switch fewer wires and take shortcuts; a measurement of them
/// tells little.
bool is_all_zero(const sim::Machine& machine, const sim::LaunchConfig& config) {
  bool has_pointer = false;
  for (const sim::LaunchArg& arg : config.args) {
    const sim::Allocation* allocation = arg.is_pointer ? machine.hbm.find(arg.bits) : nullptr;
    if (allocation == nullptr) {
      continue;
    }
    has_pointer = true;
    const uint8_t* begin = allocation->host;
    const uint8_t* end = begin + allocation->size_bytes;
    if (std::any_of(begin, end, [](uint8_t byte) { return byte != 0; })) {
      return false;
    }
  }
  return has_pointer;
}

sim::TimedResult run_once(sim::Machine& machine,
                          sim::SharedMemory& shared,
                          const std::shared_ptr<const sim::Program>& program,
                          const sim::LaunchConfig& config,
                          const MeasureOptions& options) {
  sim::Launch launch(machine, program, config);
  sim::TimedOptions timed;
  timed.timing.record_timeline = options.sees_insns;
  timed.timing.timeline_limits.max_entries = options.max_timeline_entries;
  timed.timing.max_cycles = options.max_cycles;
  timed.max_insns = options.max_insns;
  timed.interrupt = options.interrupt;
  if (options.progress) {
    timed.progress = [&](const sim::Progress& /*progress*/, uint64_t /*cycle*/) {
      options.progress();
    };
  }
  sim::TimedResult result = sim::run_timed(launch, shared, timed);
  if (result.run.status != sim::RunStatus::kCompleted) {
    throw MeasureError(
        fmt::format("kernel '{}' did not complete ({}), so there is nothing to measure{}{}",
                    program->kernel().name,
                    sim::name(result.run.status),
                    result.run.fault ? ":\n" : "; run it with ptosim to see why",
                    result.run.fault ? sim::format_fault(*result.run.fault, *program) : ""));
  }
  return result;
}

struct Sum {
  uint64_t count = 0;
  double cycles = 0;
  void add(uint64_t issues, double each) {
    count += issues;
    cycles += static_cast<double>(issues) * each;
  }
  [[nodiscard]] double mean() const { return count == 0 ? 0 : cycles / static_cast<double>(count); }
};

using PairKey = std::tuple<std::string, std::string, bool>;

/// Sums over the timeline: by key, and by pair of neighbours that are connected or joined.
class InsnSums {
public:
  InsnSums(const sim::Program& program, const isa::MachineProfile& machine)
      : program_(program), timing_(program.object(), machine) {
    for (uint32_t pc = 0; pc < program.insns().size(); ++pc) {
      keys_.push_back(latency_key(program.at(pc).insn));
    }
  }

  void add(const sim::Timeline& timeline) {
    for (const sim::TimelineEntry& entry : timeline.entries()) {
      const double cycles = static_cast<double>(entry.done_cycle - entry.issue_cycle);
      if (!timing_[entry.pc].is_free && !entry.is_fused) {
        by_key[keys_[entry.pc]].add(warps_that_do(entry), cycles);
      }
      for (uint32_t warp = entry.first_warp; warp <= entry.last_warp; ++warp) {
        add_pair(entry, warp, cycles);
      }
    }
  }

  /// What the cycles of a key run from and to; empty: issue to result usable.
  [[nodiscard]] std::string definition(const std::string& key) const {
    for (uint32_t pc = 0; pc < keys_.size(); ++pc) {
      if (keys_[pc] == key && program_.at(pc).insn.desc->has(isa::kAsync)) {
        return "issue to the end of the copy";
      }
    }
    return {};
  }

  std::map<std::string, Sum> by_key;
  std::map<PairKey, Sum> by_pair;

private:
  struct Last {
    uint32_t pc = UINT32_MAX;
    uint64_t issue_cycle = 0;
    double cycles = 0;
  };

  void add_pair(const sim::TimelineEntry& entry, uint32_t warp, double cycles) {
    Last& last = last_[entry.block * 4096 + warp];
    if (last.pc != UINT32_MAX && last.pc + 1 == entry.pc) {
      const bool is_connected = connects(last.pc, entry.pc);
      const bool passes_first = passes_over(last.pc, warp);
      if (entry.is_fused && !passes_first) {
        // The first half has no latency of its own: what was booked for it is taken back.
        Sum& first = by_key[keys_[last.pc]];
        first.count -= 1;
        first.cycles -= last.cycles;
      }
      if ((entry.is_fused || is_connected) && !passes_first && !passes_over(entry.pc, warp)) {
        by_pair[{keys_[last.pc], keys_[entry.pc], entry.is_fused}].add(
            1, static_cast<double>(entry.issue_cycle - last.issue_cycle) + cycles);
      }
    }
    last = {entry.pc, entry.issue_cycle, cycles};
  }

  /// Warp 0 does what the block does once; the others have nothing to measure there.
  [[nodiscard]] bool passes_over(uint32_t pc, uint32_t warp) const {
    return program_.at(pc).is_block_scoped && warp != 0;
  }
  [[nodiscard]] uint64_t warps_that_do(const sim::TimelineEntry& entry) const {
    if (program_.at(entry.pc).is_block_scoped) {
      return entry.first_warp == 0 ? 1 : 0;
    }
    return entry.last_warp - entry.first_warp + 1;
  }

  [[nodiscard]] bool connects(uint32_t first, uint32_t second) const {
    return program_.at(first).writes.intersects(program_.at(second).reads);
  }

  const sim::Program& program_;
  sim::ProgramTiming timing_;
  std::vector<std::string> keys_;
  std::unordered_map<uint64_t, Last> last_;
};

/// Mean and spread over runs, each of which has its own noise.
std::pair<double, double> over_runs(double cycles,
                                    const MeasureOptions& options,
                                    const std::vector<RunSample>& runs,
                                    uint64_t stream) {
  if (options.noise.relative == 0) {
    return {cycles, 0};
  }
  std::vector<double> samples;
  NoiseModel noise = options.noise;
  noise.doubled_runs = 0;
  for (uint32_t run = 0; run < runs.size(); ++run) {
    if (runs[run].rejected.empty()) {
      samples.push_back(noisy_cycles(cycles, noise, stream, run, options.runs));
    }
  }
  const SampleSummary summary = summarise(samples);
  return {summary.centre, summary.spread};
}

void fill_insns(KernelProfile& kernel, const InsnSums& sums, const MeasureOptions& options) {
  for (const auto& [key, sum] : sums.by_key) {
    if (sum.count != 0) {
      const auto [cycles, spread] =
          over_runs(sum.mean(), options, kernel.runs, isa::hash_of(kernel.name + "/" + key));
      kernel.insns.push_back({key, sum.count, cycles, spread, sums.definition(key)});
    }
  }
  for (const auto& [key, sum] : sums.by_pair) {
    const auto& [first, second, is_joined] = key;
    const auto [cycles, spread] =
        over_runs(sum.mean(),
                  options,
                  kernel.runs,
                  isa::hash_of(fmt::format("{}/{}+{}", kernel.name, first, second)));
    kernel.pairs.push_back({first, second, is_joined, sum.count, cycles, spread});
  }
}

void fill_units(KernelProfile& kernel, const sim::TimedCounters& counters) {
  for (const sim::CoreCounters& core : counters.cores) {
    for (unsigned unit = 0; unit < isa::kUnitCount; ++unit) {
      kernel.unit_busy_cycles[unit] =
          std::max(kernel.unit_busy_cycles[unit],
                   std::min(core.unit_busy_cycles[unit], static_cast<double>(counters.cycles)));
    }
  }
}

} // namespace

std::optional<std::string> emulated_profile_name(std::string_view device) {
  if (!device.starts_with(kEmulatedPrefix)) {
    return std::nullopt;
  }
  return std::string(device.substr(kEmulatedPrefix.size()));
}

ProfileDevice emulated_device(const std::string& profile_name,
                              const isa::MachineProfile& machine,
                              const NoiseModel& noise) {
  ProfileDevice device;
  device.name = std::string(kEmulatedPrefix) + profile_name;
  device.is_emulated = true;
  device.clock_mhz = machine.clock_mhz;
  device.noise = noise.relative;
  device.seed = noise.relative == 0 && noise.doubled_runs == 0 ? 0 : noise.seed;
  return device;
}

double
noisy_cycles(double cycles, const NoiseModel& noise, uint64_t stream, uint32_t run, uint32_t runs) {
  if (noise.relative == 0 && noise.doubled_runs == 0) {
    return cycles;
  }
  const uint64_t seed = noise.seed ^ (stream * 0x9e3779b97f4a7c15U);
  const double factor = noise_factor(noise.relative, seed, run);
  const uint64_t first_doubled = runs == 0 ? 0 : sim::random_bits(seed, UINT32_MAX) % runs;
  const bool is_doubled = runs != 0 && (run + runs - first_doubled) % runs < noise.doubled_runs;
  return cycles * factor * (is_doubled ? 2 : 1);
}

KernelProfile measure_emulated(sim::Machine& machine,
                               std::shared_ptr<const sim::Program> program,
                               const sim::LaunchConfig& config,
                               const MeasureOptions& options) {
  sim::SharedMemory shared(machine.profile);
  return measure_emulated(machine, shared, std::move(program), config, options);
}

KernelProfile measure_emulated(sim::Machine& machine,
                               sim::SharedMemory& shared,
                               std::shared_ptr<const sim::Program> program,
                               const sim::LaunchConfig& config,
                               const MeasureOptions& options) {
  KernelProfile kernel;
  kernel.name = program->kernel().name;
  if (!program->object().files.empty()) {
    kernel.source = program->object().files.front();
  }
  kernel.grid = config.grid;
  kernel.block = config.block;
  const bool is_zero = options.sees_insns && is_all_zero(machine, config);
  shared.start_launch();
  const sim::TimedResult result = run_once(machine, shared, program, config, options);
  const auto cycles = static_cast<double>(result.counters.cycles);
  for (uint32_t run = 0; run < std::max(1U, options.runs); ++run) {
    kernel.runs.push_back(
        {noisy_cycles(cycles, options.noise, isa::hash_of(kernel.name), run, options.runs), {}});
  }
  settle_runs(kernel);
  if (options.sees_insns) {
    InsnSums sums(*program, machine.profile);
    sums.add(result.timeline);
    fill_insns(kernel, sums, options);
    fill_units(kernel, result.counters);
    if (result.timeline.dropped() != 0) {
      kernel.warnings.push_back(
          fmt::format("insn figures are of the first {} timeline entries; {} warp insns came later",
                      result.timeline.entries().size(),
                      result.timeline.dropped()));
    }
  }
  if (is_zero) {
    kernel.warnings.emplace_back(kZeroInputsWarning);
  }
  for (const std::string& key : result.missing_keys) {
    kernel.warnings.push_back(
        fmt::format("the device's machine profile has no latency for {}: its fallback of {} cycles "
                    "was used",
                    key,
                    machine.profile.fallback_latency_cycles));
  }
  return kernel;
}

SimulatedKernel simulate(sim::Machine& machine,
                         std::shared_ptr<const sim::Program> program,
                         const sim::LaunchConfig& config,
                         const MeasureOptions& options) {
  sim::SharedMemory shared(machine.profile);
  const sim::TimedResult result = run_once(machine, shared, program, config, options);
  SimulatedKernel simulated;
  simulated.machine = machine.profile.name;
  simulated.cycles = static_cast<double>(result.counters.cycles);
  if (options.sees_insns) {
    InsnSums sums(*program, machine.profile);
    sums.add(result.timeline);
    for (const auto& [key, sum] : sums.by_key) {
      if (sum.count != 0) {
        simulated.insns.push_back({key, sum.count, sum.mean(), 0, sums.definition(key)});
      }
    }
  }
  return simulated;
}

} // namespace pto::rt
