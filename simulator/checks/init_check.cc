// SPDX-License-Identifier: Apache-2.0
// The init check, see the header: registers, and uses that matter. Scratchpad is in
// init_scratchpad.cc.
#include "simulator/checks/init_check.h"

#include "isa/insn_desc.h"
#include "simulator/block.h"
#include "simulator/checks/first_use.h"
#include "simulator/launch.h"
#include "simulator/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace pto::sim {

namespace {

using isa::Operand;
using isa::OperandKind;

// Registers of all files in one row: r, d, p.
constexpr unsigned kFirstReg64 = isa::kReg32Count;
constexpr unsigned kFirstPred = kFirstReg64 + isa::kReg64Count;
constexpr unsigned kSlots = kFirstPred + isa::kPredCount;

std::string slot_name(unsigned slot) {
  return slot < kFirstReg64  ? fmt::format("r{}", slot)
         : slot < kFirstPred ? fmt::format("d{}", slot - kFirstReg64)
                             : fmt::format("p{}", slot - kFirstPred);
}

bool is_suspect(const ResourceSet& suspects, unsigned slot) {
  return slot < kFirstReg64  ? suspects.has_reg32(slot)
         : slot < kFirstPred ? suspects.has_reg64(slot - kFirstReg64)
                             : (suspects.preds >> (slot - kFirstPred) & 1) != 0;
}

// While nothing is tainted.
Interest interest_in(const ProgramInsn& decoded, const ResourceSet& suspects) {
  if (decoded.reads.intersects(suspects) || decoded.writes.intersects(suspects) ||
      decoded.is_block_scoped) {
    return Interest::kWarp;
  }
  const isa::Insn& insn = decoded.insn;
  const bool accesses_l1 = !insn.desc->has(isa::kCacheControl) &&
                           std::any_of(insn.operands.begin(),
                                       insn.operands.begin() + insn.operand_count,
                                       [](const Operand& operand) {
                                         return operand.kind == OperandKind::kMem &&
                                                operand.mem().space == isa::Space::kL1;
                                       });
  return accesses_l1 ? Interest::kSpan : Interest::kNone;
}

bool is_register(const Operand& operand) {
  return operand.kind == OperandKind::kReg32 || operand.kind == OperandKind::kReg64 ||
         operand.kind == OperandKind::kPred;
}

} // namespace

void InitCheck::Undefined::add(uint32_t more, const Origin& from) {
  if (lanes == 0 && more != 0) {
    origin = from;
  }
  lanes |= more;
}

unsigned InitCheck::slot_of(OperandKind kind, uint32_t index) {
  return kind == OperandKind::kReg32   ? index
         : kind == OperandKind::kReg64 ? kFirstReg64 + index
                                       : kFirstPred + index;
}

void InitCheck::launch_begin(const Launch& launch) {
  blocks_.clear();
  tainted_blocks_ = 0;
  is_tainted_ = false;
  suspects_ = read_before_write(launch.program());
  suspect_slots_.clear();
  for (unsigned slot = 0; slot < kSlots; ++slot) {
    if (is_suspect(suspects_, slot)) {
      suspect_slots_.push_back(slot);
    }
  }
  quiet_.clear();
  for (const ProgramInsn& decoded : launch.program().insns()) {
    quiet_.push_back(interest_in(decoded, suspects_));
  }
  interests_ = quiet_;
}

void InitCheck::block_begin(const BlockRun& block) {
  BlockData& data = blocks_.begin(block.index());
  const bool is_new = data.warps == 0;
  if (is_new) {
    data.warps = block.warp_count();
    data.origins.resize(size_t{kSlots} * data.warps);
    data.l1.resize(block.scratchpad().capacity_bytes());
  }
  std::fill_n(data.l1.begin(), data.l1_end, uint8_t{0});
  data.l1_end = 0;
  data.spoiled_by.clear();
  data.spoils.clear();
  if (is_new || data.has_changed) {
    data.defined.assign(size_t{kSlots} * data.warps, ~0u);
    for (const unsigned slot : suspect_slots_) {
      const size_t first = size_t{slot} * data.warps;
      std::fill_n(data.defined.begin() + static_cast<std::ptrdiff_t>(first), data.warps, 0u);
      // Origins of others are set together with what makes them undefined.
      std::fill_n(data.origins.begin() + static_cast<std::ptrdiff_t>(first), data.warps, Origin{});
    }
    data.has_changed = false;
  }
}

void InitCheck::block_end(const BlockRun& block) {
  if (blocks_.at(block.index()).tainted != 0) {
    set_tainted(--tainted_blocks_ != 0);
  }
  blocks_.end(block.index());
}

