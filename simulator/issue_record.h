// SPDX-License-Identifier: Apache-2.0
// What the engine tells about one executed warp insn: all that time and observers need, no values
// (those are in the BlockRun, before and after).
#pragma once

#include "isa/exec_context.h"
#include "isa/insn.h"

#include <array>
#include <cstdint>

namespace pto::sim {

struct ProgramInsn;

/// Set bits, in pairs, fours and bytes: std::popcount is a call on hosts of the baseline.
inline uint32_t lane_count(uint32_t mask) {
  const uint32_t pairs = mask - ((mask >> 1) & 0x5555'5555);
  const uint32_t fours = (pairs & 0x3333'3333) + ((pairs >> 2) & 0x3333'3333);
  return (((fours + (fours >> 4)) & 0x0F0F'0F0F) * 0x0101'0101) >> 24;
}

/// A copy that an ASYNC_LOAD or ASYNC_STORE started.
struct CopyRecord {
  isa::CopyDirection direction = isa::CopyDirection::kHbmToL1;
  uint64_t hbm_address = 0;
  uint64_t l1_offset = 0;
  isa::CopyShape shape{};
  int event = -1;  // e0..e7; -1: only WAIT_ALL waits for it
  uint64_t id = 0; // counts the block's copies from 0
  uint32_t pc = 0; // of the insn that started it

  uint64_t bytes() const { return uint64_t{shape.rows} * shape.row_bytes; }
  uint64_t hbm_row(uint32_t row) const {
    return hbm_address + static_cast<uint64_t>(int64_t{row} * shape.hbm_stride);
  }
  uint64_t l1_row(uint32_t row) const {
    return l1_offset + static_cast<uint64_t>(int64_t{row} * shape.l1_stride);
  }
};

/// A range of scratchpad that a block-scoped insn (FILL, MMA, ALLOC_LOCAL, FREE_LOCAL) touched as
/// one. ALLOC_LOCAL writes it (zeros); FREE_LOCAL neither reads nor writes it.
struct L1Record {
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  bool reads = false;
  bool writes = false;
};

struct IssueRecord {
  const isa::Insn* insn = nullptr;
  const ProgramInsn* decoded = nullptr;
  uint32_t pc = 0;
  uint32_t core = 0;
  uint64_t block = 0;       // linear index in the grid
  uint32_t warp = 0;        // within the block
  uint32_t active_mask = 0; // lanes at this pc
  uint32_t exec_mask = 0;   // of those, where the guard holds
  isa::Outcome outcome = isa::Outcome::kNext;
  uint32_t next_pc = 0;     // of the warp after this insn (also where it goes on when it waits)
  uint32_t next_mask = 0;   // its active lanes then; 0: the warp is done
  uint64_t issue_index = 0; // insns that this warp issued before
  bool passed_over = false; // block-scoped, and this is not warp 0

  // Memory access of a LOAD, STORE, ATOM, PREFETCH, INVAL.line: one address a lane (hbm address,
  // or byte offset in l1 or const), valid where exec_mask is set, until the next insn executes.
  // Null: the insn accessed no memory.
  const uint64_t* addresses = nullptr;
  isa::Space space = isa::Space::kHbm;
  uint32_t access_bytes = 0; // of one lane: element size times count
  uint8_t element_bytes = 0;
  isa::CacheHint hint = isa::CacheHint::kCached;
  bool reads_memory = false;
  bool writes_memory = false;
  bool is_atomic = false;
  bool is_result_read = true; // ATOM: false where the destination is `_`
  bool is_strided = false;    // addresses[i] == addresses[0] + i * stride in all 32 lanes
  int64_t stride = 0;

  std::array<L1Record, 4> l1{};
  uint8_t l1_count = 0;
  int tile = -1; // ALLOC_LOCAL, FREE_LOCAL: the tile register; its range is l1[0]

  const CopyRecord* copy = nullptr;
  uint32_t m = 0; // MMA
  uint32_t n = 0;
  uint32_t k = 0;
  uint32_t nop_cycles = 0;
  int wait_event = -1; // WAIT: which; -1 with a waiting insn: all

  int barrier_id = -1;           // BARRIER_BLOCK that arrived
  bool releases_barrier = false; // this arrival, or this exit, lets the block's warps go on
  uint32_t taken_mask = 0;       // of a branch
  bool diverged = false;         // the branch split the warp's lanes
  uint32_t exited_mask = 0;      // lanes that this insn ended
};

/// One insn that all warps of a block executed, one after the other and with nothing in between.
struct GroupRecord {
  static constexpr uint32_t kMaxWarps = 32;

  uint32_t pc = 0;
  uint32_t warps = 0;
  std::array<uint32_t, kMaxWarps> active_masks{}; // as IssueRecord's, by warp
  std::array<uint32_t, kMaxWarps> exec_masks{};
  uint32_t lanes = 0;       // bits of exec_masks
  bool are_together = true; // still, and ready, at next_pc
  bool have_ended = false;  // all of them
  uint32_t next_pc = 0;
  uint32_t nop_cycles = 0;

  // Memory access, as IssueRecord's.
  bool has_access = false;
  bool is_linear = false; // lane i of warp w: base + i * lane_step + w * warp_step
  isa::Space space = isa::Space::kHbm;
  isa::CacheHint hint = isa::CacheHint::kCached;
  uint32_t access_bytes = 0;
  uint64_t base = 0;
  uint64_t lane_step = 0;
  uint64_t warp_step = 0;
  const uint64_t* addresses = nullptr; // by lane of the block, if it is not linear
};

} // namespace pto::sim
