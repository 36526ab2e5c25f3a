// SPDX-License-Identifier: Apache-2.0
// What is known of the registers and predicates of all lanes of a launch, insn by insn. Private to
// the simulator.
#pragma once

#include "isa/affine.h"
#include "isa/span_lanes.h"
#include "simulator/known_values.h"
#include "simulator/launch.h"
#include "simulator/program.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace pto::sim {

/// Lanes of the grid where a predicate holds: those in all half-spaces, or, negated, all others.
struct GridCondition {
  std::vector<isa::HalfSpace> all_of; // empty: everywhere, or, negated, nowhere
  bool is_negated = false;

  static GridCondition constant(bool holds) { return {{}, !holds}; }
  bool holds_everywhere() const { return all_of.empty() && !is_negated; }
  bool holds_nowhere() const { return all_of.empty() && is_negated; }
  GridCondition negation() const { return {all_of, !is_negated}; }
  /// Leaves out lanes where it does not hold, as far as a region can say.
  void cut(isa::AffineRegion& region) const;
};

/// A register is known where it is affine in the lane's place, a predicate where it compares such
/// values. Copying it keeps what is known at some point.
class GridValues {
public:
  explicit GridValues(const LaunchImage& image);

  /// What all lanes of `region` have after the insn, which only writes registers.
  void follow(const ProgramInsn& decoded, const isa::AffineRegion& region);
  void forget(const ResourceSet& set);

  /// Nullopt: unknown.
  std::optional<GridCondition> condition(isa::Guard guard) const;
  /// The address in the lanes of `region`; nullopt: unknown. Bases are parameters, symbols and
  /// registers.
  std::optional<isa::AffineValue> address(const isa::MemRef& mem,
                                          const isa::AffineRegion& region) const;

private:
  KnownRegisters<isa::AffineValue> registers() const {
    return {known_, at32_.data(), at64_.data()};
  }
  bool sources_of(const ProgramInsn& decoded, isa::AffineSources& sources) const;
  std::optional<GridCondition> compare(const ProgramInsn& decoded,
                                       const isa::AffineSources& sources) const;

  const LaunchImage* image_;
  ResourceSet known_; // registers
  std::array<isa::AffineValue, isa::kReg32Count> at32_{};
  std::array<isa::AffineValue, isa::kReg64Count> at64_{};
  std::array<std::optional<GridCondition>, isa::kPredCount> preds_;
};

} // namespace pto::sim
