// SPDX-License-Identifier: Apache-2.0
#include "simulator/grid_proof.h"

#include "isa/linear.h"
#include "isa/span_lanes.h"
#include "simulator/access_ledger.h"
#include "simulator/launch.h"
#include "simulator/linear_access.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

namespace pto::sim {

namespace {

using isa::LinearValue;
using isa::OperandKind;
using isa::Special;

constexpr uint64_t kMostInsns = 4096; // a longer walk is not worth it

/// The first lanes of the grid, at first all: those that are still at work, while the others have
/// ended, or wait where the part of the code ends that they passed over. Predicates hold in all of
/// them, or in none, or change once from lane to lane.
class GridWalk final : public isa::SpanLanes {
public:
  GridWalk(const LaunchImage& image, uint64_t lanes) : image_(image) {
    active_ = &kAllLanes;
    all_active_ = true;
    preds_ = words_.data();
    stride_pred_ = 1;
    for (unsigned i = 0; i < isa::kReg32Count; ++i) {
      known_.add_reg32(i); // zero
    }
    for (unsigned i = 0; i < isa::kReg64Count; ++i) {
      known_.add_reg64(i);
    }
    known_.preds = (1u << isa::kPredCount) - 1;
    set_working(lanes);
    ledger_.begin();
  }

