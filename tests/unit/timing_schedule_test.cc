// SPDX-License-Identifier: Apache-2.0
// Schedules of small programs, computed by hand from the figures of a profile. Each case writes the
// issue cycles down; every one also passes the invariants at the end of `run`.
#include "test_machine.h"
#include "timing_schedule.h"

#include <doctest/doctest.h>

using namespace pto::sim;
using namespace pto::sim::test;
using pto::isa::MachineProfile;
using pto::test::machine;

TEST_CASE("01 a dependent chain issues at each latency") {
  // FMA 8: 0, 8, 16; EXIT right after.
  Script s({op(kRows.fma, {r(0), r(9)}),
            op(kRows.fma, {r(1), r(0)}),
            op(kRows.fma, {r(2), r(1)}),
            op(kRows.exit, {})});
  const Result result = run(machine("reference"), s);
  CHECK(result.issues() == Cycles{0, 8, 16, 17});
  CHECK(result.counters.cycles == 24); // the last result
  CHECK(result.stalled(StallReason::kOperand) == 14);
  CHECK(result.stalled(StallReason::kEmpty) == 6);
}

TEST_CASE("02 independent insns issue every cycle") {
  Script s({op(kRows.fma, {r(0), r(9)}),
            op(kRows.fma, {r(1), r(9)}),
            op(kRows.fma, {r(2), r(9)}),
            op(kRows.exit, {})});
  const Result result = run(machine("reference"), s);
  CHECK(result.issues() == Cycles{0, 1, 2, 3});
  CHECK(result.counters.cycles == 10);
}

TEST_CASE("03 the first vector add: LOAD 4, FMA 8, STORE 3") {
  Script s({access(kRows.load, {r(1), hbm()}, 0, 4),
            access(kRows.load, {r(2), hbm()}, 4096, 4),
            op(kRows.fma, {r(3), r(1), r(2)}),
            access(kRows.store, {hbm(), r(3)}, 8192, 4),
            op(kRows.exit, {})});
  s.warps = 8;
  const Result result = run(machine("reference"), s);
  CHECK(result.issues() == Cycles{0, 1, 5, 13, 14});
  CHECK(result.counters.cycles == 16);
  REQUIRE(result.entries.size() == 5); // all eight warps together
  CHECK(result.entries[0].lanes() == "0-255");
  CHECK(result.entries[0].done_cycle == 4);
  CHECK(result.entries[2].done_cycle == 13);
  CHECK(result.entries[2].stall_cycles == 3);
  CHECK(result.entries[2].cause_pc == 1);
  CHECK(result.counters.memory.cache_misses == 16);
}

TEST_CASE("04 the same on the measured machine: LOAD 3, FMA 5, STORE 2") {
  Script s({access(kRows.load, {r(1), hbm()}, 0, 4),
            access(kRows.load, {r(2), hbm()}, 4096, 4),
            op(kRows.fma, {r(3), r(1), r(2)}),
            access(kRows.store, {hbm(), r(3)}, 8192, 4),
            op(kRows.exit, {})});
  const Result result = run(machine("reference-fused"), s);
  CHECK(result.issues() == Cycles{0, 1, 4, 9, 10});
  CHECK(result.counters.cycles == 11);
}

TEST_CASE("05 two warps on one scheduler hide each other's latency") {
  Script s({op(kRows.fma, {r(0), r(9)}), op(kRows.fma, {r(1), r(0)}), op(kRows.exit, {})});
  s.warps = 2;
  const MachineProfile m = machine(
      "reference", {"issue_warps_per_cycle=8", "warp_schedulers=1", "issue_warps_per_cycle=1"});
  const Result result = run(m, s);
  CHECK(result.issues(0) == Cycles{0, 8, 9});
  CHECK(result.issues(1) == Cycles{1, 10, 11}); // its operand is there at 9, but warp 0 exits then
  CHECK(result.counters.warps[1].stalls[StallReason::kIssueSlot] == 2);
  CHECK(result.counters.warps[1].stalls[StallReason::kOperand] == 7);
}

