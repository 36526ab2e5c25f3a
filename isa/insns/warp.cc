// SPDX-License-Identifier: Apache-2.0
// Exchange between the lanes of a warp: SHFL, VOTE, REDUCE. They act on each warp of the span.
#include "isa/float16.h"
#include "isa/float32.h"
#include "isa/insns/families.h"
#include "isa/insns/modifiers.h"
#include "isa/lane_ops.h"
#include "isa/row_check.h"

#include <bit>
#include <type_traits>

namespace pto::isa {

namespace {

using namespace type_sets;

// ---------------------------------------------------------------- SHFL

enum ShuffleMode : uint8_t { kIdx, kUp, kDown, kXor }; // the order of kShuffleModes

/// The lane that each lane reads: its own where the source is out of range or not active. Segments
/// of `width` lanes begin at multiples of width; a width that does not divide 32 cuts the last one
/// short. kWidth is the width of all lanes, or 0 where `widths` gives them.
template <ShuffleMode kMode, uint32_t kWidth>
PTO_HOST_LOOP void shuffle_sources(uint32_t* sources,
                                   uint32_t active,
                                   const uint32_t* selectors,
                                   [[maybe_unused]] const uint32_t* widths) {
  for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    const uint32_t b = selectors[lane];
    uint32_t width = kWidth;
    if constexpr (kWidth == 0) {
      width = widths[lane] == 0 || widths[lane] > kWarpLanes ? kWarpLanes : widths[lane];
    }
    const uint32_t start = lane / width * width;
    const uint32_t end = start + width < kWarpLanes ? start + width : kWarpLanes;
    uint32_t source = 0;
    bool in_range = true;
    if constexpr (kMode == kIdx) {
      source = start + b % width;
      in_range = source < end;
    } else if constexpr (kMode == kUp) {
      source = lane - b;
      in_range = b <= lane - start;
    } else if constexpr (kMode == kDown) {
      source = lane + b;
      in_range = b < end - lane;
    } else {
      // A lane of a lower segment may be read, one of a higher may not (as the 950 does).
      source = lane ^ b;
      in_range = source < end;
    }
    const uint32_t inside = in_range ? source : lane;
    sources[lane] = (active >> inside & 1) != 0 ? inside : lane;
  }
}

using SourcesFn = void (*)(uint32_t*, uint32_t, const uint32_t*, const uint32_t*);
template <uint32_t kWidth>
constexpr HostLoop<SourcesFn> kSourcesFns[] = {host_loop<shuffle_sources<kIdx, kWidth>>,
                                               host_loop<shuffle_sources<kUp, kWidth>>,
                                               host_loop<shuffle_sources<kDown, kWidth>>,
                                               host_loop<shuffle_sources<kXor, kWidth>>};

template <class T>
void shuffle_warp(T* dst, const T* values, const uint32_t* sources, uint32_t active) {
  T result[kWarpLanes]; // dst may be the source register
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    result[lane] = values[sources[lane]];
  }
  host_loop<blend_warp<T>>(dst, static_cast<const T*>(result), active);
}

Outcome exec_shfl(ExecContext& ctx, const Insn& insn) {
  const uint32_t* selectors = ctx.source32(insn.operands[2]);
  const uint32_t* widths = insn.has_operand(3) ? ctx.source32(insn.operands[3]) : nullptr;
  const bool wide = is_wide(insn.type);
  const uint64_t* values64 = wide ? ctx.source64(insn.operands[1]) : nullptr;
  const uint32_t* values32 = wide ? nullptr : ctx.source32(insn.operands[1]);
  const SourcesFn find_sources = widths == nullptr ? kSourcesFns<kWarpLanes>[insn.mods[0]].on_host()
                                                   : kSourcesFns<0>[insn.mods[0]].on_host();
  for (unsigned at = 0; at < ctx.lanes(); at += kWarpLanes) {
    const uint32_t active = ctx.active_words()[at / kWarpLanes];
    uint32_t sources[kWarpLanes];
    find_sources(sources, active, selectors + at, widths == nullptr ? nullptr : widths + at);
    if (wide) {
      shuffle_warp(ctx.reg64(insn.operands[0].index) + at, values64 + at, sources, active);
    } else {
      shuffle_warp(ctx.reg32(insn.operands[0].index) + at, values32 + at, sources, active);
    }
  }
  return Outcome::kNext;
}

// A width known when the insn is built must be one the hardware has.
std::string_view check_shfl(const Insn& insn) {
  if (!insn.has_operand(3) || insn.operands[3].kind != OperandKind::kImm) {
    return "";
  }
  const uint64_t width = insn.operands[3].bits;
  return width >= 2 && width <= kWarpLanes && width % 2 == 0
             ? ""
             : "a shuffle width that is no even number from 2 to 32";
}

