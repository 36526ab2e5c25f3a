// SPDX-License-Identifier: Apache-2.0
// Lines that the cores' data caches may hold, and reads of stale ones.
#include "simulator/block.h"
#include "simulator/checks/race_check.h"
#include "simulator/each_lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace pto::sim {

void RaceCheck::control_cached(const BlockRun& block, const IssueRecord& record) {
  if (block.core() >= lines_of_core_.size()) {
    return;
  }
  const uint64_t keep = ~(uint64_t{1} << block.core());
  const auto drop = [&](uint64_t number) { drop_line(number, block.core()); };
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

void RaceCheck::drop_line(uint64_t number, uint32_t core) {
  CachedLine& line = lines_[number];
  const uint64_t bit = uint64_t{1} << core;
  if ((line.stale & bit) != 0) {
    stale_parts_.erase({number, core});
  }
  line.held &= ~bit;
  line.stale &= ~bit;
}

uint64_t RaceCheck::parts_of(const WarpAccess& warp, uint64_t number, bool whole) const {
  uint64_t parts = 0;
  for (uint32_t open = warp.mask; open != 0; open &= open - 1) {
    const uint64_t begin = warp.address(static_cast<unsigned>(std::countr_zero(open)));
    if (begin >> line_log2_ != number) {
      continue;
    }
    const uint64_t mask = (uint64_t{1} << line_log2_) - 1;
    const uint64_t part = uint64_t{1} << part_log2_;
    const uint64_t from = begin & mask;
    const uint64_t to = from + warp.span.access_bytes; // an aligned access lies in one line
    const uint64_t first = (whole ? from + part - 1 : from) >> part_log2_;
    const uint64_t end = (whole ? to : to + part - 1) >> part_log2_;
    for (uint64_t at = first; at < end; ++at) {
      parts |= uint64_t{1} << at;
    }
  }
  return parts;
}

void RaceCheck::write_cached(const WarpAccess& warp, uint64_t number, CachedLine& line) {
  const uint32_t core = warp.span.block->core();
  const uint64_t bit = core < lines_of_core_.size() ? uint64_t{1} << core : 0;
  const uint64_t others = line.held & ~bit;
  if (others != 0) {
    const uint64_t parts = parts_of(warp, number, false);
    for (uint64_t open = others; open != 0; open &= open - 1) {
      stale_parts_[{number, static_cast<uint32_t>(std::countr_zero(open))}] |= parts;
    }
    line.stale |= others;
  }
  if (warp.span.is_atomic && (line.held & bit) != 0) { // goes past the cache and drops the line
    drop_line(number, core);
  } else if ((line.stale & bit) != 0) { // its own copy takes what it writes
    stale_parts_[{number, core}] &= ~parts_of(warp, number, true);
  }
}

void RaceCheck::cached_lines(const WarpAccess& warp) {
  const SpanRecord& span = warp.span;
  const uint32_t core = span.block->core();
  const bool is_tracked = core < lines_of_core_.size();
  if (!span.writes_memory && (span.hint != isa::CacheHint::kCached || !is_tracked)) {
    return;
  }
  const bool is_row = warp.addresses == nullptr && warp.step == span.access_bytes;
  if (!is_row && !span.writes_memory) {
    gather_cached(warp, core);
    return;
  }
  const uint64_t bit = is_tracked ? uint64_t{1} << core : 0;
  uint64_t last_line = ~uint64_t{0};
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
      if (line.held != 0) {
        write_cached(warp, number, line);
      }
    } else if ((line.held & bit) == 0) {
      line.held |= bit;
      lines_of_core_[core].push_back(number);
    } else if ((line.stale & bit) != 0) {
      stale_read(warp, number);
    }
  }
}

void RaceCheck::gather_cached(const WarpAccess& warp, uint32_t core) {
  const uint64_t bit = uint64_t{1} << core;
  const unsigned line_log2 = line_log2_;
  uint64_t last_line = ~uint64_t{0};
  for_each_lane(&warp.mask, 1, [&](unsigned lane) {
    const uint64_t number = warp.address(lane) >> line_log2;
    if (number == last_line) {
      return;
    }
    last_line = number;
    CachedLine& line = lines_.scattered(number);
    if ((line.held & bit) == 0) {
      line.held |= bit;
      lines_of_core_[core].push_back(number);
    } else if ((line.stale & bit) != 0) {
      stale_read(warp, number);
    }
  });
}

// Only an ordered pair: the other is a race.
void RaceCheck::stale_read(const WarpAccess& warp, uint64_t number) {
  const SpanRecord& span = warp.span;
  const BlockRun& block = *span.block;
  const auto parts = stale_parts_.find({number, block.core()});
  for (uint32_t open = warp.mask; open != 0; open &= open - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(open));
    const uint64_t address = warp.address(lane);
    if (address >> line_log2_ != number) {
      continue;
    }
    for (uint64_t at = address; at < address + span.access_bytes; ++at) {
      const uint64_t part = (at & ((uint64_t{1} << line_log2_) - 1)) >> part_log2_;
      if (parts == stale_parts_.end() || (parts->second >> part & 1) == 0) {
        continue;
      }
      const AccessEntry write = hbm_.peek(at).write;
      if (write.is_present() && (write.agent & kCopyBit) == 0 &&
          order_.block_of(write.agent) != block.index() &&
          order_.is_ordered(write.agent, write.time, block.index(), warp.by.warp())) {
        report_stale(warp, lane, write);
        return;
      }
    }
  }
}

void RaceCheck::report_stale(const WarpAccess& warp, unsigned lane, const AccessEntry& write) {
  const SpanRecord& span = warp.span;
  const BlockRun& block = *span.block;
  const uint64_t address = warp.address(lane);
  if (findings_.count_known(CheckKind::kRace, span.pc, write.pc, kStale)) {
    return;
  }
  findings_.add({.kind = CheckKind::kRace,
                 .message = "stale read: the data cache of this core may still hold the line from "
                            "before the write on another core",
                 .hint = "load with .cv or .cg, or use inval.line before the load",
                 .here = {.pc = span.pc,
                          .block = block.index(),
                          .warp = warp.by.warp(),
                          .lane_mask = 1u << lane,
                          .what = fmt::format("read of {} bytes", span.access_bytes)},
                 .there = FindingSite{.pc = write.pc,
                                      .block = order_.block_of(write.agent),
                                      .warp = order_.warp_of(write.agent),
                                      .lane_mask = 0,
                                      .what = "write"},
                 .has_address = true,
                 .space = isa::Space::kHbm,
                 .address = address,
                 .size_bytes = span.access_bytes,
                 .location = describe_address(block, isa::Space::kHbm, address)},
                kStale);
}

} // namespace pto::sim
