// SPDX-License-Identifier: Apache-2.0
// Directives that declare names: aliases of registers, scratchpad and constants.
#include "assembler/operand_place.h"
#include "assembler/parser.h"
#include "isa/object_layout.h"
#include "isa/suggest.h"

#include <fmt/format.h>

#include <algorithm>

namespace pto::as {

using isa::SourceRange;
using isa::Type;

namespace {

constexpr uint32_t kDefaultL1Align = 32;

} // namespace

void Parser::do_reg(TokenCursor& cursor) {
  const Token* name = expect_name(cursor, "name of the alias");
  if (name == nullptr || !expect(cursor, Punct::kComma, ".reg name, register")) {
    return;
  }
  const Token& token = cursor.peek();
  const std::optional<RegisterName> reg = operands_.peek_register(cursor);
  if (!reg || !reg->in_range()) {
    diags_.error(cursor.range(token), fmt::format("register expected before {}", quote(token)))
        .expect("r0..r126, d0..d62, p0..p7, t0..t15 or e0..e7");
    return;
  }
  cursor.next();
  if (!expect_end(cursor) || !is_free(*name, cursor)) {
    return;
  }
  scope_.add(name->text,
             {.kind = Scope::Kind::kAlias, .index = 0, .reg = *reg, .range = cursor.range(*name)});
}

void Parser::do_align(TokenCursor& cursor) {
  const Token& first = cursor.peek();
  const std::optional<uint32_t> bytes = parse_count(cursor, "alignment", isa::kMostAlignBytes);
  if (!bytes || !expect_end(cursor)) {
    return;
  }
  if ((*bytes & (*bytes - 1)) != 0) {
    diags_.error(cursor.range_from(first), fmt::format("alignment of {}", *bytes))
        .expect(fmt::format("a power of two up to {}", isa::kMostAlignBytes));
    return;
  }
  pending_align_ = *bytes;
}

std::optional<Type> Parser::parse_element_type(TokenCursor& cursor) {
  const Token& token = cursor.peek();
  const std::optional<Type> type =
      token.kind == TokenKind::kWord ? isa::find_type(token.text) : std::nullopt;
  if (!type || isa::size_bytes(*type) == 0) {
    diags_.error(cursor.range(token), fmt::format("type expected before {}", quote(token)))
        .expect("a type with a size, such as f32, u8 or b64");
    return std::nullopt;
  }
  cursor.next();
  return type;
}

std::optional<uint32_t> Parser::parse_extent(TokenCursor& cursor, std::string_view what) {
  if (!expect(cursor, Punct::kOpenBracket, what)) {
    return std::nullopt;
  }
  const std::optional<uint32_t> count = parse_count(cursor, "size", uint32_t{1} << 30);
  if (!count || !expect(cursor, Punct::kCloseBracket, what)) {
    return std::nullopt;
  }
  return count;
}

void Parser::do_tile(TokenCursor& cursor) {
  const Token* name = expect_name(cursor, "name of the tile");
  if (name == nullptr || !expect(cursor, Punct::kComma, ".tile name, type[rows][columns]")) {
    return;
  }
  const std::optional<Type> type = parse_element_type(cursor);
  if (!type) {
    return;
  }
  const std::optional<uint32_t> rows = parse_extent(cursor, "type[rows][columns]");
  if (!rows) {
    return;
  }
  const std::optional<uint32_t> cols = parse_extent(cursor, "type[rows][columns]");
  if (cols) {
    finish_symbol(cursor,
                  *name,
                  {.kind = isa::SymbolKind::kTile, .type = *type, .rows = *rows, .cols = *cols});
  }
}

void Parser::do_shared(TokenCursor& cursor) {
  const Token* name = expect_name(cursor, "name of the array");
  if (name == nullptr || !expect(cursor, Punct::kComma, ".shared name, type[count]")) {
    return;
  }
  const std::optional<Type> type = parse_element_type(cursor);
  if (!type) {
    return;
  }
  const std::optional<uint32_t> count = parse_extent(cursor, "type[count]");
  if (count) {
    finish_symbol(cursor, *name, {.kind = isa::SymbolKind::kShared, .type = *type, .cols = *count});
  }
}

// Offsets of scratchpad symbols are given when all are known (layout.cc).
bool Parser::finish_symbol(TokenCursor& cursor, const Token& name, isa::Symbol symbol) {
  if (!expect_end(cursor) || !is_free(name, cursor)) {
    return false;
  }
  const SourceRange range = cursor.range(name);
  const uint64_t size = uint64_t{symbol.rows} * symbol.cols * isa::size_bytes(symbol.type);
  if (size > isa::kMostSymbolBytes) {
    diags_.error(range, fmt::format("'{}' takes {} bytes", name.text, size))
        .expect(fmt::format("at most {}", isa::kMostSymbolBytes));
    return false;
  }
  symbol.name = std::string(name.text);
  symbol.size_bytes = static_cast<uint32_t>(size);
  const uint32_t least = symbol.kind == isa::SymbolKind::kConst
                             ? static_cast<uint32_t>(isa::size_bytes(symbol.type))
                             : kDefaultL1Align;
  symbol.align_bytes = pending_align_ != 0
                           ? std::max(pending_align_, uint32_t{isa::size_bytes(symbol.type)})
                           : least;
  pending_align_ = 0;
  const bool is_local = state_ == State::kInside && function().is_kernel;
  if (is_local) {
    symbol.owner = static_cast<uint32_t>(program_.object.functions.size() - 1);
  }
  if (symbol.kind == isa::SymbolKind::kConst) {
    std::vector<uint8_t>& data = program_.object.const_data;
    const size_t end = data.size() - symbol.size_bytes; // its values are there already
    symbol.offset = static_cast<uint32_t>(end);
  }
  const Scope::Entry entry = {.kind = Scope::Kind::kSymbol,
                              .index = static_cast<uint32_t>(program_.object.symbols.size()),
                              .reg = {},
                              .range = range};
  if (state_ == State::kInside && !is_local) {
    scope_.add_to_file(name.text, entry); // of a .func: the file's
  } else {
    scope_.add(name.text, entry);
  }
  symbol_places_.emplace(name.text, range);
  program_.object.symbols.push_back(std::move(symbol));
  program_.symbol_ranges.push_back(range);
  return true;
}

void Parser::do_const(TokenCursor& cursor) {
  const Token* name_token = expect_name(cursor, "name of the constant data");
  if (name_token == nullptr || !expect(cursor, Punct::kComma, ".const name, type {value, ...}")) {
    return;
  }
  const Token name = *name_token; // the line may end before its braces do
  const isa::SourceFile& file = cursor.file();
  const std::optional<Type> type = parse_element_type(cursor);
  if (!type) {
    return;
  }
  const SourceRange open = cursor.range(cursor.peek());
  if (!expect(cursor, Punct::kOpenBrace, ".const name, type {value, ...}")) {
    return;
  }
  std::vector<uint8_t>& data = program_.object.const_data;
  const size_t before = data.size();
  const uint32_t size = isa::size_bytes(*type);
  const uint32_t align = std::max(pending_align_, size);
  data.resize((data.size() + align - 1) / align * align);
  uint32_t count = 0;
  bool is_closed = false;
  while (!is_closed) {
    if (!skip_line_ends(cursor)) {
      diags_.error(open, "the values are never closed").expect("'}'");
      data.resize(before);
      return;
    }
    const Token& first = cursor.peek();
    const std::optional<ConstValue> value = evaluate(cursor, constants());
    const std::optional<uint64_t> bits =
        value ? operands_.to_bits(*value,
                                  *type,
                                  cursor.range_from(first),
                                  [&] { return fmt::format("value {} of '{}'", count, name.text); })
              : std::nullopt;
    if (!bits) {
      data.resize(before);
      return;
    }
    for (uint32_t i = 0; i < size; ++i) {
      data.push_back(static_cast<uint8_t>(*bits >> (8 * i)));
    }
    ++count;
    if (!skip_line_ends(cursor)) {
      continue; // reported above
    }
    is_closed = cursor.accept(Punct::kCloseBrace);
    if (!is_closed && !expect(cursor, Punct::kComma, "',' or '}' after a value")) {
      data.resize(before);
      return;
    }
    if (!is_closed && skip_line_ends(cursor)) {
      is_closed = cursor.accept(Punct::kCloseBrace); // a comma may follow the last value
    }
  }
  if (&cursor.file() != &file) {
    // Braces that close in another file: the place of the name would be lost.
    diags_.error(open, "the values are not closed in the same file").expect("'}'");
    data.resize(before);
    return;
  }
  if (!finish_symbol(
          cursor, name, {.kind = isa::SymbolKind::kConst, .type = *type, .cols = count})) {
    data.resize(before);
  }
}

} // namespace pto::as
