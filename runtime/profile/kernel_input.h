// SPDX-License-Identifier: Apache-2.0
// A kernel with its arguments, ready to be launched on any number of machine profiles: what
// `ptoprof run` measures and what calibration simulates again.
#pragma once

#include "isa/diag.h"
#include "runtime/profile/measure.h"
#include "simulator/argument.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pto::rt {

class KernelInput {
public:
  /// Binds `replay.args` to the kernel's parameters. `program` null: assembled from `replay.text`.
  /// Nothing, with the reasons in `diags`, if anything is wrong.
  [[nodiscard]] static std::optional<KernelInput>
  prepare(const ReplayInput& replay,
          std::shared_ptr<const sim::Program> program,
          sim::Dim3 grid,
          sim::Dim3 block,
          isa::Diagnostics& diags,
          sim::ArgumentStatus* status = nullptr);

  /// Both throw LaunchError and MeasureError. Each call starts from the arguments as given.
  [[nodiscard]] KernelProfile measure(const isa::MachineProfile& device,
                                      const MeasureOptions& options) const;
  [[nodiscard]] SimulatedKernel simulate(const isa::MachineProfile& machine,
                                         const MeasureOptions& options = {}) const;

  [[nodiscard]] const std::shared_ptr<const sim::Program>& program() const { return program_; }
  [[nodiscard]] const std::vector<sim::Argument>& arguments() const { return arguments_; }
  [[nodiscard]] sim::Dim3 grid() const { return grid_; }
  [[nodiscard]] sim::Dim3 block() const { return block_; }
  [[nodiscard]] uint32_t dynamic_l1_bytes() const { return dynamic_l1_bytes_; }

private:
  KernelInput() = default;
  /// Allocates and fills the arrays.
  [[nodiscard]] sim::LaunchConfig place(sim::Machine& machine) const;

  std::shared_ptr<const sim::Program> program_;
  std::vector<sim::Argument> arguments_;
  sim::Dim3 grid_{};
  sim::Dim3 block_{};
  uint32_t dynamic_l1_bytes_ = 0;
};

} // namespace pto::rt
