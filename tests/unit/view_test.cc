// SPDX-License-Identifier: Apache-2.0
// Registers that still lie where they were loaded from: whoever changes that memory, they keep
// their value.
#include "sim_fixture.h"

namespace pto::sim {
namespace {

constexpr uint32_t kLanes = 64;
constexpr uint32_t kWords = 256; // of a, and of o
constexpr unsigned kRegs32 = 8;
constexpr unsigned kRegs64 = 4;

/// r0 is the lane; a points to word 64 of its buffer, so that there is room on both sides.
std::string kernel_of(const std::string& body) {
  std::string constants = "1";
  for (uint32_t i = 1; i < kLanes; ++i) {
    constants += ", " + std::to_string(i * i);
  }
  return ".pto 1\n.const c, u32 {" + constants +
         "}\n.kernel k(ptr a, ptr o, u32 n)\n.shared s, u32[128]\n    mov.u32 r0, %tid.x\n" + body +
         ".end\n";
}

uint32_t input(uint32_t word) {
  return word * 2654435761u + 7;
}

void bind(SimFixture& sim) {
  std::vector<uint32_t> values(kWords);
  for (uint32_t i = 0; i < kWords; ++i) {
    values[i] = input(i);
  }
  sim.words(values, "a");
  sim.words(std::vector<uint32_t>(kWords, 3), "o");
  sim.args[0].bits += kLanes * 4;
  sim.scalar(kLanes - 5);
}

/// What a block leaves behind: memory, and every register in every lane.
struct Outcome {
  BlockStop stop = BlockStop::kDone;
  std::string fault;
  std::vector<std::vector<uint32_t>> memory;
  std::vector<uint32_t> reg32;
  std::vector<uint64_t> reg64;
  bool operator==(const Outcome&) const = default;
};

Outcome outcome_of(const SimFixture& sim, const BlockRun& block, BlockStop stop) {
  Outcome outcome{.stop = stop, .fault = {}, .memory = {}, .reg32 = {}, .reg64 = {}};
  if (block.has_fault()) {
    outcome.fault = format_fault(*block.fault(), *sim.program);
  }
  for (const Allocation& allocation : sim.machine.hbm.live()) {
    outcome.memory.push_back(sim.read(allocation.base));
  }
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    for (unsigned i = 0; i < kRegs32; ++i) {
      outcome.reg32.push_back(block.reg32(i, lane));
    }
    for (unsigned i = 0; i < kRegs64; ++i) {
      outcome.reg64.push_back(block.reg64(i, lane));
    }
  }
  return outcome;
}

/// Warp by warp and insn by insn: no span, so no view.
Outcome stepped(const std::string& body) {
  SimFixture sim(kernel_of(body));
  bind(sim);
  const std::unique_ptr<Launch> launch = sim.launch({1}, {kLanes});
  const std::unique_ptr<BlockRun> block = launch->next_block(0);
  while (block->has_ready_warp() && !block->has_fault()) {
    for (uint32_t w = 0; w < block->warp_count() && !block->has_fault(); ++w) {
      if (block->is_ready(w)) {
        block->step(w);
      }
    }
  }
  const BlockStop stop = block->has_fault() ? BlockStop::kFault : BlockStop::kDone;
  block->finish();
  return outcome_of(sim, *block, stop);
}

Outcome in_spans(const std::string& body, uint64_t budget) {
  SimFixture sim(kernel_of(body));
  bind(sim);
  const std::unique_ptr<Launch> launch = sim.launch({1}, {kLanes});
  const std::unique_ptr<BlockRun> block = launch->next_block(0);
  BlockStop stop = BlockStop::kBudget;
  while (stop == BlockStop::kBudget) {
    stop = block->run(budget);
  }
  block->finish();
  return outcome_of(sim, *block, stop);
}

Outcome check_same(const std::string& body) {
  CAPTURE(body);
  const Outcome expected = stepped(body);
  CHECK(in_spans(body, UINT64_MAX) == expected);
  CHECK(in_spans(body, 2) == expected);
  return expected;
}

} // namespace

