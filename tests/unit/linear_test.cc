// SPDX-License-Identifier: Apache-2.0
// Values kept as linear functions of the lane give what lanes computed one warp at a time give:
// the functional driver against the lockstep schedule, which steps warps and keeps none.
#include "isa/linear.h"
#include "random_choice.h"
#include "sim_fixture.h"

#include <random>

namespace pto::sim {
namespace {

using isa::LinearValue;

struct Memory {
  RunStatus status = RunStatus::kCompleted;
  std::string fault;
  std::vector<uint32_t> a;
  std::vector<uint32_t> out;
  uint64_t warp_insns = 0;
  uint64_t lane_insns = 0;
  bool operator==(const Memory&) const = default;
};

constexpr uint32_t kWords = 8192;

Memory run_one(const std::string& body, Dim3 grid, Dim3 block, bool is_functional) {
  SimFixture sim(".pto 1\n.kernel k(ptr a, ptr o, u32 n, s32 m)\n" + body + ".end\n");
  std::vector<uint32_t> input(kWords);
  for (uint32_t i = 0; i < kWords; ++i) {
    input[i] = i * 2654435761u;
  }
  const uint64_t a = sim.words(input, "a");
  const uint64_t o = sim.words(std::vector<uint32_t>(kWords, 7), "o");
  sim.scalar(100);
  sim.scalar(static_cast<uint64_t>(-3));
  std::string error;
  const RunOptions options{.host_threads = 1};
  const std::unique_ptr<Launch> launch = sim.launch(grid, block);
  const RunResult result =
      is_functional ? run_functional(*launch, options)
                    : run_scheduled(*launch, *parse_schedule("lockstep", error), options);
  return {.status = result.status,
          .fault = result.fault ? format_fault(*result.fault, *sim.program) : "",
          .a = sim.read(a),
          .out = sim.read(o),
          .warp_insns = result.counts.warp_insns,
          .lane_insns = result.counts.lane_insns};
}

void check_same(const std::string& body, Dim3 grid, Dim3 block) {
  CAPTURE(body);
  const Memory expected = run_one(body, grid, block, false);
  const Memory got = run_one(body, grid, block, true);
  CHECK(got.status == expected.status);
  CHECK(got.fault == expected.fault);
  if (expected.status == RunStatus::kCompleted) { // at a fault other warps stand elsewhere
    CHECK(got.warp_insns == expected.warp_insns);
    CHECK(got.lane_insns == expected.lane_insns);
  }
  CHECK(got.a == expected.a);
  CHECK(got.out == expected.out);
}

/// Every kind of place and step an address can have.
constexpr const char* kAccesses = R"(
    mov.u32 r0, %tid.x
    mov.u32 r1, %tid.y
    mov.u32 r2, %ctaid.x
    mad.u32 r3, r1, 32, r0
    mad.u32 r3, r2, 256, r3         // a lane's own cell in 1-D and 2-D blocks
    load.u32 r4, hbm[a + r3*4]
    load.u32 r5, hbm[a + 64]        // one cell for all lanes
    mul.u32 r6, r0, 3
    load.u32 r7, hbm[a + r6*4]      // a stride
    sub.u32 r8, 600, r0
    load.u32 r9, hbm[a + r8*4]      // downwards
    shl.b32 r10, r1, 5
    load.u32 r11, hbm[a + r10*4]    // one cell a warp
    load.u8 r12, hbm[a + r3]
    load.s16 r13, hbm[a + r3*2]
    load.u32.x4 r16, hbm[a + r0*16]
    mov.b64 d0, a
    mad.wide.u32 d1, r0, 4, d0
    load.u32 r20, hbm[d1 + 128]
    load.u32 r21, hbm[d0 + r3*4]
    load.u32 r22, hbm[d1 + r0*4]
    add.u32 r4, r4, r5
    xor.b32 r4, r4, r7
    add.u32 r4, r4, r9
    xor.b32 r4, r4, r11
    add.u32 r4, r4, r12
    xor.b32 r4, r4, r13
    add.u32 r4, r4, r17
    xor.b32 r4, r4, r19
    add.u32 r4, r4, r20
    xor.b32 r4, r4, r21
    add.u32 r4, r4, r22
    store.u32 hbm[o + r3*4], r4
    exit
)";

TEST_CASE("addresses of every form") {
  check_same(kAccesses, {3}, {256});
  check_same(kAccesses, {3}, {32, 8});
  check_same(kAccesses, {2}, {100});
  check_same(kAccesses, {2}, {16, 16});
  check_same(kAccesses, {1}, {32});
}

TEST_CASE("the last lane wins a store of all lanes to one place") {
  check_same(R"(
    mov.u32 r0, %gid.x
    mul.u32 r1, r0, 5
    store.u32 hbm[o], r1
    shr.b32 r2, r0, 5
    store.u32 hbm[o + r2*4 + 4], r1
    mov.u32 r3, %warp
    store.u32 hbm[o + r3*4 + 256], r0
    exit
)",
             {1},
             {256});
}

