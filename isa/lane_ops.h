// SPDX-License-Identifier: Apache-2.0
// Adapters from a scalar function to an ExecFn over a whole span of lanes.
//
// lanes<F, types>: operand 0 is the destination, the others are sources; F is a captureless lambda
// over C++ values (int16_t ... uint64_t, F16, BF16, float, F16x2). The type is looked at once an
// insn; the loop over lanes is over contiguous arrays and vectorises. While some lanes are inactive
// a warp is computed into a temporary and blended: scalar functions have no side effects, so
// computing an inactive lane is harmless.
#pragma once

#include "isa/float16.h"
#include "isa/host_level.h"
#include "isa/insn_desc.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

// Lanes never depend on each other: a destination register is a source register itself or disjoint.
#if defined(__clang__)
#define PTO_INDEPENDENT_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define PTO_INDEPENDENT_LANES _Pragma("GCC ivdep")
#endif

namespace pto::isa {

// ---------------------------------------------------------------- values and their slots

template <Type> struct LaneTypeOf;
// clang-format off
template <> struct LaneTypeOf<Type::kU8> { using type = uint8_t; };
template <> struct LaneTypeOf<Type::kS8> { using type = int8_t; };
template <> struct LaneTypeOf<Type::kU16> { using type = uint16_t; };
template <> struct LaneTypeOf<Type::kS16> { using type = int16_t; };
template <> struct LaneTypeOf<Type::kU32> { using type = uint32_t; };
template <> struct LaneTypeOf<Type::kS32> { using type = int32_t; };
template <> struct LaneTypeOf<Type::kU64> { using type = uint64_t; };
template <> struct LaneTypeOf<Type::kS64> { using type = int64_t; };
template <> struct LaneTypeOf<Type::kF16> { using type = F16; };
template <> struct LaneTypeOf<Type::kBF16> { using type = BF16; };
template <> struct LaneTypeOf<Type::kF32> { using type = float; };
template <> struct LaneTypeOf<Type::kF16x2> { using type = F16x2; };
template <> struct LaneTypeOf<Type::kB32> { using type = uint32_t; };
template <> struct LaneTypeOf<Type::kB64> { using type = uint64_t; };
// clang-format on

/// The C++ value of a lane of that type.
template <Type kType> using LaneType = typename LaneTypeOf<kType>::type;

/// The register that holds a T: 8- and 16-bit values sit in the low bits of a 32-bit one.
template <class T> using SlotOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

/// Unsigned arithmetic in this type wraps as T does, and never overflows a promoted int.
template <class T> using WrapOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T> constexpr T get_lane(SlotOf<T> slot) {
  if constexpr (std::is_same_v<T, F16> || std::is_same_v<T, BF16>) {
    return T{static_cast<uint16_t>(slot)};
  } else if constexpr (std::is_same_v<T, F16x2>) {
    return {F16{static_cast<uint16_t>(slot)}, F16{static_cast<uint16_t>(slot >> 16)}};
  } else if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(slot);
  } else {
    return static_cast<T>(slot);
  }
}

/// Extends by the type's signedness.
template <class T> constexpr SlotOf<T> put_lane(T value) {
  if constexpr (std::is_same_v<T, F16> || std::is_same_v<T, BF16>) {
    return value.bits;
  } else if constexpr (std::is_same_v<T, F16x2>) {
    return value.lo.bits | static_cast<uint32_t>(value.hi.bits) << 16;
  } else if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<uint32_t>(value);
  } else {
    return static_cast<SlotOf<T>>(value);
  }
}

template <class T> const SlotOf<T>* source_lanes(ExecContext& ctx, const Operand& operand) {
  if constexpr (sizeof(T) == 8) {
    return ctx.source64(operand);
  } else {
    return ctx.source32(operand);
  }
}
template <class T> SlotOf<T>* dst_lanes(ExecContext& ctx, const Operand& operand) {
  if constexpr (sizeof(T) == 8) {
    return ctx.result64(operand.index);
  } else {
    return ctx.result32(operand.index);
  }
}

// ---------------------------------------------------------------- spans

/// Bit of each lane in its warp's word. A table and not a shift: hosts without a vector shift by
/// different counts can still test 32 lanes at once.
inline constexpr std::array<uint32_t, kWarpLanes> kLaneBits = [] {
  std::array<uint32_t, kWarpLanes> bits{};
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    bits[lane] = 1u << lane;
  }
  return bits;
}();

/// All ones where the lane's bit of the word is set, else 0.
template <class Slot> constexpr Slot lane_mask(uint32_t word, unsigned lane) {
  return (word & kLaneBits[lane]) != 0 ? static_cast<Slot>(~Slot{0}) : Slot{0};
}

/// dst[lane] = value[lane] in the active lanes of one warp. Masks and not a choice between two
/// loads, which the compiler would turn into a branch.
template <class Slot> PTO_HOST_LOOP void blend_warp(Slot* dst, const Slot* value, uint32_t active) {
  PTO_INDEPENDENT_LANES
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    const auto mask = lane_mask<Slot>(active, lane);
    dst[lane] = (value[lane] & mask) | (dst[lane] & ~mask);
  }
}

