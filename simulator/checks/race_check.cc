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
  line_clock_ = 0;
  line_writes_.clear();
  cached_.assign(launch.machine().profile.cores, {});
}

void RaceCheck::block_begin(const BlockRun& block) {
  order_.block_begin(block.index());
  blocks_[block.index()].warp_barrier_pcs.assign(block.warp_count(), kNoPc);
}

void RaceCheck::block_end(const BlockRun& block) {
  order_.block_end(block.index());
  blocks_.erase(block.index());
}

void RaceCheck::barrier_release(const BlockRun& block, unsigned) {
  order_.barrier(block.index());
  std::vector<uint32_t>& pcs = blocks_.at(block.index()).warp_barrier_pcs;
  std::fill(pcs.begin(), pcs.end(), kNoPc);
}

void RaceCheck::wait_end(const EventSite& site, int event) {
  for (const CopyRecord& copy : blocks_.at(site.block.index()).copies) {
    if (event < 0 || copy.event == event) {
      order_.copy_waited(site.block.index(), site.warp, copy.id);
    }
  }
}

void RaceCheck::copy_start(const EventSite& site, const CopyRecord& copy) {
  const uint64_t block = site.block.index();
  Access access{.block = &site.block,
                .warp = site.warp,
                .agent = order_.copy_start(block, site.warp, copy.id),
                .time = 0,
                .pc = site.pc};
  blocks_.at(block).copies.push_back(copy);
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
    blocks_.at(block.index()).warp_barrier_pcs[record.warp] = record.pc;
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
  if (record.addresses != nullptr && record.space != isa::Space::kConst &&
      !desc.has(isa::kCacheControl)) {
    lane_accesses(block, record);
  }
  // One core has one cache: nothing to be stale against.
  if (cached_.size() > 1 && launch_->block_count() > 1 &&
      (desc.has(isa::kCacheControl) ||
       (record.addresses != nullptr && record.space == isa::Space::kHbm))) {
    cached_lines(block, record);
  }
}

void RaceCheck::cached_lines(const BlockRun& block, const IssueRecord& record) {
  std::unordered_map<uint64_t, uint64_t>& cached = cached_[block.core()];
  if (record.insn->desc->has(isa::kCacheControl) && record.addresses == nullptr) {
    cached.clear(); // INVAL.all
    return;
  }
  const uint64_t line_bytes = launch_->machine().profile.l1.line_bytes;
  ++line_clock_;
  uint64_t last_line = ~uint64_t{0};
  for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
    if ((record.exec_mask >> lane & 1) == 0) {
      continue;
    }
    const uint64_t line = record.addresses[lane] / line_bytes;
    if (line == last_line) {
      continue;
    }
    last_line = line;
    if (record.writes_memory) {
      line_writes_[line] = {
          .time = line_clock_, .block = block.index(), .core = block.core(), .pc = record.pc};
    } else if (record.insn->desc->has(isa::kCacheControl) && !record.reads_memory) {
      cached.erase(line); // INVAL.line
    } else if (record.hint == isa::CacheHint::kCached) {
      const auto [held, is_new] = cached.try_emplace(line, line_clock_);
      const auto write = line_writes_.find(line);
      if (!is_new && write != line_writes_.end() && write->second.core != block.core() &&
          write->second.time > held->second) {
        stale_read(block, record, lane, write->second.pc, write->second.block);
      }
    }
  }
}

// Only bytes that the other block wrote are stale, and only an ordered pair: the other is a race.
void RaceCheck::stale_read(const BlockRun& block,
                           const IssueRecord& record,
                           unsigned lane,
                           uint32_t writer_pc,
                           uint64_t writer_block) {
  bool is_written = false;
  hbm_.visit(
      record.addresses[lane], record.access_bytes, [&](const AccessCell& cell, uint8_t, uint64_t) {
        is_written |=
            cell.write.is_present() && (cell.write.agent & kCopyBit) == 0 &&
            order_.block_of(cell.write.agent) == writer_block &&
            order_.is_ordered(cell.write.agent, cell.write.time, block.index(), record.warp);
      });
  if (!is_written || findings_.count_known(CheckKind::kRace, record.pc, writer_pc, kStale)) {
    return;
  }
  findings_.add(
      {.kind = CheckKind::kRace,
       .message = "stale read: the data cache of this core may still hold the line from "
                  "before the write on another core",
       .hint = "load with .cv or .cg, or use inval.line before the load",
       .here = {.pc = record.pc,
                .block = block.index(),
                .warp = record.warp,
                .lane_mask = 1u << lane,
                .what = fmt::format("read of {} bytes", record.access_bytes)},
       .there =
           FindingSite{
               .pc = writer_pc, .block = writer_block, .warp = 0, .lane_mask = 0, .what = "write"},
       .has_address = true,
       .space = isa::Space::kHbm,
       .address = record.addresses[lane],
       .size_bytes = record.access_bytes,
       .location = describe_address(block, isa::Space::kHbm, record.addresses[lane])},
      kStale);
}

