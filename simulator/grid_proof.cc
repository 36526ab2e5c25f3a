// SPDX-License-Identifier: Apache-2.0
#include "simulator/grid_proof.h"

#include "isa/linear.h"
#include "isa/span_lanes.h"
#include "simulator/access_ledger.h"
#include "simulator/launch.h"
#include "simulator/linear_access.h"

#include <algorithm>
#include <array>

namespace pto::sim {

namespace {

using isa::LinearValue;
using isa::OperandKind;
using isa::Special;

constexpr uint64_t kMostInsns = 4096; // a longer walk is not worth it

/// Every lane of the grid. Of each predicate there is one word: it holds in all lanes, or in none,
/// or is not known.
class GridWalk final : public isa::SpanLanes {
public:
  GridWalk(const LaunchImage& image, uint64_t warps)
      : image_(image), warps_(static_cast<unsigned>(warps)) {
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
    ledger_.begin();
  }

  std::optional<GridProof> run() {
    uint32_t pc = image_.program->entry_pc();
    for (uint64_t insns = 1; insns <= kMostInsns; ++insns) {
      const ProgramInsn& decoded = image_.program->at(pc);
      const isa::InsnDesc& row = *decoded.insn.desc;
      ++pc;
      if (decoded.is_guarded) {
        const isa::Guard guard = decoded.insn.guard;
        if (!is_known(guard.pred)) {
          return std::nullopt;
        }
        if ((words_[guard.pred] != 0) == guard.negated) {
          continue;
        }
      }
      if (row.has(isa::kTraps)) {
        return std::nullopt;
      }
      if (row.has(isa::kEndsLane)) {
        return GridProof{insns};
      }
      if (row.has(isa::kBranch)) {
        pc = isa::target_pc(decoded.insn);
      } else if (!follow(decoded)) {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

private:
  static constexpr uint32_t kAllLanes = ~0u;

  bool is_known(unsigned pred) const { return ((known_.preds >> pred) & 1) != 0; }

  /// What the insn does to registers and memory. False: cannot be told.
  bool follow(const ProgramInsn& decoded) {
    constexpr isa::Flags kOfRegisters = isa::kTypesFirst | isa::kSelects | isa::kDivides |
                                        isa::kCrossLane | isa::kShuffles | isa::kWarpBarrier;
    const isa::InsnDesc& row = *decoded.insn.desc;
    if (row.scope == isa::Scope::kBlock) {
      return false;
    }
    const bool is_load = row.flags == isa::kReadsMem;
    const bool is_store = row.flags == isa::kWritesMem;
    if (is_load || is_store) {
      if (!follow_access(decoded, is_load ? 1 : 0, is_store)) {
        return false;
      }
      forget(decoded.writes);
      return true;
    }
    if ((row.flags & ~kOfRegisters) != 0) {
      return false;
    }
    if (!follow_linear(decoded)) {
      forget(decoded.writes);
    }
    return true;
  }

  void forget(const ResourceSet& set) {
    known_.reg32[0] &= ~set.reg32[0];
    known_.reg32[1] &= ~set.reg32[1];
    known_.reg64 &= ~set.reg64;
    known_.preds &= ~set.preds;
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
    if (!insn.desc->linear(*this, insn, sources, result)) {
      return false;
    }
    const isa::Operand& dst = insn.operands[0];
    if (dst.kind == OperandKind::kReg32) {
      at32_[dst.index] = result.low_half();
      known_.add_reg32(dst.index);
    } else if (dst.kind == OperandKind::kReg64) {
      at64_[dst.index] = result;
      known_.add_reg64(dst.index);
    } else if (dst.kind == OperandKind::kPred) {
      known_.preds |= 1u << dst.index;
    }
    return true;
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

  bool follow_access(const ProgramInsn& decoded, unsigned operand, bool writes) {
    const isa::MemRef mem = decoded.insn.operand(operand).mem();
    const uint32_t bytes = isa::size_bytes(decoded.insn.type) * isa::vector_count(decoded.insn);
    const bool is_of_param = mem.base == isa::BaseKind::kParam;
    if (mem.space != isa::Space::kHbm || (!is_of_param && mem.base != isa::BaseKind::kReg)) {
      return false;
    }
    const uint64_t base = static_cast<uint64_t>(int64_t{mem.offset}) +
                          (is_of_param ? image_.params[mem.base_index] : 0);
    const auto at = linear_address(mem, base, false, {known_, at32_.data(), at64_.data()}, warps_);
    const auto range = at ? linear_range_of(*at, bytes, warps_) : std::nullopt;
    if (!range) {
      return false;
    }
    const Allocation* allocation = image_.hbm->find(range->lowest);
    return allocation != nullptr && allocation->holds(range->lowest, range->bytes) &&
           ledger_.note(
               range->lowest, range->lowest + range->bytes, is_one_run(*at, bytes, warps_), writes);
  }

  const LaunchImage& image_;
  const unsigned warps_;
  ResourceSet known_;
  std::array<LinearValue, isa::kReg32Count> at32_{};
  std::array<LinearValue, isa::kReg64Count> at64_{};
  std::array<uint32_t, isa::kPredCount> words_{};
  AccessLedger ledger_;
};

} // namespace

std::optional<GridProof> prove_grid(const Launch& launch) {
  const LaunchImage& image = launch.image();
  const uint64_t warps = launch.block_count() * image.warps;
  const bool is_flat = image.block.y == 1 && image.block.z == 1 && image.grid.y == 1 &&
                       image.grid.z == 1 && image.lanes == image.padded_lanes;
  if (!is_flat || image.data_caches != nullptr ||
      warps > (uint64_t{1} << 31) / isa::kWarpLanes) { // lanes are numbers of 31 bits
    return std::nullopt;
  }
  return GridWalk(image, warps).run();
}

} // namespace pto::sim
