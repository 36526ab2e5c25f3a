// SPDX-License-Identifier: Apache-2.0
// Arguments into device memory, then a launch.
#include "runtime/profile/kernel_input.h"

#include "assembler/assemble.h"
#include "simulator/launch_setup.h"

namespace pto::rt {

std::optional<KernelInput> KernelInput::prepare(const ReplayInput& replay,
                                                std::shared_ptr<const sim::Program> program,
                                                sim::Dim3 grid,
                                                sim::Dim3 block,
                                                isa::Diagnostics& diags,
                                                sim::ArgumentStatus* status) {
  const auto fail = [&](sim::ArgumentStatus why) {
    if (status != nullptr) {
      *status = why;
    }
    return std::nullopt;
  };
  if (program == nullptr) {
    as::AssembleOptions options;
    options.run_lints = false;
    auto object = as::assemble_text("<replay>", replay.text, options, diags);
    if (!object) {
      return fail(sim::ArgumentStatus::kBadInput);
    }
    std::string error;
    program = sim::Program::find(
        std::make_shared<const isa::Object>(std::move(*object)), replay.kernel, error);
    if (program == nullptr) {
      diags.error({}, error);
      return fail(sim::ArgumentStatus::kUsage);
    }
  }
  sim::BoundArguments bound = sim::bind_arguments(replay.args, program->kernel(), diags);
  if (bound.status != sim::ArgumentStatus::kGood) {
    return fail(bound.status);
  }
  KernelInput input;
  input.program_ = std::move(program);
  input.arguments_ = std::move(bound.arguments);
  input.grid_ = grid;
  input.block_ = block;
  input.dynamic_l1_bytes_ = replay.dynamic_l1_bytes;
  return input;
}

sim::LaunchConfig KernelInput::place(sim::Machine& machine) const {
  sim::LaunchConfig config;
  config.grid = grid_;
  config.block = block_;
  config.dynamic_l1_bytes = dynamic_l1_bytes_;
  config.args = sim::place_arguments(arguments_, machine.hbm);
  return config;
}

KernelProfile KernelInput::measure(const isa::MachineProfile& device,
                                   const MeasureOptions& options) const {
  sim::Machine machine(device);
  const sim::LaunchConfig config = place(machine);
  return measure_emulated(machine, program_, config, options);
}

SimulatedKernel KernelInput::simulate(const isa::MachineProfile& machine_profile,
                                      const MeasureOptions& options) const {
  sim::Machine machine(machine_profile);
  const sim::LaunchConfig config = place(machine);
  return rt::simulate(machine, program_, config, options);
}

} // namespace pto::rt
