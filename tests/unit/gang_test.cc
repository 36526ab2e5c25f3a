// SPDX-License-Identifier: Apache-2.0
// Gangs of blocks: nobody can tell them from blocks that run one by one.
#include "random_choice.h"
#include "sim_fixture.h"
#include "simulator/access_ledger.h"
#include "simulator/gang.h"

#include <random>

namespace pto::sim {
namespace {

/// Wants nothing, but rules gangs out by looking on.
class Bystander final : public Observer {
public:
  Wants wants() const override { return kWantsLaunch; }
};

constexpr Dim3 kBlock{64};

std::string kernel_of(const std::string& body) {
  return ".pto 1\n.kernel k(ptr a, ptr o, u32 n)\n" + body + ".end\n";
}

/// Buffers with room for 64 lanes more on both sides of the grid; a and o point behind the first.
void bind(SimFixture& sim, Dim3 grid) {
  std::vector<uint32_t> values((grid.x + 2) * kBlock.x);
  for (uint32_t i = 0; i < values.size(); ++i) {
    values[i] = i * 2654435761u;
  }
  sim.words(values, "a");
  sim.words(std::vector<uint32_t>(values.size(), 3), "o");
  for (LaunchArg& arg : sim.args) {
    arg.bits += kBlock.x * 4;
  }
  sim.scalar(grid.x * kBlock.x - 21);
}

RunOutcome run_of(const std::string& body, Dim3 grid, bool in_gangs, const RunOptions& options) {
  SimFixture sim(kernel_of(body));
  bind(sim, grid);
  const std::unique_ptr<Launch> launch = sim.launch(grid, kBlock);
  Bystander bystander;
  if (!in_gangs) {
    launch->observers().attach(bystander);
  }
  CHECK((Gang::make(*launch) != nullptr) == in_gangs);
  return outcome_of(sim, run_functional(*launch, options));
}

void check_same(const std::string& body, Dim3 grid, const RunOptions& options = {}) {
  CAPTURE(body);
  const RunOutcome expected = run_of(body, grid, false, options);
  CHECK(run_of(body, grid, true, options) == expected);
  RunOptions threads = options;
  threads.host_threads = 2;
  CHECK(run_of(body, grid, true, threads) == expected);
}

Gang::Stop first_gang(const std::string& body) {
  SimFixture sim(kernel_of(body));
  bind(sim, {64});
  const std::unique_ptr<Launch> launch = sim.launch({64}, kBlock);
  const std::vector<uint32_t> before = sim.read(sim.machine.hbm.live()[1].base);
  const std::unique_ptr<Gang> gang = Gang::make(*launch);
  REQUIRE(gang != nullptr);
  REQUIRE(gang->covers(0, 64));
  const Gang::Stop stop = gang->run(0);
  CHECK((sim.read(sim.machine.hbm.live()[1].base) == before) == (stop != Gang::Stop::kDone));
  CHECK(gang->covers(0, 64) == (stop == Gang::Stop::kDone));
  return stop;
}

constexpr const char* kSimple = R"(
    mov.u32 r0, %gid.x
    cmp.ge.u32 p0, r0, n
@p0 exit
    load.u32 r1, hbm[a + r0*4]
    load.u32 r2, hbm[o + r0*4]
    mad.u32 r3, r1, 3, r2
    store.u32 hbm[o + r0*4], r3
    exit
)";
constexpr const char* kReadsNextBlock = R"(
    mov.u32 r0, %gid.x
    load.u32 r1, hbm[o + r0*4 + 256]
    add.u32 r1, r1, r0
    store.u32 hbm[o + r0*4], r1
    exit
)";
constexpr const char* kReadsPreviousBlock = R"(
    mov.u32 r0, %gid.x
    load.u32 r1, hbm[o + r0*4 - 256]
    add.u32 r1, r1, r0
    store.u32 hbm[o + r0*4], r1
    exit
)";
constexpr const char* kWritesBeforeReading = R"(
    mov.u32 r0, %gid.x
    store.u32 hbm[o + r0*4], r0
    load.u32 r1, hbm[o + r0*4 + 4]
    store.u32 hbm[a + r0*4], r1
    exit
)";
constexpr const char* kScatters = R"(
    mov.u32 r0, %gid.x
    mul.u32 r1, r0, 5
    and.b32 r1, r1, 127
    store.u32 hbm[o + r1*4], r0
    exit
)";
constexpr const char* kGathers = R"(
    mov.u32 r0, %gid.x
    load.u32 r1, hbm[a + r0*4]
    and.b32 r1, r1, 255
    load.u32 r2, hbm[a + r1*4]
    store.u32 hbm[o + r0*4], r2
    exit
)";
constexpr const char* kGoesApart = R"(
    mov.u32 r0, %gid.x
    store.u32 hbm[o + r0*4], 1
    and.b32 r1, r0, 32
    cmp.ne.u32 p0, r1, 0
