// SPDX-License-Identifier: Apache-2.0
// The commands of ptoprof: read, call the library, print, write.
#include "runtime/profile/tool_commands.h"

#include "isa/output_files.h"
#include "isa/table.h"
#include "runtime/device.h"
#include "runtime/errors.h"
#include "runtime/profile/calibrate.h"
#include "runtime/profile/kernel_input.h"
#include "runtime/profile/report.h"
#include "runtime/profile/vendor_import.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <set>

namespace pto::rt {
namespace {

int import_command(const ToolOptions& options) {
  if (options.inputs.size() != 1) {
    return complain(options, "import takes one folder or file", kUsage);
  }
  isa::ProfileIssues issues;
  const auto imported = import_vendor(options.inputs.front(), issues);
  if (!imported) {
    return show_issues(options, issues, kFailed);
  }
  if (options.is_json) {
    fmt::print("{}", to_json_text(imported->profile));
  } else if (!options.is_quiet) {
    for (const std::string& line : imported->read) {
      fmt::print("read {}\n", line);
    }
    for (const std::string& line : imported->skipped) {
      fmt::print("left {}\n", line);
    }
    fmt::print("\n{}", report_text(profile_report(imported->profile)));
  }
  if (!options.output.empty() &&
      !write_text(options, options.output, to_json_text(imported->profile))) {
    return kFailed;
  }
  return kGood;
}

/// The end of a lane and a print have no result whose latency could matter.
bool nobody_waits_for(const std::string& key) {
  for (const isa::InsnDesc* row : isa::all_insns()) {
    if (row->latency == key_base(key)) {
      return (row->flags & (isa::kEndsLane | isa::kPrints)) != 0;
    }
  }
  return false;
}

/// Insn keys of the profile's kernels that the calibration has no measurement for.
std::set<std::string> unmeasured_keys(const std::vector<Profile>& profiles,
                                      const Calibration& calibration) {
  std::set<std::string> keys;
  for (const Profile& profile : profiles) {
    for (const KernelProfile& kernel : profile.kernels) {
      for (const InsnMeasurement& insn : kernel.insns) {
        if (nobody_waits_for(insn.key)) {
          continue;
        }
        const isa::LatencyEntry* entry = calibration.machine.latency.find(insn.key);
        const CalibratedFigure* figure =
            entry == nullptr ? nullptr : calibration.find(entry->key, "latency");
        if (figure == nullptr || figure->provenance != Provenance::kMeasured) {
          keys.insert(insn.key);
        }
      }
    }
  }
  return keys;
}

/// A profile that is given twice would count twice in every fit.
std::string find_repeated(const std::vector<std::string>& paths) {
  for (size_t i = 0; i < paths.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (isa::is_same_file(paths[i], paths[k])) {
        return fmt::format("'{}' and '{}' are the same profile; give it once", paths[k], paths[i]);
      }
    }
  }
  return {};
}

int calibrate_command(const ToolOptions& options) {
  if (const std::string twice = find_repeated(options.inputs); !twice.empty()) {
    return complain(options, twice, kUsage);
  }
  isa::ProfileIssues issues;
  std::vector<Profile> profiles;
  for (const std::string& path : options.inputs) {
    if (auto profile = load_profile(path, issues)) {
      profiles.push_back(std::move(*profile));
    }
  }
  if (!issues.empty()) {
    return show_issues(options, issues, kFailed);
  }
  int unknown = kGood;
  const auto base = machine_of(options, options.base, unknown);
  if (!base) {
    return unknown;
  }
  CalibrateOptions calibrate_options;
  if (!options.name.empty()) {
    calibrate_options.name = options.name;
  }
  calibrate_options.date = options.date;
  std::vector<std::string> errors;
  const auto calibration = calibrate(profiles, *base, calibrate_options, errors);
  if (!calibration) {
    return complain(options, errors, kFailed);
  }
  const Report report = calibration_report(*calibration);
  if (options.is_json) {
    fmt::print("{}", isa::to_json_text(calibration->machine));
  } else if (!options.is_quiet) {
    fmt::print("{}", report_text(report));
  }
  if (!options.html.empty() && !write_text(options, options.html, report_html(report))) {
    return kFailed;
  }
  if (!options.output.empty() &&
      !write_text(options, options.output, isa::to_json_text(calibration->machine))) {
    return kFailed;
  }
  if (options.is_strict) {
    const std::set<std::string> keys = unmeasured_keys(profiles, *calibration);
    if (!keys.empty()) {
      return complain(
          options,
          fmt::format("the kernels use {} insns that nothing was measured for: {}; their "
                      "figures are {}'s",
                      keys.size(),
                      fmt::join(keys, ", "),
                      base->name),
          kFailed);
    }
  }
  return kGood;
}

/// Kernels that can run again, on machines that the profile has no figures of.
int add_simulations(const ToolOptions& options, Profile& profile) {
  for (const std::string& name : options.machines) {
    int unknown = kGood;
    const auto machine = machine_of(options, name, unknown);
    if (!machine) {
      return unknown;
    }
    for (KernelProfile& kernel : profile.kernels) {
      if (!kernel.replay) {
        continue;
      }
      std::erase_if(kernel.simulated,
                    [&](const SimulatedKernel& s) { return s.machine == machine->name; });
      isa::Diagnostics diags;
      const auto input =
          KernelInput::prepare(*kernel.replay, nullptr, kernel.grid, kernel.block, diags);
      if (!input) {
        kernel.warnings.push_back(fmt::format("cannot be simulated on {}: {}",
                                              machine->name,
                                              diags.all().empty() ? "its text cannot be read"
                                                                  : diags.all().front().message));
        continue;
      }
      kernel.simulated.insert(kernel.simulated.begin(), input->simulate(*machine));
    }
  }
  return kGood;
}

int report_command(const ToolOptions& options) {
  if (options.inputs.size() != 1) {
    return complain(options, "report takes one profile", kUsage);
  }
  isa::ProfileIssues issues;
  auto profile = load_profile(options.inputs.front(), issues);
  if (!profile) {
    return show_issues(options, issues, kFailed);
  }
  if (const int status = add_simulations(options, *profile); status != kGood) {
    return status;
  }
  const Report report = profile_report(*profile);
  if (options.is_json) {
    fmt::print("{}", to_json_text(*profile));
  } else if (options.html.empty()) {
    fmt::print("{}", report_text(report));
  }
  if (options.html.empty()) {
    return kGood;
  }
  return write_text(options, options.html, report_html(report)) ? kGood : kFailed;
}

int devices_command(const ToolOptions& options) {
  auto list = nlohmann::ordered_json::array();
  for (const DeviceProbe& probe : probe_devices()) {
    list.push_back({{"name", probe.name},
                    {"is_usable", probe.is_usable},
                    {"summary", probe.summary},
                    {"tried", probe.tried}});
    if (!options.is_json) {
      fmt::print("{:<28} {:<4} {}\n", probe.name, probe.is_usable ? "yes" : "no", probe.summary);
      for (const std::string& place : probe.tried) {
        fmt::print("    {}\n", place);
      }
    }
  }
  if (options.is_json) {
    fmt::print("{}\n", list.dump(1));
  }
  return kGood;
}

int run_chosen(const ToolOptions& options) {
  switch (options.command) {
  case ToolCommand::kRun:
    return run_command(options);
  case ToolCommand::kImport:
    return import_command(options);
  case ToolCommand::kCalibrate:
    return calibrate_command(options);
  case ToolCommand::kReport:
    return report_command(options);
  case ToolCommand::kMicrobench:
    return microbench_command(options);
  case ToolCommand::kDevices:
    return devices_command(options);
  case ToolCommand::kSchema:
    fmt::print("{}", profile_schema_text());
    return kGood;
  }
  return kUsage;
}

} // namespace

int run_tool(const ToolOptions& options) {
  if (const std::string same = find_overwritten(options); !same.empty()) {
    return complain(options, same, kUsage);
  }
  try {
    return run_chosen(options);
  } catch (const UnknownDeviceError& error) {
    return complain(options, error.what(), kUsage);
  }
}

} // namespace pto::rt
