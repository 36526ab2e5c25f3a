// SPDX-License-Identifier: Apache-2.0
// The sync check, see the header.
#include "simulator/checks/sync_check.h"

#include "simulator/block.h"
#include "simulator/launch.h"
#include "simulator/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace pto::sim {

namespace {

enum Topic : unsigned {
  kDivergentBarrier,
  kDivergentWarpBarrier,
  kMissedByWarp0,
  kNonUniform,
  kUnusedEvent,
  kCopyAtEnd,
};

} // namespace

void SyncCheck::launch_begin(const Launch& launch) {
  blocks_.clear();
  interests_.clear();
  for (const ProgramInsn& decoded : launch.program().insns()) {
    interests_.push_back(decoded.is_block_scoped || decoded.insn.desc->has(isa::kWarpBarrier)
                             ? Interest::kWarp
                             : Interest::kNone);
  }
}

void SyncCheck::block_begin(const BlockRun& block) {
  blocks_.begin(block.index()).renew();
}

void SyncCheck::before_insn(const EventSite& site, uint32_t, uint32_t exec_mask) {
  const ProgramInsn& decoded = site.block.next_insn(site.warp);
  const isa::InsnDesc& desc = *decoded.insn.desc;
  if (decoded.is_block_scoped) {
    auto& passes = blocks_.at(site.block.index()).passes[site.pc];
    passes.resize(site.block.warp_count());
    passes[site.warp] += exec_mask != 0 ? 1 : 0;
    if (site.warp == 0 && std::popcount(exec_mask) > 1) {
      non_uniform_operands(site, exec_mask);
    }
  }
  // Lanes that have ended do not count; lanes elsewhere, or kept away by the guard, do.
  const uint32_t live = site.block.live_mask(site.warp);
  if (desc.has(isa::kWarpBarrier) && exec_mask != 0 && exec_mask != live &&
      !findings_.count_known(CheckKind::kSync, site.pc, Findings::kNoPc, kDivergentWarpBarrier)) {
    findings_.add(
        {.kind = CheckKind::kSync,
         .message = fmt::format("barrier in divergent code: {} of the warp did not arrive",
                                format_lanes(live & ~exec_mask)),
         .hint = "move the barrier to where all lanes of the warp pass",
         .here = {.pc = site.pc,
                  .block = site.block.index(),
                  .warp = site.warp,
                  .lane_mask = exec_mask,
                  .what = "barrier"}},
        kDivergentWarpBarrier);
  }
}

void SyncCheck::non_uniform_operands(const EventSite& site, uint32_t exec_mask) {
  const isa::Insn& insn = site.block.next_insn(site.warp).insn;
  const unsigned first = static_cast<unsigned>(std::countr_zero(exec_mask));
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    const isa::Operand& operand = insn.operands[i];
    const bool is_value =
        operand.kind == isa::OperandKind::kReg32 || operand.kind == isa::OperandKind::kReg64;
    const bool is_address = operand.kind == isa::OperandKind::kMem;
    if (!is_value && !is_address) {
      continue;
    }
    if (operand.kind == isa::OperandKind::kReg32) {
      const uint32_t* lanes = site.block.reg32_of_warp(operand.index, 0);
      if (std::all_of(lanes, lanes + isa::kWarpLanes, [&](uint32_t bits) {
            return bits == lanes[first];
          })) {
        continue;
      }
    }
    const auto value = [&](unsigned lane) {
      return is_address ? site.block.address(operand, lane)
                        : site.block.source_value(operand, isa::operand_type(insn, i), lane);
    };
    uint32_t different = 0;
    for (unsigned lane = first + 1; lane < isa::kWarpLanes; ++lane) {
      if ((exec_mask >> lane & 1) != 0 && value(lane) != value(first)) {
        different |= 1u << lane;
      }
    }
    if (different != 0 &&
        !findings_.count_known(CheckKind::kSync, site.pc, Findings::kNoPc, kNonUniform)) {
      findings_.add(
          {.kind = CheckKind::kSync,
           .message = fmt::format("operand '{}' of a block-scoped insn differs between lanes; only "
                                  "lane {} counts ({:#x}), {} has {:#x}",
                                  isa::spec_of(insn, i).name,
                                  first,
                                  value(first),
                                  format_lanes(1u << std::countr_zero(different)),
                                  value(static_cast<unsigned>(std::countr_zero(different)))),
           .hint = "compute the operand from values that all lanes share (%ctaid, parameters)",
           .here = {.pc = site.pc,
                    .block = site.block.index(),
                    .warp = 0,
                    .lane_mask = different,
                    .what = "block-scoped insn"}},
          kNonUniform);
      return;
    }
  }
}

