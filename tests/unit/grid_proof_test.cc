// SPDX-License-Identifier: Apache-2.0
// What is proven of a grid holds, and what does not hold is not proven.
#include "random_choice.h"
#include "sim_fixture.h"
#include "simulator/checks/race_check.h"
#include "simulator/grid_proof.h"

#include <atomic>
#include <random>

namespace pto::sim {
namespace {

constexpr Dim3 kBlock{64};
constexpr Dim3 kGrid{100};
constexpr uint32_t kLanes = kBlock.x * kGrid.x;

std::string kernel_of(const std::string& body) {
  return ".pto 1\n.const c, u32 {1, 2, 3}\n.kernel k(ptr a, ptr o, u32 n, s32 m)\n" + body +
         ".end\n";
}

/// a and o have a word for each lane twice over; n is the number of lanes, m is -1.
void bind(SimFixture& sim) {
  std::vector<uint32_t> values(size_t{2} * kLanes);
  for (uint32_t i = 0; i < values.size(); ++i) {
    values[i] = i * 2654435761u;
  }
  sim.words(values, "a");
  sim.words(std::vector<uint32_t>(values.size(), 3), "o");
  sim.scalar(kLanes);
  sim.scalar(static_cast<uint64_t>(-1));
}

std::optional<GridProof> proof_of(const std::string& body, Dim3 grid = kGrid) {
  SimFixture sim(kernel_of(body));
  bind(sim);
  const std::unique_ptr<Launch> launch = sim.launch(grid, kBlock);
  return prove_grid(*launch);
}

RunOutcome run_of(const std::string& body, const RunOptions& options) {
  SimFixture sim(kernel_of(body));
  bind(sim);
  return outcome_of(sim, sim.run(kGrid, kBlock, options));
}

/// Warp by warp, where nothing is proven or wide.
RunOutcome stepped(const std::string& body, const RunOptions& options = {}) {
  SimFixture sim(kernel_of(body));
  bind(sim);
  std::string error;
  const std::unique_ptr<Launch> launch = sim.launch(kGrid, kBlock);
  return outcome_of(sim, run_scheduled(*launch, *parse_schedule("greedy", error), options));
}

/// Proven with so many insns a warp, or fewer, and the same with any number of threads.
void check_proven(const std::string& body, uint64_t insns, bool has_idle_lanes = false) {
  CAPTURE(body);
  const std::optional<GridProof> proof = proof_of(body);
  REQUIRE(proof.has_value());
  CHECK(proof->insns == insns);
  CHECK(proof->are_lanes_apart);
  const RunOutcome expected = stepped(body);
  REQUIRE(expected.status == RunStatus::kCompleted);
  const uint64_t all_insns = insns * kLanes / isa::kWarpLanes;
  CHECK((has_idle_lanes ? expected.warp_insns < all_insns : expected.warp_insns == all_insns));
  for (const unsigned threads : {1u, 2u, 5u}) {
    CHECK(run_of(body, {.host_threads = threads}) == expected);
  }
}

/// Not proven; what comes out is the same all the same.
void check_unproven(const std::string& body) {
  CAPTURE(body);
  CHECK_FALSE(proof_of(body).has_value());
  const RunOutcome expected = run_of(body, {.host_threads = 1});
  CHECK(run_of(body, {.host_threads = 2}) == expected);
}

constexpr const char* kStream = R"(
    mov.u32 r0, %gid.x
    cmp.ge.u32 p0, r0, n
@p0 exit
    load.u32 r1, hbm[a + r0*4]
    load.u32 r2, hbm[a + 64]
    mad.u32 r3, r1, 3, r2
    store.u32 hbm[o + r0*4], r3
    exit
)";
constexpr const char* kStrides = R"( // two trips of half of the grid's words each, in place
    mov.u32 r0, %gid.x
    mov.u32 r1, %gsize.x
    shl.b32 r4, r1, 1
next:
    load.u32 r2, hbm[o + r0*4]
    load.u32 r3, hbm[a + r0*4]
    div.u32 r3, r3, 7
    add.u32 r2, r2, r3
    store.u32 hbm[o + r0*4], r2
    add.u32 r0, r0, r1
    cmp.lt.u32 p0, r0, r4
@p0 bra next
    exit
)";

} // namespace

