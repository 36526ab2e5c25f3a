// SPDX-License-Identifier: Apache-2.0
// Moves, selection and comparison: MOV SEL CMP.
#include "isa/affine.h"
#include "isa/float16.h"
#include "isa/insns/families.h"
#include "isa/insns/modifiers.h"
#include "isa/lane_ops.h"
#include "isa/linear.h"
#include "isa/row_check.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace pto::isa {

namespace {

using namespace type_sets;

// ---------------------------------------------------------------- MOV, SEL

constexpr auto kCopyFn = [](auto a) { return a; };

Outcome exec_mov(ExecContext& ctx, const Insn& insn) {
  const Operand& source = insn.operands[1];
  if (source.kind == OperandKind::kSpecial) {
    return ctx.read_special(static_cast<Special>(source.index), insn.operands[0]);
  }
  if (insn.type == Type::kPred) {
    return map_preds(ctx, insn.operands[0], [&](unsigned w) { return ctx.source_pred(source, w); });
  }
  return is_wide(insn.type) ? map_as<kCopyFn, uint64_t, uint64_t>(ctx, insn)
                            : map_as<kCopyFn, uint32_t, uint32_t>(ctx, insn);
}

template <class Slot>
PTO_HOST_LOOP void
select_warp(Slot* d, const Slot* a, const Slot* b, uint32_t chosen, uint32_t active) {
  PTO_INDEPENDENT_LANES
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    const auto take_a = lane_mask<Slot>(chosen, lane);
    const auto write = lane_mask<Slot>(active, lane);
    const Slot value = (a[lane] & take_a) | (b[lane] & ~take_a);
    d[lane] = (value & write) | (d[lane] & ~write);
  }
}

template <class Slot> void select_lanes(ExecContext& ctx, const Insn& insn) {
  Slot* d = dst_lanes<Slot>(ctx, insn.operands[0]);
  const Slot* a = source_lanes<Slot>(ctx, insn.operands[1]);
  const Slot* b = source_lanes<Slot>(ctx, insn.operands[2]);
  const auto select = host_loop<select_warp<Slot>>.on_host();
  for (unsigned at = 0; at < ctx.lanes(); at += kWarpLanes) {
    const uint32_t active = ctx.active_words()[at / kWarpLanes];
    const uint32_t chosen = ctx.source_pred(insn.operands[3], at / kWarpLanes);
    select(d + at, a + at, b + at, chosen, active);
  }
}

Outcome exec_sel(ExecContext& ctx, const Insn& insn) {
  if (is_wide(insn.type)) {
    select_lanes<uint64_t>(ctx, insn);
  } else {
    select_lanes<uint32_t>(ctx, insn);
  }
  return Outcome::kNext;
}

// ---------------------------------------------------------------- CMP

// Eight bytes of 0 or 1 as eight bits, byte 0 lowest.
uint32_t pack_bytes(const uint8_t* bytes) {
  uint64_t eight = 0;
  std::memcpy(&eight, bytes, sizeof(eight));
  return static_cast<uint32_t>(eight * 0x0102040810204080 >> 56);
}

// F16 and BF16 compare as the floats that they are.
template <class T> auto comparable(T x) {
  if constexpr (std::is_integral_v<T>) {
    return x;
  } else {
    return widen(x);
  }
}

// The word of one warp. NaN: only ne holds.
template <class T, class Compare>
PTO_HOST_LOOP uint32_t compare_warp(const SlotOf<T>* a, const SlotOf<T>* b) {
  uint8_t holds[kWarpLanes]; // in two steps, so that the comparison vectorises
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    const auto x = comparable(get_lane<T>(a[lane]));
    const auto y = comparable(get_lane<T>(b[lane]));
    holds[lane] = Compare{}(x, y) ? 1 : 0;
  }
  return pack_bytes(holds) | pack_bytes(holds + 8) << 8 | pack_bytes(holds + 16) << 16 |
         pack_bytes(holds + 24) << 24;
}

template <class T> using CompareFn = uint32_t (*)(const SlotOf<T>*, const SlotOf<T>*);

// In the order of kCompareOps.
template <class T>
constexpr HostLoop<CompareFn<T>> kComparisons[] = {
    host_loop<compare_warp<T, std::equal_to<>>>,
    host_loop<compare_warp<T, std::not_equal_to<>>>,
    host_loop<compare_warp<T, std::less<>>>,
    host_loop<compare_warp<T, std::less_equal<>>>,
    host_loop<compare_warp<T, std::greater<>>>,
    host_loop<compare_warp<T, std::greater_equal<>>>};

Outcome exec_cmp(ExecContext& ctx, const Insn& insn) {
  const bool is_and = has_mod(insn, kCombine, "and");
  return for_type(ScalarTypes{}, insn.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* a = source_lanes<T>(ctx, insn.operands[1]);
    const auto* b = source_lanes<T>(ctx, insn.operands[2]);
    const CompareFn<T> compare = kComparisons<T>[insn.mods[0]].on_host();
    return map_preds(ctx, insn.operands[0], [&](unsigned w) {
      const uint32_t holds = compare(a + w * kWarpLanes, b + w * kWarpLanes);
      if (insn.mods[1] == 0) {
        return holds;
      }
      const uint32_t other = ctx.source_pred(insn.operands[3], w);
      return is_and ? holds & other : holds | other;
    });
  });
}

