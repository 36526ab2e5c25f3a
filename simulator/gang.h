// SPDX-License-Identifier: Apache-2.0
// A gang: consecutive blocks of a simple kernel, executed as one wide block. Private to the
// simulator.
//
// What a small block costs beside the work of its lanes (starting it, one dispatch an insn) is paid
// once for all blocks of the gang. A kernel is simple if it cannot name its block: it reads no
// special register but those of the grid, the warp and the lane, has no scratchpad, barriers,
// copies, atomics, calls or prints, and the launch is one-dimensional.
//
// Nobody can tell the difference: as long as all warps of the gang stand at one insn, those of each
// block would by themselves, and the ledger of accesses (access_ledger.h) proves that no block saw
// what another one did. A gang for which that does not hold, or that would fault, or that takes
// long, is undone as a whole, and its blocks run one by one. Where all of it is known beforehand
// (grid_proof.h) there is no ledger.
#pragma once

#include "simulator/access_ledger.h"
#include "simulator/block.h"
#include "simulator/grid_proof.h"
#include "simulator/launch.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace pto::sim {

class AccessGate;

class Gang {
public:
  /// Neither the kernel nor the launch rules gangs out.
  static bool suits(const Launch& launch);
  /// Null where gangs do not suit, or would be of one block. `launch` must outlive the gang. Of
  /// `most_blocks` at most.
  static std::unique_ptr<Gang> make(const Launch& launch, uint64_t most_blocks = UINT64_MAX);
  /// Runs without a ledger if the proof, of the same launch, says that there is nothing for it to
  /// find, and returns true. Not with a gate: what that refuses could not be undone.
  bool trust(const std::optional<GridProof>& proof);

  /// Blocks of a gang.
  uint64_t size() const { return size_; }
  /// Blocks [first, first + size()) make a gang, all of them before `end`; false also where gangs
  /// turned out to be undone too often.
  bool covers(uint64_t first, uint64_t end) const {
    return first % size_ == 0 && end - first >= size_ && undone_ <= done_ / 16;
  }

  enum class Stop : uint8_t {
    kDone,
    kUndone,  // memory is as before: run the blocks one by one
    kRefused, // the same, because of the gate
  };
  Stop run(uint64_t first);
  /// Of the gang that ran last.
  const InsnCounts& counts() const { return block_.counts(); }

  /// See BlockRun::set_gate.
  void set_gate(AccessGate* gate) { block_.set_gate(gate); }

private:
  Gang(std::unique_ptr<Launch> wide, uint64_t size);

  std::unique_ptr<Launch> wide_;
  uint64_t size_;
  bool is_trusted_ = false; // there is nothing for the ledger to find
  AccessLedger ledger_;
  BlockRun block_;
  uint64_t done_ = 0; // gangs
  uint64_t undone_ = 0;
};

} // namespace pto::sim
