// SPDX-License-Identifier: Apache-2.0
// The two engines of a session: a timed run, and warps in turn without time.
#include "debugger/engine.h"

#include "isa/error.h"

#include <bit>

namespace pto::dbg {

namespace {

// ---------------------------------------------------------------- timed

class TimedState final : public EngineState {
public:
  explicit TimedState(sim::TimedSnapshot snapshot) : snapshot_(std::move(snapshot)) {}
  [[nodiscard]] uint64_t size_bytes() const override { return snapshot_.size_bytes(); }
  [[nodiscard]] sim::HbmHistory::Mark mark() const override { return snapshot_.blocks.hbm; }
  [[nodiscard]] const sim::TimedSnapshot& snapshot() const { return snapshot_; }

private:
  sim::TimedSnapshot snapshot_;
};

class TimedEngine final : public Engine {
public:
  TimedEngine(sim::Launch& launch, sim::SharedMemory& shared, const sim::TimedOptions& options)
      : run_(launch, shared, options) {}

  sim::RunStatus run() override { return run_.run(); }
  void set_max_insns(uint64_t max_insns) override { run_.set_max_insns(max_insns); }
  [[nodiscard]] bool is_finished() const override { return run_.is_finished(); }
  [[nodiscard]] bool has_work_left() const override { return run_.has_work_left(); }
  [[nodiscard]] const std::optional<sim::Fault>& fault() const override { return run_.fault(); }
  [[nodiscard]] uint64_t position() const override { return run_.counts().warp_insns; }
  [[nodiscard]] uint64_t cycle() const override { return run_.cycle(); }
  [[nodiscard]] uint32_t place_count() const override { return run_.place_count(); }
  [[nodiscard]] sim::BlockRun* block_at(uint32_t place) const override {
    return run_.block_at(place);
  }
  [[nodiscard]] std::unique_ptr<const EngineState> save(sim::HbmHistory& history) const override {
    return std::make_unique<TimedState>(run_.save(history));
  }
  [[nodiscard]] bool restore(const EngineState& state, sim::HbmHistory& history) override {
    return run_.restore(dynamic_cast<const TimedState&>(state).snapshot(), history);
  }
  [[nodiscard]] const sim::TimingModel* model() const override { return &run_.model(); }
  [[nodiscard]] std::optional<sim::TimedResult> timed_result() const override {
    return run_.result();
  }
  [[nodiscard]] sim::RunResult run_result() const override { return run_.result().run; }

private:
  sim::TimedRun run_;
};

// ---------------------------------------------------------------- lockstep

class LockstepState final : public EngineState {
public:
  [[nodiscard]] uint64_t size_bytes() const override { return blocks.size_bytes(); }
  [[nodiscard]] sim::HbmHistory::Mark mark() const override { return blocks.hbm; }

  sim::Snapshot blocks;
  sim::InsnCounts counts;
  uint64_t cycle = 0;
  uint32_t place = 0;
  uint32_t warp = 0;
  bool is_finished = false;
};

/// Each ready warp of each resident block one insn, round after round. A cycle is the number of
/// insns that a warp has executed before, so that "cycles" of a lockstep run count rounds.
class LockstepEngine final : public Engine {
public:
  LockstepEngine(sim::Launch& launch, const sim::TimedOptions& options)
      : launch_(launch), options_(options), blocks_(launch.resident_limit()) {
    launch_.observers().notify(sim::kWantsLaunch,
                               [&](sim::Observer& observer) { observer.launch_begin(launch_); });
    fill();
  }

  sim::RunStatus run() override {
    if (is_finished_) {
      return status_ = sim::RunStatus::kCompleted;
    }
    while (!fault_) {
      if (options_.interrupt != nullptr && options_.interrupt->load(std::memory_order_relaxed)) {
        return status_ = sim::RunStatus::kInterrupted;
      }
      if (counts_.warp_insns >= options_.max_insns) {
        return status_ = sim::RunStatus::kLimit;
      }
      if (options_.gate != nullptr && options_.gate->wants_stop()) {
        return status_ = sim::RunStatus::kCompleted;
      }
      if (!find_ready()) {
        end_of_run();
        break;
      }
      sim::BlockRun& block = *blocks_[place_];
      const uint64_t cycle = block.warp(warp_).issued;
      if (options_.gate != nullptr && !options_.gate->may_issue(block, warp_, cycle)) {
        return status_ = sim::RunStatus::kCompleted;
      }
      execute(block);
    }
    return status_;
  }

