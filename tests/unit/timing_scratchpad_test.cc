// SPDX-License-Identifier: Apache-2.0
// Who waits for whom on scratchpad: copies, matrix operations and lanes on the same bytes.
// Schedules are computed by hand from the figures of a profile.
#include "simulator/timing/l1_ledger.h"
#include "test_machine.h"
#include "timing_schedule.h"

#include <doctest/doctest.h>

using namespace pto::sim;
using namespace pto::sim::test;
using pto::isa::MachineProfile;
using pto::test::machine;

TEST_CASE("40 a copy waits in its engine for the matrix operation that reads its target") {
  const auto steps = [](uint64_t target) {
    Step multiply = op(kRows.mma, {tile(0), tile(1), tile(2)});
    multiply.l1 = {{.offset = 0, .size_bytes = 1024, .reads = true}};
    return std::vector<Step>{
        multiply, copy_in(0, target, 512), op(kRows.wait, {event(0)}), op(kRows.exit, {})};
  };
  // The multiplication reads until 8; then 4 cycles to the first byte and 4 for 512 bytes.
  Script same(steps(512));
  const Result held = run(machine("reference"), same);
  CHECK(held.issues() == Cycles{0, 1, 16, 17});
  CHECK(held.entries[1].start_cycle == 8);
  CHECK(held.entries[1].held_by_pc == 0);
  // The other half of the same tile is free: handed over at 2.
  Script other(steps(1024));
  const Result free = run(machine("reference"), other);
  CHECK(free.issues() == Cycles{0, 1, 10, 11});
  CHECK(free.entries[1].start_cycle == 2);
  CHECK(free.entries[1].held_by_pc == UINT32_MAX);
}

TEST_CASE("41 a copy out waits for the store of what it takes") {
  Script s({access(kRows.store, {l1(), r(9)}, 0, 4),
            copy_out(0, 0, 512),
            op(kRows.wait, {event(0)}),
            op(kRows.exit, {})});
  // Stored at 3, then 4 + 4.
  CHECK(run(machine("reference"), s).issues() == Cycles{0, 1, 11, 12});
  Script other({access(kRows.store, {l1(), r(9)}, 512, 4),
                copy_out(0, 0, 512),
                op(kRows.wait, {event(0)}),
                op(kRows.exit, {})});
  CHECK(run(machine("reference"), other).issues() == Cycles{0, 1, 10, 11});
}

TEST_CASE("42 a copy in waits for the copy out of the same bytes") {
  Script s(
      {copy_out(0, 0, 1024), copy_in(1, 0, 1024), op(kRows.wait, {event(1)}), op(kRows.exit, {})});
  // Out: 1 + 4 + 8 = 13. In: 13 + 4 + 8.
  CHECK(run(machine("reference"), s).issues() == Cycles{0, 1, 25, 26});
  Script other({copy_out(0, 0, 1024),
                copy_in(1, 1024, 1024),
                op(kRows.wait, {event(1)}),
                op(kRows.exit, {})});
  CHECK(run(machine("reference"), other).issues() == Cycles{0, 1, 14, 15});
}

TEST_CASE("43 rows that lie between the rows of another copy are free") {
  Step out = copy_out(0, 0, 128);
  out.copy.shape = {.rows = 8, .row_bytes = 128, .hbm_stride = 128, .l1_stride = 256};
  Step in = copy_in(1, 128, 128);
  in.copy.shape = out.copy.shape;
  Script s({out, in, op(kRows.wait, {event(1)}), op(kRows.exit, {})});
  CHECK(run(machine("reference"), s).issues() == Cycles{0, 1, 14, 15});
  in.copy.l1_offset = 127;
  Script touching({out, in, op(kRows.wait, {event(1)}), op(kRows.exit, {})});
  CHECK(run(machine("reference"), touching).issues() == Cycles{0, 1, 25, 26});
}

TEST_CASE("44 a lane load comes after the matrix operation that writes its bytes") {
  Step multiply = op(kRows.mma, {tile(0), tile(1), tile(2)});
  multiply.l1 = {{.offset = 0, .size_bytes = 1024, .writes = true}};
  Script s({multiply,
            access(kRows.load, {r(0), l1()}, 0, 4),
            op(kRows.alu, {r(1), r(0)}),
            op(kRows.exit, {})});
  // Issues at 1, reads at 8, LOAD 4.
  CHECK(run(machine("reference"), s).issues() == Cycles{0, 1, 12, 13});
}

