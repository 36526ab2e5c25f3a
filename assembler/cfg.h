// SPDX-License-Identifier: Apache-2.0
// Control flow of one function: basic blocks, reachability, post-dominators, and from these the
// points where the lanes that a branch splits rejoin.
//
// The lanes of a guarded BRA rejoin at its immediate post-dominator: the first insn that every path
// from either side must pass. Post-dominators exist in any graph, so irreducible control flow (a
// loop with two entries) is treated correctly, without copying code; it only rejoins later than
// structured code would. Leaving the function (RET, EXIT, TRAP) is an edge to one virtual exit; a
// loop without a way out gets such an edge too, so that every block has a post-dominator. Where the
// virtual exit is the post-dominator the lanes rejoin only at the end (kNoReconvergence).
#pragma once

#include "isa/object.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pto::as {

/// A run of insns [first_pc, end_pc) entered only at its first and left only after its last.
struct BasicBlock {
  uint32_t first_pc = 0;
  uint32_t end_pc = 0;
  std::vector<uint32_t> successors; // indices into ControlFlow::blocks, ascending
  bool leaves = false;              // the last insn may end the function or its lanes
  bool falls_off = false;           // control may run past the function's last insn
  bool reachable = false;           // from the function's entry
};

class ControlFlow {
public:
  ControlFlow(const isa::Object& object, const isa::Function& function);

  const std::vector<BasicBlock>& blocks() const { return blocks_; }
  /// Block that holds pc, which must lie in the function.
  uint32_t block_of(uint32_t pc) const { return block_of_[pc - first_pc_]; }

  /// Immediate post-dominator of each block; kVirtualExit where it is the end of the function.
  static constexpr uint32_t kVirtualExit = 0xffffffff;
  std::vector<uint32_t> post_dominators() const;

private:
  void cut_blocks(const isa::Object& object, const isa::Function& function);
  void link_blocks(const isa::Object& object, const isa::Function& function);
  void mark_reachable();

  uint32_t first_pc_ = 0;
  std::vector<BasicBlock> blocks_;
  std::vector<uint32_t> block_of_;
};

/// One entry for each guarded branch of the function, by branch_pc.
std::vector<isa::Reconvergence> reconvergence_points(const isa::Object& object,
                                                     const isa::Function& function);

/// The pc of the last insn if control can run past it, unless it cannot be reached.
std::optional<uint32_t> falls_off_end(const isa::Object& object, const isa::Function& function);

/// The graph in Graphviz form: a node a basic block with its insns, reconvergence edges dashed.
std::string cfg_dot(const isa::Object& object, const isa::Function& function);

} // namespace pto::as
