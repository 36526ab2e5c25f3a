// SPDX-License-Identifier: Apache-2.0
// The row of the instruction table. Everything that any tool knows about an insn is a column here;
// there is no opcode enum and no switch over insns anywhere: wanting one means a column is missing.
//
// Rows live in isa/insns/<family>.cc as constexpr arrays with designated initialisers, their
// semantics beside them; isa/table.h gives access to all of them.
#pragma once

#include "isa/exec_context.h"
#include "isa/insn.h"
#include "isa/types.h"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace pto::isa {

/// Who acts: each lane, the warp as one, or the block as one (warp 0 issues it).
enum class Scope : uint8_t { kLane, kWarp, kBlock };

/// The pipe that an insn occupies.
enum class Unit : uint8_t { kS, kV, kX, kM, kD, kC };
inline constexpr unsigned kUnitCount = 6;
struct UnitInfo {
  std::string_view letter;
  std::string_view summary;
};
inline constexpr std::array<UnitInfo, kUnitCount> kUnits = {{
    {"S", "scalar and control"},
    {"V", "lane arithmetic"},
    {"X", "special functions"},
    {"M", "load and store"},
    {"D", "copy engine"},
    {"C", "matrix unit"},
}};
constexpr const UnitInfo& info(Unit unit) {
  return kUnits[static_cast<unsigned>(unit)];
}

// ---------------------------------------------------------------- operands

enum class Role : uint8_t { kDst, kSrc, kDstSrc };
constexpr bool reads(Role role) {
  return role != Role::kDst;
}
constexpr bool writes(Role role) {
  return role != Role::kSrc;
}

/// What may stand at an operand's place, as a set of bits.
using Accepts = uint16_t;
inline constexpr Accepts kAcceptReg = 1 << 0;     // r or d register, by the operand's type
inline constexpr Accepts kAcceptImm = 1 << 1;     // immediate
inline constexpr Accepts kAcceptParam = 1 << 2;   // scalar parameter (or pointer, where 64 bit)
inline constexpr Accepts kAcceptSpecial = 1 << 3; // special register
inline constexpr Accepts kAcceptAddress = 1 << 4; // symbol, standing for its byte offset
inline constexpr Accepts kAcceptPred = 1 << 5;    // predicate register (sources may be negated)
inline constexpr Accepts kAcceptTile = 1 << 6;    // tile register, or .tile/.shared symbol
inline constexpr Accepts kAcceptHbm = 1 << 7;     // hbm[...]
inline constexpr Accepts kAcceptL1 = 1 << 8;      // l1[...]
inline constexpr Accepts kAcceptConst = 1 << 9;   // const[...]
inline constexpr Accepts kAcceptEvent = 1 << 10;
inline constexpr Accepts kAcceptLabel = 1 << 11;  // label (BRA) or function (CALL)
inline constexpr Accepts kAcceptString = 1 << 12; // format of PRINT
inline constexpr Accepts kAcceptDiscard = 1 << 13;
inline constexpr Accepts kAcceptValue = kAcceptReg | kAcceptImm | kAcceptParam;
inline constexpr Accepts kAcceptMem = kAcceptHbm | kAcceptL1 | kAcceptConst;

/// How an operand's type follows from the insn's.
enum class TypeRule : uint8_t {
  kFirst,  // Insn::type
  kSecond, // Insn::type2
  kU32,
  kS32,
  kPred,
  kWidened, // Insn::type, or the 64-bit type of its signedness where the modifier `wide` is set
  kAny,     // 32-bit or 64-bit register as written (PRINT values)
  kNone,    // not a value: tile, event, memory, label, string
};

struct OperandSpec {
  std::string_view name;
  Role role = Role::kSrc;
  Accepts accepts = 0;
  TypeRule type = TypeRule::kFirst;
  bool optional = false; // optional operands come last
  bool vector = false;   // stands for `x2`/`x4` consecutive registers where the modifier says so
  bool variadic = false; // the last operand, any number of times up to kMaxOperands
};

