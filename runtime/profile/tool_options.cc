// SPDX-License-Identifier: Apache-2.0
// ptoprof's options: names, help and the parsing of compound values.
#include "runtime/profile/tool_options.h"

#include "isa/option_values.h"
#include "simulator/launch_setup.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>

namespace pto::rt {
namespace {

constexpr uint32_t kMostRuns = 100000;

constexpr const char* kExamples = R"(Examples:
  ptoprof run vector_add.pto -g 4 -b 256 -a a=rand:f32[1024] -a b=rand:f32[1024] \
          -a o=zeros:f32[1024] -a n=1024 -d emulated:reference-fused -m reference -o p.json
  ptoprof microbench --device emulated:reference-fused -o bench.json
  ptoprof calibrate bench.json p.json --base reference -o fitted.json
  ptoprof report p.json --html p.html
  ptoprof import OPPROF_20260821/ -o vendor.json

Exit status: 0 success, 1 errors in the input or a failed measurement, 2 wrong usage, 3 internal
error.)";

sim::Dim3 parse_size(const std::string& option, const std::string& text) {
  std::string error;
  const std::optional<sim::Dim3> dim = sim::parse_dim3(text, error);
  if (!dim) {
    throw CLI::ValidationError(option, error);
  }
  return *dim;
}

void add_list(CLI::App& app,
              const char* names,
              std::vector<std::string>& target,
              const char* help,
              const char* type) {
  app.add_option(names, target, help)->type_name(type)->allow_extra_args(false);
}

/// A day of the calendar as YYYY-MM-DD.
bool is_date(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-dd";
  const bool has_form =
      std::equal(text.begin(), text.end(), kForm.begin(), kForm.end(), [](char c, char form) {
        return form == 'd' ? c >= '0' && c <= '9' : c == form;
      });
  if (!has_form) {
    return false;
  }
  const auto number = [&](size_t at, size_t size) {
    return std::stoi(std::string(text.substr(at, size)));
  };
  return std::chrono::year_month_day(std::chrono::year(number(0, 4)),
                                     std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                     std::chrono::day(static_cast<unsigned>(number(8, 2))))
      .ok();
}

/// 0 where it was not given.
uint32_t at_least_one(const char* option, std::optional<uint32_t> value) {
  if (value && *value == 0) {
    throw CLI::ValidationError(option, "0 is too few; expected 1 or more");
  }
  return value.value_or(0);
}

class Declaration {
public:
  explicit Declaration(ToolOptions& options) : options_(options) {}

  void declare(CLI::App& app) {
    app.set_version_flag("--version", "ptoprof " PTO_VERSION);
    app.footer(kExamples);
    app.require_subcommand(1);
    isa::add_color(app, options_.color);
    app.add_flag("--json", options_.is_json, "Results and diagnostics as JSON");
    app.add_flag("-q,--quiet", options_.is_quiet, "Only what was asked for, and errors");
    app.fallthrough();
    declare_run(*app.add_subcommand("run", "Measure a kernel"));
    declare_import(*app.add_subcommand("import", "Read what the vendor's profiler wrote"));
    declare_calibrate(*app.add_subcommand("calibrate", "Fit a machine profile to profiles"));
    declare_report(*app.add_subcommand("report", "Show a profile beside the simulator"));
    declare_microbench(*app.add_subcommand("microbench", "Write or measure microbenchmarks"));
    app.add_subcommand("devices", "What was looked for, where, and what can be used")
        ->callback([this] { options_.command = ToolCommand::kDevices; });
    app.add_subcommand("schema", "Print the JSON schema of profile files")->callback([this] {
      options_.command = ToolCommand::kSchema;
    });
  }

