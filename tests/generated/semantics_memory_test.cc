// SPDX-License-Identifier: Apache-2.0
// LOAD STORE PREFETCH INVAL FENCE: what they ask of the context, and the values that arrive,
// against a byte array indexed by hand.
#include "semantics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace pto::test {

using namespace pto::isa;

namespace {

constexpr unsigned kLanes = 1024;
constexpr unsigned kRounds = 2; // times 1024 lanes and seven addresses

Insn with_operands(const Insn& shape, std::vector<Operand> operands) {
  Insn insn = shape;
  insn.operand_count = static_cast<uint8_t>(operands.size());
  std::copy(operands.begin(), operands.end(), insn.operands.begin());
  return insn;
}

unsigned count_of(const Insn& shape) {
  const std::string_view vector = mod_of(shape, "vector");
  return vector == "x2" ? 2 : vector == "x4" ? 4 : 1;
}

Operand value_register(Type type, unsigned index) {
  return {.kind = is_wide(type) ? OperandKind::kReg64 : OperandKind::kReg32, .index = index};
}

// An address `base + index * scale + offset` for every lane, element `index` of the space.
struct Address {
  Operand operand;
  Space space;
  uint64_t start; // in the memory array, of index 0
};

// One of each kind of base, where the shape allows the space.
std::vector<Address> addresses(TestContext& ctx, unsigned vector_bytes) {
  const auto offset = static_cast<int32_t>(vector_bytes * 3);
  ctx.params = {TestContext::kHbmBase + 256};
  ctx.symbol_offsets = {1024, 512};
  ctx.tiles[3] = {2048, 4096};
  for (unsigned lane = 0; lane < ctx.lanes(); ++lane) {
    ctx.reg64(40)[lane] = TestContext::kHbmBase + 4096;
    ctx.reg32(41)[lane] = 768;
  }
  const auto make = [&](Space space, BaseKind base, uint16_t index, uint64_t start) {
    MemRef ref{.offset = offset, .base_index = index, .index_reg = 50};
    ref.space = space;
    ref.base = base;
    for (unsigned log2 = 0; log2 <= 4; ++log2) {
      if (1u << log2 == std::min(vector_bytes, 16u)) {
        ref.scale_log2 = log2 & 7;
      }
    }
    return Address{Operand::memory(ref), space, start + vector_bytes * 3};
  };
  return {make(Space::kHbm, BaseKind::kParam, 0, 256),
          make(Space::kHbm, BaseKind::kReg, 40, 4096),
          make(Space::kL1, BaseKind::kReg, 41, 768),
          make(Space::kL1, BaseKind::kTile, 3, 2048),
          make(Space::kL1, BaseKind::kSymbol, 0, 1024),
          make(Space::kL1, BaseKind::kAbsolute, 0, 0),
          make(Space::kConst, BaseKind::kSymbol, 1, 512)};
}

std::vector<uint8_t>& memory_of(TestContext& ctx, Space space) {
  return space == Space::kHbm ? ctx.hbm : space == Space::kL1 ? ctx.l1 : ctx.constants;
}

// Elements of edge and random values, side by side.
void fill_memory(std::vector<uint8_t>& memory, Type type, Random& random) {
  const std::vector<uint64_t> edges = edge_values(type == Type::kPred ? Type::kU8 : type);
  const unsigned size = size_bytes(type);
  for (uint64_t at = 0; at + size <= memory.size(); at += size) {
    const uint64_t value =
        random.bits32() % 2 == 0 ? edges[random.bits32() % edges.size()] : random.next();
    for (unsigned i = 0; i < size; ++i) {
      memory[at + i] = static_cast<uint8_t>(value >> (8 * i));
    }
  }
}

uint64_t element_at(const std::vector<uint8_t>& memory, uint64_t at, Type type) {
  uint64_t value = 0;
  for (unsigned i = size_bytes(type); i-- > 0;) {
    value = value << 8 | memory[at + i];
  }
  return slot_of(type, Int128{value});
}

void set_indices(TestContext& ctx, Random& random, unsigned elements) {
  for (unsigned lane = 0; lane < ctx.lanes(); ++lane) {
    ctx.reg32(50)[lane] = random.bits32() % elements;
  }
}

CacheHint hint_of(const Insn& shape) {
  const std::string_view cache = mod_of(shape, "cache");
  return cache == "cg" ? CacheHint::kL2 : cache == "cv" ? CacheHint::kVolatile : CacheHint::kCached;
}

// Bytes from one index to the next: a vector of 32 bytes needs two steps of the largest scale.
uint64_t step_of(unsigned vector_bytes) {
  return std::min(vector_bytes, 16u);
}

void test_load(const Insn& shape) {
  const Type type = shape.type;
  const unsigned count = count_of(shape);
  const unsigned vector_bytes = size_bytes(type) * count;
  Random random(shape.desc->opcode + static_cast<unsigned>(type));
  TestContext ctx(kLanes);
  unsigned spaces = 0;
  for (const Address& address : addresses(ctx, vector_bytes)) {
    const Insn insn = with_operands(shape, {value_register(type, 7), address.operand});
    if (!validate(insn).empty()) {
      continue; // a cache hint outside hbm
    }
    spaces |= 1u << static_cast<unsigned>(address.space);
    std::vector<uint8_t>& memory = memory_of(ctx, address.space);
    unsigned wrong = 0;
    for (unsigned round = 0; round < kRounds; ++round) {
      fill_memory(memory, type, random);
      set_indices(ctx, random, 100);
      for (unsigned lane = 0; vector_bytes > 16 && lane < kLanes; ++lane) {
        ctx.reg32(50)[lane] *= 2;
      }
      ctx.activate(random_mask(random, kLanes / kWarpLanes));
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        for (unsigned i = 0; i < count; ++i) {
          ctx.set(value_register(type, 7 + i), lane, 0xdeadbeef);
        }
      }
      REQUIRE(insn.desc->exec(ctx, insn) == Outcome::kNext);
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        const uint64_t at = address.start + ctx.reg32(50)[lane] * step_of(vector_bytes);
        for (unsigned i = 0; i < count; ++i) {
          const uint64_t want = ctx.is_active(lane)
                                    ? element_at(memory, at + i * size_bytes(type), type)
                                    : 0xdeadbeef;
          wrong += ctx.get(value_register(type, 7 + i), lane) == want ? 0 : 1;
        }
      }
    }
    CHECK_MESSAGE(wrong == 0, name_of(shape), ": wrong values");
    CHECK(ctx.last_access.type == type);
    CHECK(ctx.last_access.count == count);
    CHECK(ctx.last_access.hint == hint_of(shape));
  }
  CHECK(spaces == (mod_of(shape, "cache").empty() ? 7u : 1u));
}

