// SPDX-License-Identifier: Apache-2.0
// Blocks, reachability and reconvergence points of the shapes that kernels have.
#include "assembler/assemble.h"
#include "isa/cfg.h"

#include <doctest/doctest.h>

using namespace pto;

namespace {

isa::Object assemble(const std::string& body) {
  isa::Diagnostics diags({.no_warnings = true});
  auto object = as::assemble_text("t.pto", ".kernel k(u32 n)\n" + body + "\n.end\n", {}, diags);
  INFO(isa::render(diags));
  REQUIRE(object);
  return *object;
}

// Join of the branch at `branch_pc`.
uint32_t join(const isa::Object& object, uint32_t branch_pc) {
  for (const isa::Reconvergence& point : object.functions[0].reconvergence) {
    if (point.branch_pc == branch_pc) {
      return point.join_pc;
    }
  }
  FAIL("no reconvergence point for the branch");
  return 0;
}

} // namespace

TEST_CASE("an if joins behind it, an if-else behind both arms") {
  const isa::Object object = assemble("@p0 bra skip\n nop\nskip: nop\n" // 0 1 2
                                      "@p1 bra other\n nop\n bra end\n" // 3 4 5
                                      "other: nop\nend: exit");         // 6 7
  CHECK(join(object, 0) == 2);
  CHECK(join(object, 3) == 7);
}

TEST_CASE("nested ifs join inside out") {
  const isa::Object object = assemble("@p0 bra outer\n@p1 bra inner\n nop\n" // 0 1 2
                                      "inner: nop\nouter: exit");            // 3 4
  CHECK(join(object, 1) == 3);
  CHECK(join(object, 0) == 4);
}

TEST_CASE("a loop with a break joins behind the loop") {
  const isa::Object object = assemble("loop: @p0 bra done\n nop\n@p1 bra done\n" // 0 1 2
                                      " nop\n@p2 bra loop\n"                     // 3 4
                                      "done: exit");                             // 5
  CHECK(join(object, 0) == 5);
  CHECK(join(object, 2) == 5);
  CHECK(join(object, 4) == 5);
}

TEST_CASE("a predicated exit does not keep the other lanes from rejoining") {
  const isa::Object object = assemble("@p0 bra other\n@p1 exit\n nop\n" // 0 1 2
                                      "other: nop\n exit");             // 3 4
  CHECK(join(object, 0) == 3);
}

TEST_CASE("arms that end by their own exit never rejoin") {
  const isa::Object object = assemble("@p0 bra other\n nop\n exit\nother: exit");
  CHECK(join(object, 0) == isa::kNoReconvergence);
}

TEST_CASE("an irreducible graph has post-dominators as any other") {
  // Two entries into the cycle a <-> b.
  const isa::Object object = assemble("@p0 bra b\n"           // 0
                                      "a: nop\n@p1 bra end\n" // 1 2
                                      "b: nop\n@p2 bra a\n"   // 3 4
                                      "end: exit");           // 5
  CHECK(join(object, 0) == 5);
  CHECK(join(object, 2) == 5);
  CHECK(join(object, 4) == 5);
}

TEST_CASE("branches in a loop without a way out rejoin within it") {
  const isa::Object object = assemble("loop: @p0 bra other\n nop\n bra tail\n" // 0 1 2
                                      "other: nop\ntail: nop\n bra loop");     // 3 4 5
  CHECK(join(object, 0) == 4);
  const isa::Object self = assemble("here: bra here");
  CHECK(self.functions[0].reconvergence.empty());
}

TEST_CASE("blocks, edges and reachability") {
  const isa::Object object = assemble("@p0 bra end\n exit\n nop\n nop\nend: exit");
  const isa::Cfg cfg(object, object.functions[0]);
  REQUIRE(cfg.blocks().size() == 4);
  CHECK(cfg.blocks()[0].successor_count == 2);
  CHECK(cfg.blocks()[0].successors[0] == 3);
  CHECK(cfg.blocks()[0].successors[1] == 1);
  CHECK(cfg.blocks()[1].ends_path);
  CHECK(!cfg.blocks()[2].is_reachable);
  CHECK(cfg.blocks()[2].end_pc == 4);
  CHECK(cfg.block_at(4) == 3);
}

TEST_CASE("a long chain of blocks needs no stack") {
  std::string body;
  for (int i = 0; i < 20000; ++i) {
    body += "@p0 bra l" + std::to_string(i) + "\n nop\nl" + std::to_string(i) + ":\n";
  }
  const isa::Object object = assemble(body + " exit");
  CHECK(object.functions[0].reconvergence.size() == 20000);
  CHECK(join(object, 0) == 2);
  CHECK(join(object, 39998) == 40000);
}
