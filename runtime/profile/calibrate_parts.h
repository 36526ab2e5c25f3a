// SPDX-License-Identifier: Apache-2.0
// The parts of a calibration. Private to runtime/profile/.
#pragma once

#include "runtime/profile/calibrate.h"
#include "runtime/profile/slopes.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace pto::rt::detail {

/// What the parts work from.
struct Evidence {
  Profile measured; // kernels of all profiles together
  std::vector<Slope> slopes;
  std::map<std::string, ChainLatency> latencies;
  Profile base_measurement;       // the base profile on the same patterns
  std::vector<Slope> base_slopes; // of it
  std::map<std::string, ChainLatency> base_latencies;
  std::string date;
  bool has_patterns = false; // microbenchmarks of latency or interval
};

/// The slope of the same pattern, or null.
[[nodiscard]] const Slope* same_pattern(const std::vector<Slope>& slopes, const MicroTag& tag);

/// The hook's figure of a key over all kernels that are in the fit.
struct HookFigure {
  std::string key;
  double cycles = 0;
  double error = 0;
  uint64_t count = 0;
  std::string definition;
  /// What the device took beyond the base profile in the same kernels; nothing where no kernel
  /// tells what the base profile takes.
  std::optional<double> beyond_base;
};
[[nodiscard]] std::vector<HookFigure> hook_figures(const Evidence& evidence,
                                                   const Calibration& calibration);

/// Latency table: values, entries that refine others, provenance.
void fit_latencies(const Evidence& evidence,
                   const isa::MachineProfile& base,
                   Calibration& calibration);
/// Fusion rules.
void fit_fusion(const Evidence& evidence, Calibration& calibration);
/// Copies, barriers, atomics, memory, launch.
void fit_formulas(const Evidence& evidence,
                  const isa::MachineProfile& base,
                  Calibration& calibration);

} // namespace pto::rt::detail
