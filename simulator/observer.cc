// SPDX-License-Identifier: Apache-2.0
// Observers do nothing unless they say otherwise.
#include "simulator/observer.h"

#include <algorithm>

namespace pto::sim {

void Observer::launch_begin(const Launch& /*launch*/) {}
void Observer::launch_end(const Launch& /*launch*/, const RunResult& /*result*/) {}
void Observer::block_begin(const BlockRun& /*block*/) {}
void Observer::block_end(const BlockRun& /*block*/) {}
void Observer::before_insn(const EventSite& /*site*/,
                           uint32_t /*active_mask*/,
                           uint32_t /*exec_mask*/) {}
void Observer::after_insn(const BlockRun& /*block*/, const IssueRecord& /*record*/) {}
void Observer::before_span(const SpanRecord& /*span*/) {}
void Observer::after_span(const SpanRecord& /*span*/) {}
void Observer::barrier_arrive(const EventSite& /*site*/, unsigned /*id*/, uint32_t /*lane_mask*/) {}
void Observer::barrier_release(const BlockRun& /*block*/, unsigned /*id*/) {}
void Observer::copy_start(const EventSite& /*site*/, const CopyRecord& /*copy*/) {}
void Observer::copy_complete(const BlockRun& /*block*/,
                             const CopyRecord& /*copy*/,
                             bool /*forced*/) {}
void Observer::wait_begin(const EventSite& /*site*/, int /*event*/) {}
void Observer::wait_end(const EventSite& /*site*/, int /*event*/) {}
void Observer::tile_alloc(const EventSite& /*site*/, const ScratchpadSegment& /*segment*/) {}
void Observer::tile_free(const EventSite& /*site*/, const ScratchpadSegment& /*segment*/) {}
void Observer::diverge(const EventSite& /*site*/,
                       uint32_t /*taken*/,
                       uint32_t /*not_taken*/,
                       uint32_t /*join_pc*/) {}
void Observer::reconverge(const EventSite& /*site*/, uint32_t /*mask*/) {}
void Observer::exit_lanes(const EventSite& /*site*/, uint32_t /*mask*/) {}
void Observer::print_line(const EventSite& /*site*/, unsigned /*lane*/, std::string_view /*line*/) {
}
void Observer::fault(const BlockRun& /*block*/, const Fault& /*fault*/) {}

void ObserverList::attach(Observer& observer) {
  entries_.push_back({&observer, observer.wants(), observer.interests()});
  union_ |= entries_.back().wants;
}

void ObserverList::refresh_interests() {
  for (Entry& entry : entries_) {
    entry.interests = entry.observer->interests();
  }
}

void ObserverList::detach(Observer& observer) {
  entries_.erase(std::remove_if(entries_.begin(),
                                entries_.end(),
                                [&](const Entry& entry) { return entry.observer == &observer; }),
                 entries_.end());
  union_ = 0;
  for (const Entry& entry : entries_) {
    union_ |= entry.wants;
  }
}

} // namespace pto::sim
