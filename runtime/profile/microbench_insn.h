// SPDX-License-Identifier: Apache-2.0
// What microbenchmarks need to know of the instruction table: for each row the choices of types and
// memory space, with the registers that stand for chain, constants and results filled in by role.
// Private to runtime/profile/.
#pragma once

#include "isa/insn_desc.h"
#include "isa/machine.h"
#include "isa/object.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pto::rt::detail {

enum class RegClass : uint8_t { kNone, kR, kD, kP };

// Registers by convention.
inline constexpr unsigned kChain = 0;       // r0, d0, p0: what a chain passes on
inline constexpr unsigned kConstant = 1;    // r1, d1, p1: a harmless value
inline constexpr unsigned kMiddle = 2;      // r2, d2, p2: between the two insns of a pair
inline constexpr unsigned kMiddleCount = 4; // and r20 to r22, p5 to p7
inline constexpr unsigned kZero = 3;        // r3, d3: zero
inline constexpr unsigned kFirstStream = 4; // r4.., d4..: results that nobody reads; p2..
inline constexpr unsigned kLaneReg = 30;    // r30: the lane's number in the grid
inline constexpr unsigned kLocalReg = 29;   // r29: the lane's number in the block

/// One row with types, modifiers and memory space chosen. Operands hold constants and the chain's
/// destination; with() changes them.
struct InsnForm {
  isa::Insn insn;
  std::string key;  // full latency key
  std::string base; // its entry key: base, space and types, without other modifiers
  int dst = -1;     // operand that is the destination register
  RegClass dst_class = RegClass::kNone;
  int mem = -1; // memory operand
  bool is_load = false;
  bool is_store = false; // plain store: no destination register
  std::vector<int> sources;
  std::vector<RegClass> source_classes;

  /// Class of register through which a chain can enter: the first source's, or kR for a load (the
  /// index of its address).
  [[nodiscard]] RegClass entry_class() const;
  /// First source of that class; -1: none. A load's address counts as -2.
  [[nodiscard]] int entry_of(RegClass wanted) const;
  [[nodiscard]] bool is_self_chained() const { return entry_of(dst_class) != -1; }
};

/// Every form that lanes execute and that neither branches, waits nor copies.
[[nodiscard]] const std::vector<InsnForm>& insn_forms();
/// The form with that full latency key; null if there is none.
[[nodiscard]] const InsnForm* find_form(std::string_view key);
/// The key without modifiers beside space and types (InsnForm::base); itself if there is no form.
[[nodiscard]] std::string typed_key(const std::string& key);
/// The first row that has this latency key or a key that it refines; null: none has.
[[nodiscard]] const isa::InsnDesc* row_of(std::string_view key);
/// The unit of the rows that have this latency key or a key that refines it; kUnitCount: none has.
[[nodiscard]] unsigned unit_of(std::string_view key);

/// What closes the loop of a pair whose second result is register 4 of a class: the insn, with {}
/// for that number, and its key. It makes r0 zero whatever the value.
struct ClosingLink {
  const char* text;
  const char* key;
};
[[nodiscard]] ClosingLink closing_link(RegClass reg_class);

/// A copy with destination register `dst` and, at `entry` (see entry_of), register `source`.
[[nodiscard]] isa::Insn with(const InsnForm& form, unsigned dst, int entry, unsigned source);
/// Every source of that class reads register `source`.
[[nodiscard]] isa::Insn
with_all(const InsnForm& form, unsigned dst, RegClass source_class, unsigned source);

/// Names for printing: parameters a, o, n; symbols s (scratchpad) and c (constants).
[[nodiscard]] const isa::Object& bench_object();
[[nodiscard]] std::string text_of(const isa::Insn& insn);

/// Rows that have all of these flags, by opcode.
[[nodiscard]] std::vector<const isa::InsnDesc*> rows_with(isa::Flags flags);

} // namespace pto::rt::detail