TEST_CASE("a loaded register outlives a store of its own block") {
  const Outcome same = check_same(R"(
    load.u32 r1, hbm[a + r0*4]
    store.u32 hbm[a + r0*4], 9
    add.u32 r2, r1, 1
    store.u32 hbm[o + r0*4], r1
    exit
)");
  CHECK(same.memory[0][kLanes + 5] == 9);
  CHECK(same.memory[1][5] == input(kLanes + 5));
  check_same(R"( // one element on, so that most lanes lose another one's
    load.u32 r1, hbm[a + r0*4]
    barrier_block
    store.u32 hbm[a + r0*4 + 4], r1
    barrier_block
    load.u32 r2, hbm[a + r0*4]
    sub.u32 r3, r1, r2
    exit
)");
  check_same(R"( // a byte of the last one
    load.u32 r1, hbm[a + r0*4]
    barrier_block
    store.u8 hbm[a + r0 + 252], r0
    add.u32 r2, r1, 1
    exit
)");
  check_same(R"( // some lanes
    load.u32 r1, hbm[a + r0*4]
    cmp.lt.u32 p0, r0, 11
@p0 store.u32 hbm[a + r0*4], r0
    add.u32 r2, r1, 1
    exit
)");
  check_same(R"( // with a stride
    load.u32 r1, hbm[a + r0*4]
    barrier_block
    shr.b32 r3, r0, 1
    shl.b32 r3, r3, 1
    store.u32 hbm[a + r3*4], 5
    shl.b32 r4, r0, 1
    store.u32 hbm[o + r4*4], r1
    exit
)");
  check_same(R"( // scattered
    load.u32 r1, hbm[a + r0*4]
    barrier_block
    mul.u32 r3, r0, 5
    and.b32 r3, r3, 63
    store.u32 hbm[a + r3*4], r0
    add.u32 r2, r1, 1
    exit
)");
  check_same(R"( // over two allocations
    load.u32 r1, hbm[a + r0*4]
    barrier_block
    mov.b64 d0, a
    mov.b64 d1, o
    and.b32 r3, r0, 1
    cmp.eq.u32 p0, r3, 0
    sel.b64 d2, d0, d1, p0
    store.u32 hbm[d2 + r0*4], r0
    add.u32 r2, r1, 1
    exit
)");
  check_same(R"( // vectors, and 64 bits
    load.u32 r1, hbm[a + r0*4]
    load.u64 d1, hbm[o + r0*8]
    barrier_block
    shl.b32 r3, r0, 1
    and.b32 r3, r3, 126
    store.u32.x2 hbm[o + r3*4], r0
    store.u64 hbm[a + r0*8], d1
    add.u64 d2, d1, d1
    add.u32 r4, r1, 1
    exit
)");
}

TEST_CASE("a loaded register outlives what else writes memory") {
  check_same(R"(
    load.u32 r1, hbm[a + r0*4]
    atom.add.u32 r2, hbm[a + r0*4], 1
    sub.u32 r3, r2, r1
    exit
)");
  check_same(R"(
    load.u32 r1, hbm[a + r0*4]
    barrier_block
    and.b32 r3, r0, 3
    atom.add.u32 _, hbm[a + r3*4], 1
    barrier_block
    load.u32 r4, hbm[a + r0*4]
    sub.u32 r5, r4, r1
    exit
)");
  const std::string of_scratchpad = R"(
    store.u32 l1[s + r0*4], r0
    barrier_block
    load.u32 r1, l1[s + r0*4]
    load.u32 r2, hbm[o + r0*4]
    barrier_block
)";
  for (const std::string change : {"store.u32 l1[s + r0*4], 9",
                                   "fill.b32 l1[s], 7, 128",
                                   "alloc_local t0, 4096",
                                   "async_load l1[s], hbm[a], 256",
                                   "async_store hbm[o], l1[s + 8], 256"}) {
    check_same(of_scratchpad + "    " + change + R"(
    wait_all
    barrier_block
    load.u32 r3, l1[s + r0*4]
    load.u32 r4, hbm[o + r0*4]
    add.u32 r5, r1, r2
    exit
)");
  }
  check_same(R"( // a tile goes, and its place serves another one
    alloc_local t0, 256
    barrier_block
    load.u32 r1, l1[t0 + r0*4]
    barrier_block
    free_local t0
    alloc_local t1, 512
    fill.b32 t1, 6
    barrier_block
    load.u32 r2, l1[t1 + r0*4]
    add.u32 r3, r1, r2
    exit
)");
}

