// SPDX-License-Identifier: Apache-2.0
// The race check, see the header; the order itself is in happens_before.h.
#include "simulator/checks/race_check.h"

#include "simulator/block.h"
#include "simulator/launch.h"
#include "simulator/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pto::sim {

namespace {

constexpr uint32_t kNoPc = Findings::kNoPc;
enum Topic : unsigned { kConflict, kSameInsn, kStale };
constexpr uint32_t kTrackedCores = 64;

/// Bytes that a LOAD, STORE or ATOM accesses in a lane; 0 for other insns.
uint32_t lane_bytes_of(const ProgramInsn& decoded) {
  const isa::InsnDesc& desc = *decoded.insn.desc;
  const bool accesses = (desc.has(isa::kReadsMem) || desc.has(isa::kWritesMem)) &&
                        desc.scope == isa::Scope::kLane && !desc.has(isa::kCacheControl);
  return accesses ? isa::size_bytes(decoded.insn.type) * isa::vector_count(decoded.insn) : 0;
}

Interest interest_in(const ProgramInsn& decoded) {
  const isa::InsnDesc& desc = *decoded.insn.desc;
  if (lane_bytes_of(decoded) != 0) {
    return Interest::kSpan;
  }
  const bool synchronises =
      desc.has(isa::kWarpBarrier) || desc.has(isa::kFence) || desc.has(isa::kCacheControl);
  return synchronises || decoded.is_block_scoped ? Interest::kWarp : Interest::kNone;
}

std::string describe(const ProgramInsn& decoded, bool wrote, bool is_copy, uint64_t bytes) {
  if (is_copy) {
    return wrote ? "copy into" : "copy out of";
  }
  const std::string_view what = decoded.insn.desc->has(isa::kAtomic) ? "atomic"
                                : wrote                              ? "write"
                                                                     : "read";
  return bytes == 0 ? std::string(what) : fmt::format("{} of {} bytes", what, bytes);
}

} // namespace

void RaceCheck::launch_begin(const Launch& launch) {
  launch_ = &launch;
  order_.begin(launch.image().warps);
  hbm_.clear();
  blocks_.clear();
  last_block_ = ~uint64_t{0};
  lines_.clear();
  const uint32_t cores = launch.machine().profile.cores;
  has_caches_ = cores > 1 && launch.block_count() > 1; // one core has nothing to be stale against
  line_bytes_ = launch.machine().profile.l1.line_bytes;
  lines_of_core_.assign(std::min(cores, kTrackedCores), {});
  interests_.clear();
  for (const ProgramInsn& decoded : launch.program().insns()) {
    interests_.push_back(interest_in(decoded));
  }
}

void RaceCheck::block_begin(const BlockRun& block) {
  order_.block_begin(block.index());
  blocks_[block.index()].warp_barrier_pcs.assign(block.warp_count(), kNoPc);
}

void RaceCheck::block_end(const BlockRun& block) {
  order_.block_end(block.index());
  blocks_.erase(block.index());
  last_block_ = ~uint64_t{0};
}

RaceCheck::BlockData& RaceCheck::data(const BlockRun& block) const {
  if (block.index() != last_block_) {
    last_data_ = const_cast<BlockData*>(&blocks_.at(block.index())); // nodes stay where they are
    last_block_ = block.index();
  }
  return *last_data_;
}

void RaceCheck::barrier_release(const BlockRun& block, unsigned) {
  order_.barrier(block.index());
  std::vector<uint32_t>& pcs = data(block).warp_barrier_pcs;
  std::fill(pcs.begin(), pcs.end(), kNoPc);
  forget_settled_copies(block);
}

void RaceCheck::wait_end(const EventSite& site, int event) {
  for (const CopyRecord& copy : data(site.block).copies) {
    if (event < 0 || copy.event == event) {
      order_.copy_waited(site.block.index(), site.warp, copy.id);
    }
  }
  forget_settled_copies(site.block);
}

