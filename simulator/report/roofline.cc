// SPDX-License-Identifier: Apache-2.0
// Counts operations and bytes, and finds the nearest limit.
#include "simulator/report/roofline.h"

#include "isa/insn_desc.h"
#include "simulator/report/timing_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace pto::sim {

namespace {

// A kernel further than this from every limit waits for results rather than for capacity.
constexpr double kNearLimit = 0.25;
// A unit that is taken for so much of the time on the busiest core sets the pace there.
constexpr double kBusyUnit = 0.5;

/// Operations a cycle of the lanes of the whole machine with this key; 0: no such entry.
double lane_rate(const isa::MachineProfile& machine, std::string_view key, double operations) {
  const isa::LatencyEntry* entry = machine.latency.find(key);
  if (entry == nullptr) {
    return 0;
  }
  const double pipes = std::max<double>(machine.units.v_pipes, 1);
  const double issue = machine.issue_warps_per_cycle;
  const double warps = std::min(issue, pipes / std::max<double>(entry->interval_cycles, 1));
  return warps * isa::kWarpLanes * operations * machine.cores;
}

/// Operations a cycle of the matrix units; 0 where the profile's MMA takes no longer for more.
double matrix_rate(const isa::MachineProfile& machine, std::string_view key) {
  const isa::LatencyEntry* entry = machine.latency.find(key);
  if (entry == nullptr || entry->step_cycles == 0 || entry->tile_m == 0) {
    return 0;
  }
  const double macs = static_cast<double>(entry->tile_m) * entry->tile_n * entry->tile_k;
  return 2 * macs / entry->step_cycles * machine.cores * std::max(1u, machine.units.c_pipes);
}

void judge(Roofline& roofline, const std::vector<ReportUnit>& units, double cycles) {
  const auto consider = [&](const RoofLimit& limit, double achieved, const char* bound) {
    if (limit.per_cycle > 0 && achieved / limit.per_cycle > roofline.bound_fraction) {
      roofline.bound_fraction = achieved / limit.per_cycle;
      roofline.bound = bound;
      roofline.text =
          fmt::format("{:.3g} % of what {} can give", 100 * roofline.bound_fraction, limit.name);
    }
  };
  for (const RoofLimit& limit : roofline.memory) {
    consider(limit,
             limit.name == "l2" ? roofline.l2_bytes_per_cycle : roofline.hbm_bytes_per_cycle,
             "memory");
  }
  for (const RoofLimit& limit : roofline.compute) {
    // Each limit is of its own unit.
    const uint64_t flops =
        limit.is_matrix_unit ? roofline.matrix_flops : roofline.flops - roofline.matrix_flops;
    consider(limit, static_cast<double>(flops) / cycles, "compute");
  }
  if (roofline.bound_fraction < kNearLimit) {
    // A queue in front of a unit looks like latency, but more warps would not help.
    for (const ReportUnit& unit : units) {
      const double taken = unit.most_busy_cycles / cycles;
      if (taken >= kBusyUnit && taken > roofline.bound_fraction) {
        roofline.bound_fraction = std::min(taken, 1.0);
        roofline.bound = "unit";
        roofline.text = fmt::format(
            "unit {} ({}) is taken {:.1f} % of the time", unit.name, unit.summary, 100 * taken);
      }
    }
    if (roofline.bound == "unit") {
      return;
    }
  }
  if (roofline.bound_fraction == 0) {
    roofline.bound = "latency";
    roofline.text = "no limit of the profile is near";
  } else if (roofline.bound_fraction < kNearLimit) {
    roofline.bound = "latency";
    roofline.text += ", the nearest limit: it waits for results";
  }
}

} // namespace

uint32_t flops_per_lane(const isa::Insn& insn) {
  const isa::InsnDesc& desc = *insn.desc;
  const bool is_lane_arithmetic =
      desc.scope == isa::Scope::kLane && (desc.unit == isa::Unit::kV || desc.unit == isa::Unit::kX);
  const bool is_float = isa::is_float(insn.type) || insn.type == isa::Type::kF16x2;
  if (!is_lane_arithmetic || !is_float || insn.type2 != isa::Type::kNone ||
      desc.has(isa::kSelects | isa::kCrossLane) || insn.operand_count == 0 ||
      insn.operand(0).kind == isa::OperandKind::kPred) {
    return 0;
  }
  const unsigned sources = insn.operand_count - 1u;
  return (sources >= 3 ? 2 : 1) * (insn.type == isa::Type::kF16x2 ? 2 : 1);
}

Roofline make_roofline(const TimingReport& report, const isa::MachineProfile& machine) {
  Roofline roofline;
  for (const ReportInsn& insn : report.insns) {
    roofline.flops += insn.flops;
    roofline.matrix_flops += insn.unit == static_cast<uint8_t>(isa::Unit::kC) ? insn.flops : 0;
  }
  roofline.hbm_bytes = report.shared.hbm_read_bytes + report.shared.hbm_write_bytes;
  roofline.l2_bytes = report.shared.l2_read_bytes + report.shared.l2_write_bytes;
  roofline.memory = {{"hbm", machine.hbm.bytes_per_cycle_total},
                     {"l2", machine.l2.bytes_per_cycle}};
  roofline.compute = {{"f32 lanes (FMA)", lane_rate(machine, "FMA.f32", 2)},
                      {"f16 lanes (FMA.f16x2)", lane_rate(machine, "FMA.f16x2", 4)}};
  if (roofline.matrix_flops != 0) {
    roofline.compute.push_back({"matrix unit", matrix_rate(machine, "MMA.f32.f16"), true});
  }
  const double cycles = static_cast<double>(std::max<uint64_t>(report.cycles, 1));
  roofline.flops_per_cycle = static_cast<double>(roofline.flops) / cycles;
  roofline.hbm_bytes_per_cycle = static_cast<double>(roofline.hbm_bytes) / cycles;
  roofline.l2_bytes_per_cycle = static_cast<double>(roofline.l2_bytes) / cycles;
  roofline.intensity = roofline.hbm_bytes == 0 ? 0
                                               : static_cast<double>(roofline.flops) /
                                                     static_cast<double>(roofline.hbm_bytes);
  judge(roofline, report.units, cycles);
  return roofline;
}

} // namespace pto::sim