TEST_CASE("loaded registers are read and written as any other") {
  check_same(R"( // an index, a base and the operand of a shuffle
    load.u32 r1, hbm[a + r0*4]
    and.b32 r2, r1, 63
    store.u32 hbm[o + r0*4], r2
    barrier_block
    load.u32 r3, hbm[o + r0*4]
    load.u32 r4, hbm[a + r3*4]
    mov.b64 d0, a
    store.u64 hbm[o + r0*8 + 256], d0
    load.u64 d1, hbm[o + r0*8 + 256]
    load.u32 r5, hbm[d1 + r3*4]
    shfl.down.b32 r6, r4, 1
    and.b32 r4, r4, 60
    store.u32 hbm[o + r0*4], r4
    load.u32 r4, hbm[o + r0*4]
    load.u32 r4, hbm[a + r4]
    exit
)");
  check_same(R"( // some lanes are overwritten, by a value and by a load
    load.u32 r1, hbm[a + r0*4]
    load.u32 r2, hbm[a + r0*4]
    load.u64 d0, hbm[o + r0*8]
    cmp.lt.u32 p0, r0, 37
@p0 mov.u32 r1, 5
@p0 load.u32 r2, hbm[o + r0*4]
@p0 mov.b64 d0, 4
    add.u32 r3, r1, r2
    exit
)");
  check_same(R"( // all of them, then the memory
    load.u32 r1, hbm[a + r0*4]
    load.u32 r2, hbm[a + r0*4]
    mov.u32 r1, 5
    add.u32 r2, r2, r0
    store.u32 hbm[a + r0*4], r2
    add.u32 r3, r1, r2
    exit
)");
  check_same(R"( // shorter elements, and constants
    load.u8 r1, hbm[a + r0]
    load.s16 r2, hbm[a + r0*2]
    load.u32 r3, const[c + r0*4]
    store.u32 hbm[a + r0*4], r3
    add.u32 r4, r1, r2
    exit
)");
  check_same(R"( // warps go apart and meet again
    load.u32 r1, hbm[a + r0*4]
    cmp.lt.u32 p0, r0, 40
@p0 bra less
    store.u32 hbm[a + r0*4], 1
    bra both
less:
    store.u32 hbm[a + r0*4], 2
both:
    load.u32 r2, hbm[a + r0*4]
    add.u32 r3, r1, r2
    exit
)");
  check_same(R"( // in a loop, in place
    mov.u32 r2, 0
again:
    load.u32 r1, hbm[a + r0*4]
    mad.u32 r3, r1, 3, r2
    store.u32 hbm[a + r0*4], r3
    add.u32 r2, r2, 1
    cmp.lt.u32 p0, r2, 9
@p0 bra again
    exit
)");
}

TEST_CASE("a result that is computed where it is stored is that of its register, too") {
  const std::string in_place = R"(
    load.u32 r1, hbm[a + r0*4]
    mad.u32 r1, r1, 3, r1
    store.u32 hbm[a + r0*4], r1
    add.u32 r2, r1, 1
    exit
)";
  CHECK(program_of(kernel_of(in_place))->at(2).feeds_store);
  const Outcome same = check_same(in_place);
  CHECK(same.memory[0][kLanes + 9] == 4 * input(kLanes + 9));
  CHECK(same.reg32[9 * kRegs32 + 2] == 4 * input(kLanes + 9) + 1);
  check_same(R"( // beside it: what is read lies in other lanes of what is written
    load.u32 r1, hbm[a + r0*4]
    load.u32 r2, hbm[a + r0*4 + 8]
    barrier_block
    xor.b32 r1, r1, r2
    store.u32 hbm[a + r0*4 + 4], r1
    add.u32 r3, r1, r2
    exit
)");
  check_same(R"( // another register lies there, and keeps its value
    load.u32 r1, hbm[a + r0*4]
    load.u32 r2, hbm[a + r0*4]
    add.u32 r3, r1, r2
    store.u32 hbm[a + r0*4], r3
    sub.u32 r4, r1, r2
    add.u32 r5, r2, r3
    exit
)");
  check_same(R"( // twice, the second time from the first
    load.u32 r1, hbm[a + r0*4]
    not.b32 r2, r1
    store.u32 hbm[o + r0*4], r2
    add.u32 r3, r2, r2
    store.u32 hbm[o + r0*4], r3
    store.u32 hbm[a + r0*4], r2
    exit
)");
  check_same(R"( // 64 bits, and 32 of them in half the place
    load.u64 d1, hbm[o + r0*8]
    load.u32 r1, hbm[o + r0*4]
    barrier_block
    add.u64 d1, d1, d1
    store.u64 hbm[o + r0*8], d1
    cvt.u32.u64 r2, d1
    store.u32 hbm[o + r0*4 + 256], r2
    add.u64 d2, d1, 1
    add.u32 r3, r1, r2
    exit
)");
  check_same(R"( // on the scratchpad: a symbol, then a tile
    alloc_local t0, 256
    load.u32 r1, hbm[a + r0*4]
    barrier_block
    mul.u32 r2, r1, r1
    store.u32 l1[s + r0*4], r2
    mul.u32 r3, r1, r2
    store.u32 l1[t0 + r0*4], r3
    load.u32 r4, l1[s + r0*4]
    load.u32 r5, l1[t0 + r0*4]
    barrier_block
    fill.b32 l1[s], 7, 128
    free_local t0
    exit
)");
  check_same(R"( // in a loop, with constants and a linear source
    mov.u32 r2, 0
again:
    load.u32 r1, hbm[a + r0*4]
    mad.u32 r1, r1, n, r0
    store.u32 hbm[a + r0*4], r1
    add.u32 r2, r2, 1
    cmp.lt.u32 p0, r2, 9
@p0 bra again
    exit
)");
}

