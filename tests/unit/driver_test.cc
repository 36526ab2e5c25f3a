// SPDX-License-Identifier: Apache-2.0
// Drivers and what hangs on them: observers, snapshots, prints, %clock.
#include "sim_fixture.h"
#include "simulator/observer.h"
#include "simulator/snapshot.h"
#include "simulator/timed.h"

namespace pto::sim {
namespace {

// A race on purpose: which lane's value stays, and what lanes read, depends on the order.
constexpr const char* kRacy = R"(.pto 1
.kernel k(ptr a, ptr o)
.shared s, u32[64]
    mov.u32 r0, %tid.x
    mov.u32 r4, %ctaid.x
    and.b32 r1, r0, 15
    mov.u32 r5, 0
    mov.u32 r8, 0
next:
    add.u32 r8, r8, 1
    atom.add.u32 r2, hbm[a + r1*4], r0
    add.u32 r5, r5, r2
    store.u32 l1[s + r1*4], r2
    load.u32 r3, l1[s + r1*4]
    add.u32 r5, r5, r3
    and.b32 r6, r5, 7
    cmp.ne.u32 p0, r6, 0
    cmp.lt.and.u32 p0, r8, 20, p0
@p0 bra next
    mov.u32 r7, %gid.x
    store.u32 hbm[o + r7*4], r5
    exit
.end
)";

struct Counter : Observer {
  Wants wants() const override { return ~Wants{0}; }
  void before_insn(const EventSite&, uint32_t, uint32_t) override { ++before; }
  void after_insn(const BlockRun&, const IssueRecord& record) override {
    ++after;
    lanes += static_cast<uint64_t>(__builtin_popcount(record.exec_mask));
  }
  void block_begin(const BlockRun&) override { ++begun; }
  void block_end(const BlockRun&) override { ++ended; }
  void diverge(const EventSite&, uint32_t, uint32_t, uint32_t) override { ++diverged; }
  void exit_lanes(const EventSite&, uint32_t mask) override {
    exited += static_cast<unsigned>(__builtin_popcount(mask));
  }
  uint64_t before = 0;
  uint64_t after = 0;
  uint64_t lanes = 0;
  unsigned begun = 0;
  unsigned ended = 0;
  unsigned diverged = 0;
  unsigned exited = 0;
};

TEST_CASE("observers see every insn and change nothing, even of a racy program") {
  std::vector<uint32_t> plain[2];
  RunResult results[2];
  for (int observed = 0; observed < 2; ++observed) {
    SimFixture sim(kRacy);
    const uint64_t a = sim.words(std::vector<uint32_t>(16));
    const uint64_t out = sim.words(std::vector<uint32_t>(5 * 150));
    auto launch = sim.launch({5}, {150});
    Counter counter;
    if (observed != 0) {
      launch->observers().attach(counter);
    }
    results[observed] = run_functional(*launch);
    REQUIRE(results[observed].status == RunStatus::kCompleted);
    plain[observed] = sim.read(out);
    const std::vector<uint32_t> sums = sim.read(a);
    plain[observed].insert(plain[observed].end(), sums.begin(), sums.end());
    if (observed != 0) {
      CHECK(counter.before == results[1].counts.warp_insns);
      CHECK(counter.after == results[1].counts.warp_insns);
      CHECK(counter.lanes == results[1].counts.lane_insns);
      CHECK(counter.begun == 5);
      CHECK(counter.ended == 5);
      CHECK(counter.diverged > 0);
      CHECK(counter.exited == 5 * 150);
    }
  }
  CHECK(plain[0] == plain[1]);
  CHECK(results[0].counts.warp_insns == results[1].counts.warp_insns);
  CHECK(results[0].counts.lane_insns == results[1].counts.lane_insns);
}

TEST_CASE("a snapshot repeats what followed it") {
  SimFixture sim(kRacy);
  const uint64_t a = sim.words(std::vector<uint32_t>(16));
  const uint64_t out = sim.words(std::vector<uint32_t>(150));
  auto launch = sim.launch({1}, {150});
  HbmHistory history(sim.machine.hbm);
  ResidentBlocks blocks(1);
  blocks[0] = launch->next_block(0);
  CHECK(blocks[0]->run(200) == BlockStop::kBudget);
  const Snapshot snapshot = take_snapshot(*launch, blocks, history);
  const std::vector<uint32_t> middle = sim.read(a);
  CHECK(blocks[0]->run(UINT64_MAX) == BlockStop::kDone);
  const std::vector<uint32_t> end = sim.read(out);
  const InsnCounts counts = blocks[0]->counts();
  REQUIRE(restore_snapshot(snapshot, *launch, blocks, history));
  CHECK(sim.read(a) == middle);
  CHECK(sim.read(out) != end);
  CHECK(blocks[0]->run(UINT64_MAX) == BlockStop::kDone);
  CHECK(sim.read(out) == end);
  CHECK(blocks[0]->counts().warp_insns == counts.warp_insns);
}

TEST_CASE("a stuck run is found stuck again after going back") {
  SimFixture sim(R"(.pto 1
.kernel k(ptr a)
again:
    load.u32.cv r0, hbm[a]
    cmp.eq.u32 p0, r0, 0
@p0 bra again
    exit
.end
)");
  sim.words({0}, "a");
  auto launch = sim.launch({1}, {32});
  HbmHistory history(sim.machine.hbm);
  SharedMemory shared(sim.machine.profile);
  TimedOptions options;
  options.max_insns = uint64_t{1} << 20;
  TimedRun run(*launch, shared, options);
  REQUIRE(run.step());
  const TimedSnapshot begin = run.save(history);
  CHECK(run.run() == RunStatus::kDeadlock);
  const uint64_t insns = run.counts().warp_insns;
  REQUIRE(run.restore(begin, history));
  CHECK(run.run() == RunStatus::kDeadlock);
  CHECK(run.counts().warp_insns >= insns); // whoever goes back to before it gets there
}

TEST_CASE("a warp steps on where a run of spans stopped") {
  SimFixture sim(R"(.pto 1
.kernel k(ptr a)
    mov.u32 r0, 1
    load.u32 r1, hbm[a]
    load.u32.x4 r4, hbm[a + 16]
    exit
.end
)");
  std::vector<uint32_t> values(8);
  for (uint32_t i = 0; i < values.size(); ++i) {
    values[i] = 100 + i;
  }
  sim.words(values, "a");
  auto launch = sim.launch({1}, {32});
  auto block = launch->next_block(0);
  CHECK(block->run(1) == BlockStop::kBudget);
  block->step(0);
  block->step(0);
  for (const uint32_t lane : {0u, 31u}) {
    CHECK(block->reg32(0, lane) == 1);
    CHECK(block->reg32(1, lane) == 100);
    for (unsigned j = 0; j < 4; ++j) {
      CHECK(block->reg32(4 + j, lane) == 104 + j);
    }
  }
}

TEST_CASE("stepping warp by warp gives records") {
  SimFixture sim(R"(.pto 1
.kernel k(ptr a, u32 n)
    mov.u32 r0, %tid.x
    cmp.lt.u32 p0, r0, n
@p0 load.u32.cg.x2 r1, hbm[a + r0*8 + 16]
@p0 bra end
    nop 5
end:
    barrier_block 2
    exit
.end
)");
  const uint64_t a = sim.words(std::vector<uint32_t>(64), "a");
  sim.scalar(20);
  auto launch = sim.launch({1}, {32});
  auto block = launch->next_block(3);
  block->step(0);
  block->step(0);
  const IssueRecord load = block->step(0);
  CHECK(load.core == 3);
  CHECK(load.pc == 2);
  CHECK(load.active_mask == ~0u);
  CHECK(load.exec_mask == 0xfffff);
  CHECK(load.access_bytes == 8);
  CHECK(load.element_bytes == 4);
  CHECK(load.hint == isa::CacheHint::kL2);
  CHECK(load.reads_memory);
  CHECK_FALSE(load.writes_memory);
  CHECK(load.is_strided);
  CHECK(load.stride == 8);
  CHECK(load.addresses[3] == a + 40);
  CHECK(load.decoded->reads.has_reg32(0));
  CHECK(load.decoded->writes.has_reg32(2));
  const IssueRecord branch = block->step(0);
  CHECK(branch.taken_mask == 0xfffff);
  CHECK(branch.diverged);
  CHECK(branch.next_pc == 4);
  CHECK(branch.next_mask == 0xfff00000);
  const IssueRecord nop = block->step(0);
  CHECK(nop.nop_cycles == 5);
  CHECK(nop.next_pc == 5);
  CHECK(nop.next_mask == ~0u); // rejoined
  const IssueRecord barrier = block->step(0);
  CHECK(barrier.barrier_id == 2);
  CHECK(barrier.releases_barrier);
  const IssueRecord last = block->step(0);
  CHECK(last.exited_mask == ~0u);
  CHECK(last.next_mask == 0);
  CHECK(block->is_done());
}

TEST_CASE("print writes a line a lane, in order") {
  SimFixture sim(R"(.pto 1
.kernel k(ptr a)
    mov.u32 r0, %gid.x
    sub.s32 r1, r0, 2
    cvt.f32.s32 r2, r1
    mov.b64 d0, a
    and.b32 r3, r0, 1
    cmp.eq.u32 p0, r3, 0
@p0 print "%d is %f, %u %x %p 100%%", r1, r2, r0, r1, d0
    exit
.end
)");
  sim.words({0});
  const RunResult result = sim.run({2}, {2});
  REQUIRE(result.prints.size() == 2);
  CHECK(result.prints[0].text == "-2 is -2.000000, 0 fffffffe 0x10000000 100%");
  CHECK(result.prints[1].text == "0 is 0.000000, 2 0 0x10000000 100%");
  CHECK(result.prints[1].block == 1);
  CHECK(result.prints[1].lane == 0);
}

TEST_CASE("special registers follow the shape of grid and block") {
  SimFixture sim(R"(.pto 1
.kernel k(ptr o)
    mov.u32 r0, %gid.x
    mov.u32 r1, %gid.y
    mov.u32 r2, %gsize.x
    mul.u32 r2, r2, r1
    add.u32 r2, r2, r0
    mov.u32 r3, %tid.y
    mul.u32 r3, r3, 100
    mov.u32 r4, %ctaid.x
    add.u32 r3, r3, r4
    store.u32 hbm[o + r2*4], r3
    exit
.end
)");
  const uint64_t out = sim.words(std::vector<uint32_t>(3 * 10 * 2 * 5));
  REQUIRE(sim.run({3, 2}, {10, 5}).status == RunStatus::kCompleted);
  const std::vector<uint32_t> got = sim.read(out);
  for (uint32_t y = 0; y < 10; ++y) {
    for (uint32_t x = 0; x < 30; ++x) {
      CHECK(got[y * 30 + x] == (y % 5) * 100 + x / 10);
    }
  }
}

TEST_CASE("schedules are named") {
  std::string error;
  CHECK(to_string(*parse_schedule("lockstep", error)) == "lockstep");
  CHECK(to_string(*parse_schedule("random:18446744073709551615", error)) ==
        "random:18446744073709551615");
  CHECK_FALSE(parse_schedule("random:x", error).has_value());
  CHECK(error == "schedule 'random:x': expected random:SEED with a seed from 0 to 2^64-1, such as "
                 "random:7");
  CHECK_FALSE(parse_schedule("fair", error).has_value());
  CHECK(error == "unknown schedule 'fair'; expected timed, lockstep, greedy or random:SEED");
}

} // namespace
} // namespace pto::sim
