// SPDX-License-Identifier: Apache-2.0
// The instruction table as text: the reference manual (docs/isa.md), the listing and the page of
// one insn that `ptoas --explain` and the debugger's `help` show, and JSON for other tools.
#pragma once

#include "isa/insn_desc.h"

#include <string>
#include <string_view>

namespace pto::isa {

/// docs/isa.md, with a line end.
[[nodiscard]] std::string manual_markdown();

/// One page for a terminal, with a line end.
[[nodiscard]] std::string explain_insn(const InsnDesc& desc);

/// One line an insn: syntax and summary.
[[nodiscard]] std::string list_insns();

/// The columns of every row; indented, without a line end.
[[nodiscard]] std::string list_insns_json();
/// Those of one.
[[nodiscard]] std::string explain_insn_json(const InsnDesc& desc);

/// "d, a, b[, q]" for one of the row's operand lists.
[[nodiscard]] std::string operand_signature(const OperandList& form);

/// "cmp.OP[.COMBINE].TYPE d, a, b": the first form with its suffix families by name.
[[nodiscard]] std::string insn_syntax(const InsnDesc& desc, unsigned form);

/// What may stand at an operand's place, for readers: "register, immediate, parameter".
[[nodiscard]] std::string accepted_kinds(const OperandSpec& spec);

namespace detail {
/// The hand-written part of the manual, before the instructions.
[[nodiscard]] std::string_view manual_introduction();
} // namespace detail

} // namespace pto::isa