void RaceCheck::forget_settled_copies(const BlockRun& block) {
  std::vector<CopyRecord>& copies = data(block).copies;
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
                .warp = site.warp,
                .agent = order_.copy_start(block, site.warp, copy.id),
                .pc = site.pc};
  data(site.block).copies.push_back(copy);
  const bool to_l1 = copy.direction == isa::CopyDirection::kHbmToL1;
  for (uint32_t row = 0; row < copy.shape.rows; ++row) {
    access.bytes = copy.shape.row_bytes;
    access.space = isa::Space::kHbm;
    access.address = copy.hbm_row(row);
    access.reads = to_l1;
    access.writes = !to_l1;
    range(access);
    access.space = isa::Space::kL1;
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
    data(block).warp_barrier_pcs[record.warp] = record.pc;
  } else if (desc.has(isa::kFence)) {
    order_.fence(
        block.index(), record.warp, desc.mods[0]->values[record.insn->mods[0]].suffix == "device");
  }
  for (unsigned i = 0; i < record.l1_count; ++i) {
    const L1Record& l1 = record.l1[i];
    range({.block = &block,
           .warp = record.warp,
           .agent = order_.agent(block.index(), record.warp),
           .time = order_.time(block.index(), record.warp),
           .pc = record.pc,
           .space = isa::Space::kL1,
           .address = l1.offset,
           .bytes = l1.size_bytes,
           .reads = l1.reads,
           .writes = l1.writes});
  }
  if (has_caches_ && desc.has(isa::kCacheControl)) {
    control_cached(block, record);
  }
}

void RaceCheck::after_span(const SpanRecord& span) {
  if (!span.has_access || span.space == isa::Space::kConst) {
    return;
  }
  for (uint32_t i = 0; i < span.warp_count; ++i) {
    if (span.exec_masks[i] != 0) {
      const WarpAccess warp{span, span.first_warp + i, i * isa::kWarpLanes, span.exec_masks[i]};
      lane_accesses(warp);
      if (has_caches_ && span.space == isa::Space::kHbm) {
        cached_lines(warp);
      }
    }
  }
}

// ---------------------------------------------------------------- data caches

void RaceCheck::control_cached(const BlockRun& block, const IssueRecord& record) {
  if (block.core() >= lines_of_core_.size()) {
    return;
  }
  const uint64_t keep = ~(uint64_t{1} << block.core());
  const auto drop = [&](uint64_t line) {
    lines_[line].held &= keep;
    lines_[line].stale &= keep;
  };
  std::vector<uint64_t>& own = lines_of_core_[block.core()];
  if (record.addresses == nullptr) { // INVAL.all
    std::for_each(own.begin(), own.end(), drop);
    own.clear();
    return;
  }
  // PREFETCH is told from INVAL.line by its scope, which is the lane's.
  const bool drops = record.insn->desc->scope == isa::Scope::kWarp;
  for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
    const uint64_t line = record.addresses[lane] / line_bytes_;
    if ((record.exec_mask >> lane & 1) == 0) {
      continue;
    }
    if (drops) {
      drop(line);
    } else if ((lines_[line].held & ~keep) == 0) {
      lines_[line].held |= ~keep;
      own.push_back(line);
    }
  }
}

void RaceCheck::cached_lines(const WarpAccess& warp) {
  const SpanRecord& span = warp.span;
  const uint32_t core = span.block->core();
  const bool is_tracked = core < lines_of_core_.size();
  if (!span.writes_memory && (span.hint != isa::CacheHint::kCached || !is_tracked)) {
    return;
  }
  const uint64_t bit = is_tracked ? uint64_t{1} << core : 0;
  uint64_t last_line = ~uint64_t{0};
  for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
    if ((warp.mask >> lane & 1) == 0) {
      continue;
    }
    const uint64_t number = warp.address(lane) / line_bytes_;
    if (number == last_line) {
      continue;
    }
    last_line = number;
    CachedLine& line = lines_[number];
    if (span.writes_memory) {
      line.stale |= line.held & ~bit;
      line.writer_block = span.block->index();
      line.writer_pc = span.pc;
    } else if ((line.held & bit) == 0) {
      line.held |= bit;
      lines_of_core_[core].push_back(number);
    } else if ((line.stale & bit) != 0) {
      stale_read(warp, lane, line.writer_pc, line.writer_block);
    }
  }
}

