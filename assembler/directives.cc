// SPDX-License-Identifier: Apache-2.0
// Directives of the program proper: file, kernels and functions. Declarations are in
// declarations.cc, the preprocessor's directives in preprocess.cc.
#include "assembler/operand_place.h"
#include "assembler/parser.h"
#include "isa/machine.h"
#include "isa/object_check.h"
#include "isa/suggest.h"

#include <fmt/format.h>

#include <algorithm>

namespace pto::as {

using isa::SourceRange;
using isa::Type;

const Parser::Directive* Parser::find_directive(std::string_view name) {
  static constexpr Directive kDirectives[] = {
      {".align", &Parser::do_align, ".align bytes"},
      {".const", &Parser::do_const, ".const name, type {value, ...}"},
      {".end", &Parser::do_end, ".end"},
      {".func", &Parser::do_func, ".func name"},
      {".kernel", &Parser::do_kernel, ".kernel name(type name, ...)"},
      {".loc", &Parser::do_loc, ".loc \"file\" line [column]"},
      {".machine", &Parser::do_machine, ".machine name"},
      {".maxlanes", &Parser::do_maxlanes, ".maxlanes count"},
      {".pto", &Parser::do_pto, ".pto 1"},
      {".reg", &Parser::do_reg, ".reg name, register"},
      {".shared", &Parser::do_shared, ".shared name, type[count]"},
      {".tile", &Parser::do_tile, ".tile name, type[rows][columns]"},
  };
  for (const Directive& directive : kDirectives) {
    if (directive.name == name) {
      return &directive;
    }
  }
  return nullptr;
}

void Parser::parse_directive(TokenCursor& cursor) {
  const Token& token = cursor.peek();
  const Directive* directive = find_directive(token.text);
  if (directive == nullptr) {
    static constexpr std::string_view kNames[] = {
        ".align", ".const",    ".else",  ".elseif", ".end",     ".endif",  ".endm", ".equ",
        ".func",  ".if",       ".ifdef", ".ifndef", ".include", ".kernel", ".loc",  ".machine",
        ".macro", ".maxlanes", ".pto",   ".reg",    ".shared",  ".tile"};
    const auto nearest = isa::nearest_name(token.text, kNames);
    isa::Diagnostic& error =
        diags_.error(cursor.range(token),
                     fmt::format("unknown directive '{}'{}",
                                 token.text,
                                 nearest ? fmt::format("; did you mean '{}'?", *nearest) : ""));
    if (nearest) {
      error.replace(error.range, std::string(*nearest));
    }
    return;
  }
  directive_range_ = cursor.range(cursor.next());
  (this->*directive->handler)(cursor);
}

// ---------------------------------------------------------------- pieces

bool Parser::expect(TokenCursor& cursor, Punct punct, std::string_view context) {
  if (cursor.accept(punct)) {
    return true;
  }
  const Token& token = cursor.peek();
  if (token.kind == TokenKind::kBad) {
    const LexFaultText text = describe_fault(token);
    diags_.error(cursor.range(token), text.message).advise(text.help);
    return false;
  }
  diags_
      .error(cursor.range(token),
             fmt::format("'{}' expected before {}", static_cast<char>(punct), quote(token)))
      .expect(std::string(context));
  return false;
}

bool Parser::expect_end(TokenCursor& cursor) {
  if (cursor.at_end()) {
    return true;
  }
  const Token& token = cursor.peek();
  if (token.kind == TokenKind::kBad) {
    const LexFaultText text = describe_fault(token);
    diags_.error(cursor.range(token), text.message).advise(text.help);
    return false;
  }
  diags_.error(cursor.range(token), fmt::format("unexpected {}", quote(token)))
      .expect("the end of the line");
  return false;
}

const Token* Parser::expect_name(TokenCursor& cursor, std::string_view what) {
  const Token& token = cursor.peek();
  const bool is_name = token.kind == TokenKind::kWord &&
                       token.text.find('.') == std::string_view::npos && token.text != "_";
  if (!is_name) {
    diags_.error(cursor.range(token), fmt::format("{} expected before {}", what, quote(token)))
        .expect("a name of letters, digits, _ and $ that starts with no digit");
    return nullptr;
  }
  if (parse_register(token.text)) {
    diags_.error(cursor.range(token), fmt::format("'{}' is the name of a register", token.text))
        .expect("a name that is no register");
    return nullptr;
  }
  return &cursor.next();
}

bool Parser::skip_line_ends(TokenCursor& cursor) {
  Line line;
  while (cursor.at_end()) {
    if (!preprocessor_.next(line)) {
      return false;
    }
    cursor = TokenCursor(*line.file, line.tokens);
  }
  return true;
}

bool Parser::is_free(const Token& name, const TokenCursor& cursor) {
  SourceRange earlier;
  if (const Scope::Entry* entry = scope_.find(name.text)) {
    earlier = entry->range;
  } else if (const ConstNames::Entry* constant = constants_.find(name.text)) {
    earlier = constant->range;
  } else if (const auto symbol = symbol_places_.find(name.text);
             symbol != symbol_places_.end() && !scope_.is_open()) {
    earlier = symbol->second; // a symbol of an earlier kernel: the file's would shadow it
  } else {
    return true;
  }
  diags_.error(cursor.range(name), fmt::format("'{}' is declared twice", name.text))
      .note(earlier, "the first declaration");
  return false;
}

std::optional<uint32_t>
Parser::parse_count(TokenCursor& cursor, std::string_view what, uint32_t limit) {
  const Token& first = cursor.peek();
  const std::optional<ConstValue> value = evaluate(cursor, constants());
  if (!value) {
    return std::nullopt;
  }
  if (value->is_float || value->integer < 1 || value->integer > limit) {
    diags_.error(cursor.range_from(first), fmt::format("{} of {}", what, to_string(*value)))
        .expect(fmt::format("1 to {}", limit));
    return std::nullopt;
  }
  return static_cast<uint32_t>(value->integer);
}

// ---------------------------------------------------------------- file

void Parser::do_pto(TokenCursor& cursor) {
  const Token& first = cursor.peek();
  const std::optional<ConstValue> value = evaluate(cursor, constants());
  if (!value || !expect_end(cursor)) {
    return;
  }
  const SourceRange range = cursor.range(first);
  if (value->is_float || value->integer != isa::kIsaVersion) {
    diags_.error(range, fmt::format("ISA version {}", to_string(*value)))
        .expect(fmt::format(".pto {}, the version that this assembler knows", isa::kIsaVersion));
  } else if (!program_.object.functions.empty()) {
    diags_.error(range, ".pto after a kernel or function")
        .expect(".pto as the first directive of the program");
  }
}

void Parser::do_machine(TokenCursor& cursor) {
  // A name may hold a dash (reference-fused), so it is taken as text.
  const Token& first = cursor.peek();
  while (!cursor.at_end()) {
    cursor.next();
  }
  const SourceRange range = cursor.range_from(first);
  std::string_view name = cursor.file().text().substr(range.offset, range.length);
  if (first.kind == TokenKind::kString) {
    name = first.text.substr(1, first.text.size() - 2);
  }
  const std::vector<std::string> known = isa::shipped_machine_names();
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    const auto nearest = isa::nearest_name(name, known);
    std::string list;
    for (const std::string& machine : known) {
      list += (list.empty() ? "" : ", ") + machine;
    }
    isa::Diagnostic& error = diags_.error(
        range,
        name.empty() ? std::string(".machine without a name")
                     : fmt::format("unknown machine '{}'{}",
                                   name.substr(0, 64),
                                   nearest ? fmt::format("; did you mean '{}'?", *nearest) : ""));
    error.expect(list);
    if (nearest) {
      error.replace(range, std::string(*nearest));
    }
    return;
  }
  if (program_.machine_range) {
    diags_.error(range, ".machine is given twice").note(program_.machine_range, "the first one");
    return;
  }
  program_.object.machine = std::string(name);
  program_.machine_range = range;
}

