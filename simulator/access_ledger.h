// SPDX-License-Identifier: Apache-2.0
// What a gang (gang.h) has accessed in hbm, so that nobody can tell in which order its blocks ran.
// Private to the simulator.
//
// Two lanes of different blocks must not meet where one of them writes. Accesses are kept as
// ranges. In a range *by lane* every lane has a piece of its own, in the order of lanes: the same
// range again in the same pieces, or one apart from all others, lets no lanes meet. Any other range
// is shared, and must not meet one that is written. Old bytes are kept, so that all can be undone.
#pragma once

#include "simulator/old_bytes.h"

#include <cstdint>
#include <vector>

namespace pto::sim {

class AccessLedger {
public:
  void begin() {
    ranges_.clear();
    old_bytes_.clear();
    has_refused_ = false;
    is_at_end_ = false;
  }

  /// Before an access to [begin, end), by lane in pieces of `lane_bytes` each; 0: shared. False:
  /// lanes may meet, or there are too many ranges. Half as many lanes with pieces twice as large
  /// fill the same range.
  [[nodiscard]] bool note(uint64_t begin, uint64_t end, uint32_t lane_bytes, bool writes) {
    const bool is_by_lane = lane_bytes != 0;
    Range* same = nullptr;
    for (Range& range : ranges_) {
      if (range.begin >= end || begin >= range.end) {
        continue;
      }
      if (range.begin == begin && range.end == end && range.lane_bytes == lane_bytes &&
          (is_by_lane || !(writes || range.writes))) {
        same = &range;
      } else if (writes || range.writes) {
        return refuse();
      }
    }
    if (same != nullptr) {
      same->writes = same->writes || writes;
      return true;
    }
    if ((writes && !is_by_lane) || ranges_.size() == kMostRanges) {
      return refuse();
    }
    ranges_.push_back({begin, end, lane_bytes, writes});
    return true;
  }
  bool refuse() {
    has_refused_ = true;
    return false;
  }
  bool has_refused() const { return has_refused_; }

  /// Nothing is left that could fail, or has to be undone.
  void end() { is_at_end_ = true; }
  bool is_at_end() const { return is_at_end_; }

  /// Before `bytes` at `host` are written.
  void save(uint8_t* host, uint64_t bytes) { old_bytes_.save(host, bytes); }
  void undo() const { old_bytes_.undo(); }

private:
  static constexpr size_t kMostRanges = 64; // each access looks at all of them

  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint32_t lane_bytes = 0;
    bool writes = false;
  };

  std::vector<Range> ranges_;
  OldBytes old_bytes_;
  bool has_refused_ = false;
  bool is_at_end_ = false;
};

} // namespace pto::sim
