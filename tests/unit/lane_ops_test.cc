// SPDX-License-Identifier: Apache-2.0
// What every row of lane arithmetic shares: masks, spans of several warps, aliased registers, and
// the same bits whichever copy of a loop the host takes.
#include "isa/float32.h"
#include "isa/fmath.h"
#include "isa/lane_ops.h"
#include "isa/table.h"
#include "tests/unit/test_context.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

using namespace pto::isa;
using pto::test::TestContext;

namespace {

class Random {
public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  uint32_t operator()() { return static_cast<uint32_t>(engine_()); }

private:
  std::mt19937 engine_;
};

Operand reg(unsigned index) {
  return {.kind = OperandKind::kReg32, .index = index};
}
Operand pred(unsigned index, bool negated = false) {
  return {.kind = OperandKind::kPred, .negated = negated, .index = index};
}

Insn make(std::string_view mnemonic, Type type, std::vector<Operand> operands) {
  Insn insn{.desc = find_insn(mnemonic), .type = type};
  insn.operand_count = static_cast<uint8_t>(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    insn.operands[i] = operands[i];
  }
  return insn;
}

constexpr unsigned kLanes = 128;

void randomise(TestContext& ctx, Random& random) {
  for (unsigned r = 0; r < 6; ++r) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      ctx.reg32(r)[lane] = random();
    }
  }
}

} // namespace

TEST_CASE("inactive lanes keep their values, in every pattern of warps") {
  Random random(3);
  const std::vector<std::vector<uint32_t>> masks = {
      {~0u, ~0u, ~0u, ~0u},
      {0, 0, 0, 0},
      {~0u, 0, 0x80000001, 0x7fffffff},
      {1, ~0u, 0xaaaaaaaa, 0},
  };
  for (const std::vector<uint32_t>& mask : masks) {
    for (const unsigned dst : {0u, 1u, 2u}) { // apart from the sources, and each of them
      TestContext ctx(kLanes);
      ctx.activate(mask);
      randomise(ctx, random);
      const std::vector<uint32_t> before(ctx.reg32(dst), ctx.reg32(dst) + kLanes);
      const std::vector<uint32_t> a(ctx.reg32(1), ctx.reg32(1) + kLanes);
      const std::vector<uint32_t> b(ctx.reg32(2), ctx.reg32(2) + kLanes);
      const Insn insn = make("sub", Type::kU32, {reg(dst), reg(1), reg(2)});
      REQUIRE(insn.desc->exec(ctx, insn) == Outcome::kNext);
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        const bool active = (mask[lane / 32] >> (lane % 32) & 1) != 0;
        REQUIRE(ctx.reg32(dst)[lane] == (active ? a[lane] - b[lane] : before[lane]));
      }
    }
  }
}

TEST_CASE("sel and cmp under masks") {
  Random random(5);
  for (int round = 0; round < 200; ++round) {
    TestContext ctx(kLanes);
    std::vector<uint32_t> mask;
    for (unsigned w = 0; w < kLanes / 32; ++w) {
      mask.push_back(random() % 4 == 0 ? ~0u : random());
      ctx.pred(0)[w] = random();
      ctx.pred(1)[w] = random();
    }
    ctx.activate(mask);
    randomise(ctx, random);
    ctx.reg32(2)[round % kLanes] = ctx.reg32(1)[round % kLanes];
    const std::vector<uint32_t> before(ctx.reg32(0), ctx.reg32(0) + kLanes);
    const std::vector<uint32_t> p_before(ctx.pred(1), ctx.pred(1) + kLanes / 32);

    const Insn sel = make("sel", Type::kB32, {reg(0), reg(1), reg(2), pred(0, true)});
    REQUIRE(sel.desc->exec(ctx, sel) == Outcome::kNext);
    Insn cmp = make("cmp", Type::kS32, {pred(1), reg(1), reg(2)});
    cmp.mods[0] = 3; // le
    REQUIRE(cmp.desc->exec(ctx, cmp) == Outcome::kNext);

    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const uint32_t a = ctx.reg32(1)[lane];
      const uint32_t b = ctx.reg32(2)[lane];
      const auto bit = [&](const uint32_t* words) { return words[lane / 32] >> (lane % 32) & 1; };
      const bool active = bit(mask.data()) != 0;
      const uint32_t chosen = bit(ctx.pred(0)) == 0 ? a : b; // the predicate is negated
      REQUIRE(ctx.reg32(0)[lane] == (active ? chosen : before[lane]));
      const uint32_t holds = static_cast<int32_t>(a) <= static_cast<int32_t>(b) ? 1 : 0;
      REQUIRE(bit(ctx.pred(1)) == (active ? holds : bit(p_before.data())));
    }
  }
}

