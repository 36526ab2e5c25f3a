// SPDX-License-Identifier: Apache-2.0
// Frames, includes, conditionals and constants. Macros are in preprocess_macro.cc.
#include "assembler/preprocess.h"

#include "assembler/registers.h"
#include "assembler/standard_input.h"
#include "isa/file_io.h"
#include "isa/suggest.h"
#include "isa/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <utility>

namespace pto::as {

namespace {

bool is_plain_name(std::string_view name) {
  return name.find('.') == std::string_view::npos;
}

std::string normal(const std::filesystem::path& path) {
  return path.lexically_normal().string();
}

constexpr uint64_t kLargestText = uint64_t{1} << 30; // of a program

std::optional<std::string> as_text(const std::optional<std::vector<std::byte>>& bytes) {
  return bytes ? std::optional<std::string>(
                     std::in_place, reinterpret_cast<const char*>(bytes->data()), bytes->size())
               : std::nullopt;
}

} // namespace

std::optional<std::string> read_text_file(const std::string& path, std::string& error) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) {
    error = fmt::format("'{}' is a folder", path);
    return std::nullopt;
  }
  return as_text(isa::read_file(path, error, kLargestText));
}

std::optional<std::string> read_standard_input(std::string& error) {
  return as_text(isa::read_standard_input(error, kLargestText));
}

Preprocessor::Preprocessor(const isa::SourceFile& file,
                           const PreprocessOptions& options,
                           ConstNames& names,
                           isa::Diagnostics& diags)
    : options_(options), names_(names), diags_(diags) {
  for (const std::string& text : options_.defines) {
    define(text);
  }
  bytes_ = file.text().size();
  frames_.push_back({.lexer = Lexer(file), .path = normal(file.name())});
}

void Preprocessor::define(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const isa::SourceFile& source = diags_.add_source(
      "<command line>",
      name + (equals == std::string::npos ? std::string("=1") : text.substr(equals)));
  Lexer lexer(source);
  lexer.next_line(tokens_);
  if (tokens_.empty() || tokens_[0].kind != TokenKind::kWord || !is_plain_name(tokens_[0].text) ||
      parse_register(tokens_[0].text) || !tokens_[1].is(Punct::kAssign)) {
    diags_
        .error({&source, 0, static_cast<uint32_t>(name.size())},
               fmt::format("-D {}: not the name of a constant", text))
        .expect("NAME or NAME=EXPRESSION, where NAME is letters, digits and _");
    return;
  }
  TokenCursor cursor(source, tokens_.data());
  const Token name_token = cursor.next();
  cursor.next();
  const std::optional<ConstValue> value = evaluate(cursor, constants());
  if (value && expect_end(cursor) &&
      !names_.add(name_token.text, *value, cursor.range(name_token))) {
    diags_.error(cursor.range(name_token), fmt::format("-D {} is given twice", name));
  }
}

std::vector<std::string_view> Preprocessor::macro_names() const {
  std::vector<std::string_view> names;
  for (const auto& entry : macros_) {
    names.push_back(entry.first);
  }
  std::sort(names.begin(), names.end());
  return names;
}

const Preprocessor::Directive* Preprocessor::find_directive(std::string_view name) {
  static constexpr Directive kDirectives[] = {
      {".if", &Preprocessor::do_if, true},
      {".ifdef", &Preprocessor::do_ifdef, true},
      {".ifndef", &Preprocessor::do_ifndef, true},
      {".elseif", &Preprocessor::do_elseif, true},
      {".else", &Preprocessor::do_else, true},
      {".endif", &Preprocessor::do_endif, true},
      {".equ", &Preprocessor::do_equ, false},
      {".include", &Preprocessor::do_include, false},
      {".macro", &Preprocessor::do_macro, false},
      {".endm", &Preprocessor::do_endm, false},
  };
  for (const Directive& directive : kDirectives) {
    if (directive.name == name) {
      return &directive;
    }
  }
  return nullptr;
}

