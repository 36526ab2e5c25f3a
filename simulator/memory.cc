// SPDX-License-Identifier: Apache-2.0
// Allocations of hbm and their undo history.
#include "simulator/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <unordered_set>

namespace pto::sim {

namespace {

std::string shown_name(const Allocation& allocation) {
  return allocation.name.empty() ? fmt::format("#{}", allocation.id) : allocation.name;
}

uint64_t round_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

} // namespace

Hbm::Hbm(std::shared_ptr<const HbmTable> table)
    : live_(table->live), freed_(table->freed), table_(std::move(table)),
      live_bytes_(table_->live_bytes), is_view_(true) {}

std::shared_ptr<const HbmTable> Hbm::table() {
  if (table_ == nullptr) {
    auto table = std::make_shared<HbmTable>();
    table->live = live_;
    table->freed = freed_;
    table->live_bytes = live_bytes_;
    table_ = std::move(table);
  }
  return table_;
}

uint64_t Hbm::alloc(uint64_t size_bytes, std::string name, std::string made_by) {
  PTO_CHECK(!is_view_);
  constexpr uint64_t kLargest = uint64_t{1} << 46;
  const auto refuse = [&] {
    throw HbmError(fmt::format("cannot allocate {} bytes{}{}: the host has no memory for them ({} "
                               "bytes are allocated already); use a smaller buffer or free some",
                               size_bytes,
                               name.empty() ? "" : " for ",
                               name,
                               live_bytes_));
  };
  if (size_bytes > kLargest) {
    refuse();
  }
  // calloc gives untouched zero pages for what is large.
  auto* host = static_cast<uint8_t*>(std::calloc(size_bytes == 0 ? 1 : size_bytes, 1));
  if (host == nullptr) {
    refuse();
  }
  Allocation allocation;
  allocation.name = std::move(name);
  allocation.made_by = std::move(made_by);
  allocation.base = next_base_;
  allocation.size_bytes = size_bytes;
  allocation.host = host;
  allocation.memory = std::shared_ptr<uint8_t>(host, [](uint8_t* bytes) { std::free(bytes); });
  allocation.id = next_id_++;
  next_base_ = round_up(allocation.end() + kGuardBytes, kAlignBytes);
  live_bytes_ += size_bytes;
  table_.reset();
  live_.push_back(std::move(allocation)); // bases only grow
  return live_.back().base;
}

void Hbm::free(uint64_t base, std::string freed_by) {
  PTO_CHECK(!is_view_);
  const Allocation* found = find_base(base);
  if (found == nullptr) {
    for (const auto& old : freed_) {
      if (old->base == base) {
        throw HbmError(fmt::format("double free of allocation {} ({} bytes at {:#x}){}",
                                   shown_name(*old),
                                   old->size_bytes,
                                   base,
                                   old->freed_by.empty() ? std::string()
                                                         : "; first freed by " + old->freed_by));
      }
    }
    throw HbmError(fmt::format(
        "cannot free {:#x}: it is no start of an allocation ({})", base, describe(base)));
  }
  const auto index = static_cast<size_t>(found - live_.data());
  Allocation allocation = std::move(live_[index]);
  live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(index));
  live_bytes_ -= allocation.size_bytes;
  allocation.host = nullptr;
  allocation.memory.reset(); // a view may still hold it
  allocation.is_live = false;
  allocation.freed_by = std::move(freed_by);
  if (freed_.size() == kFreedKept) {
    freed_.pop_front();
  }
  freed_.push_back(std::make_shared<const Allocation>(std::move(allocation)));
  table_.reset();
}

const Allocation* Hbm::find_base(uint64_t base) const {
  const size_t i = lower_index(base);
  return i < live_.size() && live_[i].base == base ? &live_[i] : nullptr;
}

const Allocation* Hbm::find_freed(uint64_t address) const {
  for (const auto& allocation : freed_) {
    if (address - allocation->base < allocation->size_bytes) {
      return allocation.get();
    }
  }
  return nullptr;
}

std::string Hbm::describe(uint64_t address, uint64_t bytes) const {
  if (const Allocation* freed = find_freed(address)) {
    return fmt::format("allocation {} ({} bytes) + {}: freed{}{}",
                       shown_name(*freed),
                       freed->size_bytes,
                       address - freed->base,
                       freed->freed_by.empty() ? "" : " by ",
                       freed->freed_by);
  }
  if (live_.empty()) {
    return fmt::format("{:#x}: hbm has no allocation", address);
  }
  // The one that holds it, else the nearest of its two neighbours.
  size_t i = lower_index(address);
  if (i == live_.size()) {
    i = 0;
  } else if (i + 1 < live_.size() && address >= live_[i].end() &&
             live_[i + 1].base - address < address - live_[i].end()) {
    ++i;
  }
  const Allocation& near = live_[i];
  const std::string head =
      fmt::format("allocation {} ({} bytes)", shown_name(near), near.size_bytes);
  if (near.holds(address, bytes)) {
    return fmt::format("{} + {}", head, address - near.base);
  }
  if (address < near.base) {
    const uint64_t before = near.base - address;
    return address < kFirstBase - kGuardBytes
               ? fmt::format("{:#x}: far below every allocation (the lowest is {})", address, head)
               : fmt::format("{} - {}: {} bytes before its start", head, before, before);
  }
  const uint64_t offset = address - near.base;
  if (offset >= near.size_bytes) {
    // As array indices are thought of: the first byte behind the end is 1 - bytes.. past it.
    return fmt::format(
        "{} + {}: {} bytes past the end", head, offset, offset - near.size_bytes + bytes);
  }
  return fmt::format("{} + {}: the last {} bytes are past the end",
                     head,
                     offset,
                     offset + bytes - near.size_bytes);
}

