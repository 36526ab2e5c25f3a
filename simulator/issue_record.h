// SPDX-License-Identifier: Apache-2.0
// What the engine tells about one executed warp insn: all that time and observers need, no values.
#pragma once

#include "isa/exec_context.h"
#include "isa/insn.h"

#include <cstdint>

namespace pto::sim {

/// A copy that an ASYNC_LOAD or ASYNC_STORE started.
struct CopyRecord {
  isa::CopyDirection direction = isa::CopyDirection::kHbmToL1;
  uint64_t hbm_address = 0;
  uint64_t l1_offset = 0;
  isa::CopyShape shape{};
  int event = -1; // e0..e7; -1: only WAIT_ALL waits for it
};

struct IssueRecord {
  const isa::Insn* insn = nullptr;
  uint32_t pc = 0;
  uint32_t core = 0;
  uint64_t block = 0;       // linear index in the grid
  uint32_t warp = 0;        // within the block
  uint32_t active_mask = 0; // lanes at this pc
  uint32_t exec_mask = 0;   // of those, where the guard holds
  isa::Outcome outcome = isa::Outcome::kNext;
  uint32_t next_pc = 0; // of the warp after this insn

  // Memory access of a LOAD, STORE, ATOM, PREFETCH, INVAL.line: one address a lane, valid where
  // exec_mask is set, until the next insn executes. Null: the insn accessed no memory.
  const uint64_t* addresses = nullptr;
  isa::Space space = isa::Space::kHbm;
  uint32_t access_bytes = 0; // of one lane: element size times count
  isa::CacheHint hint = isa::CacheHint::kCached;
  bool is_result_read = true; // ATOM: false where the destination is `_`

  const CopyRecord* copy = nullptr;
  uint32_t m = 0; // MMA
  uint32_t n = 0;
  uint32_t k = 0;
  uint32_t nop_cycles = 0;
  int wait_event = -1; // WAIT: which; -1 with a waiting insn: all
};

} // namespace pto::sim