TEST_CASE("06 round robin takes turns") {
  Script s({op(kRows.alu, {r(0), r(9)}), op(kRows.alu, {r(1), r(9)}), op(kRows.exit, {})});
  s.warps = 2;
  const MachineProfile m = machine(
      "reference", {"warp_schedulers=1", "issue_warps_per_cycle=1", "warp_policy=round_robin"});
  const Result result = run(m, s);
  CHECK(result.issues(0) == Cycles{0, 2, 4});
  CHECK(result.issues(1) == Cycles{1, 3, 5});
}

TEST_CASE("07 oldest first lets the first warp run ahead") {
  Script s({op(kRows.alu, {r(0), r(9)}), op(kRows.alu, {r(1), r(9)}), op(kRows.exit, {})});
  s.warps = 2;
  const Result result =
      run(machine("reference", {"warp_schedulers=1", "issue_warps_per_cycle=1"}), s);
  CHECK(result.issues(0) == Cycles{0, 1, 2});
  CHECK(result.issues(1) == Cycles{3, 4, 5});
}

TEST_CASE("08 a unit with an interval of 4 takes a warp every 4 cycles") {
  Script s({op(kRows.exp, {r(0), r(9)}), op(kRows.exp, {r(1), r(9)}), op(kRows.exit, {})});
  const Result result = run(machine("reference", {"units.X=1", "latency.EXP.interval=4"}), s);
  CHECK(result.issues() == Cycles{0, 4, 5});
  CHECK(result.stalled(StallReason::kUnit) == 3);
  CHECK(result.counters.cores[0].unit_busy_cycles[2] == 8);
}

TEST_CASE("09 two pipes of a unit take two warps at once") {
  Script s({op(kRows.exp, {r(0), r(9)}), op(kRows.exit, {})});
  s.warps = 4;
  const Result result = run(machine("reference", {"units.X=2", "latency.EXP.interval=4"}), s);
  CHECK(result.issues(0)[0] == 0);
  CHECK(result.issues(1)[0] == 0);
  CHECK(result.issues(2)[0] == 4);
  CHECK(result.issues(3)[0] == 4);
}

TEST_CASE("10 a bank conflict of degree 8 takes 7 cycles longer") {
  Script s(
      {access(kRows.load, {r(0), l1()}, 0, 64), op(kRows.alu, {r(1), r(0)}), op(kRows.exit, {})});
  const MachineProfile m = machine("ascend950",
                                   {"launch.task=0",
                                    "launch.block_start=0",
                                    "fetch.miss_latency=0",
                                    "latency.LOAD.l1.latency=10",
                                    "latency.LOAD.l1.interval=1",
                                    "l1.conflict_cycles=1",
                                    "l1.bytes_per_cycle=0"});
  const Result result = run(m, s);
  CHECK(result.issues() == Cycles{0, 17, 18});
  CHECK(result.stalled(StallReason::kOperand) == 9);
  CHECK(result.stalled(StallReason::kBankConflict) == 7);
  CHECK(result.counters.memory.bank_conflicts == 7);
}

TEST_CASE("11 conflicting loads of two warps share the port") {
  Script s({access(kRows.load, {r(0), l1()}, 0, 64), op(kRows.exit, {})});
  s.warps = 2;
  const MachineProfile m = machine("ascend950",
                                   {"launch.task=0",
                                    "launch.block_start=0",
                                    "launch.warp_start=0",
                                    "fetch.miss_latency=0",
                                    "latency.LOAD.l1.interval=1",
                                    "l1.conflict_cycles=1",
                                    "l1.bytes_per_cycle=0"});
  const Result result = run(m, s);
  CHECK(result.issues(0)[0] == 0);
  CHECK(result.issues(1)[0] == 8);
  CHECK(result.stalled(StallReason::kUnit) == 8);
}

