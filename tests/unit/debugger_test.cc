// SPDX-License-Identifier: Apache-2.0
// The command language: its table, its expressions, and what it says about nonsense.
#include "debugger/command.h"
#include "debugger/setting.h"
#include "session_fixture.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <random>
#include <set>
#include <unistd.h>

using namespace pto;
using namespace pto::dbg;

namespace {

/// A debugger over the loop kernel, in a file that goes with it.
struct PromptFixture {
  PromptFixture() : path(fmt::format("/tmp/debugger_test_{}.pto", ::getpid())) {
    std::ofstream(path) << kLoopKernel;
    TargetOptions target;
    target.file = path;
    target.grid = {2, 1, 1};
    target.block = {64, 1, 1};
    target.args = {"o=zeros:u32[128]", "n=3"};
    debugger = std::make_unique<Debugger>(target);
    const CommandResult opened = debugger->open();
    REQUIRE_MESSAGE(opened.is_good, opened.error);
  }
  ~PromptFixture() { std::remove(path.c_str()); }
  PromptFixture(const PromptFixture&) = delete;
  PromptFixture& operator=(const PromptFixture&) = delete;

  std::string text(std::string_view line) {
    const CommandResult result = debugger->execute(line);
    return result.is_good ? result.text : "error: " + result.error;
  }

  std::string path;
  std::unique_ptr<Debugger> debugger;
};

} // namespace

TEST_CASE("every command has a summary, an example that finds it, and a name of its own") {
  std::set<std::string> spellings;
  for (const Command* command : all_commands()) {
    CAPTURE(command->name);
    CHECK_FALSE(command->summary.empty());
    CHECK(command->summary.ends_with('.'));
    CHECK_FALSE(command->usage.empty());
    CHECK((command->run != nullptr));
    CHECK(spellings.insert(std::string(command->name)).second);
    std::string aliases(command->aliases);
    size_t begin = 0;
    while (begin < aliases.size()) {
      const size_t end = std::min(aliases.find(", ", begin), aliases.size());
      CHECK(spellings.insert(aliases.substr(begin, end - begin)).second);
      begin = end + 2;
    }
    std::string error;
    const FoundCommand found = find_command(command->example, error);
    CHECK_MESSAGE(found.command == command, error);
  }
}

TEST_CASE("every spelling and every unique prefix finds its row") {
  for (const Command* command : all_commands()) {
    std::string error;
    CHECK(find_command(command->name, error).command == command);
  }
  std::string error;
  CHECK(find_command("reverse-c", error).command->name == "reverse-continue");
  CHECK(find_command(translate("i war"), error).command->name == "info warps");
  CHECK(find_command("info b", error).command->name == "info breakpoints");
  CHECK(find_command("info r", error).command->name == "info registers");
  CHECK(find_command(translate("i r r3"), error).arguments == "r3");
  CHECK(find_command("p/x $r0", error).arguments == "/x $r0");
  CHECK(find_command("delete 3", error).command->name == "delete");
  CHECK(find_command("delete checkpoint 3", error).command->name == "delete checkpoint");
  CHECK(find_command("re", error).command == nullptr);
  CHECK(error.find("ambiguous") != std::string::npos);
  CHECK(find_command("stpe", error).command == nullptr);
  CHECK(error.find("did you mean 'step'") != std::string::npos);
  CHECK(find_command("info", error).command == nullptr);
  CHECK(error.find("info warps") == std::string::npos);
  CHECK(error.find("warps") != std::string::npos);
}

TEST_CASE("every setting can be shown and refuses nonsense without changing") {
  PromptFixture prompt;
  for (const Setting& setting : all_settings()) {
    CAPTURE(setting.name);
    const std::string before = setting.show(*prompt.debugger);
    CHECK_FALSE(prompt.debugger->execute(fmt::format("set {} ?!", setting.name)).is_good);
    CHECK(setting.show(*prompt.debugger) == before);
    CHECK(prompt.text(fmt::format("show {}", setting.name)).find(before) != std::string::npos);
  }
}

TEST_CASE("completion offers what may stand there") {
  PromptFixture prompt;
  const auto words = [&](std::string_view line) { return prompt.debugger->complete(line); };
  using Words = std::vector<std::string>;
  CHECK(words("reverse-w") == Words{"reverse-watch"});
  CHECK(words("info pre") == Words{"predicates"});
  CHECK(words("break ag") == Words{"again"});
  CHECK(words("b acc") == Words{"accumulate"});
  CHECK(words("print $r6") == Words{"$r6"});
  CHECK(words("print bu") == Words{"buf"});
  CHECK(words("break again if %ctaid.") == Words{"%ctaid.x", "%ctaid.y", "%ctaid.z"});
  CHECK(words("catch na") == Words{"nan"});
  CHECK(words("set lanes") == Words{"lanes-shown"});
  CHECK(words("help fm") == Words{"fma"});
  CHECK(words("nonsense x").empty());
}

