// SPDX-License-Identifier: Apache-2.0
// Leaders, edges, and the post-dominator tree: dominators.h on the reversed graph.
#include "isa/cfg.h"

#include "isa/dominators.h"
#include "isa/insn_desc.h"

#include <algorithm>

namespace pto::isa {

namespace {

bool ends_path(const Insn& insn) {
  return insn.desc->has(kEndsLane) || insn.desc->has(kReturn);
}

bool ends_block(const Insn& insn) {
  return ends_path(insn) || insn.desc->has(kBranch);
}

struct Successors {
  const BasicBlock* block;
  [[nodiscard]] size_t size() const { return block->successor_count; }
  uint32_t operator[](size_t i) const { return block->successors[i]; }
};

} // namespace

Cfg::Cfg(const Object& object, const Function& function) : first_pc_(function.first_pc) {
  find_blocks(object, function);
  connect(object, function);
  find_order();
}

void Cfg::find_blocks(const Object& object, const Function& function) {
  const uint32_t count = function.insn_count;
  std::vector<bool> leads(count + 1, false);
  leads[0] = true;
  for (uint32_t i = 0; i < count; ++i) {
    const Insn& insn = object.code[first_pc_ + i];
    if (ends_block(insn)) {
      leads[i + 1] = true;
    }
    if (insn.desc->has(kBranch)) {
      const uint32_t target = target_pc(insn);
      if (function.contains(target)) {
        leads[target - first_pc_] = true;
      }
    }
  }
  block_of_.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    if (leads[i]) {
      blocks_.push_back({.first_pc = first_pc_ + i});
    }
    block_of_[i] = static_cast<uint32_t>(blocks_.size() - 1);
    blocks_.back().end_pc = first_pc_ + i + 1;
  }
}

void Cfg::connect(const Object& object, const Function& function) {
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    BasicBlock& block = blocks_[b];
    const Insn& last = object.code[block.end_pc - 1];
    const auto add = [&](uint32_t successor) {
      block.successors[block.successor_count++] = successor;
    };
    bool goes_on = true;
    if (last.desc->has(kBranch)) {
      const uint32_t target = target_pc(last);
      if (function.contains(target)) {
        add(block_of_[target - first_pc_]);
      } else {
        block.runs_off = true; // a label behind the last insn
      }
      goes_on = last.guard.present;
    } else if (ends_path(last)) {
      block.ends_path = !last.guard.present;
      goes_on = last.guard.present;
    }
    if (goes_on) {
      if (b + 1 < blocks_.size()) {
        if (block.successor_count == 0 || block.successors[0] != b + 1) {
          add(b + 1);
        }
      } else {
        block.runs_off = true;
      }
    }
  }
}

void Cfg::find_order() {
  const auto successors = [this](uint32_t node) { return Successors{&blocks_[node]}; };
  PostorderWalk<decltype(successors)> walk(blocks_.size(), successors);
  if (!blocks_.empty()) {
    walk.from(0);
  }
  order_ = walk.order();
  std::reverse(order_.begin(), order_.end());
  for (const uint32_t b : order_) {
    blocks_[b].is_reachable = true;
  }
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    if (!blocks_[b].is_reachable) {
      order_.push_back(b);
    }
  }
}

std::vector<std::vector<uint32_t>> Cfg::predecessors() const {
  std::vector<std::vector<uint32_t>> before(blocks_.size());
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    for (unsigned i = 0; i < blocks_[b].successor_count; ++i) {
      before[blocks_[b].successors[i]].push_back(b);
    }
  }
  return before;
}

std::vector<uint32_t> Cfg::immediate_post_dominators() const {
  const auto end = static_cast<uint32_t>(blocks_.size());
  const std::vector<std::vector<uint32_t>> before = predecessors();
  const auto predecessors_of = [&](uint32_t node) -> const std::vector<uint32_t>& {
    return before[node];
  };
  PostorderWalk<decltype(predecessors_of)> walk(blocks_.size(), predecessors_of);
  std::vector<bool> leads_to_end(blocks_.size(), false);
  for (const uint32_t b : order_) {
    if (blocks_[b].ends_path || blocks_[b].runs_off) {
      leads_to_end[b] = true;
      walk.from(b);
    }
  }
  // What is left can never end: an imaginary way out behind its last block.
  for (size_t i = order_.size(); i-- > 0;) {
    if (!walk.seen(order_[i])) {
      leads_to_end[order_[i]] = true;
      walk.from(order_[i]);
    }
  }
  std::vector<uint32_t> reverse_postorder = walk.order();
  std::reverse(reverse_postorder.begin(), reverse_postorder.end());
  std::vector<uint32_t> parent = immediate_dominators(
      blocks_.size() + 1, end, reverse_postorder, [&](uint32_t node, const auto& visit) {
        if (leads_to_end[node]) {
          visit(end);
        }
        for (unsigned i = 0; i < blocks_[node].successor_count; ++i) {
          visit(blocks_[node].successors[i]);
        }
      });
  parent.pop_back();
  return parent;
}

std::vector<Reconvergence> Cfg::reconvergence(const Object& object) const {
  std::vector<Reconvergence> points;
  const auto is_split = [&](const BasicBlock& block) {
    const Insn& last = object.code[block.end_pc - 1];
    return last.desc->has(kBranch) && last.guard.present;
  };
  if (std::none_of(blocks_.begin(), blocks_.end(), is_split)) {
    return points;
  }
  const std::vector<uint32_t> post_dominators = immediate_post_dominators();
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    if (is_split(blocks_[b])) {
      const uint32_t join = post_dominators[b];
      points.push_back({blocks_[b].end_pc - 1,
                        join == blocks_.size() ? kNoReconvergence : blocks_[join].first_pc});
    }
  }
  return points;
}

} // namespace pto::isa