TEST_CASE("fma of the host and the portable one give the same bits") {
  Random random(9);
  const Insn insn = make("fma", Type::kF32, {reg(0), reg(1), reg(2), reg(3)});
  for (int round = 0; round < 2000; ++round) {
    TestContext ctx(kLanes);
    randomise(ctx, random);
    for (unsigned lane = 0; lane < kLanes; lane += 2) { // results near cancellation
      const float product =
          get_lane<float>(ctx.reg32(1)[lane]) * get_lane<float>(ctx.reg32(2)[lane]);
      ctx.reg32(3)[lane] = put_lane(-product) + random() % 3;
    }
    REQUIRE(insn.desc->exec(ctx, insn) == Outcome::kNext);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const float expected = fused(get_lane<float>(ctx.reg32(1)[lane]),
                                   get_lane<float>(ctx.reg32(2)[lane]),
                                   get_lane<float>(ctx.reg32(3)[lane]));
      REQUIRE(ctx.reg32(0)[lane] == put_lane(expected));
    }
  }
}

namespace {

constexpr uint32_t kEdges[] = {0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff,
                               0x00800000, 0x3f800000, 0xbf800000, 0x42b17218, 0xc2cff1b5,
                               0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc12345,
                               0xffa00001, 0x40490fdb, 0x49800000, 0x7effffff, 0x3effffff};

// Differences of `insn` from `scalar(x)` over the values of register 1 that `fill(ctx, round)` puts
// there.
template <class T, class Fill, class Scalar>
uint64_t count_differences(const Insn& insn, Fill fill, Scalar scalar) {
  uint64_t differences = 0;
  for (uint32_t round = 0; round < 65536 / kLanes; ++round) {
    TestContext ctx(kLanes);
    fill(ctx, round);
    REQUIRE(insn.desc->exec(ctx, insn) == Outcome::kNext);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const T expected = scalar(get_lane<T>(ctx.reg32(1)[lane]));
      differences += ctx.reg32(0)[lane] != put_lane(expected) ? 1 : 0;
    }
  }
  return differences;
}

template <class Scalar> uint64_t count_float_differences(const Insn& insn, Scalar scalar) {
  Random random(17);
  const auto fill = [&](TestContext& ctx, uint32_t round) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const uint32_t any = random();
      const uint32_t moderate = (any & 0x87ffffffu) | 0x38000000u; // where most is done
      ctx.reg32(1)[lane] = lane < std::size(kEdges) ? kEdges[lane] ^ (round & 7)
                           : lane % 2 == 0          ? moderate
                                                    : any;
    }
  };
  return count_differences<float>(insn, fill, scalar);
}

template <class Scalar> uint64_t count_half_differences(const Insn& insn, Scalar scalar) {
  const auto every = [](TestContext& ctx, uint32_t round) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      ctx.reg32(1)[lane] = round * kLanes + lane;
    }
  };
  return count_differences<F16>(insn, every, scalar);
}

template <class Scalar> void check_special(std::string_view mnemonic, Scalar scalar) {
  CAPTURE(mnemonic);
  CHECK(count_float_differences(make(mnemonic, Type::kF32, {reg(0), reg(1)}), scalar) == 0);
  CHECK(count_half_differences(make(mnemonic, Type::kF16, {reg(0), reg(1)}), scalar) == 0);
}

} // namespace

TEST_CASE("special functions of a span have the bits of the scalar ones") {
  check_special("exp", [](auto x) { return exp(x); });
  check_special("log", [](auto x) { return log(x); });
  check_special("sqrt", [](auto x) { return sqrt(x); });
  check_special("rsqrt", [](auto x) { return rsqrt(x); });
  check_special("rcp", [](auto x) { return rcp(x); });
  check_special("tanh", [](auto x) { return tanh(x); });
  check_special("sin", [](auto x) { return sin(x); });
  check_special("cos", [](auto x) { return cos(x); });
  const Insn pow_insn = make("pow", Type::kF32, {reg(0), reg(1), reg(1)});
  CHECK(count_float_differences(pow_insn, [](float x) { return pow(x, x); }) == 0);
}

TEST_CASE("reductions of floats prefer numbers to NaNs and add as a tree") {
  const auto reduce = [](uint8_t op, uint32_t active, std::vector<float> values) {
    TestContext ctx;
    ctx.activate({active});
    for (unsigned lane = 0; lane < values.size(); ++lane) {
      ctx.reg32(1)[lane] = put_lane(values[lane]);
    }
    Insn insn = make("reduce", Type::kF32, {reg(0), reg(1)});
    insn.mods[0] = op; // add, min, max
    REQUIRE(insn.desc->exec(ctx, insn) == Outcome::kNext);
    return get_lane<float>(ctx.reg32(0)[0]);
  };
  CHECK(reduce(1, 7, {kCanonicalNan, 2.0F, 1.0F}) == 1.0F);
  CHECK(reduce(1, 7, {2.0F, 1.0F, kCanonicalNan}) == 1.0F);
  CHECK(reduce(2, 7, {kCanonicalNan, 2.0F, 1.0F}) == 2.0F);
  CHECK(reduce(2, 7, {1.0F, 2.0F, kCanonicalNan}) == 2.0F);
  // (1e8 + -1e8) + (1 + 1), not ((1e8 + 1) + -1e8) + 1.
  CHECK(reduce(0, 15, {1e8F, 1.0F, -1e8F, 1.0F}) == 2.0F);
  CHECK(put_lane(reduce(0, 1, {-0.0F})) == 0x80000000u);
}

