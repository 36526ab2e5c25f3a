// SPDX-License-Identifier: Apache-2.0
// What is proven of kernels over tiles: two-dimensional grids, scratchpad, block barriers.
#include "random_choice.h"
#include "sim_fixture.h"
#include "simulator/grid_proof.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>

namespace pto::sim {
namespace {

/// The source of a shipped example.
std::string example(const std::string& path) {
  std::ifstream file(std::string(PTO_SOURCE_DIR) + "/examples/" + path);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Case {
  std::string text;
  std::string kernel;
  Dim3 grid{};
  Dim3 block{};
  std::vector<uint32_t> sizes; // of the buffers, in words
  std::vector<uint64_t> scalars;
};

struct TileFixture : SimFixture {
  explicit TileFixture(const Case& about) : SimFixture(about.text, "reference", about.kernel) {
    for (const uint32_t count : about.sizes) {
      std::vector<uint32_t> values(count);
      for (uint32_t i = 0; i < count; ++i) {
        values[i] = i * 2654435761u;
      }
      words(values);
    }
    for (const uint64_t bits : about.scalars) {
      scalar(bits);
    }
  }
};

std::optional<GridProof> proof_of(const Case& about) {
  TileFixture sim(about);
  return prove_grid(*sim.launch(about.grid, about.block));
}

RunOutcome run_of(const Case& about, unsigned threads) {
  TileFixture sim(about);
  return outcome_of(sim, sim.run(about.grid, about.block, {.host_threads = threads}));
}

/// Who accessed which byte of hbm, as far as two blocks meet.
class MeetingBlocks final : public Observer {
public:
  Wants wants() const override { return kWantsIssue; }
  void after_insn(const BlockRun& block, const IssueRecord& record) override {
    if (record.addresses == nullptr || record.space != isa::Space::kHbm) {
      return;
    }
    for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
      if (((record.exec_mask >> lane) & 1) != 0) {
        Users& users = users_[record.addresses[lane]]; // whole words
        (record.writes_memory ? users.writers : users.readers).insert(block.index());
      }
    }
  }
  bool found() const {
    return std::any_of(users_.begin(), users_.end(), [](const auto& entry) {
      const Users& users = entry.second;
      return users.writers.size() > 1 ||
             (users.writers.size() == 1 &&
              (users.readers.size() > 1 ||
               (users.readers.size() == 1 && users.readers != users.writers)));
    });
  }

private:
  struct Users {
    std::set<uint64_t> readers;
    std::set<uint64_t> writers;
  };
  std::map<uint64_t, Users> users_;
};

/// Proven, with so many insns at most; comes out the same on any number of threads.
void check_tiles(const Case& about, bool are_lanes_apart = false) {
  const std::optional<GridProof> proof = proof_of(about);
  REQUIRE(proof.has_value());
  CHECK(proof->are_lanes_apart == are_lanes_apart);
  TileFixture sim(about);
  const std::unique_ptr<Launch> launch = sim.launch(about.grid, about.block);
  MeetingBlocks meeting;
  launch->observers().attach(meeting);
  const RunOutcome expected = outcome_of(sim, run_functional(*launch));
  CHECK(expected.status == RunStatus::kCompleted);
  CHECK_FALSE(meeting.found());
  const uint64_t warps =
      (uint64_t{about.block.x} * about.block.y * about.block.z + isa::kWarpLanes - 1) /
      isa::kWarpLanes * about.grid.x * about.grid.y * about.grid.z;
  CHECK(expected.warp_insns <= proof->insns * warps);
  CHECK(run_of(about, 1) == expected);
  CHECK(run_of(about, 2) == expected);
  CHECK(run_of(about, 5) == expected);
}

Case transpose(const std::string& kernel, uint32_t rows, uint32_t columns) {
  return {.text = example("transpose/transpose.pto"),
          .kernel = kernel,
          .grid = {(columns + 31) / 32, (rows + 31) / 32},
          .block = {32, 8},
          .sizes = {rows * columns, rows * columns},
          .scalars = {rows, columns}};
}

constexpr const char* kHead = ".pto 1\n.kernel k(ptr a, ptr o, u32 w, u32 h)\n"
                              ".tile t, u32[16][16]\n";
Case tiles(const std::string& body) {
  return {.text = kHead + body + ".end\n",
          .kernel = "k",
          .grid = {5, 4},
          .block = {16, 16},
          .sizes = {80 * 64, 80 * 64},
          .scalars = {80, 64}};
}
constexpr const char* kPlace = "    mov.u32 r0, %gid.x\n    mov.u32 r1, %gid.y\n"
                               "    mov.u32 r2, %tid.x\n    mov.u32 r3, %tid.y\n"
                               "    mad.u32 r4, r1, w, r0\n    mad.u32 r5, r3, 16, r2\n";

} // namespace

TEST_CASE("transposes of any size are proven") {
  for (const auto& size :
       {std::pair{256u, 128u}, {250u, 130u}, {33u, 31u}, {100u, 1u}, {1u, 700u}}) {
    const auto rows = size.first;
    const auto columns = size.second;
    CAPTURE(rows);
    CAPTURE(columns);
    check_tiles(transpose("transpose_naive", rows, columns), true);
    check_tiles(transpose("transpose_shared", rows, columns));
    check_tiles(transpose("transpose_padded", rows, columns));
    // A row that nobody has room for.
    Case outside = transpose("transpose_padded", rows, columns);
    outside.sizes[1] -= 1;
    CHECK_FALSE(proof_of(outside).has_value());
  }
}

TEST_CASE("tiles that are proven") {
  const std::string place = kPlace;
  check_tiles(tiles(place + R"( // neighbours in the tile
    load.u32 r6, hbm[a + r4*4]
    store.u32 l1[t + r5*4], r6
    barrier_block
    xor.b32 r7, r2, r3
    load.u32 r7, l1[t + r5*4]
    store.u32 hbm[o + r4*4], r7
    exit
)"));
  check_tiles(tiles(place + R"( // either side of a branch
    cmp.lt.u32 p0, r0, 40
@p0 bra left
    add.u32 r6, r4, 0
    store.u32 hbm[o + r6*4], r1
    bra met
left:
    mov.u32 r6, r4
    load.u32 r7, hbm[a + r6*4]
    store.u32 hbm[o + r6*4], r7
met:
    barrier_block
    load.u32 r8, hbm[o + r4*4]
    store.u32 hbm[o + r4*4], r8
    exit
)"));
  check_tiles(tiles(place + R"( // within the picture, by one predicate
    cmp.lt.u32 p0, r0, 77
    cmp.lt.and.u32 p0, r1, 61, p0
@p0 store.u32 hbm[o + r4*4], r1
    exit
)"),
              true);
  check_tiles(tiles(place + R"( // outside of it, by one predicate
    cmp.ge.u32 p1, r0, 77
    cmp.ge.or.u32 p0, r1, 61, p1
@p0 bra end
    store.u32 hbm[o + r4*4 + 12], r1
end:
    exit
)"),
              true);
  Case narrow = tiles(place + R"( // columns that end at different times
    mov.u32 r6, r0
next:
    mad.u32 r7, r1, w, r6
    load.u32 r8, hbm[a + r7*4]
    store.u32 hbm[o + r7*4], r8
    add.u32 r6, r6, 16
    cmp.lt.u32 p0, r6, 70
@p0 bra next
    barrier_block
    exit
)");
  narrow.grid.x = 1;
  check_tiles(narrow);
  check_tiles(tiles(place + R"( // lanes of a block that write one place, in their order
    mov.u32 r6, %ctaid.x
    mov.u32 r7, %ctaid.y
    mad.u32 r6, r7, 5, r6
    store.u32 hbm[o + r6*4], r5
    exit
)"));
}

TEST_CASE("tiles that are not") {
  const std::string place = kPlace;
  const auto check_unproven = [&](const std::string& body) {
    CAPTURE(body);
    const Case about = tiles(place + body);
    CHECK_FALSE(proof_of(about).has_value());
    CHECK(run_of(about, 2) == run_of(about, 1));
  };
  check_unproven(R"( // past the end of the tile
    store.u32 l1[t + r5*4 + 4], r0
    exit
)");
  check_unproven(R"( // a barrier that some pass over
    cmp.lt.u32 p0, r0, 40
@p0 bra skip
    barrier_block
skip:
    exit
)");
  check_unproven(R"( // and one that some lanes never come to, as far as can be told
    cmp.lt.u32 p0, r0, 4
@p0 bra end
    barrier_block
    store.u32 hbm[o + r4*4], r0
end:
    exit
)");
  check_unproven(R"( // the next tile's column
    load.u32 r6, hbm[o + r4*4 + 4]
    store.u32 hbm[o + r4*4], r6
    exit
)");
  check_unproven(R"( // all rows of blocks write the same
    store.u32 hbm[o + r0*4], r1
    exit
)");
  check_unproven(R"( // a product of two coordinates
    mul.u32 r6, r0, r1
    store.u32 hbm[o + r6*4], r1
    exit
)");
  check_unproven(R"( // a loop that depends on data
next:
    load.u32 r6, hbm[a + r4*4]
    and.b32 r6, r6, 1
    cmp.gt.u32 p0, r6, 1
@p0 bra next
    exit
)");
}

TEST_CASE("random kernels over tiles: what is proven ends well, and no blocks meet") {
  std::mt19937 random(17);
  RandomChoice choose(random);
  unsigned proven = 0;
  unsigned met = 0;
  for (unsigned round = 0; round < 500; ++round) {
    std::string body = kPlace;
    const unsigned steps = 2 + choose.below(5);
    for (unsigned i = 0; i < steps; ++i) {
      body += "    mad.u32 r6, " + choose.pick({"r1", "r1", "r1", "r3"}) + ", " +
              choose.pick({"w", "w", "79"}) + ", " + choose.pick({"r0", "r0", "r2"}) + "\n";
      const std::string offset = choose.pick({"", "", "", " + 4", " + 320", " - 320"});
      const std::string index = choose.pick({"r4", "r4", "r6"});
      body += "    cmp." + choose.pick({"lt", "ge", "eq", "le", "gt"}) + ".u32 p0, " +
              choose.pick({"r0", "r1", "r2", "r3", "r4"}) + ", " +
              std::to_string(choose.below(100)) + "\n";
      body += choose.below(3) == 0
                  ? "    cmp.lt.and.u32 p0, r1, " + std::to_string(choose.below(70)) + ", p0\n"
                  : "";
      const unsigned how = choose.below(7);
      if (how == 0) {
        body += "@p0 exit\n";
      } else if (how == 1) {
        body += "@!p0 bra skip" + std::to_string(i) + "\n";
      }
      const std::string guard = how == 2 ? "@p0 " : how == 3 ? "@!p0 " : "    ";
      body +=
          guard + (choose.below(2) == 0 ? "load.u32 r7, hbm[" + choose.pick({"a", "o"}) + " + " +
                                              index + "*4" + offset + "]\n"
                                        : "store.u32 hbm[o + " + index + "*4" + offset + "], r7\n");
      if (choose.below(3) == 0) {
        body += "    store.u32 l1[t + r5*4], r7\n    load.u32 r7, l1[t + r5*4]\n";
      }
      body += how == 1 ? "skip" + std::to_string(i) + ":\n" : "";
      body += how != 1 && choose.below(4) == 0 ? "    barrier_block\n" : "";
    }
    CAPTURE(body);
    const Case about = tiles(body + "    exit\n");
    const std::optional<GridProof> proof = proof_of(about);
    TileFixture sim(about);
    const std::unique_ptr<Launch> launch = sim.launch(about.grid, about.block);
    MeetingBlocks meeting;
    launch->observers().attach(meeting);
    const RunOutcome expected = outcome_of(sim, run_functional(*launch));
    met += meeting.found() ? 1 : 0;
    proven += proof ? 1 : 0;
    if (proof) {
      CHECK(expected.status == RunStatus::kCompleted);
      CHECK_FALSE(meeting.found());
      CHECK(run_of(about, 1) == expected);
      CHECK(run_of(about, 3) == expected);
    }
  }
  CHECK(proven > 40);
  CHECK(met > 40);
}

} // namespace pto::sim