TEST_CASE("a linear register in divergent code") {
  check_same(R"(
    mov.u32 r0, %gid.x
    mov.u32 r1, %gsize.x
    mov.u32 r5, 0
    and.b32 r2, r0, 3
    cmp.eq.u32 p0, r2, 1
@p0 add.u32 r0, r0, 512             // some lanes change
    store.u32 hbm[o + r0*4], r1
    mov.u32 r3, %tid.x
    cmp.lt.u32 p1, r3, 40           // cuts through a warp
@!p1 bra skip
    mov.u32 r5, 9
    add.u32 r3, r3, 100
again:
    add.u32 r5, r5, 1
    add.u32 r6, r3, r5
    cmp.lt.u32 p2, r6, 120
@p2 bra again
skip:
    mad.u32 r4, r3, 2, r5
    mov.u32 r7, %gid.x
    store.u32 hbm[o + r7*4 + 16384], r4
    exit
)",
             {2},
             {128});
}

TEST_CASE("loads over their own address register") {
  check_same(R"(
    mov.u32 r0, %gid.x
    mov.u32 r9, r0
    load.u32 r0, hbm[a + r0*4]
    and.b32 r0, r0, 1023
    load.u32 r0, hbm[a + r0*4]
    mov.u32 r1, 4
    load.u32 r1, hbm[a + r1*4]
    add.u32 r1, r1, r0
    store.u32 hbm[o + r9*4], r1
    exit
)",
             {2},
             {256});
}

TEST_CASE("numbers that wrap") {
  check_same(R"(
    mov.u32 r0, %tid.x
    add.u32 r1, r0, 0xFFFFFF80      // wraps in lane 128
    cmp.lt.u32 p0, r1, 200
    cmp.lt.s32 p1, r1, 0
    mad.wide.u32 d0, r1, 4, a
    mad.wide.s32 d1, r1, 4, a
    cmp.ge.and.s32 p2, r1, 5, p1
    mov.u32 r2, 0
@p0 add.u32 r2, r2, 1
@p1 add.u32 r2, r2, 2
@p2 add.u32 r2, r2, 4
    mov.b64 d2, a
    sub.u64 d0, d0, d2
    cvt.u32.u64 r3, d0
    sub.u64 d1, d1, d2
    shr.b64 d1, d1, 32
    cvt.u32.u64 r4, d1
    add.u32 r2, r2, r3
    xor.b32 r2, r2, r4
    store.u32 hbm[o + r0*4], r2
    mul.u32 r5, r0, 0x4000_0001
    shl.b32 r5, r5, 30
    add.u32 r5, r5, m
    store.u32 hbm[o + r0*4 + 4096], r5
    load.u32 r6, hbm[a + r1*4 + 512] // negative index from lane 0 on
    store.u32 hbm[o + r0*4 + 8192], r6
    exit
)",
             {1},
             {256});
}

TEST_CASE("uniform values through insns without a linear form") {
  check_same(R"(
    mov.u32 r0, %ctaid.x
    add.u32 r0, r0, 17
    div.u32 r1, r0, 5
    rem.u32 r2, r0, 5
    cvt.f32.u32 r3, r0
    sqrt.f32 r3, r3
    cmp.gt.f32 p0, r3, 4.2
    popc.b32 r4, r0
    mov.u32 r5, n
    min.u32 r5, r5, r1
    mov.b64 d0, a
    not.b64 d1, d0
    not.b64 d1, d1
    load.u32 r6, hbm[d1 + r5*4]
    mov.u32 r7, %gid.x
@p0 add.u32 r6, r6, 1
    add.u32 r6, r6, r2
    xor.b32 r6, r6, r3
    add.u32 r6, r6, r4
    store.u32 hbm[o + r7*4], r6
    exit
)",
             {6},
             {128});
}

TEST_CASE("a fault names the same lane, and the insn has no effect") {
  check_same(R"(
    mov.u32 r0, %gid.x
    store.u32 hbm[o + r0*4], r0
    shl.b32 r1, r0, 6
    load.u32 r1, hbm[a + r1*4]
    store.u32 hbm[o + r0*4], r1
    exit
)",
             {1},
             {256});
  check_same(R"(
    mov.u32 r0, %tid.x
    mul.u32 r1, r0, 6
    load.u32 r2, hbm[a + r1]
    exit
)",
             {1},
             {64});
}