// ---------------------------------------------------------------- kernels and functions

void Parser::do_kernel(TokenCursor& cursor) {
  open_function(cursor, true);
}

void Parser::do_func(TokenCursor& cursor) {
  open_function(cursor, false);
}

void Parser::open_function(TokenCursor& cursor, bool is_kernel) {
  if (state_ == State::kInside) {
    const FunctionSource& open = program_.function_sources.back();
    diags_
        .error(open.name_range,
               fmt::format("{} '{}' is never closed",
                           function().is_kernel ? "kernel" : "function",
                           function().name))
        .expect(".end before the next .kernel or .func")
        .note(cursor.range(cursor.peek()), "the next one starts here");
    close_function(open.name_range);
  }
  // Whatever is wrong with the head, the body is read as one.
  const Token* name =
      expect_name(cursor, is_kernel ? "name of the kernel" : "name of the function");
  const SourceRange range = cursor.range(name != nullptr ? *name : cursor.peek());
  isa::Function added;
  added.name = name != nullptr ? std::string(name->text) : "?";
  added.is_kernel = is_kernel;
  added.first_pc = static_cast<uint32_t>(program_.object.code.size());
  if (name != nullptr) {
    const auto index = static_cast<uint32_t>(program_.object.functions.size());
    const auto [entry, is_new] = function_names_.emplace(name->text, index);
    if (!is_new) {
      diags_.error(range, fmt::format("'{}' is defined twice", name->text))
          .note(program_.function_sources[entry->second].name_range, "the first definition");
    }
  }
  program_.object.functions.push_back(std::move(added));
  program_.function_sources.push_back({range, range});
  state_ = State::kInside;
  scope_.open_function();
  labels_.clear();
  pending_align_ = 0;
  operands_.open_function(function().params);
  if (name != nullptr && parse_params(cursor, function())) {
    expect_end(cursor);
  }
  operands_.open_function(function().params);
}