TEST_CASE("grids that are proven") {
  check_proven(kStream, 8);
  check_proven(kStrides, 20);
  check_proven(R"( // a register as base, downwards, pairs of words, and what nobody needs to know
    mov.u32 r0, %gid.x
    mad.wide.u32 d0, r0, 8, o
    load.u32.x2 r2, hbm[d0]
    mul.s32 r1, r0, m
    add.s32 r1, r1, 6399
    load.u32 r4, hbm[a + r1*4]
    vote.ballot r5, p1
    shfl.down.b32 r4, r4, 1
    cmp.lt.u32 p1, r4, r2
    sel.b32 r2, r4, r3, p1
    mov.u32 r6, %lane
    xor.b32 r3, r5, r6
    store.u32.x2 hbm[d0], r2
    exit
)",
               14);
  check_proven(R"( // nothing in memory; a guard that never holds
    cmp.lt.u32 p0, n, 5
@p0 trap 1
@p0 store.u32 hbm[o - 4], 1
@!p0 bra end
    trap 2
end:
    exit
)",
               5);
}

TEST_CASE("grids with lanes that have less to do") {
  const auto outside = [](const std::string& offset) {
    return R"( // the last words of a, as many as there are lanes that stay
    mov.u32 r0, %gid.x
    sub.u32 r1, n, 40
    cmp.ge.u32 p0, r0, r1
@p0 exit
    load.u32 r2, hbm[a + r0*4 + )" +
           offset + R"(]
    store.u32 hbm[o + r0*4], r2
    exit
)";
  };
  check_proven(outside("25760"), 7, true);
  check_unproven(outside("25764"));
  check_proven(R"( // a jump to the end, from the first of the lanes on
    mov.s32 r0, %gid.x
    mul.s32 r1, r0, m
    cmp.lt.s32 p0, r1, -100
@p0 bra end
    load.u32 r2, hbm[o + r0*4]
    add.u32 r2, r2, r0
    store.u32 hbm[o + r0*4], r2
end:
    exit
)",
               8,
               true);
  check_proven(R"( // a part of the code, then all of it; and single insns
    mov.u32 r0, %gid.x
    mov.u32 r3, 7
    cmp.lt.u32 p0, r0, 1000
    cmp.gt.u32 p1, 3333, r0
@!p0 bra skip
    load.u32 r1, hbm[a + r0*4]
    add.u32 r3, r1, 1
@p1 add.u32 r3, r3, 1
skip:
@p0 store.u32 hbm[o + r0*4], r3
@p1 load.u32 r3, hbm[a + r0*4]
    store.u32 hbm[o + r0*4 + 25600], r3
    exit
)",
               12,
               true);
  check_proven(R"( // a loop that the last lanes leave first
    mov.u32 r0, %gid.x
    mov.u32 r1, %gsize.x
    mov.u32 r2, 11111
    cmp.ge.u32 p0, r0, r2
@p0 exit
next:
    load.u32 r3, hbm[o + r0*4]
    add.u32 r3, r3, r0
    store.u32 hbm[o + r0*4], r3
    add.u32 r0, r0, r1
    cmp.lt.u32 p0, r0, r2
@p0 bra next
    exit
)",
               18,
               true);
  check_proven(R"( // the first lanes leave
    mov.u32 r0, %gid.x
    cmp.lt.u32 p0, r0, 40
@p0 exit
    store.u32 hbm[o + r0*4], r0
    exit
)",
               5,
               true);
  check_proven(R"( // the last lanes alone
    mov.u32 r0, %gid.x
    cmp.ge.u32 p0, r0, 40
@p0 store.u32 hbm[o + r0*4], r0
    exit
)",
               4);
  check_proven(R"( // one lane of many
    mov.u32 r0, %gid.x
    cmp.eq.u32 p0, r0, 40
@p0 store.u32 hbm[o + r0*4], r0
    exit
)",
               4);
  check_proven(R"( // leaving where others wait
    mov.u32 r0, %gid.x
    cmp.ge.u32 p0, r0, 1000
@p0 bra skip
    cmp.ge.u32 p1, r0, 500
@p1 exit
    store.u32 hbm[o + r0*4], r0
skip:
    store.u32 hbm[a + r0*4], r0
    exit
)",
               8,
               true);
  check_unproven(R"( // an address that some lanes have made
    mov.u32 r0, %gid.x
    mov.u32 r1, r0
    cmp.ge.u32 p0, r0, 1000
@p0 bra skip
    add.u32 r1, r0, 1
skip:
    store.u32 hbm[o + r1*4], r0
    exit
)");
  check_unproven(R"( // the same with a guard
    mov.u32 r0, %gid.x
    mov.u32 r1, r0
    cmp.lt.u32 p0, r0, 1000
@p0 add.u32 r1, r0, 1
    store.u32 hbm[o + r1*4], r0
    exit
)");
  check_proven(R"( // what a number that wraps around chooses is good either way
    mov.u32 r0, %gid.x
    add.u32 r1, r0, 0xfffff000
    cmp.lt.u32 p0, r1, 77
@p0 store.u32 hbm[o + r0*4], r0
    exit
)",
               5);
}

