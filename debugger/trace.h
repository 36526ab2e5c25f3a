// SPDX-License-Identifier: Apache-2.0
// What happened in a step: every warp insn of the focused block with the values it read and wrote.
#pragma once

#include "debugger/expression.h"
#include "isa/exec_context.h"
#include "simulator/issue_record.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pto::dbg {

/// One register operand (or one of several that a vector operand stands for) in the 32 lanes of the
/// warp; valid where the insn's exec_mask is set.
struct OperandTrace {
  uint8_t operand = 0; // of the insn
  uint8_t element = 0; // of a vector operand
  RegisterRef reg{};
  isa::Type type = isa::Type::kB32;
  bool is_result = false; // value after the insn; else before it
  std::array<uint64_t, isa::kWarpLanes> values{};
};

struct InsnTrace {
  static constexpr uint32_t kNotCached = UINT32_MAX;

  uint64_t cycle = 0; // of the issue; insns of the warp before it where there is no timing
  uint64_t block = 0;
  uint32_t core = 0;
  uint32_t warp = 0;
  uint32_t pc = 0;
  uint32_t active_mask = 0;
  uint32_t exec_mask = 0; // lanes that did something
  isa::Outcome outcome = isa::Outcome::kNext;
  uint32_t next_pc = 0;
  std::vector<OperandTrace> operands;

  bool accesses_memory = false;
  isa::Space space = isa::Space::kHbm;
  uint32_t access_bytes = 0; // of one lane
  uint8_t element_bytes = 0;
  bool reads_memory = false;
  bool writes_memory = false;
  bool is_atomic = false;
  std::array<uint64_t, isa::kWarpLanes> addresses{};
  /// Byte offset in l1 where the data cache keeps what the lane loaded from hbm; kNotCached.
  std::array<uint32_t, isa::kWarpLanes> l1_offsets{};

  std::optional<sim::CopyRecord> copy; // that it started
  std::vector<sim::L1Record> l1;       // ranges of scratchpad that it touched as a block
  std::vector<sim::CopyRecord> moved;  // copies whose data moved with this insn
  bool passed_over = false;            // block-scoped, and this is not warp 0
  int barrier_id = -1;
  bool releases_barrier = false;
  bool diverged = false;
  uint32_t taken_mask = 0;
  uint32_t exited_mask = 0;
  std::vector<std::string> prints; // lines of PRINT
};

/// In order of issue.
struct Trace {
  std::vector<InsnTrace> insns;
  uint64_t dropped = 0; // warp insns past the limit
};

} // namespace pto::dbg
