// SPDX-License-Identifier: Apache-2.0
// Insn -> text, generic over the row. The text assembles to the same Insn.
#pragma once

#include "isa/object.h"

#include <functional>
#include <string>

namespace pto::isa {

struct PrintOptions {
  bool upper_case_mnemonic = false; // traces
  /// Text of a branch target; default: the label at that pc, or `L<pc>`.
  std::function<std::string(uint32_t pc)> label_name;
};

/// One line, without indentation or newline: `@!p0 fma.f32 r3, r1, 1.0, r2`. `function` gives
/// parameter names, `object` symbols and strings.
std::string print_insn(const Insn& insn,
                       const Object& object,
                       const Function& function,
                       const PrintOptions& options = {});

/// Mnemonic with suffixes alone: `cmp.ge.u32`.
std::string print_mnemonic(const Insn& insn, bool upper_case = false);

/// One operand as text.
std::string print_operand(const Insn& insn,
                          unsigned index,
                          const Object& object,
                          const Function& function,
                          const PrintOptions& options = {});

/// A literal of that type in assembler syntax, shortest form that reads back to the same bits.
std::string print_literal(uint64_t bits, Type type);

} // namespace pto::isa
