// SPDX-License-Identifier: Apache-2.0
// Adding to the timeline, and the merging of neighbouring warps.
#include "simulator/timing/timeline.h"

#include "isa/insn.h"
#include "simulator/lane_ranges.h"

#include <fmt/format.h>

#include <algorithm>

namespace pto::sim {

namespace {

std::string range(uint32_t first, uint32_t last) {
  return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

/// An entry can say exactly which lanes of both took part.
bool have_lanes_in_a_row(const TimelineEntry& first, const TimelineEntry& second) {
  if (first.active_lanes == 0 || second.active_lanes == 0) {
    return first.active_lanes == second.active_lanes;
  }
  return first.lane_mask == 0 && second.lane_mask == 0 && first.last_lane + 1 == second.first_lane;
}

void widen(TimelineEntry& entry, const TimelineEntry& next) {
  if (!entry.waits.empty() || entry.longest_wait() != next.longest_wait()) {
    entry.waits.resize(entry.last_warp - entry.first_warp + 1, entry.longest_wait());
    entry.waits.push_back(next.longest_wait());
  }
  entry.last_warp = next.last_warp;
  entry.last_lane = next.last_lane;
  entry.active_lanes += next.active_lanes;
  entry.done_cycle = std::max(entry.done_cycle, next.done_cycle);
  entry.least_stall_cycles = std::min(entry.least_stall_cycles, next.stall_cycles);
  if (next.stall_cycles > entry.stall_cycles) {
    entry.stall_cycles = next.stall_cycles;
    entry.reason = next.reason;
    entry.cause_pc = next.cause_pc;
  }
}

} // namespace

std::string TimelineEntry::lanes() const {
  if (active_lanes == 0) {
    return "none";
  }
  return lane_mask == 0 ? range(first_lane, last_lane)
                        : lane_ranges(lane_mask, ",", first_warp * isa::kWarpLanes);
}

std::string TimelineEntry::lanes_text() const {
  return active_lanes != 0 ? lanes()
                           : fmt::format("none (warp{} {})",
                                         first_warp == last_warp ? "" : "s",
                                         range(first_warp, last_warp));
}

WarpWait TimelineEntry::wait_of(uint32_t warp) const {
  return waits.empty() ? longest_wait() : waits[warp - first_warp];
}

std::string TimelineEntry::stall_text() const {
  return range(least_stall_cycles, stall_cycles);
}

uint32_t TimelineEntry::latest_warp() const {
  const auto least =
      std::min_element(waits.begin(), waits.end(), [](const WarpWait& a, const WarpWait& b) {
        return a.stall_cycles < b.stall_cycles;
      });
  return first_warp + static_cast<uint32_t>(least - waits.begin());
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
    const bool is_neighbour = other.last_warp + 1 == entry.first_warp;
    if (is_neighbour && other.core == entry.core && other.block == entry.block &&
        other.pc == entry.pc && other.is_fused == entry.is_fused &&
        have_lanes_in_a_row(other, entry)) {
      widen(other, entry);
      return back - 1;
    }
  }
  if (entries_.size() >= limits_.max_entries) {
    ++dropped_;
    return SIZE_MAX;
  }
  entries_.push_back(entry);
  entries_.back().least_stall_cycles = entry.stall_cycles;
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
