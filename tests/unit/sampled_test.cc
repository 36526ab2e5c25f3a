// SPDX-License-Identifier: Apache-2.0
// Sampled timed runs: results of the full run, and an estimate near its cycles.
#include "sim_fixture.h"
#include "simulator/sampled.h"

namespace pto::sim {
namespace {

constexpr const char* kKernel = R"(.pto 1
.kernel k(ptr a, ptr o)
    mov.u32 r0, %gid.x
    load.u32 r1, hbm[a + r0*4]
    mov.u32 r2, 20
again:
    mad.u32 r1, r1, 3, r2
    sub.u32 r2, r2, 1
    cmp.ne.u32 p0, r2, 0
@p0 bra again
    store.u32 hbm[o + r0*4], r1
    exit
.end
)";

struct Timed {
  TimedResult result;
  std::vector<uint32_t> out;
};

Timed run(uint32_t blocks, uint32_t waves) {
  SimFixture sim(kKernel);
  sim.machine.profile.cores = 4;
  std::vector<uint32_t> input(blocks * 64);
  for (uint32_t i = 0; i < input.size(); ++i) {
    input[i] = i;
  }
  sim.words(input);
  const uint64_t out = sim.words(std::vector<uint32_t>(blocks * 64));
  const std::unique_ptr<Launch> launch = sim.launch({blocks}, {64});
  SharedMemory shared(sim.machine.profile);
  Timed timed{waves == 0 ? run_timed(*launch, shared) : run_sampled(*launch, shared, {}, waves),
              {}};
  timed.out = sim.read(out);
  return timed;
}

TEST_CASE("a sample estimates the whole launch") {
  const Timed full = run(1000, 0);
  const Timed sampled = run(1000, 6);
  CHECK(sampled.out == full.out);
  CHECK(sampled.result.run.counts.warp_insns == full.result.run.counts.warp_insns);
  CHECK(sampled.result.run.blocks_done == 1000);
  REQUIRE(sampled.result.sample.has_value());
  CHECK(sampled.result.sample->timed_blocks < 1000);
  CHECK(sampled.result.counters.cycles < full.result.counters.cycles);
  const double ratio = static_cast<double>(sampled.result.total_cycles()) /
                       static_cast<double>(full.result.total_cycles());
  CHECK(ratio > 0.95);
  CHECK(ratio < 1.05);
}

TEST_CASE("what fits the sample is timed whole") {
  const Timed full = run(16, 0);
  const Timed sampled = run(16, 100);
  CHECK_FALSE(sampled.result.sample.has_value());
  CHECK(sampled.result.counters.cycles == full.result.counters.cycles);
  CHECK(sampled.out == full.out);
}

} // namespace
} // namespace pto::sim
