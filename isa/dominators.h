// SPDX-License-Identifier: Apache-2.0
// Walks over graphs whose nodes are numbers: postorder, and dominators by Cooper, Harvey and
// Kennedy's iteration ("A Simple, Fast Dominance Algorithm"). All walks keep their own stack: a
// program may have a million blocks in a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace pto::isa {

inline constexpr uint32_t kNoNode = 0xffffffff;

/// Postorder of a graph walk that may be continued from further roots. `successors(node)` gives
/// what has size() and operator[].
template <class Successors> class PostorderWalk {
public:
  PostorderWalk(size_t count, Successors successors)
      : successors_(std::move(successors)), seen_(count, false) {}

  void from(uint32_t root) {
    if (seen_[root]) {
      return;
    }
    seen_[root] = true;
    stack_.push_back({root, 0});
    while (!stack_.empty()) {
      auto& [node, next] = stack_.back();
      const auto& list = successors_(node);
      if (next < list.size()) {
        const uint32_t child = list[next++];
        if (!seen_[child]) {
          seen_[child] = true;
          stack_.push_back({child, 0});
        }
      } else {
        order_.push_back(node);
        stack_.pop_back();
      }
    }
  }
  [[nodiscard]] bool seen(uint32_t node) const { return seen_[node]; }
  [[nodiscard]] std::vector<uint32_t>& order() { return order_; }

private:
  Successors successors_;
  std::vector<bool> seen_;
  std::vector<std::pair<uint32_t, size_t>> stack_;
  std::vector<uint32_t> order_;
};

/// For each of `count` nodes its immediate dominator; kNoNode where `root` does not lead to it.
/// `order` is the reverse postorder of the nodes behind the root. `for_each_source(node, visit)`
/// calls visit with each node that leads to `node`.
template <class ForEachSource>
std::vector<uint32_t> immediate_dominators(size_t count,
                                           uint32_t root,
                                           const std::vector<uint32_t>& order,
                                           const ForEachSource& for_each_source) {
  std::vector<uint32_t> number(count); // the root's is 0
  for (size_t i = 0; i < order.size(); ++i) {
    number[order[i]] = static_cast<uint32_t>(i + 1);
  }
  std::vector<uint32_t> dominator(count, kNoNode);
  dominator[root] = root;
  const auto meet = [&](uint32_t a, uint32_t b) {
    while (a != b) {
      while (number[a] > number[b]) {
        a = dominator[a];
      }
      while (number[b] > number[a]) {
        b = dominator[b];
      }
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const uint32_t node : order) {
      uint32_t found = kNoNode;
      for_each_source(node, [&](uint32_t source) {
        if (dominator[source] != kNoNode) {
          found = found == kNoNode ? source : meet(found, source);
        }
      });
      changed = changed || found != dominator[node];
      dominator[node] = found;
    }
  }
  return dominator;
}

} // namespace pto::isa
