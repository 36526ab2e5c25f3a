// SPDX-License-Identifier: Apache-2.0
// ptosim's run: program, profiles, arguments, launches, then everything that was asked about them.
// All that can be wrong before the run is looked at before the run, several mistakes at a time.
#include "simulator/run_command.h"

#include "assembler/assemble.h"
#include "assembler/standard_input.h"
#include "isa/error.h"
#include "isa/file_io.h"
#include "isa/issue_text.h"
#include "isa/machine_load.h"
#include "isa/output_files.h"
#include "isa/suggest.h"
#include "runtime/errors.h"
#include "simulator/argument.h"
#include "simulator/argument_files.h"
#include "simulator/kernel_run.h"
#include "simulator/npy.h"
#include "simulator/progress_line.h"
#include "simulator/report/reports.h"
#include "simulator/run_report.h"
#include "simulator/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <sys/ioctl.h>
#include <unistd.h>

namespace pto::sim {
namespace {

using isa::exit_status::kFailed;
using isa::exit_status::kGood;
using isa::exit_status::kUsage;

/// Of the terminal that results go to, else 100.
unsigned terminal_width() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
      size.ws_col >= 40) {
    return size.ws_col;
  }
  return 100;
}

class SimCommand {
public:
  SimCommand(const SimOptions& options, isa::ProgramState& state)
      : options_(options), state_(state) {}

  int run() {
    int status = load();
    if (status == kGood) {
      status = bind();
    }
    if (status == kGood) {
      status = check_files();
    }
    if (status == kGood) {
      status = read_expected();
    }
    if (!options_.is_json) {
      show_diagnostics(); // warnings should not wait for a long run
    }
    if (status == kGood) {
      status = options_.is_json ? launch_for_json() : launch();
    }
    show_diagnostics();
    return status;
  }

private:
  /// A message without a place in the sources, shown before the run.
  void complain(const std::string& message) { diags_.error({}, message); }
  /// The same later on.
  void complain_late(const std::string& message) {
    if (options_.is_json) {
      complain(message);
    } else {
      isa::print_error(state_, message);
    }
  }

  /// What has come so far, once.
  void show_diagnostics() {
    if (diags_.all().empty()) {
      return;
    }
    if (options_.is_json) {
      fmt::print(stderr, "{}\n", isa::render_json(diags_));
    } else {
      isa::RenderOptions render;
      render.color = isa::use_color(options_.color, stderr);
      fmt::print(stderr, "{}", isa::render(diags_, render));
    }
    diags_ = isa::Diagnostics();
  }

  int load() {
    std::string error;
    if (!options_.schedule.empty() && !parse_schedule(options_.schedule, error)) {
      complain(error);
      return kUsage;
    }
    std::optional<isa::Object> loaded = load_file();
    if (!loaded) {
      return kFailed;
    }
    const auto object = std::make_shared<const isa::Object>(std::move(*loaded));
    program_ = Program::find(object, options_.kernel, error);
    if (!program_) {
      complain(error);
      return kUsage;
    }
    const int status = load_profiles(object->machine);
    return status == kGood ? check_latencies() : status;
  }

  /// Insns whose latency a profile does not know: a warning that names them, an error if strict.
  int check_latencies() {
    if (options_.is_functional || !options_.schedule.empty()) {
      return kGood;
    }
    for (const isa::MachineProfile& profile : profiles_) {
      const ProgramTiming timing(program_->object(), profile);
      for (const std::string& key : timing.missing_keys()) {
        const std::string message =
            fmt::format("profile {} has no latency for {}", profile.name, key);
        const std::string advice =
            fmt::format("add latency.{} to the profile, or --set latency.{}.latency=N", key, key);
        if (options_.is_strict) {
          diags_.error({}, message).advise(advice);
        } else if (!options_.is_quiet) {
          diags_
              .warning("missing-latency",
                       {},
                       fmt::format(
                           "{}: {} cycles are assumed", message, profile.fallback_latency_cycles))
              .advise(advice);
        }
      }
    }
    return diags_.has_errors() ? kFailed : kGood;
  }

  std::optional<isa::Object> load_file() {
    static constexpr std::string_view kStdinName = "<stdin>";
    as::AssembleOptions assemble;
    assemble.run_lints = options_.is_verbose; // ptoas gives the warnings otherwise
    assemble.preprocess.include_dirs = options_.include_dirs;
    assemble.preprocess.defines = options_.defines;
    assemble.preprocess.read_file = [this](const std::string& path, std::string& error) {
      if (path == kStdinName) {
        return as::read_standard_input(error);
      }
      inputs_.push_back({path == options_.file ? "the program" : "the included file", path});
      return as::read_text_file(path, error);
    };
    return as::load_program(
        options_.file == "-" ? std::string(kStdinName) : options_.file, assemble, diags_);
  }

