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

constexpr const char* kReduces = R"(
    mov.u32 r0, %gid.x
    mov.u32 r1, %tid.x
    load.u32 r2, hbm[a + r0*4]
    atom.add.u32 _, hbm[o + r1*4], r2
    cvt.f32.u32 r3, r2
    mul.f32 r3, r3, 0.37
    and.b32 r4, r1, 3
    atom.add.f32 _, hbm[o + r4*4 + 1024], r3
    atom.max.u32 _, hbm[o + 2048], r2
    cvt.u64.u32 d0, r2
    atom.xor.u64 _, hbm[o + 4096], d0
    exit
)";

TEST_CASE("atomics whose result nobody reads") {
  check_threads(kReduces, {300}); // sums of floats show the order
  SimFixture sim(std::string(".pto 1\n.kernel k(ptr a, ptr o)\n") + kReduces + ".end\n");
  sim.words(std::vector<uint32_t>(300 * 128, 2));
  const uint64_t o = sim.words(std::vector<uint32_t>(300 * 128));
  const RunResult result = sim.run({300}, {128}, {.host_threads = 2});
  CHECK(result.is_parallel);
  CHECK(sim.read(o)[0] == 600);
}

TEST_CASE("atomics whose result nobody reads, and other accesses of the same place") {
  const std::string meets = R"(
    mov.u32 r0, %ctaid.x
    mov.u32 r1, %tid.x
    mov.u32 r3, %gid.x
    cmp.eq.u32 p0, r0, )";
  const std::string reads = R"(
@p0 load.u32 r2, hbm[o + r1*4]
    atom.add.u32 _, hbm[o + r1*4], r0
    mad.u32 r2, r2, 3, r0
    store.u32 hbm[a + r3*4], r2
    exit
)";
  const std::string reads_own = R"(
    atom.add.u32 _, hbm[o + r3*4], r0
@p0 load.u32 r2, hbm[o + r3*4]
    store.u32 hbm[a + r3*4], r2
    exit
)";
  const std::string reads_then_reduces = R"(
@p0 load.u32 r2, hbm[o + r3*4]
    atom.add.u32 _, hbm[o + r3*4], r0
@p0 load.u32 r2, hbm[o + r3*4]
    store.u32 hbm[a + r3*4], r2
    exit
)";
  const std::string writes = R"(
@p0 store.u32 hbm[o + r1*4], 77
    atom.add.u32 _, hbm[o + r1*4], r3
    exit
)";
  const std::string overwrites = R"(
    atom.add.u32 _, hbm[o + r1*4], r3
@p0 store.u32 hbm[o + r1*4], 77
    exit
)";
  for (const char* block : {"0", "5", "150", "299", "1000"}) {
    for (const std::string& body : {reads, reads_own, reads_then_reduces, writes, overwrites}) {
      CAPTURE(block);
      CAPTURE(body);
      check_threads(meets + block + body, {300});
    }
  }
}

TEST_CASE("atomics put off by an earlier chunk of the same thread, and other accesses") {
  // While block 0 is at work on one thread, another one runs block 3 after blocks whose atomics
  // wait for it.
  for (const char* access : {"store.u32 hbm[o], 77", "load.u32 r3, hbm[o]"}) {
    CAPTURE(access);
    const std::string body = std::string(R"(
    mov.u32 r0, %ctaid.x
    shl.b32 r1, r0, 4
    mov.u32 r2, 1
    mov.u32 r3, 0
    mov.u32 r4, 5000
    cmp.ne.u32 p0, r0, 0
@p0 bra quick
again:
    sub.u32 r4, r4, 1
    cmp.ne.u32 p0, r4, 0
@p0 bra again
    exit
quick:
    cmp.eq.u32 p1, r0, 3
@p1 )") + access + R"(
@!p1 atom.add.u32 _, hbm[o], r2
    store.u32 hbm[a + r1*4], r3
    exit
)";
    const RunOutcome expected = run_on(1, body, {40});
    for (int attempt = 0; attempt < 20; ++attempt) {
      REQUIRE(run_on(2, body, {40}) == expected);
    }
  }
}

TEST_CASE("a write to one allocation through the parameter of another") {
  for (const char* how : {"store.u32 hbm[a + r4*1], r2", "atom.add.u32 _, hbm[a + r4*1], r2"}) {
    CAPTURE(how);
    check_threads(std::string(R"(
    mov.u64 d0, o
    mov.u64 d1, a
    sub.u64 d0, d0, d1
    cvt.u32.u64 r5, d0
    mov.u32 r0, %gid.x
    mov.u32 r1, %gsize.x
    sub.u32 r1, r1, r0
    load.u32 r2, hbm[o + r1*4 - 4]      // what another block writes
    mad.u32 r2, r2, 3, r0
    mad.u32 r4, r0, 4, r5
    )") + how + R"(
    exit
)",
                  {300});
  }
}

