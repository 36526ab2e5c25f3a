// SPDX-License-Identifier: Apache-2.0
// Control flow of blocks: divergence, calls, exits, barriers; the same under every driver.
#include "sim_fixture.h"

#include <functional>

namespace pto::sim {
namespace {

/// Runs a kernel `k(ptr o)` that stores one word a lane, in every way there is, and compares.
void check_lanes(const std::string& body,
                 uint32_t lanes,
                 const std::function<uint32_t(uint32_t)>& expected,
                 const std::string& functions = {}) {
  const std::string text = ".pto 1\n" + functions + ".kernel k(ptr o)\n" + body + ".end\n";
  const auto check = [&](const SimFixture& sim, uint64_t out, const RunResult& result) {
    REQUIRE_MESSAGE(result.status == RunStatus::kCompleted,
                    (result.fault ? format_fault(*result.fault, *sim.program) : std::string()));
    const std::vector<uint32_t> got = sim.read(out);
    for (uint32_t i = 0; i < lanes; ++i) {
      CAPTURE(i);
      REQUIRE(got[i] == expected(i));
    }
  };
  {
    INFO("functional");
    SimFixture sim(text);
    const uint64_t out = sim.words(std::vector<uint32_t>(lanes));
    check(sim, out, sim.run({1}, {lanes}));
  }
  for (const char* name : {"lockstep", "greedy", "random:1", "random:2", "random:3"}) {
    CAPTURE(name);
    std::string error;
    SimFixture sim(text);
    const uint64_t out = sim.words(std::vector<uint32_t>(lanes));
    check(sim, out, run_scheduled(*sim.launch({1}, {lanes}), *parse_schedule(name, error)));
  }
}

TEST_CASE("lanes of nested ifs rejoin") {
  check_lanes(R"(
    mov.u32 r0, %tid.x
    and.b32 r1, r0, 1
    cmp.eq.u32 p0, r1, 0
    mov.u32 r2, 0
@p0 bra even
    and.b32 r3, r0, 2
    cmp.eq.u32 p1, r3, 0
@p1 bra odd_low
    add.u32 r2, r2, 100
    bra odd_done
odd_low:
    add.u32 r2, r2, 200
odd_done:
    mov.u32 r4, %activemask
    popc.b32 r4, r4
    add.u32 r2, r2, r4
    bra done
even:
    add.u32 r2, r2, 300
done:
    mov.u32 r4, %activemask
    popc.b32 r4, r4
    mul.u32 r4, r4, 1000
    add.u32 r2, r2, r4
    store.u32 hbm[o + r0*4], r2
    exit
)",
              80,
              [](uint32_t i) {
                const uint32_t warp_lanes = i < 64 ? 32 : 16;
                const uint32_t side = i % 2 == 0 ? 300 : (i & 2) == 0 ? 200 : 100;
                return warp_lanes * 1000 + side + (i % 2 == 0 ? 0 : warp_lanes / 2);
              });
}

TEST_CASE("loops with different trip counts and a break") {
  check_lanes(R"(
    mov.u32 r0, %tid.x
    mov.u32 r1, 0
    mov.u32 r2, 0
next:
    cmp.ge.u32 p0, r1, r0
@p0 bra done
    add.u32 r1, r1, 1
    add.u32 r2, r2, r1
    cmp.gt.u32 p1, r2, 500
@p1 bra done
    bra next
done:
    mov.u32 r3, %activemask
    popc.b32 r3, r3
    mul.u32 r3, r3, 10000
    add.u32 r2, r2, r3
    store.u32 hbm[o + r0*4], r2
    exit
)",
              100,
              [](uint32_t i) {
                uint32_t sum = 0;
                for (uint32_t k = 0; k < i && sum <= 500;) {
                  sum += ++k;
                }
                return sum + 10000 * (i < 96 ? 32u : 4u);
              });
}

