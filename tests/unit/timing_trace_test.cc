// SPDX-License-Identifier: Apache-2.0
// Kernels of examples/ under the timing model: results do not depend on time, and schedules keep to
// bounds that are computed here from the trace and the profile alone.
#include "assembler/assemble.h"
#include "isa/machine.h"
#include "isa/table.h"
#include "simulator/functional.h"
#include "simulator/timed.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>

using namespace pto;
using namespace pto::sim;

namespace {

enum class Fill : uint8_t {
  kSmall, // small floats that are small integers and bytes too
  kZeros,
  kIndex, // u32: i % 16
  kRows,  // u32: i * 8
};

struct Buffer {
  uint64_t size_bytes = 0;
  Fill fill = Fill::kSmall;
};

struct Kernel {
  const char* file;
  const char* name;
  Dim3 grid;
  Dim3 block;
  std::vector<Buffer> buffers; // pointers come first in all of them
  std::vector<uint64_t> scalars;
};

constexpr uint64_t kOne = 0x3F800000; // 1.0 as f32

const std::vector<Kernel>& kernels() {
  static const std::vector<Kernel> list = {
      {"vector_add.pto", "vector_add", {5}, {256}, {{5120}, {5120}, {5120}}, {1200}},
      {"saxpy/saxpy.pto", "saxpy", {3}, {96}, {{8192}, {8192}}, {kOne, 2000}},
      {"saxpy/saxpy.pto", "saxpy_x4", {2}, {128}, {{8192}, {8192}}, {kOne, 2000}},
      {"intdiv/intdiv.pto", "div_rem", {2}, {256}, {{2048}, {2048}, {2048}}, {7, 500}},
      {"half/add_f16.pto", "add_f16", {2}, {256}, {{1024}, {1024}, {1024}}, {500}},
      {"transpose/transpose.pto", "transpose_naive", {3, 2}, {32, 8}, {{24576}, {24576}}, {64, 96}},
      {"transpose/transpose.pto",
       "transpose_shared",
       {3, 2},
       {32, 8},
       {{24576}, {24576}},
       {64, 96}},
      {"transpose/transpose.pto",
       "transpose_padded",
       {3, 2},
       {32, 8},
       {{24576}, {24576}},
       {64, 96}},
      {"transpose/transpose_async.pto",
       "transpose_async",
       {2},
       {32, 8},
       {{65536}, {65536}},
       {128, 128}},
      {"reduction/block_sum.pto", "block_sum", {4}, {256}, {{16384}, {64}}, {4000}},
      {"reduction/warp_sum.pto", "warp_sum_shfl", {2}, {128}, {{8192}, {64}}, {8, 200}},
      {"histogram/histogram.pto", "histogram_shared", {2}, {256}, {{4096}, {1024}}, {4000}},
      {"histogram/histogram.pto", "histogram_global", {2}, {128}, {{1024}, {1024}}, {1000}},
      {"scan/block_scan.pto", "block_scan", {1}, {256}, {{1024}, {1024}}, {256}},
      {"gather/gather.pto",
       "gather_coalesced",
       {2},
       {128},
       {{16 * 256}, {40 * 4, Fill::kIndex}, {40 * 256}},
       {40, 64}},
      {"spmv/spmv.pto",
       "spmv_warp",
       {2},
       {128},
       {{4096}, {4096, Fill::kIndex}, {129 * 4, Fill::kRows}, {64}, {512}},
       {128}},
      {"softmax/softmax.pto", "softmax_block", {3}, {128}, {{3600}, {3600}}, {3, 300}},
      {"matmul/matmul_lanes.pto",
       "matmul_lanes",
       {1},
       {256},
       {{64 * 32 * 4}, {32 * 64 * 4}, {64 * 64 * 4}},
       {64, 64, 32}},
      {"matmul/tile_f32.pto",
       "tile_serial_f32",
       {1},
       {32},
       {{64 * 256 * 4}, {256 * 64 * 4}, {64 * 64 * 4, Fill::kZeros}},
       {64, 64, 256}},
      {"matmul/tile_f32.pto",
       "tile_double_f32",
       {1},
       {32},
       {{64 * 256 * 4}, {256 * 64 * 4}, {64 * 64 * 4, Fill::kZeros}},
       {64, 64, 256}},
      {"matmul/matmul_mma.pto",
       "matmul_mma_f16",
       {2, 1},
       {32},
       {{64 * 96 * 2}, {96 * 128 * 2}, {64 * 128 * 4, Fill::kZeros}},
       {64, 128, 96}},
  };
  return list;
}

const Kernel& kernel_named(std::string_view name) {
  const auto found = std::find_if(kernels().begin(), kernels().end(), [&](const Kernel& kernel) {
    return kernel.name == name;
  });
  REQUIRE(found != kernels().end());
  return *found;
}

isa::MachineProfile machine(const std::string& name, const std::string& override = {}) {
  isa::ProfileIssues issues;
  isa::MachineProfile profile = *isa::load_machine(name, issues);
  if (!override.empty()) {
    REQUIRE(isa::apply_override(profile, override, issues));
  }
  return profile;
}

std::shared_ptr<const Program> load(const Kernel& kernel) {
  static std::map<std::string, std::shared_ptr<const isa::Object>> objects;
  std::shared_ptr<const isa::Object>& object = objects[kernel.file];
  if (!object) {
    isa::Diagnostics diags;
    as::AssembleOptions options;
    options.preprocess.read_file = as::read_text_file;
    auto loaded =
        as::load_program(std::string(PTO_SOURCE_DIR "/examples/") + kernel.file, options, diags);
    INFO(isa::render(diags));
    REQUIRE(loaded.has_value());
    object = std::make_shared<const isa::Object>(std::move(*loaded));
  }
  std::string error;
  auto program = Program::find(object, kernel.name, error);
  INFO(error);
  REQUIRE(program);
  return program;
}

std::vector<uint8_t> contents(const Buffer& buffer) {
  std::vector<uint8_t> bytes(buffer.size_bytes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const size_t word = i / 4;
    switch (buffer.fill) {
    case Fill::kSmall:
      bytes[i] = i % 4 == 3 ? 0x3E : static_cast<uint8_t>(i * 7 % 61);
      break;
    case Fill::kZeros:
      break;
    case Fill::kIndex:
      bytes[i] = i % 4 == 0 ? static_cast<uint8_t>(word % 16) : 0;
      break;
    case Fill::kRows:
      bytes[i] = i % 4 < 2 ? static_cast<uint8_t>(word * 8 >> i % 4 * 8) : 0;
      break;
    }
  }
  return bytes;
}

// Device, launch and the memory afterwards.
struct Prepared {
  Machine device;
  std::shared_ptr<const Program> program;
  std::unique_ptr<Launch> launch;

