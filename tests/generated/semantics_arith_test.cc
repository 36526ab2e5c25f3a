// SPDX-License-Identifier: Apache-2.0
// ADD SUB MUL MULHI MAD DIV REM MIN MAX ABS NEG against 128-bit integers and exact floats.
#include "semantics.h"

#include <doctest/doctest.h>

namespace pto::test {

using namespace pto::isa;

namespace {

bool is_number_type(Type type) {
  return is_float(type) || type == Type::kF16x2;
}

void test_add(const Insn& shape) {
  const Type type = shape.type;
  check_lanes(shape, [type](const uint64_t* s) {
    return is_number_type(type) ? float_add(type, s[0], s[1])
                                : slot_of(type, integer_of(type, s[0]) + integer_of(type, s[1]));
  });
}

void test_sub(const Insn& shape) {
  const Type type = shape.type;
  check_lanes(shape, [type](const uint64_t* s) {
    return is_number_type(type) ? float_add(type, s[0], float_negated(type, s[1]))
                                : slot_of(type, integer_of(type, s[0]) - integer_of(type, s[1]));
  });
}

// Schoolbook, bit by bit: a product of two 64-bit numbers does not fit Int128.
uint64_t product_bits(Type type, uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  for (unsigned i = 0; i < 64; ++i) {
    sum += (a >> i & 1) != 0 ? b << i : 0;
  }
  return slot_of(type, Int128{sum});
}

void test_mul(const Insn& shape) {
  const Type type = shape.type;
  check_lanes(shape, [type](const uint64_t* s) {
    return is_number_type(type) ? float_mul(type, s[0], s[1]) : product_bits(type, s[0], s[1]);
  });
}

void test_mulhi(const Insn& shape) {
  const Type type = shape.type;
  check_lanes(shape, [type](const uint64_t* s) {
    const Int128 product = integer_of(type, s[0]) * integer_of(type, s[1]);
    const Int128 unit = Int128{1} << 32;
    const Int128 low = ((product % unit) + unit) % unit;
    return slot_of(type, (product - low) / unit);
  });
}

void test_mad(const Insn& shape) {
  const Type type = shape.type;
  const bool wide = mod_of(shape, "width") == "wide";
  const Type sum_type = !wide ? type : is_signed(type) ? Type::kS64 : Type::kU64;
  check_lanes(shape, [type, sum_type](const uint64_t* s) {
    return slot_of(sum_type,
                   integer_of(type, s[0]) * integer_of(type, s[1]) + integer_of(sum_type, s[2]));
  });
}

void test_div(const Insn& shape) {
  const Type type = shape.type;
  check_lanes(shape, [type](const uint64_t* s) {
    if (is_float(type)) {
      return float_div(type, s[0], s[1]);
    }
    const Int128 a = integer_of(type, s[0]);
    const Int128 b = integer_of(type, s[1]);
    return slot_of(type, b == 0 ? Int128{-1} : a / b); // the most negative / -1 wraps to itself
  });
}

void test_rem(const Insn& shape) {
  const Type type = shape.type;
  check_lanes(shape, [type](const uint64_t* s) {
    const Int128 a = integer_of(type, s[0]);
    const Int128 b = integer_of(type, s[1]);
    return slot_of(type, b == 0 ? a : a - (a / b) * b);
  });
}

template <bool kGreatest> void test_least(const Insn& shape) {
  const Type type = shape.type;
  check_lanes(shape, [type](const uint64_t* s) {
    if (is_number_type(type)) {
      return float_least(type, s[0], s[1], kGreatest);
    }
    const Int128 a = integer_of(type, s[0]);
    const Int128 b = integer_of(type, s[1]);
    return slot_of(type, (a < b) != kGreatest ? a : b);
  });
}

void test_abs(const Insn& shape) {
  const Type type = shape.type;
  check_lanes(shape, [type](const uint64_t* s) {
    if (is_number_type(type)) {
      return float_magnitude(type, s[0]);
    }
    const Int128 a = integer_of(type, s[0]);
    return slot_of(type, a < 0 ? -a : a);
  });
}

void test_neg(const Insn& shape) {
  const Type type = shape.type;
  check_lanes(shape, [type](const uint64_t* s) {
    return is_number_type(type) ? float_negated(type, s[0])
                                : slot_of(type, -integer_of(type, s[0]));
  });
}

constexpr RowTest kTests[] = {
    {"add", test_add},
    {"sub", test_sub},
    {"mul", test_mul},
    {"mulhi", test_mulhi},
    {"mad", test_mad},
    {"div", test_div},
    {"rem", test_rem},
    {"min", test_least<false>},
    {"max", test_least<true>},
    {"abs", test_abs},
    {"neg", test_neg},
};

TEST_CASE("arithmetic agrees with wide integers and exact floats") {
  run_family(kTests);
}

TEST_CASE("the references themselves give known values") {
  CHECK(slot_of(Type::kS16, 0x8000) == 0xffff8000u);
  CHECK(slot_of(Type::kU16, -1) == 0xffffu);
  CHECK(bool{integer_of(Type::kS8, 0x80) == -128});
  CHECK(bool{integer_of(Type::kU64, ~uint64_t{0}) == (Int128{1} << 64) - 1});
  CHECK(product_bits(Type::kU64, 0xffffffffffffffffu, 3) == 0xfffffffffffffffdu);
  CHECK(float_add(Type::kF32, 0x3f800000, 0x33800000) == 0x3f800000u); // 1 + 2^-24, tie to even
  CHECK(float_add(Type::kF32, 0x7f800000, 0xff800000) == 0x7fc00000u);
  CHECK(float_div(Type::kF16, 0x3c00, 0x4200) == 0x3555u);
  CHECK(float_fma(Type::kF32, 0x3f800001, 0x3f800001, 0xbf800002) == 0x28800000u); // 2^-46
  CHECK(float_mul(Type::kF16x2, 0x40003c00, 0x42003800) == 0x46003800u);
  CHECK(float_least(Type::kF32, 0x80000000, 0, true) == 0u);
  CHECK(float_least(Type::kBF16, 0x7fc1, 0x3f80, false) == 0x3f80u);
  CHECK(slot_of_rounded(Type::kF32, Int128{0xffffffffffffffffu}, Rounding::kTowardZero) ==
        0x5f7fffffu);
  CHECK(slot_of_rounded(Type::kF16, Int128{65520}, Rounding::kDown) == 0x7bffu);
  CHECK(slot_of_rounded(Type::kBF16, 1.00390625, Rounding::kUp) == 0x3f81u);
  CHECK(integral_of(2.5, Rounding::kNearestEven) == 2.0);
  CHECK(integral_of(-0.5, Rounding::kUp) == 0.0);
}

} // namespace

std::span<const RowTest> arith_tests() {
  return kTests;
}

} // namespace pto::test