TEST_CASE("lanes that exit early leave the others alone") {
  check_lanes(R"(
    mov.u32 r0, %tid.x
    rem.u32 r1, r0, 3
    cmp.eq.u32 p0, r1, 0
    mov.u32 r2, 7
    store.u32 hbm[o + r0*4], r2
@p0 exit
    cmp.eq.u32 p0, r1, 1
@p0 bra one
    store.u32 hbm[o + r0*4], r0
    exit
one:
    barrier_block
    mov.u32 r2, 9
    store.u32 hbm[o + r0*4], r2
    exit
)",
              1, // one lane: everything below would be a deadlock
              [](uint32_t) { return 7u; });
  check_lanes(R"(
    mov.u32 r0, %tid.x
    cmp.lt.u32 p0, r0, 40
    mov.u32 r2, 7
    store.u32 hbm[o + r0*4], r2
@p0 exit
    barrier_block
    store.u32 hbm[o + r0*4], r0
    exit
)",
              96,
              [](uint32_t i) { return i < 40 ? 7u : i; });
}

TEST_CASE("calls nest, return early and may be guarded") {
  check_lanes(R"(
    mov.u32 r0, %tid.x
    mov.u32 r1, 0
    and.b32 r2, r0, 1
    cmp.eq.u32 p0, r2, 0
@p0 call outer
    mov.u32 r3, %activemask
    popc.b32 r3, r3
    mul.u32 r3, r3, 1000
    add.u32 r1, r1, r3
    store.u32 hbm[o + r0*4], r1
    exit
)",
              64,
              [](uint32_t i) {
                const uint32_t called = i % 2 != 0 ? 0 : i % 4 == 0 ? 1 : 2 + 10 + 8;
                return 32000 + called;
              },
              R"(
.func outer
    and.b32 r4, r0, 2
    cmp.eq.u32 p1, r4, 0
    add.u32 r1, r1, 1
@p1 ret
    add.u32 r1, r1, 1
    call inner
    mov.u32 r5, %activemask
    popc.b32 r5, r5
    add.u32 r1, r1, r5
    ret
.end
.func inner
    add.u32 r1, r1, 10
    ret
.end
)");
}

TEST_CASE("recursion ends at the machine's depth") {
  const std::string text = R"(.pto 1
.kernel k(ptr o, u32 depth)
    mov.u32 r0, depth
    call down
    mov.u32 r1, 0
    store.u32 hbm[o + r1*4], r2
    exit
.end
.func down
    add.u32 r2, r2, 1
    sub.u32 r0, r0, 1
    cmp.eq.u32 p0, r0, 0
@p0 ret
    call down
    ret
.end
)";
  SimFixture sim(text);
  const uint64_t out = sim.words({0});
  sim.scalar(sim.machine.profile.call_depth);
  CHECK(sim.run({1}, {1}).status == RunStatus::kCompleted);
  CHECK(sim.read(out)[0] == sim.machine.profile.call_depth);
  sim.args.back().bits += 1;
  const RunResult result = sim.run({1}, {1});
  REQUIRE(result.status == RunStatus::kFault);
  CHECK(result.fault->kind == FaultKind::kCallDepth);
  CHECK(result.fault->message ==
        "a call nests deeper than 64 levels, the limit of machine reference: end the recursion "
        "earlier");
  CHECK(result.fault->loc.line == 14);
}

TEST_CASE("a block barrier orders scratchpad between warps") {
  check_lanes(R"(
.shared s, u32[256]
    mov.u32 r0, %tid.x
    mul.u32 r1, r0, 3
    store.u32 l1[s + r0*4], r1
    barrier_block
    mov.u32 r2, %blocksize
    sub.u32 r2, r2, r0
    sub.u32 r2, r2, 1
    load.u32 r3, l1[s + r2*4]
    barrier_block 3
    store.u32 hbm[o + r0*4], r3
    exit
)",
              100,
              [](uint32_t i) { return (99 - i) * 3; });
}

