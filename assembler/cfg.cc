// SPDX-License-Identifier: Apache-2.0
// Basic blocks and post-dominators. The latter by the iteration of Cooper, Harvey and Kennedy ("A
// simple, fast dominance algorithm") on the reversed graph; no recursion, so a function may have a
// million insns.
#include "assembler/cfg.h"

#include "isa/insn_desc.h"
#include "isa/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pto::as {

namespace {

using isa::Insn;

uint32_t branch_target(const Insn& insn) {
  return static_cast<uint32_t>(insn.operands[0].bits);
}

// A call comes back, so only branches, returns and ends of lanes cut a block.
bool ends_block(const Insn& insn) {
  return insn.desc->has(isa::kBranch) || insn.desc->has(isa::kReturn) ||
         insn.desc->has(isa::kEndsLane);
}

bool goes_on(const Insn& insn) {
  return !ends_block(insn) || insn.guard.present;
}

} // namespace

ControlFlow::ControlFlow(const isa::Object& object, const isa::Function& function)
    : first_pc_(function.first_pc) {
  cut_blocks(object, function);
  link_blocks(object, function);
  mark_reachable();
}

void ControlFlow::cut_blocks(const isa::Object& object, const isa::Function& function) {
  std::vector<bool> leader(function.insn_count, false);
  if (!leader.empty()) {
    leader[0] = true;
  }
  for (uint32_t i = 0; i < function.insn_count; ++i) {
    const Insn& insn = object.code[first_pc_ + i];
    if (insn.desc->has(isa::kBranch)) {
      leader[branch_target(insn) - first_pc_] = true;
    }
    if (ends_block(insn) && i + 1 < function.insn_count) {
      leader[i + 1] = true;
    }
  }
  block_of_.resize(function.insn_count);
  for (uint32_t i = 0; i < function.insn_count; ++i) {
    if (leader[i]) {
      blocks_.emplace_back();
      blocks_.back().first_pc = first_pc_ + i;
    }
    blocks_.back().end_pc = first_pc_ + i + 1;
    block_of_[i] = static_cast<uint32_t>(blocks_.size() - 1);
  }
}

void ControlFlow::link_blocks(const isa::Object& object, const isa::Function& function) {
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    BasicBlock& block = blocks_[b];
    const Insn& last = object.code[block.end_pc - 1];
    if (last.desc->has(isa::kBranch)) {
      block.successors.push_back(block_of(branch_target(last)));
    }
    block.leaves = last.desc->has(isa::kReturn) || last.desc->has(isa::kEndsLane);
    if (goes_on(last)) {
      if (block.end_pc < function.first_pc + function.insn_count) {
        block.successors.push_back(b + 1);
      } else {
        block.falls_off = true;
      }
    }
    std::sort(block.successors.begin(), block.successors.end());
    block.successors.erase(std::unique(block.successors.begin(), block.successors.end()),
                           block.successors.end());
  }
}

void ControlFlow::mark_reachable() {
  std::vector<uint32_t> open;
  if (!blocks_.empty()) {
    blocks_[0].reachable = true;
    open.push_back(0);
  }
  while (!open.empty()) {
    const uint32_t at = open.back();
    open.pop_back();
    for (const uint32_t next : blocks_[at].successors) {
      if (!blocks_[next].reachable) {
        blocks_[next].reachable = true;
        open.push_back(next);
      }
    }
  }
}

namespace {

// The reversed graph with the virtual exit as its root, numbered in reverse postorder from there.
class ReversedGraph {
public:
  explicit ReversedGraph(const std::vector<BasicBlock>& blocks)
      : exit_(static_cast<uint32_t>(blocks.size())), predecessors_(blocks.size() + 1),
        successors_(blocks.size() + 1), number_(blocks.size() + 1, kUnseen) {
    for (uint32_t b = 0; b < blocks.size(); ++b) {
      for (const uint32_t next : blocks[b].successors) {
        add_edge(b, next);
      }
      if (blocks[b].leaves || blocks[b].falls_off) {
        add_edge(b, exit_);
      }
    }
    visit_from(exit_);
    // Blocks that cannot leave: an endless loop. Its last block in code order gets an edge to the
    // exit, until every block has a path.
    for (uint32_t b = exit_; b-- > 0;) {
      if (number_[b] == kUnseen) {
        add_edge(b, exit_);
        visit_from(b);
      }
    }
    order_roots_last();
  }

  uint32_t exit() const { return exit_; }
  const std::vector<uint32_t>& order() const { return order_; } // reverse postorder, exit first
  const std::vector<uint32_t>& successors(uint32_t node) const { return successors_[node]; }
  uint32_t number(uint32_t node) const { return number_[node]; }

private:
  static constexpr uint32_t kUnseen = 0xffffffff;

  void add_edge(uint32_t from, uint32_t to) {
    successors_[from].push_back(to);
    predecessors_[to].push_back(from);
  }