void test_store(const Insn& shape) {
  const Type type = shape.type;
  const unsigned count = count_of(shape);
  const unsigned vector_bytes = size_bytes(type) * count;
  Random random(shape.desc->opcode + static_cast<unsigned>(type));
  TestContext ctx(kLanes);
  unsigned spaces = 0;
  for (const Address& address : addresses(ctx, vector_bytes)) {
    const Insn insn = with_operands(shape, {address.operand, value_register(type, 7)});
    if (!validate(insn).empty()) {
      continue; // a cache hint outside hbm, or constants
    }
    spaces |= 1u << static_cast<unsigned>(address.space);
    std::vector<uint8_t>& memory = memory_of(ctx, address.space);
    unsigned wrong = 0;
    for (unsigned round = 0; round < kRounds; ++round) {
      fill_memory(memory, type, random);
      set_indices(ctx, random, 100);
      for (unsigned lane = 0; vector_bytes > 16 && lane < kLanes; ++lane) {
        ctx.reg32(50)[lane] *= 2;
      }
      ctx.activate(random_mask(random, kLanes / kWarpLanes));
      std::vector<uint8_t> want = memory;
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        const uint64_t at = address.start + ctx.reg32(50)[lane] * step_of(vector_bytes);
        for (unsigned i = 0; i < count; ++i) {
          const uint64_t value = random_value(type, random);
          ctx.set(value_register(type, 7 + i), lane, value);
          for (unsigned b = 0; ctx.is_active(lane) && b < size_bytes(type); ++b) {
            want[at + i * size_bytes(type) + b] = static_cast<uint8_t>(value >> (8 * b));
          }
        }
      }
      REQUIRE(insn.desc->exec(ctx, insn) == Outcome::kNext);
      wrong += memory == want ? 0 : 1;
    }
    CHECK_MESSAGE(wrong == 0, name_of(shape), ": wrong memory");
    CHECK(ctx.last_access.type == type);
    CHECK(ctx.last_access.count == count);
    CHECK(ctx.last_access.hint == hint_of(shape));
  }
  CHECK(spaces == (mod_of(shape, "cache").empty() ? 3u : 1u));
}

// The one call that the insn makes of the context, with its first operand as built by `insns_of`.
void check_call(const Insn& insn, const std::string& call) {
  TestContext ctx;
  CHECK(insn.desc->exec(ctx, insn) == Outcome::kNext);
  CHECK(ctx.calls == std::vector{call});
}

void test_prefetch(const Insn& shape) {
  for (const Insn& insn : insns_of(shape)) {
    check_call(insn, "prefetch of an address");
  }
}

void test_inval(const Insn& shape) {
  const std::string_view scope = mod_of(shape, "scope");
  for (const Insn& insn : insns_of(shape)) {
    const bool line = insn.operand_count == 1;
    CHECK((scope.empty() || line == (scope == "line")));
    check_call(insn, line ? "invalidate line of an address" : "invalidate all");
  }
}

void test_fence(const Insn& shape) {
  check_call(insns_of(shape).front(), "fence " + std::string(mod_of(shape, "scope")));
}

constexpr RowTest kTests[] = {
    {"load", test_load},
    {"store", test_store},
    {"prefetch", test_prefetch},
    {"inval", test_inval},
    {"fence", test_fence},
};

TEST_CASE("loads and stores move the right bytes") {
  run_family(kTests);
}

} // namespace

std::span<const RowTest> memory_tests() {
  return kTests;
}

} // namespace pto::test
