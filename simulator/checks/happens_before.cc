// SPDX-License-Identifier: Apache-2.0
// Orders of accesses, see the header.
#include "simulator/checks/happens_before.h"

#include <algorithm>

namespace pto::sim {

uint32_t Knowledge::time(Agent agent) const {
  const auto found =
      std::lower_bound(facts_.begin(), facts_.end(), agent, [](const Fact& fact, Agent wanted) {
        return fact.agent < wanted;
      });
  return found != facts_.end() && found->agent == agent ? found->time : 0;
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

bool Knowledge::covers(const Knowledge& other) const {
  auto own = facts_.begin();
  for (const Fact& fact : other.facts_) {
    while (own != facts_.end() && own->agent < fact.agent) {
      ++own;
    }
    if (own == facts_.end() || own->agent != fact.agent || own->time < fact.time) {
      return false;
    }
  }
  return true;
}

void Knowledge::join(const Knowledge& other) {
  if (covers(other)) {
    return;
  }
  std::vector<Fact> joined;
  joined.reserve(facts_.size() + other.facts_.size());
  auto own = facts_.begin();
  for (const Fact& fact : other.facts_) {
    while (own != facts_.end() && own->agent < fact.agent) {
      joined.push_back(*own++);
    }
    joined.push_back(fact);
    if (own != facts_.end() && own->agent == fact.agent) {
      joined.back().time = std::max(fact.time, own->time);
      ++own;
    }
  }
  joined.insert(joined.end(), own, facts_.end());
  facts_ = std::move(joined);
}

void HappensBefore::begin(uint32_t warps_per_block) {
  warps_ = warps_per_block;
  blocks_.clear();
  published_.clear();
  copies_.clear();
}

void HappensBefore::block_begin(uint64_t block) {
  blocks_.begin(block).warps.resize(warps_);
}

void HappensBefore::block_end(uint64_t block) {
  blocks_.end(block);
}

void HappensBefore::join(SharedKnowledge& into, const SharedKnowledge& from) {
  if (into == nullptr || from == nullptr || into == from) {
    into = from == nullptr ? into : from;
    return;
  }
  if (into->covers(*from)) {
    return;
  }
  auto joined = std::make_shared<Knowledge>(*into);
  joined->join(*from);
  into = std::move(joined);
}

uint32_t HappensBefore::time(uint64_t block, uint32_t warp) const {
  return blocks_.at(block).warps[warp].time;
}

bool HappensBefore::is_ordered(Agent agent, uint32_t time, uint64_t block, uint32_t warp) const {
  return is_ordered(agent, time, view(block, warp));
}

bool HappensBefore::is_copy_ordered(Agent agent, uint64_t block, uint32_t warp) const {
  const Copy& copy = copies_[agent & ~kCopyBit];
  if (copy.block == block && (copy.waited_by >> warp & 1) != 0) {
    return true;
  }
  return copy.waiter != kNoAgent && is_ordered(copy.waiter, copy.wait_time, block, warp);
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
    warp.acquired.reset();
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
  Knowledge covered = self.knows;
  covered.learn(agent(block, warp), self.time);
  for (uint32_t other = 0; other < warps_ && here.barrier_time > 0; ++other) {
    covered.learn(agent(block, other), here.barrier_time - 1);
  }
  self.fence_knows = std::make_shared<const Knowledge>(std::move(covered));
  if (device) {
    self.device_fence_knows = self.fence_knows;
  }
  ++self.time;
}

void HappensBefore::release(uint64_t block, uint32_t warp, uint64_t location) {
  const Warp& self = blocks_.at(block).warps[warp];
  if (self.fence_knows == nullptr) {
    return;
  }
  Published& published = published_[location];
  if (published.block != block) {
    published.in_block.reset(); // other warps of that other block keep the device part
    published.block = block;
  }
  join(published.in_block, self.fence_knows);
  join(published.on_device, self.device_fence_knows);
}

void HappensBefore::acquire(uint64_t block, uint32_t warp, uint64_t location) {
  const auto found = published_.find(location);
  if (found == published_.end()) {
    return;
  }
  Warp& self = blocks_.at(block).warps[warp];
  self.take_in(found->second.on_device);
  if (found->second.block == block) {
    self.take_in(found->second.in_block);
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
