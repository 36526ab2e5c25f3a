// SPDX-License-Identifier: Apache-2.0
// Lets a check see everything once, the first time it happens, whatever is replayed. Private.
#pragma once

#include "simulator/block.h"
#include "simulator/observer.h"

#include <cstdint>
#include <unordered_set>

namespace pto::dbg {

/// What the checks of a session have been shown.
struct CheckGate {
  bool is_open = true;       // the insns that run now are new
  uint64_t blocks_begun = 0; // blocks begin in order
  std::unordered_set<uint64_t> blocks_ended;
  bool is_end_new = false; // of the block that is ending: its forced copies are new as well
};

/// Stands in for one check in a launch's list. Blocks begin and end between insns, so their events
/// are told apart by block instead of by position.
class CheckProxy final : public sim::Observer {
public:
  CheckProxy(sim::Observer& check, CheckGate& gate) : check_(check), gate_(gate) {}

  sim::Wants wants() const override { return check_.wants() | sim::kWantsBlock; }
  const sim::Interest* interests() const override { return check_.interests(); }

  void launch_begin(const sim::Launch& launch) override {
    if (wants_event(sim::kWantsLaunch)) {
      check_.launch_begin(launch);
    }
  }
  void block_begin(const sim::BlockRun& block) override {
    if (wants_event(sim::kWantsBlock) && block.index() >= gate_.blocks_begun) {
      check_.block_begin(block);
    }
  }
  void block_end(const sim::BlockRun& block) override {
    if (wants_event(sim::kWantsBlock) && gate_.blocks_ended.count(block.index()) == 0) {
      check_.block_end(block);
    }
  }
  void before_insn(const sim::EventSite& site, uint32_t active, uint32_t exec) override {
    if (gate_.is_open) {
      check_.before_insn(site, active, exec);
    }
  }
  void after_insn(const sim::BlockRun& block, const sim::IssueRecord& record) override {
    if (gate_.is_open) {
      check_.after_insn(block, record);
    }
  }
  void before_span(const sim::SpanRecord& span) override {
    if (gate_.is_open) {
      check_.before_span(span);
    }
  }
  void after_span(const sim::SpanRecord& span) override {
    if (gate_.is_open) {
      check_.after_span(span);
    }
  }
  void barrier_arrive(const sim::EventSite& site, unsigned id, uint32_t lane_mask) override {
    if (gate_.is_open) {
      check_.barrier_arrive(site, id, lane_mask);
    }
  }
  void barrier_release(const sim::BlockRun& block, unsigned id) override {
    if (gate_.is_open) {
      check_.barrier_release(block, id);
    }
  }
  void copy_start(const sim::EventSite& site, const sim::CopyRecord& copy) override {
    if (gate_.is_open) {
      check_.copy_start(site, copy);
    }
  }
  void
  copy_complete(const sim::BlockRun& block, const sim::CopyRecord& copy, bool forced) override {
    if (forced ? gate_.is_end_new : gate_.is_open) {
      check_.copy_complete(block, copy, forced);
    }
  }
  void wait_begin(const sim::EventSite& site, int event) override {
    if (gate_.is_open) {
      check_.wait_begin(site, event);
    }
  }
  void wait_end(const sim::EventSite& site, int event) override {
    if (gate_.is_open) {
      check_.wait_end(site, event);
    }
  }
  void tile_alloc(const sim::EventSite& site, const sim::ScratchpadSegment& segment) override {
    if (gate_.is_open) {
      check_.tile_alloc(site, segment);
    }
  }
  void tile_free(const sim::EventSite& site, const sim::ScratchpadSegment& segment) override {
    if (gate_.is_open) {
      check_.tile_free(site, segment);
    }
  }
  void diverge(const sim::EventSite& site,
               uint32_t taken,
               uint32_t not_taken,
               uint32_t join_pc) override {
    if (gate_.is_open) {
      check_.diverge(site, taken, not_taken, join_pc);
    }
  }
  void reconverge(const sim::EventSite& site, uint32_t mask) override {
    if (gate_.is_open) {
      check_.reconverge(site, mask);
    }
  }
  void exit_lanes(const sim::EventSite& site, uint32_t mask) override {
    if (gate_.is_open) {
      check_.exit_lanes(site, mask);
    }
  }
  void print_line(const sim::EventSite& site, unsigned lane, std::string_view line) override {
    if (gate_.is_open) {
      check_.print_line(site, lane, line);
    }
  }
  void fault(const sim::BlockRun& block, const sim::Fault& fault) override {
    if (gate_.is_open) {
      check_.fault(block, fault);
    }
  }

private:
  bool wants_event(sim::Wants event) const { return (check_.wants() & event) != 0; }

  sim::Observer& check_;
  CheckGate& gate_;
};

} // namespace pto::dbg
