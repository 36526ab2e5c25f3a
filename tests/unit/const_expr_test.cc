// SPDX-License-Identifier: Apache-2.0
// Tokens and constant expressions.
#include "assembler/const_expr.h"
#include "assembler/lexer.h"

#include <doctest/doctest.h>

using namespace pto;

namespace {

std::vector<as::TokenKind> kinds(std::string text) {
  const isa::SourceFile file("t", std::move(text));
  as::Lexer lexer(file);
  std::vector<as::Token> tokens;
  std::vector<as::TokenKind> out;
  while (lexer.next_line(tokens)) {
    for (const as::Token& token : tokens) {
      out.push_back(token.kind);
    }
  }
  return out;
}

// Value as text, or "error: <column> <message>".
std::string eval(const std::string& text) {
  isa::Diagnostics diags;
  const isa::SourceFile& file = diags.add_source("t", text);
  as::Lexer lexer(file);
  std::vector<as::Token> tokens;
  REQUIRE(lexer.next_line(tokens));
  as::TokenCursor cursor(file, tokens.data());
  const as::ConstNames names;
  const auto value = as::evaluate(cursor, {names, diags});
  if (!value) {
    const isa::Diagnostic& error = diags.all().at(0);
    return "error: " + std::to_string(file.locate(error.range.offset).column) + " " + error.message;
  }
  CHECK(cursor.at_end());
  return as::to_string(*value);
}

} // namespace

TEST_CASE("lines become tokens; comments and blank lines vanish") {
  using enum as::TokenKind;
  CHECK(kinds("// x\n\n  add.u32 r1, %lane // y\n") ==
        std::vector{kWord, kWord, kPunct, kSpecial, kEnd});
  CHECK(kinds("a /* b\n c */ d") == std::vector{kWord, kEnd, kWord, kEnd});
  CHECK(kinds("1 1.5 0f3F800000 0h3C00 \"s\\\"t\"") ==
        std::vector{kInteger, kFloat, kBitsF32, kBits16, kString, kEnd});
  CHECK(kinds("\xEF\xBB\xBF"
              "a") == std::vector{kWord, kEnd});
  CHECK(kinds("\"open\n") == std::vector{kBad, kEnd});
  CHECK(kinds("").empty());
  CHECK(kinds("a / b /* c */ // d\n/ // e") ==
        std::vector{kWord, kPunct, kWord, kEnd, kPunct, kEnd});
  CHECK(kinds(std::string("a\0b\n", 4)) == std::vector{kWord, kBad, kWord, kEnd});
}

TEST_CASE("precedence and associativity are those of C") {
  CHECK(eval("2 + 3 * 4") == "14");
  CHECK(eval("10 - 4 - 3") == "3");
  CHECK(eval("1 << 2 + 1") == "8");
  CHECK(eval("1 | 2 ^ 3 & 2") == "1");
  CHECK(eval("1 == 1 & 2") == "0");
  CHECK(eval("-7 / 2") == "-3");
  CHECK(eval("-7 % 3") == "-1");
  CHECK(eval("1 ? 2 : 0 ? 3 : 4") == "2");
  CHECK(eval("!0 + ~0") == "0");
  CHECK(eval("(1 + 2) * 3") == "9");
  CHECK(eval("-8 >> 1") == "-4");
}

TEST_CASE("integers are exact over both 64-bit ranges") {
  CHECK(eval("0xFFFFFFFFFFFFFFFF") == "18446744073709551615");
  CHECK(eval("-9223372036854775808") == "-9223372036854775808");
  CHECK(eval("1 << 63") == "9223372036854775808");
  CHECK(eval("0xFFFFFFFFFFFFFFFF + 1") == "error: 20 the result of '+' does not fit 64 bits");
  CHECK(eval("-9223372036854775808 - 1").find("error: 22") == 0);
  CHECK(eval("0xFFFFFFFFFFFFFFFF * 0xFFFFFFFFFFFFFFFF").find("error: 20") == 0);
  CHECK(eval("1 << 64") == "error: 3 shift by 64");
  CHECK(eval("18446744073709551615") == "18446744073709551615");
  CHECK(kinds("18446744073709551616") == std::vector{as::TokenKind::kBad, as::TokenKind::kEnd});
  CHECK(kinds("0x1_0000_0000_0000_0000") == std::vector{as::TokenKind::kBad, as::TokenKind::kEnd});
  CHECK(eval("5 / 0") == "error: 3 division of 5 by zero");
  CHECK(eval("5 % (1 - 1)") == "error: 3 division of 5 by zero");
}

TEST_CASE("the side that does not count is not evaluated") {
  CHECK(eval("0 && 1 / 0") == "0");
  CHECK(eval("1 || 1 / 0") == "1");
  CHECK(eval("1 ? 2 : 1 / 0") == "2");
  CHECK(eval("0 ? 1 / 0 : 3") == "3");
}

TEST_CASE("floats") {
  CHECK(eval("1.0 / 4") == "0.25");
  CHECK(eval("1_000.2_5") == "1000.25");
  CHECK(eval("4.9e-324") == "5e-324");
  CHECK(eval("1e-400") == "0");
  CHECK(eval("1e400") == "error: 1 constant 1e400 does not fit any float type");
  CHECK(eval("9007199254740993.0") == "9007199254740992"); // a tie goes to even
  CHECK(eval("1.5 > 1") == "1");
  CHECK(eval("0x1.8p1") == "3");
  CHECK(eval("1.5 << 1") == "error: 5 operator '<<' on a float constant");
}

TEST_CASE("infinity comes of inf and of a division by zero only") {
  CHECK(eval("inf") == "inf");
  CHECK(eval("-inf") == "-inf");
  CHECK(eval("inf + 1") == "inf");
  CHECK(eval("1.0 / 0.0") == "inf");
  CHECK(eval("1e308") == "1e+308");
  CHECK(eval("1e400") == "error: 1 constant 1e400 does not fit any float type");
  CHECK(eval("1.0 - 1e400") == "error: 7 constant 1e400 does not fit any float type");
  CHECK(eval("1e308 + 1e308") == "error: 7 1e+308 + 1e+308 does not fit any float type");
  CHECK(eval("1e308 * -10") == "error: 7 1e+308 * -10 does not fit any float type");
  CHECK(eval("1e308 / 0.01") == "error: 7 1e+308 / 0.01 does not fit any float type");
}

TEST_CASE("deep nesting ends with a message") {
  CHECK(eval(std::string(100000, '(')).find("expression nested over") != std::string::npos);
  CHECK(eval(std::string(100000, '-') + "1").find("expression nested over") != std::string::npos);
}