TEST_CASE("what can be told of grids, and what cannot") {
  check_unproven(R"( // outside in the last block
    mov.u32 r0, %gid.x
    load.u32 r1, hbm[a + r0*8 + 4]
    store.u32 hbm[o + r0*8 + 8], r1
    exit
)");
  check_unproven(R"( // not aligned in every other lane
    mov.u32 r0, %gid.x
    mad.wide.u32 d0, r0, 2, o
    load.u32 r1, hbm[d0]
    exit
)");
  check_unproven(R"( // a lane reads what its neighbour writes
    mov.u32 r0, %gid.x
    load.u32 r1, hbm[o + r0*4 + 4]
    store.u32 hbm[o + r0*4], r1
    exit
)");
  check_unproven(R"( // a warp's lanes write one place
    mov.u32 r0, %gid.x
    store.u32 hbm[o], r0
    exit
)");
  check_proven(R"( // every other word
    mov.u32 r0, %gid.x
    store.u32 hbm[o + r0*8], r0
    exit
)",
               3);
  check_unproven(R"( // half the lanes read twice as much: what others write
    mov.u32 r0, %gid.x
    store.u32 hbm[o + r0*4], r0
    cmp.ge.u32 p0, r0, 3200
@p0 exit
    load.u64 d0, hbm[o + r0*8]
    store.u64 hbm[a + r0*8], d0
    exit
)");
  check_unproven(R"( // an address that comes from memory
    mov.u32 r0, %gid.x
    load.u32 r1, hbm[a + r0*4]
    and.b32 r1, r1, 1023
    load.u32 r2, hbm[a + r1*4]
    store.u32 hbm[o + r0*4], r2
    exit
)");
  check_proven(R"( // a branch that comes from memory
    mov.u32 r0, %gid.x
    load.u32 r1, hbm[a + r0*4]
    cmp.lt.u32 p0, r1, r0
@p0 bra end
    store.u32 hbm[o + r0*4], r1
end:
    exit
)",
               6);
  check_proven(R"( // half of the comparison is not known
    mov.u32 r0, %gid.x
    load.u32 r1, hbm[a + r0*4]
    cmp.lt.u32 p1, r1, r0
    cmp.lt.and.u32 p0, r0, n, p1
@p0 store.u32 hbm[o + r0*4], r1
    exit
)",
               6);
  check_unproven(R"( // a trap
    cmp.gt.u32 p0, n, 5
@p0 trap 3
    exit
)");
  check_unproven(R"( // long
    mov.u32 r0, 2000
again:
    sub.u32 r0, r0, 1
    cmp.ne.u32 p0, r0, 0
@p0 bra again
    exit
)");
  check_unproven(R"( // barriers, also those that a part of a warp passes over
    mov.u32 r0, %gid.x
    cmp.ge.u32 p0, r0, 1000
@p0 bra skip
    barrier
skip:
    store.u32 hbm[o + r0*4], r0
    exit
)");
  check_unproven("@p0 barrier_block\n    exit\n");
  check_unproven("    load.u32 r1, const[c + 4]\n    exit\n");
  check_unproven("    prefetch hbm[a]\n    exit\n");
  // What one block's lanes write, all of them, in their order.
  const auto alone =
      proof_of("    mov.u32 r0, %ctaid.x\n    store.u32 hbm[o + r0*4], r0\n    exit\n");
  REQUIRE(alone.has_value());
  CHECK_FALSE(alone->are_lanes_apart);
  CHECK(proof_of(kStream, {101}).has_value()); // lanes past n
  CHECK(proof_of(kStrides, {1}).has_value());
  CHECK_FALSE(proof_of(kStrides, {101}).has_value()); // words past the end
}