TEST_CASE("a temporary breakpoint runs its commands once") {
  PromptFixture prompt;
  for (const std::string_view line : {"tbreak again", "commands", "echo here", "end"}) {
    REQUIRE(prompt.debugger->execute(line).is_good);
  }
  CHECK(prompt.text("run").ends_with("here\n"));
  CHECK(prompt.text("info breakpoints").starts_with("No breakpoints"));
  CHECK(prompt.text("continue").find("here") == std::string::npos);
}

TEST_CASE("expressions never hang or crash, whatever the text") {
  PromptFixture prompt;
  REQUIRE(prompt.debugger->execute("start").is_good);
  const std::string deep(5000, '(');
  CHECK(prompt.text("print " + deep).find("deeply") != std::string::npos);
  CHECK(prompt.text("print " + std::string(5000, '-') + "1").find("error") == 0);
  std::mt19937 random(1);
  static constexpr std::string_view kPieces[] = {
      "$r0", "$p1", "n",   "o",   "buf",  "[",      "]",   "(",    ")",
      "@",   "*",   "+",   "-",   "/",    "%",      "<<",  "==",   "&&",
      "?",   ":",   "1",   "2.5", "$",    "$$1",    "hbm", "l1:8", "!",
      "~",   "0x",  "%x",  "",    "(u8)", "(f16*)", "&",   "1e5",  "99999999999999999999",
      "$r",  "@*",  "@3-9"};
  for (int i = 0; i < 20000; ++i) {
    std::string text = "print ";
    const size_t count = 1 + random() % 8;
    for (size_t k = 0; k < count; ++k) {
      text += kPieces[random() % std::size(kPieces)];
    }
    const CommandResult result = prompt.debugger->execute(text);
    REQUIRE((result.is_good ? !result.text.empty() : !result.error.empty()));
  }
}

TEST_CASE("arithmetic is C's") {
  PromptFixture prompt;
  REQUIRE(prompt.debugger->execute("start").is_good);
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"1 + 2 * 3", "7"},
      {"(1 + 2) * 3", "9"},
      {"7 / 2", "3"},
      {"-7 / 2", "-3"},
      {"-7 % 4", "-3"},
      {"7 / 2.0", "3.5"},
      {"1 << 3 | 1", "9"},
      {"6 & 3 == 3", "0"},
      {"1 < 2 && 2 < 1 || 1", "1"},
      {"~5", "-6"},
      {"!5", "0"},
      {"1 ? 2 : 3", "2"},
      {"0x8000000000000000 >> 63", "1"},
      {"-1 >> 63", "-1"},
      {"9223372036854775807 + 1", "-9223372036854775808"},
      {"(u8) 300", "44"},
      {"(s8) 200", "-56"},
      {"(f16) 0.1", "0.099975586"}, // the nearest f16,
      {"(f32) 1 / 3", "0.3333333333333333"},
      {"1e3 == 1000", "1"},
      {"10 - 4 - 3", "3"},
      {"n * 2", "6"},
  };
  for (const auto& one : cases) {
    CAPTURE(one.first);
    const std::string said = prompt.text(fmt::format("output {}", one.first));
    CHECK(said == one.second);
  }
}

TEST_CASE("stepping over the corpus of small programs repeats a free run, forwards and back") {
  // Random walks: forward and back by any amount end in the state of a free run.
  for (const std::string_view machine : {"reference", "ascend950"}) {
    SessionFixture fixture(kLoopKernel, machine);
    const uint64_t base = fixture.words(std::vector<uint32_t>(256), "o");
    fixture.scalar(4);
    std::mt19937 random(7);
    uint64_t known = 0; // cycles of the rounds before
    for (int round = 0; round < 6; ++round) {
      const std::vector<uint32_t> zeros(256);
      REQUIRE(fixture.machine.hbm.write(
          base, {reinterpret_cast<const uint8_t*>(zeros.data()), zeros.size() * 4}));
      auto session = fixture.open({2, 1, 1}, {128, 1, 1});
      for (int i = 0; i < 60; ++i) {
        const uint64_t n = 1 + random() % 5;
        switch (random() % 6) {
        case 0:
          (void)session->reverse(Until::step(n));
          break;
        case 1:
          (void)session->reverse(Until::step_warp(n));
          break;
        case 2:
          (void)session->go_to_position(random() % 700);
          break;
        case 3:
          (void)session->go_to_cycle(random() % 300);
          break;
        case 4:
          (void)session->resume(Until::step(n));
          break;
        default:
          (void)session->resume(Until::step_warp(n));
        }
      }
      (void)session->resume(Until::stop());
      REQUIRE(session->is_finished());
      const std::vector<uint32_t> o = fixture.read(base);
      for (uint32_t i = 0; i < o.size(); ++i) {
        REQUIRE(o[i] == loop_sum(i % 128, 4));
      }
      const uint64_t now = session->timed_result()->counters.cycles;
      CHECK((known == 0 || known == now));
      known = now;
    }
  }
}
