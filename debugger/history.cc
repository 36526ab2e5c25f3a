// SPDX-License-Identifier: Apache-2.0
// Taking, thinning out and restoring snapshots.
#include "debugger/history.h"

#include "isa/error.h"

#include <algorithm>

namespace pto::dbg {

History::History(sim::Hbm& hbm, uint64_t limit_bytes)
    : hbm_(hbm, UINT64_MAX), limit_bytes_(limit_bytes) {}

void History::add(Engine& engine, size_t edits, std::unique_ptr<const SessionMemo> memo) {
  if (!is_on()) {
    return;
  }
  HistoryPoint point;
  point.position = engine.position();
  point.cycle = engine.cycle();
  point.edits = edits;
  point.state = engine.save(hbm_);
  point.memo = std::move(memo);
  point.size_bytes = point.state->size_bytes();
  point.mark = point.state->mark();
  state_bytes_ += point.size_bytes;
  points_.push_back(std::move(point));
  make_room();
}

void History::restore(Engine& engine, size_t index) {
  PTO_CHECK(index < points_.size());
  PTO_CHECK(engine.restore(*points_[index].state, hbm_));
  while (points_.size() > index + 1) {
    state_bytes_ -= points_.back().size_bytes;
    points_.pop_back();
  }
}

size_t History::at_or_before(uint64_t position) const {
  const auto after = std::upper_bound(
      points_.begin(), points_.end(), position, [](uint64_t p, const HistoryPoint& point) {
        return p < point.position;
      });
  return after == points_.begin() ? SIZE_MAX : static_cast<size_t>(after - points_.begin()) - 1;
}

uint64_t History::used_bytes() const {
  return state_bytes_ + hbm_.kept_bytes();
}

void History::set_limit_bytes(uint64_t limit) {
  limit_bytes_ = limit;
  if (limit == 0) {
    points_.clear();
    state_bytes_ = 0;
  }
  make_room();
}

uint64_t History::interval() const {
  constexpr uint64_t kLeast = uint64_t{1} << 16;
  constexpr uint64_t kBytesPerInsn = 200; // copying so many costs far less than one insn
  return points_.empty() ? kLeast : std::max(kLeast, points_.back().size_bytes / kBytesPerInsn);
}

void History::make_room() {
  while (used_bytes() > limit_bytes_ && points_.size() > 2) {
    const uint64_t now = points_.back().position;
    size_t best = 1;
    double least = 0;
    for (size_t i = 1; i + 1 < points_.size(); ++i) {
      const auto gap = static_cast<double>(points_[i + 1].position - points_[i - 1].position);
      const double cost = gap / static_cast<double>(now - points_[i - 1].position + 1);
      if (i == 1 || cost < least) {
        best = i;
        least = cost;
      }
    }
    hbm_.merge(points_[best].mark);
    state_bytes_ -= points_[best].size_bytes;
    points_.erase(points_.begin() + static_cast<std::ptrdiff_t>(best));
  }
  if (used_bytes() > limit_bytes_ && points_.size() == 2) {
    hbm_.forget_before(points_[1].mark);
    state_bytes_ -= points_[0].size_bytes;
    points_.erase(points_.begin());
  }
}

} // namespace pto::dbg
