// SPDX-License-Identifier: Apache-2.0
// Constant expressions: the C operators over exact integers and over doubles.
//
// Integers are exact between -2^63 and 2^64-1, so both signed and unsigned 64-bit constants exist;
// a result outside is an error at its operator, never a wrap. An operation with a float operand is
// done in double. `&&`, `||` and `?:` do not evaluate the side that does not count.
#pragma once

#include "assembler/lexer.h"
#include "isa/diag.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace pto::as {

__extension__ using WideInt = __int128;

inline constexpr WideInt kLeastInteger = -(WideInt{1} << 63);
inline constexpr WideInt kGreatestInteger = (WideInt{1} << 64) - 1;

struct ConstValue {
  bool is_float = false;
  WideInt integer = 0;
  double real = 0;
  // The literal that the expression consists of, if it is one alone (perhaps behind a minus):
  // a float literal is rounded once, straight to its operand's type.
  const Token* literal = nullptr;
  bool is_negated_literal = false;

  [[nodiscard]] double as_double() const { return is_float ? real : static_cast<double>(integer); }
  [[nodiscard]] bool is_true() const { return is_float ? real != 0 : integer != 0; }
};

[[nodiscard]] std::string to_string(const ConstValue& value);

/// Names given by .equ and -D.
class ConstNames {
public:
  struct Entry {
    ConstValue value;
    isa::SourceRange range;
  };
  [[nodiscard]] const Entry* find(std::string_view name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second;
  }
  /// `name` must outlive this object (it is a view into a source). False if it exists already.
  bool add(std::string_view name, const ConstValue& value, isa::SourceRange range);
  [[nodiscard]] std::vector<std::string_view> names() const;

private:
  std::unordered_map<std::string_view, Entry> entries_;
};

/// Walks the tokens of one line, which end with kEnd.
class TokenCursor {
public:
  TokenCursor(const isa::SourceFile& file, const Token* first) : file_(&file), at_(first) {}
  [[nodiscard]] const Token& peek() const { return *at_; }
  [[nodiscard]] const Token& peek_next() const {
    return at_->kind == TokenKind::kEnd ? *at_ : at_[1];
  }
  const Token& next() {
    const Token& token = *at_;
    if (token.kind != TokenKind::kEnd) {
      ++at_;
    }
    return token;
  }
  [[nodiscard]] bool at_end() const { return at_->kind == TokenKind::kEnd; }
  bool accept(Punct punct) {
    const bool fits = at_->is(punct);
    at_ += fits ? 1 : 0;
    return fits;
  }
  [[nodiscard]] isa::SourceRange range(const Token& token) const {
    return {file_, token.offset, static_cast<uint32_t>(token.text.size())};
  }
  /// From `first` to the token before the cursor.
  [[nodiscard]] isa::SourceRange range_from(const Token& first) const {
    const Token& last = at_ == &first ? first : at_[-1];
    return {file_,
            first.offset,
            last.end() < first.offset ? first.end() - first.offset : last.end() - first.offset};
  }
  [[nodiscard]] const isa::SourceFile& file() const { return *file_; }

private:
  const isa::SourceFile* file_;
  const Token* at_;
};

/// "'foo'" or "the end of the line": how messages call a token.
[[nodiscard]] std::string quote(const Token& token);

struct ConstContext {
  const ConstNames& names;
  isa::Diagnostics& diags;
  /// What a name that is no constant is ("a parameter"), or empty if unknown. May be absent.
  std::function<std::string(std::string_view)> describe_name = {};
};

/// Evaluates the expression at the cursor and moves behind it; reports and returns nullopt on an
/// error. kTerm stops before a + or - (the terms of an address).
enum class ExprLevel { kFull, kTerm };
[[nodiscard]] std::optional<ConstValue>
evaluate(TokenCursor& cursor, const ConstContext& context, ExprLevel level = ExprLevel::kFull);

/// True if an expression may start with this token.
[[nodiscard]] bool starts_expression(const Token& token);

/// Text of a float token as double, and straight to float; underscores removed.
[[nodiscard]] double parse_double(std::string_view text);
[[nodiscard]] float parse_float(std::string_view text);

} // namespace pto::as
