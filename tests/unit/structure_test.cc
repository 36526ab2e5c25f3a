// SPDX-License-Identifier: Apache-2.0
// Structure recovered from branches: shapes that kernels have, and random graphs, whose statements
// are walked side by side with the blocks.
#include "assembler/assemble.h"
#include "isa/insn_desc.h"
#include "runtime/npu/structure.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <random>

namespace pto::rt {
namespace {

using Kind = Statement::Kind;

isa::Object assemble(const std::string& body) {
  isa::Diagnostics diags({.no_warnings = true});
  auto object = as::assemble_text(
      "t.pto", ".kernel k(u32 n)\n" + body + "\n    exit\n.end\n", {.run_lints = false}, diags);
  REQUIRE_MESSAGE(object.has_value(), isa::render(diags) << body);
  return std::move(*object);
}

/// "0 if{1 break} loop{2}": blocks by number, `!` where a condition is negated.
std::string text_of(const std::vector<Statement>& list) {
  std::string out;
  for (const Statement& s : list) {
    out += out.empty() ? "" : " ";
    switch (s.kind) {
    case Kind::kBlock:
      out += fmt::format("{}", s.block);
      break;
    case Kind::kIf:
      out += fmt::format("if{}({})", s.negated ? "!" : "", text_of(s.body));
      out += s.otherwise.empty() ? "" : fmt::format("else({})", text_of(s.otherwise));
      break;
    case Kind::kLoop:
      out += fmt::format("loop({})", text_of(s.body));
      break;
    case Kind::kBreak:
      out += "break";
      break;
    case Kind::kContinue:
      out += "continue";
      break;
    case Kind::kGoto:
      out += fmt::format("goto{}{}", s.is_continue ? "+" : "", s.block);
      break;
    case Kind::kLabel:
      out += fmt::format("label{}{}", s.is_continue ? "+" : "", s.block);
      break;
    }
  }
  return out;
}

std::string structure_of(const std::string& body) {
  const isa::Object object = assemble(body);
  const isa::Cfg cfg(object, object.functions[0]);
  const Structure structure = find_structure(cfg, object, object.functions[0]);
  return structure.why_not.empty() ? text_of(structure.statements) : structure.why_not;
}

TEST_CASE("shapes that kernels have") {
  CHECK(structure_of("nop") == "0");
  CHECK(structure_of("@p0 bra out\nnop\nout:") == "0 if!(1) 2");
  CHECK(structure_of("@p0 bra other\nnop\nbra out\nother:\nnop\nout:") == "0 if!(1)else(2) 3");
  CHECK(structure_of("nop\nnext:\nnop\n@p0 bra next") == "0 loop(1 if!(break)) 2");
  // A loop that is left in the middle, by a jump to a jump, and goes on from the middle.
  CHECK(
      structure_of("next:\n@p0 bra far\nnop\n@p1 bra next\nnop\nbra next\nfar:\nbra out\nnop\nout:")
          .find("goto") == std::string::npos);
  // An inner loop that leaves the outer one has no word for it.
  CHECK(
      structure_of("outer:\nnop\ninner:\nnop\n@p0 bra out\n@p1 bra inner\n@p2 bra outer\nnop\nout:")
          .find("goto") != std::string::npos);
  CHECK(structure_of("@p0 bra middle\ntop:\nnop\nmiddle:\nnop\n@p1 bra top")
            .find("a loop with two ways in") != std::string::npos);
}

TEST_CASE("a chain of branches does not nest without end") {
  std::string chain;
  for (int i = 0; i < 5000; ++i) {
    chain += fmt::format("@p0 bra l{0}\nnop\nl{0}:\nnop\n", i);
  }
  const isa::Object object = assemble(chain);
  const isa::Cfg cfg(object, object.functions[0]);
  CHECK(find_structure(cfg, object, object.functions[0]).why_not.empty());
  std::string nest;
  for (int i = 0; i < 100; ++i) {
    nest += "@p0 bra out\nnop\n@p1 exit\n";
  }
  CHECK(structure_of(nest + "out:\nnop\nbra last\nlast:").find("deeper") == std::string::npos);
}

/// Executes statements against the graph: at each block the next is chosen by a coin that both
/// sides share, so the sequence of blocks must be a path of the graph that the coins pick.
class Walker {
public:
  Walker(const isa::Cfg& cfg, const isa::Object& object, uint32_t seed)
      : cfg_(cfg), object_(object), random_(seed) {}

