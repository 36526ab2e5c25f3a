// SPDX-License-Identifier: Apache-2.0
// Which parameters an address comes from.
#include "sim_fixture.h"
#include "simulator/pointer_origins.h"

namespace pto::sim {
namespace {

using Params = std::vector<uint32_t>;

/// Of d0 at the only store of the kernel.
std::optional<Params> origins(const std::string& body, const std::string& more = "") {
  CAPTURE(body);
  const auto program = program_of(".pto 1\n.kernel k(ptr a, ptr b, ptr c, u32 n, u64 w)\n" + body +
                                  "    exit\n.end\n" + more);
  uint32_t pc = 0;
  while (program->at(pc).insn.desc->mnemonic != "store") {
    ++pc;
  }
  return PointerOrigins(*program).of(pc, 0);
}

constexpr const char* kStore = "    store.u32 hbm[d0], r0\n";

} // namespace

TEST_CASE("an address comes from the parameters that made it") {
  CHECK(origins(std::string("    mad.wide.u32 d0, r0, 4, b\n") + kStore) == Params{1});
  CHECK(origins(std::string("    mov.b64 d0, a\n    mov.b64 d0, c\n") + kStore) == Params{2});
  CHECK(origins(std::string(R"(
    mov.b64 d1, c
    add.u64 d2, d1, 16
    mad.wide.u32 d0, r0, n, d2
    mov.b64 d1, a
)") + kStore) == Params{2, 3});
  CHECK(origins(std::string("    add.u64 d0, w, 8\n") + kStore) == Params{4});
  CHECK(origins(kStore) == Params{}); // zero
}

TEST_CASE("every way to the insn counts") {
  CHECK(origins(std::string(R"(
    mov.b64 d0, a
    cmp.lt.u32 p0, r0, n
@p0 mov.b64 d0, b
)") + kStore) == Params{0, 1});
  CHECK(origins(std::string(R"( // where both parts end
    cmp.lt.u32 p0, r0, n
@p0 bra other
    mov.b64 d0, a
    bra both
    mov.b64 d0, w
other:
    mov.b64 d0, c
both:
)") + kStore) == Params{0, 2});
  CHECK(origins(std::string(R"( // round a loop
    mov.b64 d0, a
    mov.b64 d1, b
next:
)") + kStore + R"(
    mov.b64 d0, d1
    add.u64 d1, d1, 4
    add.u32 r0, r0, 1
    cmp.lt.u32 p0, r0, n
@p0 bra next
)") == Params{0, 1});
  CHECK(origins(std::string(R"( // one of two
    mov.b64 d1, a
    mov.b64 d2, c
    cmp.lt.u32 p0, r0, n
    sel.b64 d0, d1, d2, p0
)") + kStore) == Params{0, 2});
}

TEST_CASE("an address that something else may have made") {
  CHECK_FALSE(origins(std::string("    load.b64 d0, hbm[a]\n") + kStore).has_value());
  CHECK_FALSE(origins(std::string("    load.b64 d1, hbm[a]\n    add.u64 d0, d1, b\n") + kStore)
                  .has_value());
  CHECK_FALSE(origins(std::string("    mov.b64 d0, a\n    call f\n") + kStore,
                      ".func f\n    mov.u64 d0, 0\n    ret\n.end\n")
                  .has_value());
  std::string longer = "    mov.b64 d0, a\n";
  for (int i = 0; i < 5000; ++i) {
    longer += "    add.u32 r1, r1, 1\n";
  }
  CHECK_FALSE(origins(longer + kStore).has_value());
}

} // namespace pto::sim
