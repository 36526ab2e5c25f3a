// SPDX-License-Identifier: Apache-2.0
// The engine behind the timing model: resident blocks by place, one warp insn at a time.
#include "simulator/timed.h"

#include <algorithm>

namespace pto::sim {

namespace {

constexpr uint32_t kSpinInsns = 4096; // of each warp, while a run is looked at (SpinWatch)
// Warp insns between two calls of TimedOptions::progress: some milliseconds.
constexpr uint64_t kProgressInsns = 4096;

} // namespace

TimedRun::TimedRun(Launch& launch, SharedMemory& shared, const TimedOptions& options)
    : launch_(launch), options_(options),
      program_(launch.program().object(), launch.machine().profile),
      blocks_(launch.resident_limit()),
      spin_watch_(launch, uint64_t{kSpinInsns} * launch.image().warps),
      model_(launch.machine().profile, program_, shared, *this, options.timing) {
  launch_.observers().notify(kWantsLaunch,
                             [&](Observer& observer) { observer.launch_begin(launch_); });
}

TimedRun::~TimedRun() = default;

BlockRun* TimedRun::block_at(uint32_t place) const {
  return place < blocks_.size() ? blocks_[place].get() : nullptr;
}

std::optional<AdmittedBlock> TimedRun::admit(uint32_t place, uint32_t core) {
  std::unique_ptr<BlockRun> block = has_more_blocks() ? launch_.next_block(core) : nullptr;
  if (!block) {
    return std::nullopt;
  }
  const LaunchImage& image = launch_.image();
  AdmittedBlock admitted{block->index(), image.warps, image.lanes, image.static_l1_bytes};
  blocks_[place] = std::move(block);
  return admitted;
}

bool TimedRun::has_more_blocks() const {
  return launch_.has_next_block() && launch_.blocks_started() < options_.max_blocks;
}

void TimedRun::retire(uint32_t place) {
  launch_.retire_block(std::move(blocks_[place]));
}

TimedHost::Next TimedRun::next(uint32_t place, uint32_t warp) {
  return where_stands(blocks_[place]->warp(warp));
}

const IssueRecord& TimedRun::step(uint32_t place, uint32_t warp, uint64_t cycle) {
  BlockRun& block = *blocks_[place];
  block.set_clock(cycle);
  last_record_ = &block.step(warp);
  ++counts_.warp_insns;
  counts_.lane_insns += lane_count(last_record_->exec_mask);
  if (counts_.warp_insns >= next_look_ || last_record_->outcome == isa::Outcome::kFault ||
      options_.gate != nullptr) {
    look_up(block, cycle);
  }
  return *last_record_;
}

bool TimedRun::step_plain(
    uint32_t place, uint32_t warp, uint64_t cycle, uint32_t& lanes, Next& next) {
  BlockRun& block = *blocks_[place];
  if (counts_.warp_insns + 1 >= next_look_ || options_.gate != nullptr) {
    return false;
  }
  uint32_t exec_mask = 0;
  if (!block.step_pure(warp, exec_mask)) {
    return false;
  }
  block.set_clock(cycle);
  ++counts_.warp_insns;
  lanes = lane_count(exec_mask);
  counts_.lane_insns += lanes;
  next = where_stands(block.warp(warp));
  return true;
}

void TimedRun::look_up(const BlockRun& block, uint64_t cycle) {
  if (counts_.warp_insns % kProgressInsns == 0 && options_.progress) {
    options_.progress({launch_.blocks_done(), launch_.block_count(), counts_}, cycle);
  }
  if (block.has_fault()) {
    fault_ = block.fault();
    status_ = RunStatus::kFault;
    must_stop_ = true;
  } else if (counts_.warp_insns >= options_.max_insns) {
    status_ = RunStatus::kLimit;
    must_stop_ = true;
  } else if (spin_watch_.is_due(counts_.warp_insns)) {
    for (const std::unique_ptr<BlockRun>& other : blocks_) {
      if (other != nullptr) {
        other->stand_apart();
      }
    }
    if (std::optional<Fault> fault =
            spin_watch_.look(counts_.warp_insns, resident_blocks(blocks_))) {
      fault_ = std::move(fault);
      status_ = RunStatus::kDeadlock;
      must_stop_ = true;
    }
  }
  if (options_.gate != nullptr) {
    options_.gate->issued(block, *last_record_);
  }
  const uint64_t next_report = (counts_.warp_insns / kProgressInsns + 1) * kProgressInsns;
  next_look_ = std::min({options_.max_insns, spin_watch_.next_look(), next_report});
}

const GroupRecord* TimedRun::step_together(uint32_t place, uint64_t cycle) {
  BlockRun& block = *blocks_[place];
  const uint64_t after = counts_.warp_insns + block.warp_count();
  if (after >= options_.max_insns || spin_watch_.is_due(after)) {
    return nullptr; // something happens between two of them
  }
  block.set_clock(cycle);
  const GroupRecord* record = block.step_together();
  if (record == nullptr) {
    return nullptr;
  }
  counts_.lane_insns += record->lanes;
  const bool reports = after / kProgressInsns != counts_.warp_insns / kProgressInsns;
  counts_.warp_insns = after;
  if (reports && options_.progress) {
    options_.progress({launch_.blocks_done(), launch_.block_count(), counts_}, cycle);
  }
  return record;
}

bool TimedRun::may_issue(uint32_t place, uint32_t warp, uint64_t cycle) {
  return options_.gate == nullptr || options_.gate->may_issue(*blocks_[place], warp, cycle);
}

bool TimedRun::wants_stop() {
  if (options_.interrupt != nullptr && options_.interrupt->load(std::memory_order_relaxed)) {
    status_ = RunStatus::kInterrupted;
    return true;
  }
  return must_stop_ || (options_.gate != nullptr && options_.gate->wants_stop());
}

void TimedRun::stopped(TimedStop stop) {
  if (stop == TimedStop::kFinished) {
    status_ = RunStatus::kCompleted;
    is_finished_ = true;
  } else if (stop == TimedStop::kMaxCycles) {
    status_ = RunStatus::kLimit;
  } else if (stop == TimedStop::kDeadlock) {
    status_ = RunStatus::kDeadlock;
    for (const std::unique_ptr<BlockRun>& block : blocks_) {
      if (block && !block->is_done() && !block->has_ready_warp()) {
        fault_ = block->deadlock_fault();
        break;
      }
    }
  } else if (fault_) {
    status_ = fault_->kind == FaultKind::kDeadlock ? RunStatus::kDeadlock : RunStatus::kFault;
  }
}

RunStatus TimedRun::run() {
  spin_watch_.reset(); // a debugger may have written registers or memory
  next_look_ = 0;
  if (is_finished_ || fault_) {
    return status_;
  }
  must_stop_ = counts_.warp_insns >= options_.max_insns;
  status_ = must_stop_ ? RunStatus::kLimit : RunStatus::kCompleted;
  stopped(model_.run());
  return status_;
}

bool TimedRun::has_work_left() const {
  return has_more_blocks() || has_live_block(blocks_);
}

RunStatus TimedRun::run_to_end() {
  static_cast<void>(run());
  if (status_ == RunStatus::kLimit && counts_.warp_insns == options_.max_insns &&
      !has_work_left()) {
    options_.max_insns = UINT64_MAX; // nobody will execute anything
    static_cast<void>(run());
  }
  return status_;
}

bool TimedRun::step() {
  if (is_finished_) {
    return false;
  }
  spin_watch_.reset();
  next_look_ = 0;
  const uint64_t before = counts_.warp_insns;
  const TimedStop stop = model_.step();
  const bool has_stepped = counts_.warp_insns != before;
  if (stop != TimedStop::kHostStop || must_stop_) {
    stopped(stop);
  }
  return has_stepped;
}

TimedSnapshot TimedRun::save(HbmHistory& history) const {
  TimedSnapshot snapshot;
  snapshot.blocks = take_snapshot(launch_, blocks_, history);
  snapshot.timing = model_.save();
  snapshot.counts = counts_;
  snapshot.status = status_;
  snapshot.fault = fault_;
  snapshot.is_finished = is_finished_;
  return snapshot;
}

bool TimedRun::restore(const TimedSnapshot& snapshot, HbmHistory& history) {
  if (!restore_snapshot(snapshot.blocks, launch_, blocks_, history)) {
    return false;
  }
  spin_watch_.reset();
  next_look_ = 0;
  model_.restore(*snapshot.timing);
  counts_ = snapshot.counts;
  status_ = snapshot.status;
  fault_ = snapshot.fault;
  is_finished_ = snapshot.is_finished;
  must_stop_ = fault_.has_value();
  last_record_ = nullptr;
  return true;
}

TimedResult TimedRun::result() const {
  TimedResult result = outcome();
  result.counters = model_.counters();
  result.timeline = model_.timeline();
  return result;
}

TimedResult TimedRun::take_result() {
  TimedResult result = outcome();
  result.counters = model_.take_counters();
  result.timeline = model_.take_timeline();
  return result;
}

TimedResult TimedRun::outcome() const {
  TimedResult result;
  result.run.status = status_;
  result.run.counts = counts_;
  result.run.blocks_done = launch_.blocks_done();
  result.run.fault = fault_;
  result.run.prints = launch_.prints();
  result.run.prints_truncated = launch_.prints_truncated();
  result.missing_keys = program_.missing_keys();
  result.clock_mhz = launch_.machine().profile.clock_mhz;
  return result;
}

TimedResult run_timed(Launch& launch, SharedMemory& shared, const TimedOptions& options) {
  TimedRun run(launch, shared, options);
  static_cast<void>(run.run_to_end());
  TimedResult result = run.take_result();
  launch.observers().notify(kWantsLaunch,
                            [&](Observer& observer) { observer.launch_end(launch, result.run); });
  return result;
}

} // namespace pto::sim
