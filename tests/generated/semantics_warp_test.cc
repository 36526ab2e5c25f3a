// SPDX-License-Identifier: Apache-2.0
// SHFL VOTE REDUCE against one lane at a time.
#include "isa/table.h"
#include "semantics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>

namespace pto::test {

using namespace pto::isa;

namespace {

constexpr unsigned kWarps = 4;
constexpr unsigned kLanes = kWarps * kWarpLanes;
constexpr unsigned kRounds = 90; // times 128 lanes: more than 10,000

// ---------------------------------------------------------------- SHFL

// The lane that `lane` asks for; nothing where that leaves its segment.
std::optional<unsigned>
asked_lane(std::string_view mode, unsigned lane, uint32_t b, unsigned width) {
  const unsigned segment = lane / width;
  const unsigned place = lane % width;
  const unsigned size = std::min(width, kWarpLanes - segment * width);
  const auto in_segment = [&](int64_t other) {
    return other >= 0 && other < int64_t{size}
               ? std::optional(segment * width + static_cast<unsigned>(other))
               : std::nullopt;
  };
  if (mode == "idx") {
    return in_segment(int64_t{b % width});
  }
  if (mode == "up") {
    return in_segment(int64_t{place} - int64_t{b});
  }
  if (mode == "down") {
    return in_segment(int64_t{place} + int64_t{b});
  }
  const uint32_t other = lane ^ b; // a lower segment may be read, a higher one may not
  return other < segment * width + size ? std::optional(other) : std::nullopt;
}

void check_shuffle(const Insn& insn, std::optional<unsigned> fixed_width, Random& random) {
  TestContext ctx(kLanes);
  const std::string_view mode = mod_of(insn, "mode");
  const Operand selector = {.kind = OperandKind::kReg32, .index = 2};
  unsigned wrong = 0;
  for (unsigned round = 0; round < kRounds; ++round) {
    ctx.activate(random_mask(random, kWarps));
    std::vector<uint64_t> before(kLanes);
    std::vector<uint64_t> selectors(kLanes);
    std::vector<unsigned> widths(kLanes, fixed_width.value_or(kWarpLanes));
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      before[lane] = is_wide(insn.type) ? random.next() : random.bits32();
      selectors[lane] = random.bits32() >> (random.bits32() % 8 == 0 ? 0 : 27);
      ctx.set(insn.operands[0], lane, 0xfeedface);
      ctx.set(insn.operands[1], lane, before[lane]);
      ctx.set(selector, lane, selectors[lane]);
      if (insn.has_operand(3) && insn.operands[3].kind == OperandKind::kReg32) {
        const unsigned asked = random.bits32() % 17 * 2; // 0 is the whole warp
        ctx.set(insn.operands[3], lane, asked);
        widths[lane] = asked == 0 ? kWarpLanes : asked;
      }
    }
    REQUIRE(insn.desc->exec(ctx, insn) == Outcome::kNext);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const unsigned first = lane / kWarpLanes * kWarpLanes;
      const auto source =
          asked_lane(mode, lane % kWarpLanes, static_cast<uint32_t>(selectors[lane]), widths[lane]);
      const bool readable = source && ctx.is_active(first + *source);
      const uint64_t own = before[lane];
      const bool in_place = insn.operands[0] == insn.operands[1];
      const uint64_t want = !ctx.is_active(lane) ? (in_place ? own : 0xfeedface)
                            : readable           ? before[first + *source]
                                                 : own;
      wrong += ctx.get(insn.operands[0], lane) == want ? 0 : 1;
    }
  }
  CHECK_MESSAGE(wrong == 0, name_of(insn), ": ", wrong, " wrong lanes");
}

