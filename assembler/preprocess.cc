// SPDX-License-Identifier: Apache-2.0
// Frames, macros, conditionals and constants.
#include "assembler/preprocess.h"

#include "assembler/registers.h"
#include "isa/suggest.h"
#include "isa/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

namespace pto::as {

namespace {

// What a macro expansion costs beyond its text.
constexpr size_t kExpansionBytes = 128;

bool is_plain_name(std::string_view name) {
  return name.find('.') == std::string_view::npos;
}

std::string normal(const std::filesystem::path& path) {
  return path.lexically_normal().string();
}

} // namespace

std::optional<std::string> read_text_file(const std::string& path, std::string& error) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) {
    error = fmt::format("'{}' is a folder", path);
    return std::nullopt;
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  if (file == nullptr) {
    error = fmt::format("cannot read '{}': {}", path, std::strerror(errno));
    return std::nullopt;
  }
  constexpr size_t kLimit = size_t{1} << 30;
  std::string text;
  char buffer[65536];
  while (const size_t count = std::fread(buffer, 1, sizeof buffer, file.get())) {
    text.append(buffer, count);
    if (text.size() > kLimit) {
      error = fmt::format("'{}' is over {} MiB, too large for a program", path, kLimit >> 20);
      return std::nullopt;
    }
  }
  if (std::ferror(file.get()) != 0) {
    error = fmt::format("cannot read '{}': {}", path, std::strerror(errno));
    return std::nullopt;
  }
  return text;
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

// ---------------------------------------------------------------- macros

void Preprocessor::do_macro(TokenCursor& cursor) {
  const Token& directive = cursor.next();
  const isa::SourceRange directive_range = cursor.range(directive);
  Macro macro;
  macro.file = &cursor.file();
  std::string_view name;
  bool is_good = false;
  if (const Token* token = expect_name(cursor, "name of the macro")) {
    name = token->text;
    macro.range = cursor.range(*token);
    is_good = true;
    cursor.accept(Punct::kComma);
    while (is_good && !cursor.at_end()) {
      const Token* param = expect_name(cursor, "macro parameter");
      if (param == nullptr) {
        is_good = false;
        break;
      }
      const auto same = [&](const MacroParam& other) { return other.name == param->text; };
      if (std::any_of(macro.params.begin(), macro.params.end(), same)) {
        diags_.error(cursor.range(*param), fmt::format("parameter '{}' occurs twice", param->text));
        is_good = false;
      }
      MacroParam& added = macro.params.emplace_back();
      added.name = param->text;
      if (cursor.accept(Punct::kAssign)) {
        const Token& first = cursor.peek();
        while (!cursor.at_end() && !cursor.peek().is(Punct::kComma)) {
          cursor.next();
        }
        const isa::SourceRange text = cursor.range_from(first);
        added.fallback = cursor.file().text().substr(text.offset, text.length);
      }
      cursor.accept(Punct::kComma);
    }
  }

  // The body, as text.
  Frame& frame = frames_.back();
  macro.first_line = frame.lexer.next_line_number() + frame.lexer.file().first_line() - 1;
  const uint32_t begin = frame.lexer.offset();
  uint32_t end = begin;
  size_t depth = 1;
  while (depth > 0) {
    if (!frame.lexer.next_line(body_tokens_)) {
      diags_.error(directive_range, "this macro is never closed")
          .expect(".endm before the end of the same file");
      return;
    }
    const Token& first = body_tokens_[0];
    if (first.kind == TokenKind::kWord && first.text == ".macro") {
      ++depth;
    } else if (first.kind == TokenKind::kWord && first.text == ".endm") {
      --depth;
      end = frame.lexer.line_start();
    }
  }
  macro.body = macro.file->text().substr(begin, end - begin);
  if (!is_good) {
    return;
  }
  if (isa::find_insn(name) != nullptr) {
    diags_.error(macro.range, fmt::format("'{}' is the name of an instruction", name))
        .advise("give the macro another name");
    return;
  }
  const auto [entry, is_new] = macros_.emplace(name, macro);
  if (!is_new) {
    diags_.error(macro.range, fmt::format("macro '{}' is defined twice", name))
        .note(entry->second.range, "the first definition");
  }
}

void Preprocessor::do_endm(TokenCursor& cursor) {
  diags_.error(cursor.range(cursor.peek()), ".endm without .macro");
}

std::optional<std::vector<std::string_view>> Preprocessor::split_arguments(TokenCursor& cursor,
                                                                           const Token& call,
                                                                           const Macro& macro,
                                                                           std::string_view name) {
  std::vector<std::string_view> arguments;
  const std::string_view text = cursor.file().text();
  while (!cursor.at_end()) {
    const Token& first = cursor.peek();
    int depth = 0;
    while (!cursor.at_end() && (depth > 0 || !cursor.peek().is(Punct::kComma))) {
      const Token& token = cursor.next();
      const bool opens = token.is(Punct::kOpenParen) || token.is(Punct::kOpenBracket) ||
                         token.is(Punct::kOpenBrace);
      const bool closes = token.is(Punct::kCloseParen) || token.is(Punct::kCloseBracket) ||
                          token.is(Punct::kCloseBrace);
      depth += opens ? 1 : closes && depth > 0 ? -1 : 0;
    }
    const bool is_empty = &cursor.peek() == &first;
    const isa::SourceRange range = cursor.range_from(first);
    arguments.push_back(is_empty ? std::string_view() : text.substr(range.offset, range.length));
    if (arguments.size() > macro.params.size()) {
      diags_
          .error(range,
                 fmt::format("macro '{}' takes {} argument{}, here is one more",
                             name,
                             macro.params.size(),
                             macro.params.size() == 1 ? "" : "s"))
          .note(macro.range, "the definition");
      return std::nullopt;
    }
    if (cursor.accept(Punct::kComma) && cursor.at_end()) {
      arguments.emplace_back();
    }
  }
  while (arguments.size() < macro.params.size()) {
    const MacroParam& param = macro.params[arguments.size()];
    if (!param.fallback) {
      diags_
          .error(cursor.range(call),
                 fmt::format("argument '{}' of macro '{}' is missing; {} of "
                             "{} are given",
                             param.name,
                             name,
                             arguments.size(),
                             macro.params.size()))
          .note(macro.range, "the definition");
      return std::nullopt;
    }
    arguments.push_back(*param.fallback);
  }
  return arguments;
}

// Copies the body with \name, \@ (number of this expansion) and \() (nothing: ends a name) put in.
// Strings and comments stay as they are.
std::optional<std::string>
Preprocessor::substitute(const Macro& macro, const std::vector<std::string_view>& arguments) {
  const std::string_view body = macro.body;
  const auto offset = static_cast<uint32_t>(body.data() - macro.file->text().data());
  std::string out;
  out.reserve(body.size() + 32);
  for (size_t at = 0; at < body.size();) {
    const size_t special = std::min(body.find_first_of("\\\"/", at), body.size());
    out.append(body, at, special - at);
    at = special;
    if (at == body.size()) {
      break;
    }
    size_t end = at + 1;
    if (body[at] == '"') {
      while (end < body.size() && body[end] != '"' && body[end] != '\n') {
        end += body[end] == '\\' && end + 1 < body.size() && body[end + 1] != '\n' ? 2 : 1;
      }
      end = std::min(end + 1, body.size());
    } else if (body[at] == '/' && body.substr(at, 2) == "//") {
      end = std::min(body.find('\n', at), body.size());
    } else if (body[at] == '\\') {
      const std::string_view rest = body.substr(at + 1);
      if (rest.substr(0, 1) == "@") {
        out += std::to_string(expansions_);
        at += 2;
        continue;
      }
      if (rest.substr(0, 2) == "()") {
        at += 3;
        continue;
      }
      size_t length = 0;
      const auto is_name = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '$';
      };
      while (length < rest.size() && is_name(rest[length])) {
        ++length;
      }
      const std::string_view name = rest.substr(0, length);
      const auto found = std::find_if(macro.params.begin(),
                                      macro.params.end(),
                                      [&](const MacroParam& param) { return param.name == name; });
      if (found == macro.params.end()) {
        std::vector<std::string_view> names;
        for (const MacroParam& param : macro.params) {
          names.push_back(param.name);
        }
        diags_
            .error(
                {macro.file, offset + static_cast<uint32_t>(at), static_cast<uint32_t>(length) + 1},
                fmt::format(
                    "the macro has no parameter '{}'{}", name, isa::did_you_mean(name, names)))
            .expect("\\ before the name of a parameter, or \\@ or \\()");
        return std::nullopt;
      }
      out += arguments[static_cast<size_t>(found - macro.params.begin())];
      at += 1 + length;
      continue;
    }
    out.append(body, at, end - at);
    at = end;
    if (out.size() > options_.max_bytes) {
      break; // spend() reports it
    }
  }
  return out;
}