TEST_CASE("registers of a block can be read whenever it rests") {
  SimFixture sim(R"(.pto 1
.kernel k(ptr o)
    mov.u32 r0, %tid.x
    add.u32 r1, r0, 5
    mov.b64 d0, o
    mad.wide.u32 d1, r0, 4, d0
    barrier_block
    exit
.end
)");
  const uint64_t o = sim.words(std::vector<uint32_t>(64));
  const std::unique_ptr<Launch> launch = sim.launch({1}, {64});
  const std::unique_ptr<BlockRun> block = launch->next_block(0);
  CHECK(block->run(6) == BlockStop::kBudget);
  CHECK(block->reg32(1, 40) == 45);
  CHECK(block->state().reg32[64 + 63] == 68);
  CHECK(block->run(1000) == BlockStop::kDone);
  CHECK(block->reg32(0, 33) == 33);
  CHECK(block->reg64(1, 33) == o + 132);
}

TEST_CASE("random chains of integer insns") {
  std::mt19937 random(20);
  RandomChoice choose(random);
  for (unsigned round = 0; round < 60; ++round) {
    std::string body = "    mov.u32 r0, %tid.x\n    mov.u32 r1, %tid.y\n    mov.u32 r2, %gid.x\n"
                       "    mov.u32 r3, %ctaid.x\n    mov.u32 r4, %lane\n    mov.u32 r5, %warp\n";
    for (unsigned i = 0; i < 30; ++i) {
      const std::string guard =
          choose.below(5) == 0 ? "@p" + std::to_string(choose.below(2)) + " " : "    ";
      const std::string d = "r" + std::to_string(choose.below(6));
      const auto source = [&] {
        const unsigned kind = choose.below(8);
        return kind < 6    ? "r" + std::to_string(kind)
               : kind == 6 ? std::string("n")
                           : std::to_string(static_cast<int64_t>(random()) - (int64_t{1} << 31));
      };
      const char* kTwo[] = {"add.u32", "sub.s32", "mul.u32", "and.b32", "max.s32"};
      const char* kCompare[] = {"eq", "ne", "lt", "le", "gt", "ge"};
      const unsigned what = choose.below(9);
      if (what < 5) {
        body += guard + kTwo[what] + " " + d + ", " + source() + ", " + source() + "\n";
      } else if (what == 5) {
        body += guard + "mad.u32 " + d + ", " + source() + ", " + source() + ", " + source() + "\n";
      } else if (what == 6) {
        body += guard + "shl.b32 " + d + ", " + source() + ", " + std::to_string(choose.below(40)) +
                "\n";
      } else if (what == 7) {
        body += guard + "mov.u32 " + d + ", " + source() + "\n";
      } else {
        const std::string type = choose.below(2) == 0 ? "u32" : "s32";
        body += guard + "cmp." + kCompare[choose.below(6)] + "." + type + " p" +
                std::to_string(choose.below(2)) + ", " + source() + ", " + source() + "\n";
      }
    }
    body += "    mov.u32 r9, %tid.y\n    mov.u32 r8, %ntid.x\n    mov.u32 r7, %tid.x\n"
            "    mad.u32 r7, r9, r8, r7\n    mov.u32 r9, %ctaid.x\n    mad.u32 r7, r9, 256, r7\n";
    for (unsigned i = 0; i < 6; ++i) {
      body += "    store.u32 hbm[o + r7*4 + " + std::to_string(i * 4096) + "], r" +
              std::to_string(i) + "\n";
    }
    body += "@p0 store.u32 hbm[o + r7*4 + 28672], r7\n    exit\n";
    check_same(body, {2}, round % 3 == 0 ? Dim3{32, 4} : round % 3 == 1 ? Dim3{256} : Dim3{70});
  }
}

TEST_CASE("linear ranges") {
  const auto range = isa::linear_range(LinearValue{0xFFFFFFFF, 1, 32}, 2, true);
  REQUIRE(range.has_value());
  CHECK(range->lowest == -1);
  CHECK(range->highest == 62);
  CHECK_FALSE(isa::linear_range(LinearValue{0xFFFFFFFF, 1, 32}, 2, false).has_value());
  CHECK_FALSE(isa::linear_range(LinearValue{0x7FFFFFF0, 1, 32}, 1, true).has_value());
  const auto down = isa::linear_range(LinearValue{100, 0xFFFFFFFF, 0}, 4, false);
  REQUIRE(down.has_value());
  CHECK(down->lowest == 69);
  CHECK(down->highest == 100);
}

} // namespace
} // namespace pto::sim
