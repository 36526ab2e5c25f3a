// SPDX-License-Identifier: Apache-2.0
// Lines that the cores' data caches may hold, and reads of stale ones.
#include "simulator/block.h"
#include "simulator/checks/race_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace pto::sim {

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
    const uint64_t line = record.addresses[lane] >> line_log2_;
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
  const bool is_row = warp.addresses == nullptr && warp.step == span.access_bytes;
  for (uint32_t open = warp.mask; open != 0;) {
    const auto lane = static_cast<unsigned>(std::countr_zero(open));
    const uint64_t address = warp.address(lane);
    const uint64_t number = address >> line_log2_;
    open &= open - 1;
    if (is_row) { // the lanes that follow share the line as far as it goes
      const uint64_t next = lane + (((number + 1) << line_log2_) - address) / span.access_bytes;
      open = next < isa::kWarpLanes ? open & ~0u << next : 0;
    }
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
                 order_.is_ordered(write.agent, write.time, block.index(), warp.by.warp());
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
                .warp = warp.by.warp(),
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

} // namespace pto::sim
