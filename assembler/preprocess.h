// SPDX-License-Identifier: Apache-2.0
// Lines of the program after .include, .macro, .if and .equ.
//
// Input is a stack of frames: files and macro expansions. A macro call substitutes its arguments in
// the body's text and reads the result as a frame of its own, so that messages can show it as it
// was read and the call that it came from. Work is bounded (frames, bytes read and expanded), so a
// macro that doubles itself ends with a message.
#pragma once

#include "assembler/const_expr.h"
#include "assembler/lexer.h"
#include "isa/diag.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace pto::as {

/// Text of a file, or nullopt and a sentence in `error`.
using FileReader =
    std::function<std::optional<std::string>(const std::string& path, std::string& error)>;
/// Reads from disk.
[[nodiscard]] std::optional<std::string> read_text_file(const std::string& path,
                                                        std::string& error);

struct PreprocessOptions {
  std::vector<std::string> include_dirs; // searched after the including file's own folder
  std::vector<std::string> defines;      // NAME or NAME=EXPRESSION
  FileReader read_file = read_text_file;
  size_t max_depth = 64;                        // nested includes and macro calls
  size_t max_bytes = size_t{256} * 1024 * 1024; // read and expanded in all; 128 more a macro call
};

/// One line with something on it. The tokens live until the next line is read.
struct Line {
  const isa::SourceFile* file = nullptr;
  const Token* tokens = nullptr; // kEnd last
  uint32_t line = 0;             // position of its first byte, for the line table: of the outermost
  uint32_t line_start = 0;       // macro call where the line came from one
  const isa::SourceFile* site_file = nullptr;
};

class Preprocessor {
public:
  Preprocessor(const isa::SourceFile& file,
               const PreprocessOptions& options,
               ConstNames& names,
               isa::Diagnostics& diags);

  /// The next line that is neither a directive of this class nor skipped; false at the end.
  bool next(Line& line);

  [[nodiscard]] bool is_macro(std::string_view name) const { return macros_.count(name) != 0; }
  [[nodiscard]] std::vector<std::string_view> macro_names() const;
  /// Ends it: whoever reads has had enough.
  void give_up() {
    frames_.clear();
    conditionals_.clear();
    gave_up_ = true;
  }
  /// A limit was exceeded and reading ended in the middle of the text.
  [[nodiscard]] bool gave_up() const { return gave_up_; }

private:
  struct Frame {
    Lexer lexer;
    size_t conditional_depth = 0;
    // Where the frame's outermost macro call stands; file null outside of macros.
    const isa::SourceFile* site_file = nullptr;
    uint32_t site_line = 0;
    uint32_t site_start = 0;
    std::string path; // of a file; empty for a macro
  };
  struct Conditional {
    isa::SourceRange opened;
    bool is_active = false; // this part is read
    bool was_taken = false; // some part was
    bool has_else = false;
    bool parent_active = true;
  };
  struct MacroParam {
    std::string_view name;
    std::optional<std::string_view> fallback;
  };
  struct Macro {
    std::vector<MacroParam> params;
    std::string_view body;
    uint32_t first_line = 0;
    const isa::SourceFile* file = nullptr;
    isa::SourceRange range;
  };

  using Handler = void (Preprocessor::*)(TokenCursor&);
  struct Directive {
    std::string_view name;
    Handler handler;
    bool is_conditional;
  };
  static const Directive* find_directive(std::string_view name);

  [[nodiscard]] bool is_active() const {
    return conditionals_.empty() || conditionals_.back().is_active;
  }
  [[nodiscard]] ConstContext constants() { return {names_, diags_}; }
  void define(const std::string& text);
  void pop_frame();
  bool expand_macro(TokenCursor cursor, const Macro& macro);
  std::optional<std::vector<std::string_view>> split_arguments(TokenCursor& cursor,
                                                               const Token& call,
                                                               const Macro& macro,
                                                               std::string_view name);
  std::optional<std::string> substitute(const Macro& macro,
                                        const std::vector<std::string_view>& arguments);
  bool spend(size_t bytes, isa::SourceRange range);
  bool may_enter(isa::SourceRange range, std::string_view what);
  bool expect_end(TokenCursor& cursor);
  const Token* expect_name(TokenCursor& cursor, std::string_view what);

  void do_include(TokenCursor& cursor);
  void do_macro(TokenCursor& cursor);
  void do_endm(TokenCursor& cursor);
  void do_equ(TokenCursor& cursor);
  void do_if(TokenCursor& cursor);
  void do_ifdef(TokenCursor& cursor);
  void do_ifndef(TokenCursor& cursor);
  void do_elseif(TokenCursor& cursor);
  void do_else(TokenCursor& cursor);
  void do_endif(TokenCursor& cursor);
  void take_if(bool condition);
  void open_if_defined(TokenCursor& cursor, bool wanted);
  Conditional* current_conditional(TokenCursor& cursor);

  const PreprocessOptions& options_;
  ConstNames& names_;
  isa::Diagnostics& diags_;
  std::vector<Frame> frames_;
  std::vector<Conditional> conditionals_;
  std::unordered_map<std::string_view, Macro> macros_;
  std::vector<Token> tokens_;
  std::vector<Token> body_tokens_; // of lines within a macro definition
  std::vector<Token> call_tokens_; // of a call that a label stands before
  size_t bytes_ = 0;
  uint64_t expansions_ = 0;
  bool gave_up_ = false;
};

} // namespace pto::as
