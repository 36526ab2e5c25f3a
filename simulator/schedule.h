// SPDX-License-Identifier: Apache-2.0
// Orders of execution for `--schedule`: which resident warp takes the next step. A program without
// races computes the same under all of them. Each is deterministic.
#pragma once

#include "simulator/launch.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pto::sim {

enum class SchedulePolicy : uint8_t {
  kLockstep, // every ready warp of every resident block takes one step in turn
  kGreedy,   // a warp goes on until it waits or ends
  kRandom,   // any ready warp; copies complete at any time
};

struct Schedule {
  SchedulePolicy policy = SchedulePolicy::kLockstep;
  uint64_t seed = 0;
};
/// "lockstep", "greedy", "random:7" ("random" is random:0). On failure `error` lists what there is.
std::optional<Schedule> parse_schedule(std::string_view text, std::string& error);
std::string to_string(const Schedule& schedule);

/// Runs the launch a warp insn at a time. options.copies is used by lockstep and greedy; random
/// chooses for itself.
RunResult run_scheduled(Launch& launch, const Schedule& schedule, const RunOptions& options = {});

} // namespace pto::sim
