// SPDX-License-Identifier: Apache-2.0
// The commands of ptoprof: read, call the library, print, write.
#include "assembler/assemble.h"
#include "assembler/disassemble.h"
#include "isa/file_io.h"
#include "isa/table.h"
#include "runtime/device.h"
#include "runtime/profile/breakdown.h"
#include "runtime/profile/calibrate.h"
#include "runtime/profile/kernel_input.h"
#include "runtime/profile/measure_device.h"
#include "runtime/profile/report.h"
#include "runtime/profile/tool_options.h"
#include "runtime/profile/vendor_import.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>
#include <set>

namespace pto::rt {
namespace {

constexpr int kGood = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr uint32_t kDefaultRuns = 5;
constexpr uint32_t kDefaultPatternRuns = 16;

int complain(const std::string& message, int status) {
  fmt::print(stderr, "ptoprof: error: {}\n", message);
  return status;
}

int show_issues(const isa::ProfileIssues& issues, int status) {
  for (const isa::ProfileIssue& issue : issues) {
    fmt::print(stderr, "{}\n", issue.to_string());
  }
  return status;
}

int show_diagnostics(const isa::Diagnostics& diags, const ToolOptions& options, int status) {
  if (options.is_json) {
    fmt::print(stderr, "{}\n", isa::render_json(diags));
  } else {
    isa::RenderOptions render;
    render.color = isa::use_color(options.color, stderr);
    fmt::print(stderr, "{}", isa::render(diags, render));
  }
  return status;
}

bool write_text(const std::string& path, const std::string& text) {
  std::string error;
  if (path == "-") {
    fmt::print("{}", text);
    return true;
  }
  if (isa::write_file_atomically(
          path, {reinterpret_cast<const std::byte*>(text.data()), text.size()}, error)) {
    return true;
  }
  complain(error, kFailed);
  return false;
}

std::optional<isa::MachineProfile> machine_of(const std::string& name) {
  isa::ProfileIssues issues;
  auto machine = isa::load_machine(name, issues);
  if (!machine) {
    show_issues(issues, kFailed);
  }
  return machine;
}

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

// ---------------------------------------------------------------- run

class RunCommand {
public:
  explicit RunCommand(const ToolOptions& options) : options_(options) {}

  int run() {
    if (options_.inputs.size() != 1) {
      return complain(
          fmt::format("{} programs; run measures one at a time (--append collects them)",
                      options_.inputs.size()),
          kUsage);
    }
    device_ = chosen_device(options_);
    if (device_.empty()) {
      return complain(no_device_text(), kFailed);
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
      return show_diagnostics(diags_, options_, kFailed);
    }
    machine_of_file_ = object->machine;
    const auto shared = std::make_shared<const isa::Object>(std::move(*object));
    std::string error;
    const auto program = sim::Program::find(shared, options_.kernel, error);
    if (program == nullptr) {
      return complain(error, kUsage);
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
          diags_, options_, status == sim::ArgumentStatus::kUsage ? kUsage : kFailed);
    }
    return kGood;
  }