  Prepared(const Kernel& kernel, const isa::MachineProfile& profile)
      : device(profile), program(load(kernel)) {
    LaunchConfig config;
    config.grid = kernel.grid;
    config.block = kernel.block;
    for (const Buffer& buffer : kernel.buffers) {
      const uint64_t base = device.hbm.alloc(buffer.size_bytes, "buffer");
      REQUIRE(device.hbm.write(base, contents(buffer)));
      config.args.push_back({base, isa::Type::kNone, true});
    }
    for (const uint64_t scalar : kernel.scalars) {
      config.args.push_back({scalar, isa::Type::kNone, false});
    }
    launch = std::make_unique<Launch>(device, program, config);
  }

  std::vector<uint8_t> memory() const {
    std::vector<uint8_t> all;
    for (const Allocation& allocation : device.hbm.live()) {
      all.insert(all.end(), allocation.host, allocation.host + allocation.size_bytes);
    }
    return all;
  }
};

TimedResult run(const Kernel& kernel,
                const isa::MachineProfile& profile,
                std::vector<uint8_t>* memory = nullptr) {
  Prepared prepared(kernel, profile);
  SharedMemory shared(profile);
  TimedOptions options;
  options.timing.record_timeline = true;
  TimedResult result = run_timed(*prepared.launch, shared, options);
  INFO(kernel.name, " ", result.run.fault ? result.run.fault->message : "");
  REQUIRE(result.run.status == RunStatus::kCompleted);
  CHECK(result.missing_keys.empty());
  CHECK(result.timeline.dropped() == 0);
  if (memory != nullptr) {
    *memory = prepared.memory();
  }
  return result;
}

// The longest chain of dependent insns of one warp, from the trace: each insn starts after those
// before it in the warp (one a cycle) and after its operands, and takes its table latency.
uint64_t longest_chain(const Program& program,
                       const isa::MachineProfile& profile,
                       const std::vector<TimelineEntry>& entries) {
  struct Ready {
    std::array<uint64_t, kScoreCount> at{};
    uint64_t next = 0;
  };
  const ProgramTiming timing(program.object(), profile);
  std::map<std::pair<uint64_t, uint32_t>, Ready> warps;
  uint64_t longest = 0;
  for (const TimelineEntry& entry : entries) {
    const InsnTiming& insn = timing[entry.pc];
    for (uint32_t w = entry.first_warp; w <= entry.last_warp; ++w) {
      Ready& warp = warps[{entry.block, w}];
      uint64_t start = warp.next;
      for (const ScoreIndex index : insn.reads) {
        start = std::max(start, warp.at[index]);
      }
      const bool passes_over = insn.insn->desc->scope == isa::Scope::kBlock && w != 0;
      const auto latency = passes_over ? 1 : static_cast<uint64_t>(insn.latency_cycles);
      if (!passes_over) {
        for (const ScoreIndex index : insn.writes) {
          warp.at[index] = start + latency;
        }
      }
      warp.next = start + (insn.is_free ? 0 : 1);
      longest = std::max(longest, start + latency);
    }
  }
  return longest;
}

// Pipe cycles that the warp insns of each unit need on a core, spread over its pipes.
double busiest_unit(const Program& program,
                    const isa::MachineProfile& profile,
                    const std::vector<TimelineEntry>& entries) {
  const ProgramTiming timing(program.object(), profile);
  const std::array<uint32_t, isa::kUnitCount> pipes = {profile.units.s_pipes,
                                                       profile.units.v_pipes,
                                                       profile.units.x_pipes,
                                                       profile.units.m_pipes,
                                                       profile.units.d_pipes,
                                                       profile.units.c_pipes};
  std::map<std::pair<uint32_t, unsigned>, double> work;
  for (const TimelineEntry& entry : entries) {
    const InsnTiming& insn = timing[entry.pc];
    uint32_t warps = entry.last_warp - entry.first_warp + 1;
    if (insn.insn->desc->scope == isa::Scope::kBlock) {
      warps = entry.first_warp == 0 ? 1 : 0;
    }
    const bool is_copy = insn.insn->desc->has(isa::kAsync);
    work[{entry.core, entry.unit}] +=
        insn.is_free ? 0 : warps * (is_copy ? 1 : insn.interval_cycles) / pipes[entry.unit];
  }
  double busiest = 0;
  for (const auto& item : work) {
    busiest = std::max(busiest, item.second);
  }
  return busiest;
}

} // namespace

