// SPDX-License-Identifier: Apache-2.0
// hardware_bench: runs the kernels that were measured on a board under a machine profile and prints
// predicted against measured times, by case, by family and in all.
#include "assembler/assemble.h"
#include "benchmarks/hardware/case_data.h"
#include "benchmarks/hardware/statistics.h"
#include "isa/machine.h"
#include "simulator/timed.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>

namespace {

using namespace pto;
using Json = nlohmann::ordered_json;

struct Settings {
  std::string folder = PTO_HARDWARE_DIR;
  std::string profile = "ascend950";
  std::vector<std::string> overrides;
  std::string only;
  std::vector<std::string> exact;
  bool shows_stalls = false;
  bool prints_json = false;
};

sim::Dim3 block_shape(const Json& value) {
  if (value.is_number()) {
    return {value.get<uint32_t>(), 1, 1};
  }
  return {value[0].get<uint32_t>(), value[1].get<uint32_t>(), value[2].get<uint32_t>()};
}

isa::MachineProfile load_profile(const Settings& settings) {
  isa::ProfileIssues issues;
  std::optional<isa::MachineProfile> profile = isa::load_machine(settings.profile, issues);
  for (const std::string& assignment : settings.overrides) {
    if (profile && !isa::apply_override(*profile, assignment, issues)) {
      profile.reset();
    }
  }
  if (!profile) {
    throw std::runtime_error(isa::to_string(issues));
  }
  return *profile;
}

std::shared_ptr<const isa::Object> load_object(const std::string& path) {
  isa::Diagnostics diags;
  as::AssembleOptions options;
  std::optional<isa::Object> object = as::load_program(path, options, diags);
  if (!object) {
    throw std::runtime_error(isa::render(diags));
  }
  return std::make_shared<const isa::Object>(std::move(*object));
}

class CaseRun {
public:
  CaseRun(const Json& test, const Settings& settings, const isa::MachineProfile& profile)
      : test_(test), settings_(settings), machine_(profile) {
    std::string error;
    program_ = sim::Program::find(
        load_object(settings.folder + "/" + text("file")), text("kernel"), error);
    if (!program_) {
      throw std::runtime_error(text("id") + ": " + error);
    }
  }

  bench::Outcome run() {
    sim::LaunchConfig config;
    config.grid = {test_["grid"].get<uint32_t>(), 1, 1};
    config.block = block_shape(test_["block"]);
    bench::BufferMaker buffers;
    for (const auto& item : test_["args"].items()) {
      sim::LaunchArg arg;
      if (item.value().is_object()) {
        const std::vector<uint8_t> bytes = buffers.make(item.value());
        arg.bits = machine_.hbm.alloc(bytes.size(), item.key());
        if (!item.value().contains("zeros")) {
          (void)machine_.hbm.write(arg.bits, bytes);
        }
        arg.is_pointer = true;
        addresses_[item.key()] = arg.bits;
      } else {
        arg.bits = item.value().get<uint64_t>();
      }
      config.args.push_back(arg);
    }
    sim::SharedMemory shared(machine_.profile);
    if (test_.value("steady", false)) {
      sim::Launch before(machine_, program_, config);
      (void)sim::run_timed(before, shared);
    }
    sim::Launch launch(machine_, program_, config);
    const sim::TimedResult result = sim::run_timed(launch, shared);
    if (result.run.status != sim::RunStatus::kCompleted) {
      throw std::runtime_error(
          text("id") + ": " +
          (result.run.fault ? sim::format_fault(*result.run.fault, *program_) : "stopped early"));
    }
    for (const std::string& key : result.missing_keys) {
      fmt::print(stderr, "warning: {}: no latency for {}\n", text("id"), key);
    }
    if (settings_.shows_stalls) {
      print_stalls(result.counters);
    }
    return {text("id"), text("family"), test_["measured"].get<double>(), predicted(result)};
  }

private:
  std::string text(const char* key) const { return test_[key].get<std::string>(); }

  double predicted(const sim::TimedResult& result) const {
    const std::string measure = text("measure");
    if (measure != "us") { // clock:NAME
      uint64_t cycles = 0;
      const uint64_t address = addresses_.at(measure.substr(measure.find(':') + 1));
      uint8_t bytes[8] = {};
      (void)machine_.hbm.read(address, bytes);
      std::memcpy(&cycles, bytes, sizeof cycles);
      return static_cast<double>(cycles);
    }
    const double start = launch_cycles();
    const auto cycles = static_cast<double>(result.counters.cycles);
    const double scale = test_.value("scale", 1.0);
    return machine_.profile.microseconds(start + (cycles - start) * scale);
  }

