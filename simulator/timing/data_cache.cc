// SPDX-License-Identifier: Apache-2.0
// Cache tags: a ring, or a table of chains from line to slot and a linked order for each set.
#include "simulator/timing/data_cache.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace pto::sim {

namespace {

constexpr size_t kFewSlots = 1 << 16; // a core's cache, not L2

} // namespace

CacheTags::CacheTags(uint32_t slots, uint32_t ways, Replacement replacement, uint64_t ring_lines)
    : ways_(ways == 0 || ways > slots ? slots : ways), replacement_(replacement),
      ring_lines_(replacement == Replacement::kFillOrder && ways_ == slots ? ring_lines : 0) {
  if (slots == 0) {
    return;
  }
  slot_count_ = slots / ways_ * ways_;
  if (ring_lines_ != 0) {
    is_ring_ = true;
    ring_ = FillRing(slots, ring_lines);
  } else {
    make_lists();
  }
}

void CacheTags::make_lists() {
  slots_ = decltype(slots_)(slot_count_);
  sets_.assign(slot_count_ / ways_, Set{});
  // Chains cost a look at slots, which lie apart; empty homes cost no more than their bytes.
  const size_t homes_per_slot = slots_.size() <= kFewSlots ? 4 : 2;
  table_ = decltype(table_)(std::bit_ceil(slots_.size() * homes_per_slot));
  table_bits_ = static_cast<unsigned>(std::countr_zero(table_.size()));
}

void CacheTags::leave_ring() {
  const FillRing ring = std::exchange(ring_, FillRing());
  is_ring_ = false;
  make_lists();
  Set& set = sets_[0];
  set.used = ring.held();
  for (uint32_t i = 0; i < ring.held(); ++i) {
    const uint32_t slot = (ring.oldest() + i) % ring.held();
    put(slot, ring.line(slot));
    slots_[slot].ready = ring.ready(slot);
  }
}

uint32_t CacheTags::find_in_chain(uint64_t line) const {
  for (uint32_t entry = table_[home(line)].entry & ~kMore; entry != 0;
       entry = slots_[entry - 1].next) {
    if (slots_[entry - 1].line == line) {
      return entry - 1;
    }
  }
  return kNoSlot;
}

void CacheTags::make_newest(uint64_t line, uint32_t slot) {
  Set& set = sets_[set_of(line)];
  if (set.newest != slot) {
    unlink(set, slot);
    link_newest(set, slot);
  }
}

std::optional<CacheTags::Fill> CacheTags::fill(uint64_t line) {
  if (slot_count_ == 0) {
    return std::nullopt;
  }
  if (is_ring_) {
    if (ring_.reach(line)) {
      const FillRing::Fill fill = ring_.add(line);
      return Fill{fill.slot, fill.has_victim, fill.victim, false};
    }
    leave_ring();
  }
  const uint32_t set_index = set_of(line);
  Set& set = sets_[set_index];
  Fill fill;
  if (set.used < ways_) {
    fill.slot = set_index * ways_ + set.used++;
  } else {
    fill.slot = set.oldest;
    Slot& old = slots_[fill.slot];
    if (old.is_valid) {
      fill.has_victim = true;
      fill.victim = old.line;
      fill.victim_is_dirty = old.is_dirty;
      erase_from_table(fill.slot);
    }
    unlink(set, fill.slot);
  }
  put(fill.slot, line);
  return fill;
}

void CacheTags::put(uint32_t slot, uint64_t line) {
  Head& head = table_[home(line)];
  slots_[slot] = {.line = line,
                  .ready = 0,
                  .newer = kNone,
                  .older = kNone,
                  .next = head.entry & ~kMore,
                  .is_valid = true,
                  .is_dirty = false};
  link_newest(sets_[set_of(line)], slot);
  set_head(head, slot + 1);
}

LineUse CacheTags::bring_in(const WarpAddresses& access, uint32_t line_bytes) {
  if (is_ring_) {
    if (const std::optional<LineUse> use = ring_.bring_in(access, line_bytes)) {
      return *use;
    }
  }
  const LineList lines = touched_lines(access, line_bytes);
  for (unsigned i = 0; i < lines.count; ++i) {
    prefetch(lines.line[i]);
  }
  LineUse use{lines.count, 0};
  for (unsigned i = 0; i < lines.count; ++i) {
    if (touch_slot(lines.line[i]) != kNoSlot) {
      ++use.hits;
    } else {
      (void)fill(lines.line[i]);
    }
  }
  return use;
}

bool CacheTags::invalidate(uint64_t line) {
  const std::optional<uint32_t> slot = find(line);
  if (!slot) {
    return false;
  }
  if (is_ring_) {
    leave_ring(); // slots are no longer filled in their order
  }
  erase_from_table(*slot);
  slots_[*slot].is_valid = false;
  Set& set = sets_[set_of(line)];
  unlink(set, *slot);
  link_oldest(set, *slot); // the next fill takes it
  return true;
}

void CacheTags::invalidate_all() {
  latest_ready_ = 0;
  if (is_ring_) {
    ring_.clear();
  } else if (ring_lines_ != 0 && slot_count_ != 0) {
    *this = CacheTags(slot_count_, 0, replacement_, ring_lines_);
  } else if (slot_count_ != 0) {
    make_lists();
  }
}

void CacheTags::forget_ready() {
  latest_ready_ = 0;
  for (uint32_t slot = 0; is_ring_ && slot < ring_.held(); ++slot) {
    ring_.set_ready(slot, 0);
  }
  for (size_t set = 0; set < sets_.size(); ++set) {
    for (uint32_t i = 0; i < sets_[set].used; ++i) { // the others are zero pages
      slots_[set * ways_ + i].ready = 0;
    }
  }
}

std::optional<uint64_t> CacheTags::line_in(uint32_t slot) const {
  if (is_ring_) {
    return slot < ring_.held() ? std::optional<uint64_t>(ring_.line(slot)) : std::nullopt;
  }
  if (slot >= slots_.size() || !slots_[slot].is_valid) {
    return std::nullopt;
  }
  return slots_[slot].line;
}

void CacheTags::unlink(Set& set, uint32_t slot) {
  Slot& s = slots_[slot];
  (s.older != kNone ? slots_[s.older].newer : set.oldest) = s.newer;
  (s.newer != kNone ? slots_[s.newer].older : set.newest) = s.older;
  s.older = kNone;
  s.newer = kNone;
}

void CacheTags::link_newest(Set& set, uint32_t slot) {
  slots_[slot].older = set.newest;
  (set.newest != kNone ? slots_[set.newest].newer : set.oldest) = slot;
  set.newest = slot;
}

void CacheTags::link_oldest(Set& set, uint32_t slot) {
  slots_[slot].newer = set.oldest;
  (set.oldest != kNone ? slots_[set.oldest].older : set.newest) = slot;
  set.oldest = slot;
}

void CacheTags::set_head(Head& head, uint32_t entry) const {
  if (entry == 0) {
    head = {};
    return;
  }
  const Slot& slot = slots_[entry - 1];
  head.tag = static_cast<uint32_t>(std::min<uint64_t>(slot.line >> table_bits_, kWide));
  head.entry = entry | (slot.next != 0 ? kMore : 0);
}

void CacheTags::erase_from_table(uint32_t slot) {
  Head& head = table_[home(slots_[slot].line)];
  uint32_t first = head.entry & ~kMore;
  uint32_t* entry = &first;
  while (*entry != slot + 1) {
    entry = &slots_[*entry - 1].next;
  }
  *entry = slots_[slot].next;
  set_head(head, first);
}

} // namespace pto::sim