  void complete(const CLI::App& app) {
    if (const std::string name = isa::empty_option(app); !name.empty()) {
      throw CLI::ValidationError(name, isa::kEmptyValue);
    }
    options_.grid = parse_size("--grid", grid_);
    options_.block = parse_size("--block", block_);
    if (!(options_.noise.relative >= 0 && options_.noise.relative <= 1)) {
      throw CLI::ValidationError(
          "--noise", fmt::format("{} is no part; expected 0 to 1", options_.noise.relative));
    }
    options_.runs = at_least_one("--runs", runs_);
    if (options_.runs > kMostRuns) {
      throw CLI::ValidationError(
          "--runs", fmt::format("{} runs; expected at most {}", options_.runs, kMostRuns));
    }
    check_use(app);
    options_.types_per_entry = at_least_one("--types", types_per_entry_);
    if (!options_.date.empty() && !is_date(options_.date)) {
      throw CLI::ValidationError(
          "--date",
          fmt::format("'{}' is no day; expected YYYY-MM-DD, such as 2026-08-21", options_.date));
    }
    for (const std::string& role : options_.roles) {
      std::string known;
      bool is_known = false;
      for (const MicrobenchRole& candidate : microbench_roles()) {
        is_known = is_known || candidate.name == role;
        known += fmt::format("{}{}", known.empty() ? "" : ", ", candidate.name);
      }
      if (!is_known) {
        throw CLI::ValidationError("--role",
                                   fmt::format("'{}' is no role; expected one of {}", role, known));
      }
    }
  }

private:
  /// What was given must matter to what is done.
  void check_use(const CLI::App& app) const {
    const auto refuse = [&](std::initializer_list<const char*> names, const char* reason) {
      for (const CLI::App* subcommand : app.get_subcommands()) {
        for (const char* name : names) {
          const CLI::Option* option = subcommand->get_option_no_throw(name);
          if (option != nullptr && option->count() != 0) {
            throw CLI::ValidationError(name, reason);
          }
        }
      }
    };
    const bool is_emulated = options_.device.starts_with("emulated");
    if (options_.command == ToolCommand::kMicrobench && options_.device.empty()) {
      refuse({"--runs", "--warm-up", "--noise", "--seed", "--doubled", "--date"},
             "nothing is measured; expected with --device");
    }
    if (!is_emulated) {
      refuse({"--noise", "--seed", "--doubled"},
             "a board has its own; expected with --device emulated:PROFILE");
    }
    if (is_emulated) {
      refuse({"--warm-up"}, "it is for boards; an emulated device has nothing to warm up");
    }
    if (options_.is_appending && options_.output.empty()) {
      refuse({"--append"}, "no profile is written; expected with -o");
    }
  }

  void command(CLI::App& app, ToolCommand which) {
    app.callback([this, which] { options_.command = which; });
  }
  void inputs(CLI::App& app, const char* name, const char* help) {
    app.add_option(name, options_.inputs, help)->type_name("PATH")->required();
  }
  void measuring(CLI::App& app) {
    app.add_option("-d,--device", options_.device, "emulated:PROFILE, or npu")->type_name("DEVICE");
    app.add_option("--runs", runs_, "Runs to measure")
        ->type_name("N")
        ->check(isa::whole_number<uint32_t>(1, kMostRuns));
    app.add_option("--warm-up", options_.warm_ups, "Launches before, on a board (default 5)")
        ->type_name("N")
        ->check(isa::whole_number<decltype(options_.warm_ups)>());
    app.add_option("--noise", options_.noise.relative, "Emulated: deviation of a run, 0.05 is 5 %")
        ->type_name("PART")
        ->check(isa::real_number("0 to 1"));
    app.add_option("--seed", options_.noise.seed, "Emulated: of the noise (default 1)")
        ->type_name("N")
        ->check(isa::whole_number<decltype(options_.noise.seed)>());
    app.add_option(
           "--doubled", options_.noise.doubled_runs, "Emulated: runs that take twice as long")
        ->type_name("N")
        ->check(isa::whole_number<decltype(options_.noise.doubled_runs)>());
    app.add_option("--date", options_.date, "Recorded with the figures")->type_name("YYYY-MM-DD");
  }
  void output(CLI::App& app, const char* help) {
    app.add_option("-o,--output", options_.output, help)->type_name("FILE");
  }