// Builders that keep rows short.
constexpr OperandSpec dst(std::string_view name, TypeRule type = TypeRule::kFirst) {
  return {.name = name, .role = Role::kDst, .accepts = kAcceptReg, .type = type};
}
constexpr OperandSpec src(std::string_view name, TypeRule type = TypeRule::kFirst) {
  return {.name = name, .role = Role::kSrc, .accepts = kAcceptValue, .type = type};
}
constexpr OperandSpec imm(std::string_view name, TypeRule type = TypeRule::kU32) {
  return {.name = name, .role = Role::kSrc, .accepts = kAcceptImm, .type = type};
}
constexpr OperandSpec pred_dst(std::string_view name) {
  return {.name = name, .role = Role::kDst, .accepts = kAcceptPred, .type = TypeRule::kPred};
}
constexpr OperandSpec pred_src(std::string_view name) {
  return {.name = name, .role = Role::kSrc, .accepts = kAcceptPred, .type = TypeRule::kPred};
}
constexpr OperandSpec mem(std::string_view name, Accepts spaces, Role role = Role::kSrc) {
  return {.name = name, .role = role, .accepts = spaces, .type = TypeRule::kNone};
}
constexpr OperandSpec event(std::string_view name) {
  return {.name = name, .role = Role::kSrc, .accepts = kAcceptEvent, .type = TypeRule::kNone};
}
constexpr OperandSpec label(std::string_view name) {
  return {.name = name, .role = Role::kSrc, .accepts = kAcceptLabel, .type = TypeRule::kNone};
}
constexpr OperandSpec optional(OperandSpec spec) {
  spec.optional = true;
  return spec;
}

/// A small constexpr list; `size() == 0` where absent.
template <class T, unsigned kCapacity> class FixedList {
public:
  constexpr FixedList() = default;
  constexpr FixedList(std::initializer_list<T> items) {
    for (const T& item : items) {
      items_[size_++] = item; // out of range in a constant expression: a compile error
    }
  }
  constexpr unsigned size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T& operator[](unsigned i) const { return items_[i]; }
  constexpr const T* begin() const { return items_.data(); }
  constexpr const T* end() const { return items_.data() + size_; }

private:
  std::array<T, kCapacity> items_{};
  unsigned size_ = 0;
};

using OperandList = FixedList<OperandSpec, 10>;

// ---------------------------------------------------------------- modifiers

struct ModValue {
  std::string_view suffix; // without the dot; empty: the value of an absent optional modifier
  std::string_view summary;
};

/// One suffix family (compare operators, cache hints, ...). Value 0 with an empty suffix makes the
/// modifier optional. Groups are compared by address: declare each once, in insns/modifiers.h.
struct ModGroup {
  std::string_view name;
  FixedList<ModValue, 12> values;
  constexpr bool is_optional() const { return values[0].suffix.empty(); }
};

using ModList = FixedList<const ModGroup*, kMaxModGroups>;

// ---------------------------------------------------------------- flags

using Flags = uint32_t;
inline constexpr Flags kReadsMem = 1 << 0;
inline constexpr Flags kWritesMem = 1 << 1;
inline constexpr Flags kAtomic = 1 << 2;
inline constexpr Flags kAsync = 1 << 3;        // starts a copy that completes later
inline constexpr Flags kBranch = 1 << 4;       // may jump to its label; unguarded: always
inline constexpr Flags kCall = 1 << 5;         // enters the function that its label names
inline constexpr Flags kReturn = 1 << 6;       // leaves the function
inline constexpr Flags kEndsLane = 1 << 7;     // no insn of the lane follows (EXIT, TRAP)
inline constexpr Flags kWarpBarrier = 1 << 8;  // joins the lanes of the warp
inline constexpr Flags kBlockBarrier = 1 << 9; // joins the warps of the block
inline constexpr Flags kFence = 1 << 10;
inline constexpr Flags kWaits = 1 << 11;     // may hold the warp until copies complete
inline constexpr Flags kCrossLane = 1 << 12; // reads registers of other lanes of the warp
inline constexpr Flags kAllocates = 1 << 13; // scratchpad allocation
inline constexpr Flags kFrees = 1 << 14;
inline constexpr Flags kPrints = 1 << 15;
inline constexpr Flags kTraps = 1 << 16;
inline constexpr Flags kTypesFirst = 1 << 17;   // printed mnemonic.types.mods (CVT, MMA)
inline constexpr Flags kSelects = 1 << 19;      // reads only the source that its predicate picks
inline constexpr Flags kDivides = 1 << 20;      // the last source is a divisor
inline constexpr Flags kShuffles = 1 << 21;     // each lane reads one other lane (with kCrossLane)
inline constexpr Flags kCacheControl = 1 << 18; // PREFETCH, INVAL: no data moves to the lane