  int load_profiles(const std::string& machine_of_file) {
    std::vector<std::string> names = options_.profiles;
    if (names.empty()) {
      names.push_back(machine_of_file.empty() ? "reference" : machine_of_file);
    }
    isa::ProfileIssues issues;
    for (const std::string& name : names) {
      if (auto profile = isa::load_machine(name, options_.overrides, issues)) {
        profiles_.push_back(std::move(*profile));
      }
    }
    isa::report_issues(issues, diags_);
    return issues.empty() ? kGood : isa::is_wrong_usage(issues) ? kUsage : kFailed;
  }

  int bind() {
    BoundArguments bound = bind_arguments(options_.args, program_->kernel(), diags_);
    int status = bound.status == ArgumentStatus::kGood    ? kGood
                 : bound.status == ArgumentStatus::kUsage ? kUsage
                                                          : kFailed;
    arguments_ = std::move(bound.arguments);
    for (const NamedFile& out : options_.outs) {
      status = std::max(status, check_array_name("--out", out.name));
    }
    for (const NamedFile& expect : options_.expects) {
      status = std::max(status, check_array_name("--expect", expect.name));
    }
    for (const PrintRequest& request : options_.prints) {
      status = std::max(status, check_array_name("--print", request.name));
    }
    return status;
  }

  /// No file that is written may be one that is read, or written twice.
  int check_files() {
    for (const std::string& path : argument_files(options_.args)) {
      inputs_.push_back({"--arg", path});
    }
    for (const std::string& profile : options_.profiles) {
      inputs_.push_back({"--profile", profile});
    }
    for (const NamedFile& expect : options_.expects) {
      inputs_.push_back({"--expect", expect.path});
    }
    if (const size_t colon = options_.device.find(':'); colon != std::string::npos) {
      inputs_.push_back({"--device", options_.device.substr(colon + 1)});
    }
    std::vector<isa::OptionFile> outputs;
    for (const NamedFile& out : options_.outs) {
      outputs.push_back({"--out", out.path});
    }
    outputs.push_back({"--timeline-out", options_.reports.timeline_file});
    outputs.push_back({"--trace", options_.reports.trace_file});
    outputs.push_back({"--report", options_.reports.report_file});
    const std::string same = isa::find_overwritten_file(inputs_, outputs);
    if (same.empty()) {
      return kGood;
    }
    complain(same);
    return kUsage;
  }

  int check_array_name(std::string_view option, const std::string& name) {
    std::vector<std::string_view> pointers;
    for (const isa::Param& param : program_->kernel().params) {
      if (param.is_pointer) {
        pointers.push_back(param.name);
      }
    }
    if (std::find(pointers.begin(), pointers.end(), name) != pointers.end()) {
      return kGood;
    }
    diags_
        .error({},
               fmt::format("{}: kernel '{}' has no pointer parameter '{}'{}",
                           option,
                           program_->kernel().name,
                           name,
                           isa::did_you_mean(name, pointers)))
        .expect(pointers.empty() ? std::string("nothing: the kernel has no pointer parameter")
                                 : fmt::format("one of {}", fmt::join(pointers, ", ")));
    return kUsage;
  }

  [[nodiscard]] size_t index_of(const std::string& name) const {
    size_t index = 0;
    while (arguments_[index].param.name != name) {
      ++index;
    }
    return index;
  }

  /// Files of --expect, before the run: a missing one should not cost a long simulation.
  int read_expected() {
    int status = kGood;
    for (const NamedFile& expect : options_.expects) {
      std::string error;
      std::optional<HostArray> array;
      if (expect.path.ends_with(".npy")) {
        std::optional<NpyArray> npy = read_npy(expect.path, error);
        if (npy) {
          array = HostArray{element_type(npy->type), std::move(npy->shape), std::move(npy->data)};
        }
      } else {
        std::optional<std::vector<std::byte>> bytes = isa::read_file(expect.path, error);
        if (bytes) {
          const uint64_t size = bytes->size();
          array = HostArray{std::nullopt, {size}, std::move(*bytes)};
        }
      }
      if (!array) {
        complain(fmt::format("--expect {}: {}", expect.name, error));
        status = kFailed;
        continue;
      }
      expected_.push_back(std::move(*array));
    }
    return status;
  }

  /// With the errors of the runtime among the other messages.
  int launch_for_json() {
    try {
      return launch();
    } catch (const Error& error) {
      complain(error.what());
      return kFailed;
    }
  }

