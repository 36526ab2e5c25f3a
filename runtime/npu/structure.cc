// SPDX-License-Identifier: Apache-2.0
// Natural loops from dominators, and the walk over the dominator tree that writes statements.
#include "runtime/npu/structure.h"

#include "isa/dominators.h"
#include "isa/insn_desc.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pto::rt {

namespace {

using isa::BasicBlock;
using Kind = Statement::Kind;

constexpr uint32_t kUnset = 0xffffffff;
constexpr size_t kMaxJumps = 64;        // from jump to jump
constexpr unsigned kFlatFromDepth = 10; // from here on a skipped side is jumped over by goto

/// What the walk needs to know of the graph, computed once.
class Graph {
public:
  Graph(const isa::Cfg& cfg, const isa::Object& object) : cfg_(cfg) {
    thread_jumps(object);
    find_order();
    find_dominators();
    find_loops();
    place_blocks();
  }

  /// Where the block leads: the branch target first.
  [[nodiscard]] const std::vector<uint32_t>& successors(uint32_t block) const {
    return after_[block];
  }
  [[nodiscard]] uint32_t entry() const { return order_[0]; }
  [[nodiscard]] bool is_back_edge(uint32_t from, uint32_t to) const {
    return number_[to] <= number_[from];
  }
  [[nodiscard]] bool is_header(uint32_t block) const { return is_header_[block]; }
  [[nodiscard]] bool is_inline(uint32_t block) const { return is_inline_[block]; }
  [[nodiscard]] const std::vector<uint32_t>& behind_block(uint32_t block) const {
    return behind_block_[block];
  }
  [[nodiscard]] const std::vector<uint32_t>& behind_loop(uint32_t header) const {
    return behind_loop_[header];
  }
  /// The block that a jump into a loop enters it by, kUnset if every loop has one way in.
  [[nodiscard]] uint32_t irreducible_at() const { return irreducible_at_; }

private:
  // A block that only jumps is no place of its own: edges lead past it, so that a jump to a jump
  // out of a loop is a break.
  void thread_jumps(const isa::Object& object) {
    const std::vector<BasicBlock>& blocks = cfg_.blocks();
    const auto only_jumps = [&](uint32_t block) {
      const isa::Insn& first = object.code[blocks[block].first_pc];
      return blocks[block].end_pc == blocks[block].first_pc + 1 &&
             blocks[block].successor_count == 1 && first.desc->has(isa::kBranch) &&
             !first.guard.present;
    };
    after_.resize(blocks.size());
    for (uint32_t b = 0; b < blocks.size(); ++b) {
      for (unsigned i = 0; i < blocks[b].successor_count; ++i) {
        uint32_t to = blocks[b].successors[i];
        for (size_t steps = 0; steps < kMaxJumps && only_jumps(to); ++steps) { // it may be a ring
          to = blocks[to].successors[0];
        }
        if (after_[b].empty() || after_[b][0] != to) {
          after_[b].push_back(to);
        }
      }
    }
  }

  // Of what can be reached; before_ holds edges from there alone.
  void find_order() {
    const size_t count = cfg_.blocks().size();
    number_.assign(count, kUnset);
    before_.resize(count);
    const auto successors_of = [this](uint32_t block) -> const std::vector<uint32_t>& {
      return after_[block];
    };
    isa::PostorderWalk<decltype(successors_of)> walk(count, successors_of);
    if (count != 0) {
      walk.from(cfg_.order()[0]);
    }
    order_ = std::move(walk.order());
    std::reverse(order_.begin(), order_.end());
    for (uint32_t i = 0; i < order_.size(); ++i) {
      number_[order_[i]] = i;
      for (const uint32_t to : after_[order_[i]]) {
        before_[to].push_back(order_[i]);
      }
    }
  }

