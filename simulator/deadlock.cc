// SPDX-License-Identifier: Apache-2.0
// Why a block can never go on, in words: who waits where for what, and who could have come.
#include "simulator/block.h"
#include "simulator/lane_ranges.h"
#include "simulator/warp_groups.h"

#include <fmt/format.h>

#include <map>
#include <tuple>
#include <vector>

namespace pto::sim {

Fault BlockRun::deadlock_fault() const {
  const Program& program = launch_.program();
  // By pc, status, barrier or event, and the lanes that wait and that are missing.
  using Key = std::tuple<uint32_t, WarpStatus, int, uint32_t, uint32_t>;
  WarpGroups<Key> groups;
  uint32_t first_warp = 0;
  bool has_first = false;
  for (uint32_t w = 0; w < warp_count(); ++w) {
    const WarpState& warp = state_.warps[w];
    if (warp.status == WarpStatus::kDone) {
      continue;
    }
    if (!has_first) {
      first_warp = w;
      has_first = true;
    }
    const bool is_barrier = warp.status == WarpStatus::kAtBlockBarrier;
    const uint32_t waiting = is_barrier ? warp.arrived_mask : state_.masks[w];
    const uint32_t missing = is_barrier ? live_mask(w) & ~waiting : 0;
    const Key key{
        warp.pc, warp.status, is_barrier ? warp.barrier_id : warp.wait_event, waiting, missing};
    groups.add(key, w);
  }

  Fault fault;
  fault.kind = FaultKind::kDeadlock;
  fault.block = state_.index;
  fault.core = state_.core;
  fault.warp = first_warp;
  fault.pc = has_first ? state_.warps[first_warp].pc : program.entry_pc();
  fault.loc = program.loc(fault.pc);
  fault.lane_mask = has_first ? state_.masks[first_warp] : 0;

  std::map<int, uint32_t> barrier_places; // id -> pc
  bool has_partial = false;
  for (const auto& [key, warps] : groups) {
    const auto& [pc, status, id, waiting, missing] = key;
    std::string what = fmt::format("{}", name(status));
    if (status == WarpStatus::kAtBlockBarrier) {
      what = fmt::format("at barrier_block {}", id);
      barrier_places.emplace(id, pc);
    } else if (status == WarpStatus::kWaitingEvent) {
      what = fmt::format("for copies of event e{}", id);
    } else if (status == WarpStatus::kWaitingAll) {
      what = "for all copies";
    }
    const bool is_one = warps.size() == 1;
    fault.details += fmt::format(
        "{} {} {}, {}\n", list_warps(warps), is_one ? "waits" : "wait", what, program.place(pc));
    if (missing == 0) {
      continue;
    }
    has_partial = true;
    fault.details += fmt::format("  with lanes {} only; lanes {} of the warp",
                                 lane_ranges(waiting, ", "),
                                 lane_ranges(missing, ", "));
    // Where the others stand: the innermost waiting part that holds one of them.
    const std::vector<StackEntry>& stack = state_.warps[warps.front()].stack;
    uint32_t found = 0;
    for (size_t i = stack.size(); i-- > 0;) {
      const uint32_t here = stack[i].mask & missing & ~found;
      if (here != 0) {
        fault.details += fmt::format("{} stand at {}",
                                     found == 0 ? "" : ", " + lane_ranges(here, ", "),
                                     program.place(stack[i].pc));
        found |= here;
      }
    }
    fault.details += (missing & ~found) == 0
                         ? " and cannot run before these go on\n"
                         : " passed over it (guard), and cannot run before these go on\n";
  }
  if (barrier_places.size() > 1) {
    fault.message = fmt::format(
        "deadlock in block {}: its warps wait at {} different barriers, each for the others: let "
        "all warps reach the same barrier_block",
        state_.index,
        barrier_places.size());
  } else if (has_partial) {
    fault.message = fmt::format(
        "deadlock in block {}: barrier_block in divergent code joins every lane of the block, but "
        "some lanes of a warp did not come with the others: move it to where all lanes pass",
        state_.index);
  } else {
    fault.message = fmt::format("deadlock in block {}: no warp can go on", state_.index);
  }
  return fault;
}

} // namespace pto::sim
