// SPDX-License-Identifier: Apache-2.0
// Host threads never change a result: independent blocks, blocks that meet, faults, limits.
#include "sim_fixture.h"

namespace pto::sim {
namespace {

/// Runs `k(ptr a, ptr o)` on `threads` host threads.
RunOutcome run_on(unsigned threads, const std::string& body, Dim3 grid, RunOptions options = {}) {
  SimFixture sim(".pto 1\n.kernel k(ptr a, ptr o)\n" + body + ".end\n");
  std::vector<uint32_t> input(grid.x * 100);
  for (uint32_t i = 0; i < input.size(); ++i) {
    input[i] = i * 7 + 1;
  }
  sim.words(input, "a");
  sim.words(std::vector<uint32_t>(grid.x * 100, 3), "o");
  options.host_threads = threads;
  return outcome_of(sim, sim.run(grid, {100}, options));
}

void check_threads(const std::string& body, Dim3 grid, const RunOptions& options = {}) {
  const RunOutcome expected = run_on(1, body, grid, options);
  for (const unsigned threads : {2u, 3u, 8u}) {
    CAPTURE(threads);
    CHECK(run_on(threads, body, grid, options) == expected);
  }
}

constexpr const char* kIndependent = R"(
    mov.u32 r0, %gid.x
    load.u32 r1, hbm[a + r0*4]
    load.u32 r2, hbm[a]
    mov.u32 r4, 50
again:
    mad.u32 r1, r1, 3, r2
    sub.u32 r4, r4, 1
    cmp.ne.u32 p0, r4, 0
@p0 bra again
    mov.u64 d0, %clock
    cvt.u32.u64 r5, d0
    mov.u32 r3, %core
    add.u32 r1, r1, r3
    add.u32 r1, r1, r5
    store.u32 hbm[o + r0*4], r1
    exit
)";

TEST_CASE("independent blocks") {
  check_threads(kIndependent, {320});
  SimFixture sim(std::string(".pto 1\n.kernel k(ptr a, ptr o)\n") + kIndependent + ".end\n");
  sim.words(std::vector<uint32_t>(320 * 128));
  sim.words(std::vector<uint32_t>(320 * 128));
  const RunResult result = sim.run({320}, {128}, {.host_threads = 2});
  CHECK(result.is_parallel);
  CHECK(result.blocks_done == 320);
}

TEST_CASE("blocks that write one place, in an order that shows") {
  check_threads(R"(
    mov.u32 r0, %ctaid.x
    mov.u32 r1, %tid.x
    load.u32 r2, hbm[o + r1*4]
    mad.u32 r2, r2, 5, r0
    store.u32 hbm[o + r1*4], r2
    exit
)",
                {300});
}

TEST_CASE("a block reads what another writes") {
  check_threads(R"(
    mov.u32 r0, %gid.x
    mov.u32 r1, %gsize.x
    sub.u32 r1, r1, r0
    sub.u32 r1, r1, 1
    load.u32 r2, hbm[a + r1*4]
    add.u32 r2, r2, 1
    store.u32 hbm[a + r0*4], r2
    exit
)",
                {300});
}

TEST_CASE("atomics with results") {
  check_threads(R"(
    mov.u32 r0, %gid.x
    atom.add.u32 r1, hbm[a], 1
    store.u32 hbm[o + r0*4], r1
    exit
)",
                {200});
}

TEST_CASE("copies") {
  check_threads(R"(
.tile t, u32[1][128]
    mov.u32 r0, %ctaid.x
    mul.u32 r1, r0, 400
    async_load t, hbm[a + r1*1], 400, e0
    wait e0
    barrier_block
    mov.u32 r2, %tid.x
    load.u32 r3, l1[t + r2*4]
    add.u32 r3, r3, r0
    store.u32 l1[t + r2*4], r3
    barrier_block
    async_store hbm[o + r1*1], t, 400
    exit
)",
                {128});
}

TEST_CASE("the first fault in block order is the one reported") {
  check_threads(R"(
    mov.u32 r0, %gid.x
    mov.u32 r1, %ctaid.x
    store.u32 hbm[o + r0*4], r0
    cmp.ge.u32 p0, r1, 101
@p0 trap 5
    exit
)",
                {200});
}

TEST_CASE("the insn limit") {
  check_threads(kIndependent, {200}, {.max_insns = 50000});
}

TEST_CASE("a consumer block that spins ends") {
  check_threads(R"(
    mov.u32 r0, %ctaid.x
    cmp.eq.u32 p0, r0, 199
@p0 bra produce
    cmp.ne.u32 p0, r0, 0
@p0 exit
spin:
    load.u32.cv r1, hbm[o]
    cmp.eq.u32 p0, r1, 3
@p0 bra spin
    mov.u32 r2, 1
    store.u32 hbm[o + r2*4], r1
    exit
produce:
    mov.u32 r1, 77
    store.u32 hbm[o], r1
    exit
)",
                {200});
}

} // namespace
} // namespace pto::sim
