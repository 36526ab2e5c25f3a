// SPDX-License-Identifier: Apache-2.0
// Conversion between value types: CVT.
//
// Eleven types each way and four roundings would be several hundred loops. Sources of 8 and 16 bits
// are therefore widened first, which is exact, so that loops exist for five source types only.
#include "isa/convert.h"

#include "isa/insns/families.h"
#include "isa/insns/modifiers.h"
#include "isa/lane_ops.h"
#include "isa/row_check.h"

#include <algorithm>
#include <type_traits>

namespace pto::isa {

namespace {

using namespace type_sets;

/// The widest type of the same kind with the register of From.
template <class From>
using WideOf = std::conditional_t<
    kIsFloat<From>,
    float,
    std::conditional_t<sizeof(From) == 8,
                       From,
                       std::conditional_t<std::is_signed_v<From>, int32_t, uint32_t>>>;

template <class To, class From>
constexpr auto kDefaultFn = [](From value) { return convert<To>(value); };
template <class To, Rounding kMode, class From>
constexpr auto kRoundingFn = [](From value) { return convert<To, kMode>(value); };
template <class Wide, class From>
constexpr auto kWidenFn = [](From value) {
  if constexpr (kIsFloat<From>) {
    return widen(value);
  } else {
    return static_cast<Wide>(value);
  }
};

template <class To, class From> using Loop = void (*)(SlotOf<To>*, unsigned, const SlotOf<From>*);

template <class To, class From> Loop<To, From> loop_of(uint8_t rounding) {
  if constexpr (kIsFloat<To> || kIsFloat<From>) {
    switch (rounding) { // the order of kRounding
    case 1:
      return host_loop<apply_lanes<kRoundingFn<To, Rounding::kNearestEven, From>, To, From>>.on_host();
    case 2:
      return host_loop<apply_lanes<kRoundingFn<To, Rounding::kTowardZero, From>, To, From>>.on_host();
    case 3:
      return host_loop<apply_lanes<kRoundingFn<To, Rounding::kDown, From>, To, From>>.on_host();
    case 4:
      return host_loop<apply_lanes<kRoundingFn<To, Rounding::kUp, From>, To, From>>.on_host();
    default:
      break;
    }
    if constexpr (!std::is_same_v<To, From>) { // else no rounding at all
      return loop_of<To, From>(kIsFloat<To> ? 1 : 2);
    }
  }
  return host_loop<apply_lanes<kDefaultFn<To, From>, To, From>>.on_host();
}

template <class To, class From> Outcome convert_lanes(ExecContext& ctx, const Insn& insn) {
  using Wide = WideOf<From>;
  SlotOf<To>* dst = dst_lanes<To>(ctx, insn.operands[0]);
  const SlotOf<From>* source = source_lanes<From>(ctx, insn.operands[1]);
  if constexpr (std::is_same_v<From, Wide> || std::is_same_v<From, To>) {
    over_active(ctx, dst, loop_of<To, From>(insn.mods[0]), source);
  } else {
    // A half that becomes an f32 is exact; a rounding there must not make it integral.
    const Loop<To, Wide> loop = loop_of<To, Wide>(std::is_same_v<To, Wide> ? 0 : insn.mods[0]);
    const Loop<Wide, From> widen_lanes =
        host_loop<apply_lanes<kWidenFn<Wide, From>, Wide, From>>.on_host();
    over_active(
        ctx,
        dst,
        [loop, widen_lanes](SlotOf<To>* out, unsigned count, const SlotOf<From>* in) {
          constexpr unsigned kChunk = 256;
          SlotOf<Wide> wide[kChunk];
          for (unsigned at = 0; at < count; at += kChunk) {
            const unsigned size = std::min(kChunk, count - at);
            widen_lanes(wide, size, in + at);
            loop(out + at, size, wide);
          }
        },
        source);
  }
  return Outcome::kNext;
}

Outcome exec_cvt(ExecContext& ctx, const Insn& insn) {
  return for_type(ScalarTypes{}, insn.type, [&](auto to) {
    return for_type(ScalarTypes{}, insn.type2, [&](auto from) {
      return convert_lanes<typename decltype(to)::type, typename decltype(from)::type>(ctx, insn);
    });
  });
}

std::string_view check_cvt(const Insn& insn) {
  return !is_float(insn.type) && !is_float(insn.type2) && !has_mod(insn, kRounding, "")
             ? "a rounding on a conversion between integers, which rounds nothing; leave it out"
             : std::string_view();
}

constexpr TypeSet kConvertible =
    kU8 | kS8 | kU16 | kS16 | kU32 | kS32 | kU64 | kS64 | kF16 | kBF16 | kF32;

constexpr InsnDesc kRows[] = {
    {.mnemonic = "cvt",
     .opcode = 0x071,
     .operands = {dst("d"), src("a", TypeRule::kSecond)},
     .types = kConvertible,
     .types2 = kConvertible,
     .mods = {&kRounding},
     .flags = kTypesFirst,
     .latency = "CVT",
     .check = check_cvt,
     .exec = exec_cvt,
     .npu = "{d} = pto::cvt[_{rounding}]<{type}, {type2}>({a});",
     .summary = "Converts between types, rounding once.",
     .formula = "d = (type) a",
     .details = "The first type is the destination's. Without a rounding: to nearest even between "
                "floats and from integers, toward zero to integers. Floats saturate to integers "
                "and NaN gives 0; integers are cut or extended. A float to its own type with a "
                "rounding gives the integral value: .rm floor, .rp ceil, .rz trunc, .rn rint.",
     .example = "cvt.s32.f32.rz r1, r0"},
};
static_assert(kRowsComplete<kRows>);

} // namespace

std::span<const InsnDesc> convert_rows() {
  return kRows;
}

} // namespace pto::isa
