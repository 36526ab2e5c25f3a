// SPDX-License-Identifier: Apache-2.0
// The counters of a timed run: what every report is made of. Plain values.
#pragma once

#include "isa/insn_desc.h"
#include "simulator/timing/core_memory.h"
#include "simulator/timing/shared_memory.h"
#include "simulator/timing/stall.h"

#include <array>
#include <cstdint>
#include <vector>

namespace pto::sim {

/// One insn of the program over all warps.
struct PcCounters {
  uint64_t issues = 0;      // warp insns
  uint64_t lane_ops = 0;    // active lanes of them
  uint64_t matrix_macs = 0; // m * n * k of matrix operations
  StallCycles stalls;       // cycles that warps waited in front of this insn
};

/// One warp of one block. issued_cycles + stalls.total() == elapsed_cycles, always.
struct WarpCounters {
  uint64_t block = 0;
  uint32_t warp = 0;
  uint32_t core = 0;
  uint64_t start_cycle = 0;
  uint64_t elapsed_cycles = 0;
  uint64_t issued_cycles = 0;
  StallCycles stalls;
};

struct CoreCounters {
  uint64_t blocks = 0;
  uint64_t insns = 0;           // warp insns
  uint64_t busy_cycles = 0;     // cycles in which at least one warp issued
  uint64_t occupied_cycles = 0; // cycles in which a block was resident
  std::array<double, isa::kUnitCount> unit_busy_cycles{}; // of the busiest pipe of each unit
  MemoryCounters memory;
};

struct BlockSpan {
  uint64_t block = 0;
  uint32_t core = 0;
  uint64_t dispatch_cycle = 0;
  uint64_t start_cycle = 0; // its first issue may be here
  uint64_t end_cycle = 0;   // all its results are there
};

struct TimedCounters {
  uint64_t cycles = 0; // of the whole launch
  uint64_t warp_insns = 0;
  uint64_t lane_insns = 0;    // active lanes
  uint64_t lane_slots = 0;    // 32 for every warp insn
  uint64_t issued_cycles = 0; // over all warps
  StallCycles stalls;         // over all warps
  std::vector<PcCounters> by_pc;
  std::vector<CoreCounters> cores;
  MemoryCounters memory; // over all cores
  SharedMemory::Counters shared;
  std::vector<BlockSpan> blocks;   // at most kMaxSpans, in order of dispatch
  std::vector<WarpCounters> warps; // of those blocks

  static constexpr size_t kMaxSpans = 4096;
  [[nodiscard]] double lane_efficiency() const {
    return lane_slots == 0 ? 0 : static_cast<double>(lane_insns) / static_cast<double>(lane_slots);
  }
};

} // namespace pto::sim
