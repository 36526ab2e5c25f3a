// SPDX-License-Identifier: Apache-2.0
// MMA against its definition: one element after the other, k ascending, one rounding a step.
#include "isa/float16.h"
#include "isa/float32.h"
#include "isa/mma_kernel.h"
#include "isa/table.h"
#include "tests/unit/test_context.h"

#include <doctest/doctest.h>

#include <bit>
#include <cstring>
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

// Mostly numbers of one magnitude, some of very different ones, and the special values.
std::vector<float> random_floats(size_t count, Random& random, bool specials) {
  constexpr uint32_t kSpecials[] = {0x00000000,
                                    0x80000000,
                                    0x7f800000,
                                    0xff800000,
                                    0x7fc12345,
                                    0xffa00001,
                                    0x00000001,
                                    0x7f7fffff};
  std::vector<float> values(count);
  for (float& value : values) {
    const uint32_t kind = random() % 64;
    if (specials && kind == 0) {
      value = std::bit_cast<float>(kSpecials[random() % 8]);
    } else if (kind < 8) {
      value = std::bit_cast<float>((random() & 0x8fffffffu) | 0x30000000u);
    } else {
      value = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-31F;
    }
  }
  return values;
}

std::vector<float> by_definition(std::vector<float> c,
                                 const std::vector<float>& a,
                                 const std::vector<float>& b,
                                 const MmaShape& s) {
  for (uint64_t i = 0; i < s.m; ++i) {
    for (uint64_t j = 0; j < s.n; ++j) {
      for (uint64_t k = 0; k < s.k; ++k) {
        float& sum = c[i * s.ldc + j];
        sum = fused(a[i * s.lda + k], b[k * s.ldb + j], sum);
      }
    }
  }
  return c;
}

bool same_bits(const std::vector<float>& x, const std::vector<float>& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

Operand l1_at(int32_t offset) {
  MemRef ref;
  ref.offset = offset;
  ref.space = Space::kL1;
  return Operand::memory(ref);
}

Insn mma(Type type, Type type2, int32_t c, int32_t a, int32_t b, std::vector<uint64_t> sizes) {
  Insn insn{.desc = find_insn("mma"), .type = type, .type2 = type2};
  insn.operands[0] = l1_at(c);
  insn.operands[1] = l1_at(a);
  insn.operands[2] = l1_at(b);
  insn.operand_count = static_cast<uint8_t>(3 + sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    insn.operands[3 + i] = Operand::immediate(sizes[i]);
  }
  return insn;
}

template <class T> void put(TestContext& ctx, int32_t at, const std::vector<T>& values) {
  std::memcpy(ctx.l1.data() + at, values.data(), values.size() * sizeof(T));
}
template <class T> std::vector<T> get(const TestContext& ctx, int32_t at, size_t count) {
  std::vector<T> values(count);
  std::memcpy(values.data(), ctx.l1.data() + at, count * sizeof(T));
  return values;
}

} // namespace

TEST_CASE("both kernels sum in the documented order for every shape") {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    MmaShape s{.m = 1 + random() % 20, .n = 1 + random() % 40, .k = 1 + random() % 30};
    s.lda = s.k + random() % 3;
    s.ldb = s.n + random() % 3;
    s.ldc = s.n + random() % 3;
    const std::vector<float> a = random_floats(s.m * s.lda, random, round % 2 == 0);
    const std::vector<float> b = random_floats(s.k * s.ldb, random, round % 2 == 0);
    const std::vector<float> c = random_floats(s.m * s.ldc, random, round % 2 == 0);
    const std::vector<float> expected = by_definition(c, a, b, s);
    std::vector<float> fast = c;
    multiply_floats(fast.data(), a.data(), b.data(), s);
    std::vector<float> portable = c;
    detail::multiply_floats_portably(portable.data(), a.data(), b.data(), s);
    REQUIRE(same_bits(fast, expected)); // what lies between the rows of C included
    REQUIRE(same_bits(portable, expected));
  }
}

TEST_CASE("a row of more than one strip") {
  Random random(11);
  const MmaShape s{.m = 3, .n = 601, .k = 5, .lda = 5, .ldb = 601, .ldc = 601};
  const std::vector<float> a = random_floats(s.m * s.lda, random, false);
  const std::vector<float> b = random_floats(s.k * s.ldb, random, false);
  const std::vector<float> c = random_floats(s.m * s.ldc, random, false);
  std::vector<float> fast = c;
  multiply_floats(fast.data(), a.data(), b.data(), s);
  std::vector<float> portable = c;
  detail::multiply_floats_portably(portable.data(), a.data(), b.data(), s);
  CHECK(same_bits(fast, by_definition(c, a, b, s)));
  CHECK(same_bits(portable, fast));
}

