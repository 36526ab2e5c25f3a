// SPDX-License-Identifier: Apache-2.0
// Cache tags: a table of chains from line to slot, and a linked order for each set.
#include "simulator/timing/data_cache.h"

#include <algorithm>
#include <bit>

namespace pto::sim {

namespace {

constexpr size_t kFewSlots = 1 << 16; // a core's cache, not L2

} // namespace

CacheTags::CacheTags(uint32_t slots, uint32_t ways, Replacement replacement)
    : ways_(ways == 0 || ways > slots ? slots : ways), replacement_(replacement) {
  if (slots == 0) {
    return;
  }
  const uint32_t sets = slots / ways_;
  slots_.resize(static_cast<size_t>(sets) * ways_);
  sets_.resize(sets);
  // Chains cost a look at slots, which lie apart; empty homes cost no more than their bytes.
  const size_t homes_per_slot = slots_.size() <= kFewSlots ? 4 : 2;
  table_.resize(std::bit_ceil(slots_.size() * homes_per_slot));
  table_bits_ = static_cast<unsigned>(std::countr_zero(table_.size()));
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
  if (slots_.empty()) {
    return std::nullopt;
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
  Head& head = table_[home(line)];
  slots_[fill.slot] = {.line = line,
                       .ready = 0,
                       .newer = kNone,
                       .older = kNone,
                       .next = head.entry & ~kMore,
                       .is_valid = true,
                       .is_dirty = false};
  link_newest(set, fill.slot);
  set_head(head, fill.slot + 1);
  return fill;
}

bool CacheTags::invalidate(uint64_t line) {
  const std::optional<uint32_t> slot = find(line);
  if (!slot) {
    return false;
  }
  erase_from_table(*slot);
  slots_[*slot].is_valid = false;
  Set& set = sets_[set_of(line)];
  unlink(set, *slot);
  link_oldest(set, *slot); // the next fill takes it
  return true;
}

void CacheTags::invalidate_all() {
  slots_ = decltype(slots_)(slots_.size());
  std::fill(sets_.begin(), sets_.end(), Set{});
  table_ = decltype(table_)(table_.size());
  latest_ready_ = 0;
}

void CacheTags::forget_ready() {
  latest_ready_ = 0;
  for (size_t set = 0; set < sets_.size(); ++set) {
    for (uint32_t i = 0; i < sets_[set].used; ++i) { // the others are zero pages
      slots_[set * ways_ + i].ready = 0;
    }
  }
}

std::optional<uint64_t> CacheTags::line_in(uint32_t slot) const {
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
