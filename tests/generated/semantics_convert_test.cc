// SPDX-License-Identifier: Apache-2.0
// MOV CVT SEL CMP. Conversions are compared with exact integers and with the host in each rounding
// mode.
#include "isa/special.h"
#include "semantics.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

namespace pto::test {

using namespace pto::isa;

namespace {

// ---------------------------------------------------------------- MOV

// Every special register goes to the context by its number, in active lanes only.
void check_specials(const Insn& shape) {
  for (unsigned s = 0; s < kSpecialCount; ++s) {
    Insn insn = with_registers(shape, 20);
    insn.operands[1] = {.kind = OperandKind::kSpecial, .index = s};
    if (!validate(insn).empty()) {
      continue;
    }
    TestContext ctx(64);
    ctx.activate({0x0000fff1, 0x80000000});
    CHECK(insn.desc->exec(ctx, insn) == Outcome::kNext);
    CHECK(ctx.calls == std::vector{"special " + std::string(kSpecials[s].name)});
    for (unsigned lane = 0; lane < 64; ++lane) {
      CHECK(ctx.get(insn.operands[0], lane) == (ctx.is_active(lane) ? s * 1000 + lane : 0));
    }
  }
}

void check_symbols(const Insn& shape) {
  Insn insn = with_registers(shape, 20);
  insn.operands[1] = {.kind = OperandKind::kSymbol, .index = 1};
  if (validate(insn).empty()) {
    TestContext ctx(32);
    ctx.symbol_offsets = {0, 4096};
    CHECK(insn.desc->exec(ctx, insn) == Outcome::kNext);
    CHECK(ctx.get(insn.operands[0], 31) == 4096);
  }
}

void test_mov(const Insn& shape) {
  // A copy of bits: of a narrow type the whole register.
  check_lanes(shape, [](const uint64_t* s) { return s[0]; });
  if (shape.type != Type::kPred) {
    check_specials(shape);
    check_symbols(shape);
  }
}

void test_sel(const Insn& shape) {
  check_lanes(shape, [](const uint64_t* s) { return s[2] != 0 ? s[0] : s[1]; });
}

// ---------------------------------------------------------------- CMP

// -1, 0, 1, or 2 where a NaN makes them unordered.
int order_of(Type type, uint64_t a, uint64_t b) {
  if (is_float(type)) {
    const double x = number_of(type, a);
    const double y = number_of(type, b);
    return std::isnan(x) || std::isnan(y) ? 2 : x < y ? -1 : x > y ? 1 : 0;
  }
  const Int128 x = integer_of(type, a);
  const Int128 y = integer_of(type, b);
  return x < y ? -1 : x > y ? 1 : 0;
}

void test_cmp(const Insn& shape) {
  const Type type = shape.type;
  const std::string_view op = mod_of(shape, "comparison");
  const std::string_view combination = mod_of(shape, "combination");
  check_lanes(shape, [=](const uint64_t* s) -> uint64_t {
    const int order = order_of(type, s[0], s[1]);
    const bool holds = op == "eq"   ? order == 0
                       : op == "ne" ? order != 0
                       : op == "lt" ? order == -1
                       : op == "le" ? order == -1 || order == 0
                       : op == "gt" ? order == 1
                       : op == "ge" ? order == 1 || order == 0
                                    : false;
    const bool result = combination.empty()    ? holds
                        : combination == "and" ? holds && s[2] != 0
                                               : holds || s[2] != 0;
    return result ? 1 : 0;
  });
}

// ---------------------------------------------------------------- CVT

uint64_t float_to_integer(Type to, Type from, uint64_t slot, Rounding mode) {
  const double value = number_of(from, slot);
  if (std::isnan(value)) {
    return 0;
  }
  const double integral = integral_of(value, mode);
  const Int128 top = Int128{1} << (bits(to) - (is_signed(to) ? 1 : 0));
  const Int128 low = is_signed(to) ? -top : Int128{0};
  const Int128 inside = integral >= 0x1p100    ? top
                        : integral <= -0x1p100 ? low
                                               : static_cast<Int128>(integral);
  return slot_of(to, inside < low ? low : inside >= top ? top - 1 : inside);
}

void test_cvt(const Insn& shape) {
  const Type to = shape.type;
  const Type from = shape.type2;
  const std::string_view suffix = mod_of(shape, "rounding");
  const Rounding mode = suffix == "rn"   ? Rounding::kNearestEven
                        : suffix == "rz" ? Rounding::kTowardZero
                        : suffix == "rm" ? Rounding::kDown
                        : suffix == "rp" ? Rounding::kUp
                        : is_float(to)   ? Rounding::kNearestEven
                                         : Rounding::kTowardZero;
  check_lanes(shape, [=](const uint64_t* s) -> uint64_t {
    if (!is_float(from)) {
      const Int128 value = integer_of(from, s[0]);
      return is_float(to) ? slot_of_rounded(to, value, mode) : slot_of(to, value);
    }
    if (!is_float(to)) {
      return float_to_integer(to, from, s[0], mode);
    }
    const double value = number_of(from, s[0]);
    return to == from && !suffix.empty() ? slot_of_number(to, integral_of(value, mode))
                                         : slot_of_rounded(to, value, mode);
  });
}

constexpr RowTest kTests[] = {
    {"mov", test_mov},
    {"cvt", test_cvt},
    {"sel", test_sel},
    {"cmp", test_cmp},
};

TEST_CASE("moves, conversions and comparisons agree with exact numbers") {
  run_family(kTests);
}

} // namespace

std::span<const RowTest> convert_tests() {
  return kTests;
}

} // namespace pto::test
