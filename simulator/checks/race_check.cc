// SPDX-License-Identifier: Apache-2.0
// The race check, see the header: accesses and what orders them. The order itself is in
// happens_before.h, what is said about a race in race_report.cc.
#include "simulator/checks/race_check.h"

#include "simulator/block.h"
#include "simulator/each_lane.h"
#include "simulator/launch.h"
#include "simulator/program.h"

#include <algorithm>
#include <bit>

namespace pto::sim {

namespace {

constexpr uint32_t kNoPc = Findings::kNoPc;

} // namespace

uint32_t RaceCheck::lane_bytes_of(const ProgramInsn& decoded) {
  const isa::InsnDesc& desc = *decoded.insn.desc;
  const bool accesses = (desc.has(isa::kReadsMem) || desc.has(isa::kWritesMem)) &&
                        desc.scope == isa::Scope::kLane && !desc.has(isa::kCacheControl);
  return accesses ? isa::size_bytes(decoded.insn.type) * isa::vector_count(decoded.insn) : 0;
}

Interest RaceCheck::interest_in(const ProgramInsn& decoded) {
  const isa::InsnDesc& desc = *decoded.insn.desc;
  if (lane_bytes_of(decoded) != 0) {
    return Interest::kSpan;
  }
  const bool synchronises =
      desc.has(isa::kWarpBarrier) || desc.has(isa::kFence) || desc.has(isa::kCacheControl);
  return synchronises || decoded.is_block_scoped ? Interest::kWarp : Interest::kNone;
}

void RaceCheck::launch_begin(const Launch& launch) {
  launch_ = &launch;
  order_.begin(launch.image().warps);
  hbm_ = AccessShadow();
  blocks_.clear();
  lines_ = PagedArray<CachedLine>();
  const uint32_t cores = launch.machine().profile.cores;
  has_caches_ = cores > 1 && launch.block_count() > 1; // one core has nothing to be stale against
  line_log2_ = static_cast<unsigned>(std::countr_zero(launch.machine().profile.l1.line_bytes));
  constexpr unsigned kPartsLog2 = 6;
  part_log2_ = line_log2_ - std::min(line_log2_, kPartsLog2);
  stale_parts_.clear();
  lines_of_core_.assign(std::min(cores, kTrackedCores), {});
  interests_.clear();
  for (const ProgramInsn& decoded : launch.program().insns()) {
    interests_.push_back(interest_in(decoded));
  }
}

void RaceCheck::block_begin(const BlockRun& block) {
  order_.block_begin(block.index());
  blocks_.begin(block.index()).warp_barrier_pcs.assign(block.warp_count(), kNoPc);
}

void RaceCheck::block_end(const BlockRun& block) {
  order_.block_end(block.index());
  blocks_.end(block.index());
}

void RaceCheck::barrier_release(const BlockRun& block, unsigned) {
  order_.barrier(block.index());
  std::vector<uint32_t>& pcs = blocks_.at(block.index()).warp_barrier_pcs;
  std::fill(pcs.begin(), pcs.end(), kNoPc);
  forget_settled_copies(block);
}

void RaceCheck::wait_end(const EventSite& site, int event) {
  for (const CopyRecord& copy : blocks_.at(site.block.index()).copies) {
    if (event < 0 || copy.event == event) {
      order_.copy_waited(site.block.index(), site.warp, copy.id);
    }
  }
  forget_settled_copies(site.block);
}

void RaceCheck::forget_settled_copies(const BlockRun& block) {
  std::vector<CopyRecord>& copies = blocks_.at(block.index()).copies;
  copies.erase(std::remove_if(copies.begin(),
                              copies.end(),
                              [&](const CopyRecord& copy) {
                                return order_.is_copy_settled(block.index(), copy.id);
                              }),
               copies.end());
}

void RaceCheck::copy_start(const EventSite& site, const CopyRecord& copy) {
  const uint64_t block = site.block.index();
  Access access{.block = &site.block,
                .by = order_.view(block, site.warp),
                .agent = order_.copy_start(block, copy.id),
                .pc = site.pc};
  blocks_.at(site.block.index()).copies.push_back(copy);
  AccessShadow& l1 = shadow(site.block, isa::Space::kL1);
  const bool to_l1 = copy.direction == isa::CopyDirection::kHbmToL1;
  for (uint32_t row = 0; row < copy.shape.rows; ++row) {
    access.bytes = copy.shape.row_bytes;
    access.space = isa::Space::kHbm;
    access.shadow = &hbm_;
    access.address = copy.hbm_row(row);
    access.reads = to_l1;
    access.writes = !to_l1;
    range(access);
    access.space = isa::Space::kL1;
    access.shadow = &l1;
    access.address = copy.l1_row(row);
    access.reads = !to_l1;
    access.writes = to_l1;
    range(access);
  }
}

// A tile that takes freed scratchpad needs nothing special: the zeroing of ALLOC_LOCAL is a write
// in the issue record.
void RaceCheck::after_insn(const BlockRun& block, const IssueRecord& record) {
  if (record.exec_mask == 0 || record.passed_over) {
    return;
  }
  const isa::InsnDesc& desc = *record.insn->desc;
  if (desc.has(isa::kWarpBarrier)) {
    blocks_.at(block.index()).warp_barrier_pcs[record.warp] = record.pc;
  } else if (desc.has(isa::kFence)) {
    order_.fence(
        block.index(), record.warp, desc.mods[0]->values[record.insn->mods[0]].suffix == "device");
  }
  for (unsigned i = 0; i < record.l1_count; ++i) {
    const L1Record& l1 = record.l1[i];
    const HappensBefore::View by = order_.view(block.index(), record.warp);
    range({.block = &block,
           .by = by,
           .shadow = &shadow(block, isa::Space::kL1),
           .agent = by.agent(),
           .time = by.time(),
           .pc = record.pc,
           .space = isa::Space::kL1,
           .address = l1.offset,
           .bytes = l1.size_bytes,
           .reads = l1.reads,
           .writes = l1.writes || desc.has(isa::kFrees)}); // others may have the bytes from now on
  }
  if (has_caches_ && desc.has(isa::kCacheControl)) {
    control_cached(block, record);
  }
}

void RaceCheck::after_span(const SpanRecord& span) {
  if (!span.has_access || span.space == isa::Space::kConst) {
    return;
  }
  const uint64_t block = span.block->index();
  AccessShadow& places = shadow(*span.block, span.space);
  for (uint32_t i = 0; i < span.warp_count; ++i) {
    if (span.exec_masks[i] == 0) {
      continue;
    }
    WarpAccess warp{
        .span = span, .by = order_.view(block, span.first_warp + i), .mask = span.exec_masks[i]};
    if (span.is_linear) {
      warp.base = span.at.base + i * span.at.warp_step;
      warp.step = span.at.lane_step;
    } else {
      warp.addresses = span.addresses + size_t{i} * isa::kWarpLanes;
    }
    lane_accesses(warp, places);
    if (has_caches_ && span.space == isa::Space::kHbm) {
      cached_lines(warp);
    }
  }
}

// ---------------------------------------------------------------- accesses

// Order first, then compare: what an atomic learns of a flag counts for the atomic itself.
void RaceCheck::synchronise(const WarpAccess& warp) {
  const SpanRecord& span = warp.span;
  const uint64_t block = warp.by.block();
  const bool acquires =
      span.is_atomic || (span.reads_memory && span.hint == isa::CacheHint::kVolatile);
  const bool releases = span.writes_memory && warp.by.has_fenced();
  if (!releases && !(acquires && order_.has_flags())) {
    return;
  }
  for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
    if ((warp.mask >> lane & 1) == 0) {
      continue;
    }
    // Scratchpad addresses of different blocks are different places.
    const uint64_t location =
        span.space == isa::Space::kHbm ? warp.address(lane) : ~(block << 24 | warp.address(lane));
    order_.flag_access(
        block, warp.by.warp(), location, {.acquires = acquires, .releases = releases});
  }
}

