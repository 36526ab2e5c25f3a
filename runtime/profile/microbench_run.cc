// SPDX-License-Identifier: Apache-2.0
// Assembling a set of microbenchmarks and measuring it, on an emulated device or through the
// runtime.
#include "assembler/assemble.h"
#include "isa/error.h"
#include "runtime/profile/measure_device.h"
#include "runtime/profile/microbench.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace pto::rt {

std::vector<AssembledMicrobench> assemble_microbenches(std::vector<Microbench> set) {
  std::vector<AssembledMicrobench> result;
  result.reserve(set.size());
  for (Microbench& bench : set) {
    isa::Diagnostics diags;
    as::AssembleOptions options;
    options.run_lints = false;
    auto object = as::assemble_text(bench.name + ".pto", bench.text, options, diags);
    if (!object) {
      throw InternalError(fmt::format(
          "a generated microbenchmark does not assemble:\n{}{}", isa::render(diags), bench.text));
    }
    std::string error;
    auto program =
        sim::Program::find(std::make_shared<const isa::Object>(std::move(*object)), {}, error);
    PTO_CHECK(program != nullptr);
    result.push_back({std::move(bench), std::move(program)});
  }
  return result;
}

namespace {

/// Large enough for every kernel of the set.
struct ArraySizes {
  explicit ArraySizes(const std::vector<AssembledMicrobench>& set) {
    for (const AssembledMicrobench& entry : set) {
      a_bytes = std::max(a_bytes, entry.bench.a_bytes);
      o_bytes = std::max(o_bytes, uint64_t{entry.bench.grid} * entry.bench.lanes * 8);
    }
  }
  uint64_t a_bytes = 0;
  uint64_t o_bytes = 8192;
};

DeviceInput input_of(const AssembledMicrobench& entry,
                     const std::vector<std::span<const uint8_t>>& arrays) {
  DeviceInput input;
  input.program = entry.program;
  input.grid = {entry.bench.grid, 1, 1};
  input.block = {entry.bench.lanes, 1, 1};
  input.arrays = arrays;
  input.args = {{0, isa::Type::kNone, 0}, {0, isa::Type::kNone, 1}, {1, isa::Type::kU32, {}}};
  return input;
}

/// After so many kernels in a row that could not be measured the device is not worth asking again.
constexpr size_t kMostFailures = 8;

/// Pushes everything else out of the caches that cores share.
class CacheSweep {
public:
  CacheSweep(Device& device, uint64_t cache_bytes)
      : device_(device), cache_bytes_(std::max<uint64_t>(cache_bytes, 1)) {}
  void run() {
    if (!buffer_) {
      bytes_.resize(cache_bytes_);
      buffer_.emplace(device_.alloc(cache_bytes_, "cache sweep"));
    }
    buffer_->write(bytes_);
  }

private:
  Device& device_;
  uint64_t cache_bytes_;
  std::vector<uint8_t> bytes_;
  std::optional<Buffer> buffer_;
};

} // namespace

void measure_microbenches(const std::vector<AssembledMicrobench>& set,
                          Device& device,
                          const MicrobenchRuns& how,
                          Profile& profile) {
  const ArraySizes sizes(set);
  const std::vector<uint8_t> zeros(std::max(sizes.a_bytes, sizes.o_bytes));
  const std::span<const uint8_t> all(zeros);
  const std::vector<std::span<const uint8_t>> contents = {all.first(sizes.a_bytes),
                                                          all.first(sizes.o_bytes)};
  const DeviceArrays arrays(device, contents);
  CacheSweep sweep(device, device.profile().l2.size_bytes);
  const auto measure = [&](const AssembledMicrobench& entry) {
    const DeviceInput input = input_of(entry, contents);
    const bool by_span = device.reads_clocks() && entry.bench.tag.role != "launch";
    const auto measured = [&](uint32_t runs, uint32_t warm_ups) {
      return by_span ? measure_span(device, input, arrays, runs, warm_ups)
                     : measure_launch(device, input, arrays, runs, warm_ups);
    };
    if (!entry.bench.is_cold) {
      return measured(how.runs, how.warm_ups);
    }
    static_cast<void>(measured(1, 0)); // the code, at least, is there
    KernelProfile kernel;
    for (uint32_t run = 0; run < how.runs; ++run) {
      sweep.run();
      KernelProfile one = measured(1, 0);
      one.runs.insert(one.runs.begin(), kernel.runs.begin(), kernel.runs.end());
      kernel = std::move(one);
    }
    settle_runs(kernel);
    return kernel;
  };
  size_t done = 0;
  size_t failed_in_a_row = 0;
  for (const AssembledMicrobench& entry : set) {
    if (how.on_kernel) {
      how.on_kernel(done++);
    }
    try {
      KernelProfile kernel = measure(entry);
      kernel.micro = entry.bench.tag;
      kernel.source = "microbench";
      profile.kernels.push_back(std::move(kernel));
      failed_in_a_row = 0;
    } catch (const InterruptedError&) {
      throw;
    } catch (const DeviceError& error) {
      profile.notes.push_back(fmt::format("{}: not measured: {}", entry.bench.name, error.what()));
      if (++failed_in_a_row == kMostFailures) {
        throw;
      }
    }
  }
}

void measure_microbenches(const std::vector<AssembledMicrobench>& set,
                          const isa::MachineProfile& device,
                          const MeasureOptions& options,
                          Profile& profile) {
  sim::Machine machine(device);
  const ArraySizes sizes(set);
  const uint64_t a = machine.hbm.alloc(sizes.a_bytes, "a");
  const uint64_t o = machine.hbm.alloc(sizes.o_bytes, "o");
  sim::SharedMemory warm(machine.profile);
  MeasureOptions plain = options;
  plain.sees_insns = false; // whole kernels are all that slopes need
  for (const AssembledMicrobench& entry : set) {
    const Microbench& bench = entry.bench;
    sim::LaunchConfig config;
    config.grid = {bench.grid, 1, 1};
    config.block = {bench.lanes, 1, 1};
    config.args = {{a, isa::Type::kNone, true}, {o, isa::Type::kNone, true}, {1, isa::Type::kU32}};
    KernelProfile kernel;
    if (bench.is_cold) {
      kernel = measure_emulated(machine, entry.program, config, plain);
    } else {
      kernel = measure_emulated(machine, warm, entry.program, config, plain);
    }
    kernel.micro = bench.tag;
    kernel.source = "microbench";
    profile.kernels.push_back(std::move(kernel));
  }
}

} // namespace pto::rt