TEST_CASE("12 a miss costs the memory's latency, the second access hits") {
  Script s({access(kRows.load, {r(0), hbm()}, 0, 4),
            op(kRows.alu, {r(1), r(0)}),
            access(kRows.load, {r(2), hbm()}, 0, 4),
            op(kRows.alu, {r(3), r(2)}),
            op(kRows.exit, {})});
  const Result result = run(machine("reference", {"hbm.latency=100"}), s);
  CHECK(result.issues() == Cycles{0, 104, 105, 109, 110});
  CHECK(result.stalled(StallReason::kCacheMiss) == 100);
  CHECK(result.stalled(StallReason::kOperand) == 3 + 3);
  CHECK(result.counters.memory.cache_misses == 1);
  CHECK(result.counters.memory.cache_hits == 1);
}

TEST_CASE("13 two loads of one missing line wait for one fill") {
  Script s({access(kRows.load, {r(0), hbm()}, 0, 4),
            access(kRows.load, {r(1), hbm()}, 0, 4),
            op(kRows.alu, {r(2), r(1)}),
            op(kRows.exit, {})});
  const Result result = run(machine("reference", {"hbm.latency=100"}), s);
  CHECK(result.issues() == Cycles{0, 1, 104, 105}); // the line arrives at 100, LOAD's 4 on top
  CHECK(result.counters.shared.hbm_read_bytes == 128);
}

TEST_CASE("14 bandwidth: 32 lines of 128 bytes at 64 bytes a cycle") {
  Script s(
      {access(kRows.load, {r(0), hbm()}, 0, 128), op(kRows.alu, {r(1), r(0)}), op(kRows.exit, {})});
  const Result result =
      run(machine("reference", {"hbm.latency=100", "hbm.bytes_per_cycle_total=64"}), s);
  // The last line leaves after 31 others of 2 cycles: 62 + 100 + 4.
  CHECK(result.issues() == Cycles{0, 166, 167});
  CHECK(result.stalled(StallReason::kOperand) == 3);
  CHECK(result.stalled(StallReason::kCacheMiss) == 100);
  CHECK(result.stalled(StallReason::kBandwidth) == 62);
}

TEST_CASE("15 a copy overlaps with computation, WAIT takes the rest") {
  Step copy = op(kRows.async_load, {event(0)});
  copy.copy = {pto::isa::CopyDirection::kHbmToL1, 0, 0, {.rows = 1, .row_bytes = 1024}, 0};
  Script s({copy, op(kRows.fma, {r(0), r(9)}), op(kRows.wait, {event(0)}), op(kRows.exit, {})});
  const Result result = run(machine("reference"), s);
  // Handed over at 0, starts at 1, 4 cycles to the first byte, 8 for 1024 bytes: done at 13.
  CHECK(result.issues() == Cycles{0, 1, 13, 14});
  CHECK(result.stalled(StallReason::kCopyWait) == 11);
  CHECK(result.entries[2].cause_pc == 0);
}

TEST_CASE("16 two copies on one engine follow each other, each with its event") {
  Step first = op(kRows.async_load, {event(0)});
  first.copy = {pto::isa::CopyDirection::kHbmToL1, 0, 0, {.rows = 1, .row_bytes = 1024}, 0};
  Step second = op(kRows.async_load, {event(1)});
  second.copy = {pto::isa::CopyDirection::kHbmToL1, 4096, 0, {.rows = 1, .row_bytes = 512}, 1};
  Script s(
      {first, second, op(kRows.wait, {event(0)}), op(kRows.wait, {event(1)}), op(kRows.exit, {})});
  const Result result = run(machine("reference"), s);
  CHECK(result.issues() == Cycles{0, 1, 13, 17, 18}); // engine free at 9: 9 + 4 + 4
}

TEST_CASE("17 a barrier with unequal warps") {
  Step skip = op(kRows.bra, {});
  skip.target = [](uint64_t, uint32_t warp, uint32_t) { return warp == 0 ? 3u : 1u; };
  Script s({skip,
            op(kRows.fma, {r(0), r(9)}),
            op(kRows.fma, {r(1), r(0)}),
            op(kRows.barrier, {}),
            op(kRows.exit, {})});
  s.warps = 2;
  const Result result = run(machine("reference"), s);
  CHECK(result.issues(0) == Cycles{0, 1, 11});
  CHECK(result.issues(1) == Cycles{0, 1, 9, 10, 11});
  CHECK(result.counters.warps[0].stalls[StallReason::kBlockBarrier] == 9);
  CHECK(result.counters.warps[1].stalls[StallReason::kBlockBarrier] == 0);
}

