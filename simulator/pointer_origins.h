// SPDX-License-Identifier: Apache-2.0
// From which parameters of the kernel an address in a register was computed. Private to the
// simulator.
#pragma once

#include "simulator/program.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace pto::sim {

/// Walks against the flow of control, from uses of registers to what made them.
class PointerOrigins {
public:
  /// `program` must outlive it.
  explicit PointerOrigins(const Program& program);

  /// The parameters that flow into d`index` as it stands before the insn at `pc`, ascending: those
  /// that insns on any way there used to make it, from other 64-bit registers, too. Nullopt where
  /// something else may have made it: a load, a caller, or too much code to look through. A hint:
  /// what 32-bit registers hold is taken for offsets.
  std::optional<std::vector<uint32_t>> of(uint32_t pc, unsigned index);

private:
  using Place = std::pair<uint32_t, unsigned>; // pc of an insn, and a register as it stands there

  void look_before(const Place& place);
  bool add_sources(const Place& place);

  const Program& program_;
  const isa::Function& kernel_;
  std::multimap<uint32_t, uint32_t> jumps_; // by target
  std::set<Place> seen_;
  std::vector<Place> places_; // of seen_, still to be looked at
  std::set<uint32_t> origins_;
};

} // namespace pto::sim
