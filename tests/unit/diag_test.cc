// SPDX-License-Identifier: Apache-2.0
// Places, carets, limits, warning switches and the JSON form of diagnostics.
#include "isa/clipped.h"
#include "isa/diag.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace pto::isa;

namespace {

SourceRange find(const SourceFile& file, std::string_view what) {
  const size_t at = file.text().find(what);
  REQUIRE(at != std::string_view::npos);
  return {&file, static_cast<uint32_t>(at), static_cast<uint32_t>(what.size())};
}

} // namespace

TEST_CASE("lines and columns start at one and count characters") {
  const SourceFile file("a.pto", "one\n\ttwo\r\nd\xC3\xA9j\xC3\xA0 vu\n");
  CHECK(file.locate(0).line == 1);
  CHECK(file.locate(0).column == 1);
  CHECK(file.locate(5).line == 2);
  CHECK(file.locate(5).column == 2);
  CHECK(file.line_around(5) == "\ttwo");
  const SourceRange vu = find(file, "vu");
  CHECK(file.locate(vu.offset).line == 3);
  CHECK(file.locate(vu.offset).column == 6);
  CHECK(file.locate(9999).line == 4);
  const SourceFile empty("e", "");
  CHECK(empty.locate(0).line == 1);
  CHECK(empty.line_around(0).empty());
}

TEST_CASE("UTF-8 characters are told from stray bytes") {
  CHECK(utf8_length("a") == 1);
  CHECK(utf8_length("\xC3\xA9") == 2);
  CHECK(utf8_length("\xE2\x82\xAC") == 3);
  CHECK(utf8_length("\xF0\x9F\x98\x80") == 4);
  CHECK(utf8_length("\xC3") == 0);
  CHECK(utf8_length("\x80") == 0);
  CHECK(utf8_length("\xC0\x80") == 0);
  CHECK(utf8_length("\xED\xA0\x80") == 0);
  CHECK(utf8_length("\xF4\x90\x80\x80") == 0);
  CHECK(count_characters("\xC3\xA9\xFFz") == 3);
}

TEST_CASE("an error shows the line, a caret run, the expectation and the fix") {
  Diagnostics diags;
  const SourceFile& file = diags.add_source("k.pto", "    lod.f32 r1, hbm[a]\n");
  diags.error(find(file, "lod"), "unknown instruction 'lod'; did you mean 'load'?")
      .replace(find(file, "lod"), "load")
      .expect("an instruction")
      .note(find(file, "r1"), "the operands start here");
  CHECK(render(diags) == "k.pto:1:5: error: unknown instruction 'lod'; did you mean 'load'?\n"
                         "    lod.f32 r1, hbm[a]\n"
                         "    ^~~\n"
                         "    load\n"
                         "  = expected: an instruction\n"
                         "k.pto:1:13: note: the operands start here\n"
                         "    lod.f32 r1, hbm[a]\n"
                         "            ^~\n");
}

TEST_CASE("carets stand right after tabs, wide characters and bad bytes") {
  Diagnostics diags;
  const SourceFile& tabs = diags.add_source("t", "a\tb\r\n");
  CHECK(render(diags.error(find(tabs, "b"), "m")) == "t:1:3: error: m\n"
                                                     "a       b\n"
                                                     "        ^\n");
  const SourceFile& wide = diags.add_source("w", "\xE6\xBC\xA2 b");
  CHECK(render(diags.error(find(wide, "b"), "m")) == "w:1:3: error: m\n"
                                                     "\xE6\xBC\xA2 b\n"
                                                     "   ^\n");
  const SourceFile& bad = diags.add_source("b", std::string("\xFF\0b", 3));
  CHECK(render(diags.error(find(bad, "b"), "m")) == "b:1:3: error: m\n"
                                                    "<FF><00>b\n"
                                                    "        ^\n");
}

TEST_CASE("a place at the end of the line, the file or in an empty file has a caret") {
  Diagnostics diags;
  const SourceFile& file = diags.add_source("f", "abc\n");
  CHECK(render(diags.error({&file, 3, 0}, "m")) == "f:1:4: error: m\nabc\n   ^\n");
  CHECK(render(diags.error({&file, 4, 0}, "m")) == "f:2:1: error: m\n\n^\n");
  const SourceFile& empty = diags.add_source("e", "");
  CHECK(render(diags.error({&empty, 0, 0}, "m")) == "e:1:1: error: m\n");
  CHECK(render(diags.error({}, "m")) == "error: m\n");
}

TEST_CASE("a long line is cut to a window about the caret") {
  Diagnostics diags;
  const SourceFile& file =
      diags.add_source("f", std::string(5000, 'a') + "HERE" + std::string(5000, 'b'));
  const std::string text = render(diags.error(find(file, "HERE"), "m"), {.width = 60});
  CHECK(text == "f:1:5001: error: m\n"
                "..." +
                    std::string(40, 'a') + "HERE" + std::string(16, 'b') + "...\n" +
                    std::string(43, ' ') + "^~~~\n");
}

TEST_CASE("past the limit errors are counted but not kept") {
  Diagnostics diags({.error_limit = 2});
  const SourceFile& file = diags.add_source("f", "x");
  for (int i = 0; i < 2; ++i) {
    diags.error({&file, 0, 1}, "m");
  }
  CHECK(!diags.is_full());
  diags.error({&file, 0, 1}, "m").expect("never shown");
  CHECK(diags.is_full());
  CHECK(diags.error_count() == 3);
  CHECK(diags.all().size() == 2);
  CHECK(render(diags).find("error: too many errors (2 shown)") != std::string::npos);
}