// Only bytes that the other block wrote are stale, and only an ordered pair: the other is a race.
void RaceCheck::stale_read(const WarpAccess& warp,
                           unsigned lane,
                           uint32_t writer_pc,
                           uint64_t writer_block) {
  const SpanRecord& span = warp.span;
  const BlockRun& block = *span.block;
  const uint64_t address = warp.address(lane);
  bool is_written = false;
  for (uint64_t at = address; at < address + span.access_bytes && !is_written; ++at) {
    const AccessEntry& write = hbm_.peek(at).write;
    is_written = write.is_present() && (write.agent & kCopyBit) == 0 &&
                 order_.block_of(write.agent) == writer_block &&
                 order_.is_ordered(write.agent, write.time, block.index(), warp.warp);
  }
  if (!is_written || findings_.count_known(CheckKind::kRace, span.pc, writer_pc, kStale)) {
    return;
  }
  findings_.add(
      {.kind = CheckKind::kRace,
       .message = "stale read: the data cache of this core may still hold the line from "
                  "before the write on another core",
       .hint = "load with .cv or .cg, or use inval.line before the load",
       .here = {.pc = span.pc,
                .block = block.index(),
                .warp = warp.warp,
                .lane_mask = 1u << lane,
                .what = fmt::format("read of {} bytes", span.access_bytes)},
       .there =
           FindingSite{
               .pc = writer_pc, .block = writer_block, .warp = 0, .lane_mask = 0, .what = "write"},
       .has_address = true,
       .space = isa::Space::kHbm,
       .address = address,
       .size_bytes = span.access_bytes,
       .location = describe_address(block, isa::Space::kHbm, address)},
      kStale);
}

// ---------------------------------------------------------------- accesses

// Order first, then compare: what an atomic learns of a flag counts for the atomic itself.
void RaceCheck::synchronise(const WarpAccess& warp) {
  const SpanRecord& span = warp.span;
  const uint64_t block = span.block->index();
  const bool acquires =
      span.is_atomic || (span.reads_memory && span.hint == isa::CacheHint::kVolatile);
  const bool releases = span.writes_memory && order_.has_fenced(block, warp.warp);
  if (!acquires && !releases) {
    return;
  }
  for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
    if ((warp.mask >> lane & 1) == 0) {
      continue;
    }
    // Scratchpad addresses of different blocks are different places.
    const uint64_t location =
        span.space == isa::Space::kHbm ? warp.address(lane) : ~(block << 24 | warp.address(lane));
    if (acquires) {
      order_.acquire(block, warp.warp, location);
    }
    if (releases) {
      order_.release(block, warp.warp, location);
    }
  }
}

// Lanes next to each other at bytes next to each other are one access: most are.
void RaceCheck::lane_accesses(const WarpAccess& warp) {
  synchronise(warp);
  const SpanRecord& span = warp.span;
  Access access{.block = span.block,
                .warp = warp.warp,
                .agent = order_.agent(span.block->index(), warp.warp),
                .time = order_.time(span.block->index(), warp.warp),
                .pc = span.pc,
                .lane_bytes = span.access_bytes,
                .space = span.space,
                .reads = span.reads_memory,
                .writes = span.writes_memory,
                .is_atomic = span.is_atomic,
                .is_volatile = span.hint == isa::CacheHint::kVolatile};
  bool ascends = true; // no two lanes overlap
  uint64_t end = 0;    // of the lane before
  for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
    if ((warp.mask >> lane & 1) == 0) {
      continue;
    }
    const uint64_t address = warp.address(lane);
    if (access.bytes != 0 && address == end &&
        access.first_lane + access.bytes / access.lane_bytes == lane) {
      access.bytes += access.lane_bytes;
    } else if (access.bytes == 0 || access.writes || address != access.address ||
               access.bytes != access.lane_bytes) { // else: a broadcast read, seen already
      if (access.bytes != 0) {
        range(access);
        ascends = ascends && address >= end;
      }
      access.first_lane = lane;
      access.address = address;
      access.bytes = access.lane_bytes;
    }
    end = address + access.lane_bytes;
  }
  range(access);
  if (span.writes_memory && !span.is_atomic && !ascends) {
    same_insn_writes(warp);
  }
}

AccessShadow& RaceCheck::shadow(const Access& access) {
  return access.space == isa::Space::kHbm ? hbm_ : data(*access.block).l1;
}

void RaceCheck::range(const Access& access) {
  shadow(access).visit(access.address,
                       access.bytes,
                       [&](AccessCell& cell, uint8_t mask, uint64_t address, uint64_t bytes) {
                         touch(cell, mask, address, bytes, access);
                       });
}

