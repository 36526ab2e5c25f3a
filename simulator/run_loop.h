// SPDX-License-Identifier: Apache-2.0
// What drivers share: the limit, the interrupt flag, progress, and the result. Private.
#pragma once

#include "simulator/block.h"
#include "simulator/launch.h"
#include "simulator/spin_probe.h"

#include <algorithm>

namespace pto::sim {

class RunLoop {
public:
  /// `window_insns`: see SpinWatch.
  RunLoop(Launch& launch, const RunOptions& options, uint64_t window_insns)
      : launch_(launch), options_(options), spin_watch_(launch, window_insns),
        executed_(launch.ended_counts().warp_insns) {}

  /// Looks at the limit, the interrupt flag and progress; false when the run must end. Without
  /// `has_more` to execute it has ended by itself, and is complete if the limit allowed what it
  /// took (the warps of a block run together, so it may have taken more).
  bool goes_on(bool has_more) {
    if (result_.status != RunStatus::kCompleted) {
      return false;
    }
    if (!has_more) {
      result_.status = executed_ > options_.max_insns ? RunStatus::kLimit : RunStatus::kCompleted;
      return false;
    }
    if (options_.interrupt != nullptr && options_.interrupt->load(std::memory_order_relaxed)) {
      result_.status = RunStatus::kInterrupted;
      return false;
    }
    if (executed_ >= options_.max_insns) {
      result_.status = RunStatus::kLimit;
      return false;
    }
    if (options_.progress && executed_ - reported_ >= kReportInsns) {
      reported_ = executed_;
      options_.progress({.blocks_done = launch_.blocks_done(),
                         .block_count = launch_.block_count(),
                         .counts = launch_.ended_counts()});
    }
    return true;
  }

  BlockStop run_block(BlockRun& block, uint64_t quantum) {
    const uint64_t before = block.counts().warp_insns;
    const BlockStop stop = block.run(std::min(quantum, options_.max_insns - executed_));
    executed_ += block.counts().warp_insns - before;
    return stop;
  }
  /// Blocks that run elsewhere may take so many insns; add_executed() says what they took.
  bool has_room(uint64_t insns) const { return options_.max_insns - executed_ > insns; }
  void add_executed(uint64_t insns) { executed_ += insns; }
  const IssueRecord& step(BlockRun& block, uint32_t warp) {
    ++executed_;
    return block.step(warp);
  }

  /// Ends the run if it can be seen that no warp will ever get further. `places`: of the resident
  /// blocks, some of them empty.
  template <class Places> void look_for_spinning(const Places& places) {
    if (spin_watch_.is_due(executed_) && result_.status == RunStatus::kCompleted) {
      if (std::optional<Fault> fault = spin_watch_.look(executed_, resident_blocks(places))) {
        end_with(std::move(*fault));
      }
    }
  }

  void end_with(Fault fault) {
    result_.status = fault.kind == FaultKind::kDeadlock ? RunStatus::kDeadlock : RunStatus::kFault;
    result_.fault = std::move(fault);
  }

  /// After every resident block was retired.
  RunResult result() {
    result_.counts = launch_.ended_counts();
    result_.blocks_done = launch_.blocks_done();
    result_.prints = launch_.prints();
    result_.prints_truncated = launch_.prints_truncated();
    return std::move(result_);
  }

private:
  static constexpr uint64_t kReportInsns = uint64_t{1} << 20;

  Launch& launch_;
  const RunOptions& options_;
  SpinWatch spin_watch_;
  RunResult result_;
  uint64_t executed_; // of the whole launch
  uint64_t reported_ = 0;
};

} // namespace pto::sim