// ---------------------------------------------------------------- VOTE

enum VoteMode : uint8_t { kAll, kAny, kUni, kBallot }; // the order of kVoteModes

Outcome exec_vote(ExecContext& ctx, const Insn& insn) {
  for (unsigned w = 0; w < ctx.lanes() / kWarpLanes; ++w) {
    const uint32_t active = ctx.active_words()[w];
    const uint32_t yes = ctx.source_pred(insn.operands[1], w) & active;
    if (insn.mods[0] == kBallot) {
      uint32_t* dst = ctx.reg32(insn.operands[0].index) + w * kWarpLanes;
      for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
        dst[lane] = (active >> lane & 1) != 0 ? yes : dst[lane];
      }
      continue;
    }
    const bool holds = insn.mods[0] == kAll   ? yes == active
                       : insn.mods[0] == kAny ? yes != 0
                                              : yes == 0 || yes == active;
    uint32_t& dst = ctx.pred(insn.operands[0].index)[w];
    dst = (dst & ~active) | (holds ? active : 0);
  }
  return Outcome::kNext;
}

std::string_view check_vote(const Insn& insn) {
  const bool ballot = insn.mods[0] == kBallot;
  return ballot == (insn.form == 1) ? ""
         : ballot                   ? "vote.ballot gives 32 bits; its destination is an r register"
                  : "all, any and uni give one truth value; their destination is a predicate";
}

// ---------------------------------------------------------------- REDUCE

enum ReduceOp : uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor2 }; // the order of kReduceOps

// Floats and halves take the functions of isa/float32.h and isa/float16.h, which round once, give
// canonical NaNs and let a number win over a NaN. Not overloads of those names: a template here
// would hide the ones of the enclosing namespace.
template <class T> T sum_of(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint32_t>(x) + static_cast<uint32_t>(y));
  } else {
    return add(x, y);
  }
}
template <class T> T lesser_of(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return x < y ? x : y;
  } else {
    return min(x, y);
  }
}
template <class T> T greater_of(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return x < y ? y : x;
  } else {
    return max(x, y);
  }
}

template <ReduceOp kOp, class T> T combine(T x, T y) {
  if constexpr (kOp == kAdd) {
    return sum_of(x, y);
  } else if constexpr (kOp == kMin) {
    return lesser_of(x, y);
  } else if constexpr (kOp == kMax) {
    return greater_of(x, y);
  } else if constexpr (kOp == kAnd) {
    return x & y;
  } else if constexpr (kOp == kOr) {
    return x | y;
  } else {
    return x ^ y;
  }
}

// Binary tree over lane distances 16, 8, 4, 2, 1: at distance d, lane i < d takes (i) op (i + d).
// An absent lane is the identity, so the other side passes unchanged.
template <ReduceOp kOp, class T>
PTO_HOST_LOOP uint32_t reduce_warp(const uint32_t* slots, uint32_t present) {
  T tree[kWarpLanes];
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    tree[lane] = get_lane<T>(slots[lane]);
  }
  if (present == ~0u) {
    for (unsigned d = kWarpLanes / 2; d > 0; d /= 2) {
      for (unsigned i = 0; i < d; ++i) {
        tree[i] = combine<kOp>(tree[i], tree[i + d]);
      }
    }
    return put_lane(tree[0]);
  }
  for (unsigned d = kWarpLanes / 2; d > 0; d /= 2) {
    for (unsigned i = 0; i < d; ++i) {
      const bool low = (present >> i & 1) != 0;
      const bool high = (present >> (i + d) & 1) != 0;
      tree[i] = low && high ? combine<kOp>(tree[i], tree[i + d]) : high ? tree[i + d] : tree[i];
      present |= high ? 1u << i : 0;
    }
  }
  return put_lane(tree[0]);
}

using ReduceFn = uint32_t (*)(const uint32_t*, uint32_t);

// In the order of kReduceOps; wrapping sums and bit operations do not depend on the sign.
template <class T>
constexpr HostLoop<ReduceFn> kIntegerReductions[] = {host_loop<reduce_warp<kAdd, uint32_t>>,
                                                     host_loop<reduce_warp<kMin, T>>,
                                                     host_loop<reduce_warp<kMax, T>>,
                                                     host_loop<reduce_warp<kAnd, uint32_t>>,
                                                     host_loop<reduce_warp<kOr, uint32_t>>,
                                                     host_loop<reduce_warp<kXor2, uint32_t>>};
