// SPDX-License-Identifier: Apache-2.0
// Tags of a cache: which line lies in which slot. No data: the simulator's memory holds that.
//
// Used for a core's data cache and for L2. With `fill_order` replacement and full associativity
// line n that comes in takes slot n, so that what LOAD brought in lies in a predictable place. Then
// the lines are a FillRing, as far as that reaches; else chains from line to slot and lists of the
// order in each set.
#pragma once

#include "simulator/timing/fill_ring.h"
#include "simulator/timing/zeroed_allocator.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace pto::sim {

class CacheTags {
public:
  enum class Replacement : uint8_t { kFillOrder, kLru };

  /// `ways` 0: fully associative. `slots` 0: a cache that never holds anything. `ring_lines`: what
  /// a FillRing may take up, in lines from the lowest to the highest.
  CacheTags(uint32_t slots, uint32_t ways, Replacement replacement, uint64_t ring_lines = 0);

  /// Slot of the line, or nothing. Marks it as used.
  std::optional<uint32_t> touch(uint64_t line) { return as_optional(touch_slot(line)); }
  /// The same without marking it.
  [[nodiscard]] std::optional<uint32_t> find(uint64_t line) const {
    return as_optional(find_slot(line));
  }
  /// As touch; kNoSlot: nothing. For loops over lines, where an optional takes longer than the
  /// rest.
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  uint32_t touch_slot(uint64_t line) {
    const uint32_t slot = find_slot(line);
    if (slot != kNoSlot && replacement_ == Replacement::kLru) {
      make_newest(line, slot);
    }
    return slot;
  }

  /// Tells the host that the line will be looked up.
  void prefetch(uint64_t line) const {
    if (is_ring_) {
      ring_.prefetch(line);
    } else if (!table_.empty()) {
      __builtin_prefetch(&table_[home(line)]);
    }
  }

  struct Fill {
    uint32_t slot = 0;
    bool has_victim = false;
    uint64_t victim = 0; // the line that was driven out
    bool victim_is_dirty = false;
  };
  /// Brings in a line that is not there. Nothing when there are no slots.
  std::optional<Fill> fill(uint64_t line);
  /// Looks up each line of a warp's access once, in the order of first touch, and brings in those
  /// that are not there. `access` has an active lane.
  LineUse bring_in(const WarpAddresses& access, uint32_t line_bytes);
  /// True if the line was there.
  bool invalidate(uint64_t line);
  void invalidate_all();

  /// Not of a cache whose lines may be a ring.
  void set_dirty(uint32_t slot) { slots_[slot].is_dirty = true; }
  void set_ready(uint32_t slot, double cycle) {
    if (is_ring_) {
      ring_.set_ready(slot, cycle);
    } else {
      slots_[slot].ready = cycle;
    }
    latest_ready_ = std::max(latest_ready_, cycle);
  }
  /// All that was ever filled is there now.
  void forget_ready();
  /// When the line's data arrived or will arrive.
  [[nodiscard]] double ready(uint32_t slot) const {
    return is_ring_ ? ring_.ready(slot) : slots_[slot].ready;
  }
  /// Of no line later than this.
  [[nodiscard]] double latest_ready() const { return latest_ready_; }
  [[nodiscard]] uint32_t slot_count() const { return slot_count_; }
  [[nodiscard]] uint64_t size_bytes() const {
    return (is_ring_ ? ring_.size_bytes() : 0) + slots_.size() * sizeof(Slot) +
           sets_.size() * sizeof(Set) + table_.size() * sizeof(Head);
  }
  /// The line in a slot, for looking into the cache.
  [[nodiscard]] std::optional<uint64_t> line_in(uint32_t slot) const;

private:
  void make_lists();
  /// The same with what the ring held; from here on there is none.
  void leave_ring();
  static std::optional<uint32_t> as_optional(uint32_t slot) {
    return slot != kNoSlot ? std::optional<uint32_t>(slot) : std::nullopt;
  }

  static constexpr uint32_t kNone = UINT32_MAX;
  struct Slot { // zero bytes until it is filled for the first time
    uint64_t line;
    double ready;
    uint32_t newer; // order of the set: oldest first
    uint32_t older;
    uint32_t next; // slot + 1 with the same home; 0: none
    bool is_valid;
    bool is_dirty;
  };
  // The first slot of a chain, with what tells its line from others of that home.
  struct Head {
    uint32_t tag;   // line >> table_bits_; kWide: that is more
    uint32_t entry; // slot + 1; 0: none; kMore: the chain goes on
  };
  static constexpr uint32_t kMore = 1u << 31;
  static constexpr uint32_t kWide = UINT32_MAX;
  struct Set {
    uint32_t oldest = kNone;
    uint32_t newest = kNone;
    uint32_t used = 0; // slots that have ever been filled
  };

  [[nodiscard]] uint32_t set_of(uint64_t line) const {
    return sets_.size() == 1 ? 0 : static_cast<uint32_t>(line % sets_.size());
  }
  /// Line into a free slot, as the newest of its set.
  void put(uint32_t slot, uint64_t line);
  void make_newest(uint64_t line, uint32_t slot);
  void unlink(Set& set, uint32_t slot);
  void link_newest(Set& set, uint32_t slot);
  void link_oldest(Set& set, uint32_t slot);
  /// Neighbouring lines have neighbouring homes, lines that are a power of two apart do not meet.
  [[nodiscard]] size_t home(uint64_t line) const {
    return static_cast<size_t>(line ^ (line >> table_bits_) ^ (line >> 2 * table_bits_)) &
           (table_.size() - 1);
  }
  [[nodiscard]] uint32_t find_slot(uint64_t line) const {
    if (is_ring_) {
      return ring_.find(line);
    }
    if (table_.empty()) {
      return kNoSlot;
    }
    const Head head = table_[home(line)];
    const uint64_t tag = line >> table_bits_;
    if (head.tag == tag && head.entry != 0 && tag < kWide) {
      return (head.entry & ~kMore) - 1;
    }
    return (head.entry & kMore) != 0 || tag >= kWide ? find_in_chain(line) : kNoSlot;
  }
  [[nodiscard]] uint32_t find_in_chain(uint64_t line) const;
  /// `entry` 0: nothing has that home.
  void set_head(Head& head, uint32_t entry) const;
  void erase_from_table(uint32_t slot);

  uint32_t slot_count_ = 0;
  uint32_t ways_;
  Replacement replacement_;
  uint64_t ring_lines_; // 0: never a ring
  bool is_ring_ = false;
  FillRing ring_;
  std::vector<Slot, ZeroedAllocator<Slot>> slots_;
  std::vector<Set> sets_;
  double latest_ready_ = 0;
  unsigned table_bits_ = 0;
  std::vector<Head, ZeroedAllocator<Head>> table_; // by home
};

} // namespace pto::sim
