// SPDX-License-Identifier: Apache-2.0
// What went wrong in a simulated program: a value, never an exception.
#pragma once

#include "isa/insn.h"
#include "isa/object.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace pto::sim {

class Program;

enum class FaultKind : uint8_t {
  kOutOfBounds, // outside every allocation of its space
  kFreed,       // inside an hbm allocation that was freed
  kMisaligned,
  kReadOnly,   // write to const
  kScratchpad, // ALLOC_LOCAL does not fit
  kTile,       // tile register that holds no tile, or held one already
  kCallDepth,
  kTrap,
  kOperand,  // an impossible size, stride or the like, found by the semantics
  kDeadlock, // no warp of the block can ever go on
};
std::string_view name(FaultKind kind);

inline constexpr int kNoLane = -1;

struct Fault {
  FaultKind kind = FaultKind::kOperand;
  std::string message; // one line with the numbers, without the place
  uint32_t pc = 0;
  isa::SourceLoc loc{};
  uint64_t block = 0; // linear index
  uint32_t core = 0;
  uint32_t warp = 0;
  int lane = kNoLane;     // within the warp; the first that is wrong
  uint32_t lane_mask = 0; // every lane of that warp that is wrong
  bool has_address = false;
  isa::Space space = isa::Space::kHbm;
  uint64_t address = 0;    // of that lane
  uint64_t size_bytes = 0; // that the lane accesses there
  std::string allocation;  // "allocation a (4096 bytes) + 4100: 4 bytes past the end"
  uint32_t trap_code = 0;
  std::string details; // further lines: who waits where, what holds the scratchpad; may be empty
};

/// "x.pto:12: fault in kernel k: <message>" and indented lines with insn, block, warp, lane,
/// address, allocation and details.
std::string format_fault(const Fault& fault, const Program& program);

} // namespace pto::sim