TEST_CASE("random kernels: what is proven ends well in any order, without a race") {
  std::mt19937 random(7);
  RandomChoice choose(random);
  unsigned proven = 0;
  unsigned raced = 0;
  for (unsigned round = 0; round < 400; ++round) {
    std::string body = "    mov.u32 r0, %gid.x\n    mov.u32 r5, %gsize.x\n";
    const unsigned accesses = 1 + choose.below(4);
    for (unsigned i = 0; i < accesses; ++i) {
      const std::string index = choose.pick({"r0*4", "r0*4", "r0*4", "r0*8", "r1*4", "r1*4"});
      const std::string offset = choose.pick({"", "", "", " + 4", " + 25600", " - 4"});
      const std::string array = choose.pick({"a", "o", "o"});
      body += "    mad.u32 r1, r0, " + choose.pick({"1", "1", "2", "m"}) + ", " +
              choose.pick({"0", "0", "r5", "6399"}) + "\n";
      body += choose.below(2) == 0
                  ? "    load.u32 r2, hbm[" + array + " + " + index + offset + "]\n"
                  : "    store.u32 hbm[" + array + " + " + index + offset + "], r2\n";
      body += choose.below(4) == 0 ? "    add.u32 r2, r2, r0\n" : "    add.u32 r2, r2, r2\n";
      body += choose.below(3) == 0
                  ? "    cmp." + choose.pick({"lt", "ge", "eq", "ne", "le", "gt"}) + ".u32 p0, " +
                        choose.pick({"r0", "r1"}) + ", " + std::to_string(choose.below(6500)) + "\n"
                  : "";
      const unsigned how = choose.below(8);
      body += how == 0   ? "@p0 exit\n"
              : how == 1 ? "@!p0 exit\n"
              : how == 2 ? "@p0 bra end\n"
              : how == 3 ? "@p0 "
                         : "";
    }
    body += "    add.u32 r2, r2, 1\nend:\n    exit\n";
    CAPTURE(body);
    const std::optional<GridProof> proof = proof_of(body);
    const bool is_proven = proof.has_value();
    SimFixture sim(kernel_of(body));
    bind(sim);
    const std::unique_ptr<Launch> launch = sim.launch(kGrid, kBlock);
    Findings findings;
    RaceCheck race(findings);
    launch->observers().attach(race);
    const RunResult result = run_functional(*launch);
    raced += findings.list().empty() ? 0 : 1;
    proven += is_proven ? 1 : 0;
    if (is_proven) {
      CHECK(result.status == RunStatus::kCompleted);
      CHECK((findings.list().empty() || !proof->are_lanes_apart));
      CHECK(run_of(body, {.host_threads = 3}) ==
            (proof->are_lanes_apart ? stepped(body) : run_of(body, {.host_threads = 1})));
    }
  }
  CHECK(proven > 40);
  CHECK(raced > 40);
}

TEST_CASE("a proven grid keeps to the insn limit") {
  const uint64_t all = uint64_t{8} * kLanes / isa::kWarpLanes;
  for (const uint64_t limit : {all, all - 1, all / 2, uint64_t{7}}) {
    CAPTURE(limit);
    const RunOutcome expected = run_of(kStream, {.max_insns = limit, .host_threads = 1});
    CHECK((expected.status == RunStatus::kCompleted) == (limit == all));
    CHECK(run_of(kStream, {.max_insns = limit, .host_threads = 2}) == expected);
  }
}

TEST_CASE("a proven grid that reaches the limit, whose chunks meet in one line of memory") {
  constexpr uint32_t kBlocks = 4000;
  const auto run = [](unsigned threads) {
    SimFixture sim(".pto 1\n.kernel k(ptr o)\n    mov.u32 r0, %gid.x\n"
                   "    load.u8 r1, hbm[o + r0 + 32]\n    add.u32 r1, r1, 1\n"
                   "    store.u8 hbm[o + r0 + 32], r1\n    exit\n.end\n");
    sim.words(std::vector<uint32_t>(kBlocks * 8 + 8));
    REQUIRE(prove_grid(*sim.launch({kBlocks}, {32})).has_value());
    const uint64_t limit = 5 * kBlocks - 1;
    return outcome_of(sim, sim.run({kBlocks}, {32}, {.max_insns = limit, .host_threads = threads}));
  };
  const RunOutcome expected = run(1);
  CHECK(expected.status == RunStatus::kLimit);
  for (int attempt = 0; attempt < 20; ++attempt) { // they meet where both are at work
    REQUIRE(run(2) == expected);
  }
}

TEST_CASE("an interrupt of a proven grid keeps the first blocks") {
  for (const unsigned threads : {2u, 3u}) {
    CAPTURE(threads);
    SimFixture sim(kernel_of(kStream));
    bind(sim);
    std::atomic<bool> stop{false};
    uint64_t calls = 0;
    RunOptions options{.interrupt = &stop, .host_threads = threads};
    options.progress = [&](const Progress& progress) {
      ++calls;
      CHECK(progress.block_count == kGrid.x);
      CHECK(progress.counts.warp_insns == progress.blocks_done * 16);
      stop = true;
    };
    const RunResult result = sim.run(kGrid, kBlock, options);
    const std::vector<uint32_t> left = sim.read(sim.args[1].bits);
    if (calls != 0) { // else other threads were faster
      CHECK(calls == 1);
      CHECK(result.blocks_done <= kGrid.x);
    }
    CHECK((result.status == RunStatus::kCompleted) == (result.blocks_done == kGrid.x));
    CHECK(result.counts.warp_insns == result.blocks_done * 16);
    for (uint32_t i = 0; i < kLanes; ++i) {
      REQUIRE(left[i] ==
              (i / kBlock.x < result.blocks_done ? i * 2654435761u * 3 + 16 * 2654435761u : 3));
    }
  }
}

} // namespace pto::sim
