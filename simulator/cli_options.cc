// SPDX-License-Identifier: Apache-2.0
// ptosim's options: one place for names, help and the parsing of compound values.
#include "simulator/cli_options.h"

#include "isa/host_level.h"
#include "isa/option_values.h"
#include "simulator/launch_setup.h"
#include "simulator/number_text.h"
#include "simulator/sampled.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace pto::sim {
namespace {

constexpr const char* kExamples = R"(Arguments (--arg NAME=VALUE):
  n=1024  x=0x10  s=-1.5               a scalar
  a=zeros:f32[1024]                    zeros, ones; full:f32[8]:value=2.5
  a=rand:f32[64,32]:seed=1:lo=-1:hi=1  uniform in [lo, hi); randn:f32[8]:mean=0:std=1
  a=iota:s32[100]:start=5:step=-1
  a=@data.npy  a=@data.npy:f16         numpy file; with a type: converted
  a=@data.bin:f32[1024]                raw bytes

Example:
  ptosim vector_add.pto --kernel vector_add --grid 4 --block 256 \
         --arg a=rand:f32[1024]:seed=1 --arg b=@b.npy --arg o=zeros:f32[1024] --arg n=1024 \
         --out o=o.npy --expect o=expected.npy

Reports of time (of the first profile):
  --timeline --stalls --counters       text
  --report run.html                    one page for a browser, needs nothing else
  --report run.json                    the run as data: ptosim diff before.json after.json
  --trace trace.json                   for ui.perfetto.dev or chrome://tracing
  --timeline-out t.csv                 one line an instruction

Exit status: 0 success, 1 errors in the input or a failed kernel or comparison, 2 wrong usage,
3 internal error, 130 interrupted.

Environment:
  PTO_HOST_LEVEL=LEVEL  run loops over lanes compiled for baseline, avx2 or avx512 processors;
                        results are the same, --version shows the level in use)";

Dim3 parse_size(const std::string& option, const std::string& text) {
  std::string error;
  const std::optional<Dim3> dim = parse_dim3(text, error);
  if (!dim) {
    throw CLI::ValidationError(option, error);
  }
  return *dim;
}

