// SPDX-License-Identifier: Apache-2.0
// One decoded insn and its operands: what the assembler produces, the object file stores and the
// simulator runs. Plain values; the row (`desc`) says what they mean.
#pragma once

#include "isa/special.h"
#include "isa/types.h"

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

namespace pto::isa {

struct InsnDesc;

/// Sizes of the register files of a lane, warp and block (docs/isa.md, Machine state).
inline constexpr unsigned kReg32Count = 127;
inline constexpr unsigned kReg64Count = 63;
inline constexpr unsigned kPredCount = 8;
inline constexpr unsigned kTileCount = 16;
inline constexpr unsigned kEventCount = 8;
inline constexpr unsigned kBarrierCount = 16;
inline constexpr unsigned kWarpLanes = 32;

/// Operands of one insn, at most (PRINT: a format and 11 values).
inline constexpr unsigned kMaxOperands = 12;
/// Modifier groups of one row, at most.
inline constexpr unsigned kMaxModGroups = 3;

enum class Space : uint8_t { kHbm, kL1, kConst };
constexpr std::string_view name(Space space) {
  return space == Space::kHbm ? "hbm" : space == Space::kL1 ? "l1" : "const";
}

enum class BaseKind : uint8_t {
  kAbsolute, // no base: the offset alone
  kParam,    // index: pointer parameter
  kReg,      // index: d register for hbm, r register for l1 and const
  kTile,     // index: tile register
  kSymbol,   // index: Object::symbols
};

inline constexpr uint8_t kNoIndexReg = 0xff;

/// `space[base + index*scale + offset]`; offset in bytes. Eight bytes, kept in Operand::bits.
struct MemRef {
  int32_t offset = 0;
  uint16_t base_index = 0;
  uint8_t index_reg = kNoIndexReg; // an r register, taken as signed
  Space space : 2 = Space::kHbm;
  BaseKind base : 3 = BaseKind::kAbsolute;
  uint8_t scale_log2 : 3 = 0; // 0..4
  constexpr bool operator==(const MemRef&) const = default;
};
static_assert(sizeof(MemRef) == 8);

enum class OperandKind : uint8_t {
  kNone,
  kReg32,   // index 0..126
  kReg64,   // index 0..62
  kPred,    // index 0..7, may be negated
  kTile,    // index 0..15
  kEvent,   // index 0..7
  kImm,     // bits: the value truncated to the operand's type
  kSpecial, // index: Special
  kParam,   // index: parameter of the kernel
  kSymbol,  // index: Object::symbols; the symbol's offset, or the tile that it names
  kMem,     // bits: a MemRef, see mem()
  kLabel,   // bits: pc (index into Object::code) of the target
  kString,  // index: Object::strings
  kDiscard, // `_`
};

struct Operand {
  OperandKind kind = OperandKind::kNone;
  bool negated = false;
  uint32_t index = 0;
  uint64_t bits = 0;
  constexpr bool operator==(const Operand&) const = default;

  MemRef mem() const { return std::bit_cast<MemRef>(bits); }
  static Operand memory(const MemRef& ref) {
    return {.kind = OperandKind::kMem, .bits = std::bit_cast<uint64_t>(ref)};
  }
  static constexpr Operand immediate(uint64_t bits) {
    return {.kind = OperandKind::kImm, .bits = bits};
  }
};

/// `@p0` / `@!p0`; the insn acts in lanes where the predicate (negated) holds.
struct Guard {
  bool present = false;
  bool negated = false;
  uint8_t pred = 0;
  constexpr bool operator==(const Guard&) const = default;
};

struct Insn {
  const InsnDesc* desc = nullptr; // identity of the insn; never null once built
  Type type = Type::kNone;        // first type suffix (destination type)
  Type type2 = Type::kNone;       // second type suffix (source type of CVT and MMA)
  Guard guard{};
  std::array<uint8_t, kMaxModGroups> mods{}; // value index in each of the row's groups
  uint8_t form = 0;                          // which of the row's operand lists
  uint8_t operand_count = 0;
  std::array<Operand, kMaxOperands> operands{};
  constexpr bool operator==(const Insn&) const = default;

  const Operand& operand(unsigned i) const { return operands[i]; }
  bool has_operand(unsigned i) const { return i < operand_count; }
};

} // namespace pto::isa