std::string Hbm::label(uint64_t address) const {
  const Allocation* near = find(address);
  if (near == nullptr) {
    return fmt::format("{:#x}", address);
  }
  const uint64_t offset = address - near->base;
  return offset == 0 ? shown_name(*near) : fmt::format("{} + {}", shown_name(*near), offset);
}

uint8_t* Hbm::host(uint64_t address, uint64_t bytes) {
  const Allocation* found = find(address);
  return found != nullptr && found->holds(address, bytes) ? found->host + (address - found->base)
                                                          : nullptr;
}

const uint8_t* Hbm::host(uint64_t address, uint64_t bytes) const {
  const Allocation* found = find(address);
  return found != nullptr && found->holds(address, bytes) ? found->host + (address - found->base)
                                                          : nullptr;
}

bool Hbm::read(uint64_t address, std::span<uint8_t> to) const {
  if (to.empty()) {
    return true;
  }
  const uint8_t* from = host(address, to.size());
  if (from == nullptr) {
    return false;
  }
  std::memcpy(to.data(), from, to.size());
  return true;
}

bool Hbm::write(uint64_t address, std::span<const uint8_t> from) {
  if (from.empty()) {
    return true;
  }
  const Allocation* found = find(address);
  if (found == nullptr || !found->holds(address, from.size())) {
    return false;
  }
  if (history_ != nullptr) {
    history_->before_write(*found, address - found->base, from.size());
  }
  std::memcpy(found->host + (address - found->base), from.data(), from.size());
  return true;
}

// ---------------------------------------------------------------- HbmHistory

HbmHistory::HbmHistory(Hbm& hbm, uint64_t limit_bytes) : hbm_(hbm), limit_bytes_(limit_bytes) {
  PTO_CHECK(hbm.history() == nullptr);
  hbm_.set_history(this);
}

HbmHistory::~HbmHistory() {
  hbm_.set_history(nullptr);
}

HbmHistory::Mark HbmHistory::mark() {
  intervals_.emplace_back();
  ++epoch_;
  return next_mark_++;
}

void HbmHistory::before_write(const Allocation& allocation, uint64_t offset, uint64_t bytes) {
  if (intervals_.empty() || bytes == 0) {
    return;
  }
  std::vector<uint64_t>& stamps = stamps_[allocation.base];
  if (stamps.empty()) {
    stamps.resize((allocation.size_bytes + kPageBytes - 1) / kPageBytes);
  }
  const uint64_t last = (offset + bytes - 1) / kPageBytes;
  for (uint64_t page = offset / kPageBytes; page <= last; ++page) {
    if (stamps[page] != epoch_) {
      save_page(allocation, stamps, page);
    }
  }
  while (kept_bytes_ > limit_bytes_ && intervals_.size() > 1) {
    forget_before(first_mark_ + 1);
  }
}

void HbmHistory::save_page(const Allocation& allocation,
                           std::vector<uint64_t>& stamps,
                           uint64_t page) {
  stamps[page] = epoch_;
  const uint64_t begin = page * kPageBytes;
  Page saved;
  saved.host = allocation.host + begin;
  saved.size_bytes = static_cast<uint32_t>(std::min(kPageBytes, allocation.size_bytes - begin));
  saved.old_bytes.assign(saved.host, saved.host + saved.size_bytes);
  const uint64_t cost = saved.size_bytes + sizeof(Page);
  intervals_.back().pages.push_back(std::move(saved));
  intervals_.back().kept_bytes += cost;
  kept_bytes_ += cost;
}

bool HbmHistory::rewind(Mark mark) {
  if (!can_rewind(mark)) {
    return false;
  }
  while (next_mark_ > mark) {
    Interval& last = intervals_.back();
    for (const Page& page : last.pages) {
      std::memcpy(page.host, page.old_bytes.data(), page.size_bytes);
    }
    kept_bytes_ -= last.kept_bytes;
    intervals_.pop_back();
    --next_mark_;
  }
  intervals_.emplace_back();
  ++next_mark_;
  ++epoch_;
  return true;
}

void HbmHistory::merge(Mark mark) {
  PTO_CHECK(can_rewind(mark) && mark != first_mark_);
  const size_t from = mark - first_mark_;
  size_t to = from - 1;
  while (to > 0 && intervals_[to].is_merged) {
    --to;
  }
  Interval& source = intervals_[from];
  Interval& target = intervals_[to];
  std::unordered_set<const uint8_t*> known;
  for (const Page& page : target.pages) {
    known.insert(page.host);
  }
  for (Page& page : source.pages) {
    const uint64_t cost = page.size_bytes + sizeof(Page);
    if (known.count(page.host) == 0) { // the older bytes count
      target.pages.push_back(std::move(page));
      target.kept_bytes += cost;
    } else {
      kept_bytes_ -= cost;
    }
  }
  source.pages = {};
  source.kept_bytes = 0;
  source.is_merged = true;
}

void HbmHistory::forget_before(Mark mark) {
  size_t count = 0;
  while (first_mark_ + count < mark && count < intervals_.size()) {
    kept_bytes_ -= intervals_[count].kept_bytes;
    ++count;
  }
  intervals_.erase(intervals_.begin(), intervals_.begin() + static_cast<std::ptrdiff_t>(count));
  first_mark_ += count;
}

} // namespace pto::sim
