// SPDX-License-Identifier: Apache-2.0
// Precedence climbing over the tokens of one line; values are computed on the way.
#include "assembler/const_expr.h"

#include "isa/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace pto::as {

namespace {

constexpr int kMaxDepth = 128;
constexpr int kTermLevel = 10; // multiplicative

// C's levels, weakest first; 0 is no binary operator.
int level_of(const Token& token) {
  if (token.kind != TokenKind::kPunct) {
    return 0;
  }
  switch (token.punct) {
  case Punct::kLogicalOr:
    return 1;
  case Punct::kLogicalAnd:
    return 2;
  case Punct::kOr:
    return 3;
  case Punct::kXor:
    return 4;
  case Punct::kAnd:
    return 5;
  case Punct::kEqual:
  case Punct::kNotEqual:
    return 6;
  case Punct::kLess:
  case Punct::kGreater:
  case Punct::kLessEqual:
  case Punct::kGreaterEqual:
    return 7;
  case Punct::kShiftLeft:
  case Punct::kShiftRight:
    return 8;
  case Punct::kPlus:
  case Punct::kMinus:
    return 9;
  case Punct::kStar:
  case Punct::kSlash:
  case Punct::kPercent:
    return kTermLevel;
  default:
    return 0;
  }
}

ConstValue integer(WideInt value) {
  return {.integer = value};
}
ConstValue real(double value) {
  return {.is_float = true, .real = value};
}

std::string decimal(WideInt value) {
  return value < 0 ? fmt::format("{}", static_cast<int64_t>(value))
                   : fmt::format("{}", static_cast<uint64_t>(value));
}

std::string without_underscores(std::string_view text) {
  std::string plain(text);
  std::erase(plain, '_');
  return plain;
}

/// Decimal numbers without underscores that the type can hold, as most are. Rounded as strtod does.
template <class Float> bool parse_decimal(std::string_view text, Float& value) {
  const char* const end = text.data() + text.size();
  const std::from_chars_result read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end;
}

class Evaluator {
public:
  Evaluator(TokenCursor& cursor, const ConstContext& context)
      : cursor_(cursor), context_(context) {}

  std::optional<ConstValue> conditional() {
    const std::optional<ConstValue> condition = binary(1);
    if (!condition || !cursor_.peek().is(Punct::kQuestion)) {
      return condition;
    }
    const Token& question = cursor_.next();
    if (!enter(question)) {
      return std::nullopt;
    }
    const bool was_live = live_;
    live_ = was_live && condition->is_true();
    const std::optional<ConstValue> first = conditional();
    live_ = was_live;
    if (!first) {
      return std::nullopt;
    }
    if (!cursor_.accept(Punct::kColon)) {
      context_.diags
          .error(cursor_.range(cursor_.peek()),
                 fmt::format("':' expected before {}", quote(cursor_.peek())))
          .note(cursor_.range(question), "it belongs to this '?'");
      return std::nullopt;
    }
    live_ = was_live && !condition->is_true();
    const std::optional<ConstValue> second = conditional();
    live_ = was_live;
    --depth_;
    if (!second) {
      return std::nullopt;
    }
    return alone(condition->is_true() ? *first : *second);
  }

  std::optional<ConstValue> binary(int least_level) {
    std::optional<ConstValue> left = unary();
    while (left) {
      const Token& op = cursor_.peek();
      const int level = level_of(op);
      if (level == 0 || level < least_level) {
        break;
      }
      cursor_.next();
      const bool was_live = live_;
      if (op.is(Punct::kLogicalAnd)) {
        live_ = was_live && left->is_true();
      } else if (op.is(Punct::kLogicalOr)) {
        live_ = was_live && !left->is_true();
      }
      const std::optional<ConstValue> right = binary(level + 1);
      live_ = was_live;
      if (!right) {
        return std::nullopt;
      }
      left = apply(op, *left, *right);
    }
    return left;
  }

