// SPDX-License-Identifier: Apache-2.0
// Measuring through the runtime.
#include "runtime/profile/measure_device.h"

#include "runtime/profile/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace pto::rt {
namespace {

constexpr const char* kDefinition =
    "clock read before to clock read after, an empty pair of reads subtracted";

KernelProfile named(const DeviceInput& input) {
  KernelProfile kernel;
  kernel.name = input.program->kernel().name;
  kernel.grid = input.grid;
  kernel.block = input.block;
  return kernel;
}

LaunchSpec spec_of(const DeviceInput& input, const DeviceArrays& arrays) {
  LaunchSpec spec;
  spec.program = input.program;
  spec.grid = input.grid;
  spec.block = input.block;
  spec.options.dynamic_l1_bytes = input.dynamic_l1_bytes;
  for (const DeviceInput::Arg& arg : input.args) {
    spec.args.push_back(arg.array ? LaunchArgument::pointer(arrays.at(*arg.array))
                                  : LaunchArgument::scalar(arg.bits, arg.type));
  }
  return spec;
}

LaunchResult run(Device& device, const LaunchSpec& spec) {
  const Ticket ticket = device.launch(spec);
  ticket.wait();
  return ticket.result();
}

double cycles_of(const Device& device, const LaunchResult& result, const std::string& kernel) {
  const double cycles =
      result.cycles != 0 ? result.cycles : result.microseconds * device.profile().clock_mhz;
  if (cycles == 0) {
    throw MeasureError(fmt::format("device {} ran '{}' but tells no time of it, so there is "
                                   "nothing to measure",
                                   device.info().name,
                                   kernel));
  }
  return cycles;
}

/// Adds `runs` runs after `warm_ups` that do not count. `launch` runs the kernel once and gives the
/// cycles.
template <class Launch>
void add_runs(KernelProfile& kernel, uint32_t runs, uint32_t warm_ups, const Launch& launch) {
  for (uint32_t i = 0; i < warm_ups; ++i) {
    static_cast<void>(launch());
  }
  for (uint32_t i = 0; i < runs; ++i) {
    kernel.runs.push_back({launch(), {}});
  }
  settle_runs(kernel);
}

/// On hardware data that are all zero switch fewer wires; see measure.cc.
bool is_all_zero(const DeviceInput& input) {
  const auto is_zero = [](std::span<const uint8_t> array) {
    return std::all_of(array.begin(), array.end(), [](uint8_t byte) { return byte == 0; });
  };
  return !input.arrays.empty() && std::all_of(input.arrays.begin(), input.arrays.end(), is_zero);
}

/// Means of one launch after the other.
struct Samples {
  uint64_t count = 0; // of the last launch
  std::vector<double> cycles;
};

using PairKey = std::pair<std::string, std::string>;

/// Takes the results of instrumented launches apart by key.
class ProbeFigures {
public:
  explicit ProbeFigures(const sim::Program& program) : program_(program) {}

  void add_insns(const ProbeResult& probe) {
    std::map<std::string, ProbeResult::Sum> sums;
    for (const ProbeResult::Sum& region : probe.regions) {
      add(sums[key(region.region.first_pc)], region);
    }
    for (const auto& [key, sum] : sums) {
      add(insns_[key], sum, probe);
    }
    overheads_.push_back(probe.overhead_cycles);
  }

  void add_pairs(const ProbeResult& probe) {
    std::map<PairKey, ProbeResult::Sum> sums;
    for (const ProbeResult::Sum& region : probe.regions) {
      const uint32_t first = region.region.first_pc;
      if (program_.at(first).writes.intersects(program_.at(first + 1).reads)) {
        add(sums[{key(first), key(first + 1)}], region);
      }
    }
    for (const auto& [key, sum] : sums) {
      add(pairs_[key], sum, probe);
    }
    overheads_.push_back(probe.overhead_cycles);
  }

  void fill(KernelProfile& kernel) const {
    std::string hidden;
    for (const auto& [key, samples] : insns_) {
      const SampleSummary summary = summarise(samples.cycles);
      if (summary.centre <= 0) {
        hidden += fmt::format("{}{}", hidden.empty() ? "" : ", ", key);
      }
      kernel.insns.push_back(
          {key, samples.count, std::max(0.0, summary.centre), summary.spread, kDefinition});
    }
    for (const auto& [key, samples] : pairs_) {
      const SampleSummary summary = summarise(samples.cycles);
      kernel.pairs.push_back({key.first,
                              key.second,
                              false, // clock reads cannot see what issues as one
                              samples.count,
                              std::max(0.0, summary.centre),
                              summary.spread});
    }
    kernel.counters.push_back(
        {"clock_reads.overhead_cycles", "mean", summarise(overheads_).centre});
    if (!hidden.empty()) {
      kernel.warnings.push_back(
          fmt::format("no longer than an empty pair of clock reads, so 0 cycles: {}", hidden));
    }
  }

private:
  [[nodiscard]] std::string key(uint32_t pc) const { return latency_key(program_.at(pc).insn); }

