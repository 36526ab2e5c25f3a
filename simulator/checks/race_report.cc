// SPDX-License-Identifier: Apache-2.0
// What the race check says about two accesses.
#include "simulator/block.h"
#include "simulator/checks/race_check.h"
#include "simulator/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pto::sim {

namespace {

constexpr uint32_t kNoPc = Findings::kNoPc;

std::string describe(const ProgramInsn& decoded, bool wrote, bool is_copy, uint64_t bytes) {
  if (is_copy) {
    return wrote ? "write by a copy" : "read by a copy";
  }
  const std::string_view what = decoded.insn.desc->has(isa::kAtomic)  ? "atomic"
                                : decoded.insn.desc->has(isa::kFrees) ? "release"
                                : wrote                               ? "write"
                                                                      : "read";
  return bytes == 0 ? std::string(what) : fmt::format("{} of {} bytes", what, bytes);
}

} // namespace

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
    const AccessCell cell = access.shadow->peek(at);
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
  const uint64_t earlier_block = order_.block_of_any(earlier.agent);
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
                  .warp = access.by.warp(),
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
  const std::vector<uint32_t>& barriers = blocks_.at(access.block->index()).warp_barrier_pcs;
  const uint32_t pc = barriers[access.by.warp()];
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
    return block.source_value(source, insn.type, warp.by.warp() * isa::kWarpLanes + lane);
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
                           .warp = warp.by.warp(),
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
