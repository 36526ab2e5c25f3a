// SPDX-License-Identifier: Apache-2.0
// Achieved bandwidth and operation rate against what the machine profile can give.
#pragma once

#include "isa/insn.h"
#include "isa/machine.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pto::sim {

struct TimingReport;

/// One limit of the machine; 0: the profile sets none.
struct RoofLimit {
  std::string name;     // "hbm", "l2", "f32 FMA", "matrix unit"
  double per_cycle = 0; // bytes or operations, the whole machine
  bool is_matrix_unit = false;
};

struct Roofline {
  uint64_t flops = 0;        // floating-point operations, matrix unit included
  uint64_t matrix_flops = 0; // of these, its share
  uint64_t hbm_bytes = 0;    // read and written
  uint64_t l2_bytes = 0;
  std::vector<RoofLimit> memory;  // bytes a cycle
  std::vector<RoofLimit> compute; // operations a cycle
  double flops_per_cycle = 0;     // achieved
  double hbm_bytes_per_cycle = 0;
  double l2_bytes_per_cycle = 0;
  double intensity = 0;      // flops for each byte of hbm; 0: no bytes
  std::string bound;         // "memory", "compute", "unit", or "latency" (far from every limit)
  double bound_fraction = 0; // of the nearest limit, or of the time that the unit is taken; 0 to 1
  std::string text;          // one sentence
};

/// Floating-point operations that one lane does in this insn: 0 for what is no float arithmetic,
/// else 1, or 2 where three sources go in (a multiplication and an addition); twice that for packed
/// types. The matrix unit is counted by its sizes, not here.
[[nodiscard]] uint32_t flops_per_lane(const isa::Insn& insn);

/// From the counters of `report` and the figures of `machine`.
[[nodiscard]] Roofline make_roofline(const TimingReport& report,
                                     const isa::MachineProfile& machine);

} // namespace pto::sim
