// SPDX-License-Identifier: Apache-2.0
// ATOM: lanes one after the other on shared locations, against a loop over 128-bit integers.
#include "semantics.h"

#include <doctest/doctest.h>

#include <optional>
#include <string_view>

namespace pto::test {

using namespace pto::isa;

namespace {

// The new memory value; nothing for an operation without a reference.
std::optional<uint64_t>
updated(std::string_view op, Type type, uint64_t old, uint64_t a, uint64_t b) {
  if (is_float(type)) {
    return op == "add"   ? std::optional(float_add(type, old, a))
           : op == "min" ? std::optional(float_least(type, old, a, false))
           : op == "max" ? std::optional(float_least(type, old, a, true))
                         : std::nullopt;
  }
  const Int128 x = integer_of(type, old);
  const Int128 y = integer_of(type, a);
  const auto result = [&]() -> std::optional<Int128> {
    return op == "add"    ? std::optional(x + y)
           : op == "sub"  ? std::optional(x - y)
           : op == "min"  ? std::optional(x < y ? x : y)
           : op == "max"  ? std::optional(x > y ? x : y)
           : op == "and"  ? std::optional(x & y)
           : op == "or"   ? std::optional(x | y)
           : op == "xor"  ? std::optional(x ^ y)
           : op == "inc"  ? std::optional(x >= y ? Int128{0} : x + 1)
           : op == "dec"  ? std::optional(x == 0 || x > y ? y : x - 1)
           : op == "exch" ? std::optional(y)
           : op == "cas"  ? std::optional(x == y ? integer_of(type, b) : x)
                          : std::nullopt;
  }();
  return result ? std::optional(slot_of(type, *result)) : std::nullopt;
}

struct Sample {
  uint64_t old, a, b;
};

std::vector<Sample> samples(Type type, bool has_b) {
  std::vector<Sample> all;
  const std::vector<uint64_t> edges = has_b ? few_edge_values(type) : edge_values(type);
  const std::vector<uint64_t> edges_b = has_b ? edges : std::vector<uint64_t>{0};
  for (const uint64_t old : edges) {
    for (const uint64_t a : edges) {
      for (const uint64_t b : edges_b) {
        all.push_back({old, a, b});
      }
    }
  }
  Random random(77);
  for (unsigned i = 0; i < 10000; ++i) {
    const uint64_t old = random_value(type, random);
    const uint64_t a = random.bits32() % 4 == 0 ? old : random_value(type, random);
    all.push_back({old, a, random_value(type, random)});
  }
  return all;
}

Insn build(const Insn& shape, Space space, bool discards, bool has_b) {
  const OperandKind kind = is_wide(shape.type) ? OperandKind::kReg64 : OperandKind::kReg32;
  Insn insn = shape;
  insn.operand_count = has_b ? 4 : 3;
  insn.operands[0] =
      discards ? Operand{.kind = OperandKind::kDiscard} : Operand{.kind = kind, .index = 20};
  MemRef ref{.index_reg = 50};
  ref.space = space;
  ref.base = space == Space::kHbm ? BaseKind::kParam : BaseKind::kAbsolute;
  ref.scale_log2 = is_wide(shape.type) ? 3 : 2;
  insn.operands[1] = Operand::memory(ref);
  insn.operands[2] = {.kind = kind, .index = 1};
  if (has_b) {
    insn.operands[3] = {.kind = kind, .index = 2};
  }
  return insn;
}

// Each lane its own location.
void check_samples(const Insn& insn, std::string_view op, bool has_b, size_t from) {
  const Type type = insn.type;
  const unsigned size = size_bytes(type);
  const bool on_hbm = insn.operands[1].mem().space == Space::kHbm;
  TestContext ctx(256);
  ctx.params = {TestContext::kHbmBase};
  for (unsigned lane = 0; lane < ctx.lanes(); ++lane) {
    ctx.reg32(50)[lane] = lane;
  }
  Random random(5);
  unsigned wrong = 0;
  const std::vector<Sample> all = samples(type, has_b);
  for (size_t at = from; at < all.size(); at += ctx.lanes()) {
    ctx.activate(random_mask(random, ctx.lanes() / kWarpLanes));
    for (unsigned lane = 0; lane < ctx.lanes(); ++lane) {
      const Sample& sample = all[(at + lane) % all.size()];
      on_hbm ? ctx.write_hbm(lane * size, size, sample.old)
             : ctx.write_l1(lane * size, size, sample.old);
      ctx.set({.kind = insn.operands[2].kind, .index = 1}, lane, sample.a);
      ctx.set({.kind = insn.operands[2].kind, .index = 2}, lane, sample.b);
      ctx.set({.kind = insn.operands[2].kind, .index = 20}, lane, 0xfeedface);
    }
    REQUIRE(insn.desc->exec(ctx, insn) == Outcome::kNext);
    for (unsigned lane = 0; lane < ctx.lanes(); ++lane) {
      const Sample& sample = all[(at + lane) % all.size()];
      const auto result = updated(op, type, sample.old, sample.a, sample.b);
      const uint64_t want = ctx.is_active(lane) ? result.value_or(~0u) : sample.old;
      const uint64_t got =
          on_hbm ? ctx.read_hbm(lane * size, size) : ctx.read_l1(lane * size, size);
      const bool returns = ctx.is_active(lane) && insn.operands[0].kind != OperandKind::kDiscard;
      const uint64_t returned = ctx.get({.kind = insn.operands[2].kind, .index = 20}, lane);
      wrong += got == want && returned == (returns ? sample.old : 0xfeedface) ? 0 : 1;
    }
  }
  CHECK_MESSAGE(wrong == 0, name_of(insn), ": ", wrong, " wrong results");
}

// All lanes few locations, in ascending order.
void check_order(const Insn& insn, std::string_view op) {
  const Type type = insn.type;
  const unsigned size = size_bytes(type);
  TestContext ctx(96);
  ctx.params = {TestContext::kHbmBase};
  Random random(6);
  ctx.activate({~0u, 0x80f00001, random.bits32()});
  std::vector<uint64_t> model(3);
  std::vector<uint64_t> returned(ctx.lanes());
  for (unsigned lane = 0; lane < ctx.lanes(); ++lane) {
    const unsigned place = random.bits32() % 3;
    const Sample sample = {0, slot_of(type, Int128{random.bits32() % 5}), 3};
    ctx.reg32(50)[lane] = place;
    ctx.set(insn.operands[2], lane, sample.a);
    ctx.set({.kind = insn.operands[2].kind, .index = 2}, lane, sample.b);
    if (ctx.is_active(lane)) {
      returned[lane] = model[place];
      model[place] = updated(op, type, model[place], sample.a, sample.b).value_or(~0u);
    }
  }
  REQUIRE(insn.desc->exec(ctx, insn) == Outcome::kNext);
  unsigned wrong = 0;
  for (unsigned lane = 0; lane < ctx.lanes(); ++lane) {
    wrong += ctx.get(insn.operands[0], lane) == returned[lane] ? 0 : 1;
  }
  for (unsigned place = 0; place < 3; ++place) {
    wrong += ctx.read_hbm(place * size, size) == model[place] ? 0 : 1;
  }
  CHECK_MESSAGE(wrong == 0, name_of(insn), " in the order of lanes");
}

void test_atom(const Insn& shape) {
  const std::string_view op = mod_of(shape, "operation");
  const bool has_b = op == "cas";
  if (!updated(op, shape.type, 0, 0, 0)) {
    no_reference(shape);
    return;
  }
  for (const bool discards : {false, true}) {
    for (const Space space : {Space::kHbm, Space::kL1}) {
      const Insn insn = build(shape, space, discards, has_b);
      const bool valid = validate(insn).empty();
      CHECK(valid == (space == Space::kHbm || !is_wide(shape.type)));
      if (valid) {
        const bool others_did_it = discards || space != Space::kHbm;
        check_samples(insn, op, has_b, others_did_it ? 10000 : 0);
      }
    }
  }
  check_order(build(shape, Space::kHbm, false, has_b), op);
}

constexpr RowTest kTests[] = {{"atom", test_atom}};

TEST_CASE("atomics change memory as a sequence of lanes would") {
  run_family(kTests);
}

} // namespace

std::span<const RowTest> atomic_tests() {
  return kTests;
}

} // namespace pto::test