@p0 bra second
    store.u32 hbm[o + r0*4 + 128], r0
    exit
second:
    store.u32 hbm[o + r0*4 - 128], r0
    exit
)";
constexpr const char* kLoops = R"(
    mov.u32 r0, %gid.x
    mov.u32 r2, 0
again:
    load.u32 r1, hbm[o + r0*4]
    add.u32 r1, r1, r2
    store.u32 hbm[o + r0*4], r1
    add.u32 r2, r2, 1
    cmp.lt.u32 p0, r2, n
@p0 bra again
    exit
)";
constexpr const char* kFaults = R"(
    mov.u32 r0, %gid.x
    load.u32 r1, hbm[a + r0*4]
    store.u32 hbm[o + r0*4], r1
    cmp.eq.u32 p0, r0, 1300
@p0 trap 5
    store.u32 hbm[o + r0*4], r0
    exit
)";

TEST_CASE("a gang runs, or is undone") {
  CHECK(first_gang(kSimple) == Gang::Stop::kDone);
  CHECK(first_gang(kGathers) == Gang::Stop::kDone);
  CHECK(first_gang(kReadsNextBlock) == Gang::Stop::kUndone);
  CHECK(first_gang(kReadsPreviousBlock) == Gang::Stop::kUndone);
  CHECK(first_gang(kWritesBeforeReading) == Gang::Stop::kUndone);
  CHECK(first_gang(kScatters) == Gang::Stop::kUndone);
  CHECK(first_gang(kGoesApart) == Gang::Stop::kUndone);
  CHECK(first_gang(kLoops) == Gang::Stop::kUndone); // too many insns for one turn
}

uint64_t size_of_gang(const std::string& body, uint64_t most_blocks = UINT64_MAX) {
  SimFixture sim(kernel_of(body));
  bind(sim, {256});
  const std::unique_ptr<Launch> launch = sim.launch({256}, kBlock);
  const std::unique_ptr<Gang> gang = Gang::make(*launch, most_blocks);
  return gang != nullptr ? gang->size() : 1;
}

TEST_CASE("straight code makes large gangs, which stay within one turn") {
  CHECK(size_of_gang(kSimple) == 64); // 4,096 lanes
  CHECK(size_of_gang(kSimple, 20) == 16);
  CHECK(size_of_gang(kSimple, 1) == 1);
  CHECK(size_of_gang(kLoops) == 32); // 24 KiB, 12 bytes a lane
  std::string longer = "    mov.u32 r0, %gid.x\n    mov.u32 r1, 0\n";
  for (int i = 0; i < 700; ++i) {
    longer += "    mad.u32 r1, r1, 3, r0\n";
  }
  longer += "    store.u32 hbm[o + r0*4], r1\n    exit\n";
  CHECK(size_of_gang(longer) == 32);
  CHECK(first_gang(longer) == Gang::Stop::kDone);
  check_same(longer, {64});
}

TEST_CASE("results, counts and faults are those of blocks one by one") {
  for (const char* body : {kSimple,
                           kReadsNextBlock,
                           kReadsPreviousBlock,
                           kWritesBeforeReading,
                           kScatters,
                           kGathers,
                           kGoesApart,
                           kFaults}) {
    for (const uint32_t blocks : {2u, 37u, 64u}) {
      CAPTURE(blocks);
      check_same(body, {blocks});
    }
  }
  check_same(kLoops, {16});
}

TEST_CASE("the insn limit ends a run at the same insn") {
  for (const uint64_t limit : {1u, 100u, 333u, 70000u}) {
    CAPTURE(limit);
    check_same(kSimple, {64}, {.max_insns = limit});
    check_same(kLoops, {16}, {.max_insns = limit});
  }
}

// A gang of 32 blocks is at its last store when its turn ends: it goes on past it.
constexpr const char* kEndsWithTurn = R"(
    mov.u32 r0, %gid.x
    mov.u32 r2, 0
again:
    add.u32 r2, r2, 1
    cmp.lt.u32 p0, r2, 340
@p0 bra again
    load.u32 r1, hbm[a + r0*4]
    store.u32 hbm[o + r0*4], r1
    exit
)";

TEST_CASE("a gang that ends past its turn keeps to the insn limit") {
  CHECK(first_gang(kEndsWithTurn) == Gang::Stop::kDone);
  for (const uint64_t limit : {65536u, 65537u, 65599u, 65600u, 65601u, 131073u, 140000u}) {
    CAPTURE(limit);
    check_same(kEndsWithTurn, {64}, {.max_insns = limit});
  }
}