  /// A constant that ends with its token.
  std::optional<ConstValue> single() { return unary(); }

private:
  bool enter(const Token& token) {
    if (++depth_ <= kMaxDepth) {
      return true;
    }
    context_.diags
        .error(cursor_.range(token),
               fmt::format("expression nested over {} levels deep", kMaxDepth))
        .advise("name parts of it with .equ");
    return false;
  }

  // A computed value is no literal any more.
  static ConstValue alone(ConstValue value) {
    value.literal = nullptr;
    return value;
  }

  std::optional<ConstValue> unary() {
    const Token& token = cursor_.peek();
    const bool is_operator = token.is(Punct::kMinus) || token.is(Punct::kPlus) ||
                             token.is(Punct::kTilde) || token.is(Punct::kNot);
    if (!is_operator) {
      return primary();
    }
    cursor_.next();
    if (!enter(token)) {
      return std::nullopt;
    }
    const std::optional<ConstValue> value = unary();
    --depth_;
    if (!value) {
      return std::nullopt;
    }
    switch (token.punct) {
    case Punct::kMinus: {
      if (value->is_float) {
        ConstValue negated = real(-value->real);
        negated.literal = value->literal;
        negated.is_negated_literal = !value->is_negated_literal;
        return negated;
      }
      return checked(token, -value->integer);
    }
    case Punct::kPlus:
      return value;
    case Punct::kNot:
      return integer(value->is_true() ? 0 : 1);
    default:
      return value->is_float ? refuse_float(token) : checked(token, ~value->integer);
    }
  }