TEST_CASE("results are the same bytes under every profile and without timing") {
  for (const Kernel& kernel : kernels()) {
    INFO(kernel.name);
    Prepared functional(kernel, machine("reference"));
    REQUIRE(run_functional(*functional.launch).status == RunStatus::kCompleted);
    const std::vector<uint8_t> expected = functional.memory();
    for (const std::string& name : isa::shipped_machine_names()) {
      std::vector<uint8_t> memory;
      (void)run(kernel, machine(name), &memory);
      INFO(name);
      CHECK(memory == expected);
    }
  }
}

TEST_CASE("bounds of every schedule, from the trace alone") {
  for (const Kernel& kernel : kernels()) {
    const std::shared_ptr<const Program> program = load(kernel);
    for (const std::string& name : isa::shipped_machine_names()) {
      INFO(kernel.name, " ", name);
      const isa::MachineProfile profile = machine(name);
      const TimedResult result = run(kernel, profile);
      const TimedCounters& counters = result.counters;
      const std::vector<TimelineEntry>& entries = result.timeline.entries();
      // Issued and stalled cycles of a warp make its elapsed cycles.
      uint64_t issued = 0;
      for (const WarpCounters& warp : counters.warps) {
        CHECK(warp.issued_cycles + warp.stalls.total() == warp.elapsed_cycles);
        issued += warp.issued_cycles;
      }
      CHECK(issued == counters.issued_cycles);
      uint64_t issues = 0;
      StallCycles stalls;
      for (const PcCounters& pc : counters.by_pc) {
        issues += pc.issues;
        stalls.add(pc.stalls);
      }
      CHECK(issues == counters.warp_insns);
      CHECK(issues == result.run.counts.warp_insns);
      // What is charged to insns is what is charged to warps, but for the wait after the end.
      stalls[StallReason::kEmpty] = counters.stalls[StallReason::kEmpty];
      CHECK(stalls.cycles == counters.stalls.cycles);
      // No unit is busier than the time that passed.
      for (const CoreCounters& core : counters.cores) {
        for (const double busy : core.unit_busy_cycles) {
          CHECK(busy <= static_cast<double>(counters.cycles));
        }
        CHECK(core.busy_cycles <= counters.cycles);
      }
      // Entries lie in the run, in order, and results follow issues.
      uint64_t last = 0;
      for (const TimelineEntry& entry : entries) {
        CHECK(entry.issue_cycle >= last);
        CHECK(entry.stall_cycles <= entry.issue_cycle);
        CHECK(entry.done_cycle >= entry.issue_cycle);
        CHECK(entry.done_cycle <= counters.cycles);
        last = entry.issue_cycle;
      }
      // The total is not below the longest chain or the busiest unit; fused pairs shorten chains.
      if (profile.fusion.empty()) {
        CHECK(counters.cycles >= longest_chain(*program, profile, entries));
      }
      CHECK(static_cast<double>(counters.cycles) >=
            std::floor(busiest_unit(*program, profile, entries)));
    }
  }
}

