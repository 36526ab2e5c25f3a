// SPDX-License-Identifier: Apache-2.0
// Groups insn measurements by mnemonic and prints them.
#include "runtime/profile/breakdown.h"

#include "runtime/profile/samples.h"
#include "simulator/report/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace pto::rt {
namespace {

/// Types of one mnemonic are shown apart where they differ by more than the eye would round away.
constexpr double kSameCycles = 0.25;

struct Group {
  std::vector<BreakdownRow> members;
  [[nodiscard]] bool is_uniform() const {
    double low = members.front().cycles;
    double high = low;
    double low_simulated = members.front().simulated;
    double high_simulated = low_simulated;
    for (const BreakdownRow& row : members) {
      low = std::min(low, row.cycles);
      high = std::max(high, row.cycles);
      low_simulated = std::min(low_simulated, row.simulated);
      high_simulated = std::max(high_simulated, row.simulated);
    }
    return high - low <= std::max(kSameCycles, 0.02 * high) &&
           high_simulated - low_simulated <= std::max(kSameCycles, 0.02 * high_simulated);
  }
  [[nodiscard]] BreakdownRow merged(const std::string& key) const {
    BreakdownRow row;
    row.key = key;
    double cycles = 0;
    double simulated = 0;
    for (const BreakdownRow& member : members) {
      row.count += member.count;
      cycles += member.cycles * static_cast<double>(member.count);
      simulated += member.simulated * static_cast<double>(member.count);
    }
    const auto count = static_cast<double>(row.count);
    row.cycles = row.count == 0 ? 0 : cycles / count;
    row.simulated = row.count == 0 ? 0 : simulated / count;
    return row;
  }
};

double simulated_cycles(const SimulatedKernel* simulated, const std::string& key) {
  if (simulated != nullptr) {
    for (const InsnMeasurement& insn : simulated->insns) {
      if (insn.key == key) {
        return insn.cycles;
      }
    }
  }
  return 0;
}

} // namespace

std::string cycles_text(double cycles) {
  const std::string number = short_number(cycles, 1);
  return number + (number == "1" ? " cycle" : " cycles");
}

CycleBreakdown
cycle_breakdown(const Profile& profile, const KernelProfile& kernel, std::string_view machine) {
  CycleBreakdown breakdown;
  breakdown.kernel = kernel.name;
  breakdown.device = profile.device_label();
  breakdown.cycles = kernel.cycles;
  breakdown.spread = kernel.spread;
  breakdown.error = kernel.error;
  breakdown.clock_mhz = profile.device.clock_mhz;
  breakdown.runs = kernel.runs.size();
  breakdown.warnings = kernel.warnings;
  for (const RunSample& run : kernel.runs) {
    breakdown.rejected_runs += run.rejected.empty() ? 0 : 1;
  }
  const SimulatedKernel* simulated = kernel.find_simulation(machine);
  if (simulated != nullptr) {
    breakdown.machine = simulated->machine;
    breakdown.simulated_cycles = simulated->cycles;
  }
  std::map<std::string, Group> groups;
  for (const InsnMeasurement& insn : kernel.insns) {
    groups[std::string(key_base(insn.key))].members.push_back(
        {insn.key, insn.count, insn.cycles, simulated_cycles(simulated, insn.key)});
  }
  for (const auto& [base, group] : groups) {
    if (group.is_uniform()) {
      breakdown.rows.push_back(group.merged(base));
    } else {
      breakdown.rows.insert(breakdown.rows.end(), group.members.begin(), group.members.end());
    }
  }
  for (const PairMeasurement& pair : kernel.pairs) {
    const std::string first(key_base(pair.first));
    const std::string second(key_base(pair.second));
    const auto same = std::find_if(
        breakdown.pairs.begin(), breakdown.pairs.end(), [&](const BreakdownPair& known) {
          return known.first == first && known.second == second &&
                 known.is_joined == pair.is_joined;
        });
    if (same == breakdown.pairs.end()) {
      breakdown.pairs.push_back({first, second, pair.is_joined, pair.count, pair.cycles});
    } else {
      const auto count = static_cast<double>(same->count + pair.count);
      same->cycles = (same->cycles * static_cast<double>(same->count) +
                      pair.cycles * static_cast<double>(pair.count)) /
                     std::max(1.0, count);
      same->count += pair.count;
    }
  }
  return breakdown;
}

std::string CycleBreakdown::to_string() const {
  std::string text = fmt::format("{} on {}: {}", kernel, device, cycles_text(cycles));
  if (clock_mhz > 0) {
    text += fmt::format(
        " = {} us at {} MHz", short_number(cycles / clock_mhz, 3), short_number(clock_mhz, 1));
  }
  if (!machine.empty()) {
    text += fmt::format(" (simulator, {}: {})", machine, short_number(simulated_cycles, 1));
  }
  if (runs > 1) {
    text += fmt::format(", {} runs", runs);
    if (spread > 0) {
      text += fmt::format(
          " (deviation {}, error of the mean {})", short_number(spread, 1), short_number(error, 2));
    }
    if (rejected_runs != 0) {
      text += fmt::format(", {} rejected", rejected_runs);
    }
  }
  text += '\n';
  for (const BreakdownRow& row : rows) {
    text += fmt::format("  {}: {}", row.key, cycles_text(row.cycles));
    if (row.simulated > 0) {
      text += fmt::format(" (simulator: {})", short_number(row.simulated, 1));
    }
    text += fmt::format(", {}\n", sim::counted(row.count, "warp insn"));
  }
  for (const BreakdownPair& pair : pairs) {
    text += fmt::format("  {} {} {}: {}{}, {}\n",
                        pair.first,
                        pair.is_joined ? "+" : "->",
                        pair.second,
                        cycles_text(pair.cycles),
                        pair.is_joined ? " as one" : "",
                        sim::counted(pair.count, "time"));
  }
  for (const std::string& warning : warnings) {
    text += fmt::format("  warning: {}\n", warning);
  }
  return text;
}

} // namespace pto::rt