void test_shfl(const Insn& shape) {
  Random random(31);
  Insn insn = with_registers(shape, 20);
  REQUIRE(insn.operand_count == 4);
  check_shuffle(insn, std::nullopt, random);
  for (unsigned width = 0; width <= 40; ++width) {
    insn.operands[3] = Operand::immediate(width);
    const bool allowed = width >= 2 && width <= 32 && width % 2 == 0;
    CHECK(validate(insn).empty() == allowed);
    if (allowed) {
      check_shuffle(insn, width, random);
    }
  }
  insn.operand_count = 3;
  insn.operands[3] = {};
  REQUIRE(validate(insn).empty());
  check_shuffle(insn, 32, random);
  insn.operands[0] = insn.operands[1];
  check_shuffle(insn, 32, random);
}

// ---------------------------------------------------------------- VOTE

void test_vote(const Insn& shape) {
  const std::string_view mode = mod_of(shape, "mode");
  const Insn insn = [&] {
    Insn built = shape;
    built.form = mode == "ballot" ? 1 : 0;
    built.operand_count = 2;
    built.operands[0] = {.kind = mode == "ballot" ? OperandKind::kReg32 : OperandKind::kPred,
                         .index = 3};
    built.operands[1] = {.kind = OperandKind::kPred, .index = 1};
    return built;
  }();
  REQUIRE(validate(insn).empty());
  Random random(32);
  TestContext ctx(kLanes);
  unsigned wrong = 0;
  for (unsigned round = 0; round < 4 * kRounds; ++round) {
    Insn varied = insn;
    varied.operands[1].negated = round % 2 == 1;
    if (round % 8 == 7 && mode != "ballot") {
      varied.operands[1].index = 3; // in place
    }
    ctx.activate(random_mask(random, kWarps));
    std::vector<bool> truth(kLanes);
    const std::vector<uint32_t> words = random_mask(random, kWarps);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      ctx.set(varied.operands[0], lane, mode == "ballot" ? 0xfeedface : lane);
      truth[lane] = (words[lane / 32] >> lane % 32 & 1) != 0;
      ctx.set(varied.operands[1], lane, truth[lane] != varied.operands[1].negated ? 1 : 0);
    }
    std::vector<uint64_t> old(kLanes);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      old[lane] = ctx.get(varied.operands[0], lane);
    }
    REQUIRE(insn.desc->exec(ctx, varied) == Outcome::kNext);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      unsigned yes = 0;
      unsigned no = 0;
      uint64_t ballot = 0;
      for (unsigned other = lane / 32 * 32; other < lane / 32 * 32 + 32; ++other) {
        yes += ctx.is_active(other) && truth[other] ? 1 : 0;
        no += ctx.is_active(other) && !truth[other] ? 1 : 0;
        ballot |= ctx.is_active(other) && truth[other] ? uint64_t{1} << other % 32 : 0;
      }
      const uint64_t result = mode == "all"   ? no == 0
                              : mode == "any" ? yes != 0
                              : mode == "uni" ? yes == 0 || no == 0
                                              : ballot;
      const uint64_t want = ctx.is_active(lane) ? result : old[lane];
      wrong += ctx.get(varied.operands[0], lane) == want ? 0 : 1;
    }
  }
  CHECK_MESSAGE(wrong == 0, name_of(insn), ": ", wrong, " wrong lanes");
}

// ---------------------------------------------------------------- REDUCE

using Combine = std::function<uint64_t(uint64_t, uint64_t)>;

Combine combination(const Insn& shape) {
  const Type type = shape.type;
  const std::string_view op = mod_of(shape, "operation");
  if (is_float(type)) {
    if (op == "add") {
      return [type](uint64_t a, uint64_t b) { return float_add(type, a, b); };
    }
    if (op == "min" || op == "max") {
      return [=](uint64_t a, uint64_t b) { return float_least(type, a, b, op == "max"); };
    }
    return {};
  }
  return [=](uint64_t a, uint64_t b) {
    const Int128 x = integer_of(type, a);
    const Int128 y = integer_of(type, b);
    return slot_of(type,
                   op == "add"   ? x + y
                   : op == "min" ? std::min(x, y)
                   : op == "max" ? std::max(x, y)
                   : op == "and" ? x & y
                   : op == "or"  ? x | y
                                 : x ^ y);
  };
}

