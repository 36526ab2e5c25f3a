// SPDX-License-Identifier: Apache-2.0
// ptosim --device: the launch of the command line on a device of the runtime.
#include "runtime/device.h"
#include "runtime/errors.h"
#include "simulator/kernel_run.h"

#include <fmt/format.h>

#include <atomic>
#include <memory>

namespace pto::sim {
namespace {

/// What came of the launch, also of one that the user ended.
rt::LaunchResult
wait_for(rt::Device& device, const rt::Ticket& ticket, const std::atomic<bool>& interrupt) {
  constexpr double kLookSeconds = 0.05;
  while (!device.wait_idle(kLookSeconds)) {
    if (interrupt.load(std::memory_order_relaxed)) {
      device.interrupt();
      break;
    }
  }
  return ticket.result();
}

} // namespace

KernelRun run_on_device(const SimOptions& options,
                        std::shared_ptr<const Program> program,
                        const std::vector<Argument>& arguments,
                        const std::atomic<bool>& interrupt) {
  rt::Device device = rt::Device::open(options.device);
  rt::LaunchSpec spec;
  spec.program = std::move(program);
  spec.grid = options.grid;
  spec.block = options.block;
  spec.options.checks = options.checks;
  spec.options.dynamic_l1_bytes = options.dynamic_l1_bytes;
  spec.options.max_insns = options.max_insns;
  spec.options.max_cycles = options.max_cycles;
  std::vector<std::unique_ptr<rt::Buffer>> buffers; // by parameter; null for scalars
  for (const Argument& argument : arguments) {
    if (!argument.param.is_pointer) {
      buffers.push_back(nullptr);
      spec.args.push_back(rt::LaunchArgument::scalar(argument.bits, argument.param.type));
      continue;
    }
    const std::vector<std::byte>& data = argument.array.data;
    buffers.push_back(std::make_unique<rt::Buffer>(device.alloc(
        data.size(), argument.param.name, fmt::format("--arg {}", argument.param.name))));
    buffers.back()->write({reinterpret_cast<const uint8_t*>(data.data()), data.size()});
    spec.args.push_back(rt::LaunchArgument::pointer(*buffers.back()));
  }
  const rt::LaunchResult result = wait_for(device, device.launch(spec), interrupt);
  KernelRun run;
  run.profile = device.profile();
  run.result = result.run;
  run.findings = result.findings;
  run.findings_dropped = result.findings_dropped;
  run.device = device.info().description;
  run.device_microseconds = result.microseconds;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const HostArray& before = arguments[i].array;
    HostArray after{before.element, before.shape, std::vector<std::byte>(before.data.size())};
    if (!after.data.empty()) {
      buffers[i]->read({reinterpret_cast<uint8_t*>(after.data.data()), after.data.size()});
    }
    run.arrays.push_back(std::move(after));
  }
  return run;
}

} // namespace pto::sim
