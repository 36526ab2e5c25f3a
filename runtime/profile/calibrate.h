// SPDX-License-Identifier: Apache-2.0
// Calibration: a machine profile fitted to measured profiles.
//
// Evidence in the order of its weight: microbenchmarks (slopes over repeats, see microbench.h),
// then insn figures that the device's hook saw in kernels. A key without evidence keeps its value
// and says so. Memory figures are corrected by difference: what the base profile says for the same
// kernel is simulated, and only the part that the device adds goes into the figure, so that misses,
// lines and banks which the model knows already are not counted twice. Nothing is extrapolated
// without a word: formulas name the range that was measured.
//
// Measured profiles of an emulated device fit as those of a board do; the word `emulated` then
// stands in the fitted profile and in every report.
#pragma once

#include "isa/machine.h"
#include "runtime/profile/profile.h"
#include "runtime/profile/samples.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pto::rt {

/// Where a figure of the fitted profile comes from.
enum class Provenance : uint8_t {
  kMeasured,  // by this calibration
  kPublished, // kept: the base profile names a source
  kInherited, // kept: follows a less specific key
  kGuess,     // kept: the base profile says itself that it was assumed or chosen
};
[[nodiscard]] std::string_view name(Provenance provenance);

/// One figure of the latency table.
struct CalibratedFigure {
  std::string key;    // entry of the fitted table
  std::string figure; // "latency" or "interval"
  double before = 0;
  double after = 0;
  double measured = 0; // not rounded; 0 without evidence
  double error = 0;    // standard error of `measured`
  Provenance provenance = Provenance::kGuess;
  bool is_new = false;  // the base table has no entry of its own for it
  std::string evidence; // what was measured, or why there is nothing
};

struct InferredRule {
  isa::FusionRule rule;
  double measured = 0; // latency of the pair, not rounded
  double error = 0;
  std::vector<std::string> evidence; // a line an observation
  std::vector<std::string> open;     // what the measurements cannot tell
};

/// A figure that follows from a line over an amount, or a line that no figure of the model takes.
struct FormulaFigure {
  std::string what; // "copy in by bytes"
  LineFit fit;
  std::string key_path; // figure that was set; empty: reported only
  double before = 0;
  double after = 0;
  std::string note;
};

struct KernelPrediction {
  std::string name;
  double device = 0; // cycles measured
  double before = 0; // cycles by the base profile; 0: cannot be simulated again
  double after = 0;
  bool is_held_out = false; // nothing of it went into the fit
  std::string problem;      // why it could not be simulated
};

struct Calibration {
  isa::MachineProfile machine;
  std::string base;
  std::string device; // with the word emulated
  bool is_emulated = false;
  std::vector<CalibratedFigure> figures; // by key
  std::vector<InferredRule> rules;
  std::vector<FormulaFigure> formulas;
  std::vector<KernelPrediction> kernels;
  PredictionError before; // over kernels that could be simulated
  PredictionError after;
  PredictionError held_out_before; // over those of them that were held out
  PredictionError held_out_after;
  size_t patterns = 0;                      // microbenchmark patterns used
  double pattern_held_out = 0;              // mean held-out error of their lines
  std::vector<std::string> rejected_runs;   // "latency_FMA_f32_...: run 17: ..."
  std::vector<std::string> wrong_decisions; // orders of kernels that the base profile gets wrong
  std::vector<std::string> warnings;

  [[nodiscard]] const CalibratedFigure* find(std::string_view key, std::string_view figure) const;
};

struct CalibrateOptions {
  std::string name = "fitted"; // of the new machine profile
  std::string date;            // goes into every measured entry; empty: the profile's own
  bool simulates_kernels = true;
  /// What measure_base() gave for this base; null: measured as needed.
  const Profile* base_measurement = nullptr;
};

/// The microbenchmarks whose figures are corrected by difference, on the base profile itself.
[[nodiscard]] Profile measure_base(const isa::MachineProfile& base);

/// Nothing, with sentences in `errors`, where the profiles do not belong together or hold nothing
/// that a figure could be made of.
[[nodiscard]] std::optional<Calibration> calibrate(std::span<const Profile> profiles,
                                                   const isa::MachineProfile& base,
                                                   const CalibrateOptions& options,
                                                   std::vector<std::string>& errors);

} // namespace pto::rt
