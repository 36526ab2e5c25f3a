// SPDX-License-Identifier: Apache-2.0
// One operand of an insn, checked against its OperandSpec and type. Generic: what may stand where
// is a column of the row, nothing here knows an instruction.
#pragma once

#include "assembler/const_expr.h"
#include "assembler/program.h"
#include "assembler/registers.h"
#include "isa/insn_desc.h"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace pto::as {

/// Names that operands may use: of the file, and on top those of the open kernel or function.
class Scope {
public:
  enum class Kind : uint8_t { kParam, kSymbol, kAlias };
  struct Entry {
    Kind kind = Kind::kParam;
    uint32_t index = 0; // of the parameter or symbol
    RegisterName reg;   // of an alias
    isa::SourceRange range;
  };

  [[nodiscard]] const Entry* find(std::string_view name) const;
  /// Into the open function's names, or the file's while none is open. False if taken there.
  bool add(std::string_view name, const Entry& entry);
  bool add_to_file(std::string_view name, const Entry& entry) {
    return file_.emplace(name, entry).second;
  }
  void open_function() { is_open_ = true; }
  void close_function() {
    is_open_ = false;
    local_.clear();
  }
  [[nodiscard]] bool is_open() const { return is_open_; }
  [[nodiscard]] std::vector<std::string_view> names() const;

private:
  using Names = std::unordered_map<std::string_view, Entry>;
  Names file_;
  Names local_;
  bool is_open_ = false;
};

class OperandReader {
public:
  OperandReader(Program& program,
                const Scope& scope,
                const ConstNames& constants,
                isa::Diagnostics& diags);

  /// Starts a function whose parameters operands may name.
  void open_function(const std::vector<isa::Param>& params) { params_ = &params; }

  /// Reads operand `index` of `insn` (whose desc, types and form are set) at the cursor.
  [[nodiscard]] std::optional<isa::Operand>
  read(TokenCursor& cursor, const isa::Insn& insn, unsigned index);

  /// A literal of that type from a constant's value; reports at `range` if it does not fit. `role`
  /// names what the constant is for, and is asked only then.
  [[nodiscard]] std::optional<uint64_t> to_bits(const ConstValue& value,
                                                isa::Type type,
                                                isa::SourceRange range,
                                                const std::function<std::string()>& role);

  /// A register or an alias of one, at the cursor; nullopt without a report if it is neither.
  [[nodiscard]] std::optional<RegisterName> peek_register(const TokenCursor& cursor) const;

private:
  struct Place; // the operand being read: its spec, type and how messages call it

  std::optional<isa::Operand> read_word(TokenCursor& cursor, const Place& place);
  std::optional<isa::Operand>
  read_register(TokenCursor& cursor, const RegisterName& reg, const Place& place);
  std::optional<isa::Operand> read_param(TokenCursor& cursor, uint32_t index, const Place& place);
  std::optional<isa::Operand> read_symbol(TokenCursor& cursor, uint32_t index, const Place& place);
  std::optional<isa::Operand> read_special(TokenCursor& cursor, const Place& place);
  std::optional<isa::Operand> read_constant(TokenCursor& cursor, const Place& place);
  std::optional<isa::Operand> read_negated(TokenCursor& cursor, const Place& place);
  std::optional<isa::Operand> read_string(TokenCursor& cursor, const Place& place);
  std::optional<isa::Operand> read_label(TokenCursor& cursor, const Place& place);
  std::optional<isa::Operand>
  read_memory(TokenCursor& cursor, isa::Space space, const Place& place);

  struct Address;
  bool read_term(TokenCursor& cursor, Address& address, bool is_negative, const Token* sign);
  bool read_scale(TokenCursor& cursor, unsigned& scale_log2);
  bool add_register(const RegisterName& reg,
                    isa::SourceRange range,
                    bool has_scale,
                    unsigned scale_log2,
                    Address& address);
  bool
  add_name(const Scope::Entry& entry, const Token& token, isa::SourceRange range, Address& address);
  std::optional<isa::Operand> finish_address(Address& address, isa::SourceRange range);

  isa::Diagnostic& refusal(TokenCursor& cursor, const Place& place, const std::string& found);
  std::optional<isa::Operand>
  refuse(TokenCursor& cursor, const Place& place, const std::string& found);
  std::optional<isa::Operand> unknown_name(TokenCursor& cursor, const Place& place);
  [[nodiscard]] std::string describe_name(std::string_view name) const;
  [[nodiscard]] ConstContext constant_context();
  uint32_t intern_string(std::string text);

  Program& program_;
  const Scope& scope_;
  const ConstNames& constants_;
  isa::Diagnostics& diags_;
  const std::vector<isa::Param>* params_ = nullptr;
  std::unordered_map<std::string, uint32_t> strings_;
};

/// "a 32-bit register (r0..r126), an integer or a scalar parameter": what the operand may be.
[[nodiscard]] std::string describe_accepted(const isa::OperandSpec& spec, isa::Type type);

} // namespace pto::as