void RaceCheck::lane_accesses(WarpAccess warp, AccessShadow& shadow) {
  synchronise(warp);
  const SpanRecord& span = warp.span;
  Access access{.block = span.block,
                .by = warp.by,
                .shadow = &shadow,
                .agent = warp.by.agent(),
                .time = warp.by.time(),
                .pc = span.pc,
                .lane_bytes = span.access_bytes,
                .space = span.space,
                .reads = span.reads_memory,
                .writes = span.writes_memory,
                .is_atomic = span.is_atomic,
                .is_volatile = span.hint == isa::CacheHint::kVolatile};
  const bool is_row = warp.addresses == nullptr && warp.step == span.access_bytes;
  const bool is_one_place = warp.addresses == nullptr && warp.step == 0 && !access.writes;
  if (is_one_place || (is_row && warp.mask == ~0u)) {
    access.first_lane = static_cast<uint32_t>(std::countr_zero(warp.mask));
    access.address = warp.address(access.first_lane);
    access.bytes = is_row ? uint64_t{span.access_bytes} * isa::kWarpLanes : span.access_bytes;
    range(access);
    return;
  }
  if (access.is_atomic) {
    warp.mask = atomic_words(warp, access);
    if (warp.mask == 0) {
      return;
    }
  }
  if (lane_by_lane(warp, access) == Overlap::kPerhaps && span.writes_memory && !span.is_atomic) {
    same_insn_writes(warp);
  }
}

