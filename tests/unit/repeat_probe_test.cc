// SPDX-License-Identifier: Apache-2.0
// Blocks that go round in circles are told from those that get somewhere.
#include "sim_fixture.h"
#include "simulator/block_context.h"
#include "simulator/reductions.h"
#include "simulator/repeat_probe.h"

namespace pto::sim {
namespace {

/// Lets copies read all of hbm and write none of it.
class ReadOnly final : public AccessGate {
public:
  explicit ReadOnly(const Hbm& hbm)
      : AccessGate(hbm, watched_), watched_(hbm.live().size(), true) {}
  bool may_read(const Allocation&, uint64_t, uint64_t) override {
    ++reads;
    return reads <= most_reads;
  }
  bool may_write(const Allocation&, uint64_t, uint64_t) override { return false; }
  bool may_reduce(const Allocation&, uint64_t, uint64_t) override { return false; }
  Reductions& reductions() override { return reductions_; }
  uint64_t reads = 0;
  uint64_t most_reads = UINT64_MAX;

private:
  std::vector<bool> watched_;
  Reductions reductions_;
};

/// A block of `k(ptr flag, ptr o)`, both of zeroes, that has run for a while, and a probe.
struct Probed {
  explicit Probed(const std::string& body, uint32_t lanes = 100, uint64_t insns = 5000)
      : sim(".pto 1\n.kernel k(ptr flag, ptr o)\n" + body + ".end\n"),
        flag(sim.words(std::vector<uint32_t>(64))), o(sim.words(std::vector<uint32_t>(1024))),
        launch(sim.launch({1}, {lanes})), block(*launch), gate(sim.machine.hbm),
        probe(*launch, gate) {
    block.start(0, 0);
    REQUIRE(block.run(insns) == BlockStop::kBudget);
  }
  bool repeats(uint64_t steps) { return probe.repeats(block, steps); }

  SimFixture sim;
  uint64_t flag;
  uint64_t o;
  std::unique_ptr<Launch> launch;
  BlockRun block;
  ReadOnly gate;
  RepeatProbe probe;
};

constexpr const char* kSpin = R"(
spin:
    load.u32.cv r1, hbm[flag]
    cmp.eq.u32 p0, r1, 0
@p0 bra spin
    store.u32 hbm[o], 77
    exit
)";

TEST_CASE("a block that polls repeats itself") {
  Probed spin(kSpin);
  // The mark moves after 1, 2 and 4 steps: the last one sees the loop of three.
  CHECK_FALSE(spin.repeats(5));
  CHECK(spin.repeats(6));
  CHECK(spin.gate.reads > 0);
  spin.gate.most_reads = spin.gate.reads;
  CHECK_FALSE(spin.repeats(1000)); // somebody else may be about to write
}

TEST_CASE("a load of all lanes from one address asks once") {
  // 4 warps, whose lanes have the address in registers of their own after the turn of a block.
  Probed poll(R"(
    mov.u32 r2, 3
again:
    load.u32.cv r1, hbm[flag + r2*4]
    bra again
    exit
)",
              128,
              8000);
  CHECK(poll.repeats(3)); // branch, load, branch
  CHECK(poll.gate.reads == 1);
}

TEST_CASE("the block itself is as if nobody had looked") {
  Probed seen(kSpin);
  Probed unseen(kSpin);
  CHECK(seen.repeats(100));
  for (Probed* each : {&seen, &unseen}) {
    const uint32_t one = 1;
    REQUIRE(each->sim.machine.hbm.write(each->flag, {reinterpret_cast<const uint8_t*>(&one), 4}));
    CHECK(each->block.run(5000) == BlockStop::kDone);
    CHECK(each->sim.read(each->o)[0] == 77);
  }
  CHECK(seen.block.counts().warp_insns == unseen.block.counts().warp_insns);
  CHECK(seen.block.counts().lane_insns == unseen.block.counts().lane_insns);
}

TEST_CASE("loops that get somewhere do not repeat") {
  const std::string head = "again:\n";
  const std::string tail = "    bra again\n    exit\n";
  const std::pair<const char*, const char*> loops[] = {
      {"counts", "    add.u32 r0, r0, 1\n"},
      {"counts in one lane",
       "    mov.u32 r2, %tid.x\n    cmp.eq.u32 p0, r2, 70\n@p0 add.u32 r0, r0, 1\n"},
      {"counts in 64 bits", "    add.u64 d0, d0, 1\n"},
      {"counts in scratchpad",
       "    load.u32 r0, l1[s]\n    add.u32 r0, r0, 1\n    store.u32 l1[s], r0\n    mov.u32 r0, "
       "0\n"},
      {"writes", "    store.u32 hbm[o], 0\n"},
      {"reads the clock", "    mov.u64 d0, %clock\n    mov.u64 d0, 0\n"},
  };
  for (const auto& entry : loops) {
    CAPTURE(entry.first);
    Probed loop(".shared s, u32[4]\n" + head + entry.second + tail);
    CHECK_FALSE(loop.repeats(2000));
  }
}

TEST_CASE("loops with barriers, scratchpad and tiles repeat") {
  Probed loop(R"(
.shared s, u32[4]
again:
    load.u32.cv r1, hbm[flag]
    alloc_local t0, 64
    store.u32 l1[t0], 5
    store.u32 l1[s], r1
    barrier_block
    load.u32 r2, l1[s]
    barrier_block
    free_local t0
    cmp.eq.u32 p0, r2, 0
@p0 bra again
    exit
)");
  CHECK(loop.repeats(100));
}

TEST_CASE("warps in loops of different lengths repeat together") {
  const std::string text = R"(
    mov.u32 r0, %warp
    cmp.eq.u32 p0, r0, 1
@p0 bra longer
shorter:
    load.u32.cv r1, hbm[flag]
    cmp.eq.u32 p0, r1, 0
@p0 bra shorter
    exit
longer:
    load.u32.cv r1, hbm[flag]
    add.u32 r2, r1, 4
    )";
  const std::string tail = R"(
    cmp.eq.u32 p0, r1, 0
@p0 bra longer
    exit
)";
  Probed both(text + tail, 100, 50'000);
  CHECK(both.repeats(1000));
  Probed one_counts(text + "add.u32 r3, r3, 1" + tail, 100, 50'000);
  CHECK_FALSE(one_counts.repeats(10'000));
}

TEST_CASE("lanes of one warp apart repeat") {
  Probed split(R"(
    mov.u32 r0, %tid.x
    cmp.lt.u32 p0, r0, 7
@p0 bra meet
spin:
    load.u32.cv r1, hbm[flag]
    cmp.eq.u32 p1, r1, 0
@p1 bra spin
meet:
    exit
)",
               32);
  CHECK(split.repeats(100));
}

} // namespace
} // namespace pto::sim
