// SPDX-License-Identifier: Apache-2.0
// Which accesses of a launch are ordered. The race check asks, for an earlier access by some agent,
// whether the current warp is certain to come after it in every schedule.
//
// Agents are warps and copies. A warp's own insns are ordered (its lanes run in lock step). What
// orders agents:
//   - BARRIER_BLOCK: everything before it in the block is before everything after it;
//   - a copy: after what its issuing warp knew when it started it; before a warp that waited for
//   it;
//   - a release and an acquire of one location: FENCE, then an atomic or a store to the location by
//     one warp; an atomic or a .cv load of the location by another. A fence.block orders for the
//     same block only.
// Blocks are otherwise unordered, whatever core ran them in which order.
//
// A warp's time counts its barriers and fences. Knowledge of other blocks' warps is kept sparsely,
// since only flags give it; within a block one number, the time of the last barrier, says most.
#pragma once

#include "simulator/checks/block_map.h"
#include "simulator/checks/paged_array.h"

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace pto::sim {

/// A warp of the grid (block * warps + warp) or, with kCopyBit, a copy.
using Agent = uint32_t;
inline constexpr Agent kCopyBit = 0x80000000;
inline constexpr Agent kNoAgent = 0x7fffffff;

/// Times up to which agents' accesses are known to be over. Sorted by agent: it is joined and
/// copied far more often than added to.
///
/// Knowledge spreads as a whole: who knows that a warp's accesses up to a fence are over has
/// learned all that the fence covered. So one look at a time tells whether there is anything to
/// learn (covers()).
class Knowledge {
public:
  struct Fact {
    Agent agent = kNoAgent;
    uint32_t time = 0;
  };

  /// 0 where nothing is known.
  uint32_t time(Agent agent) const;
  void learn(Agent agent, uint32_t time);
  void reserve(size_t facts) { facts_.reserve(facts); }
  void join(const Knowledge& other);
  const std::vector<Fact>& facts() const { return facts_; }
  template <class Predicate> void forget_if(Predicate&& predicate) {
    std::erase_if(facts_, predicate);
  }

private:
  std::vector<Fact> facts_;
};

class HappensBefore {
public:
  void begin(uint32_t warps_per_block);
  void block_begin(uint64_t block);
  void block_end(uint64_t block);

  Agent agent(uint64_t block, uint32_t warp) const {
    return static_cast<Agent>(block * warps_ + warp);
  }
  uint64_t block_of(Agent warp_agent) const { return warp_agent / warps_; }
  uint32_t warp_of(Agent warp_agent) const { return warp_agent % warps_; }
  /// Of warps or copies.
  bool are_of_one_block(Agent a, Agent b) const {
    if (((a | b) & kCopyBit) == 0) {
      // Most are far apart; a division takes as long as the rest of a look at a cell.
      return (a > b ? a - b : b - a) < warps_ && block_of(a) == block_of(b);
    }
    return block_of_any(a) == block_of_any(b);
  }
  uint32_t time(uint64_t block, uint32_t warp) const;

  /// A warp of a block that has begun, found once for many questions. Valid until the block's next
  /// event of another kind than an access.
  class View;
  View view(uint64_t block, uint32_t warp) const;
  /// The earlier access is certain to be over when (block, warp) executes its next insn.
  bool is_ordered(Agent agent, uint32_t time, const View& view) const;
  bool is_ordered(Agent agent, uint32_t time, uint64_t block, uint32_t warp) const;

  /// Accesses at that time by warps of the block of `first`, its warp 0, are over for every warp of
  /// the view's block, by a barrier of it.
  bool is_before_barrier(Agent first, uint32_t time, const View& view) const;

  void barrier(uint64_t block);
  void fence(uint64_t block, uint32_t warp, bool device);
  /// An access to the location that may be a flag's. One that acquires (an atomic or a .cv load)
  /// learns what was published there. One that releases (an atomic or a store) publishes what the
  /// warp's last fence covered.
  struct FlagAccess {
    bool acquires = false;
    bool releases = false;
  };
  void flag_access(uint64_t block, uint32_t warp, uint64_t location, FlagAccess access);
  /// Something was published somewhere. Otherwise an access that does not release learns nothing.
  bool has_flags() const { return !locations_.empty(); }

  /// A copy starts; the agent of its accesses.
  Agent copy_start(uint64_t block, uint64_t id);
  /// The warp waited for the copy.
  void copy_waited(uint64_t block, uint32_t warp, uint64_t id);
  /// Every warp of the block knows that it is over.
  bool is_copy_settled(uint64_t block, uint64_t id) const;
  struct Copy {
    uint64_t block = 0;
    uint64_t waited_by = 0;  // bit a warp
    Agent waiter = kNoAgent; // the first that waited
    uint32_t wait_time = 0;
  };
  const Copy& copy(Agent copy_agent) const { return copies_[copy_agent & ~kCopyBit]; }

  /// Of a warp or a copy.
  uint64_t block_of_any(Agent agent) const {
    return (agent & kCopyBit) != 0 ? copy(agent).block : block_of(agent);
  }

private:
  /// Of a copy that the warp has not waited for.
  bool is_known_of_waiter(const Copy& copy, const View& view) const;
  /// What fences cover.
  struct Fenced {
    Knowledge knows;
    std::vector<Knowledge::Fact> fences; // of several: `knows` is what these know together
  };
  /// One fence may be published at many locations.
  using SharedFenced = std::shared_ptr<const Fenced>;
  struct Publication {
    SharedFenced fenced;
    Knowledge::Fact fence; // if it is one: itself
    bool is_for_device = false;
    /// Nothing is to be learned from it.
    bool is_covered_by(const Knowledge& knows) const;
  };
  struct Warp {
    uint32_t time = 1;
    Knowledge knows; // agents of other blocks, and of this block since the last barrier
    // What a release publishes: what the last fence covered. Null: no fence yet.
    Publication fence;
    Publication device_fence;
  };
  struct Block {
    std::vector<Warp> warps;
    uint32_t barrier_time = 0; // accesses of the block before it are known to all its warps
    std::unordered_map<uint64_t, Agent> copies; // by id
    std::vector<Agent> open_copies;             // waited for by some warp, not yet known to all

    void renew() {
      warps.clear();
      barrier_time = 0;
      copies.clear();
      open_copies.clear();
    }
  };
  /// What can be learned at a location. Most is never asked for, so it is joined by who learns it.
  struct Location {
    uint64_t block = 0;
    std::vector<Publication> published; // for the device, or for warps of `block`

    void add(const Publication& more);
    void join_publications();
  };

  uint32_t warps_ = 1;
  BlockMap<Block> blocks_;
  PagedArray<uint32_t> location_numbers_; // one more than the index, 0 where nothing was published
  std::vector<Location> locations_;
  std::vector<Copy> copies_;
};

class HappensBefore::View {
public:
  uint64_t block() const { return block_; }
  uint32_t warp() const { return warp_; }
  Agent agent() const { return first_agent_ + warp_; }
  Agent first_agent() const { return first_agent_; } // warp 0 of the block
  uint32_t time() const { return self_->time; }
  bool has_fenced() const { return self_->fence.fenced != nullptr; }

private:
  friend class HappensBefore;
  uint64_t block_ = 0;
  uint32_t warp_ = 0;
  Agent first_agent_ = 0; // of the block's warps
  uint32_t barrier_time_ = 0;
  const Warp* self_ = nullptr;
};

inline HappensBefore::View HappensBefore::view(uint64_t block, uint32_t warp) const {
  const Block& here = blocks_.at(block);
  View view;
  view.block_ = block;
  view.warp_ = warp;
  view.first_agent_ = agent(block, 0);
  view.barrier_time_ = here.barrier_time;
  view.self_ = &here.warps[warp];
  return view;
}

inline bool HappensBefore::is_ordered(Agent agent, uint32_t time, const View& view) const {
  if ((agent & kCopyBit) != 0) {
    const Copy& copy = copies_[agent & ~kCopyBit];
    return (copy.block == view.block_ && (copy.waited_by >> view.warp_ & 1) != 0) ||
           is_known_of_waiter(copy, view);
  }
  const uint32_t in_block = agent - view.first_agent_;
  if (in_block < warps_ && (in_block == view.warp_ || time < view.barrier_time_)) {
    return true;
  }
  const Knowledge& knows = view.self_->knows;
  return !knows.facts().empty() && time <= knows.time(agent); // times begin at 1
}

inline bool HappensBefore::is_before_barrier(Agent first, uint32_t time, const View& view) const {
  return first == view.first_agent_ && time < view.barrier_time_;
}

} // namespace pto::sim