TEST_CASE("a predicate operand is a predicate or 0 or 1") {
  CHECK(validate(make("mov", Type::kPred, {pred(0), pred(1, true)})) == "");
  CHECK(validate(make("mov", Type::kPred, {pred(0), Operand::immediate(1)})) == "");
  CHECK(validate(make("mov", Type::kPred, {pred(0), Operand::immediate(2)})) != "");
  CHECK(validate(make("mov", Type::kPred, {pred(0), {.kind = OperandKind::kSpecial}})) != "");
  CHECK(validate(make("and", Type::kPred, {pred(0), pred(1), {.kind = OperandKind::kParam}})) !=
        "");
  CHECK(validate(make("mov", Type::kPred, {pred(0), {.kind = OperandKind::kSymbol}})) != "");
}

TEST_CASE("a rounding makes a float of its own type integral, and no other") {
  const auto convert_one = [](Type to, Type from, uint8_t rounding, uint32_t value) {
    TestContext ctx;
    ctx.reg32(1)[0] = value;
    Insn insn = make("cvt", to, {reg(0), reg(1)});
    insn.type2 = from;
    insn.mods[0] = rounding; // none, rn, rz, rm, rp
    REQUIRE(validate(insn) == "");
    REQUIRE(insn.desc->exec(ctx, insn) == Outcome::kNext);
    return ctx.reg32(0)[0];
  };
  constexpr uint32_t kF16 = 0xbe00; // -1.5
  CHECK(convert_one(Type::kF32, Type::kF16, 2, kF16) == put_lane(-1.5F));
  CHECK(convert_one(Type::kF32, Type::kF16, 0, 0xffff0000 | kF16) == put_lane(-1.5F));
  CHECK(convert_one(Type::kF16, Type::kF16, 2, kF16) == 0xbc00);
  CHECK(convert_one(Type::kF16, Type::kF16, 0, kF16) == kF16);
  CHECK(convert_one(Type::kF32, Type::kF32, 3, put_lane(-1.5F)) == put_lane(-2.0F));
  CHECK(convert_one(Type::kF32, Type::kF32, 0, put_lane(-1.5F)) == put_lane(-1.5F));
  CHECK(convert_one(Type::kS8, Type::kF16, 0, kF16) == 0xffffffff);
  CHECK(convert_one(Type::kS8, Type::kF16, 3, kF16) == 0xfffffffe);
  CHECK(convert_one(Type::kU8, Type::kF16, 4, kF16) == 0);
  CHECK(convert_one(Type::kF32, Type::kU8, 0, 0xdeadbeff) == put_lane(255.0F));
  CHECK(convert_one(Type::kF16, Type::kS8, 0, 0xdeadbeff) == 0xbc00);
  CHECK(convert_one(Type::kU16, Type::kS8, 0, 0xff) == 0xffff);
  CHECK(convert_one(Type::kBF16, Type::kF16, 1, kF16) == 0xbfc0);
}

TEST_CASE("shuffles of segments, with sources out of range or inactive") {
  const auto shuffle = [](uint8_t mode, uint32_t b, uint32_t width, uint32_t active) {
    TestContext ctx;
    ctx.activate({active});
    for (unsigned lane = 0; lane < 32; ++lane) {
      ctx.reg32(1)[lane] = lane;
      ctx.reg32(0)[lane] = 99;
    }
    Insn insn = make("shfl", Type::kB32, {reg(0), reg(1), Operand::immediate(b)});
    if (width != 0) {
      insn.operands[insn.operand_count++] = Operand::immediate(width);
    }
    insn.mods[0] = mode; // idx, up, down, xor
    REQUIRE(insn.desc->exec(ctx, insn) == Outcome::kNext);
    return std::vector<uint32_t>(ctx.reg32(0), ctx.reg32(0) + 32);
  };
  // The definition, for every width the hardware has.
  for (uint32_t width = 0; width <= 32; width += 2) {
    for (const uint32_t active : {~0u, 0x0ff7fffeu}) {
      for (const uint32_t b : {0u, 1u, 5u, 16u, 31u, 32u, 0xffffffffu}) {
        for (uint8_t mode = 0; mode < 4; ++mode) {
          const std::vector<uint32_t> got = shuffle(mode, b, width, active);
          for (int64_t lane = 0; lane < 32; ++lane) {
            const int64_t segment = width == 0 ? 32 : width;
            const int64_t start = lane - lane % segment;
            const int64_t end = start + segment;
            int64_t source = lane;
            bool fine = true;
            if (mode == 0) {
              source = start + b % segment;
            } else if (mode == 1) {
              source = lane - b;
              fine = source >= start;
            } else if (mode == 2) {
              source = lane + b;
              fine = source < end;
            } else {
              source = lane ^ b;
              fine = source < end;
            }
            fine = fine && source < 32 && (active >> source & 1) != 0;
            const bool is_active = (active >> lane & 1) != 0;
            REQUIRE(got[static_cast<size_t>(lane)] == (!is_active ? 99 : fine ? source : lane));
          }
        }
      }
    }
  }
}
