// SPDX-License-Identifier: Apache-2.0
// Integer and float arithmetic: ADD SUB MUL MULHI MAD DIV REM MIN MAX ABS NEG.
#include "isa/affine.h"
#include "isa/float32.h"
#include "isa/insns/families.h"
#include "isa/insns/modifiers.h"
#include "isa/lane_ops.h"
#include "isa/linear.h"
#include "isa/row_check.h"

#include <limits>

namespace pto::isa {

namespace {

using namespace type_sets;

constexpr TypeSet kIntegers = kU16 | kS16 | kU32 | kS32 | kU64 | kS64;
constexpr TypeSet kOrdered = kU8 | kS8 | kIntegers | kF16 | kBF16 | kF32 | kF16x2;
constexpr TypeSet kNumbers = kIntegers | kF16 | kBF16 | kF32 | kF16x2;

constexpr auto kAddFn = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(WrapOf<T>(a) + WrapOf<T>(b));
  } else {
    return add(a, b);
  }
};
constexpr auto kSubFn = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(WrapOf<T>(a) - WrapOf<T>(b));
  } else {
    return sub(a, b);
  }
};
constexpr auto kMulFn = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(WrapOf<T>(a) * WrapOf<T>(b));
  } else {
    return mul(a, b);
  }
};
constexpr auto kMinFn = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_integral_v<T>) {
    return a < b ? a : b;
  } else {
    return min(a, b);
  }
};
constexpr auto kMaxFn = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_integral_v<T>) {
    return a < b ? b : a;
  } else {
    return max(a, b);
  }
};
constexpr auto kNegFn = [](auto a) {
  using T = decltype(a);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(WrapOf<T>{0} - WrapOf<T>(a));
  } else {
    return neg(a);
  }
};
constexpr auto kAbsFn = [](auto a) {
  using T = decltype(a);
  if constexpr (std::is_integral_v<T>) {
    return a < 0 ? static_cast<T>(WrapOf<T>{0} - WrapOf<T>(a)) : a;
  } else {
    return abs(a);
  }
};

// Division by zero gives all ones and the dividend as remainder, most-negative / -1 the dividend
// and 0, as in RISC-V; the host would trap on both.
template <class T> constexpr bool overflows(T a, T b) {
  return std::is_signed_v<T> && a == std::numeric_limits<T>::min() && b == static_cast<T>(-1);
}
constexpr auto kDivFn = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_integral_v<T>) {
    return b == 0 ? static_cast<T>(-1) : overflows(a, b) ? a : static_cast<T>(a / b);
  } else {
    return div(a, b);
  }
};
constexpr auto kRemFn = [](auto a, auto b) {
  using T = decltype(a);
  return b == 0 ? a : overflows(a, b) ? T{0} : static_cast<T>(a % b);
};

constexpr auto kMulhiFn = [](auto a, auto b) {
  using T = decltype(a);
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  return static_cast<T>(Wide{a} * Wide{b} >> 32);
};

constexpr auto kMadFn = [](auto a, auto b, auto c) {
  using T = decltype(a);
  return static_cast<T>(WrapOf<T>(a) * WrapOf<T>(b) + WrapOf<T>(c));
};
constexpr auto kMadWideFn = [](auto a, auto b, auto c) {
  using Wide = decltype(c); // the product of two 32-bit values fits, the sum wraps
  return static_cast<Wide>(static_cast<uint64_t>(Wide{a} * Wide{b}) + static_cast<uint64_t>(c));
};

Outcome exec_mad(ExecContext& ctx, const Insn& insn) {
  const bool is_signed_insn = is_signed(insn.type);
  if (has_mod(insn, kWide, "wide")) {
    return is_signed_insn ? map_as<kMadWideFn, int64_t, int32_t, int32_t, int64_t>(ctx, insn)
                          : map_as<kMadWideFn, uint64_t, uint32_t, uint32_t, uint64_t>(ctx, insn);
  }
  return map_as<kMadFn, uint32_t, uint32_t, uint32_t, uint32_t>(ctx, insn);
}

// ---------------------------------------------------------------- linear values

