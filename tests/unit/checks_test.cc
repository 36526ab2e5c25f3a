// SPDX-License-Identifier: Apache-2.0
// The parts under the checks, and what only a host program can bring about. Whole kernels with
// planted faults are in tests/checks.
#include "simulator/checks/access_shadow.h"
#include "simulator/checks/checks.h"
#include "simulator/checks/first_use.h"
#include "simulator/timed.h"
#include "tests/unit/sim_fixture.h"

#include <string>
#include <vector>

namespace pto::sim {
namespace {

Findings checked(SimFixture& fixture, Dim3 grid, Dim3 block, CheckSet set = CheckSet::all()) {
  const auto launch = fixture.launch(grid, block);
  Checks checks(set);
  checks.attach(*launch);
  const RunResult result = run_functional(*launch);
  checks.add_result(*launch, result);
  return checks.findings();
}

/// Looks at cells alone, so that no line stays packed.
template <class Act> struct CellVisitor {
  Act act;
  void cell(AccessCell& cell, uint8_t mask, uint64_t address, uint64_t bytes) {
    act(cell, mask, address, bytes);
  }
  bool packs() const { return true; }
  uint64_t words(PackedLine&, uint64_t begin, uint64_t) { return begin; }
};
template <class Act> CellVisitor<Act> cells(Act act) {
  return {act};
}

TEST_CASE("a line of the shadow is split where accesses take parts of it, and keeps its entries") {
  AccessShadow shadow;
  const AccessEntry writer{.agent = 7, .time = 3, .pc = 11, .is_line = 1, .lane = 4};
  unsigned visits = 0;
  const auto count = [&](AccessCell& cell, uint8_t mask, uint64_t, uint64_t) {
    ++visits;
    cell.write = writer;
    cell.write_bytes = mask;
  };
  shadow.visit(0x1000, 128, cells(count));
  CHECK(visits == 2);
  visits = 0;
  std::vector<uint64_t> addresses;
  const auto look = [&](AccessCell& cell, uint8_t, uint64_t address, uint64_t) {
    ++visits;
    addresses.push_back(address);
    CHECK(cell.write.agent == 7);
    CHECK(uint32_t{cell.write.pc} == 11);
  };
  shadow.visit(0x1006, 7, cells(look));
  // Two bytes of one word, a whole word and a byte of the third.
  CHECK(addresses == std::vector<uint64_t>{0x1006, 0x1007, 0x1008, 0x100c});
  CHECK(shadow.peek(0x1020).write.agent == 7);
  CHECK(uint32_t{shadow.peek(0x1040).write.is_line} == 1);
  CHECK_FALSE(shadow.peek(0x1080).write.is_present());
}

TEST_CASE("an array over sparse indices keeps its cells while it grows, and none when cleared") {
  constexpr uint64_t kStep = 1'000'003; // every cell in another page
  PagedArray<uint64_t> array;
  for (uint64_t i = 0; i < 500; ++i) {
    array[i * kStep] = i + 1;
  }
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < 500; ++i) {
    wrong += array[i * kStep] != i + 1 || array[i * kStep + 1] != 0 ? 1 : 0;
  }
  CHECK(wrong == 0);
  array.clear();
  for (uint64_t i = 0; i < 500; ++i) {
    wrong += array[i * kStep] != 0 ? 1 : 0;
  }
  CHECK(wrong == 0);
}

TEST_CASE("lines of a shadow that are looked up together are those looked up one by one") {
  AccessShadow shadow;
  for (const uint64_t spread : {64, 4096, 1 << 18, 1 << 22}) { // in a line, a page, some, far apart
    std::vector<uint64_t> addresses;
    for (uint64_t i = 0; i < 32; ++i) {
      addresses.push_back(0x8000 + i * 40503 * 4 % spread);
    }
    std::vector<AccessCell*> lines(addresses.size());
    shadow.lines_of(addresses.data(), addresses.size(), lines.data());
    size_t wrong = 0;
    for (size_t i = 0; i < addresses.size(); ++i) {
      wrong += lines[i] != &shadow.line_of(addresses[i]) ? 1 : 0;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a word is left to atomics while whole ones are all that happened since another write") {
  AccessCell word;
  CHECK_FALSE(word.is_left_to_atomics());
  word.write = {.agent = 7, .time = 3, .pc = 11};
  word.write_bytes = AccessShadow::kAllBytes;
  CHECK_FALSE(word.is_left_to_atomics());
  word.is_write_atomic = true;
  CHECK(word.is_left_to_atomics());
  word.read_bytes[1] = AccessShadow::kAllBytes;
  CHECK_FALSE(word.is_left_to_atomics());
  word.read_bytes[1] = 0;
  word.write_bytes = 3;
  CHECK_FALSE(word.is_left_to_atomics());
  word.write_bytes = AccessShadow::kAllBytes;
  word.is_split = true;
  CHECK_FALSE(word.is_left_to_atomics());
}

TEST_CASE("a shadow that was cleared knows of no access, in parts of lines neither") {
  AccessShadow shadow;
  const auto write = [](AccessCell& cell, uint8_t mask, uint64_t, uint64_t) {
    cell.write = {.agent = 7, .time = 3, .pc = 11};
    cell.write_bytes = mask;
  };
  shadow.visit(0x1006, 7, cells(write));
  shadow.visit(0x1040, 64, cells(write));
  shadow.clear();
  unsigned known = 0;
  const auto look = [&](AccessCell& cell, uint8_t, uint64_t, uint64_t) {
    known += cell.write.is_present() ? 1 : 0;
  };
  shadow.visit(0x1001, 30, cells(look));
  shadow.visit(0x1040, 64, cells(look));
  CHECK(known == 0);
  CHECK_FALSE(shadow.peek(0x1006).write.is_present());
}

TEST_CASE("registers that some path reads before it writes them") {
  const auto program = program_of(R"(.pto 1
.kernel k(ptr y)
    mov.u32 r0, %tid.x
    cmp.lt.u32 p0, r0, 4
@p0 bra other
    mov.u32 r1, 1
    bra join
other:
    mov.u32 r2, 2
join:
    add.u32 r3, r1, r0
    store.u32 hbm[y], r3
    exit
.end
)");
  const ResourceSet suspects = read_before_write(*program);
  ResourceSet expected;
  expected.add_reg32(1);
  CHECK(suspects == expected);
}

TEST_CASE("after a call the registers count as written that the function writes on every path") {
  const auto program = program_of(R"(.pto 1
.func f
    cmp.lt.u32 p0, r0, 4
@p0 mov.u32 r2, 1
    cmp.lt.u32 p1, r0, 2
@p1 bra early
    mov.u32 r3, r4
    mov.u32 r1, 1
    ret
early:
    mov.u32 r1, 2
    ret
.end
.kernel k(ptr y)
    mov.u32 r0, %tid.x
    mov.u32 r4, 5
    call f
    add.u32 r5, r1, r2
    add.u32 r5, r5, r3
    store.u32 hbm[y], r5
    mov.u32 r6, 6
    call f
    store.u32 hbm[y], r6
    exit
.end
)");
  ResourceSet expected; // r1 is written on both ways out, r4 by the caller
  expected.add_reg32(2);
  expected.add_reg32(3);
  CHECK(read_before_write(*program) == expected);
}

TEST_CASE("memory freed before the launch: the access is told from a stray one") {
  SimFixture fixture(R"(.pto 1
.kernel k(ptr x)
    load.u32 r0, hbm[x]
    store.u32 hbm[x], r0
    exit
.end
)");
  const uint64_t base = fixture.words(std::vector<uint32_t>(32), "x");
  fixture.machine.hbm.free(base, "host.py:12");
  const Findings findings = checked(fixture, {1}, {32});
  REQUIRE(findings.list().size() == 1);
  const Finding& finding = findings.list().front();
  CHECK(finding.kind == CheckKind::kMem);
  CHECK(finding.message.find("freed") != std::string::npos);
  CHECK(finding.location.find("host.py:12") != std::string::npos);
  CHECK(finding.address == base);
  CHECK(finding.size_bytes == 4);
}

TEST_CASE("a race names both accesses with their sizes, lanes and common bytes") {
  SimFixture fixture(R"(.pto 1
.kernel k(ptr y)
    mov.u32 r0, %tid.x
    cmp.eq.u32 p0, r0, 37
    cmp.eq.u32 p1, r0, 2
@p1 store.b64 hbm[y], d0
@p0 store.b16 hbm[y + 6], r0
    exit
.end
)");
  const uint64_t base = fixture.words(std::vector<uint32_t>(4), "y");
  CheckSet race;
  race.add(CheckKind::kRace);
  const Findings findings = checked(fixture, {1}, {64}, race);
  REQUIRE(findings.list().size() == 1);
  const Finding& finding = findings.list().front();
  CHECK(finding.address == base + 6);
  CHECK(finding.size_bytes == 2);
  CHECK(finding.conflict_address == base + 6);
  CHECK(finding.conflict_bytes == 2);
  CHECK(finding.here.warp == 1);
  CHECK(finding.here.lane_mask == 1u << 5);
  CHECK(finding.here.what == "write of 2 bytes");
  REQUIRE(finding.there.has_value());
  CHECK(finding.there->warp == 0);
  CHECK(finding.there->lane_mask == 1u << 2);
  CHECK(finding.there->what == "write of 8 bytes");
}

/// Two warps count in words of a scratchpad, the second one from the other end; a third one does
/// `last`. The first race that is found.
Finding race_with_counting_warps(const std::string& first, const std::string& last) {
  SimFixture fixture(R"(.pto 1
.kernel k(ptr y)
.shared s, u32[64]
    mov.u32 r0, %lane
    mov.u32 r1, %warp
    mov.u32 r2, %tid.x
    cmp.lt.u32 p0, r1, 2
    cmp.eq.u32 p1, r1, 2
@p0 store.u32 l1[s + r2*4], 0
    barrier_block
    shl.b32 r3, r0, 1
    cmp.eq.u32 p2, r1, 1
@p2 sub.u32 r3, 62, r3
)" + first + R"(
@p0 atom.add.u32 _, l1[s + r3*4], 1
@p0 atom.add.u32 _, l1[s + r3*4], 1
)" + last + R"(
    exit
.end
)");
  fixture.words(std::vector<uint32_t>(4), "y");
  CheckSet race;
  race.add(CheckKind::kRace);
  const Findings findings = checked(fixture, {1}, {96}, race);
  REQUIRE_FALSE(findings.list().empty());
  return findings.list().front();
}

TEST_CASE("a race with atomics names the one that came last to the word, and its lane") {
  const Finding read = race_with_counting_warps("", "@p1 load.u32 r4, l1[s + 40]");
  CHECK(read.address == 40);
  CHECK(read.here.what == "read of 4 bytes");
  REQUIRE(read.there.has_value());
  CHECK(read.there->what == "atomic of 4 bytes");
  CHECK(read.there->warp == 1);
  CHECK(read.there->lane_mask == 1u << 26);

  const Finding write = race_with_counting_warps("", "@p1 store.b16 l1[s + 42], 7");
  CHECK(write.conflict_address == 42);
  CHECK(write.conflict_bytes == 2);
  REQUIRE(write.there.has_value());
  CHECK(write.there->warp == 1);
  CHECK(write.there->lane_mask == 1u << 26);

  const Finding atomic = race_with_counting_warps("@p1 load.u32 r4, l1[s + 40]", "");
  CHECK(atomic.here.what == "atomic of 4 bytes");
  CHECK(atomic.here.warp == 0);
  CHECK(atomic.here.lane_mask == 1u << 5);
  REQUIRE(atomic.there.has_value());
  CHECK(atomic.there->what == "read of 4 bytes");
  CHECK(atomic.there->warp == 2);
}

class CountReleases : public Observer {
public:
  Wants wants() const override { return kWantsBarrier; }
  void barrier_release(const BlockRun&, unsigned) override { ++releases; }
  unsigned releases = 0;
};

TEST_CASE("warps that reach a barrier together are released once") {
  SimFixture fixture(R"(.pto 1
.kernel k()
    barrier_block
    barrier_block
    exit
.end
)",
                     "ascend950");
  const auto launch = fixture.launch({1}, {256});
  CountReleases count;
  launch->observers().attach(count);
  SharedMemory shared(fixture.machine.profile);
  CHECK(run_timed(*launch, shared).run.status == RunStatus::kCompleted);
  CHECK(count.releases == 2);
}

constexpr const char* kStale = R"(.pto 1
.kernel k(ptr d, ptr f, ptr o)
    mov.u32 r0, %ctaid.x
    mov.u32 r1, %lane
    cmp.ne.u32 p0, r1, 0
@p0 exit
    cmp.eq.u32 p1, r0, 0
@p1 bra reader
turn:
    load.cv.u32 r2, hbm[f + 128]
    cmp.eq.u32 p2, r2, 0
@p2 bra turn
    store.u32 hbm[d], 42
    fence.device
    atom.exch.u32 _, hbm[f], 1
    exit
reader:
    load.u32 r3, hbm[d]
    fence.device
    atom.exch.u32 _, hbm[f + 128], 1
poll:
    load.cv.u32 r2, hbm[f]
    cmp.eq.u32 p2, r2, 0
@p2 bra poll
    load.u32 r4, hbm[d]
    store.u32 hbm[o], r4
    load.cv.u32 r5, hbm[d]
    store.u32 hbm[o + 4], r5
    inval.line hbm[d]
    load.u32 r6, hbm[d]
    store.u32 hbm[o + 8], r6
    exit
.end
)";

TEST_CASE("checks that could find nothing stay away, the others do not") {
  const auto waits_are_watched = [](const std::string& offset, size_t& findings) {
    SimFixture sim(
        ".pto 1\n.kernel k(ptr o)\n    mov.u32 r0, %gid.x\n    load.f32 r1, hbm[o + r0*4" + offset +
        "]\n    sub.f32 r1, r1, r1\n    store.f32 hbm[o + r0*4], r1\n" + "    exit\n.end\n");
    std::vector<uint32_t> words(65, 0);
    words[40] = 0x7f800000; // infinite
    sim.words(words);
    const auto launch = sim.launch({1}, {64});
    Checks checks(CheckSet::all());
    checks.attach(*launch);
    const bool are_watched = launch->observers().wants(kWantsBarrier);
    checks.add_result(*launch, run_functional(*launch));
    findings = checks.findings().list().size();
    return are_watched;
  };
  size_t findings = 0;
  CHECK_FALSE(waits_are_watched("", findings));
  CHECK(findings == 1); // the NaN
  CHECK(waits_are_watched(" + 4", findings));
  CHECK(findings == 2); // and the second warp's first word
}

TEST_CASE("incoherent caches: a plain load sees the old line, .cv and INVAL the new") {
  for (const bool is_incoherent : {false, true}) {
    SimFixture fixture(kStale, "ascend950");
    fixture.words({1, 0}, "d");
    fixture.words(std::vector<uint32_t>(64), "f");
    const uint64_t out = fixture.words(std::vector<uint32_t>(3), "o");
    const auto launch = fixture.launch({2}, {32});
    if (is_incoherent) {
      launch->use_incoherent_caches();
    }
    REQUIRE(run_functional(*launch).status == RunStatus::kCompleted);
    CHECK(fixture.read(out) == std::vector<uint32_t>{is_incoherent ? 1u : 42u, 42, 42});
  }
}

TEST_CASE("incoherent caches: a core sees what it writes through its own cache") {
  SimFixture fixture(R"(.pto 1
.kernel k(ptr d)
    load.u32 r0, hbm[d]
    store.u32 hbm[d], 5
    load.u32 r1, hbm[d]
    store.u32 hbm[d + 4], r1
    store.cg.u32 hbm[d], 6
    load.u32 r2, hbm[d]
    store.u32 hbm[d + 8], r2
    atom.add.u32 _, hbm[d], 1
    load.u32 r3, hbm[d]
    store.u32 hbm[d + 12], r3
    exit
.end
)");
  const uint64_t base = fixture.words(std::vector<uint32_t>(4), "d");
  const auto launch = fixture.launch({1}, {1});
  launch->use_incoherent_caches();
  REQUIRE(run_functional(*launch).status == RunStatus::kCompleted);
  // .cg leaves the line as it was; the atomic drops it.
  CHECK(fixture.read(base) == std::vector<uint32_t>{7, 5, 5, 7});
}

TEST_CASE("a flag that nobody sets ends every kind of run; one that is set late ends none") {
  constexpr const char* kText = R"(.pto 1
.kernel k(ptr f, u32 sets)
    mov.u32 r0, %ctaid.x
    cmp.eq.u32 p0, r0, 0
@p0 bra work
poll:
    load.cv.u32 r1, hbm[f]
    cmp.eq.u32 p1, r1, 0
@p1 bra poll
    exit
work:
    mov.u32 r2, 0
more:
    add.u32 r2, r2, 1
    cmp.lt.u32 p2, r2, 100000
@p2 bra more
    cmp.eq.u32 p3, sets, 0
@p3 exit
    fence.device
    atom.exch.u32 _, hbm[f], 1
    exit
.end
)";
  for (const bool is_set : {false, true}) {
    for (int mode = 0; mode < 4; ++mode) {
      SimFixture fixture(kText);
      fixture.words({0}, "f");
      fixture.scalar(is_set ? 1 : 0);
      const auto launch = fixture.launch({3}, {32});
      SharedMemory shared(fixture.machine.profile);
      const RunOptions options{.max_insns = 20'000'000};
      const RunResult result =
          mode == 0   ? run_functional(*launch, options)
          : mode == 1 ? run_timed(*launch, shared, {.max_insns = options.max_insns}).run
          : mode == 2 ? run_scheduled(*launch, {SchedulePolicy::kGreedy, 0}, options)
                      : run_scheduled(*launch, {SchedulePolicy::kRandom, 5}, options);
      INFO("mode ", mode);
      CHECK(result.status == (is_set ? RunStatus::kCompleted : RunStatus::kDeadlock));
      if (!is_set && result.fault) {
        CHECK(result.fault->details.find("of block 1 repeats") != std::string::npos);
        CHECK(result.fault->details.find("reading f") != std::string::npos);
      }
    }
  }
}

} // namespace
} // namespace pto::sim