// Order first, then compare: what an atomic learns of a flag counts for the atomic itself.
void RaceCheck::synchronise(const BlockRun& block, const IssueRecord& record) {
  const bool acquires =
      record.is_atomic || (record.reads_memory && record.hint == isa::CacheHint::kVolatile);
  const bool releases = record.writes_memory && order_.has_fenced(block.index(), record.warp);
  if (!acquires && !releases) {
    return;
  }
  for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
    if ((record.exec_mask >> lane & 1) == 0) {
      continue;
    }
    // Scratchpad addresses of different blocks are different places.
    const uint64_t location = record.space == isa::Space::kHbm
                                  ? record.addresses[lane]
                                  : ~(block.index() << 24 | record.addresses[lane]);
    if (acquires) {
      order_.acquire(block.index(), record.warp, location);
    }
    if (releases) {
      order_.release(block.index(), record.warp, location);
    }
  }
}

void RaceCheck::lane_accesses(const BlockRun& block, const IssueRecord& record) {
  synchronise(block, record);
  Access access{.block = &block,
                .warp = record.warp,
                .agent = order_.agent(block.index(), record.warp),
                .time = order_.time(block.index(), record.warp),
                .pc = record.pc,
                .space = record.space,
                .reads = record.reads_memory,
                .writes = record.writes_memory,
                .is_atomic = record.is_atomic,
                .is_volatile = record.hint == isa::CacheHint::kVolatile};
  if (record.exec_mask == ~0u && record.is_strided &&
      record.stride == int64_t{record.access_bytes}) {
    access.lane_mask = ~0u;
    access.address = record.addresses[0];
    access.bytes = uint64_t{record.access_bytes} * isa::kWarpLanes;
    range(access);
    return;
  }
  access.bytes = record.access_bytes;
  for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
    if ((record.exec_mask >> lane & 1) != 0) {
      access.lane_mask = 1u << lane;
      access.address = record.addresses[lane];
      range(access);
    }
  }
  if (record.writes_memory && !record.is_atomic) {
    same_insn_writes(block, record);
  }
}

AccessShadow& RaceCheck::shadow(const Access& access) {
  return access.space == isa::Space::kHbm ? hbm_ : blocks_.at(access.block->index()).l1;
}

void RaceCheck::range(const Access& access) {
  shadow(access).visit(
      access.address, access.bytes, [&](AccessCell& cell, uint8_t mask, uint64_t address) {
        touch(cell, mask, address, access);
      });
}

bool RaceCheck::is_ordered(const AccessEntry& earlier, const Access& access) const {
  // The warp that starts a copy acts for it: what the warp knows, the copy knows.
  return earlier.agent == access.agent ||
         order_.is_ordered(earlier.agent, earlier.time, access.block->index(), access.warp);
}

void RaceCheck::touch(AccessCell& cell, uint8_t mask, uint64_t address, const Access& access) {
  if (cell.write.is_present() && !is_ordered(cell.write, access)) {
    const bool both_atomic = cell.is_write_atomic && access.is_atomic;
    // A flag that is polled: .cv loads against stores and atomics.
    const bool polls = access.reads && !access.writes && access.is_volatile;
    if (!both_atomic && !polls) {
      report(cell.write, true, address, access);
    }
  }
  if (access.writes) {
    for (unsigned r = 0; r < 2; ++r) {
      if (cell.reads[r].is_present() && !is_ordered(cell.reads[r], access)) {
        report(cell.reads[r], false, address, access);
      }
    }
    cell.write = {.agent = access.agent, .time = access.time, .pc = access.pc};
    cell.write_bytes = mask;
    cell.is_write_atomic = access.is_atomic;
    // Reads that came before this write are covered by it: whoever races with them races with it.
    cell.reads = {};
    cell.read_bytes = {};
  }
  // A read that no later write races with is not kept: it would only hide one that can.
  if (access.reads && !access.is_atomic && !access.is_volatile) {
    record_read(cell, mask, access);
  }
}