bool Preprocessor::next(Line& line) {
  while (!frames_.empty()) {
    Frame& frame = frames_.back();
    if (!frame.lexer.next_line(tokens_)) {
      pop_frame();
      continue;
    }
    const isa::SourceFile& file = frame.lexer.file();
    const Token& first = tokens_[0];
    if (first.kind == TokenKind::kWord && first.text[0] == '.') {
      const Directive* directive = find_directive(first.text);
      if (directive != nullptr && (directive->is_conditional || is_active())) {
        TokenCursor cursor(file, tokens_.data());
        (this->*directive->handler)(cursor);
        continue;
      }
    }
    if (!is_active()) {
      continue;
    }
    line.file = &file;
    line.tokens = tokens_.data();
    const bool in_macro = frame.site_file != nullptr;
    line.site_file = in_macro ? frame.site_file : &file;
    line.line = in_macro ? frame.site_line : frame.lexer.line();
    line.line_start = in_macro ? frame.site_start : frame.lexer.line_start();
    if (macros_.empty()) {
      return true;
    }
    size_t at = 0;
    while (tokens_[at].kind == TokenKind::kWord && tokens_[at + 1].is(Punct::kColon)) {
      at += 2;
    }
    const auto macro =
        tokens_[at].kind == TokenKind::kWord ? macros_.find(tokens_[at].text) : macros_.end();
    if (macro == macros_.end()) {
      return true;
    }
    call_tokens_.assign(tokens_.begin() + static_cast<ptrdiff_t>(at), tokens_.end());
    expand_macro(TokenCursor(file, call_tokens_.data()), macro->second);
    if (at > 0) {
      // The labels are a line of their own, before the expansion's.
      const uint32_t end = tokens_[at - 1].end();
      tokens_.resize(at);
      tokens_.push_back({.kind = TokenKind::kEnd, .offset = end});
      line.tokens = tokens_.data();
      return true;
    }
  }
  return false;
}

void Preprocessor::pop_frame() {
  const size_t depth = frames_.back().conditional_depth;
  while (conditionals_.size() > depth) {
    diags_.error(conditionals_.back().opened, "this conditional is never closed")
        .expect(".endif before the end of the same file or macro");
    conditionals_.pop_back();
  }
  frames_.pop_back();
}

bool Preprocessor::expect_end(TokenCursor& cursor) {
  if (cursor.at_end()) {
    return true;
  }
  diags_.error(cursor.range(cursor.peek()), fmt::format("unexpected {}", quote(cursor.peek())))
      .expect("the end of the line");
  return false;
}

const Token* Preprocessor::expect_name(TokenCursor& cursor, std::string_view what) {
  const Token& token = cursor.peek();
  if (token.kind != TokenKind::kWord || !is_plain_name(token.text)) {
    diags_.error(cursor.range(token), fmt::format("{} expected before {}", what, quote(token)))
        .expect("a name of letters, digits, _ and $ that starts with no digit");
    return nullptr;
  }
  if (parse_register(token.text)) {
    diags_.error(cursor.range(token), fmt::format("'{}' is the name of a register", token.text))
        .expect(std::string(what));
    return nullptr;
  }
  return &cursor.next();
}

bool Preprocessor::spend(size_t bytes, isa::SourceRange range) {
  bytes_ += bytes;
  if (bytes_ <= options_.max_bytes) {
    return true;
  }
  diags_
      .error(range,
             fmt::format("the program grows past {} bytes with its includes and macros",
                         options_.max_bytes))
      .advise("look for a macro that calls itself or doubles with every level");
  frames_.clear();
  conditionals_.clear();
  gave_up_ = true;
  return false;
}

bool Preprocessor::may_enter(isa::SourceRange range, std::string_view what) {
  if (frames_.size() < options_.max_depth) {
    return true;
  }
  diags_.error(range, fmt::format("{} nested over {} levels deep", what, options_.max_depth))
      .advise("look for a macro that calls itself without an .if that ends it");
  return false;
}

// ---------------------------------------------------------------- includes

void Preprocessor::do_include(TokenCursor& cursor) {
  cursor.next();
  const Token& token = cursor.peek();
  if (token.kind != TokenKind::kString || token.text.size() <= 2) {
    diags_.error(cursor.range(token), fmt::format("file name expected before {}", quote(token)))
        .expect(".include \"file\"");
    return;
  }
  const isa::SourceRange range = cursor.range(cursor.next());
  if (!expect_end(cursor)) {
    return;
  }
  const std::filesystem::path name = token.text.substr(1, token.text.size() - 2);
  std::vector<std::string> candidates;
  if (name.is_absolute()) {
    candidates.push_back(normal(name));
  } else {
    candidates.push_back(normal(std::filesystem::path(cursor.file().name()).parent_path() / name));
    for (const std::string& dir : options_.include_dirs) {
      candidates.push_back(normal(std::filesystem::path(dir) / name));
    }
  }
  std::string tried;
  for (const std::string& path : candidates) {
    const auto same = [&](const Frame& frame) { return frame.path == path; };
    if (std::any_of(frames_.begin(), frames_.end(), same)) {
      isa::Diagnostic& error = diags_.error(range, fmt::format("circular include of '{}'", path));
      for (size_t i = frames_.size(); i-- > 1;) {
        const isa::SourceFile& file = frames_[i].lexer.file();
        if (file.origin() == isa::SourceFile::Origin::kInclude) {
          error.note(file.parent(), fmt::format("'{}' is included here", file.name()));
        }
        if (same(frames_[i])) {
          break;
        }
      }
      return;
    }
    std::string problem;
    std::optional<std::string> text = options_.read_file(path, problem);
    if (!text) {
      tried += (tried.empty() ? "" : "; ") + problem;
      continue;
    }
    if (!may_enter(range, "includes") || !spend(text->size(), range)) {
      return;
    }
    const isa::SourceFile& file = diags_.add_source(std::make_unique<isa::SourceFile>(
        path, std::move(*text), isa::SourceFile::Origin::kInclude, range));
    frames_.push_back(
        {.lexer = Lexer(file), .conditional_depth = conditionals_.size(), .path = path});
    return;
  }
  diags_.error(range, fmt::format("cannot include {}: {}", token.text, tried))
      .expect("a file in the including file's folder or one given by -I");
}