TEST_CASE("atomics put off end with a fault in their order") {
  check_threads(R"(
    mov.u32 r0, %ctaid.x
    mov.u32 r1, %tid.x
    atom.add.u32 _, hbm[o + r1*4], r0
    cmp.ge.u32 p0, r0, 217
@p0 trap 9
    atom.add.u32 _, hbm[o + r1*4], 1000
    exit
)",
                {300});
}

TEST_CASE("atomics put off by blocks that take turns") {
  check_threads(R"(
    mov.u32 r0, %ctaid.x
    mov.u32 r4, 40000
    cvt.f32.u32 r2, r0
    fma.f32 r2, r2, 0.1, 0.3
again:
    sub.u32 r4, r4, 1
    cmp.ne.u32 p0, r4, 0
@p0 bra again
    atom.add.f32 _, hbm[o], r2
    exit
)",
                {20});
}

TEST_CASE("an interrupt keeps what is done, of long blocks, too") {
  const std::string text = R"(
.pto 1
.kernel k(ptr a, ptr o)
    mov.u32 r0, %gid.x
    mov.u32 r4, 9000
again:
    sub.u32 r4, r4, 1
    cmp.ne.u32 p0, r4, 0
@p0 bra again
    add.u32 r1, r0, 1
    store.u32 hbm[o + r0*4], r1
    exit
.end
)";
  for (const unsigned threads : {2u, 3u}) {
    CAPTURE(threads);
    uint64_t kept = 0;
    // The first chunk may be on a thread that the host lets wait; not every time.
    for (int attempt = 0; attempt < 50 && kept == 0; ++attempt) {
      SimFixture sim(text);
      sim.words({0});
      const uint64_t o = sim.words(std::vector<uint32_t>(400 * 128));
      std::atomic<bool> stop{false};
      RunOptions options{.interrupt = &stop, .host_threads = threads};
      options.progress = [&](const Progress& progress) { stop = progress.blocks_done >= 48; };
      const RunResult result = sim.run({400}, {128}, options);
      CHECK(result.status == RunStatus::kInterrupted);
      kept = result.blocks_done;
      CHECK(kept < 400);
      CHECK(result.counts.warp_insns == kept * 4 * 27005);
      const std::vector<uint32_t> left = sim.read(o);
      for (uint32_t i = 0; i < left.size(); ++i) {
        REQUIRE(left[i] == (i / 128 < kept ? i + 1 : 0));
      }
    }
    CHECK(kept > 0);
  }
}

TEST_CASE("an interrupt puts back what long blocks wrote over kept ones") {
  // Block 20 is at work on one thread when the run is stopped. The other one has done block 19 and
  // some after 20, which write the same word.
  const std::string text = R"(
.pto 1
.kernel k(ptr o)
    mov.u32 r0, %ctaid.x
    mov.u32 r4, 25000
    cmp.eq.u32 p1, r0, 20
@p1 mov.u32 r4, 5000000
again:
    sub.u32 r4, r4, 1
    cmp.ne.u32 p0, r4, 0
@p0 bra again
    cmp.lt.u32 p0, r0, 19
@p0 exit
@p1 exit
    store.u32 hbm[o], r0
    exit
.end
)";
  bool was_seen = false;
  // Block 19 may be on the same thread as 20; then the others meet what it wrote.
  for (int attempt = 0; attempt < 200 && !was_seen; ++attempt) {
    SimFixture sim(text);
    const uint64_t o = sim.words({0});
    std::atomic<bool> stop{false};
    RunOptions options{.interrupt = &stop, .host_threads = 2};
    options.progress = [&](const Progress& progress) { stop = progress.blocks_done >= 24; };
    const RunResult result = sim.run({64}, {32}, options);
    CHECK(result.status == RunStatus::kInterrupted);
    if (result.blocks_done == 20) { // else one thread went on
      was_seen = true;
      CHECK(sim.read(o)[0] == 19);
    }
  }
  CHECK(was_seen);
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