void InitCheck::set_tainted(bool is_tainted) {
  if (is_tainted == is_tainted_) {
    return;
  }
  is_tainted_ = is_tainted;
  if (is_tainted) {
    std::fill(interests_.begin(), interests_.end(), Interest::kWarp);
  } else {
    std::copy(quiet_.begin(), quiet_.end(), interests_.begin());
  }
}

InitCheck::Undefined
InitCheck::register_value(uint64_t block, unsigned slot, uint32_t warp, uint32_t lanes) {
  const BlockData& in_block = blocks_.at(block);
  const size_t at = size_t{slot} * in_block.warps + warp;
  Undefined result;
  Origin origin = in_block.origins[at];
  // A value computed from an unwritten register keeps that register's name.
  if (origin.pc == Origin::kNever && origin.address == Origin::kNoSlot) {
    origin.address = slot;
  }
  result.add(lanes & ~in_block.defined[at], origin);
  return result;
}

InitCheck::Undefined
InitCheck::value(const EventSite& site, const Operand& operand, uint32_t lanes) {
  return is_register(operand)
             ? register_value(
                   site.block.index(), slot_of(operand.kind, operand.index), site.warp, lanes)
             : Undefined{};
}

InitCheck::Undefined
InitCheck::address_value(const EventSite& site, const Operand& mem, uint32_t lanes) {
  Undefined result;
  const isa::MemRef ref = mem.mem();
  if (ref.base == isa::BaseKind::kReg) {
    const OperandKind kind =
        ref.space == isa::Space::kHbm ? OperandKind::kReg64 : OperandKind::kReg32;
    result = register_value(site.block.index(), slot_of(kind, ref.base_index), site.warp, lanes);
  }
  if (ref.index_reg != isa::kNoIndexReg) {
    const Undefined index = register_value(
        site.block.index(), slot_of(OperandKind::kReg32, ref.index_reg), site.warp, lanes);
    result.add(index.lanes, index.origin);
  }
  return result;
}

// SEL reads only the source that its predicate picks.
InitCheck::Undefined
InitCheck::selected(const EventSite& site, const isa::Insn& insn, uint32_t lanes) {
  uint32_t chosen = 0;
  for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
    const uint32_t in_block = site.warp * isa::kWarpLanes + lane;
    if ((lanes >> lane & 1) != 0 &&
        site.block.source_value(insn.operands[3], isa::Type::kPred, in_block) != 0) {
      chosen |= 1u << lane;
    }
  }
  Undefined result = value(site, insn.operands[3], lanes);
  const Undefined a = value(site, insn.operands[1], lanes & chosen);
  const Undefined b = value(site, insn.operands[2], lanes & ~chosen);
  result.add(a.lanes, a.origin);
  result.add(b.lanes, b.origin);
  return result;
}

void InitCheck::before_insn(const EventSite& site, uint32_t active_mask, uint32_t exec_mask) {
  const ProgramInsn& decoded = site.block.next_insn(site.warp);
  const isa::Insn& insn = decoded.insn;
  operands_ = {};
  elements_.clear();
  if (insn.guard.present) {
    const Undefined guard =
        register_value(site.block.index(), kFirstPred + insn.guard.pred, site.warp, active_mask);
    report(site, guard, insn.desc->has(isa::kBranch) ? "decides a branch" : "decides a guard");
  }
  if (exec_mask == 0 || (decoded.is_block_scoped && site.warp != 0)) {
    return;
  }
  const uint32_t lanes = decoded.is_block_scoped ? 1u << std::countr_zero(exec_mask) : exec_mask;
  const bool is_select = insn.desc->has(isa::kSelects);
  if (is_select) {
    operands_ = selected(site, insn, lanes);
    return;
  }
  bool writes_hbm = false;
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    const Operand& operand = insn.operands[i];
    const isa::OperandSpec& spec = isa::spec_of(insn, i);
    if (operand.kind == OperandKind::kMem) {
      report(site, address_value(site, operand, lanes), "is used as an address");
      writes_hbm |= isa::writes(spec.role) && operand.mem().space == isa::Space::kHbm;
    } else if (isa::reads(spec.role) && is_register(operand)) {
      const unsigned count = spec.vector ? isa::vector_count(insn) : 1;
      for (unsigned element = 0; element < count; ++element) {
        const Undefined part = register_value(
            site.block.index(), slot_of(operand.kind, operand.index) + element, site.warp, lanes);
        operands_.add(part.lanes, part.origin);
        elements_.push_back(part);
      }
    }
  }
  if (writes_hbm && !insn.desc->has(isa::kAsync)) {
    report(site, operands_, "is stored to hbm");
  } else if (insn.desc->has(isa::kPrints)) {
    report(site, operands_, "is printed");
  } else if (decoded.is_block_scoped) {
    report(site, operands_, "is an operand of a block-scoped insn");
  }
  if (insn.desc->has(isa::kCrossLane) && operands_.lanes != 0) {
    // A reduction or vote mixes all lanes. A shuffle reads one lane each, here unknown: undefined
    // only where every lane is, so that no correct exchange is reported.
    const bool is_shuffle = insn.desc->has(isa::kShuffles);
    operands_.lanes = is_shuffle && operands_.lanes != lanes ? 0 : lanes;
  }
}

