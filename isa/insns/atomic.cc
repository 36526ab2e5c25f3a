// SPDX-License-Identifier: Apache-2.0
// ATOM: read-modify-write of one memory location.
#include "isa/float32.h"
#include "isa/insns/families.h"
#include "isa/insns/modifiers.h"
#include "isa/row_check.h"

#include <bit>
#include <cstring>
#include <iterator>

namespace pto::isa {

namespace {

using namespace type_sets;

// Pure functions on raw bits of the access type, one a modifier value. T is the C++ type of the
// access; the memory keeps the low bits.
template <class T> T value(uint64_t bits) {
  if constexpr (sizeof(T) == 4) {
    return std::bit_cast<T>(static_cast<uint32_t>(bits));
  } else {
    return std::bit_cast<T>(bits);
  }
}
template <class T> uint64_t raw(T x) {
  if constexpr (sizeof(T) == 4) {
    return std::bit_cast<uint32_t>(x);
  } else {
    return std::bit_cast<uint64_t>(x);
  }
}

struct AtomicRow {
  std::string_view suffix;
  AtomicOp u32, s32, u64, s64, f32; // null: not defined for the type
};

template <AtomicFn kOne>
void over_warp(uint8_t* host,
               const uint64_t* addresses,
               uint64_t origin,
               const uint32_t* a,
               const uint32_t* b,
               uint32_t* old) {
  const auto apply = [&](unsigned lane) {
    uint8_t* at = host + (addresses[lane] - origin);
    uint32_t before;
    std::memcpy(&before, at, sizeof before);
    const auto after = static_cast<uint32_t>(kOne(before, a[lane], b[lane]));
    std::memcpy(at, &after, sizeof after);
    return before;
  };
  if (old == nullptr) { // most atomics, and the shortest loop
    constexpr unsigned kAtATime = 4;
    for (unsigned lane = 0; lane < kWarpLanes; lane += kAtATime) {
      apply(lane);
      apply(lane + 1);
      apply(lane + 2);
      apply(lane + 3);
    }
    return;
  }
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    old[lane] = apply(lane);
  }
}

template <class F> uint64_t apply_to_bits(uint64_t old, uint64_t a, uint64_t b) {
  return F{}(old, a, b);
}
template <class T, class F> uint64_t apply_as(uint64_t old, uint64_t a, uint64_t /*b*/) {
  return raw(T(F{}(value<T>(old), value<T>(a))));
}

template <class F> constexpr AtomicOp on_bits(F) {
  return {&apply_to_bits<F>, &over_warp<&apply_to_bits<F>>};
}
template <class T, class F> constexpr AtomicOp on(F) {
  if constexpr (sizeof(T) == 4) {
    return {&apply_as<T, F>, &over_warp<&apply_as<T, F>>};
  } else {
    return {&apply_as<T, F>, nullptr};
  }
}
constexpr AtomicOp kUndefined{};

// Floats take the functions of isa/float32.h: canonical NaNs, the number where one side is NaN.
struct Min {
  template <class T> T operator()(T x, T y) const { return x < y ? x : y; }
  float operator()(float x, float y) const { return min(x, y); }
};
struct Max {
  template <class T> T operator()(T x, T y) const { return x < y ? y : x; }
  float operator()(float x, float y) const { return max(x, y); }
};
struct Add {
  float operator()(float x, float y) const { return add(x, y); }
};
struct Inc {
  template <class T> T operator()(T old, T limit) const {
    return old >= limit ? T{0} : static_cast<T>(old + 1);
  }
};
struct Dec {
  template <class T> T operator()(T old, T limit) const {
    return old == 0 || old > limit ? limit : static_cast<T>(old - 1);
  }
};
struct BitAdd {
  uint64_t operator()(uint64_t o, uint64_t a, uint64_t) const { return o + a; }
};
struct BitSub {
  uint64_t operator()(uint64_t o, uint64_t a, uint64_t) const { return o - a; }
};
struct BitAnd {
  uint64_t operator()(uint64_t o, uint64_t a, uint64_t) const { return o & a; }
};
struct BitOr {
  uint64_t operator()(uint64_t o, uint64_t a, uint64_t) const { return o | a; }
};
struct BitXor {
  uint64_t operator()(uint64_t o, uint64_t a, uint64_t) const { return o ^ a; }
};
struct Exchange {
  uint64_t operator()(uint64_t, uint64_t a, uint64_t) const { return a; }
};
struct CompareAndSwap {
  uint64_t operator()(uint64_t o, uint64_t a, uint64_t b) const { return o == a ? b : o; }
};

template <class F> constexpr AtomicRow bitwise(std::string_view suffix) {
  constexpr AtomicOp op = on_bits(F{});
  return {suffix, op, op, op, op, kUndefined};
}

// In the order of kAtomicOps. Wrapping integer arithmetic is the same for both signednesses.
constexpr AtomicRow kAtomics[] = {
    {"add",
     on_bits(BitAdd{}),
     on_bits(BitAdd{}),
     on_bits(BitAdd{}),
     on_bits(BitAdd{}),
     on<float>(Add{})},
    bitwise<BitSub>("sub"),
    {"min",
     on<uint32_t>(Min{}),
     on<int32_t>(Min{}),
     on<uint64_t>(Min{}),
     on<int64_t>(Min{}),
     on<float>(Min{})},
    {"max",
     on<uint32_t>(Max{}),
     on<int32_t>(Max{}),
     on<uint64_t>(Max{}),
     on<int64_t>(Max{}),
     on<float>(Max{})},
    bitwise<BitAnd>("and"),
    bitwise<BitOr>("or"),
    bitwise<BitXor>("xor"),
    {"inc", on<uint32_t>(Inc{}), kUndefined, on<uint64_t>(Inc{}), kUndefined, kUndefined},
    {"dec", on<uint32_t>(Dec{}), kUndefined, on<uint64_t>(Dec{}), kUndefined, kUndefined},
    bitwise<Exchange>("exch"),
    bitwise<CompareAndSwap>("cas"),
};

constexpr bool same_order() {
  for (unsigned i = 0; i < kAtomicOps.values.size(); ++i) {
    if (kAtomics[i].suffix != kAtomicOps.values[i].suffix) {
      return false;
    }
  }
  return std::size(kAtomics) == kAtomicOps.values.size();
}
static_assert(same_order());

const AtomicOp& operation_of(const Insn& insn) {
  const AtomicRow& row = kAtomics[insn.mods[0]];
  switch (insn.type) {
  case Type::kU32:
    return row.u32;
  case Type::kS32:
    return row.s32;
  case Type::kU64:
    return row.u64;
  case Type::kS64:
    return row.s64;
  case Type::kF32:
    return row.f32;
  default:
    return kUndefined;
  }
}

Outcome exec_atom(ExecContext& ctx, const Insn& insn) {
  return ctx.atomic(insn.operands[1],
                    insn.type,
                    operation_of(insn),
                    insn.operands[0],
                    insn.operands[2],
                    insn.has_operand(3) ? &insn.operands[3] : nullptr);
}

std::string_view check_atom(const Insn& insn) {
  if (operation_of(insn).one == nullptr) {
    return insn.type == Type::kF32
               ? "f32 with an operation that floats lack; floats have add, min and max"
               : "a signed type with inc or dec, which count unsigned; use u32 or u64";
  }
  if (is_wide(insn.type) && insn.operands[1].mem().space != Space::kHbm) {
    return "a 64-bit atomic outside hbm; scratchpad atomics have 32 bits";
  }
  const bool is_cas = has_mod(insn, kAtomicOps, "cas");
  if (is_cas != insn.has_operand(3)) {
    return is_cas ? "atom.cas takes two sources: the expected and the new value"
                  : "a second source, which only atom.cas takes";
  }
  return "";
}

constexpr OperandSpec or_discard(OperandSpec spec) {
  spec.accepts |= kAcceptDiscard;
  return spec;
}

constexpr InsnDesc kRows[] = {
    {.mnemonic = "atom",
     .opcode = 0x0a0,
     .operands = {or_discard(dst("d")),
                  mem("mem", kAcceptHbm | kAcceptL1, Role::kDstSrc),
                  src("a"),
                  optional(src("b"))},
     .types = kU32 | kS32 | kU64 | kS64 | kF32,
     .mods = {&kAtomicOps},
     .scope = Scope::kLane,
     .unit = Unit::kM,
     .flags = kReadsMem | kWritesMem | kAtomic,
     .latency = "ATOM",
     .check = check_atom,
     .exec = exec_atom,
     .npu = "[{d} = ]pto::atomic_{operation}<{type}>({mem}, {a}[, {b}]);",
     .summary = "Reads, modifies and writes one location as one step and returns the old value.",
     .formula = "d = mem; mem = op(mem, a, b)",
     .details = "Lanes of a warp act in ascending order. `_` as destination says that nobody reads "
                "the old value. inc gives 0 where old >= a, else old + 1; dec gives a where old is "
                "0 or above a, else old - 1. Minimum and maximum of f32 return the number when one "
                "side is NaN. 64-bit types work on hbm only; f32 has add, min and max.",
     .example = "atom.add.u32 r1, hbm[a + r0*4], 1"},
};
static_assert(kRowsComplete<kRows>);

} // namespace

std::span<const InsnDesc> atomic_rows() {
  return kRows;
}

} // namespace pto::isa
