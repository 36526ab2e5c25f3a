// SPDX-License-Identifier: Apache-2.0
// Measuring through the runtime.
#include "runtime/profile/measure_device.h"

#include "runtime/profile/samples.h"

#include <fmt/format.h>

#include <algorithm>

namespace pto::rt {
namespace {

std::span<const uint8_t> bytes_of(const sim::Argument& argument) {
  return {reinterpret_cast<const uint8_t*>(argument.array.data.data()), argument.array.data.size()};
}

} // namespace

KernelProfile measure_on_device(Device& device,
                                const KernelInput& input,
                                const MeasureOptions& options,
                                uint32_t warm_ups) {
  KernelProfile kernel;
  kernel.name = input.program()->kernel().name;
  kernel.grid = input.grid();
  kernel.block = input.block();
  std::vector<Buffer> buffers;
  buffers.reserve(input.arguments().size());
  LaunchSpec spec;
  spec.program = input.program();
  spec.grid = input.grid();
  spec.block = input.block();
  spec.options.dynamic_l1_bytes = input.dynamic_l1_bytes();
  spec.options.max_insns = options.max_insns;
  spec.options.max_cycles = options.max_cycles;
  for (const sim::Argument& argument : input.arguments()) {
    if (argument.param.is_pointer) {
      buffers.push_back(device.alloc(argument.array.data.size(), argument.param.name));
      spec.args.push_back(LaunchArgument::pointer(buffers.back()));
    } else {
      spec.args.push_back(LaunchArgument::scalar(argument.bits, argument.param.type));
    }
  }
  const uint32_t runs = std::max(1U, options.runs);
  for (uint32_t run = 0; run < warm_ups + runs; ++run) {
    size_t next = 0;
    for (const sim::Argument& argument : input.arguments()) {
      if (argument.param.is_pointer) {
        buffers[next++].write(bytes_of(argument));
      }
    }
    const Ticket ticket = device.launch(spec);
    ticket.wait();
    const LaunchResult result = ticket.result();
    double cycles = result.cycles;
    if (cycles == 0) {
      cycles = result.microseconds * device.profile().clock_mhz;
    }
    if (cycles == 0) {
      throw MeasureError(fmt::format("device {} ran '{}' but tells no time of it, so there is "
                                     "nothing to measure",
                                     device.info().name,
                                     kernel.name));
    }
    if (run >= warm_ups) {
      kernel.runs.push_back({cycles, {}});
    }
  }
  settle_runs(kernel);
  kernel.warnings.emplace_back("whole kernel only: the device's hook gave no insn figures");
  return kernel;
}

} // namespace pto::rt
