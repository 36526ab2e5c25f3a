// SPDX-License-Identifier: Apache-2.0
// The init check, see the header.
#include "simulator/checks/init_check.h"

#include "isa/error.h"
#include "isa/insn_desc.h"
#include "simulator/block.h"
#include "simulator/checks/first_use.h"
#include "simulator/each_lane.h"
#include "simulator/launch.h"
#include "simulator/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

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

/// Flags of the widest access of a lane.
constexpr std::array<uint8_t, 32> kAllDefined = [] {
  std::array<uint8_t, 32> flags{};
  flags.fill(1);
  return flags;
}();

/// Calls act with the size as a constant, for which a few bytes are set or compared at once.
template <class Act> void with_constant_bytes(uint32_t bytes, Act&& act) {
  switch (bytes) {
  case 1:
    return act(std::integral_constant<size_t, 1>());
  case 2:
    return act(std::integral_constant<size_t, 2>());
  case 4:
    return act(std::integral_constant<size_t, 4>());
  case 8:
    return act(std::integral_constant<size_t, 8>());
  case 16:
    return act(std::integral_constant<size_t, 16>());
  default:
    PTO_CHECK(bytes <= kAllDefined.size());
    return act(size_t{bytes});
  }
}

uint64_t span_bytes(const SpanRecord& span) {
  return uint64_t{span.access_bytes} * isa::kWarpLanes * span.warp_count;
}