  int launch() {
    report_.options = &options_;
    report_.program = program_.get();
    report_.arguments = &arguments_;
    const std::atomic<bool>& interrupt = catch_interrupt();
    try {
      if (!options_.device.empty()) {
        report_.runs.push_back(run_on_device(options_, program_, arguments_, interrupt));
        profiles_.clear();
      }
      for (const isa::MachineProfile& profile : profiles_) {
        const bool records = report_.runs.empty() && options_.reports.wants_timeline();
        report_.runs.push_back(
            run_kernel(options_, program_, arguments_, profile, interrupt, records));
        if (!report_.runs.back().is_completed()) {
          break;
        }
      }
      if (options_.schedule_fuzz != 0 && last_run().result.status != RunStatus::kInterrupted) {
        report_.fuzz =
            fuzz_schedules(options_, program_, arguments_, report_.runs.front(), interrupt);
      }
    } catch (const LaunchError& error) {
      complain(error.what());
      const bool is_usage =
          error.kind() == LaunchErrorKind::kBlockSize || error.kind() == LaunchErrorKind::kGridSize;
      return is_usage ? kUsage : kFailed;
    } catch (const rt::UnknownDeviceError& error) {
      complain_late(error.what());
      return kUsage;
    }
    compare_profiles();
    bool is_written = write_outputs();
    is_written = make_reports() && is_written;
    compare_expected();
    const bool is_shown = show_report();
    return is_written && is_shown ? exit_status() : kFailed;
  }

  [[nodiscard]] const KernelRun& last_run() const { return report_.runs.back(); }

  /// Timing must not change results: a program whose arrays differ between profiles has a race.
  void compare_profiles() {
    const KernelRun& first = report_.runs.front();
    for (const KernelRun& run : report_.runs) {
      for (size_t i = 0; i < arguments_.size() && run.is_completed(); ++i) {
        if (run.arrays[i].data != first.arrays[i].data) {
          report_.disagreements.push_back(
              fmt::format("{} differs between the profiles {} and {}: the kernel has a race or "
                          "reads %clock",
                          arguments_[i].param.name,
                          first.profile.name,
                          run.profile.name));
        }
      }
    }
  }

  bool write_outputs() {
    bool is_good = true;
    for (const NamedFile& out : options_.outs) {
      const HostArray& array = report_.runs.front().arrays[index_of(out.name)];
      const ElementType type = array.element.value_or(ElementType{ElementClass::kUnsigned, 1});
      std::string error;
      const bool is_written =
          out.path.ends_with(".npy")
              ? write_npy(out.path, npy_type(type), array.shape, array.data, error)
              : isa::write_file_atomically(out.path, array.data, error);
      if (is_written) {
        report_.written.push_back({out, to_string(type), array.shape});
      } else {
        complain_late(fmt::format("--out {}: {}", out.name, error));
        is_good = false;
      }
    }
    return is_good;
  }

  /// --timeline, --report and the like; also of a run that stopped early.
  bool make_reports() {
    const ReportRequests& wanted = options_.reports;
    KernelRun& run = report_.runs.front();
    if (!wanted.is_any() || !run.timed) {
      return true;
    }
    ReportOptions report_options;
    report_options.grid = options_.grid;
    report_options.block = options_.block;
    report_options.sources = read_sources(*program_);
    run.timed->run.status = run.result.status;
    run.timed->run.blocks_done = run.result.blocks_done;
    const TimingReport report =
        make_timing_report(*run.timed, *program_, run.profile, report_options);
    if (wanted.timeline_rows) {
      GanttOptions gantt;
      gantt.max_rows = *wanted.timeline_rows;
      gantt.width = terminal_width();
      report_text_ += "\n" + timeline_text(report, gantt);
    }
    if (wanted.stalls) {
      report_text_ += "\n" + stalls_text(report) + "\n" + bubbles_text(report);
    }
    if (wanted.counters) {
      report_text_ += "\n" + counters_text(report);
    }
    bool is_good = true;
    const auto write = [&](const char* option, const std::string& path, auto make) {
      if (path.empty()) {
        return;
      }
      const std::string text = make();
      std::string error;
      if (isa::write_file_atomically(path, std::as_bytes(std::span(text)), error)) {
        report_.report_files.push_back(path);
      } else {
        complain_late(fmt::format("{}: {}", option, error));
        is_good = false;
      }
    };
    write("--timeline-out", wanted.timeline_file, [&] {
      return wanted.timeline_file.ends_with(".csv") ? timeline_csv(report) : timeline_json(report);
    });
    write("--trace", wanted.trace_file, [&] { return trace_json(report); });
    write("--report", wanted.report_file, [&] {
      return wanted.report_file.ends_with(".html") ? html_report(report) : run_json(report);
    });
    return is_good;
  }

