// SPDX-License-Identifier: Apache-2.0
// Parts that operands.cc and address.cc share; not for others.
#pragma once

#include "assembler/operands.h"

#include <fmt/format.h>

#include <optional>
#include <string>

namespace pto::as {

struct OperandReader::Place {
  const isa::Insn* insn = nullptr;
  unsigned index = 0;
  const isa::OperandSpec* spec = nullptr;
  isa::Type type = isa::Type::kNone;

  [[nodiscard]] bool accepts(isa::Accepts kinds) const { return (spec->accepts & kinds) != 0; }
  /// "operand 3 ('b') of add"
  [[nodiscard]] std::string title() const {
    return fmt::format("operand {} ('{}') of {}", index + 1, spec->name, insn->desc->mnemonic);
  }
};

/// Bytes of a string token, its escapes replaced; reports a bad escape at its place.
[[nodiscard]] std::optional<std::string>
decode_string(const Token& token, const TokenCursor& cursor, isa::Diagnostics& diags);

} // namespace pto::as