/// All lanes access, each the bytes next to those of the lane before.
bool is_one_range(const SpanRecord& span) {
  return span.is_contiguous() && std::all_of(span.exec_masks,
                                             span.exec_masks + span.warp_count,
                                             [](uint32_t mask) { return mask == ~0u; });
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

void InitCheck::BlockData::define_l1(uint64_t offset, uint64_t bytes) {
  std::memset(l1.data() + offset, 1, bytes);
  l1_end = std::max(l1_end, offset + bytes);
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

// Nothing is tainted and no operand is suspect: the values stored are defined, and so is an
// atomic's sum of defined values.
void InitCheck::after_span(const SpanRecord& span) {
  if (!span.has_access || span.space != isa::Space::kL1) {
    return;
  }
  if (span.reads_memory) {
    span_loads_from_l1(span);
  } else {
    span_stores_to_l1(span);
  }
}

void InitCheck::span_stores_to_l1(const SpanRecord& span) {
  BlockData& in_block = blocks_.at(span.block->index());
  if (is_one_range(span)) {
    in_block.define_l1(span.at.base, span_bytes(span));
    return;
  }
  with_constant_bytes(span.access_bytes, [&](auto bytes) {
    for_each_lane(span.exec_masks, span.warp_count, [&](unsigned lane) {
      in_block.define_l1(span.address(lane), bytes);
    });
  });
}

void InitCheck::span_loads_from_l1(const SpanRecord& span) {
  const uint8_t* l1 = blocks_.at(span.block->index()).l1.data();
  if (is_one_range(span) && std::memchr(l1 + span.at.base, 0, span_bytes(span)) == nullptr) {
    return;
  }
  operands_ = {};
  elements_.clear();
  for (uint32_t w = 0; w < span.warp_count; ++w) {
    const uint32_t first = w * isa::kWarpLanes;
    bool is_defined = true;
    with_constant_bytes(span.access_bytes, [&](auto bytes) {
      for_each_lane(span.exec_masks + w, 1, [&](unsigned lane) {
        is_defined &= std::memcmp(l1 + span.address(first + lane), kAllDefined.data(), bytes) == 0;
      });
    });
    if (is_defined) {
      continue;
    }
    L1Access access{.block = *span.block,
                    .insn = span.decoded->insn,
                    .pc = span.pc,
                    .warp = span.first_warp + w,
                    .mask = span.exec_masks[w],
                    .access_bytes = span.access_bytes,
                    .element_bytes = span.element_bytes,
                    .writes = span.writes_memory,
                    .is_atomic = span.is_atomic};
    for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
      access.addresses[lane] = span.address(first + lane);
    }
    load_from_l1(access);
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

bool InitCheck::l1_defined(BlockData& data,
                           uint64_t offset,
                           uint64_t bytes,
                           uint64_t& first_undefined) {
  if (offset >= data.l1.size()) {
    return true;
  }
  const uint8_t* flags = data.l1.data();
  const void* found = std::memchr(flags + offset, 0, std::min(bytes, data.l1.size() - offset));
  if (found == nullptr) {
    return true;
  }
  first_undefined = static_cast<uint64_t>(static_cast<const uint8_t*>(found) - flags);
  return false;
}

void InitCheck::load_from_l1(const L1Access& access) {
  BlockData& in_block = blocks_.at(access.block.index());
  const isa::Insn& insn = access.insn;
  const unsigned count = std::max(1u, access.access_bytes / std::max(access.element_bytes, 1u));
  for (unsigned element = 0; element < count; ++element) {
    uint32_t undefined = 0;
    Origin origin;
    for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
      uint64_t first = 0;
      if ((access.mask >> lane & 1) != 0 &&
          !l1_defined(in_block,
                      access.addresses[lane] + uint64_t{element} * access.element_bytes,
                      access.element_bytes,
                      first)) {
        if (undefined == 0) {
          origin = {.pc = access.pc, .is_memory = true, .address = first};
        }
        undefined |= 1u << lane;
      }
    }
    const isa::Operand& to = insn.operands[0];
    // In the quiet state a destination that is fully defined stays so.
    if (to.kind != OperandKind::kDiscard &&
        (undefined != 0 || interests_[access.pc] == Interest::kWarp)) {
      define(access.block.index(),
             access.warp,
             slot_of(to.kind, to.index) + element,
             access.mask,
             undefined,
             origin);
    }
  }
  // An atomic stores a value that is as defined as the old one and its operands: bytes that were
  // undefined stay so, and an undefined operand makes them so.
  if (access.writes && operands_.lanes != 0) {
    store_to_l1(access);
  }
}

void InitCheck::store_to_l1(const L1Access& access) {
  BlockData& in_block = blocks_.at(access.block.index());
  const unsigned element_bytes = std::max(access.element_bytes, 1u);
  for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
    if ((access.mask >> lane & 1) == 0) {
      continue;
    }
    for (uint64_t at = 0; at < access.access_bytes; ++at) {
      const uint64_t element = access.is_atomic ? 0 : at / element_bytes;
      const uint32_t undefined = access.is_atomic             ? operands_.lanes
                                 : element < elements_.size() ? elements_[element].lanes
                                                              : 0;
      const uint64_t byte = access.addresses[lane] + at;
      if (byte < in_block.l1.size()) {
        in_block.l1[byte] = (undefined >> lane & 1) == 0 ? 1 : 0;
        in_block.l1_end = std::max(in_block.l1_end, byte + 1);
      }
    }
  }
}

// C[i][j] is undefined where row i of A, column j of B or C itself is, in part.
void InitCheck::matrix_product(const BlockRun& block, const IssueRecord& record) {
  if (record.l1_count < 3) {
    return;
  }
  BlockData& in_block = blocks_.at(block.index());
  const isa::Insn& insn = *record.insn;
  const uint32_t lane = static_cast<uint32_t>(std::countr_zero(record.exec_mask));
  const auto leading = [&](unsigned i, uint32_t otherwise) {
    return insn.has_operand(i) ? block.source_value(insn.operands[i], isa::Type::kU32, lane)
                               : otherwise;
  };
  const uint64_t in_bytes = isa::size_bytes(insn.type2);
  const uint64_t lda = leading(6, record.k) * in_bytes;
  const uint64_t ldb = leading(7, record.n) * in_bytes;
  const uint64_t ldc = leading(8, record.n) * 4;
  uint64_t first = 0;
  const auto are_rows_defined =
      [&](const L1Record& tile, uint32_t rows, uint64_t row, uint64_t to_next) {
        if (row == to_next) {
          return l1_defined(in_block, tile.offset, rows * row, first);
        }
        bool all = true;
        for (uint32_t i = 0; i < rows && all; ++i) {
          all = l1_defined(in_block, tile.offset + i * to_next, row, first);
        }
        return all;
      };
  if (are_rows_defined(record.l1[1], record.m, record.k * in_bytes, lda) &&
      are_rows_defined(record.l1[2], record.k, record.n * in_bytes, ldb) &&
      are_rows_defined(record.l1[0], record.m, uint64_t{record.n} * 4, ldc)) {
    return; // and C stays so
  }
  std::vector<uint8_t> column_defined(record.n, 1);
  for (uint32_t k = 0; k < record.k; ++k) {
    for (uint32_t j = 0; j < record.n; ++j) {
      column_defined[j] &=
          l1_defined(in_block, record.l1[2].offset + k * ldb + j * in_bytes, in_bytes, first);
    }
  }
  for (uint32_t i = 0; i < record.m; ++i) {
    const bool row =
        l1_defined(in_block, record.l1[1].offset + i * lda, record.k * in_bytes, first);
    for (uint32_t j = 0; j < record.n; ++j) {
      const uint64_t c = record.l1[0].offset + i * ldc + j * 4;
      const bool is_defined = row && column_defined[j] != 0 && l1_defined(in_block, c, 4, first);
      std::fill_n(in_block.l1.begin() + static_cast<std::ptrdiff_t>(c), 4, is_defined ? 1 : 0);
      in_block.l1_end = std::max(in_block.l1_end, c + 4);
    }
  }
}

void InitCheck::copy_start(const EventSite& site, const CopyRecord& copy) {
  BlockData& in_block = blocks_.at(site.block.index());
  for (uint32_t row = 0; row < copy.shape.rows; ++row) {
    const uint64_t offset = copy.l1_row(row);
    if (copy.direction == isa::CopyDirection::kHbmToL1) {
      in_block.define_l1(offset, copy.shape.row_bytes);
      continue;
    }
    uint64_t first = 0;
    if (!l1_defined(in_block, offset, copy.shape.row_bytes, first)) {
      Undefined undefined;
      undefined.add(1, {.pc = site.pc, .is_memory = true, .address = first});
      report(site, undefined, "is copied to hbm");
      return;
    }
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
    finding.there = FindingSite{.pc = origin.pc,
                                .block = site.block.index(),
                                .warp = site.warp,
                                .lane_mask = 0,
                                .what = "read of undefined scratchpad"};
    finding.has_address = true;
    finding.space = isa::Space::kL1;
    finding.address = origin.address;
    finding.size_bytes = 1;
    finding.location = place;
  }
  findings_.add(std::move(finding));
}

} // namespace pto::sim
