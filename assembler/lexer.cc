// SPDX-License-Identifier: Apache-2.0
// The scanner: a table of character classes and one function a kind of token.
#include "assembler/lexer.h"

#include "isa/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace pto::as {

namespace {

constexpr uint8_t kWordStart = 1;
constexpr uint8_t kWordRest = 2;
constexpr uint8_t kDigit = 4;
constexpr uint8_t kPunctuation = 8;
constexpr uint8_t kBlank = 16;
constexpr uint8_t kNotToken = 32; // ends a line or the text, or may begin a comment

constexpr std::array<uint8_t, 256> make_classes() {
  std::array<uint8_t, 256> classes{};
  for (unsigned c = 0; c < 26; ++c) {
    classes['a' + c] = classes['A' + c] = kWordStart | kWordRest;
  }
  for (const char c : {'_', '$', '.'}) {
    classes[static_cast<unsigned char>(c)] = kWordStart | kWordRest;
  }
  for (unsigned c = '0'; c <= '9'; ++c) {
    classes[c] = kDigit | kWordRest;
  }
  for (const char c : {' ', '\t', '\r'}) {
    classes[static_cast<unsigned char>(c)] = kBlank;
  }
  for (const char c : std::string_view(",:[](){}+-*/%&|^~!<>=?@\\")) {
    classes[static_cast<unsigned char>(c)] = kPunctuation;
  }
  for (const char c : {'\n', '\0', '/'}) {
    classes[static_cast<unsigned char>(c)] |= kNotToken;
  }
  return classes;
}

constexpr std::array<uint8_t, 256> kClasses = make_classes();

bool has_class(char c, uint8_t which) {
  return (kClasses[static_cast<unsigned char>(c)] & which) != 0;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

unsigned digit_value(char c) {
  if (is_digit(c)) {
    return static_cast<unsigned>(c - '0');
  }
  if (c >= 'a' && c <= 'f') {
    return static_cast<unsigned>(c - 'a' + 10);
  }
  if (c >= 'A' && c <= 'F') {
    return static_cast<unsigned>(c - 'A' + 10);
  }
  return 99;
}

Punct pair_of(char a, char b) {
  struct Pair {
    char first;
    char second;
    Punct punct;
  };
  static constexpr Pair kPairs[] = {
      {'<', '<', Punct::kShiftLeft},
      {'>', '>', Punct::kShiftRight},
      {'<', '=', Punct::kLessEqual},
      {'>', '=', Punct::kGreaterEqual},
      {'=', '=', Punct::kEqual},
      {'!', '=', Punct::kNotEqual},
      {'&', '&', Punct::kLogicalAnd},
      {'|', '|', Punct::kLogicalOr},
  };
  if (b != '=' && b != a) {
    return Punct::kNone;
  }
  for (const Pair& pair : kPairs) {
    if (pair.first == a && pair.second == b) {
      return pair.punct;
    }
  }
  return Punct::kNone;
}

} // namespace

LexFaultText describe_fault(const Token& token) {
  switch (token.fault) {
  case LexFault::kSemicolon:
    return {"unexpected ';'", "a statement ends with its line; remove the semicolon"};
  case LexFault::kHash:
    return {"unexpected '#'", "comments start with //"};
  case LexFault::kString:
    return {"the string is not closed", "add the closing '\"' on the same line"};
  case LexFault::kComment:
    return {"the comment is not closed", "add '*/'"};
  case LexFault::kLeadingZero:
    return {fmt::format("number '{}' starts with 0", token.text),
            "write it without the zero if decimal; octal numbers do not exist, hexadecimal ones "
            "start with 0x"};
  case LexFault::kIntegerTooLarge:
    return {fmt::format("integer '{}' is over 64 bits", token.text),
            "the largest is 0xFFFFFFFFFFFFFFFF (18446744073709551615)"};
  case LexFault::kNumber:
    return {fmt::format("malformed number '{}'", token.text),
            "numbers look like 42, 1_000, 0xFF, 0b101, 1.5, 1e-3, 0x1p-3 or 0f3F800000, without a "
            "type letter"};
  case LexFault::kDigits:
    return {fmt::format("malformed number '{}'", token.text),
            "0x takes hexadecimal digits, 0b binary ones, 0f exactly eight and 0h exactly four "
            "hexadecimal digits"};
  default:
    break;
  }
  const auto byte = static_cast<unsigned char>(token.text.empty() ? 0 : token.text[0]);
  if (byte >= 0x80) {
    return isa::utf8_length(token.text) != 0
               ? LexFaultText{fmt::format("unexpected character '{}'", token.text),
                              "letters beyond ASCII may stand in comments and strings only"}
               : LexFaultText{fmt::format("unexpected byte 0x{:02X}, which is not UTF-8", byte),
                              "save the file as UTF-8 text"};
  }
  if (byte < 0x20 || byte == 0x7F) {
    return {fmt::format("unexpected control character 0x{:02X}", byte), "remove it"};
  }
  return {fmt::format("unexpected character '{}'", token.text), ""};
}

// The text of a file is that of a std::string: behind its end is a NUL, which no loop over a class
// of characters passes.
Lexer::Lexer(const isa::SourceFile& file) : file_(&file), text_(file.text()) {
  if (text_.substr(0, 3) == "\xEF\xBB\xBF") {
    at_ = next_start_ = 3; // byte order mark
  }
}

// Skips blanks and comments. False where the line ends (its newline is consumed) or the text does.
bool Lexer::skip_space(std::vector<Token>& tokens) {
  const char* const text = text_.data(); // ends with a NUL, see the constructor
  while (at_ < text_.size()) {
    uint32_t at = at_;
    while (has_class(text[at], kBlank)) {
      ++at;
    }
    at_ = at;
    const char c = text[at];
    if (c == '\n') {
      ++at_;
      ++next_line_;
      next_start_ = at_;
      return false;
    }
    if (c != '/') {
      return at < text_.size();
    }
    if (peek(1) == '/') {
      const void* newline = std::memchr(text_.data() + at_, '\n', text_.size() - at_);
      at_ = newline == nullptr
                ? static_cast<uint32_t>(text_.size())
                : static_cast<uint32_t>(static_cast<const char*>(newline) - text_.data());
    } else if (c == '/' && peek(1) == '*') {
      const size_t close = text_.find("*/", at_ + 2);
      const uint32_t begin = at_;
      if (close == std::string_view::npos) {
        at_ = static_cast<uint32_t>(text_.size());
        tokens.push_back({.kind = TokenKind::kBad,
                          .fault = LexFault::kComment,
                          .offset = begin,
                          .text = text_.substr(begin, 2)});
        return false;
      }
      at_ = static_cast<uint32_t>(close) + 2;
      const std::string_view comment = text_.substr(begin, at_ - begin);
      if (const size_t last = comment.rfind('\n'); last != std::string_view::npos) {
        next_line_ += static_cast<uint32_t>(std::count(comment.begin(), comment.end(), '\n'));
        next_start_ = begin + static_cast<uint32_t>(last) + 1;
        return false;
      }
    } else {
      return true;
    }
  }
  return false;
}

bool Lexer::next_line(std::vector<Token>& tokens) {
  const char* const text = text_.data();
  tokens.clear();
  while (tokens.empty()) {
    if (at_ >= text_.size()) {
      return false;
    }
    line_ = next_line_;
    line_start_ = next_start_;
    while (true) {
      while (has_class(text[at_], kBlank)) {
        ++at_;
      }
      // Where a token cannot begin, or a comment may: the rest of what stands between tokens.
      if (has_class(text[at_], kNotToken) && !skip_space(tokens)) {
        break;
      }
      Token& token = tokens.emplace_back();
      token.offset = at_;
      const char c = text[at_];
      if (has_class(c, kWordStart) && !(c == '.' && is_digit(peek(1)))) {
        word(token);
      } else if (is_digit(c) || c == '.') {
        number(token);
      } else if (c == '"') {
        string(token);
      } else {
        punct(token, tokens);
      }
    }
  }
  const uint32_t end = tokens.back().end();
  tokens.push_back({.kind = TokenKind::kEnd, .offset = end, .text = text_.substr(end, 0)});
  return true;
}

void Lexer::word(Token& token) {
  const char* const text = text_.data();
  uint32_t end = at_ + 1;
  while (has_class(text[end], kWordRest)) {
    ++end;
  }
  token.kind = TokenKind::kWord;
  token.text = text_.substr(at_, end - at_);
  at_ = end;
}

uint32_t Lexer::digits(uint32_t at, unsigned base, uint64_t& value, bool& overflows) const {
  for (; at < text_.size(); ++at) {
    const char c = text_[at];
    if (c == '_') {
      continue;
    }
    const unsigned digit = digit_value(c);
    if (digit >= base) {
      break;
    }
    overflows |= __builtin_mul_overflow(value, uint64_t{base}, &value);
    overflows |= __builtin_add_overflow(value, uint64_t{digit}, &value);
  }
  return at;
}

void Lexer::number(Token& token) {
  const auto char_at = [&](uint32_t i) { return i < text_.size() ? text_[i] : '\0'; };
  const char prefix = peek() == '0' ? static_cast<char>(peek(1) | 0x20) : '\0';
  const bool has_prefix = prefix == 'x' || prefix == 'b' || prefix == 'f' || prefix == 'h';
  const unsigned base = prefix == 'b' ? 2 : has_prefix ? 16 : 10;
  const uint32_t first_digit = at_ + (has_prefix ? 2 : 0);
  bool overflows = false;
  token.kind = TokenKind::kInteger;
  uint32_t end = digits(first_digit, base, token.value, overflows);
  const uint32_t digit_count = end - first_digit;
  bool is_malformed = false;

  const bool may_be_float = !has_prefix || prefix == 'x';
  if (may_be_float) {
    if (char_at(end) == '.') {
      token.kind = TokenKind::kFloat;
      uint64_t ignored = 0;
      bool ignored_overflow = false;
      end = digits(end + 1, base, ignored, ignored_overflow);
    }
    const char exponent = static_cast<char>(char_at(end) | 0x20);
    if (exponent == (prefix == 'x' ? 'p' : 'e')) {
      token.kind = TokenKind::kFloat;
      ++end;
      if (char_at(end) == '+' || char_at(end) == '-') {
        ++end;
      }
      is_malformed = !is_digit(char_at(end));
      while (is_digit(char_at(end))) {
        ++end;
      }
    } else if (token.kind == TokenKind::kFloat && prefix == 'x') {
      is_malformed = true; // a hex float needs its exponent
    }
  }
  bool has_tail = false;
  while (end < text_.size() && has_class(text_[end], kWordRest)) {
    has_tail = true;
    ++end;
  }
  token.text = text_.substr(at_, end - at_);
  at_ = end;

  LexFault fault = LexFault::kNone;
  if (has_tail || is_malformed) {
    fault = has_prefix && token.kind != TokenKind::kFloat ? LexFault::kDigits : LexFault::kNumber;
  } else if (has_prefix && (digit_count == 0 || (prefix == 'f' && digit_count != 8) ||
                            (prefix == 'h' && digit_count != 4))) {
    fault = LexFault::kDigits;
  } else if (token.kind == TokenKind::kInteger) {
    if (overflows) {
      fault = LexFault::kIntegerTooLarge;
    } else if (!has_prefix && token.text.size() > 1 && token.text[0] == '0') {
      fault = LexFault::kLeadingZero;
    }
    if (prefix == 'f' || prefix == 'h') {
      token.kind = prefix == 'f' ? TokenKind::kBitsF32 : TokenKind::kBits16;
    }
  }
  if (fault != LexFault::kNone) {
    token.kind = TokenKind::kBad;
    token.fault = fault;
  }
}

void Lexer::string(Token& token) {
  uint32_t end = at_ + 1;
  while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') {
    end += text_[end] == '\\' && end + 1 < text_.size() && text_[end + 1] != '\n' ? 2 : 1;
  }
  const bool is_closed = end < text_.size() && text_[end] == '"';
  token.kind = is_closed ? TokenKind::kString : TokenKind::kBad;
  token.fault = is_closed ? LexFault::kNone : LexFault::kString;
  end += is_closed ? 1 : 0;
  end = std::min(end, static_cast<uint32_t>(text_.size()));
  token.text = text_.substr(at_, end - at_);
  if (!is_closed && !token.text.empty() && token.text.back() == '\r') {
    token.text.remove_suffix(1);
  }
  at_ = end;
}