  void visit_from(uint32_t root) {
    if (number_[root] != kUnseen) {
      return;
    }
    std::vector<std::pair<uint32_t, size_t>> stack = {{root, 0}};
    number_[root] = 0;
    while (!stack.empty()) {
      auto& [node, edge] = stack.back();
      if (edge < predecessors_[node].size()) {
        const uint32_t next = predecessors_[node][edge++];
        if (number_[next] == kUnseen) {
          number_[next] = 0;
          stack.emplace_back(next, 0);
        }
      } else {
        postorder_.push_back(node);
        stack.pop_back();
      }
    }
  }

  // The exit was visited first, so its own postorder number is not the last if endless loops hung
  // further roots below it; it is moved to the front of the reverse postorder.
  void order_roots_last() {
    order_.push_back(exit_);
    for (size_t i = postorder_.size(); i-- > 0;) {
      if (postorder_[i] != exit_) {
        order_.push_back(postorder_[i]);
      }
    }
    for (uint32_t i = 0; i < order_.size(); ++i) {
      number_[order_[i]] = i;
    }
  }

  uint32_t exit_;
  std::vector<std::vector<uint32_t>> predecessors_;
  std::vector<std::vector<uint32_t>> successors_;
  std::vector<uint32_t> number_;
  std::vector<uint32_t> postorder_;
  std::vector<uint32_t> order_;
};

} // namespace

std::vector<uint32_t> ControlFlow::post_dominators() const {
  const ReversedGraph graph(blocks_);
  constexpr uint32_t kUndefined = 0xffffffff;
  std::vector<uint32_t> idom(blocks_.size() + 1, kUndefined);
  idom[graph.exit()] = graph.exit();
  const auto intersect = [&](uint32_t a, uint32_t b) {
    while (a != b) {
      while (graph.number(a) > graph.number(b)) {
        a = idom[a];
      }
      while (graph.number(b) > graph.number(a)) {
        b = idom[b];
      }
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const uint32_t node : graph.order()) {
      if (node == graph.exit()) {
        continue;
      }
      uint32_t dominator = kUndefined;
      for (const uint32_t next : graph.successors(node)) {
        if (idom[next] != kUndefined) {
          dominator = dominator == kUndefined ? next : intersect(next, dominator);
        }
      }
      if (dominator != idom[node]) {
        idom[node] = dominator;
        changed = true;
      }
    }
  }
  idom.pop_back();
  for (uint32_t& dominator : idom) {
    if (dominator == graph.exit()) {
      dominator = kVirtualExit;
    }
  }
  return idom;
}

std::vector<isa::Reconvergence> reconvergence_points(const isa::Object& object,
                                                     const isa::Function& function) {
  const ControlFlow flow(object, function);
  const std::vector<uint32_t> post_dominators = flow.post_dominators();
  std::vector<isa::Reconvergence> points;
  for (uint32_t b = 0; b < flow.blocks().size(); ++b) {
    const uint32_t pc = flow.blocks()[b].end_pc - 1;
    const Insn& last = object.code[pc];
    if (last.desc->has(isa::kBranch) && last.guard.present) {
      const uint32_t join = post_dominators[b];
      points.push_back({.branch_pc = pc,
                        .join_pc = join == ControlFlow::kVirtualExit
                                       ? isa::kNoReconvergence
                                       : flow.blocks()[join].first_pc});
    }
  }
  return points;
}

std::optional<uint32_t> falls_off_end(const isa::Object& object, const isa::Function& function) {
  const ControlFlow flow(object, function);
  for (const BasicBlock& block : flow.blocks()) {
    if (block.falls_off && block.reachable) {
      return block.end_pc - 1;
    }
  }
  return std::nullopt;
}

std::string cfg_dot(const isa::Object& object, const isa::Function& function) {
  const ControlFlow flow(object, function);
  const std::vector<uint32_t> post_dominators = flow.post_dominators();
  std::string out =
      fmt::format("digraph \"{}\" {{\n  node [shape=box fontname=monospace];\n", function.name);
  for (uint32_t b = 0; b < flow.blocks().size(); ++b) {
    const BasicBlock& block = flow.blocks()[b];
    std::string text;
    for (const isa::Label& label : function.labels) {
      if (label.pc == block.first_pc) {
        text += label.name + ":\\l";
      }
    }
    for (uint32_t pc = block.first_pc; pc < block.end_pc; ++pc) {
      for (const char c : isa::print_insn(object.code[pc], object, function)) {
        text += c == '"' || c == '\\' ? fmt::format("\\{}", c) : std::string(1, c);
      }
      text += "\\l";
    }
    out +=
        fmt::format("  b{} [label=\"{}\"{}];\n", b, text, block.reachable ? "" : " style=dashed");
    for (const uint32_t next : block.successors) {
      out += fmt::format("  b{} -> b{};\n", b, next);
    }
    const Insn& last = object.code[block.end_pc - 1];
    const uint32_t join = post_dominators[b];
    if (last.desc->has(isa::kBranch) && last.guard.present && join != ControlFlow::kVirtualExit) {
      out +=
          fmt::format("  b{} -> b{} [style=dashed constraint=false label=\"rejoin\"];\n", b, join);
    }
  }
  return out + "}\n";
}

} // namespace pto::as
