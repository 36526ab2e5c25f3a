// SPDX-License-Identifier: Apache-2.0
// ALLOC_LOCAL FREE_LOCAL FILL ASYNC_LOAD ASYNC_STORE WAIT WAIT_ALL: operands come from the lowest
// active lane, and bytes land where a loop over rows and bytes puts them.
#include "semantics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace pto::test {

using namespace pto::isa;

namespace {

constexpr unsigned kFirstActive = 5; // lanes below it hold other values

Operand r(unsigned index) {
  return {.kind = OperandKind::kReg32, .index = index};
}
Operand tile(unsigned index) {
  return {.kind = OperandKind::kTile, .index = index};
}
Operand event(unsigned index) {
  return {.kind = OperandKind::kEvent, .index = index};
}

Insn with_operands(const Insn& shape, std::vector<Operand> operands, uint8_t form = 0) {
  Insn insn = shape;
  insn.form = form;
  insn.operand_count = static_cast<uint8_t>(operands.size());
  std::copy(operands.begin(), operands.end(), insn.operands.begin());
  REQUIRE(validate(insn) == "");
  return insn;
}

// A context whose lowest active lane is not lane 0, with r[i] = values[i] there.
TestContext context_with(const std::vector<uint32_t>& values) {
  TestContext ctx(64);
  ctx.activate({0xffffffe0 & ~(1u << 9), 1});
  for (unsigned i = 0; i < values.size(); ++i) {
    for (unsigned lane = 0; lane < ctx.lanes(); ++lane) {
      ctx.reg32(i)[lane] = lane == kFirstActive ? values[i] : 0x40000000 + lane;
    }
  }
  ctx.tiles[1] = {1024, 512};
  ctx.symbol_offsets = {64, 4096};
  ctx.symbol_bytes = {96, 256};
  ctx.params = {TestContext::kHbmBase + 8192, 48};
  Random random(41);
  for (uint8_t& byte : ctx.hbm) {
    byte = static_cast<uint8_t>(random.bits32());
  }
  for (uint8_t& byte : ctx.l1) {
    byte = static_cast<uint8_t>(random.bits32());
  }
  return ctx;
}

void test_alloc(const Insn& shape) {
  TestContext ctx = context_with({4096});
  CHECK(shape.desc->exec(ctx, with_operands(shape, {tile(3), r(0)})) == Outcome::kNext);
  CHECK(shape.desc->exec(ctx, with_operands(shape, {tile(15), Operand::immediate(96)})) ==
        Outcome::kNext);
  const Operand param{.kind = OperandKind::kParam, .index = 1};
  CHECK(shape.desc->exec(ctx, with_operands(shape, {tile(0), param})) == Outcome::kNext);
  CHECK(ctx.calls == std::vector<std::string>{"alloc t3 4096", "alloc t15 96", "alloc t0 48"});
  Insn insn = with_operands(shape, {tile(3), r(0)});
  insn.operands[0] = {.kind = OperandKind::kSymbol, .index = 1};
  CHECK(validate(insn) != "");
}

void test_free(const Insn& shape) {
  TestContext ctx = context_with({});
  CHECK(shape.desc->exec(ctx, with_operands(shape, {tile(3)})) == Outcome::kNext);
  CHECK(ctx.calls == std::vector<std::string>{"free t3"});
}

// `bytes` bytes at `offset` hold the low bits of `value` again and again; the others are as before.
void check_fill(const Insn& insn, uint64_t value, uint64_t offset, uint64_t bytes) {
  TestContext ctx = context_with({static_cast<uint32_t>(value), static_cast<uint32_t>(bytes)});
  const unsigned size = size_bytes(insn.type);
  std::vector<uint8_t> want = ctx.l1;
  for (uint64_t i = 0; i < bytes; ++i) {
    want[offset + i] = static_cast<uint8_t>(value >> (i % size * 8));
  }
  CHECK(insn.desc->exec(ctx, insn) == Outcome::kNext);
  CHECK_MESSAGE(ctx.l1 == want, name_of(insn));
}

void test_fill(const Insn& shape) {
  const Operand shared{.kind = OperandKind::kSymbol, .index = 1};
  MemRef ref{.offset = 36};
  ref.space = Space::kL1;
  const Operand l1 = Operand::memory(ref);
  for (const uint64_t value : edge_values(shape.type)) {
    check_fill(with_operands(shape, {tile(1), r(0)}), value, 1024, 512);
    check_fill(with_operands(shape, {shared, r(0)}), value, 4096, 256);
    check_fill(with_operands(shape, {tile(1), r(0), r(1)}), value, 1024, 64);
    check_fill(with_operands(shape, {l1, r(0), Operand::immediate(20)}), value, 36, 20);
    check_fill(with_operands(shape, {l1, Operand::immediate(value), r(1)}), value, 36, 44);
  }
  check_fill(with_operands(shape, {tile(1), r(0), r(1)}), 7, 1024, 0);
  TestContext ctx = context_with({1});
  const std::vector<uint8_t> before = ctx.l1;
  if (size_bytes(shape.type) > 1) {
    CHECK(shape.desc->exec(ctx, with_operands(shape, {tile(1), r(0), Operand::immediate(7)})) ==
          Outcome::kFault);
    CHECK(ctx.fault_text != "");
  }
  CHECK(shape.desc->exec(ctx, with_operands(shape, {l1, r(0), Operand::immediate(1 << 20)})) ==
        Outcome::kFault);
  CHECK(ctx.l1 == before);
}

struct Rows {
  uint32_t rows, row_bytes;
  int32_t hbm_stride, l1_stride;
};

// Both ends of a copy: hbm[d7 + 16] with d7 in the lowest active lane, and an l1 end.
void check_copy(const Insn& shape,
                bool in,
                const Operand& l1,
                uint64_t l1_offset,
                const Rows& rows,
                bool two_dimensional,
                bool with_event) {
  constexpr uint64_t kHbmOffset = 20000;
  const Operand hbm =
      Operand::memory(MemRef{.offset = 16, .base_index = 7, .base = BaseKind::kReg});
  std::vector<Operand> operands = {in ? l1 : hbm, in ? hbm : l1};
  if (two_dimensional) {
    operands.insert(operands.end(), {r(0), r(1), r(2), r(3)});
  } else {
    operands.push_back(r(1));
  }
  if (with_event) {
    operands.push_back(event(6));
  }
  const Insn insn = with_operands(shape, operands, two_dimensional ? 1 : 0);
  TestContext ctx = context_with({rows.rows,
                                  rows.row_bytes,
                                  static_cast<uint32_t>(rows.hbm_stride),
                                  static_cast<uint32_t>(rows.l1_stride)});
  for (unsigned lane = 0; lane < ctx.lanes(); ++lane) {
    ctx.reg64(7)[lane] = lane == kFirstActive ? TestContext::kHbmBase + kHbmOffset - 16 : lane;
  }
  std::vector<uint8_t> want_l1 = ctx.l1;
  std::vector<uint8_t> want_hbm = ctx.hbm;
  for (int64_t row = 0; row < rows.rows; ++row) {
    for (int64_t byte = 0; byte < rows.row_bytes; ++byte) {
      uint8_t& local = want_l1[static_cast<size_t>(static_cast<int64_t>(l1_offset) +
                                                   row * rows.l1_stride + byte)];
      uint8_t& global = want_hbm[static_cast<size_t>(static_cast<int64_t>(kHbmOffset) +
                                                     row * rows.hbm_stride + byte)];
      (in ? local : global) = in ? global : local;
    }
  }
  CHECK(insn.desc->exec(ctx, insn) == Outcome::kNext);
  CHECK(ctx.calls ==
        std::vector{std::string("copy ") + (in ? "in " : "out ") + std::to_string(rows.rows) + "x" +
                    std::to_string(rows.row_bytes) + (with_event ? " e6" : "")});
  CHECK(ctx.l1 == want_l1);
  CHECK(ctx.hbm == want_hbm);
}

template <bool kIn> void test_copy(const Insn& shape) {
  MemRef ref{.offset = 2048};
  ref.space = Space::kL1;
  const Operand symbol{.kind = OperandKind::kSymbol, .index = 0};
  for (const bool with_event : {false, true}) {
    for (const uint32_t bytes : {0u, 1u, 31u, 4096u}) {
      check_copy(shape, kIn, tile(1), 1024, {1, bytes, 0, 0}, false, with_event);
      check_copy(shape, kIn, symbol, 64, {1, bytes, 0, 0}, false, with_event);
      check_copy(shape, kIn, Operand::memory(ref), 2048, {1, bytes, 0, 0}, false, with_event);
    }
    for (const Rows& rows : {Rows{4, 16, 100, 16},
                             Rows{3, 7, -50, 9},
                             Rows{5, 32, 32, -40},
                             Rows{0, 16, 16, 16},
                             Rows{2, 0, 5, 5},
                             Rows{6, 24, 0, 24}}) {
      check_copy(shape, kIn, tile(1), 1024, rows, true, with_event);
      check_copy(shape, kIn, Operand::memory(ref), 2048, rows, true, with_event);
    }
  }
}

void test_wait(const Insn& shape) {
  TestContext ctx = context_with({});
  for (unsigned e = 0; e < kEventCount; ++e) {
    CHECK(shape.desc->exec(ctx, with_operands(shape, {event(e)})) == Outcome::kNext);
    CHECK(ctx.calls.back() == "wait e" + std::to_string(e));
  }
}

void test_wait_all(const Insn& shape) {
  TestContext ctx = context_with({});
  CHECK(shape.desc->exec(ctx, shape) == Outcome::kNext);
  CHECK(ctx.calls == std::vector<std::string>{"wait all"});
}

constexpr RowTest kTests[] = {
    {"alloc_local", test_alloc},
    {"free_local", test_free},
    {"fill", test_fill},
    {"async_load", test_copy<true>},
    {"async_store", test_copy<false>},
    {"wait", test_wait},
    {"wait_all", test_wait_all},
};

TEST_CASE("tiles and copies move the bytes that loops move") {
  run_family(kTests);
}

} // namespace

std::span<const RowTest> copy_tests() {
  return kTests;
}

} // namespace pto::test