  /// True if every block that was visited follows from the one before it.
  bool run(const std::vector<Statement>& statements) {
    expected_ = cfg_.order()[0];
    steps_ = 0;
    good_ = true;
    list(statements);
    return good_;
  }

private:
  enum class Flow { kNext, kBreak, kContinue, kGoto, kStop };

  bool is_jump_only(uint32_t block) const {
    const isa::BasicBlock& bounds = cfg_.blocks()[block];
    const isa::Insn& insn = object_.code[bounds.first_pc];
    return bounds.end_pc == bounds.first_pc + 1 && insn.desc->has(isa::kBranch) &&
           !insn.guard.present;
  }

  Flow visit(uint32_t block) {
    for (unsigned i = 0; i < 100 && expected_ != block && is_jump_only(expected_); ++i) {
      expected_ = cfg_.blocks()[expected_].successors[0];
    }
    good_ = good_ && expected_ == block;
    const isa::BasicBlock& bounds = cfg_.blocks()[block];
    if (!good_ || bounds.successor_count == 0 || ++steps_ > 200) {
      return Flow::kStop;
    }
    takes_branch_ = bounds.successor_count == 2 && random_() % 2 == 0;
    expected_ = bounds.successors[bounds.successor_count == 2 && !takes_branch_ ? 1 : 0];
    return Flow::kNext;
  }

  Flow list(const std::vector<Statement>& statements) {
    for (size_t i = 0; i < statements.size(); ++i) {
      Flow flow = one(statements[i]);
      while (flow == Flow::kGoto) { // to a label of this list, else further out
        size_t at = 0;
        while (at < statements.size() &&
               !(statements[at].kind == Kind::kLabel && statements[at].block == target_ &&
                 statements[at].is_continue == to_continue_)) {
          ++at;
        }
        if (at == statements.size()) {
          return flow;
        }
        good_ = good_ && at > i; // forward only
        i = at;
        flow = Flow::kNext;
      }
      if (flow != Flow::kNext) {
        return flow;
      }
    }
    return Flow::kNext;
  }

  Flow one(const Statement& s) {
    switch (s.kind) {
    case Kind::kBlock:
      return visit(s.block);
    case Kind::kIf:
      return takes_branch_ != s.negated ? list(s.body) : list(s.otherwise);
    case Kind::kLoop:
      while (true) {
        const Flow flow = list(s.body);
        if (flow == Flow::kBreak) {
          return Flow::kNext;
        }
        if (flow == Flow::kGoto || flow == Flow::kStop) {
          return flow;
        }
      }
    case Kind::kBreak:
      return Flow::kBreak;
    case Kind::kContinue:
      return Flow::kContinue;
    case Kind::kGoto:
      target_ = s.block;
      to_continue_ = s.is_continue;
      return Flow::kGoto;
    case Kind::kLabel:
      return Flow::kNext;
    }
    return Flow::kStop;
  }

  const isa::Cfg& cfg_;
  const isa::Object& object_;
  std::mt19937 random_;
  uint32_t expected_ = 0;
  uint32_t target_ = 0;
  bool to_continue_ = false;
  bool takes_branch_ = false;
  bool good_ = true;
  unsigned steps_ = 0;
};

TEST_CASE("statements of random graphs go the ways of the graph") {
  std::mt19937 random(7);
  unsigned structured = 0;
  for (unsigned round = 0; round < 400; ++round) {
    const auto labels = static_cast<unsigned>(2 + random() % 9);
    std::string body;
    for (unsigned i = 0; i < labels; ++i) {
      body += fmt::format("l{}:\n", i);
      body += random() % 3 != 0 ? "nop\n" : "";
      const auto kind = random() % 8;
      // Mostly forward, so that many graphs are reducible.
      const auto target = random() % 4 != 0 ? i + random() % (labels - i) : random() % labels;
      body += kind < 5    ? fmt::format("@p0 bra l{}\n", target)
              : kind == 5 ? fmt::format("bra l{}\n", target)
              : kind == 6 ? "@p1 exit\n"
                          : "nop\n";
    }
    const isa::Object object = assemble(body);
    const isa::Cfg cfg(object, object.functions[0]);
    const Structure structure = find_structure(cfg, object, object.functions[0]);
    if (!structure.why_not.empty()) {
      continue;
    }
    ++structured;
    CAPTURE(body);
    CAPTURE(text_of(structure.statements));
    for (unsigned walk = 0; walk < 20; ++walk) {
      REQUIRE(Walker(cfg, object, walk).run(structure.statements));
    }
  }
  CHECK(structured > 200);
}

} // namespace
} // namespace pto::rt
