// SPDX-License-Identifier: Apache-2.0
// AND OR XOR NOT SHL SHR POPC CLZ BREV PRMT against loops over single bits and bytes.
#include "semantics.h"

#include <doctest/doctest.h>

namespace pto::test {

using namespace pto::isa;

namespace {

bool bit_of(uint64_t value, unsigned i) {
  return (value >> i & 1) != 0;
}

// A register made of bits 0 .. width-1 of the type.
template <class F> uint64_t from_bits(Type type, F bit) {
  uint64_t value = 0;
  for (unsigned i = 0; i < bits(type); ++i) {
    value |= bit(i) ? uint64_t{1} << i : 0;
  }
  return value;
}

template <class F> void check_bitwise(const Insn& shape, F combine) {
  const Type type = shape.type;
  check_lanes(shape, [=](const uint64_t* s) {
    return from_bits(type, [&](unsigned i) { return combine(bit_of(s[0], i), bit_of(s[1], i)); });
  });
}

void test_and(const Insn& shape) {
  check_bitwise(shape, [](bool a, bool b) { return a && b; });
}
void test_or(const Insn& shape) {
  check_bitwise(shape, [](bool a, bool b) { return a || b; });
}
void test_xor(const Insn& shape) {
  check_bitwise(shape, [](bool a, bool b) { return a != b; });
}

void test_not(const Insn& shape) {
  const Type type = shape.type;
  check_lanes(shape, [=](const uint64_t* s) {
    return from_bits(type, [&](unsigned i) { return !bit_of(s[0], i); });
  });
}

void test_shl(const Insn& shape) {
  const Type type = shape.type;
  check_lanes(shape, [=](const uint64_t* s) {
    const auto count = static_cast<unsigned>((s[1] & 0xffffffff) % bits(type));
    return from_bits(type, [&](unsigned i) { return i >= count && bit_of(s[0], i - count); });
  });
}

void test_shr(const Insn& shape) {
  const Type type = shape.type;
  check_lanes(shape, [=](const uint64_t* s) {
    const unsigned width = bits(type);
    const auto count = static_cast<unsigned>((s[1] & 0xffffffff) % width);
    const bool above = is_signed(type) && bit_of(s[0], width - 1);
    return from_bits(
        type, [&](unsigned i) { return i + count < width ? bit_of(s[0], i + count) : above; });
  });
}

void test_popc(const Insn& shape) {
  const Type type = shape.type;
  check_lanes(shape, [=](const uint64_t* s) {
    uint64_t count = 0;
    for (unsigned i = 0; i < bits(type); ++i) {
      count += bit_of(s[0], i) ? 1 : 0;
    }
    return count;
  });
}

void test_clz(const Insn& shape) {
  const Type type = shape.type;
  check_lanes(shape, [=](const uint64_t* s) {
    uint64_t count = 0;
    while (count < bits(type) && !bit_of(s[0], static_cast<unsigned>(bits(type) - 1 - count))) {
      ++count;
    }
    return count;
  });
}

void test_brev(const Insn& shape) {
  const Type type = shape.type;
  check_lanes(shape, [=](const uint64_t* s) {
    return from_bits(type, [&](unsigned i) { return bit_of(s[0], bits(type) - 1 - i); });
  });
}

// The default mode of PTX: four bits a byte, three choose it, the fourth spreads its sign.
void test_prmt(const Insn& shape) {
  check_lanes(shape, [](const uint64_t* s) {
    uint8_t bytes[8];
    for (unsigned i = 0; i < 8; ++i) {
      bytes[i] = static_cast<uint8_t>((i < 4 ? s[0] : s[1]) >> (i % 4 * 8));
    }
    uint64_t result = 0;
    for (unsigned i = 4; i-- > 0;) {
      const unsigned nibble = s[2] >> (4 * i) & 0xf;
      const uint8_t byte = bytes[nibble % 8];
      const uint8_t chosen = nibble < 8 ? byte : byte >= 0x80 ? 0xff : 0;
      result = result << 8 | chosen;
    }
    return result;
  });
}

constexpr RowTest kTests[] = {
    {"and", test_and},
    {"or", test_or},
    {"xor", test_xor},
    {"not", test_not},
    {"shl", test_shl},
    {"shr", test_shr},
    {"popc", test_popc},
    {"clz", test_clz},
    {"brev", test_brev},
    {"prmt", test_prmt},
};

TEST_CASE("bit operations agree with loops over bits") {
  run_family(kTests);
}

} // namespace

std::span<const RowTest> logic_tests() {
  return kTests;
}

} // namespace pto::test