  void compare_expected() {
    if (!last_run().is_completed()) {
      return;
    }
    for (size_t i = 0; i < options_.expects.size(); ++i) {
      const NamedFile& file = options_.expects[i];
      const HostArray& got = report_.runs.front().arrays[index_of(file.name)];
      ExpectOutcome outcome{file, {}, {}};
      std::string error;
      outcome.comparison = compare_arrays(got, expected_[i], options_.tolerance, error);
      if (!outcome.comparison) {
        outcome.text =
            fmt::format("{} cannot be compared with {}: {}\n", file.name, file.path, error);
      } else if (outcome.comparison->is_equal()) {
        outcome.text =
            describe_agreement(file.name, file.path, *outcome.comparison, options_.tolerance) +
            "\n";
      } else {
        outcome.text = describe_difference(
            file.name, *outcome.comparison, got, expected_[i], options_.tolerance);
      }
      report_.expects.push_back(std::move(outcome));
    }
  }

  /// False if nobody can read it.
  bool show_report() {
    if (options_.is_json) {
      const std::string text = report_json(report_);
      std::string error;
      const bool is_written = isa::write_output(std::as_bytes(std::span(text)), error);
      if (!is_written) {
        state_.has_reported_lost_output = true;
        complain(error);
      }
      return is_written;
    }
    show_text();
    return true;
  }

  void show_text() {
    const KernelRun& first = report_.runs.front();
    for (const PrintLine& line : first.result.prints) {
      fmt::print("{}\n", line.text);
    }
    if (first.result.prints_truncated) {
      fmt::print(stderr, "ptosim: only the first {} lines of print are shown\n", kMaxPrintLines);
    }
    for (const PrintRequest& request : options_.prints) {
      fmt::print("{}",
                 array_text(request.name, first.arrays[index_of(request.name)], request.count));
    }
    if (!options_.is_quiet) {
      const bool is_table = report_.runs.size() > 1 && last_run().is_completed();
      fmt::print("{}", is_table ? comparison_table(report_) : summary_text(report_));
      for (const WrittenFile& written : report_.written) {
        fmt::print("{}: {}{} written to {}{}\n",
                   written.file.name,
                   written.type,
                   shape_to_string(written.shape),
                   written.file.path,
                   last_run().is_completed() ? "" : " as it was when the run stopped");
      }
      for (const std::string& path : report_.report_files) {
        fmt::print("report written to {}\n", path);
      }
    }
    fmt::print("{}", report_text_);
    isa::flush_output();
    fmt::print(stderr, "{}", stop_text(report_, last_run()));
    fmt::print(stderr, "{}", findings_text(report_, report_.runs.front()));
    show_checks();
  }

  void show_checks() {
    for (const ExpectOutcome& outcome : report_.expects) {
      if (!outcome.is_good()) {
        fmt::print(stderr, "{}", outcome.text);
      } else if (!options_.is_quiet) {
        fmt::print("{}", outcome.text);
      }
    }
    if (!options_.expects.empty() && report_.expects.empty()) {
      fmt::print(stderr, "ptosim: nothing was compared, since the run did not complete\n");
    }
    if (report_.fuzz && report_.fuzz->difference) {
      fmt::print(stderr, "ptosim: {}", describe(*report_.fuzz, *program_));
    } else if (report_.fuzz && !options_.is_quiet) {
      fmt::print("{}", describe(*report_.fuzz, *program_));
    }
    for (const std::string& disagreement : report_.disagreements) {
      fmt::print(stderr, "ptosim: error: {}\n", disagreement);
    }
  }

  [[nodiscard]] int exit_status() const {
    if (last_run().result.status == RunStatus::kInterrupted ||
        (report_.fuzz && report_.fuzz->is_interrupted)) {
      return isa::exit_status::kInterrupted;
    }
    const bool is_good =
        last_run().is_completed() && report_.disagreements.empty() &&
        !(report_.fuzz && report_.fuzz->difference) && report_.runs.front().findings.empty() &&
        std::all_of(report_.expects.begin(),
                    report_.expects.end(),
                    [](const ExpectOutcome& outcome) { return outcome.is_good(); });
    return is_good ? kGood : kFailed;
  }

  const SimOptions& options_;
  isa::ProgramState& state_;
  isa::Diagnostics diags_;
  std::vector<isa::OptionFile> inputs_; // files that were read
  std::shared_ptr<const Program> program_;
  std::vector<isa::MachineProfile> profiles_;
  std::vector<Argument> arguments_;
  std::vector<HostArray> expected_; // one an --expect
  RunReport report_;
  std::string report_text_; // of --timeline, --stalls, --counters
};

} // namespace

int run_command(const SimOptions& options, isa::ProgramState& state) {
  return SimCommand(options, state).run();
}

} // namespace pto::sim