void Lexer::punct(Token& token, const std::vector<Token>& before) {
  const char c = text_[at_];
  // A % starts a special register unless it can only be the operator: after a value.
  if (c == '%' && has_class(peek(1), kWordStart)) {
    const Token* previous = before.size() >= 2 ? &before[before.size() - 2] : nullptr;
    const bool follows_value =
        previous != nullptr &&
        (previous->kind == TokenKind::kInteger || previous->is(Punct::kCloseParen) ||
         (previous->kind == TokenKind::kWord && previous->end() == at_));
    if (!follows_value) {
      ++at_;
      word(token);
      token.kind = TokenKind::kSpecial;
      token.text = text_.substr(token.offset, at_ - token.offset);
      return;
    }
  }
  if (!has_class(c, kPunctuation)) {
    const size_t length = std::max<size_t>(1, isa::utf8_length(text_.substr(at_)));
    token.kind = TokenKind::kBad;
    token.fault = c == ';'   ? LexFault::kSemicolon
                  : c == '#' ? LexFault::kHash
                             : LexFault::kCharacter;
    token.text = text_.substr(at_, length);
    at_ += static_cast<uint32_t>(length);
    return;
  }
  token.kind = TokenKind::kPunct;
  const Punct pair = pair_of(c, peek(1));
  token.punct = pair != Punct::kNone ? pair : static_cast<Punct>(c);
  token.text = text_.substr(at_, pair != Punct::kNone ? 2 : 1);
  at_ += static_cast<uint32_t>(token.text.size());
}

} // namespace pto::as