  std::optional<GridProof> run() {
    pc_ = image_.program->entry_pc();
    for (uint64_t insns = 1; insns <= kMostInsns; ++insns) {
      close_parts();
      const ProgramInsn& decoded = image_.program->at(pc_++);
      constexpr isa::Flags kOfOthers = isa::kWarpBarrier | isa::kBlockBarrier | isa::kWaits;
      if (decoded.is_block_scoped || (decoded.insn.desc->flags & kOfOthers) != 0) {
        return std::nullopt; // even where no lane executes it
      }
      const std::optional<Range> where = where_active(decoded);
      if (!where) {
        return std::nullopt;
      }
      if (where->first == where->end) {
        continue;
      }
      const bool is_for_all = where->first == 0 && where->end == working_;
      if (leaves(decoded)) {
        if (is_for_all && parts_.empty()) {
          return GridProof{insns + apart_};
        }
        if (where->first == 0 || !parts_.empty()) {
          return std::nullopt;
        }
        set_working(where->first);
      } else if (decoded.insn.desc->has(isa::kBranch)) {
        if (!follow_branch(decoded, *where)) {
          return std::nullopt;
        }
      } else if (where->first != 0 || !follow(decoded, where->end)) {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

private:
  static constexpr uint32_t kAllLanes = ~0u;

  struct Range {
    uint64_t first = 0;
    uint64_t end = 0;
  };
  /// Code that the lanes after the working ones have passed over.
  struct Part {
    uint32_t end_pc = 0;
    uint64_t working = 0; // from there on
    ResourceSet writes;   // in it
  };
  /// A predicate that changes from lane `at` on.
  struct Cut {
    uint64_t at = 0;
    bool holds_before = false;
  };

  void set_working(uint64_t lanes) {
    working_ = lanes;
    warps_ = static_cast<unsigned>((lanes + isa::kWarpLanes - 1) / isa::kWarpLanes);
  }

  void close_parts() {
    while (!parts_.empty() && parts_.back().end_pc == pc_) {
      set_working(parts_.back().working);
      forget(parts_.back().writes);
      parts_.pop_back();
    }
  }

  bool is_known(unsigned pred) const { return ((known_.preds >> pred) & 1) != 0; }

  /// The working lanes that execute the insn.
  std::optional<Range> where_active(const ProgramInsn& decoded) const {
    if (!decoded.is_guarded) {
      return Range{0, working_};
    }
    const isa::Guard guard = decoded.insn.guard;
    if (is_known(guard.pred)) {
      return Range{0, (words_[guard.pred] != 0) != guard.negated ? working_ : 0};
    }
    if (((cut_ >> guard.pred) & 1) == 0) {
      return std::nullopt;
    }
    const Cut& cut = cuts_[guard.pred];
    const uint64_t at = std::min(cut.at, working_);
    return cut.holds_before != guard.negated ? Range{0, at} : Range{at, working_};
  }

  bool is_exit(uint32_t pc) const {
    const ProgramInsn& decoded = image_.program->at(pc);
    return !decoded.is_guarded && leaves(decoded);
  }
  bool leaves(const ProgramInsn& decoded) const {
    const isa::InsnDesc& row = *decoded.insn.desc;
    return row.has(isa::kEndsLane) && !row.has(isa::kTraps);
  }

  bool follow_branch(const ProgramInsn& decoded, const Range& where) {
    const uint32_t target = isa::target_pc(decoded.insn);
    if (where.first == 0 && where.end == working_) {
      pc_ = target;
    } else if (where.first == 0) { // the others must be at their end
      if (!parts_.empty() || !is_exit(pc_)) {
        return false;
      }
      set_working(where.end);
      ++apart_;
      pc_ = target;
    } else if (is_exit(target) && parts_.empty()) {
      set_working(where.first);
      ++apart_;
    } else {
      if (decoded.join_pc != target || target < pc_) {
        return false;
      }
      parts_.push_back({target, working_, {}});
      set_working(where.first);
    }
    return true;
  }

  /// What the insn does to registers and memory in the lanes before `end`. False: cannot be told.
  bool follow(const ProgramInsn& decoded, uint64_t end) {
    constexpr isa::Flags kOfRegisters =
        isa::kTypesFirst | isa::kSelects | isa::kDivides | isa::kCrossLane | isa::kShuffles;
    const isa::InsnDesc& row = *decoded.insn.desc;
    for (Part& part : parts_) {
      part.writes.add(decoded.writes);
    }
    const bool is_load = row.flags == isa::kReadsMem;
    const bool is_store = row.flags == isa::kWritesMem;
    if (is_load || is_store) {
      if (!follow_access(decoded, is_load ? 1 : 0, is_store, end)) {
        return false;
      }
      forget(decoded.writes);
      return true;
    }
    if ((row.flags & ~kOfRegisters) != 0) {
      return false;
    }
    if (end != working_ || !follow_linear(decoded)) {
      forget(decoded.writes);
    }
    return true;
  }

  void forget(const ResourceSet& set) {
    known_.reg32[0] &= ~set.reg32[0];
    known_.reg32[1] &= ~set.reg32[1];
    known_.reg64 &= ~set.reg64;
    known_.preds &= ~set.preds;
    cut_ &= ~set.preds;
  }

  bool follow_linear(const ProgramInsn& decoded) {
    const isa::Insn& insn = decoded.insn;
    if (insn.desc->linear == nullptr || !decoded.reads.is_within(known_) ||
        (decoded.reads.preds & ~known_.preds) != 0) {
      return false;
    }
    isa::LinearSources sources;
    sources.warps = warps_;
    const unsigned end = std::min<unsigned>(insn.operand_count, sources.at.size());
    for (unsigned i = 1; i < end; ++i) {
      if (!source(insn.operands[i], sources.at[i])) {
        return false;
      }
    }
    LinearValue result;
    const isa::Operand& dst = insn.operands[0];
    if (!insn.desc->linear(*this, insn, sources, result)) {
      return dst.kind == OperandKind::kPred && find_cut(insn, sources);
    }
    if (dst.kind == OperandKind::kReg32) {
      at32_[dst.index] = result.low_half();
      known_.add_reg32(dst.index);
    } else if (dst.kind == OperandKind::kReg64) {
      at64_[dst.index] = result;
      known_.add_reg64(dst.index);
    } else if (dst.kind == OperandKind::kPred) {
      known_.preds |= 1u << dst.index;
      cut_ &= ~(1u << dst.index);
    }
    return true;
  }

  /// A comparison of a number that goes up or down with the lane, and one that stays: where its
  /// ends differ it changes once between them.
  bool find_cut(const isa::Insn& insn, const isa::LinearSources& sources) {
    const bool are_plain = insn.operand_count == 3 &&
                           sources.at[1].is_uniform() != sources.at[2].is_uniform() &&
                           is_steady(insn, sources.at[1]) && is_steady(insn, sources.at[2]);
    if (!are_plain) {
      return false;
    }
    const unsigned index = insn.operands[0].index;
    const auto holds_at = [&](uint64_t lane) {
      isa::LinearSources one;
      for (unsigned i = 1; i < 3; ++i) {
        one.at[i] =
            LinearValue::uniform(sources.at[i].base + lane * sources.at[i].lane_step).low_half();
      }
      LinearValue unused;
      return insn.desc->linear(*this, insn, one, unused) ? std::optional(words_[index] != 0)
                                                         : std::nullopt;
    };
    const std::optional<bool> first = holds_at(0);
    const std::optional<bool> last = holds_at(working_ - 1);
    if (!first || !last || *first == *last) {
      return false;
    }
    Range open{0, working_ - 1}; // the first lane is like lane 0, the one at the end is not
    while (open.end - open.first > 1) {
      const uint64_t middle = open.first + (open.end - open.first) / 2;
      (holds_at(middle) == first ? open.first : open.end) = middle;
    }
    known_.preds &= ~(1u << index);
    cut_ |= 1u << index;
    cuts_[index] = {open.end, *first};
    return true;
  }

  /// Goes on with the same step from warp to warp, and does not wrap around.
  bool is_steady(const isa::Insn& insn, const LinearValue& value) const {
    return static_cast<uint32_t>(value.warp_step - value.lane_step * isa::kWarpLanes) == 0 &&
           isa::linear_range(value, warps_, isa::is_signed(insn.type)).has_value();
  }

  bool source(const isa::Operand& operand, LinearValue& value) const {
    switch (operand.kind) {
    case OperandKind::kReg32:
      value = at32_[operand.index];
      return true;
    case OperandKind::kReg64:
      value = at64_[operand.index];
      return true;
    case OperandKind::kImm:
      value = LinearValue::uniform(operand.bits);
      return true;
    case OperandKind::kParam:
      value = LinearValue::uniform(image_.params[operand.index]);
      return true;
    case OperandKind::kSpecial:
      return special(static_cast<Special>(operand.index), value);
    case OperandKind::kPred:
      return true; // its word is there
    default:
      return false;
    }
  }

  /// Those that do not begin anew in every block. The grid is one-dimensional.
  bool special(Special special, LinearValue& value) const {
    if (special == Special::kLane) {
      value = {0, 1, 0};
    } else if (special == Special::kGidX) {
      value = {0, 1, isa::kWarpLanes};
    } else if (special == Special::kGidY || special == Special::kGidZ) {
      value = {};
    } else if (special == Special::kGsizeX) {
      value = LinearValue::uniform(image_.extent.x);
    } else if (special == Special::kGsizeY || special == Special::kGsizeZ) {
      value = LinearValue::uniform(1);
    } else {
      return false;
    }
    return true;
  }

  bool follow_access(const ProgramInsn& decoded, unsigned operand, bool writes, uint64_t end) {
    const isa::MemRef mem = decoded.insn.operand(operand).mem();
    const uint32_t bytes = isa::size_bytes(decoded.insn.type) * isa::vector_count(decoded.insn);
    const bool is_of_param = mem.base == isa::BaseKind::kParam;
    if (mem.space != isa::Space::kHbm || (!is_of_param && mem.base != isa::BaseKind::kReg)) {
      return false;
    }
    const uint64_t base = static_cast<uint64_t>(int64_t{mem.offset}) +
                          (is_of_param ? image_.params[mem.base_index] : 0);
    const auto at = linear_address(mem, base, false, {known_, at32_.data(), at64_.data()}, warps_);
    const auto range = at ? range_of(*at, bytes, end) : std::nullopt;
    if (!range) {
      return false;
    }
    const Allocation* allocation = image_.hbm->find(range->lowest);
    return allocation != nullptr && allocation->holds(range->lowest, range->bytes) &&
           ledger_.note(
               range->lowest, range->lowest + range->bytes, is_one_run(*at, bytes, warps_), writes);
  }

  /// Of the lanes before `end`.
  std::optional<AccessRange> range_of(const LinearValue& at, uint32_t bytes, uint64_t end) const {
    std::optional<AccessRange> range = linear_range_of(at, bytes, warps_);
    const auto step = static_cast<int64_t>(at.lane_step);
    if (range && at.warp_step == at.lane_step * isa::kWarpLanes) {
      const uint64_t over = static_cast<uint64_t>(std::abs(step)) * (end - 1);
      range->lowest = step < 0 ? at.base - over : at.base;
      range->bytes = over + bytes;
    }
    return range;
  }

  const LaunchImage& image_;
  uint32_t pc_ = 0;
  uint64_t working_ = 0; // lanes
  unsigned warps_ = 0;   // with working lanes
  uint64_t apart_ = 0;   // insns of lanes that leave by themselves
  std::vector<Part> parts_;
  ResourceSet known_;
  std::array<LinearValue, isa::kReg32Count> at32_{};
  std::array<LinearValue, isa::kReg64Count> at64_{};
  std::array<uint32_t, isa::kPredCount> words_{}; // of the known ones
  uint32_t cut_ = 0;                              // bit i: p_i is known by cuts_[i]
  std::array<Cut, isa::kPredCount> cuts_{};
  AccessLedger ledger_;
};

} // namespace

bool is_line_of_warps(const LaunchImage& image) {
  return image.block.y == 1 && image.block.z == 1 && image.grid.y == 1 && image.grid.z == 1 &&
         image.lanes == image.padded_lanes;
}

std::optional<GridProof> prove_grid(const Launch& launch) {
  const LaunchImage& image = launch.image();
  const uint64_t warps = launch.block_count() * image.warps;
  if (!is_line_of_warps(image) || image.data_caches != nullptr ||
      warps > (uint64_t{1} << 31) / isa::kWarpLanes) { // lanes are numbers of 31 bits
    return std::nullopt;
  }
  return GridWalk(image, warps * isa::kWarpLanes).run();
}

} // namespace pto::sim
