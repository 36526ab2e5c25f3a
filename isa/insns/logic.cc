// SPDX-License-Identifier: Apache-2.0
// Bits: AND OR XOR NOT SHL SHR POPC CLZ BREV PRMT.
#include "isa/affine.h"
#include "isa/insns/families.h"
#include "isa/lane_ops.h"
#include "isa/linear.h"
#include "isa/row_check.h"

#include <bit>

namespace pto::isa {

namespace {

using namespace type_sets;

using BitTypes = TypeList<Type::kB32, Type::kB64>;
using ShiftRightTypes = TypeList<Type::kB32, Type::kB64, Type::kS32, Type::kS64>;

constexpr auto kAndFn = [](auto a, auto b) { return a & b; };
constexpr auto kOrFn = [](auto a, auto b) { return a | b; };
constexpr auto kXorFn = [](auto a, auto b) { return a ^ b; };
constexpr auto kNotFn = [](auto a) { return ~a; };

// AND, OR and XOR also combine predicates, a word a warp.
template <auto F> Outcome exec_bitwise(ExecContext& ctx, const Insn& insn) {
  if (insn.type == Type::kPred) {
    return map_preds(ctx, insn.operands[0], [&](unsigned w) {
      return F(ctx.source_pred(insn.operands[1], w), ctx.source_pred(insn.operands[2], w));
    });
  }
  return lanes2<F, BitTypes>(ctx, insn);
}
Outcome exec_not(ExecContext& ctx, const Insn& insn) {
  if (insn.type == Type::kPred) {
    return map_preds(
        ctx, insn.operands[0], [&](unsigned w) { return ~ctx.source_pred(insn.operands[1], w); });
  }
  return lanes1<kNotFn, BitTypes>(ctx, insn);
}

// The count is taken modulo the width.
constexpr auto kShlFn = [](auto a, uint32_t count) {
  return static_cast<decltype(a)>(a << (count % (sizeof(a) * 8)));
};
constexpr auto kShrFn = [](auto a, uint32_t count) {
  return static_cast<decltype(a)>(a >> (count % (sizeof(a) * 8)));
};
template <auto F, class Types> Outcome exec_shift(ExecContext& ctx, const Insn& insn) {
  return for_type(Types{}, insn.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return map_as<F, T, T, uint32_t>(ctx, insn);
  });
}

constexpr auto kPopcFn = [](auto a) { return static_cast<uint32_t>(std::popcount(a)); };
constexpr auto kClzFn = [](auto a) { return static_cast<uint32_t>(std::countl_zero(a)); };
template <auto F> Outcome exec_count(ExecContext& ctx, const Insn& insn) {
  return insn.type == Type::kB64 ? map_as<F, uint32_t, uint64_t>(ctx, insn)
                                 : map_as<F, uint32_t, uint32_t>(ctx, insn);
}

constexpr auto kBrevFn = [](auto a) {
  uint64_t x = a;
  x = (x >> 1 & 0x5555555555555555) | (x & 0x5555555555555555) << 1;
  x = (x >> 2 & 0x3333333333333333) | (x & 0x3333333333333333) << 2;
  x = (x >> 4 & 0x0f0f0f0f0f0f0f0f) | (x & 0x0f0f0f0f0f0f0f0f) << 4;
  x = (x >> 8 & 0x00ff00ff00ff00ff) | (x & 0x00ff00ff00ff00ff) << 8;
  x = (x >> 16 & 0x0000ffff0000ffff) | (x & 0x0000ffff0000ffff) << 16;
  x = x >> 32 | x << 32;
  return static_cast<decltype(a)>(x >> (64 - sizeof(a) * 8));
};

// Each nibble of the selector picks one of the eight bytes of b:a; its top bit asks for the byte's
// sign in all eight bits instead.
constexpr auto kPrmtFn = [](uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t pair = static_cast<uint64_t>(b) << 32 | a;
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const uint32_t nibble = selector >> (4 * i) & 15;
    const auto byte = static_cast<uint32_t>(pair >> (8 * (nibble & 7)) & 255);
    const uint32_t sign = byte >> 7 != 0 ? 255 : 0;
    result |= (nibble > 7 ? sign : byte) << (8 * i);
  }
  return result;
};

constexpr OperandSpec bits_or_pred(OperandSpec spec) {
  spec.accepts |= kAcceptPred;
  return spec;
}
constexpr OperandSpec count_operand() {
  return src("b", TypeRule::kU32);
}

template <class Sources, class Value>
bool linear_shl(SpanLanes& /*span*/, const Insn& insn, const Sources& x, Value& d) {
  d = x.at[1].scaled(uint64_t{1} << (x.at[2].base % bits(insn.type)));
  return x.at[2].is_uniform();
}

