// SPDX-License-Identifier: Apache-2.0
// "cmp.ge.u32" -> row, types and modifiers.
#pragma once

#include "assembler/const_expr.h"
#include "isa/diag.h"
#include "isa/insn_desc.h"

#include <array>
#include <functional>
#include <string_view>
#include <unordered_map>

namespace pto::as {

struct Mnemonic {
  const isa::InsnDesc* desc = nullptr; // null: not understood, and reported
  isa::Type type = isa::Type::kNone;
  isa::Type type2 = isa::Type::kNone;
  std::array<uint8_t, isa::kMaxModGroups> mods{};
};

/// Reads mnemonics with their suffixes (in any order and case); remembers each spelling, of which a
/// program has few.
class MnemonicReader {
public:
  explicit MnemonicReader(isa::Diagnostics& diags) : diags_(diags) {}
  /// `is_macro` tells whether a name is a macro, to explain a call that cannot be one.
  [[nodiscard]] const Mnemonic& read(const Token& token,
                                     const TokenCursor& cursor,
                                     const std::function<bool(std::string_view)>& is_macro);

private:
  Mnemonic parse(const Token& token,
                 const TokenCursor& cursor,
                 const std::function<bool(std::string_view)>& is_macro);
  bool parse_suffix(Mnemonic& result,
                    std::string_view suffix,
                    isa::SourceRange range,
                    std::array<bool, isa::kMaxModGroups>& seen);
  bool check_complete(const Mnemonic& result,
                      isa::SourceRange range,
                      const std::array<bool, isa::kMaxModGroups>& seen);

  isa::Diagnostics& diags_;
  std::unordered_map<std::string_view, Mnemonic> known_; // keys are views into sources
  Mnemonic failed_;
};

/// ".u32 .s32" / ".eq .ne": for messages.
[[nodiscard]] std::string list_types(isa::TypeSet types);
[[nodiscard]] std::string list_mods(const isa::ModGroup& group);

} // namespace pto::as