TEST_CASE("a barrier that part of a warp reaches is a deadlock that is explained") {
  SimFixture sim(R"(.pto 1
.kernel k(ptr o)
    mov.u32 r0, %tid.x
    cmp.lt.u32 p0, r0, 40
@!p0 bra skip
    barrier_block
skip:
    exit
.end
)");
  sim.words({0});
  const RunResult result = sim.run({1}, {64});
  REQUIRE(result.status == RunStatus::kDeadlock);
  CHECK(result.fault->message ==
        "deadlock in block 0: barrier_block in divergent code joins every lane of the block, but "
        "some lanes of a warp did not come with the others: move it to where all lanes pass");
  CHECK(result.fault->details ==
        "warp 0 waits at barrier_block 0, test.pto:6\n"
        "warp 1 waits at barrier_block 0, test.pto:6\n"
        "  with lanes 0-7 only; lanes 8-31 of the warp stand at test.pto:8 and cannot run before "
        "these go on\n");
}

TEST_CASE("warps at different barriers are a deadlock that is explained") {
  SimFixture sim(R"(.pto 1
.kernel k(ptr o)
    mov.u32 r0, %warp
    cmp.eq.u32 p0, r0, 0
@p0 bra first
    barrier_block 1
    exit
first:
    barrier_block 2
    exit
.end
)");
  sim.words({0});
  const RunResult result = sim.run({1}, {96});
  REQUIRE(result.status == RunStatus::kDeadlock);
  CHECK(result.fault->message ==
        "deadlock in block 0: its warps wait at 2 different barriers, each for the others: let all "
        "warps reach the same barrier_block");
  CHECK(result.fault->details == "warp 0 waits at barrier_block 2, test.pto:9\n"
                                 "warps 1-2 wait at barrier_block 1, test.pto:6\n");
}

TEST_CASE("faults name lane, address and allocation") {
  SimFixture sim(R"(.pto 1
.kernel k(ptr a)
    mov.u32 r0, %tid.x
    load.u32 r1, hbm[a + r0*4]
    store.u32 hbm[a + r0*4 + 4], r1
    exit
.end
)");
  const uint64_t a = sim.words(std::vector<uint32_t>(64, 5), "a");
  const RunResult result = sim.run({1}, {64});
  REQUIRE(result.status == RunStatus::kFault);
  const Fault& fault = *result.fault;
  CHECK(fault.kind == FaultKind::kOutOfBounds);
  CHECK(fault.warp == 1);
  CHECK(fault.lane == 31);
  CHECK(fault.lane_mask == 0x80000000u);
  CHECK(fault.address == a + 256);
  CHECK(fault.loc.line == 5);
  CHECK(fault.allocation == "allocation a (256 bytes) + 256: 4 bytes past the end");
  CHECK(sim.read(a) == std::vector<uint32_t>(64, 5)); // the store had no effect
}

TEST_CASE("misaligned and freed accesses") {
  SimFixture sim(R"(.pto 1
.kernel k(ptr a, u32 shift)
    mov.u32 r0, shift
    load.u32.x2 r1, hbm[a + r0*1]
    exit
.end
)");
  const uint64_t a = sim.words({1, 2, 3, 4}, "a");
  sim.scalar(4);
  RunResult result = sim.run({1}, {1});
  REQUIRE(result.status == RunStatus::kFault);
  CHECK(result.fault->kind == FaultKind::kMisaligned);
  sim.args.back().bits = 8;
  CHECK(sim.run({1}, {1}).status == RunStatus::kCompleted);
  sim.machine.hbm.free(a, "the test");
  result = sim.run({1}, {1});
  REQUIRE(result.status == RunStatus::kFault);
  CHECK(result.fault->kind == FaultKind::kFreed);
  CHECK(result.fault->allocation == "allocation a (16 bytes) + 8: freed by the test");
}