/// over_active where some lane is not.
template <class Slot, class Run, class... Sources>
[[gnu::noinline]] void
over_some(const ExecContext& ctx, Slot* dst, Run run, const Sources*... sources) {
  const auto blend = host_loop<blend_warp<Slot>>.on_host();
  for (unsigned at = 0; at < ctx.lanes(); at += kWarpLanes) {
    const uint32_t active = ctx.active_words()[at / kWarpLanes];
    if (active == ~0u) {
      run(dst + at, kWarpLanes, (sources + at)...);
    } else if (active != 0) {
      Slot result[kWarpLanes];
      run(static_cast<Slot*>(result), kWarpLanes, (sources + at)...);
      blend(dst + at, result, active);
    }
  }
}

/// Applies run(dst, count, sources...) to the active lanes of the span.
template <class Slot, class Run, class... Sources>
void over_active(const ExecContext& ctx, Slot* dst, Run run, const Sources*... sources) {
  if (ctx.all_active()) {
    run(dst, ctx.lanes(), sources...);
  } else {
    over_some(ctx, dst, run, sources...);
  }
}

template <auto F, class D, class... S>
PTO_HOST_LOOP void apply_lanes(SlotOf<D>* dst, unsigned count, const SlotOf<S>*... sources) {
  PTO_INDEPENDENT_LANES
  for (unsigned i = 0; i < count; ++i) {
    dst[i] = put_lane<D>(static_cast<D>(F(get_lane<S>(sources[i])...)));
  }
}

/// The operand has a value for each lane; others have one for all.
constexpr bool holds_lanes(const Operand& operand) {
  return operand.kind == OperandKind::kReg32 || operand.kind == OperandKind::kReg64;
}

/// Lanes that a wide span computes at a time where a source is no register: its copies are those of
/// the first piece for all of them, and stay in the host's first-level cache.
inline constexpr unsigned kPieceLanes = 512;

template <auto F, class D, class... S, size_t... kIndex>
Outcome map_lanes(ExecContext& ctx, const Insn& insn, std::index_sequence<kIndex...>) {
  SlotOf<D>* const dst = dst_lanes<D>(ctx, insn.operands[0]);
  const auto run = host_loop<apply_lanes<F, D, S...>>.on_host();
  if (ctx.lanes() <= kPieceLanes || !ctx.all_active() ||
      (holds_lanes(insn.operands[kIndex + 1]) && ...)) {
    over_active(ctx, dst, run, source_lanes<S>(ctx, insn.operands[kIndex + 1])...);
    return Outcome::kNext;
  }
  const std::tuple<const SlotOf<S>*...> sources{source_lanes<S>(ctx, insn.operands[kIndex + 1])...};
  const size_t moves[] = {size_t{holds_lanes(insn.operands[kIndex + 1])}...};
  for (unsigned at = 0; at < ctx.lanes(); at += kPieceLanes) {
    run(dst + at,
        std::min(kPieceLanes, ctx.lanes() - at),
        (std::get<kIndex>(sources) + size_t{at} * moves[kIndex])...);
  }
  return Outcome::kNext;
}

/// D = F(S...), destination and source types given.
template <auto F, class D, class... S> Outcome map_as(ExecContext& ctx, const Insn& insn) {
  return map_lanes<F, D, S...>(ctx, insn, std::index_sequence_for<S...>{});
}

// ---------------------------------------------------------------- dispatch on the type

template <Type... kTypes> struct TypeList {};

/// Every type that a lane computes with alone (f16x2 is two).
using ScalarTypes = TypeList<Type::kU8,
                             Type::kS8,
                             Type::kU16,
                             Type::kS16,
                             Type::kU32,
                             Type::kS32,
                             Type::kU64,
                             Type::kS64,
                             Type::kF16,
                             Type::kBF16,
                             Type::kF32>;
using NumberTypes = TypeList<Type::kU16,
                             Type::kS16,
                             Type::kU32,
                             Type::kS32,
                             Type::kU64,
                             Type::kS64,
                             Type::kF16,
                             Type::kBF16,
                             Type::kF32,
                             Type::kF16x2>;

/// visit(std::type_identity<T>) for the C++ type of `type`, which is one of the list.
template <Type... kTypes, class Visit>
Outcome for_type(TypeList<kTypes...>, Type type, Visit visit) {
  Outcome outcome = Outcome::kFault;
  static_cast<void>(
      ((type == kTypes && (outcome = visit(std::type_identity<LaneType<kTypes>>{}), true)) || ...));
  return outcome;
}

template <auto F, class Types> Outcome lanes1(ExecContext& ctx, const Insn& insn) {
  return for_type(Types{}, insn.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return map_as<F, T, T>(ctx, insn);
  });
}
template <auto F, class Types> Outcome lanes2(ExecContext& ctx, const Insn& insn) {
  return for_type(Types{}, insn.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return map_as<F, T, T, T>(ctx, insn);
  });
}
template <auto F, class Types> Outcome lanes3(ExecContext& ctx, const Insn& insn) {
  return for_type(Types{}, insn.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return map_as<F, T, T, T, T>(ctx, insn);
  });
}

// ---------------------------------------------------------------- predicates

/// dst = words(w) in the active lanes of every warp w of the span.
template <class Words> Outcome map_preds(SpanLanes& span, const Operand& dst, Words words) {
  uint32_t* out = span.pred(dst.index);
  for (unsigned w = 0; w < span.lanes() / kWarpLanes; ++w) {
    const uint32_t active = span.active_words()[w];
    out[w] = (out[w] & ~active) | (words(w) & active);
  }
  return Outcome::kNext;
}

} // namespace pto::isa