void RaceCheck::record_read(AccessCell& cell, uint8_t mask, const Access& access) {
  const AccessEntry entry{.agent = access.agent, .time = access.time, .pc = access.pc};
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

void RaceCheck::report(const AccessEntry& earlier,
                       bool earlier_wrote,
                       uint64_t address,
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
  finding.here = {.pc = access.pc,
                  .block = access.block->index(),
                  .warp = access.warp,
                  .lane_mask = access.lane_mask,
                  .what = describe(program.at(access.pc), access.writes, is_copy, access.bytes)};
  if (access.lane_mask == ~0u) {
    // A contiguous access of the whole warp: the one lane that touches this byte.
    const auto lane = static_cast<unsigned>((address - access.address) / (access.bytes / 32));
    finding.here.lane_mask = 1u << lane;
    finding.here.what = describe(program.at(access.pc), access.writes, is_copy, access.bytes / 32);
  }
  finding.there =
      FindingSite{.pc = earlier.pc,
                  .block = earlier_block,
                  .warp = earlier_is_copy ? 0 : order_.warp_of(earlier.agent),
                  .lane_mask = 0,
                  .what = describe(program.at(earlier.pc), earlier_wrote, earlier_is_copy, 0)};
  finding.has_address = true;
  finding.space = access.space;
  finding.address = address;
  finding.size_bytes = 1;
  finding.location = describe_address(*access.block, access.space, address);
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
  const std::vector<uint32_t>& barriers = blocks_.at(access.block->index()).warp_barrier_pcs;
  const uint32_t pc = barriers[access.warp];
  if (pc != kNoPc) {
    return fmt::format("barrier at {} joins the 32 lanes of one warp only; use barrier_block",
                       program.place(pc));
  }
  return "put barrier_block between the two accesses";
}

// Lanes of one warp whose stores overlap in one insn with different values.
void RaceCheck::same_insn_writes(const BlockRun& block, const IssueRecord& record) {
  std::array<uint8_t, isa::kWarpLanes> lanes{};
  unsigned count = 0;
  for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
    if ((record.exec_mask >> lane & 1) != 0) {
      lanes[count++] = static_cast<uint8_t>(lane);
    }
  }
  std::sort(lanes.begin(), lanes.begin() + count, [&](uint8_t a, uint8_t b) {
    return record.addresses[a] != record.addresses[b] ? record.addresses[a] < record.addresses[b]
                                                      : a < b;
  });
  const isa::Operand& source = record.insn->operands[1];
  const auto value = [&](uint8_t lane) {
    return block.source_value(source, record.insn->type, record.warp * isa::kWarpLanes + lane);
  };
  for (unsigned i = 1; i < count; ++i) {
    const uint8_t low = lanes[i - 1];
    const uint8_t high = lanes[i];
    const uint64_t distance = record.addresses[high] - record.addresses[low];
    if (distance >= record.access_bytes || (distance == 0 && value(low) == value(high))) {
      continue;
    }
    if (findings_.count_known(CheckKind::kRace, record.pc, record.pc, kSameInsn)) {
      return;
    }
    const uint64_t address = record.addresses[high];
    const FindingSite site{.pc = record.pc,
                           .block = block.index(),
                           .warp = record.warp,
                           .lane_mask = 1u << low | 1u << high,
                           .what = fmt::format("write of {} bytes", record.access_bytes)};
    findings_.add({.kind = CheckKind::kRace,
                   .message = "lanes of one warp store different values to the same bytes in one "
                              "insn; which remains is undefined",
                   .hint = "let one lane store, or use an atomic",
                   .here = site,
                   .there = site,
                   .has_address = true,
                   .space = record.space,
                   .address = address,
                   .size_bytes = record.access_bytes,
                   .location = describe_address(block, record.space, address)},
                  kSameInsn);
    return;
  }
}

} // namespace pto::sim