bool RaceCheck::is_ordered(const AccessEntry& earlier, const Access& access) const {
  // The warp that starts a copy acts for it: what the warp knows, the copy knows.
  return earlier.agent == access.agent ||
         order_.is_ordered(earlier.agent, earlier.time, access.block->index(), access.warp);
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
  const uint32_t lane = access.lane_bytes == 0
                            ? 0
                            : access.first_lane + static_cast<uint32_t>((address - access.address) /
                                                                        access.lane_bytes);
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
  // A read that no later write races with is not kept: it would only hide one that can.
  if (access.reads && !access.is_atomic && !access.is_volatile) {
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
    const auto block_of = [&](const AccessEntry& read) {
      return (read.agent & kCopyBit) != 0 ? order_.copy(read.agent).block
                                          : order_.block_of(read.agent);
    };
    if (block_of(cell.reads[0]) != block_of(cell.reads[1])) {
      return;
    }
    place = 1;
  }
  cell.reads[place] = entry;
  cell.read_bytes[place] = mask;
}

// How far from `address` on both accesses touch the same bytes.
uint64_t RaceCheck::conflicting_bytes(const AccessEntry& earlier,
                                      bool earlier_wrote,
                                      uint64_t address,
                                      uint64_t known_bytes,
                                      uint64_t end,
                                      const Access& access) {
  const auto is_same = [&](const AccessEntry& entry) {
    return entry.agent == earlier.agent && entry.pc == earlier.pc;
  };
  uint64_t at = std::min(address + known_bytes, end);
  while (at < end) {
    const AccessCell& cell = shadow(access).peek(at);
    if (!(earlier_wrote ? is_same(cell.write) : is_same(cell.reads[0]) || is_same(cell.reads[1]))) {
      break;
    }
    ++at;
  }
  return at - address;
}

void RaceCheck::report(const AccessEntry& earlier,
                       bool earlier_wrote,
                       uint64_t address,
                       uint64_t bytes,
                       const Access& access) {
  if (findings_.count_known(CheckKind::kRace, access.pc, earlier.pc, kConflict)) {
    return;
  }
  const Program& program = *access.block->image().program;
  const bool earlier_is_copy = (earlier.agent & kCopyBit) != 0;
  const bool is_copy = (access.agent & kCopyBit) != 0;
  const uint64_t earlier_block =
      earlier_is_copy ? order_.copy(earlier.agent).block : order_.block_of(earlier.agent);
  const std::string_view scope =
      earlier_block == access.block->index() ? "warps of a block" : "blocks";
  Finding finding;
  finding.kind = CheckKind::kRace;
  finding.message =
      earlier_is_copy || is_copy
          ? fmt::format("{} and a copy that was not waited for touch the same bytes",
                        earlier_is_copy ? describe(program.at(access.pc), access.writes, is_copy, 0)
                                        : describe(program.at(earlier.pc), earlier_wrote, false, 0))
          : fmt::format("{} and {} of the same bytes by different {} without an order between them",
                        earlier_wrote ? "write" : "read",
                        access.writes ? "write" : "read",
                        scope);
  finding.hint = hint_for(earlier, access);
  // The one lane that touches the first conflicting byte, and all of its bytes.
  uint64_t begin = access.address;
  uint64_t size = access.bytes;
  uint32_t lane_mask = 0;
  if (access.lane_bytes != 0) {
    const uint64_t lane = (address - access.address) / access.lane_bytes;
    begin += lane * access.lane_bytes;
    size = access.lane_bytes;
    lane_mask = 1u << (access.first_lane + lane);
  }
  finding.here = {.pc = access.pc,
                  .block = access.block->index(),
                  .warp = access.warp,
                  .lane_mask = lane_mask,
                  .what = describe(program.at(access.pc), access.writes, is_copy, size)};
  finding.there = FindingSite{.pc = earlier.pc,
                              .block = earlier_block,
                              .warp = earlier_is_copy ? 0 : order_.warp_of(earlier.agent),
                              .lane_mask = 0};
  const uint32_t earlier_bytes = lane_bytes_of(program.at(earlier.pc));
  if (!earlier_is_copy && earlier_bytes != 0) {
    const uint64_t into_line = earlier.is_line ? address % AccessShadow::kLineBytes : 0;
    finding.there->lane_mask = 1u << ((earlier.lane + into_line / earlier_bytes) % isa::kWarpLanes);
  }
  finding.there->what =
      describe(program.at(earlier.pc), earlier_wrote, earlier_is_copy, earlier_bytes);
  finding.has_address = true;
  finding.space = access.space;
  finding.address = begin;
  finding.size_bytes = size;
  finding.location = describe_address(*access.block, access.space, begin);
  finding.conflict_address = address;
  finding.conflict_bytes =
      conflicting_bytes(earlier, earlier_wrote, address, bytes, begin + size, access);
  findings_.add(std::move(finding), kConflict);
}