  void find_dominators() {
    if (order_.empty()) {
      return;
    }
    dominator_ = isa::immediate_dominators(cfg_.blocks().size(),
                                           order_[0],
                                           {order_.begin() + 1, order_.end()},
                                           [this](uint32_t block, const auto& visit) {
                                             for (const uint32_t source : before_[block]) {
                                               visit(source);
                                             }
                                           });
    depth_.assign(cfg_.blocks().size(), 0);
    for (size_t i = 1; i < order_.size(); ++i) {
      depth_[order_[i]] = depth_[dominator_[order_[i]]] + 1;
    }
  }

  [[nodiscard]] bool dominates(uint32_t a, uint32_t b) const {
    while (depth_[b] > depth_[a]) {
      b = dominator_[b];
    }
    return a == b;
  }

  // Inner headers come later in reverse postorder, so they take their blocks first; an outer loop
  // then takes whole inner loops.
  void find_loops() {
    const size_t count = cfg_.blocks().size();
    is_header_.assign(count, false);
    loop_of_.assign(count, kUnset);
    parent_loop_.assign(count, kUnset);
    for (size_t i = order_.size(); i-- > 0;) {
      const uint32_t header = order_[i];
      std::vector<uint32_t> work;
      for (const uint32_t source : before_[header]) {
        if (!is_back_edge(source, header)) {
          continue;
        }
        if (!dominates(header, source)) {
          irreducible_at_ = header;
          return;
        }
        is_header_[header] = true;
        work.push_back(source);
      }
      if (!is_header_[header]) {
        continue;
      }
      loop_of_[header] = header;
      while (!work.empty()) {
        const uint32_t block = work.back();
        work.pop_back();
        uint32_t loop = loop_of_[block];
        if (loop == kUnset) {
          loop_of_[block] = header;
          push_sources(block, work);
          continue;
        }
        while (parent_loop_[loop] != kUnset && loop != header) {
          loop = parent_loop_[loop];
        }
        if (loop != header) {
          parent_loop_[loop] = header;
          push_sources(loop, work);
        }
      }
    }
  }
  void push_sources(uint32_t block, std::vector<uint32_t>& work) const {
    work.insert(work.end(), before_[block].begin(), before_[block].end());
  }

  [[nodiscard]] bool is_in_loop(uint32_t block, uint32_t header) const {
    for (uint32_t loop = loop_of_[block]; loop != kUnset; loop = parent_loop_[loop]) {
      if (loop == header) {
        return true;
      }
    }
    return false;
  }

  void place_blocks() {
    const size_t count = cfg_.blocks().size();
    is_inline_.assign(count, false);
    behind_block_.resize(count);
    behind_loop_.resize(count);
    for (size_t i = 1; i < order_.size(); ++i) { // in order, so the lists are sorted
      const uint32_t block = order_[i];
      const uint32_t above = dominator_[block];
      uint32_t left = kUnset; // the outermost loop that holds its dominator and not the block
      for (uint32_t loop = loop_of_[above]; loop != kUnset && !is_in_loop(block, loop);
           loop = parent_loop_[loop]) {
        left = loop;
      }
      unsigned ways_in = 0;
      for (const uint32_t source : before_[block]) {
        ways_in += is_back_edge(source, block) ? 0 : 1;
      }
      if (left != kUnset) {
        behind_loop_[left].push_back(block);
      } else if (ways_in > 1) {
        behind_block_[above].push_back(block);
      } else {
        is_inline_[block] = true;
      }
    }
  }

