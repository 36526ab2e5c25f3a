// SPDX-License-Identifier: Apache-2.0
// Includes, macros, conditionals and constants: which lines come out, and what is reported.
#include "assembler/preprocess.h"
#include "isa/diag.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

using namespace pto;

namespace {

struct Preprocessed {
  std::vector<std::string> lines; // tokens joined by blanks
  std::vector<uint32_t> numbers;  // where each stands, of the outermost macro call
  std::string messages;
};

Preprocessed preprocess(const std::string& text,
                        as::PreprocessOptions options = {},
                        const std::map<std::string, std::string>& files = {}) {
  options.read_file = [&](const std::string& path,
                          std::string& error) -> std::optional<std::string> {
    const auto found = files.find(path);
    if (found == files.end()) {
      error = "no file " + path;
      return std::nullopt;
    }
    return found->second;
  };
  isa::Diagnostics diags;
  const isa::SourceFile& file = diags.add_source("t.pto", text);
  as::ConstNames names;
  as::Preprocessor preprocessor(file, options, names, diags);
  Preprocessed out;
  as::Line line;
  while (preprocessor.next(line)) {
    std::string joined;
    for (const as::Token* token = line.tokens; token->kind != as::TokenKind::kEnd; ++token) {
      joined += (joined.empty() ? "" : " ") + std::string(token->text);
    }
    out.lines.push_back(joined);
    out.numbers.push_back(line.line);
  }
  out.messages = isa::render(diags);
  return out;
}

using Lines = std::vector<std::string>;

} // namespace

TEST_CASE("a macro's lines take its arguments and stand at the call") {
  const Preprocessed out = preprocess(".macro inc reg, by=1\n"
                                      "  add.u32 \\reg, \\reg, \\by\n"
                                      "l\\@:\n"
                                      ".endm\n"
                                      "inc r1\n"
                                      "inc r2, 5\n");
  CHECK(out.messages == "");
  CHECK(out.lines == Lines{"add.u32 r1 , r1 , 1", "l0 :", "add.u32 r2 , r2 , 5", "l1 :"});
  CHECK(out.numbers == std::vector<uint32_t>{5, 5, 6, 6});
}

TEST_CASE("a label before a macro call is a line of its own, before the expansion") {
  const Preprocessed out = preprocess(".macro two\n nop\n nop\n.endm\nhere: two\n");
  CHECK(out.lines == Lines{"here :", "nop", "nop"});
}

TEST_CASE("strings and comments of a macro stay as they are") {
  const Preprocessed out =
      preprocess(".macro say x\n print \"\\x %d\", \\x // \\x\n.endm\nsay r3\n");
  CHECK(out.lines == Lines{"print \"\\x %d\" , r3"});
}

TEST_CASE("conditionals choose one part and nest; what is skipped is not judged") {
  const std::string text = ".if N > 2\n a\n.elseif N == 2\n b\n.if 0\n c\n.else\n d\n.endif\n"
                           ".else\n .if 1 / 0\n e\n .endif\n.endif\n";
  CHECK(preprocess(text, {.defines = {"N=3"}}).lines == Lines{"a"});
  CHECK(preprocess(text, {.defines = {"N=2"}}).lines == Lines{"b", "d"});
  const Preprocessed none = preprocess(text, {.defines = {"N=1"}});
  CHECK(none.lines.empty()); // reported where it is read, and taken for false
  CHECK(none.messages.find("division of 1 by zero") != std::string::npos);
}

TEST_CASE("includes are searched beside the including file, then in the folders of -I") {
  const Preprocessed out =
      preprocess(".include \"lib.inc\"\nmain\n",
                 {.include_dirs = {"inc"}},
                 {{"inc/lib.inc", "lib\n.include \"deep.inc\"\n"}, {"inc/deep.inc", "deep\n"}});
  CHECK(out.messages == "");
  CHECK(out.lines == Lines{"lib", "deep", "main"});
}

TEST_CASE("limits: nesting and size end with a message, never a hang") {
  const Preprocessed nested = preprocess(".macro m\nm\n.endm\nm\n");
  CHECK(nested.messages.find("nested over 64 levels") != std::string::npos);
  const Preprocessed huge =
      preprocess(".macro twice x\n\\x\n\\x\n.endm\ntwice nop\n", {.max_bytes = 64});
  CHECK(huge.messages.find("64") != std::string::npos);
}

TEST_CASE("what is never closed is named at its opening") {
  CHECK(preprocess(".if 1\nnop\n").messages.find("never closed") != std::string::npos);
  CHECK(preprocess(".macro m\nnop\n").messages.find("macro") != std::string::npos);
  CHECK(preprocess(".endif\n").messages.find(".endif") != std::string::npos);
  CHECK(preprocess(".macro add x\n.endm\n").messages.find("name of an instruction") !=
        std::string::npos);
}
