// SPDX-License-Identifier: Apache-2.0
// BRA CALL RET EXIT NOP BARRIER BARRIER_BLOCK PRINT TRAP: each is one call of the context.
#include "semantics.h"

#include <doctest/doctest.h>

#include <string>

namespace pto::test {

using namespace pto::isa;

namespace {

void check_call(const Insn& insn, Outcome outcome, const std::string& call) {
  TestContext ctx;
  CHECK(insn.desc->exec(ctx, insn) == outcome);
  CHECK(ctx.calls == std::vector{call});
}

// The immediate that the insn's first operand is, or what an absent one means.
std::string number_or(const Insn& insn, unsigned otherwise) {
  return std::to_string(insn.has_operand(0) ? insn.operands[0].bits : otherwise);
}

void test_bra(const Insn& shape) {
  for (const Insn& insn : insns_of(shape)) {
    check_call(insn, Outcome::kControl, "branch " + number_or(insn, 0));
  }
}
void test_call(const Insn& shape) {
  for (Insn insn : insns_of(shape)) {
    insn.operands[0].bits = 123456;
    check_call(insn, Outcome::kControl, "call 123456");
  }
}
void test_ret(const Insn& shape) {
  check_call(shape, Outcome::kControl, "ret");
}
void test_exit(const Insn& shape) {
  check_call(shape, Outcome::kControl, "exit");
}

void test_nop(const Insn& shape) {
  for (const Insn& insn : insns_of(shape)) {
    check_call(insn, Outcome::kNext, "nop " + number_or(insn, 1));
  }
}
void test_barrier(const Insn& shape) {
  check_call(shape, Outcome::kNext, "barrier warp");
}

void test_barrier_block(const Insn& shape) {
  for (const Insn& insn : insns_of(shape)) {
    check_call(insn, Outcome::kNext, "barrier " + number_or(insn, 0));
  }
  Insn insn = shape;
  insn.operand_count = 1;
  insn.operands[0] = Operand::immediate(15);
  CHECK(validate(insn).empty());
  insn.operands[0] = Operand::immediate(16);
  CHECK(!validate(insn).empty());
}

void test_print(const Insn& shape) {
  for (const Insn& insn : insns_of(shape)) {
    check_call(insn, Outcome::kNext, "print " + std::to_string(insn.operand_count - 1));
  }
}

void test_trap(const Insn& shape) {
  for (const Insn& insn : insns_of(shape)) {
    check_call(insn, Outcome::kFault, "trap " + number_or(insn, 0));
  }
}

constexpr RowTest kTests[] = {
    {"bra", test_bra},
    {"call", test_call},
    {"ret", test_ret},
    {"exit", test_exit},
    {"nop", test_nop},
    {"barrier", test_barrier},
    {"barrier_block", test_barrier_block},
    {"print", test_print},
    {"trap", test_trap},
};

TEST_CASE("control insns ask the context for the right thing") {
  run_family(kTests);
}

} // namespace

std::span<const RowTest> control_tests() {
  return kTests;
}

} // namespace pto::test