  std::optional<ConstValue> primary() {
    const Token& token = cursor_.peek();
    switch (token.kind) {
    case TokenKind::kInteger: {
      ConstValue value = integer(static_cast<WideInt>(token.value));
      value.literal = &cursor_.next();
      return value;
    }
    case TokenKind::kFloat: {
      ConstValue value = real(parse_double(token.text));
      if (std::isinf(value.real)) {
        context_.diags
            .error(cursor_.range(token),
                   fmt::format("constant {} does not fit any float type", token.text))
            .expect("at most 3.4e38 in size for f32, 65504 for f16")
            .advise("infinity is written inf");
        return std::nullopt;
      }
      value.literal = &cursor_.next();
      return value;
    }
    case TokenKind::kBitsF32: {
      ConstValue value =
          real(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(token.value))));
      value.literal = &cursor_.next();
      return value;
    }
    case TokenKind::kBits16: {
      ConstValue value = real(0);
      value.literal = &cursor_.next(); // what it means depends on the operand's type
      return value;
    }
    case TokenKind::kWord:
      return name(token);
    case TokenKind::kBad: {
      const LexFaultText text = describe_fault(token);
      context_.diags.error(cursor_.range(token), text.message).advise(text.help);
      return std::nullopt;
    }
    default:
      break;
    }
    if (token.is(Punct::kOpenParen)) {
      cursor_.next();
      if (!enter(token)) {
        return std::nullopt;
      }
      const std::optional<ConstValue> value = conditional();
      --depth_;
      if (!value) {
        return std::nullopt;
      }
      if (!cursor_.accept(Punct::kCloseParen)) {
        context_.diags
            .error(cursor_.range(cursor_.peek()),
                   fmt::format("')' expected before {}", quote(cursor_.peek())))
            .note(cursor_.range(token), "to close this '('");
        return std::nullopt;
      }
      return value;
    }
    context_.diags
        .error(cursor_.range(token), fmt::format("a constant is missing before {}", quote(token)))
        .expect("a number, the name of a constant, or a parenthesis");
    return std::nullopt;
  }

  std::optional<ConstValue> name(const Token& token) {
    if (const ConstNames::Entry* entry = context_.names.find(token.text)) {
      cursor_.next();
      return entry->value;
    }
    if (token.text == "inf" || token.text == "nan") {
      ConstValue value = real(token.text == "inf" ? HUGE_VAL : std::nan(""));
      value.literal = &cursor_.next();
      return value;
    }
    const std::string kind =
        context_.describe_name ? context_.describe_name(token.text) : std::string();
    if (!kind.empty()) {
      context_.diags
          .error(cursor_.range(token), fmt::format("'{}' is {}, not a constant", token.text, kind))
          .expect("a constant expression");
      return std::nullopt;
    }
    const std::vector<std::string_view> names = context_.names.names();
    isa::Diagnostic& error = context_.diags.error(
        cursor_.range(token),
        fmt::format("unknown constant '{}'{}", token.text, isa::did_you_mean(token.text, names)));
    if (const auto nearest = isa::nearest_name(token.text, names)) {
      error.replace(error.range, std::string(*nearest));
    } else {
      error.advise(fmt::format("define it before this line: .equ {}, VALUE", token.text));
    }
    return std::nullopt;
  }

  std::optional<ConstValue> refuse_float(const Token& op) {
    context_.diags
        .error(cursor_.range(op), fmt::format("operator '{}' on a float constant", op.text))
        .expect("integers on both sides");
    return std::nullopt;
  }

  // In a part that does not count (`0 && 1/0`) an error is no error.
  std::optional<ConstValue> complain(const Token& op, std::string message, std::string help) {
    if (!live_) {
      return integer(0);
    }
    context_.diags.error(cursor_.range(op), std::move(message)).advise(std::move(help));
    return std::nullopt;
  }

  std::optional<ConstValue> checked(const Token& op, WideInt value) {
    if (value < kLeastInteger || value > kGreatestInteger) {
      return complain(op,
                      fmt::format("the result of '{}' does not fit 64 bits", op.text),
                      "constants lie between -2^63 and 2^64-1");
    }
    return integer(value);
  }

  std::optional<ConstValue> apply(const Token& op, const ConstValue& a, const ConstValue& b) {
    if (a.is_float || b.is_float) {
      return apply_float(op, a.as_double(), b.as_double());
    }
    const WideInt x = a.integer;
    const WideInt y = b.integer;
    switch (op.punct) {
    case Punct::kPlus:
      return checked(op, x + y);
    case Punct::kMinus:
      return checked(op, x - y);
    case Punct::kStar:
      return multiply(op, x, y);
    case Punct::kSlash:
    case Punct::kPercent:
      if (y == 0) {
        return complain(op, fmt::format("division of {} by zero", decimal(x)), "");
      }
      return checked(op, op.punct == Punct::kSlash ? x / y : x % y);
    case Punct::kShiftLeft:
    case Punct::kShiftRight:
      if (y < 0 || y > 63) {
        return complain(op, fmt::format("shift by {}", decimal(y)), "the count lies in 0..63");
      }
      return op.punct == Punct::kShiftRight ? integer(x >> static_cast<int>(y))
                                            : checked(op, x * (WideInt{1} << static_cast<int>(y)));
    case Punct::kAnd:
      return integer(x & y);
    case Punct::kOr:
      return checked(op, x | y);
    case Punct::kXor:
      return checked(op, x ^ y);
    default:
      break;
    }
    return compare(op, x, y, a.is_true(), b.is_true());
  }

  // Both factors are below 2^65 in size, so only the product of two large ones can pass 2^127.
  std::optional<ConstValue> multiply(const Token& op, WideInt x, WideInt y) {
    const auto size = [](WideInt v) { return v < 0 ? -v : v; };
    if (x != 0 && size(y) > (WideInt{1} << 64) / size(x)) {
      return checked(op, kGreatestInteger + 1);
    }
    return checked(op, x * y);
  }

  /// Infinity comes of inf and of a division by zero, and never of two finite constants unseen.
  std::optional<ConstValue> finite(const Token& op, double x, double y, double result) {
    if (std::isinf(result) && std::isfinite(x) && std::isfinite(y)) {
      context_.diags
          .error(cursor_.range(op),
                 fmt::format("{} {} {} does not fit any float type", x, op.text, y))
          .expect("at most 3.4e38 in size for f32, 65504 for f16")
          .advise("infinity is written inf");
      return std::nullopt;
    }
    return real(result);
  }

  std::optional<ConstValue> apply_float(const Token& op, double x, double y) {
    switch (op.punct) {
    case Punct::kPlus:
      return finite(op, x, y, x + y);
    case Punct::kMinus:
      return finite(op, x, y, x - y);
    case Punct::kStar:
      return finite(op, x, y, x * y);
    case Punct::kSlash:
      return y == 0 ? real(x / y) : finite(op, x, y, x / y);
    case Punct::kPercent:
    case Punct::kShiftLeft:
    case Punct::kShiftRight:
    case Punct::kAnd:
    case Punct::kOr:
    case Punct::kXor:
      return refuse_float(op);
    default:
      return compare(op, x, y, x != 0, y != 0);
    }
  }

  template <class T> static ConstValue compare(const Token& op, T x, T y, bool a, bool b) {
    switch (op.punct) {
    case Punct::kEqual:
      return integer(x == y ? 1 : 0);
    case Punct::kNotEqual:
      return integer(x != y ? 1 : 0);
    case Punct::kLess:
      return integer(x < y ? 1 : 0);
    case Punct::kLessEqual:
      return integer(x <= y ? 1 : 0);
    case Punct::kGreater:
      return integer(x > y ? 1 : 0);
    case Punct::kGreaterEqual:
      return integer(x >= y ? 1 : 0);
    case Punct::kLogicalAnd:
      return integer(a && b ? 1 : 0);
    default:
      return integer(a || b ? 1 : 0);
    }
  }

  TokenCursor& cursor_;
  const ConstContext& context_;
  int depth_ = 0;
  bool live_ = true;
};

} // namespace