TEST_CASE("18 the barrier's own latency") {
  Script s({op(kRows.barrier, {}), op(kRows.exit, {})});
  s.warps = 4;
  const Result result = run(machine("reference", {"sync.block_barrier=20"}), s);
  CHECK(result.issues(0) == Cycles{0, 21});
  CHECK(result.issues(3) == Cycles{0, 21});
}

TEST_CASE("19 a fused pair") {
  Script s({access(kRows.load, {r(0), hbm()}, 0, 4),
            op(kRows.mma, {tile(0), tile(1), tile(2)}),
            op(kRows.mma, {tile(3), tile(0), tile(2)}),
            op(kRows.exit, {})});
  const Result result = run(machine("reference-fused"), s);
  // LOAD and MMA together at 0, result at 5; the second MMA needs tile 0 and is not fused.
  CHECK(result.issues() == Cycles{0, 0, 5, 6});
  CHECK(result.entries[1].is_fused);
  CHECK(result.entries[1].done_cycle == 5);
  CHECK(result.entries[2].done_cycle == 13);
}

TEST_CASE("20 without the rule the same pair takes two issues") {
  Script s({access(kRows.load, {r(0), hbm()}, 0, 4),
            op(kRows.mma, {tile(0), tile(1), tile(2)}),
            op(kRows.mma, {tile(3), tile(0), tile(2)}),
            op(kRows.exit, {})});
  const Result result = run(machine("reference"), s);
  CHECK(result.issues() == Cycles{0, 1, 9, 10});
}

TEST_CASE("21 the matrix unit takes its tiles one after another") {
  Step step = op(kRows.mma, {tile(0), tile(1), tile(2)});
  step.mnk = 32; // 2 x 2 x 2 steps of 16
  Step other = op(kRows.mma, {tile(3), tile(1), tile(2)});
  other.mnk = 16;
  Script s({step, other, op(kRows.exit, {})});
  const MachineProfile m = machine("reference-fused");
  MachineProfile tiled = m;
  pto::isa::LatencyEntry entry = *m.latency.find_exact("MMA");
  entry.tile_m = entry.tile_n = entry.tile_k = 16;
  entry.step_cycles = 3;
  tiled.latency.put(entry);
  const Result result = run(tiled, s);
  CHECK(result.issues() == Cycles{0, 25, 26}); // interval 1 + 8 * 3
  CHECK(result.entries[0].done_cycle == 8 + 24);
  CHECK(result.entries[1].done_cycle == 25 + 8 + 3);
}

TEST_CASE("22 a branch holds the next insn for its latency") {
  Step loop = op(kRows.bra, {});
  loop.target = [](uint64_t, uint32_t, uint32_t pass) { return pass < 2 ? 0u : 2u; };
  Script s({op(kRows.alu, {r(0), r(9)}), loop, op(kRows.exit, {})});
  const Result result = run(machine("reference", {"latency.BRA.latency=4"}), s);
  CHECK(result.issues() == Cycles{0, 1, 5, 6, 10, 11, 15});
  CHECK(result.stalled(StallReason::kBranch) == 9);
}

TEST_CASE("23 a divergent branch runs both sides one after the other") {
  // As the engine serves it: the warp walks one side, then the other.
  Script s({op(kRows.bra, {}),
            op(kRows.fma, {r(0), r(9)}),
            op(kRows.fma, {r(1), r(9)}),
            op(kRows.alu, {r(2), r(1)}),
            op(kRows.exit, {})});
  const Result result = run(machine("reference"), s);
  CHECK(result.issues() == Cycles{0, 1, 2, 10, 11});
}