TEST_CASE("the insn limit, atomics put off") {
  check_threads(kReduces, {300}, {.max_insns = 7001});
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

/// Block 0..`consumers`-1 poll until block `producer` has written; `work` is done at each poll.
std::string polling(unsigned consumers, unsigned producer, const std::string& work = {}) {
  return "    mov.u32 r0, %ctaid.x\n    mov.u32 r2, 0\n    cmp.eq.u32 p0, r0, " +
         std::to_string(producer) + "\n@p0 bra produce\n    cmp.ge.u32 p0, r0, " +
         std::to_string(consumers) + "\n@p0 exit\nspin:\n" + work + R"(
    load.u32.cv r1, hbm[o]
    cmp.eq.u32 p0, r1, 3
@p0 bra spin
    add.u32 r1, r1, r2
    store.u32 hbm[o + r0*4 + 64], r1
    exit
produce:
    mov.u32 r1, 77
    store.u32 hbm[o], r1
    exit
)";
}

TEST_CASE("consumers on every thread spin") {
  check_threads(polling(3, 3), {40});
  const RunOutcome outcome = run_on(3, polling(3, 3), {40});
  CHECK(outcome.status == RunStatus::kCompleted);
  CHECK(outcome.memory[40 * 100 + 16 + 2] == 77); // what block 2 stored
}

TEST_CASE("a consumer and its producer in one chunk") {
  check_threads(polling(1, 1), {300});
}

TEST_CASE("a consumer that counts how often it polls") {
  check_threads(polling(1, 199, "    add.u32 r2, r2, 1\n"), {200});
}

TEST_CASE("consumers on every thread count how often they poll") {
  const auto run = [&](unsigned threads) {
    SimFixture sim(".pto 1\n.kernel k(ptr a, ptr o)\n" + polling(2, 3, "    add.u32 r2, r2, 1\n") +
                   ".end\n");
    sim.words({0});
    const uint64_t o = sim.words(std::vector<uint32_t>(100, 3));
    const RunResult result = sim.run({20}, {1024}, {.host_threads = threads});
    CHECK(result.status == RunStatus::kCompleted);
    CHECK_FALSE(result.is_parallel);
    return sim.read(o);
  };
  const std::vector<uint32_t> expected = run(1);
  CHECK(expected[16] > 77); // and how often block 0 polled
  CHECK(run(2) == expected);
}

TEST_CASE("loops that never end get the message of one thread") {
  check_threads("again:\n    bra again\n    exit\n", {40});
  check_threads(polling(40, 1000), {40});
}

TEST_CASE("the insn limit ends a loop that counts for ever") {
  check_threads(
      "again:\n    add.u32 r0, r0, 1\n    bra again\n    exit\n", {40}, {.max_insns = 1'000'000});
}

TEST_CASE("blocks that compute for long, or go on to other memory, stay parallel") {
  // Block 5 reads nothing. Block 7 reads its first word at every turn, and another one of its own
  // now and then. Both take more than 2^26 warp insns.
  SimFixture sim(R"(
.pto 1
.kernel k(ptr.u32 a)
    mov.u32 r0, %ctaid.x
    mul.u32 r9, r0, 4096
    mov.u32 r5, 0
    mov.u32 r6, 0
    cmp.eq.u32 p0, r0, 5
@p0 bra compute
    cmp.eq.u32 p0, r0, 7
@p0 bra read
    bra done
compute:
    add.u32 r5, r5, 1
    cmp.lt.u32 p0, r5, 720000
@p0 bra compute
    bra done
read:
    mad.u32 r8, r6, 16, r9
    load.u32 r1, hbm[a + r8*4]
    add.u32 r5, r5, r1
    mov.u32 r4, 36000
again:
    load.u32 r1, hbm[a + r9*4]
    sub.u32 r4, r4, r1
    cmp.ne.u32 p0, r4, 0
@p0 bra again
    add.u32 r6, r6, 1
    cmp.lt.u32 p0, r6, 16
@p0 bra read
done:
    store.u32 hbm[a + r9*4], r5
    exit
.end
)");
  std::vector<uint32_t> words(16 * 4096);
  for (uint32_t i = 0; i < words.size(); ++i) {
    words[i] = i % 4096 / 16 + 1;
  }
  const uint64_t a = sim.words(words);
  const RunResult result = sim.run({16}, {1024}, {.host_threads = 2});
  CHECK(result.status == RunStatus::kCompleted);
  CHECK(result.is_parallel);
  CHECK(result.counts.warp_insns > 2 * (uint64_t{1} << 26));
  CHECK(sim.read(a)[5 * 4096] == 720'000);
  CHECK(sim.read(a)[7 * 4096] == 16 * 17 / 2);
}

} // namespace
} // namespace pto::sim
