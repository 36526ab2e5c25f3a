// SPDX-License-Identifier: Apache-2.0
// MMA against three plain loops in the documented order: acc = C, then one fused product after the
// other, k ascending.
#include "semantics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace pto::test {

using namespace pto::isa;

namespace {

constexpr uint64_t kA = 0; // offsets of the three matrices in scratchpad
constexpr uint64_t kB = 20000;
constexpr uint64_t kC = 40000;

struct Sizes {
  uint32_t m, n, k;
  uint32_t lda, ldb, ldc; // 0: not given
};

// A float input as an f32 register, exactly.
uint64_t widened(Type type, uint64_t slot) {
  return slot_of_number(Type::kF32, number_of(type, slot));
}

uint64_t step(const Insn& shape, uint64_t acc, uint64_t a, uint64_t b) {
  if (is_float(shape.type)) {
    return float_fma(Type::kF32, widened(shape.type2, a), widened(shape.type2, b), acc);
  }
  return slot_of(Type::kS32,
                 integer_of(Type::kS32, acc) +
                     integer_of(shape.type2, a) * integer_of(shape.type2, b));
}

Insn build(const Insn& shape, const Sizes& s, bool addresses) {
  Insn insn = shape;
  const auto matrix = [&](uint32_t tile, uint64_t offset) {
    MemRef ref{.offset = static_cast<int32_t>(offset)};
    ref.space = Space::kL1;
    return addresses ? Operand::memory(ref) : Operand{.kind = OperandKind::kTile, .index = tile};
  };
  insn.operands = {matrix(2, kC), matrix(0, kA), matrix(1, kB)};
  for (unsigned i = 3; i < 6; ++i) {
    insn.operands[i] = {.kind = OperandKind::kReg32, .index = i};
  }
  insn.operand_count = 6;
  for (const uint32_t ld : {s.lda, s.ldb, s.ldc}) {
    if (ld != 0) {
      insn.operands[insn.operand_count++] = Operand::immediate(ld);
    }
  }
  REQUIRE(validate(insn) == "");
  return insn;
}

TestContext context_for(const Sizes& s) {
  TestContext ctx;
  ctx.tiles = {{0, {kA, 20000}}, {1, {kB, 20000}}, {2, {kC, 20000}}};
  for (unsigned lane = 0; lane < ctx.lanes(); ++lane) {
    ctx.reg32(3)[lane] = s.m;
    ctx.reg32(4)[lane] = s.n;
    ctx.reg32(5)[lane] = s.k;
  }
  return ctx;
}

// Values of one type all over a part of scratchpad; `kind` 0: edges, 1: any bits, 2: tame numbers.
void scatter(TestContext& ctx, Type type, uint64_t from, Random& random, unsigned kind) {
  const std::vector<uint64_t> edges = edge_values(type);
  const unsigned size = size_bytes(type);
  for (uint64_t at = from; at + size <= from + 20000; at += size) {
    const uint64_t value =
        kind == 0   ? edges[random.bits32() % edges.size()]
        : kind == 1 ? random_value(type, random)
        : is_float(type)
            ? slot_of_rounded(type, (random.bits32() % 2001) / 1000.0 - 1.0, Rounding::kNearestEven)
            : random.bits32();
    ctx.write_l1(at, size, value);
  }
}

void check_product(
    const Insn& shape, const Sizes& s, bool addresses, Random& random, unsigned kind) {
  const Insn insn = build(shape, s, addresses);
  TestContext ctx = context_for(s);
  const unsigned in = size_bytes(shape.type2);
  scatter(ctx, shape.type2, kA, random, kind);
  scatter(ctx, shape.type2, kB, random, kind);
  scatter(ctx, shape.type, kC, random, kind);
  const uint32_t lda = s.lda != 0 ? s.lda : s.k;
  const uint32_t ldb = s.ldb != 0 ? s.ldb : s.n;
  const uint32_t ldc = s.ldc != 0 ? s.ldc : s.n;
  std::vector<uint8_t> want = ctx.l1;
  for (uint64_t i = 0; i < s.m; ++i) {
    for (uint64_t j = 0; j < s.n; ++j) {
      const uint64_t at = kC + (i * ldc + j) * 4;
      uint64_t acc = ctx.read_l1(at, 4);
      for (uint64_t k = 0; k < s.k; ++k) {
        const uint64_t a = ctx.read_l1(kA + (i * lda + k) * in, in);
        const uint64_t b = ctx.read_l1(kB + (k * ldb + j) * in, in);
        acc = step(shape, acc, a, b);
      }
      for (unsigned byte = 0; byte < 4; ++byte) {
        want[at + byte] = static_cast<uint8_t>(acc >> (8 * byte));
      }
    }
  }
  CHECK(insn.desc->exec(ctx, insn) == Outcome::kNext);
  CHECK_MESSAGE(ctx.l1 == want, name_of(shape), " ", s.m, "x", s.n, "x", s.k);
  // What it reads and writes is what the checks are told.
  CHECK(ctx.calls ==
        std::vector{"range 40000 " + std::to_string(((s.m - 1) * ldc + s.n) * 4) + " reads writes",
                    "range 0 " + std::to_string(((s.m - 1) * lda + s.k) * in) + " reads",
                    "range 20000 " + std::to_string(((s.k - 1) * ldb + s.n) * in) + " reads"});
}

void check_fault(const Insn& shape, const Sizes& s) {
  const Insn insn = build(shape, s, false);
  TestContext ctx = context_for(s);
  Random random(1);
  scatter(ctx, shape.type, kC, random, 1);
  const std::vector<uint8_t> before = ctx.l1;
  CHECK(insn.desc->exec(ctx, insn) == Outcome::kFault);
  CHECK(ctx.fault_text != "");
  CHECK(ctx.l1 == before);
}

void test_mma(const Insn& shape) {
  Random random(51);
  const Sizes sizes[] = {{1, 1, 1, 0, 0, 0},
                         {16, 16, 16, 0, 0, 0},
                         {3, 5, 7, 0, 0, 0},
                         {2, 300, 3, 0, 0, 0}, // more columns than one strip
                         {4, 4, 40, 41, 7, 9},
                         {5, 1, 9, 0, 0, 0},
                         {1, 7, 4, 4, 7, 7},
                         {6, 6, 2, 30, 0, 0}};
  for (const Sizes& s : sizes) {
    for (unsigned kind = 0; kind < 3; ++kind) {
      check_product(shape, s, kind == 1, random, kind);
    }
  }
  check_fault(shape, {0, 4, 4, 0, 0, 0});
  check_fault(shape, {4, 0, 4, 0, 0, 0});
  check_fault(shape, {4, 4, 0, 0, 0, 0});
  check_fault(shape, {4, 4, 4, 3, 0, 0});
  check_fault(shape, {4, 4, 4, 4, 3, 0});
  check_fault(shape, {4, 4, 4, 4, 4, 3});
  check_fault(shape, {1000, 1000, 4, 0, 0, 0});
  check_fault(shape, {1, 1, 1u << 20, 0, 0, 0});
  check_fault(shape, {0xffffffff, 0xffffffff, 0xffffffff, 0, 0, 0});
  check_fault(shape, {0xffffffff, 1, 1, 0xffffffff, 0xffffffff, 0xffffffff});
}

constexpr RowTest kTests[] = {{"mma", test_mma}};

TEST_CASE("matrix products agree with three loops") {
  run_family(kTests);
}

} // namespace

std::span<const RowTest> matrix_tests() {
  return kTests;
}

} // namespace pto::test
