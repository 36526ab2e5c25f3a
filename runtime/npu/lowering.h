// SPDX-License-Identifier: Apache-2.0
// One insn as C++ text: expands the `npu` column of its row.
//
// The column is text with placeholders:
//   {name}      an operand by the name in its spec (a vector operand: its registers, separated by
//               commas), a modifier by the name of its group (its suffix), `type` or `type2`
//   {name?x}    the operand, or where it is absent the placeholder {x}
//   {name#}     the bare number of a tile or event
//   {name.bytes} the size in bytes of the tile that the operand names
//   [ ... ]     left out where a placeholder inside is absent (an optional operand, `_`, a modifier
//               without a suffix)
//   a|b         the first alternative all of whose placeholders are present
// Functions it names live in pto_simt.h, pto_arith.h and pto_board.h; `l1`, `board` and `constants`
// are in scope.
#pragma once

#include "isa/object.h"

#include <optional>
#include <string>

namespace pto::rt {

/// How the text around an insn names things.
struct TextContext {
  const isa::Object* object = nullptr;
  const isa::Function* function = nullptr; // whose parameters are in scope
  bool is_hybrid = false;                  // blocks are numbered by one number
  std::string register_prefix;             // "" or "lane."
};

/// The statement that an insn becomes, without its guard; nullopt where it has no lowering, with
/// the reason in `error`. Not for branches, calls, RET and EXIT, which are control flow.
[[nodiscard]] std::optional<std::string>
lower_insn(const isa::Insn& insn, const TextContext& context, std::string& error);

/// True where the text names what only the scalar unit knows: the file has to be hybrid.
[[nodiscard]] bool needs_scalar_unit(const isa::Insn& insn);

/// A predicate as a condition: `p0`, `!p3`.
[[nodiscard]] std::string predicate_text(const TextContext& context, unsigned index, bool negated);

/// A name that C++ takes: itself, or with an underscore behind where it is a keyword or one of
/// ours.
[[nodiscard]] std::string cpp_name(std::string_view name);

/// The C++ type of a parameter, with `PTO_GM` for pointers: `PTO_GM float*`, `uint32_t`.
[[nodiscard]] std::string param_type(const isa::Param& param);

} // namespace pto::rt
