// SPDX-License-Identifier: Apache-2.0
// checks_cost: one kernel without checks and with all of them: host time and host memory of each.
//
// Takes the options of ptosim. Times are computing time, the best of several runs on one host
// thread, of the run alone (no assembling, no arrays). Memory is what the checks allocate at most
// at a time, counted in operator new, against the bytes of the kernel's arrays and of the
// scratchpad of one block. Prints one JSON object.
#include "assembler/assemble.h"
#include "isa/machine.h"
#include "isa/run_program.h"
#include "simulator/argument.h"
#include "simulator/checks/checks.h"
#include "simulator/cli_options.h"
#include "simulator/functional.h"
#include "simulator/launch_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <new>

namespace {

size_t g_live_bytes = 0; // counted by the replaced operator new of this program
size_t g_peak_bytes = 0;
constexpr size_t kHeader = alignof(std::max_align_t);

} // namespace

void* operator new(size_t size) {
  void* raw = std::malloc(size + kHeader);
  if (raw == nullptr) {
    throw std::bad_alloc();
  }
  *static_cast<size_t*>(raw) = size;
  g_live_bytes += size;
  g_peak_bytes = std::max(g_peak_bytes, g_live_bytes);
  return static_cast<char*>(raw) + kHeader;
}
void operator delete(void* pointer) noexcept {
  if (pointer != nullptr) {
    void* raw = static_cast<char*>(pointer) - kHeader;
    g_live_bytes -= *static_cast<size_t*>(raw);
    std::free(raw);
  }
}
void operator delete(void* pointer, size_t) noexcept {
  operator delete(pointer);
}

namespace {

using namespace pto;

struct Kernel {
  std::shared_ptr<const sim::Program> program;
  isa::MachineProfile profile;
  std::vector<sim::Argument> arguments;
};

std::optional<Kernel> load(const sim::SimOptions& options, isa::Diagnostics& diags) {
  as::AssembleOptions assemble;
  assemble.run_lints = false;
  assemble.preprocess.include_dirs = options.include_dirs;
  std::optional<isa::Object> object = as::load_program(options.file, assemble, diags);
  if (!object) {
    return std::nullopt;
  }
  Kernel kernel;
  std::string error;
  kernel.program = sim::Program::find(
      std::make_shared<const isa::Object>(std::move(*object)), options.kernel, error);
  isa::ProfileIssues issues;
  const std::string name = options.profiles.empty() ? "reference" : options.profiles.front();
  std::optional<isa::MachineProfile> profile = isa::load_machine(name, issues);
  if (!kernel.program || !profile) {
    diags.error({}, kernel.program ? isa::to_string(issues) : error);
    return std::nullopt;
  }
  kernel.profile = std::move(*profile);
  sim::BoundArguments bound = sim::bind_arguments(options.args, kernel.program->kernel(), diags);
  if (bound.status != sim::ArgumentStatus::kGood) {
    return std::nullopt;
  }
  kernel.arguments = std::move(bound.arguments);
  return kernel;
}

struct Measured {
  double seconds = 0;
  size_t bytes = 0; // allocated in the run at most
};

/// Time that this process computed, so that others on the computer do not count.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Measured measure(const sim::SimOptions& options, const Kernel& kernel, sim::CheckSet set) {
  sim::Machine machine(kernel.profile);
  sim::LaunchConfig config{.grid = options.grid, .block = options.block};
  config.dynamic_l1_bytes = options.dynamic_l1_bytes;
  config.args = sim::place_arguments(kernel.arguments, machine.hbm);
  sim::Launch launch(machine, kernel.program, config);
  sim::Checks checks(set);
  checks.attach(launch);
  g_peak_bytes = g_live_bytes;
  const size_t bytes_before = g_live_bytes;
  const double begin = cpu_seconds();
  const sim::RunResult result = sim::run_functional(launch);
  const double seconds = cpu_seconds() - begin;
  if (result.status != sim::RunStatus::kCompleted) {
    fmt::print(stderr, "checks_cost: the run did not complete ({})\n", name(result.status));
    std::exit(1);
  }
  return {seconds, g_peak_bytes - bytes_before};
}

/// The best of runs that take a quarter of a second together, three at least.
Measured best(const sim::SimOptions& options, const Kernel& kernel, sim::CheckSet set) {
  Measured least = measure(options, kernel, set);
  double total = least.seconds;
  for (int i = 1; i < 200 && (i < 3 || total < 0.25); ++i) {
    const Measured again = measure(options, kernel, set);
    total += again.seconds;
    least.seconds = std::min(least.seconds, again.seconds);
  }
  return least;
}

} // namespace

int main(int argc, char** argv) {
  const sim::ParsedCommandLine command_line =
      sim::parse_command_line(argc, argv, isa::ProgramState{.name = "checks_cost"});
  if (!command_line.options) {
    return command_line.exit_status;
  }
  const sim::SimOptions& options = *command_line.options;
  isa::Diagnostics diags;
  const std::optional<Kernel> kernel = load(options, diags);
  if (!kernel) {
    fmt::print(stderr, "{}", isa::render(diags));
    return 1;
  }
  const sim::CheckSet set = options.checks.empty() ? sim::CheckSet::all() : options.checks;
  const Measured plain = best(options, *kernel, {});
  const Measured checked = best(options, *kernel, set);
  uint64_t simulated_bytes = kernel->profile.max_scratchpad_bytes();
  for (const sim::Argument& argument : kernel->arguments) {
    simulated_bytes += argument.array.data.size();
  }
  fmt::print("{{\"plain_seconds\": {:.6g}, \"checked_seconds\": {:.6g}, \"ratio\": {:.2f}, "
             "\"simulated_bytes\": {}, \"check_bytes\": {}, \"bytes_a_byte\": {:.2f}}}\n",
             plain.seconds,
             checked.seconds,
             checked.seconds / plain.seconds,
             simulated_bytes,
             checked.bytes - std::min(plain.bytes, checked.bytes),
             static_cast<double>(checked.bytes - std::min(plain.bytes, checked.bytes)) /
                 static_cast<double>(simulated_bytes));
  return 0;
}
