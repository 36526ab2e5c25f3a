// SPDX-License-Identifier: Apache-2.0
// Control flow of one function: basic blocks, reachability, post-dominators.
//
// Lanes that a predicated branch splits rejoin at the branch's immediate post-dominator: the first
// block that every path from the branch passes. Post-dominators exist in any graph, so irreducible
// ones (a jump into a loop) need no special treatment. Three decisions make the answer useful:
//   - A predicated EXIT, RET or TRAP counts as going on: lanes that end do not keep the others from
//     rejoining. An unpredicated one ends the path.
//   - A loop without a way out gets an imaginary one behind its last block (in reverse postorder),
//     so branches within it still rejoin within it.
//   - Where the paths share no block any more (each ends by its own EXIT) there is no reconvergence
//     point, kNoReconvergence.
#pragma once

#include "isa/object.h"

#include <array>
#include <cstdint>
#include <vector>

namespace pto::isa {

struct BasicBlock {
  uint32_t first_pc = 0;
  uint32_t end_pc = 0;                  // one past its last insn
  std::array<uint32_t, 2> successors{}; // blocks; the branch target first
  uint8_t successor_count = 0;
  bool ends_path = false; // by an unpredicated EXIT, RET or TRAP
  bool runs_off = false;  // its last insn goes on past the end of the function
  bool is_reachable = false;
};

class Cfg {
public:
  /// Branch targets of the function must be resolved.
  Cfg(const Object& object, const Function& function);

  [[nodiscard]] const std::vector<BasicBlock>& blocks() const { return blocks_; }
  [[nodiscard]] uint32_t block_at(uint32_t pc) const { return block_of_[pc - first_pc_]; }
  [[nodiscard]] std::vector<std::vector<uint32_t>> predecessors() const;
  /// Blocks in reverse postorder from the entry; unreachable ones behind.
  [[nodiscard]] const std::vector<uint32_t>& order() const { return order_; }
  /// For each block its immediate post-dominator; blocks().size() stands for the end.
  [[nodiscard]] std::vector<uint32_t> immediate_post_dominators() const;
  /// One entry for each predicated branch, by pc.
  [[nodiscard]] std::vector<Reconvergence> reconvergence(const Object& object) const;

private:
  void find_blocks(const Object& object, const Function& function);
  void connect(const Object& object, const Function& function);
  void find_order();

  uint32_t first_pc_ = 0;
  std::vector<BasicBlock> blocks_;
  std::vector<uint32_t> block_of_; // by pc - first_pc_
  std::vector<uint32_t> order_;
};

} // namespace pto::isa
