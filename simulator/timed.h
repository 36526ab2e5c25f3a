// SPDX-License-Identifier: Apache-2.0
// Runs a launch under the timing model: results as in every other mode, and when each insn issued.
//
// TimedRun owns the resident blocks and the model; the debugger steps it, run_timed runs it to the
// end. Copies move their data when something waits for them (the launch's copy policy), so that a
// program's results do not depend on the profile; the model only says how long the wait took.
#pragma once

#include "simulator/block.h"
#include "simulator/launch.h"
#include "simulator/snapshot.h"
#include "simulator/spin_probe.h"
#include "simulator/timing/counters.h"
#include "simulator/timing/shared_memory.h"
#include "simulator/timing/timeline.h"
#include "simulator/timing/timing_model.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace pto::sim {

/// What a debugger hooks into a run: asked and told about every warp insn.
class IssueGate {
public:
  virtual ~IssueGate() = default;
  /// Before an insn issues at `cycle`; false stops the run in front of it, until run() is called
  /// again. Of a pair that issues as one insn only the first half is asked for.
  virtual bool may_issue(const BlockRun& block, uint32_t warp, uint64_t cycle) = 0;
  virtual void issued(const BlockRun& block, const IssueRecord& record) = 0;
  /// Asked after every insn (pair); true stops the run there.
  virtual bool wants_stop() = 0;
};

struct TimedOptions {
  TimingOptions timing;
  uint64_t max_insns = UINT64_MAX;
  const std::atomic<bool>* interrupt = nullptr;
  /// Called often (every few thousand warp insns): a long block must show progress too.
  std::function<void(const Progress&, uint64_t cycle)> progress;
  IssueGate* gate = nullptr;
  uint64_t max_blocks = UINT64_MAX; // the run ends after the first so many of the grid
};

/// What a run that timed only the first blocks says of the whole launch (sampled.h).
struct SampleEstimate {
  uint64_t timed_blocks = 0;
  double cycles = 0;
};

/// A run's state as a value, blocks and time; hbm through the mark of an HbmHistory.
struct TimedSnapshot {
  Snapshot blocks;
  std::unique_ptr<const TimingState> timing;
  InsnCounts counts;
  RunStatus status = RunStatus::kCompleted;
  std::optional<Fault> fault;
  bool is_finished = false;
  [[nodiscard]] uint64_t size_bytes() const { return blocks.size_bytes() + timing->size_bytes(); }
};

struct TimedResult {
  RunResult run;
  TimedCounters counters;
  Timeline timeline;
  std::vector<std::string> missing_keys; // latency keys that the profile lacks, used by the kernel
  double clock_mhz = 0;
  std::optional<SampleEstimate> sample; // counters are of its timed blocks alone
  /// Of the whole launch, estimated where it was sampled.
  [[nodiscard]] uint64_t total_cycles() const {
    return sample ? static_cast<uint64_t>(sample->cycles + 0.5) : counters.cycles;
  }
  [[nodiscard]] double microseconds() const {
    return static_cast<double>(total_cycles()) / clock_mhz;
  }
};

class TimedRun : private TimedHost {
public:
  /// `launch` and `shared` must outlive the run; `shared` belongs to the launch's machine and keeps
  /// L2 from one launch to the next.
  TimedRun(Launch& launch, SharedMemory& shared, const TimedOptions& options = {});
  ~TimedRun() override;

  /// Runs to the end, a fault, a deadlock, a limit, an interrupt or the gate's wish. May be called
  /// again after the last three.
  RunStatus run();
  /// The same, and where the limit of warp insns was met by the last one of the run, on to the end.
  /// For who has no wish to stop right behind that insn.
  RunStatus run_to_end();
  /// Some warp has yet to execute something, or a block to start.
  [[nodiscard]] bool has_work_left() const;
  /// A new limit, in warp insns since the start.
  void set_max_insns(uint64_t max_insns) {
    options_.max_insns = max_insns;
    next_look_ = 0;
  }
  /// One more warp insn. True if one was executed; false: status() says why not.
  bool step();
  /// kCompleted also while more is to be done; see is_finished().
  [[nodiscard]] RunStatus status() const { return status_; }
  [[nodiscard]] bool is_finished() const { return is_finished_; }
  [[nodiscard]] uint64_t cycle() const { return model_.cycle(); }
  /// The resident block at a place (core * blocks_per_core + n), null where there is none.
  [[nodiscard]] BlockRun* block_at(uint32_t place) const;
  [[nodiscard]] uint32_t place_count() const { return static_cast<uint32_t>(blocks_.size()); }
  [[nodiscard]] const TimingModel& model() const { return model_; }
  [[nodiscard]] const InsnCounts& counts() const { return counts_; }
  [[nodiscard]] const std::optional<Fault>& fault() const { return fault_; }

  /// While it does not run. `history` belongs to the launch's hbm.
  [[nodiscard]] TimedSnapshot save(HbmHistory& history) const;
  /// False, and nothing changed, if hbm's history no longer reaches back so far.
  [[nodiscard]] bool restore(const TimedSnapshot& snapshot, HbmHistory& history);
  /// What the run has come to so far.
  [[nodiscard]] TimedResult result() const;
  /// The same at the end: nothing is copied, and the run must not go on.
  [[nodiscard]] TimedResult take_result();

private:
  std::optional<AdmittedBlock> admit(uint32_t place, uint32_t core) override;
  [[nodiscard]] bool has_more_blocks() const override;
  void retire(uint32_t place) override;
  Next next(uint32_t place, uint32_t warp) override;
  const IssueRecord& step(uint32_t place, uint32_t warp, uint64_t cycle) override;
  bool
  step_plain(uint32_t place, uint32_t warp, uint64_t cycle, uint32_t& lanes, Next& next) override;
  const GroupRecord* step_together(uint32_t place, uint64_t cycle) override;
  void stand_apart(uint32_t place) override { blocks_[place]->stand_apart(); }
  bool wants_stop() override;
  bool may_issue(uint32_t place, uint32_t warp, uint64_t cycle) override;
  bool is_gated() override { return options_.gate != nullptr; }
  void stopped(TimedStop stop);
  static Next where_stands(const WarpState& warp) {
    const bool is_done = warp.status == WarpStatus::kDone;
    return {warp.pc, is_done, !is_done && warp.status != WarpStatus::kReady};
  }
  /// What is due after the insn that `block` has just executed.
  void look_up(const BlockRun& block, uint64_t cycle);
  [[nodiscard]] TimedResult outcome() const; // without counters and timeline

  Launch& launch_;
  TimedOptions options_;
  ProgramTiming program_;
  std::vector<std::unique_ptr<BlockRun>> blocks_; // by place
  const IssueRecord* last_record_ = nullptr;
  std::optional<Fault> fault_;
  InsnCounts counts_; // of resident blocks too
  RunStatus status_ = RunStatus::kCompleted;
  bool is_finished_ = false;
  SpinWatch spin_watch_;
  uint64_t next_look_ = 0; // before so many warp insns, look_up has nothing to do but after a fault
  TimingModel model_;      // last: it calls the host
};

/// The whole launch.
TimedResult run_timed(Launch& launch, SharedMemory& shared, const TimedOptions& options = {});

} // namespace pto::sim