TEST_CASE("24 NOP holds the warp") {
  Step nop = op(kRows.nop, {});
  nop.nop_cycles = 15;
  Script s({nop, op(kRows.exit, {})});
  const Result result = run(machine("reference"), s);
  CHECK(result.issues() == Cycles{0, 15});
  CHECK(result.stalled(StallReason::kNop) == 14);
}

TEST_CASE("25 printing takes no time") {
  Script s({op(kRows.alu, {r(0), r(9)}),
            op(kRows.print, {}),
            op(kRows.alu, {r(1), r(9)}),
            op(kRows.exit, {})});
  Result result = run(machine("reference"), s);
  CHECK(result.issues() == Cycles{0, 1, 1, 2});
  CHECK(result.counters.cycles == 3);
  Script again({op(kRows.alu, {r(0), r(9)}),
                op(kRows.print, {}),
                op(kRows.alu, {r(1), r(9)}),
                op(kRows.exit, {})});
  result = run(machine("reference", {"latency.PRINT.latency=5"}), again); // unless asked
  CHECK(result.issues() == Cycles{0, 1, 2, 3});
}

TEST_CASE("26 a fence waits for the warp's stores") {
  Script s({access(kRows.store, {hbm(), r(9)}, 0, 4), op(kRows.fence, {}), op(kRows.exit, {})});
  const Result result = run(machine("reference"), s);
  CHECK(result.issues() == Cycles{0, 3, 4});
  CHECK(result.stalled(StallReason::kFence) == 2);
}

TEST_CASE("27 a write waits for the late result of the write before it") {
  Script s(
      {access(kRows.load, {r(0), hbm()}, 0, 4), op(kRows.alu, {r(0), r(9)}), op(kRows.exit, {})});
  CHECK(run(machine("reference"), s).issues() == Cycles{0, 4, 5});
}

TEST_CASE("28 code that is not there must be fetched, once") {
  Step loop = op(kRows.bra, {});
  loop.target = [](uint64_t, uint32_t, uint32_t pass) { return pass < 1 ? 0u : 2u; };
  Script s({op(kRows.alu, {r(0), r(9)}), loop, op(kRows.exit, {})});
  const Result result = run(machine("reference", {"fetch.miss_latency=50"}), s);
  CHECK(result.issues() == Cycles{50, 51, 52, 53, 54});
  CHECK(result.stalled(StallReason::kFetch) == 50);
}

TEST_CASE("29 blocks queue for cores") {
  Script s({op(kRows.fma, {r(0), r(9)}), op(kRows.exit, {})});
  s.blocks = 5;
  const Result result = run(machine("reference", {"cores=2"}), s);
  // 8 cycles a block, two cores: 0, 0, 8, 8, 16.
  CHECK(result.issues(0, 0)[0] == 0);
  CHECK(result.issues(0, 1)[0] == 0);
  CHECK(result.issues(0, 3)[0] == 8);
  CHECK(result.issues(0, 4)[0] == 16);
  CHECK(result.counters.cycles == 24);
  CHECK(result.counters.cores[0].blocks == 3);
}

TEST_CASE("30 launch: task, dispatcher, start and end of a block, start of warps") {
  Script s({op(kRows.exit, {})});
  s.blocks = 2;
  s.warps = 2;
  const Result result = run(machine("reference",
                                    {"launch.task=100",
                                     "launch.dispatch_interval=25",
                                     "launch.block_start=10",
                                     "launch.block_end=7",
                                     "launch.warp_start=3"}),
                            s);
  CHECK(result.issues(0, 0) == Cycles{110});
  CHECK(result.issues(1, 0) == Cycles{113});
  CHECK(result.issues(0, 1) == Cycles{135});
  CHECK(result.counters.cycles == 138 + 1 + 7);
  CHECK(result.counters.blocks[1].dispatch_cycle == 125);
  CHECK(result.stalled(StallReason::kEmpty) == 2 * (3 + 3));
}

