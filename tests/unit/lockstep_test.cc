// SPDX-License-Identifier: Apache-2.0
// Warps in step are a shorter way to the same numbers: every kernel here gives the same results,
// counters and timeline with a gate that lets all insns pass, which keeps warps apart.
#include "sim_fixture.h"
#include "simulator/report/run_json.h"
#include "simulator/report/timing_report.h"
#include "simulator/timed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace pto::sim {
namespace {

class OpenGate : public IssueGate {
public:
  bool may_issue(const BlockRun&, uint32_t, uint64_t) override { return true; }
  void issued(const BlockRun&, const IssueRecord&) override { ++issues; }
  bool wants_stop() override { return false; }
  uint64_t issues = 0;
};

struct Case {
  const char* name;
  const char* text;
  Dim3 grid{6, 1, 1};
  Dim3 block{256, 1, 1};
  uint64_t max_insns = UINT64_MAX;
  uint64_t max_cycles = UINT64_MAX;
  uint64_t piece_insns = 0; // not 0: the run stops after each piece and then goes on
};

// Parameters of all: ptr a of 4096 words (7 * i), ptr o of 4096 words (0), u32 n = 1300.
const Case kCases[] = {
    {"the last blocks are partly empty", R"(.pto 1
.kernel k(ptr a, ptr o, u32 n)
    mov.u32 r0, %gid.x
    cmp.ge.u32 p0, r0, n
@p0 exit
    load.u32 r1, hbm[a + r0*4]
    mad.u32 r1, r1, 3, r0
    store.u32 hbm[o + r0*4], r1
    exit
.end
)"},
    {"lanes of a warp part, warps stay together", R"(.pto 1
.kernel k(ptr a, ptr o, u32 n)
    mov.u32 r0, %gid.x
    and.b32 r1, r0, 3
    mov.u32 r2, 0
again:
    add.u32 r2, r2, r0
    sub.u32 r1, r1, 1
    cmp.gt.s32 p0, r1, 0
@p0 bra again
    store.u32 hbm[o + r0*4], r2
    exit
.end
)"},
    {"warps part in a loop", R"(.pto 1
.kernel k(ptr a, ptr o, u32 n)
    mov.u32 r0, %gid.x
    mov.u32 r3, %warp
    add.u32 r1, r3, 1
    mov.u32 r2, 0
again:
    mad.u32 r2, r2, 5, r0
    sub.u32 r1, r1, 1
    cmp.ne.u32 p0, r1, 0
@p0 bra again
    store.u32 hbm[o + r0*4], r2
    exit
.end
)"},
    {"barriers, scratchpad, loads of one address and with a stride", R"(.pto 1
.kernel k(ptr a, ptr o, u32 n)
.shared s, u32[1024]
    mov.u32 r0, %tid.x
    mov.u32 r1, %gid.x
    mov.u32 r9, 0
    mov.u32 r10, 4
again:
    load.u32 r2, hbm[a + r1*4]
    load.u32 r3, hbm[a + 8]
    shl.b32 r4, r0, 2
    load.u32 r5, hbm[a + r4*4]
    add.u32 r2, r2, r3
    add.u32 r2, r2, r5
    store.u32 l1[s + r0*4], r2
    barrier_block
    xor.b32 r6, r0, 37
    load.u32 r7, l1[s + r6*4]
    add.u32 r9, r9, r7
    barrier_block
    sub.u32 r10, r10, 1
    cmp.ne.u32 p0, r10, 0
@p0 bra again
    store.u32 hbm[o + r1*4], r9
    exit
.end
)"},
    {"atomics in scratchpad and in hbm", R"(.pto 1
.kernel k(ptr a, ptr o, u32 n)
.shared s, u32[64]
    mov.u32 r0, %tid.x
    mov.u32 r1, %gid.x
    load.u32 r2, hbm[a + r1*4]
    and.b32 r2, r2, 63
    atom.add.u32 _, l1[s + r2*4], 1
    barrier_block
    cmp.ge.u32 p0, r0, 64
@p0 exit
    load.u32 r3, l1[s + r0*4]
    atom.add.u32 _, hbm[o + r0*4], r3
    atom.add.u32 r4, hbm[o + 1024], 1
    add.u32 r4, r4, 1
    exit
.end
)"},
    {"one warp stands for the block at the end", R"(.pto 1
.kernel k(ptr a, ptr o, u32 n)
    mov.u32 r0, %gid.x
    mov.u32 r3, %warp
    nop 7
    load.u32 r1, hbm[a + r0*4]
    call twice
    cmp.ne.u32 p0, r3, 0
@p0 bra done
    store.u32 hbm[o + r0*4], r1
    fence.block
done:
    exit
.end
.func twice
    add.u32 r1, r1, r1
    cmp.ge.u32 p1, r0, 700
@p1 add.u32 r1, r1, 1
    ret
.end
)"},
    {"a warp in the middle faults", R"(.pto 1
.kernel k(ptr a, ptr o, u32 n)
    mov.u32 r0, %gid.x
    mul.u32 r1, r0, 13
    store.u32 hbm[o + r1*4], r0
    exit
.end
)"},
    {"the clock", R"(.pto 1
.kernel k(ptr a, ptr o, u32 n)
    mov.u32 r0, %gid.x
    mov.u64 d0, %clock
    cvt.u32.u64 r1, d0
    load.u32 r2, hbm[a + r0*4]
    add.u32 r2, r2, r1
    store.u32 hbm[o + r0*4], r2
    exit
.end
)"},
};

/// What a run says, as text.
struct Told {
  std::string counters;
  std::string timeline; // and what is made of it
};

Told run_told(const Case& test, std::string_view machine, IssueGate* gate, bool has_timeline) {
  SimFixture sim(test.text, machine);
  std::vector<uint32_t> input(4096);
  for (uint32_t i = 0; i < input.size(); ++i) {
    input[i] = 7 * i;
  }
  sim.words(input, "a");
  const uint64_t out = sim.words(std::vector<uint32_t>(4096), "o");
  sim.scalar(1300);
  const std::unique_ptr<Launch> launch = sim.launch(test.grid, test.block);
  SharedMemory shared(sim.machine.profile);
  TimedOptions options;
  options.gate = gate;
  options.timing.record_timeline = has_timeline;
  options.timing.max_cycles = test.max_cycles;
  options.max_insns = test.piece_insns != 0 ? test.piece_insns : test.max_insns;
  TimedRun run(*launch, shared, options);
  while (run.run() == RunStatus::kLimit && test.piece_insns != 0) {
    run.set_max_insns(run.counts().warp_insns + test.piece_insns);
  }
  const TimedResult result = run.take_result();
  const TimedCounters& counters = result.counters;
  std::string text = fmt::format("{} cycles, {} warp insns of {} lanes; {} lines, {} hits",
                                 counters.cycles,
                                 counters.warp_insns,
                                 counters.lane_insns,
                                 counters.memory.lines,
                                 counters.memory.cache_hits);
  for (const PcCounters& pc : counters.by_pc) {
    text += fmt::format(
        "\n{} of {} lanes: {}", pc.issues, pc.lane_ops, fmt::join(pc.stalls.cycles, " "));
  }
  for (const CoreCounters& core : counters.cores) {
    text += fmt::format("\n{} busy of {}: {}",
                        core.busy_cycles,
                        core.occupied_cycles,
                        fmt::join(core.unit_busy_cycles, " "));
  }
  for (const WarpCounters& warp : result.counters.warps) {
    text += fmt::format("\nblock {} warp {} core {} from {}: {} {} {}",
                        warp.block,
                        warp.warp,
                        warp.core,
                        warp.start_cycle,
                        warp.elapsed_cycles,
                        warp.issued_cycles,
                        fmt::join(warp.stalls.cycles, " "));
  }
  text += "\n" + (result.run.fault ? result.run.fault->message : std::string("no fault"));
  for (const uint32_t word : sim.read(out)) {
    text += " " + std::to_string(word);
  }
  std::string timeline =
      run_to_json(make_timing_report(result, launch->program(), sim.machine.profile)).dump();
  for (const TimelineEntry& entry : result.timeline.entries()) {
    timeline += fmt::format("\n{} {} {} pc {} block {} warps {}-{} lanes {} ({}): {} {} {}",
                            entry.issue_cycle,
                            entry.start_cycle,
                            entry.done_cycle,
                            entry.pc,
                            entry.block,
                            entry.first_warp,
                            entry.last_warp,
                            entry.lanes(),
                            entry.active_lanes,
                            entry.stall_cycles,
                            info(entry.reason).name,
                            entry.cause_pc);
  }
  return {std::move(text), std::move(timeline)};
}

std::string told(const Case& test, std::string_view machine, IssueGate* gate) {
  const Told told = run_told(test, machine, gate, true);
  return told.counters + "\n" + told.timeline;
}

void check_same(const Case& test, std::string_view machine) {
  CAPTURE(test.name);
  CAPTURE(machine);
  OpenGate gate;
  const std::string apart = told(test, machine, &gate);
  CHECK(gate.issues != 0);
  CHECK(told(test, machine, nullptr) == apart);
  // Without a timeline insns take shorter ways.
  const std::string counters = run_told(test, machine, &gate, true).counters;
  CHECK(run_told(test, machine, &gate, false).counters == counters);
  CHECK(run_told(test, machine, nullptr, false).counters == counters);
}

} // namespace