TEST_CASE("results that are not computed where they are stored") {
  const auto feeds = [](const std::string& store) {
    const std::string body = R"(
    load.u32 r1, hbm[a + r0*4]
    cmp.lt.u32 p0, r0, 11
    add.u32 r1, r1, 5
    )" + store + "\n    add.u32 r3, r1, 1\n    exit\n";
    check_same(body);
    return program_of(kernel_of(body))->at(3).feeds_store;
  };
  CHECK(feeds("store.u32 hbm[a + r0*4], r1"));
  CHECK(feeds("store.f32 hbm[o + r0*8], r1"));           // only every other word
  CHECK(feeds("store.u32 l1[t0 + r0*4], r1"));           // a fault: there is no tile
  CHECK(feeds("store.u32 hbm[o + r0*4 + 1022], r1"));    // another one: outside, and not aligned
  CHECK(feeds("store.u32 hbm[o + r0*4 + 1020], r1"));    // the first lane is inside
  CHECK_FALSE(feeds("store.u16 hbm[o + r0*2], r1"));     // half of it
  CHECK_FALSE(feeds("store.u32 hbm[o + r0*4], r0"));     // another register
  CHECK_FALSE(feeds("store.u32 hbm[o + r0*4], 5"));      // no register
  CHECK_FALSE(feeds("store.u32.x2 hbm[o + r0*8], r1"));  // more of them
  CHECK_FALSE(feeds("store.u32 l1[r1], r1"));            // where it itself says
  CHECK_FALSE(feeds("@p0 store.u32 hbm[o + r0*4], r1")); // in some lanes
  CHECK_FALSE(feeds("barrier_block"));
  check_same(R"( // half of the lanes, then their join between the two
    load.u32 r1, hbm[a + r0*4]
    and.b32 r2, r0, 1
    cmp.eq.u32 p0, r2, 0
@p0 bra even
    add.u32 r1, r1, 5
even:
    store.u32 hbm[o + r0*4], r1
    mul.u32 r1, r1, r1
    store.u32 hbm[a + r0*4], r1
    exit
)");
  check_same(R"( // a jump to the store
    load.u32 r1, hbm[a + r0*4]
    mov.u32 r2, 0
    bra store
again:
    add.u32 r1, r1, r1
store:
    store.u32 hbm[a + r0*4], r1
    add.u32 r2, r2, 1
    cmp.lt.u32 p0, r2, 3
@p0 bra again
    exit
)");
}

TEST_CASE("a fault finds the loaded registers") {
  const Outcome trapped = check_same(R"(
    load.u32 r1, hbm[a + r0*4]
    store.u32 hbm[a + r0*4], 8
    load.u32 r2, hbm[a + r0*4]
    trap 3
    exit
)");
  CHECK(trapped.stop == BlockStop::kFault);
  CHECK(trapped.reg32[1] == input(kLanes));
  CHECK(trapped.reg32[2] == 8);
  const Outcome outside = check_same(R"(
    load.u32 r1, hbm[a + r0*4]
    load.u32 r1, hbm[a + r0*4 + 8192]
    exit
)");
  CHECK(outside.stop == BlockStop::kFault);
  CHECK(outside.reg32[1] == input(kLanes));
}

TEST_CASE("what changes memory between two calls of run() leaves registers alone") {
  SimFixture sim(kernel_of(R"(
    load.u32 r1, hbm[a + r0*4]
    add.u32 r2, r1, 1
    add.u32 r3, r1, 2
    exit
)"));
  bind(sim);
  const std::unique_ptr<Launch> launch = sim.launch({1}, {kLanes});
  const std::unique_ptr<BlockRun> block = launch->next_block(0);
  REQUIRE(block->run(4) == BlockStop::kBudget); // two insns of two warps
  const uint8_t change[4] = {1, 0, 0, 0};
  REQUIRE(sim.machine.hbm.write(sim.args[0].bits + 12, change));
  CHECK(block->reg32(1, 3) == input(kLanes + 3));
  REQUIRE(block->run(UINT64_MAX) == BlockStop::kDone);
  CHECK(block->reg32(3, 3) == input(kLanes + 3) + 2);
  REQUIRE(sim.machine.hbm.write(sim.args[0].bits + 16, change));
  CHECK(block->reg32(1, 4) == input(kLanes + 4));
  CHECK(block->state().reg32[kLanes + 4] == input(kLanes + 4));
}

} // namespace pto::sim