bool Preprocessor::expand_macro(TokenCursor cursor, const Macro& macro) {
  const Token& call = cursor.next();
  const isa::SourceRange range = cursor.range(call);
  if (!may_enter(range, "macro calls")) {
    frames_.clear(); // every line that follows would say the same
    conditionals_.clear();
    gave_up_ = true;
    return false;
  }
  const auto arguments = split_arguments(cursor, call, macro, call.text);
  if (!arguments) {
    return false;
  }
  std::optional<std::string> text = substitute(macro, *arguments);
  ++expansions_;
  if (!text || !spend(text->size() + kExpansionBytes, range)) {
    return false;
  }
  const isa::SourceFile& file =
      diags_.add_source(std::make_unique<isa::SourceFile>(macro.file->name(),
                                                          std::move(*text),
                                                          isa::SourceFile::Origin::kMacro,
                                                          range,
                                                          macro.first_line,
                                                          std::string(call.text)));
  const Frame& caller = frames_.back();
  const bool nested = caller.site_file != nullptr;
  Frame frame = {.lexer = Lexer(file),
                 .conditional_depth = conditionals_.size(),
                 .site_file = nested ? caller.site_file : &caller.lexer.file(),
                 .site_line = nested ? caller.site_line : caller.lexer.line(),
                 .site_start = nested ? caller.site_start : caller.lexer.line_start()};
  frames_.push_back(std::move(frame));
  return true;
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
