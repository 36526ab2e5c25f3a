// SPDX-License-Identifier: Apache-2.0
// Which pairs of insns are worth trying, and which of them a profile shows to be joined. Private to
// runtime/profile/.
#pragma once

#include "runtime/profile/microbench_insn.h"
#include "runtime/profile/profile.h"

#include <string>
#include <vector>

namespace pto::rt {

namespace detail {

struct PairForms {
  const InsnForm* first = nullptr;
  const InsnForm* second = nullptr;
};

/// Loads and lane arithmetic, followed by arithmetic or a store: each row with f32 and with a
/// 32-bit integer type, where it has them.
[[nodiscard]] std::vector<PairForms> likely_pairs(const std::vector<InsnForm>& forms);

} // namespace detail

/// A pair whose pattern takes less time than its parts.
struct JoinedPair {
  std::string first; // insn keys
  std::string second;
  bool is_unconnected = false; // seen without a common register
  double cycles = 0;           // of the pair as one
  double cycles_error = 0;
  double expected = 0; // of the pattern, were the two apart
  double measured = 0; // of the pattern
};

/// From the microbenchmarks of roles latency and pair in the profile.
[[nodiscard]] std::vector<JoinedPair> joined_pairs(const Profile& profile);

} // namespace pto::rt
