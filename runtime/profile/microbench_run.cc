// SPDX-License-Identifier: Apache-2.0
// Assembling a set of microbenchmarks and measuring it on an emulated device.
#include "assembler/assemble.h"
#include "isa/error.h"
#include "runtime/profile/microbench.h"

#include <fmt/format.h>

#include <algorithm>

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

void measure_microbenches(const std::vector<AssembledMicrobench>& set,
                          const isa::MachineProfile& device,
                          const MeasureOptions& options,
                          Profile& profile) {
  sim::Machine machine(device);
  uint64_t a_bytes = 0;
  uint64_t o_bytes = 8192;
  for (const AssembledMicrobench& entry : set) {
    a_bytes = std::max(a_bytes, entry.bench.a_bytes);
    o_bytes = std::max(o_bytes, uint64_t{entry.bench.grid} * entry.bench.lanes * 8);
  }
  const uint64_t a = machine.hbm.alloc(a_bytes, "a");
  const uint64_t o = machine.hbm.alloc(o_bytes, "o");
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
