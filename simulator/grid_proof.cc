// SPDX-License-Identifier: Apache-2.0
#include "simulator/grid_proof.h"

#include "isa/affine.h"
#include "simulator/grid_accesses.h"
#include "simulator/grid_values.h"
#include "simulator/launch.h"
#include "simulator/parallel.h"

#include <utility>
#include <vector>

namespace pto::sim {

namespace {

using isa::AffineRegion;
using isa::AffineValue;
using Meeting = GridAccesses::Meeting;

constexpr uint64_t kMostInsns = 4096; // a longer walk is not worth it

AffineRegion whole_grid(const LaunchImage& image) {
  const Dim3& block = image.block;
  const Dim3& grid = image.grid;
  return AffineRegion({block.x, block.y, block.z, grid.x, grid.y, grid.z});
}

/// The lanes that are at work, while others have ended, or wait where the part of the code ends
/// that they passed over. The region may hold more lanes than those.
class GridWalk {
public:
  explicit GridWalk(const LaunchImage& image)
      : image_(image), values_(image), region_(whole_grid(image)) {}

  std::optional<GridProof> run() {
    pc_ = image_.program->entry_pc();
    for (uint64_t insns = 1; insns <= kMostInsns; ++insns) {
      close_parts();
      const ProgramInsn& decoded = image_.program->at(pc_++);
      const Lanes lanes = lanes_of(decoded);
      const isa::InsnDesc& row = *decoded.insn.desc;
      if (row.has(isa::kBlockBarrier)) {
        // All lanes that are left must come to it together.
        if (lanes.who != Who::kAll || !parts_.empty() || apart_ != 0) {
          return std::nullopt;
        }
        knows_its_block_ = true;
      } else if (decoded.is_block_scoped || row.has(isa::kWarpBarrier) || row.has(isa::kWaits)) {
        return std::nullopt; // even where no lane executes it
      } else if (lanes.who == Who::kNone) {
        continue;
      } else if (leaves(decoded)) {
        if (lanes.who == Who::kAll && parts_.empty()) {
          return proof(insns);
        }
        if (lanes.who == Who::kAll) {
          pc_ = parts_.back().end_pc;
        }
        region_ = lanes.others;
      } else if (row.has(isa::kBranch)) {
        if (!follow_branch(decoded, lanes)) {
          return std::nullopt;
        }
      } else if (!follow(decoded, lanes)) {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

private:
  enum class Who : uint8_t {
    kNone,  // of the region
    kSome,  // those of Lanes::who_do
    kMaybe, // nobody knows which
    kAll,
  };
  struct Lanes {
    Who who;
    AffineRegion who_do; // execute the insn, and perhaps more
    AffineRegion others; // do not, and perhaps more
  };
  /// The other side of a branch.
  struct Side {
    uint32_t pc;
    AffineRegion region;
    GridValues values;
  };
  /// Code up to where lanes join that a branch has split.
  struct Part {
    uint32_t end_pc;
    AffineRegion region; // from there on
    ResourceSet writes;  // in it
    std::optional<Side> other;
  };

  std::optional<GridProof> proof(uint64_t insns) const {
    const Meeting meeting = accesses_.meeting();
    GridProof proof{insns + apart_, meeting == Meeting::kNone && !knows_its_block_};
    // Lanes of a block may meet in the order in which the block executes them alone: not where it
    // would take turns with others.
    if (meeting == Meeting::kAny ||
        (!proof.are_lanes_apart && proof.insns > kQuantumInsns / image_.warps)) {
      return std::nullopt;
    }
    return proof;
  }

  void close_parts() {
    while (!parts_.empty() && parts_.back().end_pc == pc_) {
      Part& part = parts_.back();
      if (part.other) {
        pc_ = part.other->pc;
        region_ = part.other->region;
        values_ = part.other->values;
        part.other.reset();
        continue;
      }
      region_ = part.region;
      values_.forget(part.writes);
      parts_.pop_back();
    }
  }

  Lanes lanes_of(const ProgramInsn& decoded) const {
    Lanes lanes{Who::kAll, region_, region_};
    if (!decoded.is_guarded) {
      return lanes;
    }
    const std::optional<GridCondition> holds = values_.condition(decoded.insn.guard);
    if (!holds) {
      lanes.who = Who::kMaybe;
    } else if (holds->holds_nowhere()) {
      lanes.who = Who::kNone;
    } else if (!holds->holds_everywhere()) {
      lanes.who = Who::kSome;
      holds->cut(lanes.who_do);
      holds->negation().cut(lanes.others);
    }
    return lanes;
  }

  bool is_exit(uint32_t pc) const {
    const ProgramInsn& decoded = image_.program->at(pc);
    return !decoded.is_guarded && leaves(decoded);
  }
  bool leaves(const ProgramInsn& decoded) const {
    const isa::InsnDesc& row = *decoded.insn.desc;
    return row.has(isa::kEndsLane) && !row.has(isa::kTraps);
  }

  bool follow_branch(const ProgramInsn& decoded, const Lanes& lanes) {
    const uint32_t target = isa::target_pc(decoded.insn);
    if (lanes.who == Who::kAll) {
      pc_ = target;
      return true;
    }
    if (target < pc_) { // once more, for some
      if (lanes.who != Who::kSome) {
        return false;
      }
      if (decoded.join_pc == pc_) {
        enter_part(pc_, std::nullopt);
      } else if (is_exit(pc_)) {
        ++apart_;
      } else {
        return false;
      }
      region_ = lanes.who_do;
      pc_ = target;
      return true;
    }
    if (decoded.join_pc == target) {
      enter_part(target, std::nullopt);
    } else if (is_exit(target)) {
      ++apart_;
    } else if (decoded.join_pc != isa::kNoReconvergence && target < decoded.join_pc) {
      enter_part(decoded.join_pc, Side{target, lanes.who_do, values_});
    } else {
      return false;
    }
    region_ = lanes.others;
    return true;
  }

  void enter_part(uint32_t end_pc, std::optional<Side> other) {
    const bool is_in_it =
        !other && !parts_.empty() && parts_.back().end_pc == end_pc && !parts_.back().other;
    if (!is_in_it) {
      parts_.push_back({end_pc, region_, {}, std::move(other)});
    }
  }

  /// What the insn does to registers and memory. False: cannot be told.
  bool follow(const ProgramInsn& decoded, const Lanes& lanes) {
    constexpr isa::Flags kOfRegisters =
        isa::kTypesFirst | isa::kSelects | isa::kDivides | isa::kCrossLane | isa::kShuffles;
    const isa::InsnDesc& row = *decoded.insn.desc;
    for (Part& part : parts_) {
      part.writes.add(decoded.writes);
    }
    const bool is_load = row.flags == isa::kReadsMem;
    const bool is_store = row.flags == isa::kWritesMem;
    if (is_load || is_store) {
      if (!follow_access(decoded, is_load ? 1 : 0, is_store, lanes.who_do)) {
        return false;
      }
      values_.forget(decoded.writes);
      return true;
    }
    if ((row.flags & ~kOfRegisters) != 0) {
      return false;
    }
    if (lanes.who == Who::kAll) {
      values_.follow(decoded, region_);
    } else {
      values_.forget(decoded.writes);
    }
    return true;
  }

  bool follow_access(const ProgramInsn& decoded,
                     unsigned operand,
                     bool writes,
                     const AffineRegion& lanes) {
    const isa::MemRef mem = decoded.insn.operand(operand).mem();
    const std::optional<AffineValue> at = values_.address(mem, lanes);
    if (!at) {
      return false;
    }
    const uint64_t bytes =
        uint64_t{isa::size_bytes(decoded.insn.type)} * isa::vector_count(decoded.insn);
    uint64_t all_bits = at->base;
    for (size_t i = 0; i < isa::kAxes; ++i) {
      all_bits |= lanes.extents()[i] > 1 ? at->steps[i] : 0;
    }
    const std::optional<isa::Bounds> bounds = lanes.bounds(at->signed_steps());
    if (!bounds || (all_bits & (bytes - 1)) != 0 || bounds->highest < bounds->lowest ||
        static_cast<uint64_t>(bounds->highest) - static_cast<uint64_t>(bounds->lowest) >
            kFarBytes) {
      return false;
    }
    const uint64_t begin = at->base + static_cast<uint64_t>(bounds->lowest);
    const uint64_t size = static_cast<uint64_t>(bounds->highest - bounds->lowest) + bytes;
    if (mem.space == isa::Space::kL1) {
      knows_its_block_ = true;
      return begin <= image_.static_l1_bytes && size <= image_.static_l1_bytes - begin;
    }
    if (mem.space != isa::Space::kHbm) {
      return false;
    }
    const Allocation* allocation = image_.hbm->find(begin);
    return allocation != nullptr && allocation->holds(begin, size) &&
           accesses_.add({*at, bytes, writes, begin, begin + size, lanes});
  }

  const LaunchImage& image_;
  uint32_t pc_ = 0;
  GridValues values_;
  AffineRegion region_;
  std::vector<Part> parts_;
  uint64_t apart_ = 0;           // insns of lanes that leave by themselves
  bool knows_its_block_ = false; // uses its scratchpad, or a barrier
  GridAccesses accesses_;
};

} // namespace

std::optional<GridProof> prove_grid(const Launch& launch) {
  const LaunchImage& image = launch.image();
  return image.data_caches != nullptr ? std::nullopt : GridWalk(image).run();
}

} // namespace pto::sim
