// SPDX-License-Identifier: Apache-2.0
// Two arrays compared as numpy.allclose does, and the difference told so that a person can act.
#pragma once

#include "simulator/element.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pto::sim {

/// Floats are equal if |got - expected| <= atol + rtol * |expected|, in double; infinities only to
/// themselves. Integers, bits and bools must be equal whatever the tolerances.
struct Tolerance {
  double rtol = 0;
  double atol = 0;
  bool nan_equals_nan = true;
};

/// One differing element.
struct ElementDifference {
  uint64_t index = 0; // linear, C order
  std::string got;
  std::string expected;
  double absolute = 0; // NaN where one of the two is
  double relative = 0; // of |expected|; infinity for expected 0
  /// Floats of one type: how many representable values apart; nothing with NaN.
  std::optional<uint64_t> ulps;
};

struct Comparison {
  uint64_t count = 0;     // elements compared
  uint64_t differing = 0; // outside the tolerance
  std::optional<ElementDifference> first;
  std::optional<ElementDifference> worst; // largest absolute error; a NaN mismatch beats all
  std::vector<uint64_t> shape;            // of the expected array
  /// Largest errors over all elements, within the tolerance or not, where both are finite.
  double max_absolute = 0;
  double max_relative = 0;
  bool is_float = false;

  [[nodiscard]] bool is_equal() const { return differing == 0; }
};

/// Compares element by element. Nothing, with a sentence in `error`, if the arrays cannot be
/// compared: different numbers of elements, or a float against an integer. `got` without an element
/// type takes that of `expected` if the sizes agree. Shapes may differ, counts may not.
[[nodiscard]] std::optional<Comparison> compare_arrays(const HostArray& got,
                                                       const HostArray& expected,
                                                       const Tolerance& tolerance,
                                                       std::string& error);

/// Index in a shape: "[3,17]" for linear 113 of [.,32]; "[113]" with one dimension.
[[nodiscard]] std::string index_to_string(uint64_t linear, const std::vector<uint64_t>& shape);

/// Several lines (each ended) for a comparison that found differences: how many, the first, the
/// worst, and the neighbourhood of the first.
[[nodiscard]] std::string describe_difference(std::string_view array_name,
                                              const Comparison& comparison,
                                              const HostArray& got,
                                              const HostArray& expected,
                                              const Tolerance& tolerance);

/// One line without end: "o: 1024 elements agree with expected.npy (rtol 1e-05, ...)".
[[nodiscard]] std::string describe_agreement(std::string_view array_name,
                                             std::string_view expected_name,
                                             const Comparison& comparison,
                                             const Tolerance& tolerance);

/// "exactly" or "within rtol 1e-05, atol 1e-08".
[[nodiscard]] std::string to_string(const Tolerance& tolerance);

} // namespace pto::sim