TEST_CASE("runaway kernels end at the limit, interrupts end at once") {
  SimFixture sim(R"(.pto 1
.kernel k()
again:
    bra again
    exit
.end
)");
  const RunResult result = sim.run({4}, {64}, {.max_insns = 100000});
  CHECK(result.status == RunStatus::kLimit);
  CHECK(result.counts.warp_insns >= 100000);
  CHECK(result.counts.warp_insns < 101000);
  const std::atomic<bool> stop{true};
  CHECK(sim.run({4}, {64}, {.interrupt = &stop}).status == RunStatus::kInterrupted);
}

TEST_CASE("blocks that wait for each other make progress") {
  SimFixture sim(R"(.pto 1
.kernel k(ptr flag, ptr o)
    mov.u32 r0, %ctaid.x
    mov.u32 r2, 0
    cmp.eq.u32 p0, r0, 0
@!p0 bra producer
spin:
    load.u32.cv r1, hbm[flag]
    cmp.eq.u32 p1, r1, 0
@p1 bra spin
    store.u32 hbm[o], r1
    exit
producer:
    mov.u32 r1, 42
    store.u32 hbm[flag], r1
    exit
.end
)");
  sim.words({0});
  const uint64_t out = sim.words({0});
  CHECK(sim.run({2}, {32}).status == RunStatus::kCompleted);
  CHECK(sim.read(out)[0] == 42);
}

TEST_CASE("a copy moves its data when it is waited for, at the end at the latest") {
  const std::string text = R"(.pto 1
.kernel k(ptr a, ptr o)
    alloc_local t0, 128
    async_load t0, hbm[a], 128, e1
    mov.u32 r0, %tid.x
    load.u32 r1, l1[t0 + r0*4]
    wait e1
    load.u32 r2, l1[t0 + r0*4]
    add.u32 r2, r2, r1
    store.u32 l1[t0 + r0*4], r2
    async_store hbm[o], t0, 128
    exit
.end
)";
  std::vector<uint32_t> input(32);
  for (uint32_t i = 0; i < 32; ++i) {
    input[i] = i + 1;
  }
  for (const CopyPolicy policy : {CopyPolicy::kAtWait, CopyPolicy::kAtIssue}) {
    SimFixture sim(text);
    sim.words(input);
    const uint64_t out = sim.words(std::vector<uint32_t>(32));
    REQUIRE(sim.run({1}, {32}, {.copies = policy}).status == RunStatus::kCompleted);
    CHECK(sim.read(out)[3] == (policy == CopyPolicy::kAtWait ? 4u : 8u));
  }
}

TEST_CASE("launches that do not fit are refused with the numbers") {
  SimFixture sim(R"(.pto 1
.kernel k(ptr a, u32 n)
.shared s, u8[1000]
    mov.u32 r0, n
    exit
.end
)");
  const auto message = [&](Dim3 grid, Dim3 block, std::vector<LaunchArg> args, uint32_t dynamic) {
    try {
      Launch launch(
          sim.machine,
          sim.program,
          {.grid = grid, .block = block, .args = std::move(args), .dynamic_l1_bytes = dynamic});
    } catch (const LaunchError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::vector<LaunchArg> two = {{}, {}};
  CHECK(message({1}, {32}, two, 0) == "no error");
  CHECK(message({1}, {2048}, two, 0) ==
        "block 2048 has 2048 lanes; machine reference allows 1024 in a block: use a smaller block");
  CHECK(message({1}, {1, 0}, two, 0) == "block 1x0 has no lanes; each extent must be at least 1");
  CHECK(message({65536, 65536}, {32}, two, 0) ==
        "grid 65536x65536 has 4294967296 blocks; machine reference allows 2147483647: let each "
        "block do more");
  CHECK(message({1}, {32}, {{}}, 0) == "kernel k takes 2 arguments (ptr a, u32 n); 1 given");
  CHECK(message({1}, {32}, {{}, {.bits = 0, .type = isa::Type::kF32}}, 0) ==
        "argument 2 of kernel k is f32; expected u32 n");
  CHECK(message({1}, {32}, two, 262144).substr(0, 77) ==
        "kernel k needs 263144 bytes of scratchpad; machine reference has 262144 (l1 o");
}

} // namespace
} // namespace pto::sim