TEST_CASE("kernels that can name their block form no gangs") {
  for (const char* body : {"mov.u32 r0, %ctaid.x\nexit\n",
                           "mov.u32 r0, %tid.x\nexit\n",
                           "mov.u32 r0, %warp\nexit\n",
                           "mov.u32 r0, %blocksize\nexit\n",
                           "mov.u64 d0, %clock\nexit\n",
                           "barrier_block\nexit\n",
                           "atom.add.u32 _, hbm[a], 1\nexit\n",
                           ".shared s, u32[1]\nload.u32 r0, l1[s]\nexit\n",
                           "print \"hello\"\nexit\n"}) {
    CAPTURE(body);
    SimFixture sim(kernel_of(body));
    bind(sim, {64});
    CHECK(Gang::make(*sim.launch({64}, kBlock)) == nullptr);
  }
  SimFixture sim(kernel_of(kSimple));
  bind(sim, {64});
  CHECK(Gang::make(*sim.launch({64}, {48})) == nullptr);
  CHECK(Gang::make(*sim.launch({32, 2}, kBlock)) == nullptr);
  CHECK(Gang::make(*sim.launch({64}, {32, 2})) == nullptr);
}

/// A kernel of loads, stores and sums at random places near the lane's own.
std::string random_body(std::mt19937& random) {
  RandomChoice choose(random);
  std::string body = "mov.u32 r0, %gid.x\nmov.u32 r1, %lane\nand.b32 r5, r0, 31\n";
  const uint32_t count = 2 + choose.below(6);
  for (uint32_t i = 0; i < count; ++i) {
    const std::string reg = "r" + std::to_string(2 + choose.below(3));
    const bool is_own = choose.below(3) != 0;
    const std::string array = choose.below(2) == 0 ? "a" : "o";
    const uint32_t distance = choose.below(65) * 4;
    const std::string offset =
        is_own ? "" : (choose.below(2) == 0 ? " + " : " - ") + std::to_string(distance);
    const std::string index = choose.below(8) == 0 ? "r5" : "r0";
    const std::string place = "hbm[" + array + " + " + index + "*4" + offset + "]";
    const uint32_t kind = choose.below(8);
    if (kind == 0) {
      body += "and.b32 r6, r2, " + std::to_string(1u << choose.below(6)) +
              "\ncmp.ne.u32 p0, r6, 0\n@p0 ";
    } else if (kind == 1) {
      body += "cmp.lt.u32 p0, r0, n\n@p0 ";
    }
    const uint32_t what = choose.below(4);
    body += what == 0   ? "load.u32 " + reg + ", " + place
            : what == 3 ? "mad.u32 " + reg + ", r3, 7, r0"
                        : "store.u32 " + place + ", " + reg;
    body += "\n";
  }
  return body + "exit\n";
}

TEST_CASE("random kernels") {
  std::mt19937 random(7);
  for (int i = 0; i < 150; ++i) {
    check_same(random_body(random), {40});
  }
}

TEST_CASE("the ledger lets no lanes meet") {
  AccessLedger ledger;
  ledger.begin();
  CHECK(ledger.note(0, 100, 4, false));
  CHECK(ledger.note(50, 150, 4, false)); // reads may meet
  CHECK(ledger.note(200, 300, 4, true));
  CHECK(ledger.note(200, 300, 4, false)); // each lane its own
  CHECK(ledger.note(300, 400, 0, false));
  CHECK(ledger.note(300, 400, 0, false));
  CHECK(!ledger.has_refused());
  CHECK(!ledger.note(0, 100, 4, true)); // another lane read it at 50
  CHECK(ledger.has_refused());
  ledger.begin();
  CHECK(!ledger.has_refused());
  CHECK(!ledger.note(0, 100, 0, true)); // who writes where?
  ledger.begin();
  CHECK(ledger.note(0, 100, 4, true));
  CHECK(!ledger.note(99, 101, 0, false));
  CHECK(!ledger.note(4, 104, 4, false));
  CHECK(ledger.note(100, 200, 4, true));
  CHECK(ledger.note(100, 200, 4, false));
  CHECK(!ledger.note(100, 200, 8, false)); // half the lanes, each what two have written
  ledger.begin();
  for (uint64_t i = 0; i < 64; ++i) {
    CHECK(ledger.note(i * 8, i * 8 + 8, 4, true));
  }
  CHECK(ledger.note(0, 8, 4, true));
  CHECK(!ledger.note(1000, 1008, 4, true)); // a limit
}

TEST_CASE("undoing puts back the oldest bytes") {
  std::vector<uint8_t> bytes = {1, 2, 3, 4};
  AccessLedger ledger;
  ledger.begin();
  ledger.save(bytes.data(), 4);
  bytes = {5, 6, 7, 8};
  ledger.save(bytes.data() + 1, 2);
  bytes[1] = 9;
  ledger.undo();
  CHECK(bytes == std::vector<uint8_t>{1, 2, 3, 4});
}

} // namespace
} // namespace pto::sim
