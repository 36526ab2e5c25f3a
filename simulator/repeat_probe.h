// SPDX-License-Identifier: Apache-2.0
// Tells whether a block goes round in circles: it waits for what another block does, or for ever.
//
// A block's next insns depend on its own state and on hbm. If its state comes back, and hbm stays
// as it is meanwhile, it comes back again and again. So a copy of the block is executed for a
// while: that it repeats itself is certain, that it does not is no more than a guess (a loop that
// counts, or one too long for the look). The copy executes insn by insn where the block has slices,
// so if warps of the block race with each other, the copy may repeat itself where the block would
// not.
//
// SpinProbe (spin_probe.h) proves more, that no block can go on, and explains it; it is an observer
// of a launch on one thread. This one looks at a single block, from outside, on any thread.
#pragma once

#include "simulator/block.h"

#include <cstdint>

namespace pto::sim {

class RepeatProbe {
public:
  /// Copies ask `gate` before each access to hbm. It must refuse writes, and reads of what somebody
  /// else may be about to write. Both must outlive the probe.
  RepeatProbe(Launch& launch, AccessGate& gate);

  /// Whether the block repeats itself within `steps` insns of warps that stand together. The block
  /// is between two calls of run(), without a fault.
  [[nodiscard]] bool repeats(const BlockRun& block, uint64_t steps);

private:
  BlockRun copy_;
  bool reads_clock_; // which never comes back
};

} // namespace pto::sim