template <class Sources, class Value>
bool linear_add(SpanLanes& /*span*/, const Insn& insn, const Sources& x, Value& d) {
  d = x.at[1] + x.at[2];
  return is_linear_type(insn.type);
}
template <class Sources, class Value>
bool linear_sub(SpanLanes& /*span*/, const Insn& insn, const Sources& x, Value& d) {
  d = x.at[1] - x.at[2];
  return is_linear_type(insn.type);
}
template <class Value> bool linear_product(const Value& a, const Value& b, Value& d) {
  d = a.is_uniform() ? b.scaled(a.base) : a.scaled(b.base);
  return a.is_uniform() || b.is_uniform();
}
template <class Sources, class Value>
bool linear_mul(SpanLanes& /*span*/, const Insn& insn, const Sources& x, Value& d) {
  return linear_product(x.at[1], x.at[2], d) && is_linear_type(insn.type);
}
template <class Sources, class Value>
bool linear_mad(SpanLanes& /*span*/, const Insn& insn, const Sources& x, Value& d) {
  Value product;
  if (has_mod(insn, kWide, "wide")) {
    // Widening needs the numbers, which a wrapping lane would not have.
    const auto a = x.widened(1, is_signed(insn.type));
    const auto b = a ? x.widened(2, is_signed(insn.type)) : a;
    if (!b || !linear_product(*a, *b, product)) {
      return false;
    }
  } else if (!linear_product(x.at[1], x.at[2], product)) {
    return false;
  }
  d = product + x.at[3];
  return true;
}

// ---------------------------------------------------------------- rows

using Divisible =
    TypeList<Type::kU32, Type::kS32, Type::kU64, Type::kS64, Type::kF16, Type::kBF16, Type::kF32>;
using Remaindered = TypeList<Type::kU32, Type::kS32, Type::kU64, Type::kS64>;
using OrderedTypes = TypeList<Type::kU8,
                              Type::kS8,
                              Type::kU16,
                              Type::kS16,
                              Type::kU32,
                              Type::kS32,
                              Type::kU64,
                              Type::kS64,
                              Type::kF16,
                              Type::kBF16,
                              Type::kF32,
                              Type::kF16x2>;
using Word32 = TypeList<Type::kU32, Type::kS32>;
using SignedTypes =
    TypeList<Type::kS16, Type::kS32, Type::kS64, Type::kF16, Type::kBF16, Type::kF32, Type::kF16x2>;
constexpr TypeSet kSignedNumbers = kS16 | kS32 | kS64 | kF16 | kBF16 | kF32 | kF16x2;