void InitCheck::after_insn(const BlockRun& block, const IssueRecord& record) {
  if (record.exec_mask == 0 || record.passed_over) {
    return;
  }
  const isa::Insn& insn = *record.insn;
  if (insn.desc->unit == isa::Unit::kC) {
    matrix_product(block, record);
  } else {
    for (unsigned i = 0; i < record.l1_count; ++i) {
      if (record.l1[i].writes) {
        blocks_.at(block.index()).define_l1(record.l1[i].offset, record.l1[i].size_bytes);
      }
    }
  }
  if (record.addresses != nullptr && record.space == isa::Space::kL1 &&
      (record.reads_memory || record.writes_memory)) {
    L1Access access{.block = block,
                    .insn = insn,
                    .pc = record.pc,
                    .warp = record.warp,
                    .mask = record.exec_mask,
                    .access_bytes = record.access_bytes,
                    .element_bytes = record.element_bytes,
                    .writes = record.writes_memory,
                    .is_atomic = record.is_atomic};
    std::copy_n(record.addresses, isa::kWarpLanes, access.addresses.begin());
    if (record.reads_memory) {
      load_from_l1(access);
    } else {
      store_to_l1(access);
    }
    return;
  }
  // Loads from hbm and const are defined; all else is as defined as its sources.
  const bool is_load = record.addresses != nullptr && record.reads_memory;
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    const isa::OperandSpec& spec = isa::spec_of(insn, i);
    if (isa::writes(spec.role) && is_register(insn.operands[i])) {
      const unsigned count = spec.vector ? isa::vector_count(insn) : 1;
      for (unsigned element = 0; element < count; ++element) {
        define(record.block,
               record.warp,
               slot_of(insn.operands[i].kind, insn.operands[i].index) + element,
               record.exec_mask,
               is_load ? 0 : operands_.lanes,
               operands_.origin);
      }
    }
  }
}

void InitCheck::define(uint64_t block,
                       uint32_t warp,
                       unsigned slot,
                       uint32_t mask,
                       uint32_t undefined,
                       const Origin& origin) {
  BlockData& in_block = blocks_.at(block);
  const size_t at = size_t{slot} * in_block.warps + warp;
  uint32_t& defined = in_block.defined[at];
  const bool was_tainted = defined != ~0u;
  in_block.has_changed = true;
  defined = (defined & ~mask) | (mask & ~undefined);
  if ((undefined & mask) != 0) {
    in_block.origins[at] = origin;
  }
  const bool is_tainted = defined != ~0u;
  if (was_tainted == is_tainted || is_suspect(suspects_, slot)) {
    return;
  }
  const uint64_t before = in_block.tainted;
  in_block.tainted += is_tainted ? 1 : -1;
  if ((before == 0) != (in_block.tainted == 0)) {
    tainted_blocks_ += is_tainted ? 1 : -1;
    set_tainted(tainted_blocks_ != 0);
  }
}

void InitCheck::report(const EventSite& site, const Undefined& undefined, const char* use) {
  if (undefined.lanes == 0) {
    return;
  }
  const Origin& origin = undefined.origin;
  if (findings_.count_known(CheckKind::kInit, site.pc, origin.pc)) {
    return;
  }
  Finding finding;
  finding.kind = CheckKind::kInit;
  finding.here = {.pc = site.pc,
                  .block = site.block.index(),
                  .warp = site.warp,
                  .lane_mask = undefined.lanes,
                  .what = "use"};
  if (origin.pc == Origin::kNever) {
    finding.message = fmt::format(
        "{}, which was never written, {}", slot_name(static_cast<unsigned>(origin.address)), use);
    finding.hint = "write the register on every path to here";
  } else {
    const std::string place = describe_address(site.block, isa::Space::kL1, origin.address);
    finding.message =
        fmt::format("a value from scratchpad that was never written ({}) {}", place, use);
    finding.hint = "fill or load the scratchpad before it is read";
    if (origin.pc != site.pc) {
      finding.there = FindingSite{.pc = origin.pc,
                                  .block = site.block.index(),
                                  .warp = site.warp,
                                  .lane_mask = 0,
                                  .what = "read of undefined scratchpad"};
    }
    finding.has_address = true;
    finding.space = isa::Space::kL1;
    finding.address = origin.address;
    finding.size_bytes = 1;
    finding.location = place;
  }
  findings_.add(std::move(finding));
}

} // namespace pto::sim