// ---------------------------------------------------------------- the row

/// Executes one insn for all lanes of the context.
using ExecFn = Outcome (*)(ExecContext&, const Insn&);

struct LinearSources;
struct LinearValue;
struct AffineSources;
struct AffineValue;
/// What the insn makes of sources that are linear in the lane number of a span (isa/linear.h), and
/// of those that are affine in a lane's place in the grid (isa/affine.h). Null: nothing such.
struct LinearFns {
  bool (*of_span)(SpanLanes& span,
                  const Insn& insn,
                  const LinearSources& sources,
                  LinearValue& result) = nullptr;
  bool (*of_grid)(SpanLanes& span,
                  const Insn& insn,
                  const AffineSources& sources,
                  AffineValue& result) = nullptr;
};

/// Constraints that columns cannot say (ATOM.cas needs two sources, ...). Called after operands
/// match a form. Empty if fine, else a message that says what is wrong and what is expected.
using CheckFn = std::string_view (*)(const Insn&);

struct InsnDesc {
  std::string_view mnemonic; // lower case
  uint16_t opcode = 0;       // unique, below 512; a number, never an enum
  OperandList operands{};    // form 0
  OperandList operands2{};   // form 1 where there is a second one, else empty
  TypeSet types{};           // allowed first suffix; empty: no type suffix
  TypeSet types2{};          // allowed second suffix; empty: none
  ModList mods{};
  Scope scope = Scope::kLane;
  Unit unit = Unit::kV;
  Flags flags = 0;
  std::string_view latency; // key in the machine profile's latency table
  CheckFn check = nullptr;
  ExecFn exec = nullptr;
  LinearFns linear{};
  std::string_view npu;     // NPU backend's spelling (runtime/npu/lowering.h); empty: no lowering
  std::string_view summary; // one sentence
  std::string_view formula; // for the reference manual
  std::string_view details; // longer rules, Markdown; may be empty
  std::string_view example; // assembles as it stands inside a kernel with parameters a, n

  constexpr const OperandList& form(unsigned index) const {
    return index == 0 ? operands : operands2;
  }
  constexpr unsigned form_count() const { return operands2.empty() ? 1 : 2; }
  constexpr bool has(Flags flag) const { return (flags & flag) != 0; }
};

/// The spec of operand `i` of this insn (a variadic last spec repeats).
const OperandSpec& spec_of(const Insn& insn, unsigned i);

/// The value type of operand `i`; kNone where it is no value. For TypeRule::kAny it is b32 or b64
/// by the register written.
Type operand_type(const Insn& insn, unsigned i);

/// True if modifier `group` of the insn's row has the value with that suffix.
bool has_mod(const Insn& insn, const ModGroup& group, std::string_view suffix);

/// Registers that a vector operand stands for: 1, 2 or 4.
unsigned vector_count(const Insn& insn);

/// Index into Object::code that a branch or call names; kNoTarget for other insns.
uint32_t target_pc(const Insn& insn);
inline constexpr uint32_t kNoTarget = 0xffffffff;

/// Complete semantic validation of a decoded insn against its row: types, modifiers, operand count
/// and kinds, register ranges, the row's own check. Empty if valid, else what is wrong. The object
/// reader refuses an insn that fails, so the simulator may rely on it.
std::string_view validate(const Insn& insn);

} // namespace pto::isa