TEST_CASE("45 two buffers hide the copies that one buffer must wait for") {
  // Six slices: copy 1024 bytes (13 cycles from its issue), multiply (MMA 12, balanced).
  const auto kernel = [](bool is_double) {
    std::vector<Step> steps;
    const auto multiply = [&](uint64_t buffer) {
      Step step = op(kRows.mma, {tile(0), tile(1), tile(2)});
      step.l1 = {{.offset = buffer, .size_bytes = 1024, .reads = true}};
      steps.push_back(step);
    };
    if (is_double) {
      steps.push_back(copy_in(0, 0, 1024));
    }
    for (uint32_t slice = 0; slice < 6; ++slice) {
      const uint32_t next = is_double ? slice + 1 : slice;
      if (is_double) {
        steps.push_back(op(kRows.wait, {event(slice % 2)}));
      }
      const uint64_t buffer = is_double ? next % 2 * 1024 : 0;
      if (next < 6) {
        steps.push_back(copy_in(next % 2, buffer, 1024));
      }
      if (!is_double) {
        steps.push_back(op(kRows.wait, {event(slice % 2)}));
      }
      multiply(is_double ? slice % 2 * 1024 : 0);
    }
    steps.push_back(op(kRows.exit, {}));
    return steps;
  };
  const MachineProfile m = machine("reference", {"latency.MMA.latency=12"});
  Script serial(kernel(false));
  Script twofold(kernel(true));
  const uint64_t slow = run(m, serial).counters.cycles;
  const uint64_t fast = run(m, twofold).counters.cycles;
  // The first copy 13, WAIT 1, then a slice each 12 + 12 + 1, and the last multiplication.
  CHECK(slow == 13 + 1 + 5 * 25 + 12);
  CHECK(static_cast<double>(fast) <= 0.7 * static_cast<double>(slow));
}

TEST_CASE("the ledger knows bytes, kinds of use and their end") {
  const auto use = [](L1Range range, double done, bool writes, bool is_copy = false) {
    return L1Ledger::Use{range, done, 7, writes, is_copy};
  };
  L1Ledger ledger;
  ledger.add(use({100, 50}, 20, false), 0);
  CHECK(ledger.hold(use({149, 1}, 0, true), 0).cycle == 20);
  CHECK(ledger.hold(use({149, 1}, 0, true), 0).pc == 7);
  CHECK(ledger.hold(use({150, 1}, 0, true), 0).cycle == 0);
  CHECK(ledger.hold(use({99, 1}, 0, true), 0).cycle == 0);
  CHECK(ledger.hold(use({149, 1}, 0, false), 0).cycle == 0); // two reads
  CHECK(ledger.hold(use({149, 1}, 0, true), 20).cycle == 0); // over
  ledger.add(use({200, 10}, 30, true, true), 0);
  CHECK(ledger.hold(use({200, 1}, 0, false, false), 0).cycle == 0); // WAIT's business
  CHECK(ledger.hold(use({200, 1}, 0, false, true), 0).cycle == 30);
  CHECK(ledger.hold(use({200, 1}, 0, true, true), 0).cycle == 0); // one engine, in order
  CHECK(L1Range::strided(1000, 10, 4, -100).begin == 700);
  CHECK(L1Range::strided(1000, 10, 4, -100).overlaps({805, 90}));
  CHECK_FALSE(L1Range::strided(1000, 10, 4, -100).overlaps({810, 90}));
  CHECK_FALSE(L1Range{0, 0}.overlaps({0, 10}));
  // Rows that overlap each other are solid.
  CHECK(L1Range{0, 100, 3, 50}.overlaps({120, 1}));
}

TEST_CASE("the ledger stays small and on the safe side") {
  L1Ledger ledger;
  for (uint64_t i = 0; i < 1000; ++i) {
    ledger.add({{i * 100, 50}, 1000.0 + static_cast<double>(i), 1, false, false}, 0);
  }
  CHECK(ledger.size() <= 256);
  for (uint64_t i = 0; i < 1000; ++i) {
    CHECK(ledger.hold({{i * 100 + 10, 1}, 0, 2, true, false}, 0).cycle >=
          1000.0 + static_cast<double>(i));
  }
}
