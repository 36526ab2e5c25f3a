// SPDX-License-Identifier: Apache-2.0
// Where an instrumented file reads clocks: regions of neighbouring insns, each between two reads.
//
// The reads stand between statements, so control flow is never inside a region: branches, calls and
// what ends a lane lie between regions, and so does PRINT, whose time says nothing of the kernel.
#pragma once

#include "isa/object.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pto::rt {

enum class Instrument : uint8_t {
  kNone,
  kKernel,          // from a lane's first insn to its end: one entry a warp
  kBlocks,          // runs of insns between branches
  kInsns,           // every insn
  kPairs,           // insns 0 and 1, 2 and 3, ... of each run
  kPairsFromSecond, // insns 1 and 2, 3 and 4, ...
};

/// Insns from first_pc to before end_pc.
struct ProbeRegion {
  uint32_t first_pc = 0;
  uint32_t end_pc = 0;
  /// Holds what warp 0 does for its block; the others pass over it and are not counted.
  bool is_of_block = false;
};

/// The regions of a function by pc; none for kNone and kKernel.
[[nodiscard]] std::vector<ProbeRegion>
probe_regions(const isa::Object& object, const isa::Function& function, Instrument instrument);

/// What the clock reads of one launch say, over all its warps.
struct ProbeResult {
  struct Sum {
    ProbeRegion region;
    uint64_t count = 0; // how often a warp ran it; passing over is no run
    double cycles = 0;  // of all of them, clock reads included
  };
  /// What an empty pair of reads takes: the median over warps.
  double overhead_cycles = 0;
  std::vector<Sum> regions; // those that ran
  /// kKernel: of the block that took longest, from its first clock to its last.
  double span_cycles = 0;
};

/// From the entries of a launch, whose blocks have `warps_per_block` warps each. `error` says what
/// is wrong where entries cannot be what a kernel wrote; the result is then not to be used.
[[nodiscard]] ProbeResult read_probe(std::span<const uint64_t> words,
                                     const std::vector<ProbeRegion>& regions,
                                     Instrument instrument,
                                     uint64_t warps_per_block,
                                     std::string& error);

} // namespace pto::rt