TEST_CASE("mma reads A and B before it writes C, at any address") {
  Random random(13);
  const MmaShape s{.m = 7, .n = 9, .k = 8, .lda = 8, .ldb = 9, .ldc = 9};
  const std::vector<float> a = random_floats(s.m * s.k, random, false);
  const std::vector<float> b = random_floats(s.k * s.n, random, false);
  for (const int32_t c_at : {0, 1, 512, 514, 1000, 1024 + 9 * 4}) {
    TestContext ctx;
    put(ctx, 512, a);
    put(ctx, 1026, b);
    const std::vector<float> a_before = get<float>(ctx, 512, a.size());
    const std::vector<float> c_before = get<float>(ctx, c_at, s.m * s.n);
    const Insn insn = mma(Type::kF32, Type::kF32, c_at, 512, 1026, {s.m, s.n, s.k});
    REQUIRE(validate(insn) == "");
    REQUIRE(insn.desc->exec(ctx, insn) == Outcome::kNext);
    CHECK(same_bits(get<float>(ctx, c_at, s.m * s.n), by_definition(c_before, a_before, b, s)));
  }
}

TEST_CASE("half and integer inputs") {
  Random random(17);
  const MmaShape s{.m = 5, .n = 19, .k = 6, .lda = 7, .ldb = 20, .ldc = 21};
  const std::vector<float> c = random_floats(s.m * s.ldc, random, false);
  const auto bits = [&](size_t count) {
    std::vector<uint16_t> values(count);
    for (uint16_t& value : values) {
      value = static_cast<uint16_t>(random());
    }
    return values;
  };
  const std::vector<uint16_t> a = bits(s.m * s.lda);
  const std::vector<uint16_t> b = bits(s.k * s.ldb);
  const auto floats = [](const std::vector<uint16_t>& in, Type type) {
    std::vector<float> out;
    for (const uint16_t x : in) {
      out.push_back(type == Type::kF16 ? widen(F16{x}) : widen(BF16{x}));
    }
    return out;
  };
  const std::vector<uint64_t> sizes = {s.m, s.n, s.k, s.lda, s.ldb, s.ldc};
  for (const Type type : {Type::kF16, Type::kBF16}) {
    TestContext ctx;
    put(ctx, 0, c);
    put(ctx, 4096, a);
    put(ctx, 8193, b);
    const Insn insn = mma(Type::kF32, type, 0, 4096, 8193, sizes);
    REQUIRE(insn.desc->exec(ctx, insn) == Outcome::kNext);
    CHECK(same_bits(get<float>(ctx, 0, c.size()),
                    by_definition(c, floats(a, type), floats(b, type), s)));
  }
  for (const Type type : {Type::kS8, Type::kU8}) {
    TestContext ctx;
    put(ctx, 0, c); // any bits serve
    put(ctx, 4096, a);
    put(ctx, 8193, b);
    std::vector<uint32_t> expected = get<uint32_t>(ctx, 0, c.size());
    const auto at = [&](int32_t base, uint64_t index) {
      const uint8_t byte = ctx.l1[static_cast<size_t>(base) + index];
      return type == Type::kS8 ? static_cast<uint32_t>(static_cast<int8_t>(byte)) : byte;
    };
    for (uint64_t i = 0; i < s.m; ++i) {
      for (uint64_t j = 0; j < s.n; ++j) {
        for (uint64_t k = 0; k < s.k; ++k) {
          expected[i * s.ldc + j] += at(4096, i * s.lda + k) * at(8193, k * s.ldb + j);
        }
      }
    }
    const Insn insn = mma(Type::kS32, type, 0, 4096, 8193, sizes);
    REQUIRE(insn.desc->exec(ctx, insn) == Outcome::kNext);
    CHECK(get<uint32_t>(ctx, 0, c.size()) == expected);
  }
}

TEST_CASE("sizes that cannot be are faults, also where their bytes pass 64 bits") {
  const std::vector<std::vector<uint64_t>> wrong = {
      {0, 1, 1},
      {1, 0, 1},
      {1, 1, 0},
      {2, 2, 2, 1, 2, 2},
      {2, 2, 2, 2, 1, 2},
      {2, 2, 2, 2, 2, 1},
      {0x80000001, 1, 1, 0x80000000, 1, 0x80000000},
      {0xffffffff, 0xffffffff, 0xffffffff},
  };
  for (const std::vector<uint64_t>& sizes : wrong) {
    TestContext ctx;
    const Insn insn = mma(Type::kF32, Type::kF32, 0, 0, 0, sizes);
    CHECK(insn.desc->exec(ctx, insn) == Outcome::kFault);
  }
}
