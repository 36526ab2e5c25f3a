// SPDX-License-Identifier: Apache-2.0
// Enumerates what the instruction table allows: every choice of types and modifiers of a row, and
// for one insn everything that may stand at an operand's place.
#pragma once

#include "isa/insn_desc.h"
#include "isa/object.h"

#include <string>
#include <vector>

namespace pto::test {

/// Parameters, symbols, strings and a function that the operands of operand_choices refer to: a
/// function `helper` of one insn at pc 0, then a kernel `all` at pc 1, its code still empty.
isa::Object object_of_choices();
/// The kernel of object_of_choices holding `code`, which makes it complete.
isa::Object object_with(std::vector<isa::Insn> code);

/// The row with each choice of types and modifiers that some operands make valid; operands unset.
std::vector<isa::Insn> shapes_of(const isa::InsnDesc& row);

/// Operands that may stand at place `i` of the insn as far as its row says, each kind at least once
/// with its extremes; the row's own check may still refuse some.
std::vector<isa::Operand> operand_choices(const isa::Insn& insn, unsigned i);

/// Every valid insn of that shape that takes the first choice everywhere but in one place, in every
/// form and with every number of operands.
std::vector<isa::Insn> insns_of(const isa::Insn& shape);

/// The shape with registers (predicates, where the type says so) as operands: the destination in
/// number `dst_index`, source i in number i. As many operands as the shape allows.
isa::Insn with_registers(const isa::Insn& shape, unsigned dst_index);

/// "cmp.ge.and.u32", for messages.
std::string name_of(const isa::Insn& shape);

} // namespace pto::test