constexpr InsnDesc kRows[] = {
    {.mnemonic = "and",
     .opcode = 0x050,
     .operands = {bits_or_pred(dst("d")), bits_or_pred(src("a")), bits_or_pred(src("b"))},
     .types = kB32 | kB64 | kPred,
     .latency = "AND",
     .exec = exec_bitwise<kAndFn>,
     .npu = "{d} = pto::bit_and<{type}>({a}, {b});",
     .summary = "Bitwise and.",
     .formula = "d = a & b",
     .example = "and.b32 r1, r0, 0xff"},
    {.mnemonic = "or",
     .opcode = 0x051,
     .operands = {bits_or_pred(dst("d")), bits_or_pred(src("a")), bits_or_pred(src("b"))},
     .types = kB32 | kB64 | kPred,
     .latency = "OR",
     .exec = exec_bitwise<kOrFn>,
     .npu = "{d} = pto::bit_or<{type}>({a}, {b});",
     .summary = "Bitwise or.",
     .formula = "d = a | b",
     .example = "or.pred p2, p0, !p1"},
    {.mnemonic = "xor",
     .opcode = 0x052,
     .operands = {bits_or_pred(dst("d")), bits_or_pred(src("a")), bits_or_pred(src("b"))},
     .types = kB32 | kB64 | kPred,
     .latency = "XOR",
     .exec = exec_bitwise<kXorFn>,
     .npu = "{d} = pto::bit_xor<{type}>({a}, {b});",
     .summary = "Bitwise exclusive or.",
     .formula = "d = a ^ b",
     .example = "xor.b32 r2, r0, r1"},
    {.mnemonic = "not",
     .opcode = 0x053,
     .operands = {bits_or_pred(dst("d")), bits_or_pred(src("a"))},
     .types = kB32 | kB64 | kPred,
     .latency = "NOT",
     .exec = exec_not,
     .npu = "{d} = pto::bit_not<{type}>({a});",
     .summary = "Inverts every bit.",
     .formula = "d = ~a",
     .example = "not.b32 r1, r0"},
    {.mnemonic = "shl",
     .opcode = 0x054,
     .operands = {dst("d"), src("a"), count_operand()},
     .types = kB32 | kB64,
     .latency = "SHL",
     .exec = exec_shift<kShlFn, BitTypes>,
     .linear = {linear_shl, linear_shl},
     .npu = "{d} = pto::shl<{type}>({a}, {b});",
     .summary = "Shifts to the left.",
     .formula = "d = a << (b mod width)",
     .details = "The count is 32 bits in every form and is taken modulo the width.",
     .example = "shl.b32 r1, r0, 2"},
    {.mnemonic = "shr",
     .opcode = 0x055,
     .operands = {dst("d"), src("a"), count_operand()},
     .types = kB32 | kB64 | kS32 | kS64,
     .latency = "SHR",
     .exec = exec_shift<kShrFn, ShiftRightTypes>,
     .npu = "{d} = pto::shr<{type}>({a}, {b});",
     .summary = "Shifts to the right; signed types bring the sign in, bits zeros.",
     .formula = "d = a >> (b mod width)",
     .details = "The count is 32 bits in every form and is taken modulo the width.",
     .example = "shr.s32 r1, r0, 4"},
    {.mnemonic = "popc",
     .opcode = 0x056,
     .operands = {dst("d", TypeRule::kU32), src("a")},
     .types = kB32 | kB64,
     .latency = "POPC",
     .exec = exec_count<kPopcFn>,
     .npu = "{d} = pto::popc<{type}>({a});",
     .summary = "Counts the ones.",
     .formula = "d = number of 1 bits of a",
     .details = "The result is 32 bits, an r register, in both forms.",
     .example = "popc.b32 r1, r0"},
    {.mnemonic = "clz",
     .opcode = 0x057,
     .operands = {dst("d", TypeRule::kU32), src("a")},
     .types = kB32 | kB64,
     .latency = "CLZ",
     .exec = exec_count<kClzFn>,
     .npu = "{d} = pto::clz<{type}>({a});",
     .summary = "Counts the zeros above the highest one; the width for 0.",
     .formula = "d = leading 0 bits of a",
     .details = "The result is 32 bits, an r register, in both forms.",
     .example = "clz.b64 r1, d0"},
    {.mnemonic = "brev",
     .opcode = 0x058,
     .operands = {dst("d"), src("a")},
     .types = kB32 | kB64,
     .latency = "BREV",
     .exec = lanes1<kBrevFn, BitTypes>,
     .npu = "{d} = pto::brev<{type}>({a});",
     .summary = "Reverses the order of the bits.",
     .formula = "d[i] = a[width - 1 - i]",
     .example = "brev.b32 r1, r0"},
    {.mnemonic = "prmt",
     .opcode = 0x059,
     .operands = {dst("d"), src("a"), src("b"), src("sel")},
     .types = kB32,
     .latency = "PRMT",
     .exec = lanes3<kPrmtFn, TypeList<Type::kB32>>,
     .npu = "{d} = pto::prmt({a}, {b}, {sel});",
     .summary = "Picks four bytes of the pair b:a.",
     .formula = "d.byte[i] = (b:a).byte[sel.nibble[i]]",
     .details = "Bytes 0 to 3 are a, 4 to 7 are b. Where the top bit of a nibble is set, the sign "
                "of the byte it picks fills all eight bits.",
     .example = "prmt.b32 r2, r0, r1, 0x5410"},
};
static_assert(kRowsComplete<kRows>);

} // namespace

std::span<const InsnDesc> logic_rows() {
  return kRows;
}

} // namespace pto::isa
