// SPDX-License-Identifier: Apache-2.0
// From options and arguments to a finished launch.
#include "simulator/kernel_run.h"

#include "simulator/checks/checks.h"
#include "simulator/functional.h"
#include "simulator/launch_setup.h"
#include "simulator/progress_line.h"
#include "simulator/sampled.h"
#include "simulator/schedule.h"

#include <fmt/format.h>

#include <unistd.h>

namespace pto::sim {
namespace {

std::vector<HostArray> read_arrays(const std::vector<Argument>& arguments,
                                   const std::vector<LaunchArg>& placed,
                                   const Hbm& hbm) {
  std::vector<HostArray> result;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const HostArray& before = arguments[i].array;
    HostArray after{before.element, before.shape, std::vector<std::byte>(before.data.size())};
    if (!after.data.empty()) {
      PTO_CHECK(hbm.read(placed[i].bits,
                         {reinterpret_cast<uint8_t*>(after.data.data()), after.data.size()}));
    }
    result.push_back(std::move(after));
  }
  return result;
}

} // namespace

KernelRun run_kernel(const SimOptions& options,
                     std::shared_ptr<const Program> program,
                     const std::vector<Argument>& arguments,
                     const isa::MachineProfile& profile,
                     const std::atomic<bool>& interrupt,
                     bool records_timeline) {
  KernelRun run;
  run.profile = profile;
  Machine machine(profile);
  LaunchConfig config;
  config.grid = options.grid;
  config.block = options.block;
  config.args = place_arguments(arguments, machine.hbm);
  config.dynamic_l1_bytes = options.dynamic_l1_bytes;
  Launch launch(machine, std::move(program), config);
  if (options.is_cache_incoherent) {
    launch.use_incoherent_caches();
  }
  Checks checks(options.checks);
  checks.attach(launch);
  ProgressLine line(!options.is_quiet && !options.is_json && ::isatty(STDERR_FILENO) == 1);
  if (options.is_functional || !options.schedule.empty()) {
    RunOptions run_options;
    run_options.max_insns = options.max_insns;
    run_options.interrupt = &interrupt;
    run_options.host_threads = options.threads;
    run_options.progress = [&](const Progress& progress) { line.update(progress, 0); };
    std::string error;
    run.result = options.is_functional
                     ? run_functional(launch, run_options)
                     : run_scheduled(launch, *parse_schedule(options.schedule, error), run_options);
  } else {
    TimedOptions timed_options;
    timed_options.timing.max_cycles = options.max_cycles;
    timed_options.timing.record_timeline = records_timeline;
    timed_options.timing.timeline_limits = options.reports.limits;
    timed_options.max_insns = options.max_insns;
    timed_options.interrupt = &interrupt;
    timed_options.progress = [&](const Progress& progress, uint64_t cycle) {
      line.update(progress, cycle);
    };
    SharedMemory shared(machine.profile);
    run.timed = options.sample_waves == 0
                    ? run_timed(launch, shared, timed_options)
                    : run_sampled(launch, shared, timed_options, options.sample_waves);
    run.result = std::move(run.timed->run);
  }
  checks.add_result(launch, run.result);
  run.findings = checks.findings().list();
  run.findings_dropped = checks.findings().dropped();
  run.arrays = read_arrays(arguments, config.args, machine.hbm);
  return run;
}

} // namespace pto::sim