// Lanes next to each other at bytes next to each other are one access: most are.
RaceCheck::Overlap RaceCheck::lane_by_lane(const WarpAccess& warp, Access access) {
  if (const std::optional<Overlap> overlap = scattered_words(warp, access)) {
    return *overlap;
  }
  bool ascends = true;
  uint64_t end = 0; // of the lane before
  uint32_t next_lane = 0;
  for (uint32_t open = warp.mask; open != 0; open &= open - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(open));
    const uint64_t address = warp.address(lane);
    if (access.bytes != 0 && address == end && next_lane == lane) {
      access.bytes += access.lane_bytes;
      next_lane = lane + 1;
    } else if (access.bytes == 0 || access.writes || address != access.address ||
               access.bytes != access.lane_bytes) { // else: a broadcast read, seen already
      if (access.bytes != 0) {
        range(access);
        ascends = ascends && address >= end;
      }
      access.first_lane = lane;
      access.address = address;
      access.bytes = access.lane_bytes;
      next_lane = lane + 1;
    }
    end = address + access.lane_bytes;
  }
  range(access);
  return ascends ? Overlap::kNone : Overlap::kPerhaps;
}

AccessShadow& RaceCheck::shadow(const BlockRun& block, isa::Space space) {
  return space == isa::Space::kHbm ? hbm_ : blocks_.at(block.index()).l1;
}

void RaceCheck::range(const Access& access) {
  access.shadow->visit(access.address, access.bytes, Visitor{*this, access});
}

void RaceCheck::touch(
    AccessCell& cell, uint8_t mask, uint64_t address, uint64_t bytes, const Access& access) {
  if (cell.write.is_present() && !is_ordered(cell.write, access)) {
    const bool both_atomic = cell.is_write_atomic && access.is_atomic;
    // A flag that is polled: .cv loads against stores and atomics.
    const bool polls = access.reads && !access.writes && access.is_volatile;
    if (!both_atomic && !polls) {
      report(cell.write, true, address, bytes, access);
    }
  }
  const uint32_t lane = lane_of(address, access);
  const AccessEntry entry{.agent = access.agent,
                          .time = access.time,
                          .pc = access.pc & 0x3ffffff,
                          .is_line = bytes == AccessShadow::kLineBytes ? 1u : 0u,
                          .lane = lane & 31};
  if (access.writes) {
    for (unsigned r = 0; r < 2; ++r) {
      if (cell.reads[r].is_present() && !is_ordered(cell.reads[r], access)) {
        report(cell.reads[r], false, address, bytes, access);
      }
    }
    cell.write = entry;
    cell.write_bytes = mask;
    cell.is_write_atomic = access.is_atomic;
    // Reads that came before this write are covered by it: whoever races with them races with it.
    cell.reads = {};
    cell.read_bytes = {};
  }
  if (keeps_read_of(access)) {
    record_read(cell, mask, entry, access);
  }
}

void RaceCheck::record_read(AccessCell& cell,
                            uint8_t mask,
                            const AccessEntry& entry,
                            const Access& access) {
  unsigned place = 2;
  for (unsigned r = 0; r < 2 && place == 2; ++r) {
    if (!cell.reads[r].is_present() || is_ordered(cell.reads[r], access)) {
      place = r;
    }
  }
  if (place == 2) {
    // Both stay unordered with this one. Keep readers of two blocks rather than of one.
    if (!order_.are_of_one_block(cell.reads[0].agent, cell.reads[1].agent)) {
      return;
    }
    place = 1;
  }
  cell.reads[place] = entry;
  cell.read_bytes[place] = mask;
}

} // namespace pto::sim