  const isa::Cfg& cfg_;
  std::vector<std::vector<uint32_t>> after_;
  std::vector<std::vector<uint32_t>> before_;
  std::vector<uint32_t> order_;
  std::vector<uint32_t> number_; // position in order_
  std::vector<uint32_t> dominator_;
  std::vector<uint32_t> depth_;
  std::vector<bool> is_header_;
  std::vector<uint32_t> loop_of_;     // header of the innermost loop
  std::vector<uint32_t> parent_loop_; // by header
  std::vector<bool> is_inline_;
  std::vector<std::vector<uint32_t>> behind_block_;
  std::vector<std::vector<uint32_t>> behind_loop_;
  uint32_t irreducible_at_ = kUnset;
};

bool leaves(const std::vector<Statement>& list, const isa::Cfg& cfg) {
  if (list.empty()) {
    return false;
  }
  const Statement& last = list.back();
  switch (last.kind) {
  case Kind::kBlock:
    return cfg.blocks()[last.block].successor_count == 0;
  case Kind::kIf:
    return leaves(last.body, cfg) && leaves(last.otherwise, cfg);
  case Kind::kBreak:
  case Kind::kContinue:
  case Kind::kGoto:
    return true;
  default:
    return false;
  }
}

/// Writes regions: a block and all that its place holds, up to `next`, the block that control
/// reaches by falling off the end.
class Walk {
public:
  Walk(const isa::Cfg& cfg, const Graph& graph)
      : cfg_(cfg), graph_(graph), is_goto_target_(cfg.blocks().size(), false),
        is_continued_(cfg.blocks().size(), false) {}

  void region(uint32_t block,
              uint32_t next,
              std::vector<Statement>& out,
              unsigned depth,
              bool begins_loop = false) {
    if (depth > kMaxNesting) {
      is_too_deep_ = true;
      return;
    }
    std::vector<std::pair<uint32_t, uint32_t>> pending; // blocks to follow, and what follows them
    const auto push = [&](const std::vector<uint32_t>& list) {
      for (size_t i = list.size(); i-- > 0;) {
        pending.push_back({list[i], next});
        next = list[i];
      }
    };
    while (!is_too_deep_) {
      uint32_t further = kUnset;
      if (graph_.is_header(block) && !begins_loop) {
        push(graph_.behind_loop(block));
        Statement loop{.kind = Kind::kLoop, .block = block};
        loops_.push_back({block, next});
        region(block, block, loop.body, depth + 1, true);
        loops_.pop_back();
        out.push_back(std::move(loop));
      } else {
        begins_loop = false;
        push(graph_.behind_block(block));
        out.push_back({.kind = Kind::kBlock, .block = block});
        further = terminator(block, next, out, depth);
      }
      if (further != kUnset) {
        block = further;
        continue;
      }
      if (pending.empty()) {
        return;
      }
      block = pending.back().first;
      next = pending.back().second;
      pending.pop_back();
      out.push_back({.kind = Kind::kLabel, .block = block});
    }
  }

  [[nodiscard]] bool is_too_deep() const { return is_too_deep_; }
  /// Takes labels out that no goto names, and puts those of loops left by `continue` from further
  /// inside at the end of the loop's body.
  void finish(std::vector<Statement>& list) const {
    std::vector<Statement> kept;
    for (Statement& statement : list) {
      if (statement.kind == Kind::kLabel && !is_goto_target_[statement.block]) {
        continue;
      }
      finish(statement.body);
      finish(statement.otherwise);
      if (statement.kind == Kind::kLoop && is_continued_[statement.block]) {
        statement.body.push_back(
            {.kind = Kind::kLabel, .block = statement.block, .is_continue = true});
      }
      kept.push_back(std::move(statement));
    }
    list = std::move(kept);
  }

private:
  struct Loop {
    uint32_t header;
    uint32_t after;
  };

  [[nodiscard]] bool is_inline(uint32_t from, uint32_t to) const {
    return !graph_.is_back_edge(from, to) && graph_.is_inline(to);
  }

  void jump(uint32_t from, uint32_t to, uint32_t next, std::vector<Statement>& out) {
    if (to == next) {
      return;
    }
    if (!loops_.empty() && loops_.back().header == to) {
      out.push_back({.kind = Kind::kContinue, .block = to});
    } else if (!loops_.empty() && loops_.back().after == to) {
      out.push_back({.kind = Kind::kBreak, .block = to});
    } else {
      const bool is_continue = graph_.is_back_edge(from, to);
      (is_continue ? is_continued_ : is_goto_target_)[to] = true;
      out.push_back({.kind = Kind::kGoto, .block = to, .is_continue = is_continue});
    }
  }