TEST_CASE("31 two blocks share a core") {
  Script s({op(kRows.fma, {r(0), r(9)}), op(kRows.fma, {r(1), r(0)}), op(kRows.exit, {})});
  s.blocks = 2;
  const MachineProfile m =
      machine("reference",
              {"cores=1", "blocks_per_core=2", "warp_schedulers=1", "issue_warps_per_cycle=1"});
  const Result result = run(m, s);
  CHECK(result.issues(0, 0) == Cycles{0, 8, 9});
  CHECK(result.issues(0, 1) == Cycles{1, 10, 11});
}

TEST_CASE("32 atomics on one address") {
  Step step = op(kRows.atom, {r(0), hbm()});
  step.address = [](uint64_t, uint32_t, uint32_t) { return uint64_t{64}; };
  Script s({step, op(kRows.alu, {r(1), r(0)}), op(kRows.exit, {})});
  const Result result = run(machine("reference", {"atomic.sector=10"}), s);
  CHECK(result.issues() == Cycles{0, 320, 321}); // 32 lanes, 10 cycles each
  CHECK(result.stalled(StallReason::kOperand) == 7);
  CHECK(result.stalled(StallReason::kAtomic) == 312);
  CHECK(result.entries[0].done_cycle == 320);
}

TEST_CASE("33 atomics without a result let the warp go on") {
  Step step = op(kRows.atom, {r(0), hbm()});
  step.address = [](uint64_t, uint32_t, uint32_t) { return uint64_t{64}; };
  step.is_result_read = false;
  Script s({step, op(kRows.alu, {r(1), r(9)}), op(kRows.exit, {})});
  const Result result = run(machine("reference"), s);
  CHECK(result.issues() == Cycles{0, 1, 2});
}

TEST_CASE("34 conflict-free l1 accesses stream") {
  Script s({access(kRows.load, {r(0), l1()}, 0, 4),
            access(kRows.load, {r(1), l1()}, 4096, 4),
            op(kRows.alu, {r(2), r(1)}),
            op(kRows.exit, {})});
  CHECK(run(machine("reference"), s).issues() == Cycles{0, 1, 5, 6});
}

TEST_CASE("35 missing latency keys are named, not guessed") {
  pto::isa::InsnDesc unknown = kRows.alu;
  unknown.latency = "WARP_DRIVE";
  Script s({op(unknown, {r(0), r(9)}), op(unknown, {r(1), r(9)}), op(kRows.exit, {})});
  s.object.code[0].type = pto::isa::Type::kF32;
  const MachineProfile m = machine("reference");
  const ProgramTiming program(s.object, m);
  CHECK(program.missing_keys() == std::vector<std::string>{"WARP_DRIVE.f32", "WARP_DRIVE"});
  CHECK(program[0].latency_cycles == m.fallback_latency_cycles);
}

TEST_CASE("36 a cycle limit stops the run") {
  Step loop = op(kRows.bra, {});
  loop.target = [](uint64_t, uint32_t, uint32_t) { return 0u; };
  Script s({loop});
  const MachineProfile m = machine("reference");
  SharedMemory shared(m);
  const ProgramTiming program(s.object, m);
  TimingOptions options;
  options.max_cycles = 1000;
  TimingModel model(m, program, shared, s, options);
  CHECK(model.run() == TimedStop::kMaxCycles);
  CHECK(model.cycle() == 999); // cycles 0 to 999
}

