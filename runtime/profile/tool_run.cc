// SPDX-License-Identifier: Apache-2.0
// `ptoprof run`: one kernel measured on a device, beside what machine profiles say of it.
#include "assembler/assemble.h"
#include "assembler/disassemble.h"
#include "runtime/device.h"
#include "runtime/profile/breakdown.h"
#include "runtime/profile/kernel_input.h"
#include "runtime/profile/measure_device.h"
#include "runtime/profile/tool_commands.h"

#include <fmt/format.h>

#include <filesystem>

namespace pto::rt {
namespace {

constexpr uint32_t kDefaultRuns = 5;

std::string no_device_text() {
  std::string text = "no device was named and none was found; what was looked for:";
  for (const DeviceProbe& probe : probe_devices()) {
    text += fmt::format("\n  {}: {}", probe.name, probe.summary);
    for (const std::string& place : probe.tried) {
      text += fmt::format("\n    {}", place);
    }
  }
  text += "\nWithout a board, --device emulated:reference-fused measures a stand-in.";
  return text;
}

/// The device to measure on: the one named, else a usable board.
std::string chosen_device(const ToolOptions& options) {
  if (!options.device.empty()) {
    return options.device;
  }
  for (const DeviceProbe& probe : probe_devices()) {
    if (probe.is_usable && probe.name.starts_with("npu")) {
      return probe.name;
    }
  }
  return {};
}

class RunCommand {
public:
  explicit RunCommand(const ToolOptions& options) : options_(options) {}

  int run() {
    if (options_.inputs.size() != 1) {
      return complain(
          options_,
          fmt::format("{} programs; run measures one at a time (--append collects them)",
                      options_.inputs.size()),
          kUsage);
    }
    device_ = chosen_device(options_);
    if (device_.empty()) {
      return complain(options_, no_device_text(), kFailed);
    }
    if (const int status = load(); status != kGood) {
      return status;
    }
    if (const int status = measure(); status != kGood) {
      return status;
    }
    if (const int status = compare(); status != kGood) {
      return status;
    }
    return finish();
  }

private:
  int load() {
    as::AssembleOptions assemble;
    assemble.run_lints = false;
    assemble.preprocess.include_dirs = options_.include_dirs;
    assemble.preprocess.defines = options_.defines;
    auto object = as::load_program(options_.inputs.front(), assemble, diags_);
    if (!object) {
      return show_diagnostics(options_, diags_, kFailed);
    }
    machine_of_file_ = object->machine;
    const auto shared = std::make_shared<const isa::Object>(std::move(*object));
    std::string error;
    const auto program = sim::Program::find(shared, options_.kernel, error);
    if (program == nullptr) {
      return complain(options_, error, kUsage);
    }
    as::DisassembleOptions plain;
    plain.with_loc = false; // the source may be gone when it runs again
    replay_.text = as::disassemble(*shared, plain);
    replay_.kernel = program->kernel().name;
    replay_.args = options_.args;
    replay_.dynamic_l1_bytes = options_.dynamic_l1_bytes;
    sim::ArgumentStatus status = sim::ArgumentStatus::kGood;
    input_ = KernelInput::prepare(replay_, program, options_.grid, options_.block, diags_, &status);
    if (!input_) {
      return show_diagnostics(
          options_, diags_, status == sim::ArgumentStatus::kUsage ? kUsage : kFailed);
    }
    return kGood;
  }

  int measure() {
    MeasureOptions measure;
    measure.runs = options_.runs == 0 ? kDefaultRuns : options_.runs;
    measure.noise = options_.noise;
    if (const auto hidden = emulated_profile_name(device_)) {
      int status = kGood;
      const auto machine = machine_of(options_, *hidden, status);
      if (!machine) {
        return status;
      }
      profile_.device = emulated_device(*hidden, *machine, options_.noise);
      kernel_ = input_->measure(*machine, measure);
    } else {
      Device device = Device::open(device_);
      profile_.device = profile_device(device);
      kernel_ = measure_on_device(device, device_input(*input_), measure, options_.warm_ups);
    }
    kernel_.source = options_.inputs.front();
    kernel_.group = options_.group;
    kernel_.replay = replay_;
    if (!options_.name.empty()) {
      kernel_.name = options_.name;
    }
    return kGood;
  }

  int compare() {
    std::vector<std::string> names = options_.machines;
    if (names.empty()) {
      names.push_back(machine_of_file_.empty() ? "reference" : machine_of_file_);
    }
    for (const std::string& name : names) {
      int unknown = kGood;
      const auto machine = machine_of(options_, name, unknown);
      if (!machine) {
        return unknown;
      }
      kernel_.simulated.push_back(input_->simulate(*machine));
      if (const int status = check_strict(*machine); status != kGood) {
        return status;
      }
    }
    return kGood;
  }

  /// With --strict an insn that the simulator has no latency for ends the comparison.
  int check_strict(const isa::MachineProfile& machine) {
    if (!options_.is_strict) {
      return kGood;
    }
    const sim::ProgramTiming timing(input_->program()->object(), machine);
    std::vector<std::string> errors;
    for (const std::string& key : timing.missing_keys()) {
      errors.push_back(
          fmt::format("machine profile {} has no latency for {}; add one, or leave --strict out "
                      "to use its fallback of {} cycles",
                      machine.name,
                      key,
                      machine.fallback_latency_cycles));
    }
    return errors.empty() ? kGood : complain(options_, errors, kFailed);
  }

  int finish() {
    profile_.tool = "ptoprof " PTO_VERSION;
    profile_.date = options_.date;
    const CycleBreakdown breakdown = cycle_breakdown(profile_, kernel_);
    profile_.kernels.push_back(kernel_);
    if (options_.is_json) {
      fmt::print("{}", to_json_text(profile_));
    } else if (!options_.is_quiet) {
      fmt::print("{}", breakdown.to_string());
    }
    if (options_.output.empty()) {
      return kGood;
    }
    std::error_code code;
    if (options_.is_appending && std::filesystem::exists(options_.output, code)) {
      isa::ProfileIssues issues;
      auto old = load_profile(options_.output, issues);
      if (!old) {
        return show_issues(options_, issues, kFailed);
      }
      if (old->device.name != profile_.device.name) {
        return complain(options_,
                        fmt::format("{} is of {}, this run of {}: a profile holds one device",
                                    options_.output,
                                    old->device_label(),
                                    profile_.device_label()),
                        kFailed);
      }
      if (old->find(kernel_.name) != nullptr) {
        return complain(options_,
                        fmt::format("{} holds a kernel '{}' already; choose another with --name",
                                    options_.output,
                                    kernel_.name),
                        kFailed);
      }
      old->kernels.push_back(kernel_);
      profile_ = std::move(*old);
    }
    return write_text(options_, options_.output, to_json_text(profile_)) ? kGood : kFailed;
  }

  const ToolOptions& options_;
  std::string device_;
  isa::Diagnostics diags_;
  std::string machine_of_file_;
  ReplayInput replay_;
  std::optional<KernelInput> input_;
  KernelProfile kernel_;
  Profile profile_;
};

} // namespace

int run_command(const ToolOptions& options) {
  return RunCommand(options).run();
}

} // namespace pto::rt