bool Parser::parse_params(TokenCursor& cursor, isa::Function& function) {
  const SourceRange open = cursor.range(cursor.peek());
  if (!cursor.accept(Punct::kOpenParen)) {
    return true;
  }
  if (cursor.accept(Punct::kCloseParen)) {
    return true;
  }
  if (!function.is_kernel) {
    diags_.error(open, "a function has no parameters")
        .expect(".func name; it shares the registers of its caller");
    return false;
  }
  while (true) {
    if (!skip_line_ends(cursor)) {
      diags_.error(open, "the parameter list is never closed").expect("')'");
      return false;
    }
    if (!parse_param(cursor, function)) {
      return false;
    }
    if (cursor.accept(Punct::kCloseParen)) {
      return true;
    }
    if (!expect(cursor, Punct::kComma, "',' or ')' after a parameter")) {
      return false;
    }
  }
}

bool Parser::parse_param(TokenCursor& cursor, isa::Function& function) {
  const Token& type = cursor.peek();
  isa::Param param;
  const std::string_view word = type.kind == TokenKind::kWord ? type.text : std::string_view();
  const std::string_view kind = word.substr(0, word.find('.'));
  if (kind == "ptr") {
    param.is_pointer = true;
    if (word.size() > kind.size()) {
      const std::optional<Type> element = isa::find_type(word.substr(kind.size() + 1));
      if (!element || isa::size_bytes(*element) == 0) {
        diags_.error(cursor.range(type), fmt::format("unknown element type in '{}'", word))
            .expect("ptr, or ptr. and a type such as f32");
        return false;
      }
      param.element = *element;
    }
  } else {
    const std::optional<Type> found = isa::find_type(word);
    const bool is_allowed = found && isa::size_bytes(*found) != 0 && *found != Type::kF16x2 &&
                            *found != Type::kB8 && *found != Type::kB16;
    if (!is_allowed) {
      isa::Diagnostic& error = diags_.error(
          cursor.range(type), fmt::format("type of a parameter expected before {}", quote(type)));
      error.expect("ptr, u8 s8 u16 s16 u32 s32 u64 s64, f16 bf16 f32, b32 or b64");
      return false;
    }
    param.type = *found;
  }
  cursor.next();
  const Token* name = expect_name(cursor, "name of a parameter");
  if (name == nullptr) {
    return false;
  }
  if (const ConstNames::Entry* constant = constants_.find(name->text)) {
    diags_
        .error(cursor.range(*name),
               fmt::format("parameter '{}' has the name of a constant", name->text))
        .note(constant->range, "the constant");
    return false;
  }
  const Scope::Entry entry = {.kind = Scope::Kind::kParam,
                              .index = static_cast<uint32_t>(function.params.size()),
                              .reg = {},
                              .range = cursor.range(*name)};
  if (!scope_.add(name->text, entry)) {
    diags_.error(entry.range, fmt::format("parameter '{}' is declared twice", name->text))
        .note(scope_.find(name->text)->range, "the first declaration");
    return false;
  }
  param.name = std::string(name->text);
  function.params.push_back(std::move(param));
  return true;
}

void Parser::do_end(TokenCursor& cursor) {
  if (state_ != State::kInside) {
    diags_.error(directive_range_, ".end without .kernel or .func");
    return;
  }
  expect_end(cursor);
  close_function(directive_range_);
}

void Parser::close_function(SourceRange end) {
  resolve_branches();
  isa::Function& closed = function();
  const auto end_pc = static_cast<uint32_t>(program_.object.code.size());
  closed.insn_count = end_pc - closed.first_pc;
  program_.function_sources.back().end_range = end;
  scope_.close_function();
  loc_.reset();
  pending_align_ = 0;
  state_ = State::kOutside;
}

void Parser::do_maxlanes(TokenCursor& cursor) {
  const std::optional<uint32_t> count = parse_count(cursor, "number of lanes", isa::kMostLanes);
  if (!count || !expect_end(cursor)) {
    return;
  }
  if (state_ != State::kInside || !function().is_kernel) {
    diags_.error(directive_range_, ".maxlanes outside of a kernel")
        .expect(".maxlanes after .kernel");
    return;
  }
  function().max_lanes = *count;
}

void Parser::do_loc(TokenCursor& cursor) {
  const Token& file = cursor.peek();
  if (file.kind != TokenKind::kString) {
    diags_.error(cursor.range(file), fmt::format("file name expected before {}", quote(file)))
        .expect(".loc \"file\" line [column]");
    return;
  }
  const std::optional<std::string> name = decode_string(file, cursor, diags_);
  cursor.next();
  if (!name) {
    return;
  }
  isa::SourceLoc loc;
  const std::optional<uint32_t> line = parse_count(cursor, "line", UINT32_MAX);
  if (!line) {
    return;
  }
  loc.line = *line;
  loc.column = 1;
  if (!cursor.at_end()) {
    const std::optional<uint32_t> column = parse_count(cursor, "column", UINT32_MAX);
    if (!column || !expect_end(cursor)) {
      return;
    }
    loc.column = *column;
  }
  std::vector<std::string>& files = program_.object.files;
  const auto found = std::find(files.begin(), files.end(), *name);
  loc.file = static_cast<uint32_t>(found - files.begin());
  if (found == files.end()) {
    files.push_back(*name);
  }
  loc_ = loc;
}

} // namespace pto::as
