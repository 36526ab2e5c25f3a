// SPDX-License-Identifier: Apache-2.0
// Text -> tokens, one line at a time (docs/isa.md, section Text).
//
// Tokens are views into the source: nothing is copied and, once the caller's vector has grown,
// nothing is allocated. The lexer reports nothing itself; what it cannot read becomes a kBad token
// whose fault the reader reports when it gets there, so that skipped text (.if 0) stays silent.
#pragma once

#include "isa/source.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pto::as {

enum class TokenKind : uint8_t {
  kEnd,     // end of the line; a point right after the last token
  kWord,    // mnemonic with its suffixes, directive, label, register, name: [A-Za-z_$.][\w$.]*
  kSpecial, // %name; the text includes the %
  kInteger, // value
  kFloat,   // decimal or hex float, text only
  kBitsF32, // 0f and eight hex digits; value
  kBits16,  // 0h and four hex digits; value
  kString,  // text includes the quotes
  kPunct,
  kBad,
};

enum class Punct : uint8_t {
  kNone = 0,
  kComma = ',',
  kColon = ':',
  kOpenBracket = '[',
  kCloseBracket = ']',
  kOpenParen = '(',
  kCloseParen = ')',
  kOpenBrace = '{',
  kCloseBrace = '}',
  kPlus = '+',
  kMinus = '-',
  kStar = '*',
  kSlash = '/',
  kPercent = '%',
  kAnd = '&',
  kOr = '|',
  kXor = '^',
  kTilde = '~',
  kNot = '!',
  kLess = '<',
  kGreater = '>',
  kAssign = '=',
  kQuestion = '?',
  kAt = '@',
  kBackslash = '\\',
  kShiftLeft = 128,
  kShiftRight,
  kLessEqual,
  kGreaterEqual,
  kEqual,
  kNotEqual,
  kLogicalAnd,
  kLogicalOr,
};

enum class LexFault : uint8_t {
  kNone,
  kCharacter, // no token starts with it
  kSemicolon, // habit of other assemblers
  kHash,
  kString,          // not closed on its line
  kComment,         // not closed before the end of the file
  kLeadingZero,     // 017: octal or decimal?
  kIntegerTooLarge, // over 64 bits
  kNumber,          // letters or a second point after a number
  kDigits,          // 0x, 0b, 0f, 0h without (the right count of) digits
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  Punct punct = Punct::kNone;
  LexFault fault = LexFault::kNone;
  uint32_t offset = 0;
  std::string_view text;
  uint64_t value = 0;

  [[nodiscard]] bool is(Punct what) const { return kind == TokenKind::kPunct && punct == what; }
  [[nodiscard]] uint32_t end() const { return offset + static_cast<uint32_t>(text.size()); }
};

/// What a kBad token is, and what to do about it.
struct LexFaultText {
  std::string message;
  std::string help;
};
[[nodiscard]] LexFaultText describe_fault(const Token& token);

class Lexer {
public:
  explicit Lexer(const isa::SourceFile& file);

  /// Puts the tokens of the next line that has any into `tokens`, a kEnd last. False at the end of
  /// the text. A comment that spans lines ends the statement before it.
  bool next_line(std::vector<Token>& tokens);

  [[nodiscard]] const isa::SourceFile& file() const { return *file_; }
  /// Of the line read last: number (from 1, of the text) and offset of its first byte.
  [[nodiscard]] uint32_t line() const { return line_; }
  [[nodiscard]] uint32_t line_start() const { return line_start_; }
  /// Where the next line begins.
  [[nodiscard]] uint32_t offset() const { return at_; }
  [[nodiscard]] uint32_t next_line_number() const { return next_line_; }

private:
  bool skip_space(std::vector<Token>& tokens);
  void word(Token& token);
  void number(Token& token);
  void string(Token& token);
  void punct(Token& token, const std::vector<Token>& before);
  uint32_t digits(uint32_t at, unsigned base, uint64_t& value, bool& overflows) const;
  [[nodiscard]] char peek(uint32_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  const isa::SourceFile* file_;
  std::string_view text_;
  uint32_t at_ = 0;
  uint32_t line_ = 0;
  uint32_t line_start_ = 0;
  uint32_t next_line_ = 1;
  uint32_t next_start_ = 0;
};

} // namespace pto::as