// ---------------------------------------------------------------- constants and conditionals

void Preprocessor::do_equ(TokenCursor& cursor) {
  cursor.next();
  const Token* name = expect_name(cursor, "name of a constant");
  if (name == nullptr) {
    return;
  }
  if (!cursor.accept(Punct::kComma)) {
    diags_
        .error(cursor.range(cursor.peek()),
               fmt::format("',' expected before {}", quote(cursor.peek())))
        .expect(".equ name, expression");
    return;
  }
  const Token& first = cursor.peek();
  const std::optional<ConstValue> value = evaluate(cursor, constants());
  if (!value || !expect_end(cursor)) {
    return;
  }
  if (first.kind == TokenKind::kBits16 && value->literal != nullptr) {
    diags_.error(cursor.range(first), "a 0h literal has no value without a type")
        .expect("a decimal float or 0f and eight digits");
    return;
  }
  if (!names_.add(name->text, *value, cursor.range(*name))) {
    const isa::SourceRange earlier = names_.find(name->text)->range;
    diags_.error(cursor.range(*name), fmt::format("constant '{}' is defined twice", name->text))
        .advise(fmt::format("put it between .ifndef {} and .endif to allow for -D", name->text))
        .note(earlier, "the first definition");
  }
}

void Preprocessor::take_if(bool condition) {
  conditionals_.back().is_active = conditionals_.back().parent_active && condition;
  conditionals_.back().was_taken = conditionals_.back().is_active;
}

void Preprocessor::do_if(TokenCursor& cursor) {
  const Token& directive = cursor.next();
  const bool was_active = is_active();
  conditionals_.push_back({.opened = cursor.range(directive), .parent_active = was_active});
  if (!was_active) {
    return;
  }
  const std::optional<ConstValue> value = evaluate(cursor, constants());
  // After an error neither part is read: what it would say about them could be wrong.
  conditionals_.back().was_taken = !value.has_value();
  if (value && expect_end(cursor)) {
    take_if(value->is_true());
  }
}

void Preprocessor::open_if_defined(TokenCursor& cursor, bool wanted) {
  const Token& directive = cursor.next();
  const bool was_active = is_active();
  conditionals_.push_back({.opened = cursor.range(directive), .parent_active = was_active});
  if (!was_active) {
    return;
  }
  const Token* name = expect_name(cursor, "name of a constant");
  conditionals_.back().was_taken = name == nullptr;
  if (name != nullptr && expect_end(cursor)) {
    const bool is_defined = names_.find(name->text) != nullptr || is_macro(name->text);
    take_if(is_defined == wanted);
  }
}

void Preprocessor::do_ifdef(TokenCursor& cursor) {
  open_if_defined(cursor, true);
}
void Preprocessor::do_ifndef(TokenCursor& cursor) {
  open_if_defined(cursor, false);
}

Preprocessor::Conditional* Preprocessor::current_conditional(TokenCursor& cursor) {
  const Token& directive = cursor.next();
  if (conditionals_.size() <= frames_.back().conditional_depth) {
    diags_.error(cursor.range(directive), fmt::format("{} without .if", directive.text));
    return nullptr;
  }
  Conditional& current = conditionals_.back();
  if (current.has_else && directive.text != ".endif") {
    diags_.error(cursor.range(directive), fmt::format("{} after .else", directive.text))
        .note(current.opened, "the conditional");
    return nullptr;
  }
  return &current;
}

void Preprocessor::do_elseif(TokenCursor& cursor) {
  Conditional* current = current_conditional(cursor);
  if (current == nullptr) {
    return;
  }
  current->is_active = false;
  if (current->was_taken || !current->parent_active) {
    return;
  }
  const std::optional<ConstValue> value = evaluate(cursor, constants());
  current->was_taken = !value || value->is_true();
  current->is_active = value && value->is_true() && expect_end(cursor);
}

void Preprocessor::do_else(TokenCursor& cursor) {
  Conditional* current = current_conditional(cursor);
  if (current == nullptr) {
    return;
  }
  current->has_else = true;
  current->is_active = current->parent_active && !current->was_taken;
  current->was_taken = true;
  expect_end(cursor);
}

void Preprocessor::do_endif(TokenCursor& cursor) {
  if (current_conditional(cursor) == nullptr) {
    return;
  }
  conditionals_.pop_back();
  expect_end(cursor);
}

} // namespace pto::as