  int measure() {
    MeasureOptions measure;
    measure.runs = options_.runs == 0 ? kDefaultRuns : options_.runs;
    measure.noise = options_.noise;
    if (const auto hidden = emulated_profile_name(device_)) {
      const auto machine = machine_of(*hidden);
      if (!machine) {
        return kFailed;
      }
      profile_.device = emulated_device(*hidden, *machine, options_.noise);
      kernel_ = input_->measure(*machine, measure);
    } else {
      Device device = Device::open(device_);
      profile_.device.name = device.info().name;
      profile_.device.is_emulated = device.info().is_emulated;
      profile_.device.clock_mhz = device.profile().clock_mhz;
      kernel_ = measure_on_device(device, *input_, measure, options_.warm_ups);
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
      const auto machine = machine_of(name);
      if (!machine) {
        return kFailed;
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
    for (const std::string& key : timing.missing_keys()) {
      complain(
          fmt::format("machine profile {} has no latency for {}; add one, or leave --strict out "
                      "to use its fallback of {} cycles",
                      machine.name,
                      key,
                      machine.fallback_latency_cycles),
          kFailed);
    }
    return timing.missing_keys().empty() ? kGood : kFailed;
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
        return show_issues(issues, kFailed);
      }
      if (old->device.name != profile_.device.name) {
        return complain(fmt::format("{} is of {}, this run of {}: a profile holds one device",
                                    options_.output,
                                    old->device_label(),
                                    profile_.device_label()),
                        kFailed);
      }
      if (old->find(kernel_.name) != nullptr) {
        return complain(fmt::format("{} holds a kernel '{}' already; choose another with --name",
                                    options_.output,
                                    kernel_.name),
                        kFailed);
      }
      old->kernels.push_back(kernel_);
      profile_ = std::move(*old);
    }
    return write_text(options_.output, to_json_text(profile_)) ? kGood : kFailed;
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

// ---------------------------------------------------------------- the others

int import_command(const ToolOptions& options) {
  if (options.inputs.size() != 1) {
    return complain("import takes one folder or file", kUsage);
  }
  isa::ProfileIssues issues;
  const auto imported = import_vendor(options.inputs.front(), issues);
  if (!imported) {
    return show_issues(issues, kFailed);
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
  if (!options.output.empty() && !write_text(options.output, to_json_text(imported->profile))) {
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

int calibrate_command(const ToolOptions& options) {
  isa::ProfileIssues issues;
  std::vector<Profile> profiles;
  for (const std::string& path : options.inputs) {
    if (auto profile = load_profile(path, issues)) {
      profiles.push_back(std::move(*profile));
    }
  }
  if (!issues.empty()) {
    return show_issues(issues, kFailed);
  }
  const auto base = machine_of(options.base);
  if (!base) {
    return kFailed;
  }
  CalibrateOptions calibrate_options;
  if (!options.name.empty()) {
    calibrate_options.name = options.name;
  }
  calibrate_options.date = options.date;
  std::vector<std::string> errors;
  const auto calibration = calibrate(profiles, *base, calibrate_options, errors);
  if (!calibration) {
    for (const std::string& error : errors) {
      complain(error, kFailed);
    }
    return kFailed;
  }
  const Report report = calibration_report(*calibration);
  if (options.is_json) {
    fmt::print("{}", isa::to_json_text(calibration->machine));
  } else if (!options.is_quiet) {
    fmt::print("{}", report_text(report));
  }
  if (!options.html.empty() && !write_text(options.html, report_html(report))) {
    return kFailed;
  }
  if (!options.output.empty() &&
      !write_text(options.output, isa::to_json_text(calibration->machine))) {
    return kFailed;
  }
  if (options.is_strict) {
    const std::set<std::string> keys = unmeasured_keys(profiles, *calibration);
    if (!keys.empty()) {
      return complain(
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
int add_simulations(Profile& profile, const std::vector<std::string>& machines) {
  for (const std::string& name : machines) {
    const auto machine = machine_of(name);
    if (!machine) {
      return kFailed;
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
    return complain("report takes one profile", kUsage);
  }
  isa::ProfileIssues issues;
  auto profile = load_profile(options.inputs.front(), issues);
  if (!profile) {
    return show_issues(issues, kFailed);
  }
  if (const int status = add_simulations(*profile, options.machines); status != kGood) {
    return status;
  }
  const Report report = profile_report(*profile);
  if (options.is_json) {
    fmt::print("{}", to_json_text(*profile));
    return kGood;
  }
  if (!options.html.empty()) {
    return write_text(options.html, report_html(report)) ? kGood : kFailed;
  }
  fmt::print("{}", report_text(report));
  return kGood;
}

int write_folder(const std::vector<Microbench>& set, const ToolOptions& options) {
  std::error_code code;
  std::filesystem::create_directories(options.output, code);
  if (code) {
    return complain(fmt::format("{}: cannot be made: {}", options.output, code.message()), kFailed);
  }
  auto manifest = nlohmann::ordered_json::array();
  for (const Microbench& bench : set) {
    if (!write_text(options.output + "/" + bench.name + ".pto", bench.text)) {
      return kFailed;
    }
    manifest.push_back({{"name", bench.name},
                        {"role", bench.tag.role},
                        {"first", bench.tag.first},
                        {"second", bench.tag.second},
                        {"variant", bench.tag.variant},
                        {"repeats", bench.tag.repeats},
                        {"amount", bench.tag.amount},
                        {"grid", bench.grid},
                        {"lanes", bench.lanes},
                        {"a_bytes", bench.a_bytes},
                        {"is_cold", bench.is_cold}});
  }
  if (!write_text(options.output + "/manifest.json", manifest.dump(1) + "\n")) {
    return kFailed;
  }
  fmt::print(
      "{} kernels and manifest.json in {}; `ptoas --emit=ascendc NAME.pto` makes Ascend C of "
      "one\n",
      set.size(),
      options.output);
  return kGood;
}

int list_set(const std::vector<Microbench>& set) {
  for (const MicrobenchRole& role : microbench_roles()) {
    size_t kernels = 0;
    std::set<std::string> keys;
    for (const Microbench& bench : set) {
      if (bench.tag.role == role.name) {
        ++kernels;
        keys.insert(bench.tag.first + "+" + bench.tag.second);
      }
    }
    if (kernels != 0) {
      fmt::print("{:<9} {:>5} kernels, {:>4} patterns of insns: {}\n",
                 role.name,
                 kernels,
                 keys.size(),
                 role.meaning);
    }
  }
  return kGood;
}

int measure_set(std::vector<Microbench> set,
                MicrobenchOptions set_options,
                const isa::MachineProfile& base,
                const std::string& device,
                const ToolOptions& options) {
  const auto hidden = emulated_profile_name(device);
  if (!hidden) {
    return complain(
        fmt::format("microbenchmarks are measured on emulated devices here; for {}, write "
                    "them with -o FOLDER, run each with `ptoprof run --append`, or build "
                    "the Ascend C that ptoas makes of them",
                    device),
        kFailed);
  }
  const auto machine = machine_of(*hidden);
  if (!machine) {
    return kFailed;
  }
  MeasureOptions measure;
  measure.runs = options.runs == 0 ? kDefaultPatternRuns : options.runs;
  measure.noise = options.noise;
  Profile profile;
  profile.device = emulated_device(*hidden, *machine, options.noise);
  profile.tool = "ptoprof " PTO_VERSION;
  profile.date = options.date;
  measure_microbenches(assemble_microbenches(std::move(set)), *machine, measure, profile);
  const size_t first_round = profile.kernels.size();
  if (set_options.follow_up == nullptr) {
    set_options.follow_up = &profile;
    auto second = assemble_microbenches(make_microbenches(base, set_options));
    measure_microbenches(second, *machine, measure, profile);
  }
  if (!options.is_quiet) {
    fmt::print("{}: {} kernels measured, {} of them to look closer at joined pairs\n",
               profile.device_label(),
               profile.kernels.size(),
               profile.kernels.size() - first_round);
  }
  if (options.output.empty()) {
    return kGood;
  }
  return write_text(options.output, to_json_text(profile)) ? kGood : kFailed;
}

int microbench_command(const ToolOptions& options) {
  const auto base = machine_of(options.base);
  if (!base) {
    return kFailed;
  }
  MicrobenchOptions set_options;
  set_options.roles = options.roles;
  set_options.types_per_entry = options.types_per_entry;
  std::optional<Profile> first_round;
  if (!options.follow_up.empty()) {
    isa::ProfileIssues issues;
    first_round = load_profile(options.follow_up, issues);
    if (!first_round) {
      return show_issues(issues, kFailed);
    }
    set_options.follow_up = &*first_round;
  }
  std::vector<Microbench> set = make_microbenches(*base, set_options);
  if (options.is_list) {
    return list_set(set);
  }
  if (!options.device.empty()) {
    return measure_set(std::move(set), set_options, *base, options.device, options);
  }
  if (options.output.empty()) {
    return complain(
        "name a device to measure on (--device emulated:PROFILE) or a folder for the PTO "
        "texts (-o FOLDER); --list says what there is",
        kUsage);
  }
  return write_folder(set, options);
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

} // namespace

int run_tool(const ToolOptions& options) {
  switch (options.command) {
  case ToolCommand::kRun:
    return RunCommand(options).run();
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

} // namespace pto::rt