constexpr InsnDesc kRows[] = {
    {.mnemonic = "add",
     .opcode = 0x010,
     .operands = {dst("d"), src("a"), src("b")},
     .types = kNumbers,
     .latency = "ADD",
     .exec = lanes2<kAddFn, NumberTypes>,
     .linear = {linear_add, linear_add},
     .npu = "{d} = pto::add<{type}>({a}, {b});",
     .summary = "Adds.",
     .formula = "d = a + b",
     .details = "Integers wrap; floats round to nearest even.",
     .example = "add.f32 r2, r0, r1"},
    {.mnemonic = "sub",
     .opcode = 0x011,
     .operands = {dst("d"), src("a"), src("b")},
     .types = kNumbers,
     .latency = "SUB",
     .exec = lanes2<kSubFn, NumberTypes>,
     .linear = {linear_sub, linear_sub},
     .npu = "{d} = pto::sub<{type}>({a}, {b});",
     .summary = "Subtracts.",
     .formula = "d = a - b",
     .details = "Integers wrap; floats round to nearest even.",
     .example = "sub.s32 r2, r0, 1"},
    {.mnemonic = "mul",
     .opcode = 0x012,
     .operands = {dst("d"), src("a"), src("b")},
     .types = kNumbers,
     .latency = "MUL",
     .exec = lanes2<kMulFn, NumberTypes>,
     .linear = {linear_mul, linear_mul},
     .npu = "{d} = pto::mul<{type}>({a}, {b});",
     .summary = "Multiplies; of integers the low half.",
     .formula = "d = a * b",
     .details = "Integers wrap; floats round to nearest even.",
     .example = "mul.u32 r2, r0, n"},
    {.mnemonic = "mulhi",
     .opcode = 0x013,
     .operands = {dst("d"), src("a"), src("b")},
     .types = kU32 | kS32,
     .latency = "MULHI",
     .exec = lanes2<kMulhiFn, Word32>,
     .npu = "{d} = pto::mulhi<{type}>({a}, {b});",
     .summary = "Multiplies and gives the high half of the 64-bit product.",
     .formula = "d = (a * b) >> 32",
     .example = "mulhi.u32 r2, r0, 0xAAAAAAAB"},
    {.mnemonic = "mad",
     .opcode = 0x014,
     .operands = {dst("d", TypeRule::kWidened), src("a"), src("b"), src("c", TypeRule::kWidened)},
     .types = kU32 | kS32,
     .mods = {&kWide},
     .latency = "MAD",
     .exec = exec_mad,
     .linear = {linear_mad, linear_mad},
     .npu = "{d} = pto::mad[_{width}]<{type}>({a}, {b}, {c});",
     .summary = "Multiplies and adds integers.",
     .formula = "d = a * b + c",
     .details = "The plain form gives the low 32 bits. `mad.wide` adds the full 64-bit product of "
                "32-bit a and b to a 64-bit c; d and c are d registers. Both wrap.",
     .example = "mad.wide.u32 d0, r0, r1, d1"},
    {.mnemonic = "div",
     .opcode = 0x015,
     .operands = {dst("d"), src("a"), src("b")},
     .types = kU32 | kS32 | kU64 | kS64 | kF16 | kBF16 | kF32,
     .unit = Unit::kX,
     .flags = kDivides,
     .latency = "DIV",
     .exec = lanes2<kDivFn, Divisible>,
     .npu = "{d} = pto::div<{type}>({a}, {b});",
     .summary = "Divides; integers toward zero, floats correctly rounded.",
     .formula = "d = a / b",
     .details = "An integer divided by zero gives all ones, the most negative number divided by -1 "
                "itself, as in RISC-V.",
     .example = "div.u32 r2, r0, 3"},
    {.mnemonic = "rem",
     .opcode = 0x016,
     .operands = {dst("d"), src("a"), src("b")},
     .types = kU32 | kS32 | kU64 | kS64,
     .unit = Unit::kX,
     .flags = kDivides,
     .latency = "REM",
     .exec = lanes2<kRemFn, Remaindered>,
     .npu = "{d} = pto::rem<{type}>({a}, {b});",
     .summary = "The remainder of a division toward zero; it has the dividend's sign.",
     .formula = "d = a - (a / b) * b",
     .details = "The remainder of a division by zero is the dividend, that of the most negative "
                "number by -1 is 0.",
     .example = "rem.s32 r2, r0, 7"},
    {.mnemonic = "min",
     .opcode = 0x017,
     .operands = {dst("d"), src("a"), src("b")},
     .types = kOrdered,
     .latency = "MIN",
     .exec = lanes2<kMinFn, OrderedTypes>,
     .npu = "{d} = pto::min<{type}>({a}, {b});",
     .summary = "The smaller of two values.",
     .formula = "d = a < b ? a : b",
     .details = "Where one float is NaN, the other; of two NaNs the canonical one. -0 is below +0.",
     .example = "min.f32 r2, r0, r1"},
    {.mnemonic = "max",
     .opcode = 0x018,
     .operands = {dst("d"), src("a"), src("b")},
     .types = kOrdered,
     .latency = "MAX",
     .exec = lanes2<kMaxFn, OrderedTypes>,
     .npu = "{d} = pto::max<{type}>({a}, {b});",
     .summary = "The larger of two values.",
     .formula = "d = a < b ? b : a",
     .details = "Where one float is NaN, the other; of two NaNs the canonical one. -0 is below +0.",
     .example = "max.f32 r2, r0, 0.0"},
    {.mnemonic = "abs",
     .opcode = 0x019,
     .operands = {dst("d"), src("a")},
     .types = kSignedNumbers,
     .latency = "ABS",
     .exec = lanes1<kAbsFn, SignedTypes>,
     .npu = "{d} = pto::abs<{type}>({a});",
     .summary = "The absolute value.",
     .formula = "d = |a|",
     .details = "The most negative integer stays itself. Of floats only the sign bit changes.",
     .example = "abs.f32 r1, r0"},
    {.mnemonic = "neg",
     .opcode = 0x01a,
     .operands = {dst("d"), src("a")},
     .types = kSignedNumbers,
     .latency = "NEG",
     .exec = lanes1<kNegFn, SignedTypes>,
     .npu = "{d} = pto::neg<{type}>({a});",
     .summary = "Changes the sign.",
     .formula = "d = -a",
     .details = "The most negative integer stays itself. Of floats only the sign bit changes.",
     .example = "neg.s32 r1, r0"},
};
static_assert(kRowsComplete<kRows>);

} // namespace

std::span<const InsnDesc> arith_rows() {
  return kRows;
}

} // namespace pto::isa