std::string to_string(const ConstValue& value) {
  return value.is_float ? fmt::format("{}", value.real) : decimal(value.integer);
}

bool ConstNames::add(std::string_view name, const ConstValue& value, isa::SourceRange range) {
  Entry entry = {value, range};
  entry.value.literal = nullptr; // its token dies with its line
  return entries_.emplace(name, entry).second;
}

std::vector<std::string_view> ConstNames::names() const {
  std::vector<std::string_view> names;
  names.reserve(entries_.size());
  for (const auto& entry : entries_) {
    names.push_back(entry.first);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string quote(const Token& token) {
  if (token.kind == TokenKind::kEnd) {
    return "the end of the line";
  }
  constexpr size_t kShown = 40;
  return token.text.size() <= kShown ? fmt::format("'{}'", token.text)
                                     : fmt::format("'{}...'", token.text.substr(0, kShown));
}

std::optional<ConstValue>
evaluate(TokenCursor& cursor, const ConstContext& context, ExprLevel level) {
  Evaluator evaluator(cursor, context);
  const Token& after = cursor.peek_next();
  if (after.kind == TokenKind::kEnd || after.is(Punct::kComma) || after.is(Punct::kCloseBracket)) {
    return evaluator.single(); // as most constants are
  }
  return level == ExprLevel::kFull ? evaluator.conditional() : evaluator.binary(kTermLevel);
}

bool starts_expression(const Token& token) {
  switch (token.kind) {
  case TokenKind::kInteger:
  case TokenKind::kFloat:
  case TokenKind::kBitsF32:
  case TokenKind::kBits16:
  case TokenKind::kWord:
    return true;
  default:
    return token.is(Punct::kMinus) || token.is(Punct::kPlus) || token.is(Punct::kTilde) ||
           token.is(Punct::kNot) || token.is(Punct::kOpenParen);
  }
}

double parse_double(std::string_view text) {
  double value = 0;
  return parse_decimal(text, value) ? value
                                    : std::strtod(without_underscores(text).c_str(), nullptr);
}

float parse_float(std::string_view text) {
  float value = 0;
  return parse_decimal(text, value) ? value
                                    : std::strtof(without_underscores(text).c_str(), nullptr);
}

} // namespace pto::as