void SyncCheck::barrier_arrive(const EventSite& site, unsigned id, uint32_t lane_mask) {
  const uint32_t live = site.block.live_mask(site.warp);
  if (lane_mask == live ||
      findings_.count_known(CheckKind::kSync, site.pc, Findings::kNoPc, kDivergentBarrier)) {
    return;
  }
  findings_.add({.kind = CheckKind::kSync,
                 .message = fmt::format("barrier_block {} in divergent code: {} of warp {} did not "
                                        "arrive",
                                        id,
                                        format_lanes(live & ~lane_mask),
                                        site.warp),
                 .hint =
                     "every lane that has not exited must reach the same barrier_block: move it "
                     "out of the branch",
                 .here = {.pc = site.pc,
                          .block = site.block.index(),
                          .warp = site.warp,
                          .lane_mask = lane_mask,
                          .what = "barrier_block"}},
                kDivergentBarrier);
}

void SyncCheck::wait_begin(const EventSite& site, int event) {
  const bool is_used = event < 0 ? site.block.state().copies_started != 0
                                 : (site.block.state().events_used >> event & 1) != 0;
  // WAIT_ALL with no copy is harmless; WAIT of an event that nobody tagged is a mistake.
  if (is_used || event < 0 ||
      findings_.count_known(CheckKind::kSync, site.pc, Findings::kNoPc, kUnusedEvent)) {
    return;
  }
  findings_.add(
      {.kind = CheckKind::kSync,
       .message = fmt::format("wait for event e{}, which no copy has carried so far", event),
       .hint = "name the event that the copy carries, or start the copy before",
       .here = {.pc = site.pc,
                .block = site.block.index(),
                .warp = site.warp,
                .lane_mask = site.block.active_mask(site.warp),
                .what = "wait"}},
      kUnusedEvent);
}

void SyncCheck::block_end(const BlockRun& block) {
  for (const CopyRecord& copy : block.pending_copies()) {
    if (findings_.count_known(CheckKind::kSync, copy.pc, Findings::kNoPc, kCopyAtEnd)) {
      continue;
    }
    findings_.add(
        {.kind = CheckKind::kSync,
         .message = "a copy was still running when its block ended",
         .hint = copy.event >= 0 ? fmt::format("wait e{} before the last exit", copy.event)
                                 : "wait_all before the last exit",
         .here =
             {.pc = copy.pc, .block = block.index(), .warp = 0, .lane_mask = 0, .what = "copy"}},
        kCopyAtEnd);
  }
  for (const auto& [pc, passes] : blocks_.at(block.index()).passes) {
    for (uint32_t warp = 1; warp < passes.size(); ++warp) {
      if (passes[warp] <= passes[0] ||
          findings_.count_known(CheckKind::kSync, pc, Findings::kNoPc, kMissedByWarp0)) {
        continue;
      }
      findings_.add(
          {.kind = CheckKind::kSync,
           .message =
               fmt::format("block-scoped insn that warp 0 missed: warp {} passed it {} times, "
                           "warp 0 {}",
                           warp,
                           passes[warp],
                           passes[0]),
           .hint = "block-scoped insns act when warp 0 issues them: put it where warp 0 passes",
           .here = {.pc = pc,
                    .block = block.index(),
                    .warp = warp,
                    .lane_mask = 0,
                    .what = "block-scoped insn"}},
          kMissedByWarp0);
    }
  }
  blocks_.end(block.index());
}

} // namespace pto::sim