TEST_CASE("warnings can be disabled and turned into errors by name") {
  const std::vector<std::string_view> names = {"dead-code", "unused-register"};
  DiagnosticOptions options;
  CHECK(apply_warning_switch("no-dead-code", names, options));
  CHECK(apply_warning_switch("error=unused-register", names, options));
  CHECK(!apply_warning_switch("no-such", names, options));
  CHECK(!apply_warning_switch("error=such", names, options));
  Diagnostics diags(options);
  const SourceFile& file = diags.add_source("f", "x");
  diags.warning("dead-code", {&file, 0, 1}, "m");
  CHECK(diags.all().empty());
  CHECK(!diags.has_errors());
  diags.warning("unused-register", {&file, 0, 1}, "m");
  CHECK(diags.has_errors());
  CHECK(render(diags) == "f:1:1: error: m [-Werror=unused-register]\nx\n^\n");

  DiagnosticOptions all;
  CHECK(apply_warning_switch("error", names, all));
  CHECK(all.warnings_as_errors);
  Diagnostics plain;
  CHECK(render(plain.warning("dead-code", {&file, 0, 1}, "m")) ==
        "f:1:1: warning: m [-Wdead-code]\nx\n^\n");
  CHECK(plain.warning_count() == 1);
}

TEST_CASE("includes are shown above and macro calls below the message") {
  Diagnostics diags;
  const SourceFile& top = diags.add_source("top.pto", ".include \"inc.pto\"\n");
  const SourceFile& inc = diags.add_source(std::make_unique<SourceFile>(
      "inc.pto", "m 1\n", SourceFile::Origin::kInclude, find(top, "\"inc.pto\"")));
  const SourceFile& body = diags.add_source(std::make_unique<SourceFile>(
      "inc.pto", "  bad 1\n", SourceFile::Origin::kMacro, find(inc, "m 1"), 7, "m"));
  diags.error(find(body, "bad"), "no");
  CHECK(render(diags) == "in file included from top.pto:1:\n"
                         "inc.pto:7:3: error: no\n"
                         "  bad 1\n"
                         "  ^~~\n"
                         "in file included from top.pto:1:\n"
                         "inc.pto:1:1: note: expanded from macro 'm'\n"
                         "m 1\n"
                         "^~~\n");
}

TEST_CASE("colour marks severity and caret only when asked for") {
  Diagnostics diags;
  const SourceFile& file = diags.add_source("f", "x");
  const std::string text = render(diags.error({&file, 0, 1}, "m"), {.color = true});
  CHECK(text == "\033[1mf:1:1: \033[0m\033[1;31merror: \033[0m\033[1mm\033[0m\nx\n"
                "\033[1;32m^\033[0m\n");
  CHECK(use_color(ColorMode::kAlways, stderr));
  CHECK(!use_color(ColorMode::kNever, stderr));
}

TEST_CASE("the JSON form holds places, fix and notes, and survives bad bytes") {
  Diagnostics diags;
  const SourceFile& file = diags.add_source("k.pto", "  lod \xFF\n");
  diags.error(find(file, "lod"), "unknown 'lod'")
      .replace(find(file, "lod"), "load")
      .note(find(file, "\xFF"), "n");
  const auto json = nlohmann::json::parse(render_json(diags));
  CHECK(json["errors"] == 1);
  CHECK(json["truncated"] == false);
  const auto& entry = json["diagnostics"][0];
  CHECK(entry["severity"] == "error");
  CHECK(entry["file"] == "k.pto");
  CHECK(entry["line"] == 1);
  CHECK(entry["column"] == 3);
  CHECK(entry["end_column"] == 6);
  CHECK(entry["fix"]["text"] == "load");
  CHECK(entry["notes"][0]["column"] == 7);
}

TEST_CASE("long words and texts are clipped, letters stay whole") {
  CHECK(clipped("a word, another\nand a third") == "a word, another\nand a third");
  CHECK(clipped(std::string(300, 'x')) == std::string(300, 'x'));
  const std::string cut = std::string(200, 'x') + "..." + std::string(40, 'x');
  CHECK(clipped(std::string(301, 'x')) == cut);
  CHECK(clipped("unknown '" + std::string(1'000'000, 'x') + "'; did you mean 'y'?") ==
        "unknown '" + std::string(199, 'x') + "..." + std::string(38, 'x') +
            "'; did you mean 'y'?");
  std::string letters;
  for (int i = 0; i < 500; ++i) {
    letters += "\xE2\x82\xAC"; // three bytes: neither 200 nor 40 is a whole number of them
  }
  CHECK(clipped(letters) == letters.substr(0, 198) + "..." + letters.substr(0, 39));
  std::string words;
  for (int i = 0; i < 100'000; ++i) {
    words += "word ";
  }
  CHECK(clipped(words) == words.substr(0, 4000) + "...");
  CHECK(clipped("\x1B[2J\x7F\a\tb\r") == "?[2J??\tb?");
}

TEST_CASE("no form of a diagnostic repeats a long text") {
  const std::string text(1'000'000, 'x');
  Diagnostics diags;
  diags.error({}, text).expect(text).advise(text).note({}, text);
  CHECK(render(diags).size() < 1200);
  CHECK(render_json(diags).size() < 1500);
}