  void set_max_insns(uint64_t max_insns) override { options_.max_insns = max_insns; }
  [[nodiscard]] bool is_finished() const override { return is_finished_; }
  [[nodiscard]] bool has_work_left() const override {
    return launch_.has_next_block() || sim::has_live_block(blocks_);
  }
  [[nodiscard]] const std::optional<sim::Fault>& fault() const override { return fault_; }
  [[nodiscard]] uint64_t position() const override { return counts_.warp_insns; }
  [[nodiscard]] uint64_t cycle() const override { return cycle_; }
  [[nodiscard]] uint32_t place_count() const override {
    return static_cast<uint32_t>(blocks_.size());
  }
  [[nodiscard]] sim::BlockRun* block_at(uint32_t place) const override {
    return place < blocks_.size() ? blocks_[place].get() : nullptr;
  }
  [[nodiscard]] std::unique_ptr<const EngineState> save(sim::HbmHistory& history) const override {
    auto state = std::make_unique<LockstepState>();
    state->blocks = take_snapshot(launch_, blocks_, history);
    state->counts = counts_;
    state->cycle = cycle_;
    state->place = place_;
    state->warp = warp_;
    state->is_finished = is_finished_;
    return state;
  }
  [[nodiscard]] bool restore(const EngineState& base, sim::HbmHistory& history) override {
    const auto& state = dynamic_cast<const LockstepState&>(base);
    if (!restore_snapshot(state.blocks, launch_, blocks_, history)) {
      return false;
    }
    counts_ = state.counts;
    cycle_ = state.cycle;
    place_ = state.place;
    warp_ = state.warp;
    is_finished_ = state.is_finished;
    fault_.reset();
    status_ = sim::RunStatus::kCompleted;
    return true;
  }
  [[nodiscard]] const sim::TimingModel* model() const override { return nullptr; }
  [[nodiscard]] std::optional<sim::TimedResult> timed_result() const override {
    return std::nullopt;
  }
  [[nodiscard]] sim::RunResult run_result() const override {
    sim::RunResult result;
    result.status = status_;
    result.counts = counts_;
    result.blocks_done = launch_.blocks_done();
    result.fault = fault_;
    result.prints = launch_.prints();
    result.prints_truncated = launch_.prints_truncated();
    return result;
  }

private:
  void fill() {
    for (uint32_t place = 0; place < blocks_.size(); ++place) {
      if (!blocks_[place]) {
        blocks_[place] = launch_.next_block(place / launch_.machine().profile.blocks_per_core);
      }
    }
  }

  /// Moves (place_, warp_) to the next ready warp; false if a whole round finds none.
  bool find_ready() {
    for (uint32_t rounds = 0; rounds < 2;) {
      if (place_ >= blocks_.size()) {
        place_ = 0;
        warp_ = 0;
        ++rounds;
        fill();
      }
      sim::BlockRun* block = blocks_[place_].get();
      if (block != nullptr && block->is_done()) {
        launch_.retire_block(std::move(blocks_[place_]));
        block = nullptr;
      }
      if (block == nullptr || warp_ >= block->warp_count()) {
        ++place_;
        warp_ = 0;
        continue;
      }
      if (block->is_ready(warp_)) {
        return true;
      }
      ++warp_;
    }
    return false;
  }

  void execute(sim::BlockRun& block) {
    cycle_ = block.warp(warp_).issued;
    const sim::IssueRecord& record = block.step(warp_);
    ++warp_;
    ++counts_.warp_insns;
    counts_.lane_insns += static_cast<uint64_t>(std::popcount(record.exec_mask));
    if (block.has_fault()) {
      fault_ = block.fault();
      status_ = sim::RunStatus::kFault;
    }
    if (options_.gate != nullptr) {
      options_.gate->issued(block, record);
    }
  }

  void end_of_run() {
    for (const std::unique_ptr<sim::BlockRun>& block : blocks_) {
      if (block && !block->is_done()) {
        fault_ = block->deadlock_fault();
        status_ = sim::RunStatus::kDeadlock;
        return;
      }
    }
    is_finished_ = true;
    status_ = sim::RunStatus::kCompleted;
  }

  sim::Launch& launch_;
  sim::TimedOptions options_;
  sim::ResidentBlocks blocks_;
  sim::InsnCounts counts_;
  std::optional<sim::Fault> fault_;
  sim::RunStatus status_ = sim::RunStatus::kCompleted;
  uint64_t cycle_ = 0;
  uint32_t place_ = 0; // whose turn it is
  uint32_t warp_ = 0;
  bool is_finished_ = false;
};

} // namespace

std::unique_ptr<Engine> make_timed_engine(sim::Launch& launch,
                                          sim::SharedMemory& shared,
                                          const sim::TimedOptions& options) {
  return std::make_unique<TimedEngine>(launch, shared, options);
}

std::unique_ptr<Engine> make_lockstep_engine(sim::Launch& launch,
                                             const sim::TimedOptions& options) {
  return std::make_unique<LockstepEngine>(launch, options);
}

} // namespace pto::dbg
