// SPDX-License-Identifier: Apache-2.0
// The command line of ptosim as values.
#pragma once

#include "isa/diag.h"
#include "isa/run_program.h"
#include "simulator/checks/checks.h"
#include "simulator/compare.h"
#include "simulator/launch.h"
#include "simulator/timing/timeline.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pto::sim {

/// `--out o=o.npy`, `--expect o=e.npy`: an array parameter and a file.
struct NamedFile {
  std::string name;
  std::string path;
};

/// `--print o:8`
struct PrintRequest {
  std::string name;
  uint64_t count = 16;
};

/// What to tell about time; of the first profile.
struct ReportRequests {
  std::optional<size_t> timeline_rows; // --timeline: text, so many rows; 0: all
  bool stalls = false;
  bool counters = false;
  std::string timeline_file; // .json or .csv
  std::string trace_file;
  std::string report_file; // .html or .json
  TimelineLimits limits;   // --trace-blocks, --trace-window, --trace-limit
  [[nodiscard]] bool wants_timeline() const {
    return timeline_rows || stalls || !timeline_file.empty() || !trace_file.empty() ||
           !report_file.empty();
  }
  [[nodiscard]] bool is_any() const { return wants_timeline() || counters; }
};

struct SimOptions {
  std::string file; // "-": stdin
  std::string kernel;
  Dim3 grid{};
  Dim3 block{};
  std::vector<std::string> args;
  std::vector<NamedFile> outs;
  std::vector<NamedFile> expects;
  std::vector<PrintRequest> prints;
  Tolerance tolerance;
  bool is_functional = false;
  std::string schedule;       // empty: the mode's own
  uint64_t schedule_fuzz = 0; // random orders to compare with; 0: none
  bool is_cache_incoherent = false;
  std::string device; // empty: simulate here; else "npu:0", "emulated:PROFILE", ...
  CheckSet checks;
  uint32_t dynamic_l1_bytes = 0;
  unsigned threads = 0;
  uint64_t max_insns = UINT64_MAX;
  uint64_t max_cycles = UINT64_MAX;
  uint32_t sample_waves = 0;         // 0: every block is timed
  std::vector<std::string> profiles; // empty: the file's .machine, else reference
  std::vector<std::string> overrides;
  std::vector<std::string> include_dirs;
  std::vector<std::string> defines;
  ReportRequests reports;
  bool is_strict = false; // a latency key without an entry is an error
  bool is_json = false;
  bool is_quiet = false;
  bool is_verbose = false;
  isa::ColorMode color = isa::ColorMode::kAuto;
};

/// What --version prints: the program's version and the host level in use.
[[nodiscard]] std::string version_text();

/// Options, or the status to exit with at once (0 after --help and --version, 2 after a mistake,
/// which has been reported on stderr).
struct ParsedCommandLine {
  std::optional<SimOptions> options;
  int exit_status = 0;
};
[[nodiscard]] ParsedCommandLine
parse_command_line(int argc, char** argv, const isa::ProgramState& state);

} // namespace pto::sim
