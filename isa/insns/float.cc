// SPDX-License-Identifier: Apache-2.0
// Fused multiply-add and the special functions: FMA EXP LOG SQRT RSQRT RCP TANH SIN COS POW.
#include "isa/fmath.h"
#include "isa/insns/families.h"
#include "isa/lane_ops.h"
#include "isa/row_check.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace pto::isa {

namespace {

using namespace type_sets;

using FusedTypes = TypeList<Type::kF16, Type::kBF16, Type::kF32, Type::kF16x2>;
using SpecialTypes = TypeList<Type::kF16, Type::kF32>;

constexpr auto kFusedFn = [](auto a, auto b, auto c) { return fused(a, b, c); };
// The host's own insn, for the copies that have it; fused() gives the same bits in a few steps.
constexpr auto kHostFusedFn = [](float a, float b, float c) {
  return canonical(__builtin_fmaf(a, b, c));
};
Outcome exec_fma(ExecContext& ctx, const Insn& insn) {
  if (insn.type == Type::kF32 && host_level() >= HostLevel::kAvx2) {
    return map_as<kHostFusedFn, float, float, float, float>(ctx, insn);
  }
  return lanes3<kFusedFn, FusedTypes>(ctx, insn);
}

constexpr auto kExpFn = [](auto a) { return exp(a); };
constexpr auto kLogFn = [](auto a) { return log(a); };
constexpr auto kSqrtFn = [](auto a) { return sqrt(a); };
constexpr auto kRsqrtFn = [](auto a) { return rsqrt(a); };
constexpr auto kRcpFn = [](auto a) { return rcp(a); };
constexpr auto kTanhFn = [](auto a) { return tanh(a); };
constexpr auto kSinFn = [](auto a) { return sin(a); };
constexpr auto kCosFn = [](auto a) { return cos(a); };
constexpr auto kPowFn = [](auto a, auto b) { return pow(a, b); };

// SIN and COS of f32 have a span form that keeps the rare large arguments out of the vector loop.
using SpanFn = void (*)(std::span<const float>, std::span<float>);

template <SpanFn kFunction, auto kScalar> Outcome exec_angle(ExecContext& ctx, const Insn& insn) {
  if (insn.type == Type::kF16) {
    return map_as<kScalar, F16, F16>(ctx, insn);
  }
  over_active(
      ctx,
      ctx.result32(insn.operands[0].index),
      [](uint32_t* dst, unsigned count, const uint32_t* source) {
        constexpr unsigned kChunk = 256;
        float values[kChunk];
        for (unsigned at = 0; at < count; at += kChunk) {
          const unsigned size = std::min(kChunk, count - at);
          std::memcpy(values, source + at, size * sizeof(float));
          kFunction({values, size}, {values, size});
          std::memcpy(dst + at, values, size * sizeof(float));
        }
      },
      ctx.source32(insn.operands[1]));
  return Outcome::kNext;
}

constexpr InsnDesc kRows[] = {
    {.mnemonic = "fma",
     .opcode = 0x030,
     .operands = {dst("d"), src("a"), src("b"), src("c")},
     .types = kF16 | kBF16 | kF32 | kF16x2,
     .latency = "FMA",
     .exec = exec_fma,
     .npu = "{d} = pto::fma<{type}>({a}, {b}, {c});",
     .summary = "Multiplies a by b and adds c, rounding once.",
     .formula = "d = a * b + c",
     .example = "fma.f32 r3, r1, 1.0, r2"},
    {.mnemonic = "exp",
     .opcode = 0x031,
     .operands = {dst("d"), src("a")},
     .types = kF16 | kF32,
     .unit = Unit::kX,
     .latency = "EXP",
     .exec = lanes1<kExpFn, SpecialTypes>,
     .npu = "{d} = pto::exp<{type}>({a});",
     .summary = "The natural exponential, within 2 ulp.",
     .formula = "d = e ^ a",
     .details = "f16 is computed in f32 and rounded.",
     .example = "exp.f32 r1, r0"},
    {.mnemonic = "log",
     .opcode = 0x032,
     .operands = {dst("d"), src("a")},
     .types = kF16 | kF32,
     .unit = Unit::kX,
     .latency = "LOG",
     .exec = lanes1<kLogFn, SpecialTypes>,
     .npu = "{d} = pto::log<{type}>({a});",
     .summary = "The natural logarithm, within 2 ulp.",
     .formula = "d = ln a",
     .details = "Of zero minus infinity, of negative numbers NaN. f16 is computed in f32 and "
                "rounded.",
     .example = "log.f32 r1, r0"},
    {.mnemonic = "sqrt",
     .opcode = 0x033,
     .operands = {dst("d"), src("a")},
     .types = kF16 | kF32,
     .unit = Unit::kX,
     .latency = "SQRT",
     .exec = lanes1<kSqrtFn, SpecialTypes>,
     .npu = "{d} = pto::sqrt<{type}>({a});",
     .summary = "The square root, correctly rounded.",
     .formula = "d = sqrt(a)",
     .details = "Of negative numbers NaN, of -0 itself.",
     .example = "sqrt.f32 r1, r0"},
    {.mnemonic = "rsqrt",
     .opcode = 0x034,
     .operands = {dst("d"), src("a")},
     .types = kF16 | kF32,
     .unit = Unit::kX,
     .latency = "RSQRT",
     .exec = lanes1<kRsqrtFn, SpecialTypes>,
     .npu = "{d} = pto::rsqrt<{type}>({a});",
     .summary = "The reciprocal square root, within 2 ulp.",
     .formula = "d = 1 / sqrt(a)",
     .details = "Of +0 infinity, of -0 minus infinity.",
     .example = "rsqrt.f32 r1, r0"},
    {.mnemonic = "rcp",
     .opcode = 0x035,
     .operands = {dst("d"), src("a")},
     .types = kF16 | kF32,
     .unit = Unit::kX,
     .latency = "RCP",
     .exec = lanes1<kRcpFn, SpecialTypes>,
     .npu = "{d} = pto::rcp<{type}>({a});",
     .summary = "The reciprocal, within 2 ulp.",
     .formula = "d = 1 / a",
     .example = "rcp.f32 r1, r0"},
    {.mnemonic = "tanh",
     .opcode = 0x036,
     .operands = {dst("d"), src("a")},
     .types = kF16 | kF32,
     .unit = Unit::kX,
     .latency = "TANH",
     .exec = lanes1<kTanhFn, SpecialTypes>,
     .npu = "{d} = pto::tanh<{type}>({a});",
     .summary = "The hyperbolic tangent, within 2 ulp.",
     .formula = "d = tanh a",
     .details = "f16 is computed in f32 and rounded.",
     .example = "tanh.f32 r1, r0"},
    {.mnemonic = "sin",
     .opcode = 0x037,
     .operands = {dst("d"), src("a")},
     .types = kF16 | kF32,
     .unit = Unit::kX,
     .latency = "SIN",
     .exec = exec_angle<static_cast<SpanFn>(sin), kSinFn>,
     .npu = "{d} = pto::sin<{type}>({a});",
     .summary = "The sine of an angle in radians, within 2 ulp for any argument.",
     .formula = "d = sin a",
     .details = "Of infinities NaN. f16 is computed in f32 and rounded.",
     .example = "sin.f32 r1, r0"},
    {.mnemonic = "cos",
     .opcode = 0x038,
     .operands = {dst("d"), src("a")},
     .types = kF16 | kF32,
     .unit = Unit::kX,
     .latency = "COS",
     .exec = exec_angle<static_cast<SpanFn>(cos), kCosFn>,
     .npu = "{d} = pto::cos<{type}>({a});",
     .summary = "The cosine of an angle in radians, within 2 ulp for any argument.",
     .formula = "d = cos a",
     .details = "Of infinities NaN. f16 is computed in f32 and rounded.",
     .example = "cos.f32 r1, r0"},
    {.mnemonic = "pow",
     .opcode = 0x039,
     .operands = {dst("d"), src("a"), src("b")},
     .types = kF32,
     .unit = Unit::kX,
     .latency = "POW",
     .exec = lanes2<kPowFn, TypeList<Type::kF32>>,
     .npu = "{d} = pto::pow<{type}>({a}, {b});",
     .summary = "a to the power b, within 2 ulp.",
     .formula = "d = a ^ b",
     .details = "Special values as C's pow: 1 for b = 0 or a = 1 even with NaN, NaN for a negative "
                "base with a fractional exponent.",
     .example = "pow.f32 r2, r0, 2.0"},
};
static_assert(kRowsComplete<kRows>);

} // namespace

std::span<const InsnDesc> float_rows() {
  return kRows;
}

} // namespace pto::isa
