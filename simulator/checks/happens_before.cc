// SPDX-License-Identifier: Apache-2.0
// Orders of accesses, see the header.
#include "simulator/checks/happens_before.h"

#include <algorithm>

namespace pto::sim {

uint32_t Knowledge::time(Agent agent) const {
  if (facts_.empty()) {
    return 0;
  }
  // The last fact that is not behind the agent, without a branch that nobody can predict.
  const Fact* at = facts_.data();
  for (size_t count = facts_.size(); count > 1;) {
    const size_t half = count / 2;
    at += at[half].agent <= agent ? half : 0;
    count -= half;
  }
  return at->agent == agent ? at->time : 0;
}

void Knowledge::learn(Agent agent, uint32_t time) {
  const auto place =
      std::lower_bound(facts_.begin(), facts_.end(), agent, [](const Fact& fact, Agent wanted) {
        return fact.agent < wanted;
      });
  if (place != facts_.end() && place->agent == agent) {
    place->time = std::max(place->time, time);
  } else {
    facts_.insert(place, {agent, time});
  }
}

void Knowledge::join(const Knowledge& other) {
  size_t missing = 0;
  auto own = facts_.begin();
  for (const Fact& fact : other.facts_) {
    while (own != facts_.end() && own->agent < fact.agent) {
      ++own;
    }
    if (own != facts_.end() && own->agent == fact.agent) {
      own->time = std::max(own->time, fact.time);
    } else {
      ++missing;
    }
  }
  if (missing == 0) {
    return;
  }
  size_t from = facts_.size(); // merged from the end, in place
  facts_.resize(from + missing);
  size_t to = facts_.size();
  for (size_t at = other.facts_.size(); at > 0;) {
    if (from > 0 && facts_[from - 1].agent >= other.facts_[at - 1].agent) {
      at -= facts_[from - 1].agent == other.facts_[at - 1].agent ? 1 : 0;
      facts_[--to] = facts_[--from];
    } else {
      facts_[--to] = other.facts_[--at];
    }
  }
}

void HappensBefore::begin(uint32_t warps_per_block) {
  warps_ = warps_per_block;
  blocks_.clear();
  location_numbers_ = {};
  locations_.clear();
  copies_.clear();
}

void HappensBefore::block_begin(uint64_t block) {
  blocks_.begin(block).warps.resize(warps_);
}

void HappensBefore::block_end(uint64_t block) {
  blocks_.end(block);
}

bool HappensBefore::Publication::is_covered_by(const Knowledge& knows) const {
  if (fenced->fences.empty()) {
    return knows.time(fence.agent) >= fence.time;
  }
  return std::all_of(fenced->fences.begin(), fenced->fences.end(), [&](const Knowledge::Fact& one) {
    return knows.time(one.agent) >= one.time;
  });
}

void HappensBefore::Location::add(const Publication& more) {
  for (const Publication& earlier : published) {
    if (earlier.is_for_device >= more.is_for_device &&
        (earlier.fenced == more.fenced || more.is_covered_by(earlier.fenced->knows))) {
      return;
    }
  }
  std::erase_if(published, [&](const Publication& earlier) {
    return more.is_for_device >= earlier.is_for_device && earlier.is_covered_by(more.fenced->knows);
  });
  published.push_back(more);
  constexpr size_t kMost = 8; // each acquire looks at all of them
  if (published.size() > kMost) {
    join_publications();
  }
}

void HappensBefore::Location::join_publications() {
  std::vector<Publication> joined;
  for (const bool is_for_device : {true, false}) {
    auto all = std::make_shared<Fenced>();
    for (const Publication& one : published) {
      if (one.is_for_device == is_for_device) {
        all->knows.join(one.fenced->knows);
        if (one.fenced->fences.empty()) {
          all->fences.push_back(one.fence);
        } else {
          all->fences.insert(
              all->fences.end(), one.fenced->fences.begin(), one.fenced->fences.end());
        }
      }
    }
    if (!all->fences.empty()) {
      joined.push_back({.fenced = std::move(all), .is_for_device = is_for_device});
    }
  }
  published = std::move(joined);
}

uint32_t HappensBefore::time(uint64_t block, uint32_t warp) const {
  return blocks_.at(block).warps[warp].time;
}

bool HappensBefore::is_ordered(Agent agent, uint32_t time, uint64_t block, uint32_t warp) const {
  return is_ordered(agent, time, view(block, warp));
}

bool HappensBefore::is_known_of_waiter(const Copy& copy, const View& view) const {
  return copy.waiter != kNoAgent && is_ordered(copy.waiter, copy.wait_time, view);
}

void HappensBefore::barrier(uint64_t block) {
  Block& here = blocks_.at(block);
  Knowledge all;
  uint32_t latest = 0;
  for (const Warp& warp : here.warps) {
    all.join(warp.knows);
    latest = std::max(latest, warp.time);
  }
  here.barrier_time = latest + 1;
  // What the warps of this block did before is covered by barrier_time.
  all.forget_if([&](const Knowledge::Fact& fact) { return block_of(fact.agent) == block; });
  for (Warp& warp : here.warps) {
    warp.time = here.barrier_time;
    warp.knows = all;
  }
  for (const Agent open : here.open_copies) {
    copies_[open & ~kCopyBit].waited_by = ~uint64_t{0};
  }
  here.open_copies.clear();
}

void HappensBefore::fence(uint64_t block, uint32_t warp, bool device) {
  Block& here = blocks_.at(block);
  Warp& self = here.warps[warp];
  // Published: the warp's own accesses, what it knows, and what the last barrier told it of the
  // other warps of its block.
  auto fenced = std::make_shared<Fenced>();
  Knowledge& covered = fenced->knows;
  covered.reserve(self.knows.facts().size() + 1 + (here.barrier_time > 0 ? warps_ : 0));
  covered = self.knows;
  covered.learn(agent(block, warp), self.time);
  for (uint32_t other = 0; other < warps_ && here.barrier_time > 0; ++other) {
    covered.learn(agent(block, other), here.barrier_time - 1);
  }
  self.fence = {.fenced = std::move(fenced),
                .fence = {agent(block, warp), self.time},
                .is_for_device = device};
  if (device) {
    self.device_fence = self.fence;
  }
  ++self.time;
}

void HappensBefore::flag_access(uint64_t block,
                                uint32_t warp,
                                uint64_t location,
                                FlagAccess access) {
  Warp& self = blocks_.at(block).warps[warp];
  const bool releases = access.releases && self.fence.fenced != nullptr;
  if (!releases && !has_flags()) {
    return;
  }
  uint32_t& number = location_numbers_.scattered(location);
  if (number == 0) {
    if (!releases) {
      return;
    }
    locations_.emplace_back();
    number = static_cast<uint32_t>(locations_.size());
  }
  Location& here = locations_[number - 1];
  if (access.acquires) {
    for (const Publication& one : here.published) {
      if ((one.is_for_device || here.block == block) && !one.is_covered_by(self.knows)) {
        self.knows.join(one.fenced->knows);
      }
    }
  }
  if (releases) {
    if (here.block != block) { // other warps of that other block keep the device part
      std::erase_if(here.published, [](const Publication& one) { return !one.is_for_device; });
      here.block = block;
    }
    if (self.device_fence.fenced != nullptr) {
      here.add(self.device_fence);
    }
    if (!self.fence.is_for_device) {
      here.add(self.fence);
    }
  }
}

Agent HappensBefore::copy_start(uint64_t block, uint64_t id) {
  const Agent agent = kCopyBit | static_cast<Agent>(copies_.size());
  copies_.push_back({.block = block});
  blocks_.at(block).copies[id] = agent;
  return agent;
}

bool HappensBefore::is_copy_settled(uint64_t block, uint64_t id) const {
  const auto found = blocks_.at(block).copies.find(id);
  const uint64_t all = warps_ >= 64 ? ~uint64_t{0} : (uint64_t{1} << warps_) - 1;
  return found != blocks_.at(block).copies.end() &&
         (copies_[found->second & ~kCopyBit].waited_by & all) == all;
}

void HappensBefore::copy_waited(uint64_t block, uint32_t warp, uint64_t id) {
  Block& here = blocks_.at(block);
  const auto found = here.copies.find(id);
  if (found == here.copies.end()) {
    return;
  }
  Copy& copy = copies_[found->second & ~kCopyBit];
  if (copy.waited_by == 0) {
    here.open_copies.push_back(found->second);
    copy.waiter = agent(block, warp);
    copy.wait_time = here.warps[warp].time;
  }
  copy.waited_by |= uint64_t{1} << warp;
}

} // namespace pto::sim