TEST_CASE("a faster machine makes no kernel slower") {
  // Warps meet in another order when something gets faster, and the later one may lose more than
  // the earlier one wins. That much is allowed, and no more.
  constexpr double kSchedulingNoise = 0.03;
  const std::vector<std::pair<std::string, std::vector<std::string>>> machines = {
      {"ascend950",
       {"hbm.latency=350",
        "l2.latency=280",
        "hbm.bytes_per_cycle_total=2080",
        "l2.bytes_per_cycle=6200",
        "l2.writes_per_cycle=38",
        "latency.LOAD.latency=5",
        "latency.LOAD.interval=2",
        "latency.FMA.latency=2",
        "latency.MMA.latency=2",
        "l1.conflict_cycles=0",
        "l1.fill_cycles=1",
        "l1.store_cycles=1",
        "copy.bytes_per_cycle=256",
        "copy.start_latency=60",
        "sync.block_barrier=0",
        "atomic.l1=0.6",
        "fetch.miss_latency=0",
        "launch.block_start=0"}},
      {"reference",
       {"latency.LOAD.latency=2",
        "latency.FMA.latency=4",
        "latency.STORE.latency=1",
        "latency.MMA.latency=4",
        "latency.MUL.latency=1",
        "copy.bytes_per_cycle=256",
        "copy.start_latency=1"}}};
  double worst = 0;
  for (const auto& item : machines) {
    const std::string& name = item.first;
    for (const Kernel& kernel : kernels()) {
      const uint64_t base = run(kernel, machine(name)).counters.cycles;
      for (const std::string& figure : item.second) {
        const uint64_t cycles = run(kernel, machine(name, figure)).counters.cycles;
        const double slower = static_cast<double>(cycles) / static_cast<double>(base) - 1;
        worst = std::max(worst, slower);
        INFO(kernel.name, " on ", name, " with ", figure, ": ", base, " -> ", cycles);
        CHECK(slower <= kSchedulingNoise);
      }
    }
  }
  MESSAGE("slower by scheduling noise: at most ", 100 * worst, " %");
}

TEST_CASE("ten runs are alike to the cycle") {
  const Kernel& kernel = kernel_named("transpose_async");
  const TimedResult first = run(kernel, machine("ascend950"));
  for (int i = 0; i < 9; ++i) {
    const TimedResult again = run(kernel, machine("ascend950"));
    CHECK(again.counters.cycles == first.counters.cycles);
    CHECK(again.timeline.entries().size() == first.timeline.entries().size());
    CHECK(again.counters.stalls.cycles == first.counters.stalls.cycles);
  }
}

TEST_CASE("padding takes most bank conflicts away") {
  const isa::MachineProfile profile = machine("ascend950");
  const uint64_t plain =
      run(kernel_named("transpose_shared"), profile).counters.memory.bank_conflicts;
  const uint64_t padded =
      run(kernel_named("transpose_padded"), profile).counters.memory.bank_conflicts;
  INFO(plain, " -> ", padded);
  CHECK(padded * 10 < plain);
}

TEST_CASE("two buffers pay off where copies and multiplications take equally long") {
  // 256 cycles to copy two tiles of 16 KiB; the multiplication is made as long.
  const isa::MachineProfile balanced = machine("reference", "latency.MMA.latency=256");
  const uint64_t serial = run(kernel_named("tile_serial_f32"), balanced).counters.cycles;
  const uint64_t twofold = run(kernel_named("tile_double_f32"), balanced).counters.cycles;
  INFO(serial, " -> ", twofold);
  CHECK(static_cast<double>(twofold) <= 0.7 * static_cast<double>(serial));
}

TEST_CASE("every row of the instruction table has a latency in every profile") {
  for (const std::string& name : isa::shipped_machine_names()) {
    const isa::MachineProfile profile = machine(name);
    for (const isa::InsnDesc* desc : isa::all_insns()) {
      INFO(name, " ", desc->mnemonic);
      CHECK(profile.latency.find(desc->latency) != nullptr);
    }
  }
}
