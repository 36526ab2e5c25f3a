// SPDX-License-Identifier: Apache-2.0
// Which kernels gangs are for, and running one.
#include "simulator/gang.h"

#include "isa/error.h"
#include "simulator/block_context.h"
#include "simulator/parallel.h"

#include <algorithm>
#include <bit>

namespace pto::sim {

namespace {

using isa::Special;

/// The same in a wide block. None of the others is.
bool is_blind_to_blocks(Special special) {
  return special == Special::kLane || special == Special::kGidX || special == Special::kGsizeX ||
         special == Special::kActivemask ||
         (special >= Special::kLanemaskEq && special <= Special::kLanemaskGe);
}

/// One-dimensional, of blocks of whole warps: a lane's number in the grid says all.
bool is_line_of_warps(const LaunchImage& image) {
  return image.block.y == 1 && image.block.z == 1 && image.grid.y == 1 && image.grid.z == 1 &&
         image.lanes == image.padded_lanes;
}

bool is_simple(const Program& program) {
  constexpr isa::Flags kRuledOut = isa::kAtomic | isa::kAsync | isa::kCall | isa::kBlockBarrier |
                                   isa::kWaits | isa::kAllocates | isa::kFrees | isa::kPrints;
  if ((program.flags() & kRuledOut) != 0) {
    return false;
  }
  const isa::Function& kernel = program.kernel(); // without calls, all that runs
  for (uint32_t pc = kernel.first_pc; pc < kernel.first_pc + kernel.insn_count; ++pc) {
    const ProgramInsn& decoded = program.at(pc);
    if (decoded.is_block_scoped) {
      return false;
    }
    for (unsigned i = 0; i < decoded.insn.operand_count; ++i) {
      const isa::Operand& operand = decoded.insn.operand(i);
      if (operand.kind == isa::OperandKind::kSpecial &&
          !is_blind_to_blocks(static_cast<Special>(operand.index))) {
        return false;
      }
    }
  }
  return true;
}

bool has_loop(const isa::Object& object, const isa::Function& kernel) {
  for (uint32_t pc = kernel.first_pc; pc < kernel.first_pc + kernel.insn_count; ++pc) {
    const isa::Insn& insn = object.code[pc];
    if (insn.desc->has(isa::kBranch) && isa::target_pc(insn) <= pc) {
      return true;
    }
  }
  return false;
}

/// A kernel that goes through its registers again and again wants them, with the data at hand, in a
/// first-level cache. Straight code streams: there the cost of each insn is shared among more
/// lanes, as far as the gang stays within its turn.
uint64_t gang_size(const LaunchImage& image, uint64_t blocks) {
  const isa::Function& kernel = image.program->kernel();
  const bool is_straight = !has_loop(image.program->object(), kernel);
  uint64_t lanes = is_straight ? 4096 : 2048;
  if (is_straight) {
    lanes = std::min(lanes, kQuantumInsns * isa::kWarpLanes / (kernel.insn_count + 1));
  }
  const uint64_t bytes = (is_straight ? 96 : 24) * 1024;
  const uint64_t lane_bytes = std::max<uint64_t>(
      1, image.program->reg32_limit() * uint64_t{4} + image.program->reg64_limit() * uint64_t{8});
  lanes = std::min(lanes, bytes / lane_bytes);
  return std::bit_floor(std::min(lanes / image.lanes, blocks));
}

} // namespace

Gang::Gang(std::unique_ptr<Launch> wide, uint64_t size)
    : wide_(std::move(wide)), size_(size), block_(*wide_) {
  block_.set_ledger(&ledger_);
}

bool Gang::suits(const Launch& launch) {
  const LaunchImage& image = launch.image();
  return is_line_of_warps(image) && image.static_l1_bytes == 0 && image.data_caches == nullptr &&
         launch.observers().empty() && image.hbm->history() == nullptr && is_simple(*image.program);
}

std::unique_ptr<Gang> Gang::make(const Launch& launch, uint64_t most_blocks) {
  if (!suits(launch)) {
    return nullptr;
  }
  const LaunchImage& image = launch.image();
  const uint64_t size = gang_size(image, std::min(most_blocks, launch.block_count()));
  if (size < 2) {
    return nullptr;
  }
  return std::unique_ptr<Gang>(
      new Gang(Launch::widened(launch, static_cast<uint32_t>(size)), size));
}

bool Gang::trust(const std::optional<GridProof>& proof) {
  is_trusted_ = proof && proof->are_lanes_apart &&
                proof->insns * wide_->image().warps <= kQuantumInsns; // one turn
  block_.set_ledger(is_trusted_ ? nullptr : &ledger_);
  return is_trusted_;
}

Gang::Stop Gang::run(uint64_t first) {
  ledger_.begin();
  block_.start(first / size_, 0);
  block_.forget_when_ended();
  // A block that reaches the limit by itself would take turns with others, and could tell.
  BlockStop stop = block_.run(kQuantumInsns);
  if (ledger_.is_at_end() && stop == BlockStop::kBudget) {
    stop = block_.run(kQuantumInsns);
  }
  if (stop == BlockStop::kDone) {
    ++done_;
    return Stop::kDone;
  }
  PTO_CHECK(!is_trusted_ && !ledger_.is_at_end()); // what it had written is not kept
  ++undone_;
  ledger_.undo();
  return block_.was_stopped_by_gate() && !ledger_.has_refused() ? Stop::kRefused : Stop::kUndone;
}

} // namespace pto::sim
