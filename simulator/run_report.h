// SPDX-License-Identifier: Apache-2.0
// What ptosim prints about a finished run: text for people, JSON for programs.
#pragma once

#include "simulator/cli_options.h"
#include "simulator/compare.h"
#include "simulator/kernel_run.h"
#include "simulator/schedule_fuzz.h"

#include <optional>
#include <string>
#include <vector>

namespace pto::sim {

/// Outcome of one --expect.
struct ExpectOutcome {
  NamedFile file;
  std::optional<Comparison> comparison; // nothing: could not be compared
  std::string text;                     // what to tell; several lines if they differ
  [[nodiscard]] bool is_good() const { return comparison && comparison->is_equal(); }
};

struct WrittenFile {
  NamedFile file;
  std::string type;
  std::vector<uint64_t> shape;
};

struct RunReport {
  const SimOptions* options = nullptr;
  const Program* program = nullptr;
  const std::vector<Argument>* arguments = nullptr;
  std::vector<KernelRun> runs; // one a profile, the first one's arrays count
  std::vector<WrittenFile> written;
  std::vector<ExpectOutcome> expects;
  std::optional<ScheduleFuzz> fuzz;       // of --schedule-fuzz
  std::vector<std::string> disagreements; // arrays that differ between profiles
  std::vector<std::string> report_files;  // written for --report, --trace, --timeline-out
};

/// "vector_add: 4 blocks of 256 lanes, completed: ..." and, verbose, further lines.
[[nodiscard]] std::string summary_text(const RunReport& report);
/// A table with one line a profile.
[[nodiscard]] std::string comparison_table(const RunReport& report);
/// "o: f32[1024], first 4 elements" and the elements, eight a line.
[[nodiscard]] std::string array_text(std::string_view name, const HostArray& array, uint64_t count);
/// Everything as one JSON object, indented, with a line end.
[[nodiscard]] std::string report_json(const RunReport& report);
/// What the checks found, each as several lines, and a closing line; empty if nothing was.
[[nodiscard]] std::string findings_text(const RunReport& report, const KernelRun& run);
/// Why a run that did not complete stopped; ends in a line end.
[[nodiscard]] std::string stop_text(const RunReport& report, const KernelRun& run);

} // namespace pto::sim
