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
  published_.clear();
  copies_.clear();
}

void HappensBefore::block_begin(uint64_t block) {
  blocks_.begin(block).warps.resize(warps_);
}

void HappensBefore::block_end(uint64_t block) {
  blocks_.end(block);
}

bool HappensBefore::covers(const Knowledge& knows, const Fenced& published) {
  return std::all_of(
      published.fences.begin(), published.fences.end(), [&](const Knowledge::Fact& fence) {
        return knows.time(fence.agent) >= fence.time;
      });
}

void HappensBefore::Published::add(const SharedFenced& fenced, bool is_for_device) {
  for (const Entry& entry : entries) {
    if (entry.is_for_device >= is_for_device &&
        (entry.fenced == fenced || covers(entry.fenced->knows, *fenced))) {
      return;
    }
  }
  std::erase_if(entries, [&](const Entry& entry) {
    return is_for_device >= entry.is_for_device && covers(fenced->knows, *entry.fenced);
  });
  entries.push_back({fenced, is_for_device});
  constexpr size_t kMostEntries = 8; // each acquire looks at all of them
  if (entries.size() > kMostEntries) {
    join_entries();
  }
}

void HappensBefore::Published::join_entries() {
  std::vector<Entry> joined;
  for (const bool is_for_device : {true, false}) {
    auto all = std::make_shared<Fenced>();
    for (const Entry& entry : entries) {
      if (entry.is_for_device == is_for_device) {
        all->knows.join(entry.fenced->knows);
        all->fences.insert(
            all->fences.end(), entry.fenced->fences.begin(), entry.fenced->fences.end());
      }
    }
    if (!all->fences.empty()) {
      joined.push_back({std::move(all), is_for_device});
    }
  }
  entries = std::move(joined);
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
  self.fence = std::make_shared<const Fenced>(
      Fenced{.knows = std::move(covered), .fences = {{agent(block, warp), self.time}}});
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
  const bool releases = access.releases && self.fence != nullptr;
  const auto found = releases ? published_.try_emplace(location).first : published_.find(location);
  if (found == published_.end()) {
    return;
  }
  Published& published = found->second;
  if (access.acquires) {
    for (const Published::Entry& entry : published.entries) {
      if ((entry.is_for_device || published.block == block) && !covers(self.knows, *entry.fenced)) {
        self.knows.join(entry.fenced->knows);
      }
    }
  }
  if (releases) {
    if (published.block != block) { // other warps of that other block keep the device part
      std::erase_if(published.entries,
                    [](const Published::Entry& entry) { return !entry.is_for_device; });
      published.block = block;
    }
    if (self.device_fence != nullptr) {
      published.add(self.device_fence, true);
    }
    if (self.fence != self.device_fence) {
      published.add(self.fence, false);
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
