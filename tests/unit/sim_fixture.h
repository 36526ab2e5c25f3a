// SPDX-License-Identifier: Apache-2.0
// A kernel from text, buffers and a launch in a few lines, for tests of the simulator.
#pragma once

#include "assembler/assemble.h"
#include "isa/diag.h"
#include "isa/machine.h"
#include "simulator/block.h"
#include "simulator/functional.h"
#include "simulator/launch.h"
#include "simulator/schedule.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace pto::sim {

inline isa::MachineProfile shipped_profile(std::string_view name) {
  isa::ProfileIssues issues;
  auto profile = isa::load_machine(name, issues);
  REQUIRE_MESSAGE(profile.has_value(), isa::to_string(issues));
  return *profile;
}

inline std::shared_ptr<const Program> program_of(std::string text, std::string_view kernel = {}) {
  isa::Diagnostics diagnostics;
  auto object = as::assemble_text("test.pto", std::move(text), {.run_lints = false}, diagnostics);
  REQUIRE_MESSAGE(object.has_value(), isa::render(diagnostics));
  std::string error;
  auto program =
      Program::find(std::make_shared<const isa::Object>(std::move(*object)), kernel, error);
  REQUIRE_MESSAGE(program != nullptr, error);
  return program;
}

/// A machine and one kernel; run() launches it with buffers and scalars given in order.
struct SimFixture {
  explicit SimFixture(std::string text,
                      std::string_view machine_name = "reference",
                      std::string_view kernel = {})
      : machine(shipped_profile(machine_name)), program(program_of(std::move(text), kernel)) {}

  /// A buffer of words; its address becomes the next argument.
  uint64_t words(const std::vector<uint32_t>& values, const std::string& name = "buffer") {
    const uint64_t base = machine.hbm.alloc(values.size() * 4, name);
    REQUIRE(machine.hbm.write(
        base, {reinterpret_cast<const uint8_t*>(values.data()), values.size() * 4}));
    args.push_back({.bits = base});
    return base;
  }
  void scalar(uint64_t bits) { args.push_back({.bits = bits}); }
  std::vector<uint32_t> read(uint64_t base) const {
    std::vector<uint32_t> values(machine.hbm.find_base(base)->size_bytes / 4);
    REQUIRE(machine.hbm.read(base, {reinterpret_cast<uint8_t*>(values.data()), values.size() * 4}));
    return values;
  }
  std::unique_ptr<Launch> launch(Dim3 grid, Dim3 block) {
    return std::make_unique<Launch>(
        machine, program, LaunchConfig{.grid = grid, .block = block, .args = args});
  }
  RunResult run(Dim3 grid, Dim3 block, const RunOptions& options = {}) {
    return run_functional(*launch(grid, block), options);
  }

  Machine machine;
  std::shared_ptr<const Program> program;
  std::vector<LaunchArg> args;
};

/// What a run leaves behind, whoever executed it.
struct RunOutcome {
  RunStatus status = RunStatus::kCompleted;
  std::string fault;
  std::vector<uint32_t> memory; // of all buffers
  uint64_t warp_insns = 0;
  uint64_t lane_insns = 0;
  uint64_t blocks_done = 0;
  bool operator==(const RunOutcome&) const = default;
};

inline RunOutcome outcome_of(const SimFixture& sim, const RunResult& result) {
  RunOutcome outcome{.status = result.status,
                     .fault = result.fault ? format_fault(*result.fault, *sim.program) : "",
                     .memory = {},
                     .warp_insns = result.counts.warp_insns,
                     .lane_insns = result.counts.lane_insns,
                     .blocks_done = result.blocks_done};
  for (const Allocation& allocation : sim.machine.hbm.live()) {
    const std::vector<uint32_t> words = sim.read(allocation.base);
    outcome.memory.insert(outcome.memory.end(), words.begin(), words.end());
  }
  return outcome;
}

} // namespace pto::sim
