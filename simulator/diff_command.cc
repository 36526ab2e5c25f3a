// SPDX-License-Identifier: Apache-2.0
// Command line of ptosim diff.
#include "simulator/diff_command.h"

#include "isa/file_io.h"
#include "simulator/report/reports.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string>

namespace pto::sim {

namespace {

std::optional<TimingReport> read_run_file(const std::string& path) {
  std::string error;
  std::optional<TimingReport> report;
  if (const auto bytes = isa::read_file(path, error)) {
    report = read_run({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, error);
    if (!report) {
      error = fmt::format("{}: {}", path, error);
    }
  }
  if (!report) {
    fmt::print(stderr, "ptosim: error: {}\n", error);
  }
  return report;
}

} // namespace

int diff_command(int argc, char** argv) {
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
  app.set_version_flag("--version", "ptosim " PTO_VERSION);
  app.footer("A program that is called diff runs as ./diff.\n\n"
             "Exit status: 0 success, 1 a file is no saved run, 2 wrong usage.");
  try {
    app.parse(argc - 1, argv + 1);
  } catch (const CLI::Success& success) {
    app.exit(success);
    return 0;
  } catch (const CLI::ParseError& error) {
    fmt::print(
        stderr, "ptosim diff: error: {}\nRun ptosim diff --help for the options.\n", error.what());
    return 2;
  }
  const std::optional<TimingReport> before = read_run_file(before_path);
  const std::optional<TimingReport> after = read_run_file(after_path);
  if (!before || !after) {
    return 1;
  }
  fmt::print("{}",
             is_json ? diff_json(*before, *after)
                     : diff_text(*before, *after, before_path, after_path));
  return 0;
}

} // namespace pto::sim