  void declare_run(CLI::App& app) {
    command(app, ToolCommand::kRun);
    inputs(app, "file", "Program: .pto text or .ptobj");
    app.add_option("-k,--kernel", options_.kernel, "Kernel; not needed where there is one only")
        ->type_name("NAME");
    app.add_option("-g,--grid", grid_, "Blocks in the grid (default 1)")->type_name("SIZE");
    app.add_option("-b,--block", block_, "Lanes in a block (default 1)")->type_name("SIZE");
    add_list(app, "-a,--arg", options_.args, "Argument, as of ptosim", "NAME=VALUE");
    add_list(app, "-I", options_.include_dirs, "Folder for .include", "DIR");
    add_list(app, "-D", options_.defines, "Define a constant for the assembler", "NAME[=VALUE]");
    app.add_option("--dyn-l1", options_.dynamic_l1_bytes, "Scratchpad after the kernel's own")
        ->type_name("BYTES")
        ->check(isa::whole_number<uint32_t>());
    measuring(app);
    add_list(app,
             "-m,--machine",
             options_.machines,
             "Machine profile to compare with (default: the file's, else reference)",
             "PROFILE");
    app.add_option("--name", options_.name, "Of the kernel in the profile")->type_name("NAME");
    app.add_option("--group", options_.group, "Kernels that do the same work share one")
        ->type_name("NAME");
    output(app, "Profile to write");
    app.add_flag("--append", options_.is_appending, "Add to the profile if it exists");
    app.add_flag("--strict", options_.is_strict, "An insn without a latency is an error");
  }
  void declare_import(CLI::App& app) {
    command(app, ToolCommand::kImport);
    inputs(app, "path", "OPPROF_* folder, part of one, or one file");
    output(app, "Profile to write");
  }
  void declare_calibrate(CLI::App& app) {
    command(app, ToolCommand::kCalibrate);
    inputs(app, "profiles", "Profiles of one device");
    app.add_option("--base", options_.base, "Machine profile to start from (default reference)")
        ->type_name("PROFILE");
    app.add_option("--name", options_.name, "Of the new machine profile (default fitted)")
        ->type_name("NAME");
    app.add_option("--date", options_.date, "Of the measurement")->type_name("YYYY-MM-DD");
    output(app, "Machine profile to write");
    app.add_option("--html", options_.html, "Report as a page")->type_name("FILE");
    app.add_flag("--strict",
                 options_.is_strict,
                 "Kernels that use insns without a measurement are an error");
  }
  void declare_report(CLI::App& app) {
    command(app, ToolCommand::kReport);
    inputs(app, "profile", "Profile to show");
    add_list(app, "-m,--machine", options_.machines, "Machine profile to compare with", "PROFILE");
    app.add_option("--html", options_.html, "Write a page instead")->type_name("FILE");
  }
  void declare_microbench(CLI::App& app) {
    command(app, ToolCommand::kMicrobench);
    measuring(app);
    app.add_option("--base", options_.base, "Machine whose limits and keys count")
        ->type_name("PROFILE");
    add_list(app, "--role", options_.roles, "Only these roles", "ROLE");
    add_list(app, "--key", options_.keys, "Only patterns of this insn, as FMA or LOAD.l1", "KEY");
    app.add_option("--types", types_per_entry_, "Types of each latency entry (default all)")
        ->type_name("N")
        ->check(isa::whole_number<uint32_t>(1));
    app.add_option("--follow-up", options_.follow_up, "Second round for the pairs of this profile")
        ->type_name("FILE");
    app.add_flag("--list", options_.is_list, "Only say what there is");
    output(app, "With a device: profile to write; without: folder for the PTO texts");
  }

  ToolOptions& options_;
  std::optional<uint32_t> runs_;
  std::optional<uint32_t> types_per_entry_;
  std::string grid_ = "1";
  std::string block_ = "1";
};

} // namespace

ParsedToolOptions parse_tool_options(int argc, char** argv, const isa::ProgramState& state) {
  CLI::App app("Measures kernels, fits machine profiles to what was measured and compares both.",
               "ptoprof");
  ToolOptions options;
  Declaration declaration(options);
  declaration.declare(app);
  try {
    app.parse(argc, argv);
    declaration.complete(app);
  } catch (const CLI::Success& success) {
    isa::print_success(app, success); // prints help or version
    return {std::nullopt, 0};
  } catch (const CLI::ParseError& error) {
    isa::print_error(state, isa::message_of(app, error), "Run ptoprof --help for the options.");
    return {std::nullopt, 2};
  }
  return {options, 0};
}

} // namespace pto::rt
