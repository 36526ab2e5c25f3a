// SPDX-License-Identifier: Apache-2.0
// `ptoprof microbench`: the set listed, written to a folder or measured on an emulated device.
#include "runtime/profile/microbench.h"
#include "runtime/profile/tool_commands.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <set>

namespace pto::rt {
namespace {

constexpr uint32_t kDefaultPatternRuns = 16;

int write_folder(const std::vector<Microbench>& set, const ToolOptions& options) {
  std::error_code code;
  std::filesystem::create_directories(options.output, code);
  if (code) {
    return complain(
        options, fmt::format("{}: cannot be made: {}", options.output, code.message()), kFailed);
  }
  auto manifest = nlohmann::ordered_json::array();
  for (const Microbench& bench : set) {
    if (!write_text(options, options.output + "/" + bench.name + ".pto", bench.text)) {
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
  if (!write_text(options, options.output + "/manifest.json", manifest.dump(1) + "\n")) {
    return kFailed;
  }
  if (options.is_json) {
    fmt::print("{}\n", manifest.dump(1));
  } else if (!options.is_quiet) {
    fmt::print(
        "{} kernels and manifest.json in {}; `ptoas --emit=ascendc NAME.pto` makes Ascend C of "
        "one\n",
        set.size(),
        options.output);
  }
  return kGood;
}

int list_set(const ToolOptions& options, const std::vector<Microbench>& set) {
  auto list = nlohmann::ordered_json::array();
  for (const MicrobenchRole& role : microbench_roles()) {
    size_t kernels = 0;
    std::set<std::string> keys;
    for (const Microbench& bench : set) {
      if (bench.tag.role == role.name) {
        ++kernels;
        keys.insert(bench.tag.first + "+" + bench.tag.second);
      }
    }
    if (kernels == 0) {
      continue;
    }
    list.push_back({{"role", role.name},
                    {"kernels", kernels},
                    {"patterns", keys.size()},
                    {"meaning", role.meaning}});
    if (!options.is_json) {
      fmt::print("{:<9} {:>5} kernels, {:>4} patterns of insns: {}\n",
                 role.name,
                 kernels,
                 keys.size(),
                 role.meaning);
    }
  }
  if (options.is_json) {
    fmt::print("{}\n", list.dump(1));
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
        options,
        fmt::format("microbenchmarks are measured on emulated devices here; for {}, write "
                    "them with -o FOLDER, run each with `ptoprof run --append`, or build "
                    "the Ascend C that ptoas makes of them",
                    device),
        kFailed);
  }
  const auto machine = machine_of(options, *hidden);
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
  if (options.is_json) {
    fmt::print("{}", to_json_text(profile));
  } else if (!options.is_quiet) {
    fmt::print("{}: {} kernels measured, {} of them to look closer at joined pairs\n",
               profile.device_label(),
               profile.kernels.size(),
               profile.kernels.size() - first_round);
  }
  if (options.output.empty()) {
    return kGood;
  }
  return write_text(options, options.output, to_json_text(profile)) ? kGood : kFailed;
}

} // namespace

int microbench_command(const ToolOptions& options) {
  const auto base = machine_of(options, options.base);
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
      return show_issues(options, issues, kFailed);
    }
    set_options.follow_up = &*first_round;
  }
  std::vector<Microbench> set = make_microbenches(*base, set_options);
  if (options.is_list) {
    return list_set(options, set);
  }
  if (!options.device.empty()) {
    return measure_set(std::move(set), set_options, *base, options.device, options);
  }
  if (options.output.empty()) {
    return complain(
        options,
        "name a device to measure on (--device emulated:PROFILE) or a folder for the PTO "
        "texts (-o FOLDER); --list says what there is",
        kUsage);
  }
  return write_folder(set, options);
}

} // namespace pto::rt
