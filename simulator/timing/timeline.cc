// SPDX-License-Identifier: Apache-2.0
// Adding to the timeline, and the merging of neighbouring warps.
#include "simulator/timing/timeline.h"

#include <fmt/format.h>

#include <algorithm>

namespace pto::sim {

std::string TimelineEntry::lanes() const {
  return first_lane == last_lane ? fmt::format("{}", first_lane)
                                 : fmt::format("{}-{}", first_lane, last_lane);
}

size_t Timeline::add(const TimelineEntry& entry) {
  if (entry.block >= limits_.max_blocks || entry.issue_cycle < limits_.from_cycle ||
      entry.issue_cycle > limits_.to_cycle) {
    ++dropped_;
    return SIZE_MAX;
  }
  // Only entries of the same cycle can take it; they are the latest ones.
  for (size_t back = entries_.size(); back != 0; --back) {
    TimelineEntry& other = entries_[back - 1];
    if (other.issue_cycle != entry.issue_cycle) {
      break;
    }
    const bool is_neighbour =
        other.last_warp + 1 == entry.first_warp && other.last_lane + 1 == entry.first_lane;
    if (is_neighbour && other.core == entry.core && other.block == entry.block &&
        other.pc == entry.pc && other.is_fused == entry.is_fused) {
      other.last_warp = entry.last_warp;
      other.last_lane = entry.last_lane;
      other.active_lanes += entry.active_lanes;
      other.done_cycle = std::max(other.done_cycle, entry.done_cycle);
      if (entry.stall_cycles > other.stall_cycles) {
        other.stall_cycles = entry.stall_cycles;
        other.reason = entry.reason;
        other.cause_pc = entry.cause_pc;
      }
      return back - 1;
    }
  }
  if (entries_.size() >= limits_.max_entries) {
    ++dropped_;
    return SIZE_MAX;
  }
  entries_.push_back(entry);
  return entries_.size() - 1;
}

void Timeline::extend_done(size_t index, uint64_t done_cycle) {
  if (index < entries_.size()) {
    entries_[index].done_cycle = std::max(entries_[index].done_cycle, done_cycle);
  }
}

Timeline::Mark Timeline::mark() const {
  Mark mark{entries_.size(), dropped_, {}};
  size_t begin = entries_.size();
  while (begin != 0 && entries_[begin - 1].issue_cycle == entries_.back().issue_cycle) {
    --begin;
  }
  mark.last.assign(entries_.begin() + static_cast<std::ptrdiff_t>(begin), entries_.end());
  return mark;
}

void Timeline::rewind(const Mark& mark) {
  entries_.resize(std::min(entries_.size(), mark.count));
  if (entries_.size() == mark.count) {
    std::copy(mark.last.begin(),
              mark.last.end(),
              entries_.end() - static_cast<std::ptrdiff_t>(mark.last.size()));
  }
  dropped_ = mark.dropped;
}

} // namespace pto::sim