template <class T>
constexpr HostLoop<ReduceFn> kFloatReductions[] = {host_loop<reduce_warp<kAdd, T>>,
                                                   host_loop<reduce_warp<kMin, T>>,
                                                   host_loop<reduce_warp<kMax, T>>};

HostLoop<ReduceFn> reduction_of(const Insn& insn) {
  switch (insn.type) {
  case Type::kU32:
    return kIntegerReductions<uint32_t>[insn.mods[0]];
  case Type::kS32:
    return kIntegerReductions<int32_t>[insn.mods[0]];
  case Type::kF32:
    return kFloatReductions<float>[insn.mods[0]]; // check_reduce leaves these three
  default:
    return kFloatReductions<F16>[insn.mods[0]];
  }
}

Outcome exec_reduce(ExecContext& ctx, const Insn& insn) {
  const uint32_t* source = ctx.source32(insn.operands[1]);
  uint32_t* dst = ctx.reg32(insn.operands[0].index);
  const ReduceFn reduce = reduction_of(insn).on_host();
  for (unsigned at = 0; at < ctx.lanes(); at += kWarpLanes) {
    const uint32_t active = ctx.active_words()[at / kWarpLanes];
    if (active == 0) {
      continue;
    }
    const uint32_t result = reduce(source + at, active);
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      dst[at + lane] = (active & kLaneBits[lane]) != 0 ? result : dst[at + lane];
    }
  }
  return Outcome::kNext;
}

std::string_view check_reduce(const Insn& insn) {
  return is_float(insn.type) && insn.mods[0] >= kAnd
             ? "a bitwise reduction of floats; use u32, or add, min or max"
             : std::string_view();
}

constexpr InsnDesc kRows[] = {
    {.mnemonic = "shfl",
     .opcode = 0x0d0,
     .operands =
         {dst("d"), src("a"), src("b", TypeRule::kU32), optional(src("width", TypeRule::kU32))},
     .types = kB32 | kB64,
     .mods = {&kShuffleModes},
     .scope = Scope::kWarp,
     .unit = Unit::kV,
     .flags = kCrossLane | kShuffles,
     .latency = "SHFL",
     .check = check_shfl,
     .exec = exec_shfl,
     .npu = "{d} = pto::shfl_{mode}<{type}>({a}, {b}[, {width}]);",
     .summary = "Reads a register of another lane of the warp.",
     .formula = "d = a of lane source(b)",
     .details = "The warp is cut into segments of `width` lanes (default 32; an even number). idx "
                "reads lane b modulo width of the own segment, up and down the lane b below or "
                "above inside the segment, xor the lane whose number differs by b, which may lie "
                "in a lower segment but not in a higher one. A source that is out of range or not "
                "active gives the own value.",
     .example = "shfl.down.b32 r1, r0, 16"},
    {.mnemonic = "vote",
     .opcode = 0x0d1,
     .operands = {pred_dst("d"), pred_src("p")},
     .operands2 = {dst("d", TypeRule::kU32), pred_src("p")},
     .mods = {&kVoteModes},
     .scope = Scope::kWarp,
     .unit = Unit::kV,
     .flags = kCrossLane,
     .latency = "VOTE",
     .check = check_vote,
     .exec = exec_vote,
     .npu = "{d} = pto::vote_{mode}({p});",
     .summary = "Combines a predicate over the active lanes of the warp.",
     .formula = "d = combine(p of active lanes)",
     .details = "all, any and uni give a predicate, ballot an r register with a bit a lane; bits "
                "of inactive lanes are 0. uni holds where all active lanes agree.",
     .example = "vote.ballot r1, p0"},
    {.mnemonic = "reduce",
     .opcode = 0x0d2,
     .operands = {dst("d"), src("a")},
     .types = kU32 | kS32 | kF32 | kF16,
     .mods = {&kReduceOps},
     .scope = Scope::kWarp,
     .unit = Unit::kX,
     .flags = kCrossLane,
     .latency = "REDUCE",
     .check = check_reduce,
     .exec = exec_reduce,
     .npu = "{d} = pto::reduce_{operation}<{type}>({a});",
     .summary = "Combines a value over the active lanes and gives the result to each.",
     .formula = "d = combine(a of active lanes)",
     .details = "A binary tree over lane distances 16, 8, 4, 2 and 1, the lower lane first, absent "
                "lanes as identity; every step is rounded to the type. The row [1e8, 1, -1e8, 1] "
                "in lanes 0 to 3 therefore sums to 2: first (1e8 + -1e8) and (1 + 1).",
     .example = "reduce.add.f32 r1, r0"},
};
static_assert(kRowsComplete<kRows>);

} // namespace

std::span<const InsnDesc> warp_rows() {
  return kRows;
}

} // namespace pto::isa
