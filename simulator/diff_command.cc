// SPDX-License-Identifier: Apache-2.0
// Command line of ptosim diff.
#include "simulator/diff_command.h"

#include "isa/file_io.h"
#include "isa/option_values.h"
#include "simulator/cli_options.h"
#include "simulator/report/reports.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

namespace pto::sim {

namespace {

constexpr uint64_t kLargestRunBytes = uint64_t{1} << 32;

/// Nothing, with a sentence more in `errors`, if it is no saved run.
std::optional<TimingReport> read_run_file(const std::string& path,
                                          std::vector<std::string>& errors) {
  std::string error;
  const auto bytes = isa::read_file(path, error, kLargestRunBytes);
  if (!bytes) {
    errors.push_back(error);
    return std::nullopt;
  }
  std::optional<TimingReport> report =
      read_run({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, error);
  if (!report) {
    errors.push_back(fmt::format("{}: {}", path, error));
  }
  return report;
}

} // namespace

int diff_command(int argc, char** argv, const isa::ProgramState& state) {
  CLI::App app(
      "Compares two runs that were saved with ptosim ... --report run.json: cycles, counters, "
      "waits by reason and by source line.",
      "ptosim diff");
  std::string before_path;
  std::string after_path;
  bool is_json = false;
  app.add_option("before", before_path, "The run to compare with")->type_name("FILE")->required();
  app.add_option("after", after_path, "The other run")->type_name("FILE")->required();
  app.add_flag("--json", is_json, "As JSON");
  app.set_version_flag("--version", version_text());
  app.footer("A program that is called diff runs as ./diff.\n\n"
             "Exit status: 0 success, 1 a file is no saved run, 2 wrong usage.");
  try {
    app.parse(argc - 1, argv + 1);
    if (const std::string name = isa::empty_option(app); !name.empty()) {
      throw CLI::ValidationError(name, isa::kEmptyValue);
    }
  } catch (const CLI::Success& success) {
    isa::print_success(app, success);
    return 0;
  } catch (const CLI::ParseError& error) {
    isa::ProgramState diff = state;
    diff.name = "ptosim diff";
    isa::print_error(diff, isa::message_of(app, error), "Run ptosim diff --help for the options.");
    return 2;
  }
  std::vector<std::string> errors;
  const std::optional<TimingReport> before = read_run_file(before_path, errors);
  const std::optional<TimingReport> after = read_run_file(after_path, errors);
  if (!before || !after) {
    isa::print_errors(state, errors);
    return 1;
  }
  fmt::print("{}",
             is_json ? diff_json(*before, *after)
                     : diff_text(*before, *after, before_path, after_path));
  return 0;
}

} // namespace pto::sim