  /// What a launch of this grid takes whatever its blocks do; a longer run pays it once.
  [[nodiscard]] double launch_cycles() const {
    const auto& profile = machine_.profile;
    const uint32_t first_wave =
        std::min(test_["grid"].get<uint32_t>(), profile.cores * profile.blocks_per_core);
    return profile.launch.task_cycles + profile.launch.block_start_cycles +
           profile.launch.block_end_cycles +
           (first_wave - 1) * profile.launch.dispatch_interval_cycles;
  }

  void print_stalls(const sim::TimedCounters& counters) const {
    const double all = static_cast<double>(counters.stalls.total() + counters.issued_cycles) / 100;
    fmt::print("{}: {} cycles, {} warp insns, issue {:.1f}%",
               text("id"),
               counters.cycles,
               counters.warp_insns,
               static_cast<double>(counters.issued_cycles) / all);
    for (unsigned r = 0; r < sim::kStallReasonCount; ++r) {
      if (counters.stalls.cycles[r] != 0) {
        fmt::print(", {} {:.1f}%",
                   sim::kStallInfo[r].name,
                   static_cast<double>(counters.stalls.cycles[r]) / all);
      }
    }
    const sim::MemoryCounters& memory = counters.memory;
    fmt::print("; lines {}, misses {}, conflicts {}\n",
               memory.lines,
               memory.cache_misses,
               memory.bank_conflicts);
  }

  const Json& test_;
  const Settings& settings_;
  sim::Machine machine_;
  std::shared_ptr<const sim::Program> program_;
  std::map<std::string, uint64_t> addresses_;
};

void print_summary(const std::string& name, const std::vector<bench::Outcome>& outcomes) {
  const bench::Summary s = bench::summarise(outcomes);
  fmt::print(
      "{:<16} {:>3} cases   MAPE {:>5.1f}%   median {:>5.1f}%   worst {:>5.1f}% ({})   tau {}\n",
      name,
      s.count,
      s.mape,
      s.median,
      s.worst,
      s.worst_id,
      s.has_tau ? fmt::format("{:.2f}", s.tau) : "-");
}

int report(const std::vector<bench::Outcome>& outcomes, const Settings& settings, size_t left_out) {
  if (settings.prints_json) {
    Json list = Json::array();
    for (const bench::Outcome& o : outcomes) {
      list.push_back({{"id", o.id},
                      {"family", o.family},
                      {"measured", o.measured},
                      {"predicted", o.predicted}});
    }
    fmt::print("{}\n", list.dump(1));
    return 0;
  }
  std::map<std::string, std::vector<bench::Outcome>> families;
  fmt::print("{:<52} {:>12} {:>12} {:>8}\n", "case", "measured", "predicted", "error");
  for (const bench::Outcome& o : outcomes) {
    families[o.family].push_back(o);
    fmt::print(
        "{:<52} {:>12.2f} {:>12.2f} {:>+7.1f}%\n", o.id, o.measured, o.predicted, 100 * o.error());
  }
  fmt::print("\n");
  for (const auto& family : families) {
    print_summary(family.first, family.second);
  }
  print_summary("all", outcomes);
  fmt::print("{} measured cases are left out: see not_expressible in cases.json\n", left_out);
  return 0;
}

int run(const Settings& settings) {
  std::ifstream in(settings.folder + "/cases.json");
  const Json file = Json::parse(in);
  const isa::MachineProfile profile = load_profile(settings);
  std::vector<bench::Outcome> outcomes;
  for (const Json& test : file["cases"]) {
    const auto id = test["id"].get<std::string>();
    const bool is_named =
        settings.exact.empty() ||
        std::find(settings.exact.begin(), settings.exact.end(), id) != settings.exact.end();
    if (is_named && id.find(settings.only) != std::string::npos) {
      outcomes.push_back(CaseRun(test, settings, profile).run());
    }
  }
  return report(outcomes, settings, file["not_expressible"].size());
}

} // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app{"Predicted against measured times of the hardware benchmarks"};
  app.add_option("--cases", settings.folder, "folder with cases.json and the kernels");
  app.add_option("--profile", settings.profile, "machine profile: a name or a .json file");
  app.add_option("--set", settings.overrides, "figure=value; may be given again")
      ->allow_extra_args(false);
  app.add_option("--only", settings.only, "cases whose name contains this");
  app.add_option("--case", settings.exact, "this case alone; may be given again")
      ->allow_extra_args(false);
  app.add_flag("--stalls", settings.shows_stalls, "where the time of each case goes");
  app.add_flag("--json", settings.prints_json, "the table as JSON");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "hardware_bench: {}\n", error.what());
    return 1;
  }
}
