// SPDX-License-Identifier: Apache-2.0
// Why a debugged kernel stands still, as a value: what every front end prints in its own way.
#pragma once

#include "isa/insn.h"
#include "simulator/checks/finding.h"
#include "simulator/fault.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pto::dbg {

inline constexpr uint32_t kNoPc = UINT32_MAX;

/// What commands without a place of their own refer to.
struct Focus {
  uint64_t block = 0; // linear index in the grid
  uint32_t warp = 0;  // within the block
  uint32_t lane = 0;  // within the warp
  constexpr bool operator==(const Focus&) const = default;
  [[nodiscard]] uint32_t block_lane() const { return warp * isa::kWarpLanes + lane; }
};

enum class StopReason : uint8_t {
  kLaunch,       // in front of the first insn
  kStep,         // the step is done
  kLocation,     // until, advance, finish, a cycle or a position was reached
  kBreakpoint,   // in front of the insn
  kWatchpoint,   // behind the insn that read or wrote (going back: in front of it)
  kCatchpoint,   // behind the insn that caused the event
  kFault,        // the program is wrong: StopEvent::fault
  kDeadlock,     // the same; no warp can ever go on
  kFinished,     // the grid is done
  kInterrupted,  // Session::interrupt
  kLimit,        // max_cycles or max_insns
  kHistoryStart, // going back: as far as the history reaches
};
/// "breakpoint", "step", ...
std::string_view name(StopReason reason);

/// One access that a watchpoint saw.
struct WatchHit {
  int id = 0;
  std::string text; // what is watched, as it was written
  isa::Type type = isa::Type::kB32;
  std::vector<uint8_t> old_bytes; // of what is watched, little endian
  std::vector<uint8_t> new_bytes; // equal for a read
  bool is_read = false;
  uint64_t block = 0;
  uint32_t warp = 0;
  uint32_t lane_mask = 0; // lanes of the warp that touched it; 0: a copy or the block
  uint32_t pc = 0;        // of the insn; for a copy: of the insn that started it
  bool is_copy = false;
};

struct StopEvent {
  StopReason reason = StopReason::kLaunch;
  std::vector<int> ids; // stop points that fired, ascending
  std::vector<WatchHit> watches;
  std::vector<sim::Finding> findings; // new since the last stop
  std::optional<sim::Fault> fault;    // with kFault and kDeadlock
  Focus focus;                        // after the stop
  bool has_moved_focus = false;       // the stop happened elsewhere, or the focused block has ended
  bool has_block = true;              // the focused block is resident, so that it has registers
  uint32_t pc = kNoPc;                // of the focused warp; kNoPc: it has ended or not begun
  uint64_t cycle = 0;                 // of the next issue where it is known, else of the latest
  uint64_t position = 0;              // warp insns executed since the launch
  std::string note;                   // something to tell besides: a condition that failed
  std::vector<std::string> commands;  // of the stop points, for a front end to run, in their order
};

} // namespace pto::dbg
