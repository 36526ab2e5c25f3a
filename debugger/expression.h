// SPDX-License-Identifier: Apache-2.0
// Expressions of the debugger: values of registers, memory and parameters in C's operators.
//
//   $r3 $d1 $p0 $t2 %tid.x        registers of the focused lane, special registers
//   $pc $lane $warp $block $core $cycle $tid
//   $ $$ $1                       values that were printed before
//   n a buf                       parameters, .shared, .tile and .const symbols
//   a[5] buf[i] t[2][3] *a        elements; &a[5] addresses
//   hbm:ADDRESS l1:ADDRESS const:ADDRESS, l1[ADDRESS], @l1(ADDRESS)
//   a[0]@8 $r0@* $r0@0-7 $r0@5    so many elements; lanes of the block
//   (u32)$r1 ((f16*)a)[3]         the same bits, or the same address, as another type
//
// Addresses count bytes, as in PTO; an index counts elements. A pointer without a type points to
// f32. A register has the type of the insn that wrote it last in program order before the pc.
// Integers are computed in 64 bits, floats in double. An assignment is not an expression.
#pragma once

#include "isa/insn.h"
#include "isa/types.h"
#include "simulator/program.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pto::sim {
class BlockRun;
}

namespace pto::dbg {

class Session;

enum class RegisterFile : uint8_t { kReg32, kReg64, kPred, kTile };
struct RegisterRef {
  RegisterFile file = RegisterFile::kReg32;
  uint32_t index = 0;
  constexpr bool operator==(const RegisterRef&) const = default;
};
/// "r3"
std::string to_string(RegisterRef reg);
/// From "r3", "d1", "p0", "t2"; nothing for anything else, numbers out of range included.
std::optional<RegisterRef> find_register(std::string_view name);
/// False, with a sentence in `error`, for r and d registers that no insn of the program names.
[[nodiscard]] bool has_register(const sim::Program& program, RegisterRef reg, std::string& error);
/// Raw bits in one lane, counted in the block; a predicate is 0 or 1, a tile its byte offset.
[[nodiscard]] uint64_t register_bits(const sim::BlockRun& block, RegisterRef reg, uint32_t lane);
/// What a table of registers shows: r and d as far as the kernel uses them, then every p.
[[nodiscard]] std::vector<RegisterRef> shown_registers(const sim::Program& program);

/// A number: bits of a type, or (is_real) the double that float arithmetic gave.
struct Value {
  isa::Type type = isa::Type::kS64;
  bool is_real = false;
  uint64_t bits = 0;
  double real = 0;

  static Value integer(int64_t value) {
    return {isa::Type::kS64, false, static_cast<uint64_t>(value), 0};
  }
  static Value of_real(double value) { return {isa::Type::kF32, true, 0, value}; }
  /// From memory: little endian, at most 8 bytes.
  static Value of_bytes(isa::Type type, std::span<const uint8_t> bytes);
  [[nodiscard]] bool is_float() const { return is_real || isa::is_float(type); }
  [[nodiscard]] double as_real() const;
  /// Sign-extended for signed types; a float is cut toward zero, saturating.
  [[nodiscard]] int64_t as_integer() const;
  [[nodiscard]] bool is_true() const;
};
/// The bits that a place of the type takes for a value; nothing, with a sentence in `error`, if it
/// cannot hold it: a fraction in an integer, a number out of range. Integers may be written with or
/// without sign; a float in 32 bits without a type of their own is f32.
[[nodiscard]] std::optional<uint64_t>
bits_for(const Value& value, isa::Type type, std::string& error);
/// Shortest text that reads back; floats that are whole numbers as "2".
std::string to_string(const Value& value);

/// Where a value lives, for assignments, `x` and watchpoints.
struct Place {
  enum class Kind : uint8_t { kNone, kRegister, kMemory };
  Kind kind = Kind::kNone;
  isa::Type type = isa::Type::kNone;
  RegisterRef reg{};
  uint32_t first_lane = 0; // of the block
  isa::Space space = isa::Space::kHbm;
  uint64_t address = 0;
};

/// What an expression comes to.
struct Evaluated {
  Value value;               // the only one, or the first
  std::vector<Value> array;  // of an array; empty for a single value
  bool is_array = false;     // an array may have no element
  bool is_lanes = false;     // the elements belong to lanes first_lane..
  bool is_truncated = false; // more than kMaxElements
  uint32_t first_lane = 0;
  Place place;
  bool is_pointer = false;
  isa::Space space = isa::Space::kHbm;  // that it points into
  isa::Type pointee = isa::Type::kNone; // kNone: f32 by default
  uint32_t rows = 0;                    // of a symbol not fully indexed
  uint32_t cols = 0;
  static constexpr size_t kMaxElements = 65536;
};

/// Where an expression is evaluated.
struct EvalContext {
  const Session* session = nullptr;     // memory and names
  const sim::BlockRun* block = nullptr; // null: registers cannot be read
  uint32_t warp = 0;
  uint32_t lane = 0; // within the warp
  std::span<const Evaluated> history;
};

class Expression {
public:
  /// Nothing, with a sentence and the column in `error`, if the text is no expression or names
  /// nothing that the program has.
  static std::shared_ptr<const Expression>
  parse(std::string_view text, const sim::Program& program, std::string& error);
  ~Expression();

  /// Nothing, with a sentence in `error`: no block, an address outside memory, division by zero.
  [[nodiscard]] std::optional<Evaluated> evaluate(const EvalContext& context,
                                                  std::string& error) const;

private:
  friend class ExpressionParser;
  struct Tree;
  Expression();
  std::unique_ptr<Tree> tree_;
};

/// Type of what a register holds at `pc`: of the nearest insn before it that writes it, else of the
/// first one that does, else of any in the program; b32, b64 where none says.
isa::Type register_type(const sim::Program& program, RegisterRef reg, uint32_t pc);

} // namespace pto::dbg