/// Whether `a op b` holds in every lane, in none, or (nullopt) one has to look.
std::optional<bool> decide(unsigned op, const LinearRange& a, const LinearRange& b) {
  const bool below = a.highest < b.lowest;
  const bool above = a.lowest > b.highest;
  const bool apart = below || above;
  const bool same = a.lowest == a.highest && b.lowest == b.highest && a.lowest == b.lowest;
  const bool at_most = a.highest <= b.lowest;
  const bool at_least = a.lowest >= b.highest;
  struct Answer {
    bool always, never;
  };
  const std::array<Answer, 6> answers = {{{same, apart}, // the order of kCompareOps
                                          {apart, same},
                                          {below, at_least},
                                          {at_most, above},
                                          {above, at_most},
                                          {at_least, below}}};
  const Answer answer = answers[op];
  return answer.always || answer.never ? std::optional(answer.always) : std::nullopt;
}

bool linear_cmp(SpanLanes& span, const Insn& insn, const LinearSources& x, LinearValue& /*d*/) {
  if (!is_linear_type(insn.type) || is_wide(insn.type)) {
    return false;
  }
  const auto a = linear_range(x.at[1], x.warps, is_signed(insn.type));
  const auto b = linear_range(x.at[2], x.warps, is_signed(insn.type));
  const std::optional<bool> holds = a && b ? decide(insn.mods[0], *a, *b) : std::nullopt;
  if (!holds) {
    return false;
  }
  const uint32_t word = *holds ? ~0u : 0u;
  if (insn.mods[1] == 0) {
    std::fill_n(span.pred(insn.operands[0].index), span.lanes() / kWarpLanes, word);
    return true;
  }
  const bool is_and = has_mod(insn, kCombine, "and");
  map_preds(span, insn.operands[0], [&](unsigned w) {
    const uint32_t other = span.source_pred(insn.operands[3], w);
    return is_and ? word & other : word | other;
  });
  return true;
}

template <class Sources, class Value>
bool linear_mov(SpanLanes& /*span*/, const Insn& insn, const Sources& x, Value& d) {
  d = x.at[1];
  return insn.type != Type::kPred;
}

std::string_view check_cmp(const Insn& insn) {
  const bool combines = !has_mod(insn, kCombine, "");
  if (combines == insn.has_operand(3)) {
    return "";
  }
  return combines ? "cmp with .and or .or takes a predicate q as fourth operand"
                  : "a fourth operand, which only cmp with .and or .or takes";
}

// ---------------------------------------------------------------- rows

constexpr TypeSet kComparable =
    kU8 | kS8 | kU16 | kS16 | kU32 | kS32 | kU64 | kS64 | kF16 | kBF16 | kF32;

constexpr OperandSpec or_pred(OperandSpec spec) {
  spec.accepts |= kAcceptPred;
  return spec;
}
constexpr OperandSpec mov_source() {
  OperandSpec spec = or_pred(src("a"));
  spec.accepts |= kAcceptSpecial | kAcceptAddress;
  return spec;
}

constexpr InsnDesc kRows[] = {
    {.mnemonic = "mov",
     .opcode = 0x070,
     .operands = {or_pred(dst("d")), mov_source()},
     .types = kB32 | kB64 | kPred | kU32 | kS32 | kF32 | kF16 | kBF16 | kF16x2 | kU64 | kS64,
     .latency = "MOV",
     .exec = exec_mov,
     .linear = {linear_mov, linear_mov},
     .npu = "{d} = {a};",
     .summary = "Copies a register, immediate, parameter, special register or address.",
     .formula = "d = a",
     .details = "Special registers are sources of MOV only. A symbol gives its byte offset in its "
                "space, a pointer parameter its hbm address (64 bits, a d register). Types choose "
                "how an immediate is read; the copy itself is one of bits.",
     .example = "mov.u32 r0, %gid.x"},
    {.mnemonic = "sel",
     .opcode = 0x072,
     .operands = {dst("d"), src("a"), src("b"), pred_src("p")},
     .types = kB32 | kB64,
     .flags = kSelects,
     .latency = "SEL",
     .exec = exec_sel,
     .npu = "{d} = {p} ? {a} : {b};",
     .summary = "Chooses by a predicate.",
     .formula = "d = p ? a : b",
     .example = "sel.b32 r2, r0, r1, !p0"},
    {.mnemonic = "cmp",
     .opcode = 0x073,
     .operands = {pred_dst("p"), src("a"), src("b"), optional(pred_src("q"))},
     .types = kComparable,
     .mods = {&kCompareOps, &kCombine},
     .latency = "CMP",
     .check = check_cmp,
     .exec = exec_cmp,
     .linear = {.of_span = linear_cmp},
     .npu = "{p} = pto::cmp_{comparison}<{type}>({a}, {b})[ {combination} {q}];",
     .summary = "Compares and writes a predicate.",
     .formula = "p = (a op b) [and/or q]",
     .details = "With NaN only ne holds. `.and` and `.or` combine the outcome with predicate q.",
     .example = "cmp.lt.and.f32 p1, r0, r1, p0"},
};
static_assert(kRowsComplete<kRows>);

} // namespace

std::span<const InsnDesc> select_rows() {
  return kRows;
}

} // namespace pto::isa
