// SPDX-License-Identifier: Apache-2.0
// Statements: labels, directives and insns. The parser goes on after an error with the next line.
#pragma once

#include "assembler/mnemonic.h"
#include "assembler/operands.h"
#include "assembler/preprocess.h"
#include "assembler/program.h"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace pto::as {

class Parser {
public:
  Parser(const isa::SourceFile& file,
         const PreprocessOptions& options,
         Program& program,
         isa::Diagnostics& diags);

  /// Reads the whole text. Branches are resolved when their function ends, calls at the end.
  void parse();

private:
  using Handler = void (Parser::*)(TokenCursor&);
  struct Directive {
    std::string_view name;
    Handler handler;
    std::string_view syntax;
  };
  struct LabelEntry {
    uint32_t pc = 0;
    isa::SourceRange range;
  };
  enum class State : uint8_t { kOutside, kInside, kLost /* after code outside, reported once */ };

  void parse_line(const Line& line);
  void parse_label(TokenCursor& cursor);
  void parse_directive(TokenCursor& cursor);
  void parse_insn(TokenCursor& cursor, const Line& line);
  bool parse_guard(TokenCursor& cursor, isa::Insn& insn);
  bool parse_operands(TokenCursor& cursor, isa::Insn& insn);
  bool choose_form(const TokenCursor& cursor, isa::Insn& insn);
  bool check_insn(const isa::Insn& insn, isa::SourceRange range);
  bool check_format(const isa::Insn& insn);
  bool check_const_address(const isa::Insn& insn);
  isa::SourceLoc locate(const Line& line, uint32_t offset);
  uint32_t file_index(const isa::SourceFile& file);

  void do_pto(TokenCursor& cursor);
  void do_machine(TokenCursor& cursor);
  void do_kernel(TokenCursor& cursor);
  void do_func(TokenCursor& cursor);
  void do_end(TokenCursor& cursor);
  void do_tile(TokenCursor& cursor);
  void do_shared(TokenCursor& cursor);
  void do_const(TokenCursor& cursor);
  void do_align(TokenCursor& cursor);
  void do_reg(TokenCursor& cursor);
  void do_loc(TokenCursor& cursor);
  void do_maxlanes(TokenCursor& cursor);
  static const Directive* find_directive(std::string_view name);

  void open_function(TokenCursor& cursor, bool is_kernel);
  bool parse_params(TokenCursor& cursor, isa::Function& function);
  bool parse_param(TokenCursor& cursor, isa::Function& function);
  void close_function(isa::SourceRange end);
  void resolve_branches();
  void resolve_calls();
  bool finish_symbol(TokenCursor& cursor, const Token& name, isa::Symbol symbol);
  std::optional<isa::Type> parse_element_type(TokenCursor& cursor);
  std::optional<uint32_t> parse_extent(TokenCursor& cursor, std::string_view what);
  std::optional<uint32_t> parse_count(TokenCursor& cursor, std::string_view what, uint32_t limit);

  const Token* expect_name(TokenCursor& cursor, std::string_view what);
  bool expect(TokenCursor& cursor, Punct punct, std::string_view context);
  bool expect_end(TokenCursor& cursor);
  bool skip_line_ends(TokenCursor& cursor); // within brackets that may span lines
  bool is_free(const Token& name, const TokenCursor& cursor);
  [[nodiscard]] ConstContext constants();
  [[nodiscard]] isa::Function& function() { return program_.object.functions.back(); }

  Program& program_;
  isa::Diagnostics& diags_;
  const isa::SourceFile& main_;
  ConstNames constants_;
  Preprocessor preprocessor_;
  Scope scope_;
  MnemonicReader mnemonics_;
  OperandReader operands_;
  std::function<bool(std::string_view)> is_macro_;

  State state_ = State::kOutside;
  std::array<isa::SourceRange, isa::kMaxOperands> operand_ranges_{}; // of the insn being read
  std::unordered_map<std::string_view, LabelEntry> labels_;
  std::unordered_map<std::string_view, uint32_t> function_names_;
  std::unordered_map<std::string_view, isa::SourceRange> symbol_places_;
  std::unordered_map<const isa::SourceFile*, uint32_t> file_indices_;
  const isa::SourceFile* last_file_ = nullptr;
  uint32_t last_file_index_ = 0;
  std::optional<isa::SourceLoc> loc_; // of .loc, until the function ends
  uint32_t pending_align_ = 0;
  isa::SourceRange directive_range_; // of the directive being read
};

} // namespace pto::as
