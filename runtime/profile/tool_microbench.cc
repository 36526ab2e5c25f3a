// SPDX-License-Identifier: Apache-2.0
// `ptoprof microbench`: the set listed, written to a folder or measured on a device.
#include "isa/suggest.h"
#include "runtime/profile/measure_device.h"
#include "runtime/profile/microbench.h"
#include "runtime/profile/tool_commands.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <unistd.h>
#include <utility>

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

/// Where the sets of a run are measured.
class Bench {
public:
  explicit Bench(const ToolOptions& options) : options_(options) {
    profile_.tool = "ptoprof " PTO_VERSION;
    profile_.date = options.date;
  }

  /// kGood, or with the reason told what to end with, if there is no such device.
  int open(const std::string& device) {
    if (const auto hidden = emulated_profile_name(device)) {
      int unknown = kGood;
      emulated_ = machine_of(options_, *hidden, unknown);
      if (!emulated_) {
        return unknown;
      }
      profile_.device = emulated_device(*hidden, *emulated_, options_.noise);
      return kGood;
    }
    board_.emplace(Device::open(device));
    profile_.device = profile_device(*board_);
    return kGood;
  }

  void measure(std::vector<Microbench> set) {
    const auto assembled = assemble_microbenches(std::move(set));
    const uint32_t runs = options_.runs == 0 ? kDefaultPatternRuns : options_.runs;
    if (emulated_) {
      MeasureOptions measure;
      measure.runs = runs;
      measure.noise = options_.noise;
      measure_microbenches(assembled, *emulated_, measure, profile_);
      return;
    }
    MicrobenchRuns how;
    how.runs = runs;
    how.warm_ups = options_.warm_ups;
    const bool shows_progress = !options_.is_quiet && isatty(STDERR_FILENO) != 0;
    if (shows_progress) {
      how.on_kernel = [&](size_t done) {
        fmt::print(stderr, "\r{} of {} kernels", done, assembled.size());
        std::fflush(stderr);
      };
    }
    measure_microbenches(assembled, *board_, how, profile_);
    if (shows_progress) {
      fmt::print(stderr, "\r\033[K");
    }
  }

  [[nodiscard]] const Profile& profile() const { return profile_; }

private:
  const ToolOptions& options_;
  std::optional<isa::MachineProfile> emulated_;
  std::optional<Device> board_;
  Profile profile_;
};

/// Runs that do not belong, by kernel.
size_t print_rejected(const Profile& profile) {
  size_t count = 0;
  for (const KernelProfile& kernel : profile.kernels) {
    for (size_t i = 0; i < kernel.runs.size(); ++i) {
      if (!kernel.runs[i].rejected.empty()) {
        fmt::print("{}: run {} rejected: {}\n", kernel.name, i + 1, kernel.runs[i].rejected);
        ++count;
      }
    }
  }
  return count;
}

int measure_set(std::vector<Microbench> set,
                MicrobenchOptions set_options,
                const isa::MachineProfile& base,
                const ToolOptions& options) {
  if (set.empty()) {
    return complain(options, "no pattern is left: --list without --key says what there is", kUsage);
  }
  Bench bench(options);
  if (const int status = bench.open(options.device); status != kGood) {
    return status;
  }
  std::vector<std::string> failures;
  Profile first_round;
  try {
    bench.measure(std::move(set));
    first_round = bench.profile();
    if (set_options.follow_up == nullptr) {
      set_options.follow_up = &first_round;
      bench.measure(make_microbenches(base, set_options));
    }
  } catch (const DeviceError& error) { // what is measured so far is written all the same
    failures.emplace_back(error.what());
  }
  const std::vector<std::string>& notes = bench.profile().notes;
  failures.insert(failures.end(), notes.begin(), notes.end());
  const int status = failures.empty() ? kGood : complain(options, failures, kFailed);
  if (options.is_json) {
    fmt::print("{}", to_json_text(bench.profile()));
  } else if (!options.is_quiet) {
    const size_t rejected = print_rejected(bench.profile());
    const size_t kernels = bench.profile().kernels.size();
    fmt::print("{}: {} kernels measured, {} of them to look closer at joined pairs, {} runs "
               "rejected\n",
               bench.profile().device_label(),
               kernels,
               kernels - std::min(kernels, first_round.kernels.size()),
               rejected);
  }
  if (options.output.empty()) {
    return status;
  }
  return write_text(options, options.output, to_json_text(bench.profile())) ? status : kFailed;
}

/// "FMA.f32" and "FMA" of every pattern.
std::set<std::string> known_keys(const std::vector<Microbench>& set) {
  std::set<std::string> keys;
  for (const Microbench& bench : set) {
    for (const std::string* key : {&bench.tag.first, &bench.tag.second}) {
      for (size_t end = key->find('.'); !key->empty(); end = key->find('.', end + 1)) {
        keys.insert(key->substr(0, end));
        if (end == std::string::npos) {
          break;
        }
      }
    }
  }
  return keys;
}

/// A --key that no pattern is of would leave an empty set without a word.
std::string find_unknown_key(const isa::MachineProfile& base, MicrobenchOptions set_options) {
  const std::vector<std::string> wanted = std::move(set_options.keys);
  set_options.keys.clear();
  set_options.follow_up = nullptr;
  const std::set<std::string> known = known_keys(make_microbenches(base, set_options));
  for (const std::string& key : wanted) {
    if (known.count(key) != 0) {
      continue;
    }
    const std::vector<std::string_view> names(known.begin(), known.end());
    std::string expected = isa::did_you_mean(key, names);
    if (expected.empty()) {
      std::string separator = "; expected one of ";
      for (const std::string_view name : names) {
        if (name.find('.') == std::string_view::npos) {
          expected += fmt::format("{}{}", std::exchange(separator, ", "), name);
        }
      }
      expected += ", or one of them with memory space and type, as LOAD.l1.f32";
    }
    return fmt::format("--key: no pattern{} is of '{}'{}",
                       set_options.roles.empty()
                           ? ""
                           : fmt::format(" of the role {}", fmt::join(set_options.roles, ", ")),
                       key,
                       expected);
  }
  return {};
}

} // namespace

int microbench_command(const ToolOptions& options) {
  int unknown = kGood;
  const auto base = machine_of(options, options.base, unknown);
  if (!base) {
    return unknown;
  }
  MicrobenchOptions set_options;
  set_options.roles = options.roles;
  set_options.types_per_entry = options.types_per_entry;
  set_options.keys = options.keys;
  std::optional<Profile> first_round;
  if (!options.follow_up.empty()) {
    isa::ProfileIssues issues;
    first_round = load_profile(options.follow_up, issues);
    if (!first_round) {
      return show_issues(options, issues, kFailed);
    }
    set_options.follow_up = &*first_round;
  }
  if (const std::string unknown_key = find_unknown_key(*base, set_options); !unknown_key.empty()) {
    return complain(options, unknown_key, kUsage);
  }
  std::vector<Microbench> set = make_microbenches(*base, set_options);
  if (options.is_list) {
    return list_set(options, set);
  }
  if (!options.device.empty()) {
    return measure_set(std::move(set), set_options, *base, options);
  }
  if (options.output.empty()) {
    return complain(
        options,
        "name a device to measure on (--device npu or emulated:PROFILE) or a folder for the PTO "
        "texts (-o FOLDER); --list says what there is",
        kUsage);
  }
  return write_folder(set, options);
}

} // namespace pto::rt
