// SPDX-License-Identifier: Apache-2.0
// Macros: their definition, and the text that a call becomes.
#include "assembler/preprocess.h"
#include "assembler/registers.h"
#include "isa/suggest.h"
#include "isa/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace pto::as {

namespace {

// What a macro expansion costs beyond its text.
constexpr size_t kExpansionBytes = 128;

} // namespace

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

} // namespace pto::as
