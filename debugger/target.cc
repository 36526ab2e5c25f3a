// SPDX-License-Identifier: Apache-2.0
// Programs, profiles and arguments for the debugger, read as ptosim reads them.
#include "debugger/target.h"

#include "assembler/assemble.h"
#include "isa/issue_text.h"
#include "isa/machine_load.h"
#include "isa/run_program.h"
#include "simulator/launch_setup.h"

#include <fmt/format.h>

namespace pto::dbg {
namespace {

using isa::exit_status::kFailed;
using isa::exit_status::kUsage;

} // namespace

std::shared_ptr<const sim::Program> load_kernel(const TargetOptions& options,
                                                isa::Diagnostics& diags) {
  as::AssembleOptions assemble;
  assemble.run_lints = false; // ptoas gives the warnings
  assemble.preprocess.include_dirs = options.include_dirs;
  assemble.preprocess.defines = options.defines;
  std::optional<isa::Object> object = as::load_program(options.file, assemble, diags);
  if (!object) {
    return nullptr;
  }
  std::string error;
  auto program = sim::Program::find(
      std::make_shared<const isa::Object>(std::move(*object)), options.kernel, error);
  if (!program) {
    diags.error({}, error);
  }
  return program;
}

std::optional<isa::MachineProfile> load_machine_of(const TargetOptions& options,
                                                   const std::string& named,
                                                   isa::Diagnostics& diags,
                                                   int& exit_status) {
  const std::string name = !options.profile.empty() ? options.profile
                           : named.empty()          ? "reference"
                                                    : named;
  isa::ProfileIssues issues;
  std::optional<isa::MachineProfile> profile = isa::load_machine(name, options.overrides, issues);
  isa::report_issues(issues, diags);
  if (issues.empty()) {
    return profile;
  }
  exit_status = isa::is_wrong_usage(issues) ? kUsage : kFailed;
  return std::nullopt;
}

std::optional<Target> make_target(const TargetOptions& options,
                                  const sim::Program& program,
                                  isa::Diagnostics& diags,
                                  int& exit_status) {
  int status = kFailed;
  std::optional<isa::MachineProfile> profile =
      load_machine_of(options, program.object().machine, diags, status);
  const sim::BoundArguments bound = sim::bind_arguments(options.args, program.kernel(), diags);
  if (!profile || bound.status != sim::ArgumentStatus::kGood) {
    exit_status = bound.status == sim::ArgumentStatus::kUsage ? kUsage : status;
    return std::nullopt;
  }
  Target target;
  target.machine = std::make_unique<sim::Machine>(std::move(*profile));
  target.config.grid = options.grid;
  target.config.block = options.block;
  target.config.args = sim::place_arguments(bound.arguments, target.machine->hbm);
  target.config.dynamic_l1_bytes = options.dynamic_l1_bytes;
  return target;
}

} // namespace pto::dbg