  void
  part(uint32_t from, uint32_t to, uint32_t next, std::vector<Statement>& out, unsigned depth) {
    if (is_inline(from, to)) {
      region(to, next, out, depth + 1);
    } else {
      jump(from, to, next, out);
    }
  }

  /// What ends the block; the block that goes on in the same list, or kUnset.
  uint32_t terminator(uint32_t block, uint32_t next, std::vector<Statement>& out, unsigned depth) {
    const std::vector<uint32_t>& after = graph_.successors(block);
    if (after.empty()) {
      return kUnset;
    }
    const uint32_t taken = after[0];
    if (after.size() == 1) {
      return go_on(block, taken, next, out);
    }
    const uint32_t fall = after[1];
    std::vector<Statement> then_part;
    std::vector<Statement> else_part;
    part(block, taken, next, then_part, depth);
    const auto add_if =
        [&](bool negated, std::vector<Statement> body, std::vector<Statement> rest) {
          out.push_back({.kind = Kind::kIf,
                         .block = block,
                         .negated = negated,
                         .body = std::move(body),
                         .otherwise = std::move(rest)});
        };
    const bool is_deep = depth >= kFlatFromDepth;
    if (then_part.empty() && is_deep) {
      jump_anyway(block, taken, then_part);
    }
    // A short side that leaves stands alone, and the other side goes on beside it.
    if (then_part.size() == 1 && leaves(then_part, cfg_)) {
      add_if(false, std::move(then_part), {});
      return go_on(block, fall, next, out);
    }
    part(block, fall, next, else_part, depth);
    if (then_part.empty() && !else_part.empty()) {
      add_if(true, std::move(else_part), {});
    } else if (else_part.empty() && !then_part.empty()) {
      add_if(false, std::move(then_part), {});
    } else if (!then_part.empty()) {
      add_if(true, std::move(else_part), std::move(then_part));
    }
    return kUnset;
  }

  /// To the block that control would reach by falling off the end as well.
  void jump_anyway(uint32_t from, uint32_t to, std::vector<Statement>& out) {
    jump(from, to, kUnset, out);
  }

  uint32_t go_on(uint32_t from, uint32_t to, uint32_t next, std::vector<Statement>& out) {
    if (is_inline(from, to)) {
      return to;
    }
    jump(from, to, next, out);
    return kUnset;
  }

  const isa::Cfg& cfg_;
  const Graph& graph_;
  std::vector<Loop> loops_;
  std::vector<bool> is_goto_target_; // by a forward jump
  std::vector<bool> is_continued_;   // from further inside than its innermost loop
  bool is_too_deep_ = false;
};

} // namespace

Structure
find_structure(const isa::Cfg& cfg, const isa::Object& object, const isa::Function& function) {
  Structure structure;
  const Graph graph(cfg, object);
  if (graph.irreducible_at() != kUnset) {
    structure.why_not =
        fmt::format("{} has a loop with two ways in, at instruction {}",
                    function.name,
                    cfg.blocks()[graph.irreducible_at()].first_pc - function.first_pc);
    return structure;
  }
  Walk walk(cfg, graph);
  if (!cfg.blocks().empty()) {
    walk.region(graph.entry(), static_cast<uint32_t>(cfg.blocks().size()), structure.statements, 0);
  }
  if (walk.is_too_deep()) {
    structure.statements.clear();
    structure.why_not = fmt::format("{} nests deeper than {} levels", function.name, kMaxNesting);
    return structure;
  }
  walk.finish(structure.statements);
  return structure;
}

} // namespace pto::rt
