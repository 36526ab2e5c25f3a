// SPDX-License-Identifier: Apache-2.0
// speed_pto WORKLOAD MODE [seconds] [small]: one JSON line with the time of a launch in the
// simulator, reading the program and filling memory left out.
#include "assembler/assemble.h"
#include "isa/diag.h"
#include "isa/host_level.h"
#include "isa/machine.h"
#include "simulator/block.h"
#include "simulator/checks/checks.h"
#include "simulator/functional.h"
#include "simulator/timed.h"
#include "workload.h"

#include <fmt/format.h>

#include <cstdlib>

namespace pto::bench {
namespace {

/// What a debugger with a history does: a mark of hbm and copies of the resident blocks now and
/// then, so that any earlier state can be had again.
void run_with_history(sim::Launch& launch, sim::Machine& machine) {
  constexpr uint64_t kInsnsPerMark = 1 << 16;
  constexpr uint64_t kMarksKept = 64;
  sim::HbmHistory history(machine.hbm);
  std::vector<sim::BlockState> states;
  while (std::unique_ptr<sim::BlockRun> block = launch.next_block(0)) {
    sim::BlockStop stop = sim::BlockStop::kBudget;
    while (stop == sim::BlockStop::kBudget) {
      stop = block->run(kInsnsPerMark);
      if (stop == sim::BlockStop::kBudget || launch.blocks_done() % 64 == 0) {
        const sim::HbmHistory::Mark mark = history.mark();
        states.push_back(block->state());
        if (states.size() > kMarksKept) {
          states.erase(states.begin());
          history.forget_before(mark - kMarksKept);
        }
      }
    }
    PTO_CHECK(stop == sim::BlockStop::kDone);
    launch.retire_block(std::move(block));
  }
}

int run(const std::string& name, const std::string& mode, double seconds, bool is_small) {
  const Workload work = make_workload(name, is_small);
  isa::Diagnostics diags;
  std::optional<isa::Object> object =
      as::load_program(PTO_SOURCE_DIR "/" + work.file, {.run_lints = false}, diags);
  isa::ProfileIssues issues;
  const std::optional<isa::MachineProfile> profile = isa::load_machine("reference", issues);
  std::string error;
  std::shared_ptr<const sim::Program> program;
  if (object.has_value()) {
    program = sim::Program::find(
        std::make_shared<const isa::Object>(std::move(*object)), work.kernel, error);
  }
  if (program == nullptr || !profile.has_value()) {
    fmt::print(stderr, "speed_pto: {} {}{}\n", work.file, error, isa::render(diags));
    return 1;
  }
  sim::Machine machine(*profile);
  sim::LaunchConfig config;
  config.grid = {work.grid[0], work.grid[1], work.grid[2]};
  config.block = {work.block[0], work.block[1], work.block[2]};
  std::vector<uint64_t> bases;
  for (const Array& array : work.arrays) {
    bases.push_back(machine.hbm.alloc(array.bytes.size(), array.name));
    PTO_CHECK(machine.hbm.write(bases.back(), array.bytes));
  }
  for (const Param& param : work.params) {
    const bool is_array = param.array >= 0;
    config.args.push_back(
        {.bits = is_array ? bases[static_cast<size_t>(param.array)] : param.bits});
  }
  uint64_t cycles = 0;
  sim::InsnCounts counts;
  const auto launch_once = [&] {
    sim::Launch launch(machine, program, config);
    sim::RunResult result;
    if (mode == "timed") {
      sim::SharedMemory shared(machine.profile);
      sim::TimedResult timed = sim::run_timed(launch, shared);
      cycles = timed.counters.cycles;
      result = std::move(timed.run);
    } else if (mode == "history") {
      run_with_history(launch, machine);
      result.counts = launch.ended_counts();
    } else {
      sim::CheckSet set;
      if (mode == "checks") {
        set = sim::CheckSet::all();
      }
      sim::Checks checks(set);
      checks.attach(launch);
      sim::RunOptions options;
      options.host_threads = mode == "functional2" ? 2 : 1;
      result = run_functional(launch, options);
      checks.add_result(launch, result);
      PTO_CHECK(checks.findings().list().empty());
    }
    PTO_CHECK(result.status == sim::RunStatus::kCompleted);
    counts = result.counts;
  };
  launch_once();
  Workload after = work;
  Array& output = after.arrays[work.output];
  PTO_CHECK(machine.hbm.read(bases[work.output], output.bytes));
  const double sum = after.checksum();
  const Timing timing = measure(launch_once, seconds, 3);
  print_result(work,
               timing,
               sum,
               fmt::format("\"host_level\": \"{}\", \"lane_insns\": {}, \"warp_insns\": {}, "
                           "\"cycles\": {}, ",
                           isa::name_of(isa::host_level()),
                           counts.lane_insns,
                           counts.warp_insns,
                           cycles));
  return 0;
}

} // namespace
} // namespace pto::bench

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  const bool is_small = args.size() > 3 && args[3] == "small";
  if (args.size() < 2 || pto::bench::make_workload(args[0], true).name.empty()) {
    fmt::print(stderr,
               "usage: speed_pto WORKLOAD MODE [SECONDS [small]]\nWORKLOAD: {}\n"
               "MODE: functional, functional2 (host threads), timed, checks, history\n",
               fmt::join(pto::bench::workload_names(), ", "));
    return 2;
  }
  return pto::bench::run(
      args[0], args[1], args.size() > 2 ? std::strtod(args[2].c_str(), nullptr) : 0.5, is_small);
}
