// SPDX-License-Identifier: Apache-2.0
// What is debugged: a program, a machine, arguments. From options to what a Session needs.
#pragma once

#include "isa/diag.h"
#include "isa/machine.h"
#include "simulator/argument.h"
#include "simulator/checks/checks.h"
#include "simulator/launch.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pto::dbg {

/// As on the command line.
struct TargetOptions {
  std::string file; // .pto or .ptobj; empty: none yet
  std::string kernel;
  sim::Dim3 grid{};
  sim::Dim3 block{};
  std::vector<std::string> args; // NAME=VALUE, as ptosim takes them
  std::string profile;           // empty: the file's .machine, else reference
  std::vector<std::string> overrides;
  std::vector<std::string> include_dirs;
  std::vector<std::string> defines;
  uint32_t dynamic_l1_bytes = 0;
  sim::CheckSet checks;
  bool operator==(const TargetOptions&) const = default;
};

/// Assembles or reads the file and finds the kernel. Null with messages in `diags`.
[[nodiscard]] std::shared_ptr<const sim::Program> load_kernel(const TargetOptions& options,
                                                              isa::Diagnostics& diags);

/// A machine with the arguments in its memory. A session over it must go first.
struct Target {
  std::unique_ptr<sim::Machine> machine;
  sim::LaunchConfig config;
};
/// Nothing with messages in `diags`, and in `exit_status` what ptosim gives for the same: 2 for
/// wrong options, 1 for a file that does not fit. Throws HbmError where the host has no memory
/// left.
[[nodiscard]] std::optional<Target> make_target(const TargetOptions& options,
                                                const sim::Program& program,
                                                isa::Diagnostics& diags,
                                                int& exit_status);

/// The profile of the options, else `named`, else reference, with the overrides. Nothing with
/// messages in `diags` and an exit status as make_target gives it.
[[nodiscard]] std::optional<isa::MachineProfile> load_machine_of(const TargetOptions& options,
                                                                 const std::string& named,
                                                                 isa::Diagnostics& diags,
                                                                 int& exit_status);

} // namespace pto::dbg