TEST_CASE("37 stepping gives the same schedule as running") {
  const auto steps = [] {
    return std::vector<Step>{access(kRows.load, {r(0), hbm()}, 0, 4),
                             op(kRows.fma, {r(1), r(0)}),
                             op(kRows.barrier, {}),
                             access(kRows.store, {hbm(), r(1)}, 0, 4),
                             op(kRows.exit, {})};
  };
  Script whole(steps());
  whole.warps = 8;
  whole.blocks = 6;
  const MachineProfile m = machine("reference");
  const Result result = run(m, whole);
  Script stepped(steps());
  stepped.warps = 8;
  stepped.blocks = 6;
  SharedMemory shared(m);
  const ProgramTiming program(stepped.object, m);
  TimingOptions options;
  options.record_timeline = true;
  TimingModel model(m, program, shared, stepped, options);
  uint64_t steps_taken = 0;
  while (model.step() == TimedStop::kHostStop) {
    ++steps_taken;
  }
  CHECK(steps_taken == 8 * 6 * 5);
  CHECK(model.counters().cycles == result.counters.cycles);
  REQUIRE(model.timeline().entries().size() == result.entries.size());
  for (size_t i = 0; i < result.entries.size(); ++i) {
    CHECK(model.timeline().entries()[i].issue_cycle == result.entries[i].issue_cycle);
  }
}

TEST_CASE("38 status says what a warp waits for") {
  Script s({op(kRows.fma, {r(3), r(9)}), op(kRows.alu, {r(1), r(3)}), op(kRows.exit, {})});
  const MachineProfile m = machine("reference");
  SharedMemory shared(m);
  const ProgramTiming program(s.object, m);
  TimingModel model(m, program, shared, s, {});
  CHECK(model.step() == TimedStop::kHostStop);
  const TimingModel::WarpStatus status = model.status(0, 0);
  CHECK(status.reason == StallReason::kOperand);
  CHECK(status.operand == "r3");
  CHECK(status.cause_pc == 0);
  CHECK(status.ready_cycle == 8);
}

TEST_CASE("a timeline entry has lanes in a row, or none, and knows the wait of each warp") {
  Timeline timeline;
  const auto add = [&](uint32_t warp, uint32_t lanes, uint32_t mask, uint32_t stall) {
    TimelineEntry entry;
    entry.issue_cycle = 100;
    entry.first_warp = entry.last_warp = warp;
    entry.first_lane = warp * 32;
    entry.last_lane = warp * 32 + 31;
    entry.active_lanes = lanes;
    entry.lane_mask = mask;
    entry.stall_cycles = stall;
    entry.reason = stall > 50 ? StallReason::kBlockBarrier : StallReason::kCopyWait;
    timeline.add(entry);
  };
  add(0, 32, 0, 80);
  add(1, 32, 0, 5);
  add(2, 32, 0, 80);
  add(3, 0, 0, 80);
  add(4, 0, 0, 80);
  add(5, 4, 0x8000000d, 80);
  add(6, 32, 0, 80);
  std::vector<std::string> lanes;
  for (const TimelineEntry& entry : timeline.entries()) {
    lanes.push_back(entry.lanes_text());
  }
  CHECK(lanes ==
        std::vector<std::string>{"0-95", "none (warps 3-4)", "160,162-163,191", "192-223"});
  CHECK(timeline.entries()[1].lanes() == "none");

  const TimelineEntry& mixed = timeline.entries()[0];
  CHECK(mixed.stall_text() == "5-80");
  CHECK(mixed.reason == StallReason::kBlockBarrier);
  CHECK(mixed.latest_warp() == 1);
  CHECK(mixed.wait_of(1).reason == StallReason::kCopyWait);
  CHECK(mixed.wait_of(2) == mixed.wait_of(0));
  CHECK(timeline.entries()[1].stall_text() == "80");
  CHECK(timeline.entries()[1].latest_warp() == 3);
}

TEST_CASE("39 the timeline keeps to its limits and counts the rest") {
  Script s({op(kRows.alu, {r(0), r(9)}), op(kRows.alu, {r(1), r(9)}), op(kRows.exit, {})});
  s.blocks = 4;
  const MachineProfile m = machine("reference", {"cores=1"});
  SharedMemory shared(m);
  const ProgramTiming program(s.object, m);
  TimingOptions options;
  options.record_timeline = true;
  options.timeline_limits.max_blocks = 2;
  options.timeline_limits.from_cycle = 1;
  TimingModel model(m, program, shared, s, options);
  CHECK(model.run() == TimedStop::kFinished);
  CHECK(model.timeline().entries().size() == 5);
  CHECK(model.timeline().dropped() == 7);
}
