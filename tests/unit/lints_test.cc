// SPDX-License-Identifier: Apache-2.0
// Warnings: each where it is due and not where it is not.
#include "assembler/assemble.h"
#include "isa/diag.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace pto;

namespace {

/// Names of the warnings of a kernel, in order.
std::vector<std::string> warnings_of(const std::string& body, const std::string& params = "ptr a") {
  isa::Diagnostics diags;
  const auto object =
      as::assemble_text("t.pto", ".kernel k(" + params + ")\n" + body + "\n.end\n", {}, diags);
  INFO(isa::render(diags));
  REQUIRE(object);
  std::vector<std::string> names;
  const std::string text = isa::render(diags);
  for (size_t at = text.find("[-W"); at != std::string::npos; at = text.find("[-W", at + 1)) {
    names.push_back(text.substr(at + 3, text.find(']', at) - at - 3));
  }
  return names;
}

using Names = std::vector<std::string>;

} // namespace

TEST_CASE("read before write: on some path, but not under both guards of one predicate") {
  CHECK(warnings_of(" store.u32 hbm[a], r0\n exit") == Names{"read-before-write"});
  CHECK(warnings_of(" mov.u32 r0, 1\n store.u32 hbm[a], r0\n exit") == Names{});
  CHECK(warnings_of(" mov.u32 r1, %lane\n cmp.lt.u32 p0, r1, 4\n@p0 bra over\n mov.u32 r0, 1\n"
                    "over: store.u32 hbm[a], r0\n exit") == Names{"read-before-write"});
}

TEST_CASE("unreachable code is one warning for a stretch of it") {
  CHECK(warnings_of(" exit\n nop\n nop\n exit") == Names{"unreachable-code"});
  CHECK(warnings_of(" bra end\nend: exit") == Names{});
}

TEST_CASE("a register that is written and never read") {
  CHECK(warnings_of(" mov.u32 r5, 1\n exit") == Names{"unused-register"});
}

TEST_CASE("barrier where shared data crosses warps") {
  const std::string body = ".shared s, u32[64]\n mov.u32 r0, %tid.x\n"
                           " store.u32 l1[s + r0*4], r0\n BARRIER\n xor.b32 r1, r0, 32\n"
                           " load.u32 r2, l1[s + r1*4]\n store.u32 hbm[a + r0*4], r2\n exit";
  std::string warp = body;
  warp.replace(warp.find("BARRIER"), 7, "barrier");
  std::string block = body;
  block.replace(block.find("BARRIER"), 7, "barrier_block");
  CHECK(warnings_of(warp) == Names{"barrier-scope"});
  CHECK(warnings_of(block) == Names{});
}
