// SPDX-License-Identifier: Apache-2.0
// Memory accesses whose addresses are linear in the lane (isa/linear.h): where they lie. Private to
// the simulator.
#pragma once

#include "isa/insn.h"
#include "isa/linear.h"
#include "simulator/program.h"

#include <cstdint>
#include <optional>

namespace pto::sim {

struct AccessRange {
  uint64_t lowest = 0;
  uint64_t bytes = 0;
  uint64_t before_first = 0; // from the lowest address to that of lane 0
};

/// The bytes that all lanes access, `access_bytes` each; nullopt where some are not aligned or
/// steps are too large to tell.
std::optional<AccessRange>
linear_range_of(const isa::LinearValue& at, uint32_t access_bytes, unsigned warps);

/// Neighbouring lanes access neighbouring elements, from the first warp to the last.
bool is_one_run(const isa::LinearValue& at, uint32_t access_bytes, unsigned warps);

} // namespace pto::sim