TEST_CASE("warps in step give what warps apart give") {
  for (const Case& test : kCases) {
    check_same(test, "reference");
    check_same(test, "reference-fused");
    check_same(test, "ascend950");
  }
}

TEST_CASE("blocks of all sizes") {
  for (const uint32_t lanes : {1u, 33u, 64u, 96u, 250u, 512u, 1000u}) {
    for (Case test : {kCases[0], kCases[3]}) {
      test.block = {lanes, 1, 1};
      test.grid = {lanes > 256 ? 2u : 4u, 1, 1};
      check_same(test, "reference");
    }
  }
}

TEST_CASE("a run stops between two warps at a limit") {
  for (uint64_t limit = 1; limit < 140; limit += 9) {
    Case test = kCases[0];
    test.max_insns = limit;
    check_same(test, "reference");
    test.max_insns = UINT64_MAX;
    test.max_cycles = limit / 4 + 1;
    check_same(test, "reference");
  }
}

TEST_CASE("a run that stops goes on as if it had not") {
  for (Case test : {kCases[0], kCases[2], kCases[3]}) {
    const std::string whole = told(test, "reference", nullptr);
    for (const uint64_t piece : {uint64_t{1}, uint64_t{7}, uint64_t{64}, uint64_t{100}}) {
      CAPTURE(piece);
      test.piece_insns = piece;
      CHECK(told(test, "reference", nullptr) == whole);
    }
  }
}

} // namespace pto::sim