NamedFile parse_named_file(const std::string& option, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw CLI::ValidationError(
        option, fmt::format("'{}' is not understood; expected NAME=FILE, such as o=o.npy", text));
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

PrintRequest parse_print(const std::string& text) {
  const size_t colon = text.find(':');
  PrintRequest request{text.substr(0, colon)};
  if (colon != std::string::npos) {
    std::string reason;
    const std::optional<uint64_t> count = parse_count(text.substr(colon + 1), reason);
    if (!count) {
      throw CLI::ValidationError(
          "--print", fmt::format("'{}' is not understood; expected NAME or NAME:COUNT", text));
    }
    request.count = *count;
  }
  return request;
}

uint64_t parse_limit(const std::string& option, const std::string& text) {
  std::string reason;
  const std::optional<uint64_t> value = parse_count(text, reason);
  if (!value) {
    throw CLI::ValidationError(option, reason);
  }
  return *value;
}

/// "100:500", "100:" or ":500": cycles.
void parse_window(const std::string& text, TimelineLimits& limits) {
  const size_t colon = text.find(':');
  std::string reason;
  const auto bound = [&](const std::string& part, uint64_t absent) {
    return part.empty() ? std::optional<uint64_t>(absent) : parse_count(part, reason);
  };
  const auto from = bound(text.substr(0, colon), 0);
  const auto to =
      colon == std::string::npos ? std::nullopt : bound(text.substr(colon + 1), UINT64_MAX);
  if (!from || !to || *from > *to || text.size() == 1) {
    throw CLI::ValidationError(
        "--trace-window",
        fmt::format("'{}' is no range of cycles; expected FROM:TO, FROM: or :TO", text));
  }
  limits.from_cycle = *from;
  limits.to_cycle = *to;
}

void check_suffix(const std::string& option,
                  const std::string& path,
                  std::string_view first,
                  std::string_view second) {
  if (!path.empty() && !path.ends_with(first) && !path.ends_with(second)) {
    throw CLI::ValidationError(option,
                               fmt::format("the format of '{}' is unknown; expected a name that "
                                           "ends in {} or {}",
                                           path,
                                           first,
                                           second));
  }
}

/// Texts as CLI11 collects them; turned into SimOptions when all is read.
struct RawOptions {
  std::string grid = "1";
  std::string block = "1";
  std::vector<std::string> outs;
  std::vector<std::string> expects;
  std::vector<std::string> prints;
  std::string checks;
  std::string schedule_fuzz;
  std::string cache = "coherent";
  std::string max_insns;
  std::string max_cycles;
  std::string timeline;
  std::string trace_blocks;
  std::string trace_window;
  std::string trace_limit;
  std::optional<uint32_t> sample_waves;
  bool nan_differs = false;
};

/// An option that takes one value each time it is given.
void add_repeatable(CLI::App& app,
                    const char* names,
                    std::vector<std::string>& target,
                    const char* help,
                    const char* type) {
  app.add_option(names, target, help)->type_name(type)->allow_extra_args(false);
}

void declare_reports(CLI::App& app, ReportRequests& reports, RawOptions& raw) {
  app.add_flag("--timeline{64}",
               raw.timeline,
               "Show when each instruction issued and finished; --timeline=N: N rows, 0: all");
  app.add_flag("--stalls", reports.stalls, "Show why warps waited, by reason and by source line");
  app.add_flag("--counters", reports.counters, "Show all counters and the roofline");
  app.add_option("--timeline-out", reports.timeline_file, "Write the timeline (.csv or .json)")
      ->type_name("FILE");
  app.add_option("--trace", reports.trace_file, "Write a trace for Perfetto or Chrome (.json)")
      ->type_name("FILE");
  app.add_option(
         "--report", reports.report_file, "Write a page for a browser (.html), or the data (.json)")
      ->type_name("FILE");
  app.add_option("--trace-blocks", raw.trace_blocks, "Record the first N blocks only")
      ->type_name("N");
  app.add_option("--trace-window", raw.trace_window, "Record these cycles only")
      ->type_name("FROM:TO");
  app.add_option(
         "--trace-limit", raw.trace_limit, "Record at most N timeline entries (default 262144)")
      ->type_name("N");
}

void declare(CLI::App& app, SimOptions& options, RawOptions& raw) {
  app.footer(kExamples);
  app.set_version_flag("--version", version_text());
  app.add_option("file", options.file, "Program: .pto text or .ptobj; - for stdin")
      ->type_name("FILE")
      ->required();
  app.add_option("-k,--kernel", options.kernel, "Kernel; not needed where the file has one only")
      ->type_name("NAME");
  app.add_option("-g,--grid", raw.grid, "Blocks in the grid: X, X,Y,Z or XxYxZ (default 1)")
      ->type_name("SIZE");
  app.add_option("-b,--block", raw.block, "Lanes in a block: X, X,Y,Z or XxYxZ (default 1)")
      ->type_name("SIZE");
  add_repeatable(app, "-a,--arg", options.args, "Argument of the kernel, see below", "NAME=VALUE");
  add_repeatable(
      app, "-o,--out", raw.outs, "Write an array after the run (.npy or .bin)", "NAME=FILE");
  add_repeatable(
      app, "-e,--expect", raw.expects, "Compare an array with a file (.npy or .bin)", "NAME=FILE");
  add_repeatable(app,
                 "-p,--print",
                 raw.prints,
                 "Show the first elements of an array (default 16)",
                 "NAME[:COUNT]");
  app.add_option("--rtol", options.tolerance.rtol, "Relative tolerance of --expect (default 0)")
      ->type_name("NUMBER")
      ->check(isa::real_number("0 or more"));
  app.add_option("--atol", options.tolerance.atol, "Absolute tolerance of --expect (default 0)")
      ->type_name("NUMBER")
      ->check(isa::real_number("0 or more"));
  app.add_flag("--no-equal-nan", raw.nan_differs, "NaN differs from NaN in --expect");
  app.add_option(
         "--device", options.device, "Run there instead: npu[:N], emulated:PROFILE, sim[:PROFILE]")
      ->type_name("NAME");
  app.add_flag("--functional", options.is_functional, "Results only, no timing: fast");
  app.add_option("--schedule",
                 options.schedule,
                 "Order of warps: timed (default), lockstep, greedy or random:SEED")
      ->type_name("ORDER");
  app.add_option("--schedule-fuzz",
                 raw.schedule_fuzz,
                 "Run under timed, functional, lockstep, greedy and N random orders as well and "
                 "report the first result that differs")
      ->type_name("N");
  app.add_option("--cache",
                 raw.cache,
                 "coherent (default): every load sees memory; incoherent: plain loads see what "
                 "their core's data cache holds")
      ->type_name("MODE");
  app.add_option("--checks",
                 raw.checks,
                 "What to look for: mem, init, race, sync, nan (a list with commas), or all")
      ->type_name("LIST");
  app.add_option("--threads",
                 options.threads,
                 "Host threads with --functional; 0 (default): all. Never changes a result")
      ->type_name("N")
      ->check(isa::whole_number<unsigned>());
  app.add_option("--dyn-l1", options.dynamic_l1_bytes, "Scratchpad after the kernel's own")
      ->type_name("BYTES")
      ->check(isa::whole_number<uint32_t>());
  app.add_option("--max-instructions", raw.max_insns, "Stop after so many warp instructions")
      ->type_name("N");
  app.add_option("--max-cycles", raw.max_cycles, "Stop after so many cycles")->type_name("N");
  app.add_option("--sample",
                 raw.sample_waves,
                 "Time the first N waves of blocks, run the others for results alone and estimate "
                 "the cycles of all; N from 4, 8 is good")
      ->type_name("N")
      ->check(isa::whole_number<uint32_t>(kLeastWaves));
  add_repeatable(app,
                 "-m,--profile",
                 options.profiles,
                 "Machine profile, name or JSON file (default: that of .machine, else reference); "
                 "several print a comparison",
                 "PROFILE");
  add_repeatable(
      app, "--set", options.overrides, "Change a figure of every profile", "KEY.PATH=VALUE");
  app.add_flag("--strict",
               options.is_strict,
               "An instruction whose latency the profile does not know is an error");
  declare_reports(app, options.reports, raw);
  add_repeatable(app, "-I", options.include_dirs, "Folder for .include", "DIR");
  add_repeatable(app, "-D", options.defines, "Define a constant for the assembler", "NAME[=VALUE]");
  app.add_flag("--json", options.is_json, "Results and diagnostics as JSON");
  app.add_flag("-q,--quiet", options.is_quiet, "Only what was asked for, and errors");
  app.add_flag(
      "-v,--verbose", options.is_verbose, "The assembler's warnings, and more figures of the run");
  isa::add_color(app, options.color);
}

void complete_reports(SimOptions& options, const RawOptions& raw, bool is_timed) {
  ReportRequests& reports = options.reports;
  if (!raw.timeline.empty()) {
    reports.timeline_rows = parse_limit("--timeline", raw.timeline);
  }
  if (!raw.trace_blocks.empty()) {
    reports.limits.max_blocks = parse_limit("--trace-blocks", raw.trace_blocks);
  }
  if (!raw.trace_window.empty()) {
    parse_window(raw.trace_window, reports.limits);
  }
  if (!raw.trace_limit.empty()) {
    reports.limits.max_entries = parse_limit("--trace-limit", raw.trace_limit);
  }
  check_suffix("--timeline-out", reports.timeline_file, ".csv", ".json");
  check_suffix("--report", reports.report_file, ".html", ".json");
  if (reports.is_any() && !is_timed) {
    throw CLI::ValidationError("--timeline, --stalls, --counters, --trace, --report",
                               options.device.empty()
                                   ? "they tell about time, which --functional and --schedule "
                                     "do not have"
                                   : "they tell about a timed run, and a device times a launch as "
                                     "a whole; use --profile in place of --device");
  }
  if (!reports.wants_timeline() &&
      (!raw.trace_blocks.empty() || !raw.trace_window.empty() || !raw.trace_limit.empty())) {
    throw CLI::ValidationError("--trace-blocks, --trace-window, --trace-limit",
                               "nothing is recorded; expected with --timeline, --stalls, "
                               "--timeline-out, --trace or --report");
  }
  if (options.is_json && (reports.timeline_rows || reports.stalls || reports.counters)) {
    throw CLI::ValidationError("--timeline, --stalls, --counters",
                               "they print text, and --json promises JSON; use --report F.json");
  }
}

void complete(const CLI::App& app, SimOptions& options, const RawOptions& raw) {
  if (const std::string name = isa::empty_option(app); !name.empty()) {
    throw CLI::ValidationError(name, isa::kEmptyValue);
  }
  options.tolerance.nan_equals_nan = !raw.nan_differs;
  for (const double tolerance : {options.tolerance.rtol, options.tolerance.atol}) {
    if (!(tolerance >= 0)) {
      throw CLI::ValidationError("--rtol, --atol",
                                 fmt::format("{} is no tolerance; expected 0 or more", tolerance));
    }
  }
  if (raw.expects.empty() && app.count("--rtol") + app.count("--atol") + raw.nan_differs != 0) {
    throw CLI::ValidationError("--rtol, --atol, --no-equal-nan",
                               "nothing is compared; expected with --expect");
  }
  options.grid = parse_size("--grid", raw.grid);
  options.block = parse_size("--block", raw.block);
  for (const std::string& text : raw.outs) {
    options.outs.push_back(parse_named_file("--out", text));
    const std::string& path = options.outs.back().path;
    if (!path.ends_with(".npy") && !path.ends_with(".bin") && !path.starts_with("/dev/")) {
      throw CLI::ValidationError(
          "--out", fmt::format("the format of '{}' is unknown; expected .npy or .bin", path));
    }
  }
  for (const std::string& text : raw.expects) {
    options.expects.push_back(parse_named_file("--expect", text));
  }
  for (const std::string& text : raw.prints) {
    options.prints.push_back(parse_print(text));
  }
  if (!raw.max_insns.empty()) {
    options.max_insns = parse_limit("--max-instructions", raw.max_insns);
  }
  if (!raw.max_cycles.empty()) {
    options.max_cycles = parse_limit("--max-cycles", raw.max_cycles);
  }
  if (!raw.schedule_fuzz.empty()) {
    options.schedule_fuzz = parse_limit("--schedule-fuzz", raw.schedule_fuzz);
    if (options.schedule_fuzz == 0) {
      throw CLI::ValidationError("--schedule-fuzz", "0 random orders; expected 1 or more");
    }
    if (options.profiles.size() > 1) {
      throw CLI::ValidationError("--schedule-fuzz", "it compares orders on one profile; give one");
    }
  }
  if (raw.cache != "coherent" && raw.cache != "incoherent") {
    throw CLI::ValidationError(
        "--cache", fmt::format("unknown mode '{}'; expected coherent or incoherent", raw.cache));
  }
  options.is_cache_incoherent = raw.cache == "incoherent";
  std::string checks_error;
  const std::optional<CheckSet> checks = parse_checks(raw.checks, checks_error);
  if (!checks) {
    throw CLI::ValidationError("--checks", checks_error);
  }
  options.checks = *checks;
  const bool is_timed = options.device.empty() && !options.is_functional &&
                        (options.schedule.empty() || options.schedule == "timed");
  options.sample_waves = raw.sample_waves.value_or(0);
  if (raw.sample_waves && (!is_timed || options.sample_waves < kLeastWaves)) {
    throw CLI::ValidationError(
        "--sample",
        is_timed ? fmt::format("{} waves; expected at least {}: the first fills the machine and "
                               "the last drains it",
                               options.sample_waves,
                               kLeastWaves)
                 : std::string("there are no cycles to estimate without timing"));
  }
  if (!is_timed && options.max_cycles != UINT64_MAX) {
    throw CLI::ValidationError("--max-cycles",
                               "there are no cycles without timing; use "
                               "--max-instructions");
  }
  if (app.count("--threads") != 0 && !options.is_functional && options.schedule_fuzz == 0) {
    throw CLI::ValidationError("--threads",
                               "one thread does this run; expected with --functional, which can "
                               "use several");
  }
  complete_reports(options, raw, is_timed);
  if (!is_timed && options.profiles.size() > 1) {
    throw CLI::ValidationError("--profile",
                               "several profiles are compared by cycles, which "
                               "--functional and --schedule do not have");
  }
  if (!options.device.empty()) {
    const bool is_alone = !options.is_functional && options.schedule.empty() &&
                          options.profiles.empty() && options.overrides.empty() &&
                          options.schedule_fuzz == 0 && !options.is_cache_incoherent;
    if (!is_alone) {
      throw CLI::ValidationError("--device",
                                 "it excludes --functional, --schedule, --schedule-fuzz, --cache, "
                                 "--profile and --set, which are of the simulator");
    }
  }
  if (options.is_functional && !options.schedule.empty()) {
    throw CLI::ValidationError("--schedule", "it excludes --functional, which has its own order");
  }
  if (options.schedule == "timed") {
    options.schedule.clear();
  }
}

} // namespace

std::string version_text() {
  return fmt::format("ptosim {} (host level {})", PTO_VERSION, isa::name_of(isa::host_level()));
}

ParsedCommandLine parse_command_line(int argc, char** argv, const isa::ProgramState& state) {
  CLI::App app("Runs a PTO kernel on a simulated machine and says what it computed and how long "
               "it took.",
               "ptosim");
  SimOptions options;
  RawOptions raw;
  declare(app, options, raw);
  try {
    app.parse(argc, argv);
    complete(app, options, raw);
  } catch (const CLI::Success& success) {
    isa::print_success(app, success); // prints help or version
    return {std::nullopt, 0};
  } catch (const CLI::ParseError& error) {
    isa::print_error(state, isa::message_of(app, error), "Run ptosim --help for the options.");
    return {std::nullopt, 2};
  }
  return {options, 0};
}

} // namespace pto::sim