std::string RaceCheck::hint_for(const AccessEntry& earlier, const Access& access) const {
  const bool earlier_is_copy = (earlier.agent & kCopyBit) != 0;
  const Program& program = *access.block->image().program;
  if (earlier_is_copy) {
    const isa::Insn& start = program.at(earlier.pc).insn;
    for (unsigned i = 0; i < start.operand_count; ++i) {
      if (start.operands[i].kind == isa::OperandKind::kEvent) {
        return fmt::format("put `wait e{}` (and barrier_block for other warps) before this access",
                           start.operands[i].index);
      }
    }
    return "put `wait_all` (and barrier_block for other warps) before this access";
  }
  if ((access.agent & kCopyBit) != 0) {
    return "the copy may run at any time from here on: put barrier_block before it";
  }
  if (order_.block_of(earlier.agent) != access.block->index()) {
    return "blocks run in any order: use atomics, or a flag written after fence.device and polled "
           "with load.cv";
  }
  const std::vector<uint32_t>& barriers = data(*access.block).warp_barrier_pcs;
  const uint32_t pc = barriers[access.warp];
  if (pc != kNoPc) {
    return fmt::format("barrier at {} joins the 32 lanes of one warp only; use barrier_block",
                       program.place(pc));
  }
  return "put barrier_block between the two accesses";
}

// Lanes of one warp whose stores overlap in one insn with different values.
void RaceCheck::same_insn_writes(const WarpAccess& warp) {
  const SpanRecord& span = warp.span;
  const BlockRun& block = *span.block;
  const isa::Insn& insn = span.decoded->insn;
  std::array<uint8_t, isa::kWarpLanes> lanes{};
  unsigned count = 0;
  for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
    if ((warp.mask >> lane & 1) != 0) {
      lanes[count++] = static_cast<uint8_t>(lane);
    }
  }
  std::sort(lanes.begin(), lanes.begin() + count, [&](uint8_t a, uint8_t b) {
    const uint64_t at_a = warp.address(a);
    const uint64_t at_b = warp.address(b);
    return at_a != at_b ? at_a < at_b : a < b;
  });
  const isa::Operand& source = insn.operands[1];
  const auto value = [&](uint8_t lane) {
    return block.source_value(source, insn.type, warp.warp * isa::kWarpLanes + lane);
  };
  for (unsigned i = 1; i < count; ++i) {
    const uint8_t low = lanes[i - 1];
    const uint8_t high = lanes[i];
    const uint64_t distance = warp.address(high) - warp.address(low);
    if (distance >= span.access_bytes || (distance == 0 && value(low) == value(high))) {
      continue;
    }
    if (findings_.count_known(CheckKind::kRace, span.pc, span.pc, kSameInsn)) {
      return;
    }
    const uint64_t address = warp.address(high);
    const FindingSite site{.pc = span.pc,
                           .block = block.index(),
                           .warp = warp.warp,
                           .lane_mask = 1u << low | 1u << high,
                           .what = fmt::format("write of {} bytes", span.access_bytes)};
    findings_.add({.kind = CheckKind::kRace,
                   .message = "lanes of one warp store different values to the same bytes in one "
                              "insn; which remains is undefined",
                   .hint = "let one lane store, or use an atomic",
                   .here = site,
                   .there = site,
                   .has_address = true,
                   .space = span.space,
                   .address = address,
                   .size_bytes = span.access_bytes,
                   .location = describe_address(block, span.space, address)},
                  kSameInsn);
    return;
  }
}

} // namespace pto::sim
