// SPDX-License-Identifier: Apache-2.0
// Structured control flow of a function: if, else, endless loops, break and continue, recovered
// from its branches, for back ends that write a structured language.
//
// The idea is that of Ramsey, "Beyond Relooper" (ICFP 2022): the dominator tree says what lies
// inside what. A block with one way in stands where that way leads to it; a block where paths meet
// follows the statement of its immediate dominator; a loop header opens a loop around all that it
// dominates and that leads back to it. What leaves a loop stands behind the loop and not in it,
// which keeps the text close to what a person would have written. A jump that is neither the
// natural way on nor a break or continue of the innermost loop becomes a forward goto to a label in
// an enclosing statement list; well-nested sources have none.
//
// Every block is written once, so the text is as long as the program. Irreducible graphs (a loop
// with two ways in) and nests deeper than kMaxNesting have no structure; callers then fall back on
// a loop around a switch.
#pragma once

#include "isa/cfg.h"
#include "isa/object.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pto::rt {

inline constexpr unsigned kMaxNesting = 60; // compilers stop at 256 brackets

struct Statement {
  enum class Kind : uint8_t {
    kBlock,    // the insns of `block`, without a final branch
    kIf,       // on the guard of the branch that ends `block`
    kLoop,     // endless, around `body`; `block` is its header
    kBreak,    // of the innermost loop
    kContinue, // likewise
    kGoto,  // to the label of `block`; is_continue: to the end of the body of the loop at `block`
    kLabel, // of `block`, or, is_continue, at the end of a loop's body
  };
  Kind kind = Kind::kBlock;
  uint32_t block = 0;
  bool negated = false; // kIf: runs `body` where the guard does not hold
  bool is_continue = false;
  std::vector<Statement> body;
  std::vector<Statement> otherwise; // kIf
};

struct Structure {
  std::vector<Statement> statements;
  std::string why_not; // not empty: there is no structure, for this reason
};

/// The structure of the function whose control flow is `cfg`. Blocks that cannot be reached, or
/// only jump on, are left out.
[[nodiscard]] Structure
find_structure(const isa::Cfg& cfg, const isa::Object& object, const isa::Function& function);

} // namespace pto::rt
