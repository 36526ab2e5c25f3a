// SPDX-License-Identifier: Apache-2.0
// Cycle breakdown: what each insn of a kernel cost on the device, beside what a simulator says.
#pragma once

#include "runtime/profile/profile.h"

#include <string>
#include <vector>

namespace pto::rt {

/// One mnemonic key (`LOAD`), or one of its types where these differ (`ADD.f32`).
struct BreakdownRow {
  std::string key;
  uint64_t count = 0;   // warp insns
  double cycles = 0;    // of one
  double simulated = 0; // what the simulator says; 0: nothing to compare with
};

struct BreakdownPair {
  std::string first; // base keys
  std::string second;
  bool is_joined = false;
  uint64_t count = 0;
  double cycles = 0;
};

struct CycleBreakdown {
  std::string kernel;
  std::string device;  // with the word emulated where it is
  std::string machine; // that `simulated` comes from; empty: none
  double cycles = 0;
  double spread = 0; // standard deviation of the runs
  double error = 0;  // standard error of `cycles`, their mean
  double simulated_cycles = 0;
  double clock_mhz = 0;
  size_t runs = 0;
  size_t rejected_runs = 0;
  std::vector<BreakdownRow> rows; // by key
  std::vector<BreakdownPair> pairs;
  std::vector<std::string> warnings;

  /// Several lines: "LOAD: 3 cycles (simulator: 4), 16 warp insns". Ends in a line end.
  [[nodiscard]] std::string to_string() const;
};

/// Of one kernel of a profile. `machine` picks which of its simulations to compare with; empty: the
/// first, if there is one.
[[nodiscard]] CycleBreakdown
cycle_breakdown(const Profile& profile, const KernelProfile& kernel, std::string_view machine = {});

/// "3 cycles", "1 cycle", "3.2 cycles".
[[nodiscard]] std::string cycles_text(double cycles);

} // namespace pto::rt