  static void add(ProbeResult::Sum& sum, const ProbeResult::Sum& region) {
    sum.count += region.count;
    sum.cycles += region.cycles;
  }
  static void add(Samples& samples, const ProbeResult::Sum& sum, const ProbeResult& probe) {
    samples.count = sum.count;
    samples.cycles.push_back(sum.cycles / static_cast<double>(sum.count) - probe.overhead_cycles);
  }

  const sim::Program& program_;
  std::map<std::string, Samples> insns_;
  std::map<PairKey, Samples> pairs_;
  std::vector<double> overheads_;
};

void look_at_insns(
    Device& device, LaunchSpec spec, DeviceArrays& arrays, uint32_t runs, KernelProfile& kernel) {
  if (!device.reads_clocks()) {
    kernel.warnings.emplace_back("whole kernel only: the device's hook gave no insn figures");
    return;
  }
  ProbeFigures figures(*spec.program);
  try {
    for (const Instrument instrument :
         {Instrument::kInsns, Instrument::kPairs, Instrument::kPairsFromSecond}) {
      spec.options.instrument = instrument;
      for (uint32_t i = 0; i < 1 + runs; ++i) { // the first one finds the kernel cold
        arrays.restore();
        const LaunchResult result = run(device, spec);
        if (i == 0) {
          continue;
        }
        if (instrument == Instrument::kInsns) {
          figures.add_insns(*result.probe);
        } else {
          figures.add_pairs(*result.probe);
        }
      }
    }
  } catch (const ProbeSizeError& error) {
    kernel.warnings.push_back(fmt::format("whole kernel only: {}", error.what()));
    return;
  }
  figures.fill(kernel);
}

} // namespace

DeviceInput device_input(const KernelInput& input) {
  DeviceInput out;
  out.program = input.program();
  out.grid = input.grid();
  out.block = input.block();
  out.dynamic_l1_bytes = input.dynamic_l1_bytes();
  for (const sim::Argument& argument : input.arguments()) {
    DeviceInput::Arg arg{argument.bits, argument.param.type, std::nullopt};
    if (argument.param.is_pointer) {
      arg.array = out.arrays.size();
      out.arrays.emplace_back(reinterpret_cast<const uint8_t*>(argument.array.data.data()),
                              argument.array.data.size());
    }
    out.args.push_back(arg);
  }
  return out;
}

ProfileDevice profile_device(const Device& device) {
  ProfileDevice out;
  out.name = device.info().name;
  out.is_emulated = device.info().is_emulated;
  out.clock_mhz = device.profile().clock_mhz;
  return out;
}

DeviceArrays::DeviceArrays(Device& device, const std::vector<std::span<const uint8_t>>& contents)
    : contents_(contents) {
  buffers_.reserve(contents_.size());
  for (const std::span<const uint8_t> content : contents_) {
    buffers_.push_back(device.alloc(content.size(), "argument"));
  }
  restore();
}

void DeviceArrays::restore() {
  for (size_t i = 0; i < buffers_.size(); ++i) {
    buffers_[i].write(contents_[i]);
  }
}

KernelProfile measure_on_device(Device& device,
                                const DeviceInput& input,
                                const MeasureOptions& options,
                                uint32_t warm_ups) {
  KernelProfile kernel = named(input);
  DeviceArrays arrays(device, input.arrays);
  LaunchSpec spec = spec_of(input, arrays);
  spec.options.max_insns = options.max_insns;
  spec.options.max_cycles = options.max_cycles;
  const uint32_t runs = std::max(1U, options.runs);
  add_runs(kernel, runs, warm_ups, [&] {
    arrays.restore();
    return cycles_of(device, run(device, spec), kernel.name);
  });
  if (is_all_zero(input)) {
    kernel.warnings.emplace_back(kZeroInputsWarning);
  }
  if (options.sees_insns) {
    look_at_insns(device, std::move(spec), arrays, runs, kernel);
  }
  return kernel;
}

KernelProfile measure_span(Device& device,
                           const DeviceInput& input,
                           const DeviceArrays& arrays,
                           uint32_t runs,
                           uint32_t warm_ups) {
  KernelProfile kernel = named(input);
  LaunchSpec spec = spec_of(input, arrays);
  spec.options.instrument = Instrument::kKernel;
  add_runs(kernel, runs, warm_ups, [&] { return run(device, spec).probe->span_cycles; });
  return kernel;
}

KernelProfile measure_launch(Device& device,
                             const DeviceInput& input,
                             const DeviceArrays& arrays,
                             uint32_t runs,
                             uint32_t warm_ups) {
  KernelProfile kernel = named(input);
  const LaunchSpec spec = spec_of(input, arrays);
  add_runs(
      kernel, runs, warm_ups, [&] { return cycles_of(device, run(device, spec), kernel.name); });
  return kernel;
}

} // namespace pto::rt