// The tree seen from its root: the last step joins neighbours, the one before lanes two apart.
std::optional<uint64_t> subtree(const std::vector<std::optional<uint64_t>>& leaves,
                                unsigned lane,
                                unsigned distance,
                                const Combine& combine) {
  if (distance == kWarpLanes) {
    return leaves[lane];
  }
  const auto low = subtree(leaves, lane, 2 * distance, combine);
  const auto high = subtree(leaves, lane + distance, 2 * distance, combine);
  return low && high ? combine(*low, *high) : low ? low : high;
}

void test_reduce(const Insn& shape) {
  const Combine combine = combination(shape);
  if (!combine) {
    no_reference(shape);
    return;
  }
  Insn insn = with_registers(shape, 20);
  TestContext ctx(kLanes);
  Random random(33);
  const std::vector<uint64_t> edges = edge_values(shape.type);
  unsigned wrong = 0;
  for (unsigned round = 0; round < 2 * kRounds; ++round) {
    insn.operands[0].index = round % 4 == 3 ? insn.operands[1].index : 20;
    ctx.activate(random_mask(random, kWarps));
    std::vector<uint64_t> values(kLanes);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      values[lane] =
          round % 3 == 0 ? edges[random.bits32() % edges.size()] : random_value(shape.type, random);
      ctx.set(insn.operands[0], lane, 0xfeedface);
      ctx.set(insn.operands[1], lane, values[lane]);
    }
    REQUIRE(insn.desc->exec(ctx, insn) == Outcome::kNext);
    for (unsigned warp = 0; warp < kWarps; ++warp) {
      std::vector<std::optional<uint64_t>> leaves(kWarpLanes);
      for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
        if (ctx.is_active(warp * 32 + lane)) {
          const uint64_t value = values[warp * 32 + lane];
          leaves[lane] = shape.type == Type::kF16 ? value & 0xffff : value;
        }
      }
      const auto result = subtree(leaves, 0, 1, combine);
      for (unsigned lane = warp * 32; lane < warp * 32 + 32; ++lane) {
        const bool in_place = insn.operands[0].index != 20;
        const uint64_t want = ctx.is_active(lane) ? result.value_or(0)
                              : in_place          ? values[lane]
                                                  : 0xfeedface;
        wrong += ctx.get(insn.operands[0], lane) == want ? 0 : 1;
      }
    }
  }
  CHECK_MESSAGE(wrong == 0, name_of(insn), ": ", wrong, " wrong lanes");
}

constexpr RowTest kTests[] = {{"shfl", test_shfl}, {"vote", test_vote}, {"reduce", test_reduce}};

TEST_CASE("warp insns agree with one lane at a time") {
  run_family(kTests);
}

TEST_CASE("the sum of four lanes in tree order") {
  Insn insn{.desc = find_insn("reduce"), .type = Type::kF32};
  insn.operand_count = 2;
  insn.operands[0] = {.kind = OperandKind::kReg32, .index = 1};
  TestContext ctx;
  const float values[] = {1e8F, 1.0F, -1e8F, 1.0F};
  for (unsigned lane = 0; lane < 4; ++lane) {
    ctx.reg32(0)[lane] = std::bit_cast<uint32_t>(values[lane]);
  }
  insn.operands[1] = {.kind = OperandKind::kReg32, .index = 0};
  REQUIRE(validate(insn).empty());
  CHECK(insn.desc->exec(ctx, insn) == Outcome::kNext);
  CHECK(std::bit_cast<float>(ctx.reg32(1)[17]) == 2.0F);
}

} // namespace

std::span<const RowTest> warp_tests() {
  return kTests;
}

} // namespace pto::test
