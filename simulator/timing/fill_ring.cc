// SPDX-License-Identifier: Apache-2.0
// Look-ups of a warp's lanes in a cache that fills in order, and the range of numbers.
#include "simulator/timing/fill_ring.h"

#include "simulator/timing/lane_repeats.h"

#include <algorithm>
#include <array>
#include <bit>

namespace pto::sim {

namespace {

constexpr uint64_t kLeastLines = 1u << 12; // to have numbers for: a few pages of the host

/// Where the numbers of a warp's lanes lie, and what they say.
struct LanePlaces {
  static constexpr unsigned kLanes = isa::kWarpLanes;
  std::array<uint32_t, kLanes> place; // of an inactive lane: of some active one
  unsigned lines = 0;                 // lanes that are the first with their line
  uint32_t old = 0;                   // which of them have one that may not be there
};

using Places = std::array<uint32_t, LanePlaces::kLanes>;

/// One bit for each element that is not 0, all bits of which are set.
PTO_HOST_LOOP uint32_t bits_of(const HalfWarp& flags) {
  constexpr HalfWarp kBits = {1,
                              1 << 1,
                              1 << 2,
                              1 << 3,
                              1 << 4,
                              1 << 5,
                              1 << 6,
                              1 << 7,
                              1 << 8,
                              1 << 9,
                              1 << 10,
                              1 << 11,
                              1 << 12,
                              1 << 13,
                              1 << 14,
                              1 << 15};
  const HalfWarp chosen = flags & kBits;
  uint64_t words[4];
  __builtin_memcpy(words, &chosen, sizeof(words));
  const uint64_t folded = (words[0] | words[1]) | (words[2] | words[3]);
  const uint64_t pair = folded | folded >> 32;
  return static_cast<uint32_t>((pair | pair >> 16) & 0xFFFF);
}

PTO_HOST_LOOP uint32_t bits_of(const QuarterWarp& flags) {
  constexpr QuarterWarp kBits = {1, 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 5, 1 << 6, 1 << 7};
  const QuarterWarp chosen = flags & kBits;
  uint64_t words[4];
  __builtin_memcpy(words, &chosen, sizeof(words));
  const uint64_t folded = (words[0] | words[1]) | (words[2] | words[3]);
  return static_cast<uint32_t>((folded | folded >> 32) & 0xFF);
}

/// Lanes of the mask with a place that a lane before them has, where places lie close together.
PTO_HOST_LOOP bool find_near_repeats(const Places& place, uint32_t mask, uint32_t& repeated) {
  constexpr unsigned kLanes = LanePlaces::kLanes;
  constexpr uint32_t kReach = 1u << 14;
  SmallLaneNumbers near;
  uint32_t far = 0;
  for (unsigned i = 0; i < kLanes; ++i) {
    const uint32_t from_first = place[i] - place[0] + kReach;
    const uint32_t inactive = (mask & (1u << i)) != 0 ? 0u : SmallLaneNumbers::kNone;
    far |= from_first;
    near.number[i] = SmallLaneNumbers::kNone;
    near.lanes()[i] = static_cast<uint16_t>(from_first | inactive);
  }
  if (far >= 2 * kReach) {
    return false;
  }
  HalfWarp found[2] = {};
  for_each_pair(near, [&](unsigned half, const HalfWarp& own, const HalfWarp& other) {
    found[half] |= own == other;
  });
  repeated = bits_of(found[0]) | bits_of(found[1]) << (kLanes / 2);
  return true;
}

PTO_HOST_LOOP uint32_t repeated_lanes(const Places& place, uint32_t mask) {
  constexpr unsigned kLanes = LanePlaces::kLanes;
  uint32_t repeated = 0;
  if (find_near_repeats(place, mask, repeated)) {
    return repeated;
  }
  LaneNumbers own;
  for (unsigned i = 0; i < kLanes; ++i) {
    own.number[i] = LaneNumbers::kNone;
    own.lanes()[i] = (mask & (1u << i)) != 0 ? place[i] : LaneNumbers::kNone;
  }
  std::array<uint32_t, kLanes> repeats;
  find_repeats(own, repeats.data());
  for (unsigned i = 0; i < kLanes; ++i) {
    repeated |= repeats[i] & (1u << i);
  }
  return repeated;
}

/// Of lines from `first` on, whose count is a power of two.
struct NumberTable {
  const uint32_t* numbers = nullptr;
  uint64_t first = 0;
  uint64_t count = 0;
  uint32_t latest = 0;
  uint32_t old_age = 0;
};

/// False: some lane has two lines, or one that is not in the table.
PTO_HOST_LOOP bool place_lanes(const uint64_t* __restrict addresses,
                               uint32_t mask,
                               uint32_t bytes,
                               unsigned shift,
                               const NumberTable& __restrict table,
                               LanePlaces& __restrict found) {
  constexpr unsigned kLanes = LanePlaces::kLanes;
  const uint64_t some = addresses[std::countr_zero(mask)];
  std::array<uint64_t, kLanes> patched;
  for (uint64_t i = 0; i < kLanes; ++i) {
    patched[i] = (uint64_t{mask} & (uint64_t{1} << i)) != 0 ? addresses[i] : some;
  }
  uint64_t second = 0;
  uint64_t outside = 0;
  for (unsigned i = 0; i < kLanes; ++i) {
    const uint64_t place = (patched[i] >> shift) - table.first;
    second |= (patched[i] ^ (patched[i] + bytes - 1)) >> shift;
    outside |= place;
    patched[i] = place;
  }
  if (second != 0 || outside >= table.count) {
    return false;
  }
  for (unsigned i = 0; i < kLanes; ++i) {
    found.place[i] = static_cast<uint32_t>(patched[i]);
  }
  const uint32_t distinct = mask & ~repeated_lanes(found.place, mask);
  uint32_t old = 0;
  constexpr unsigned kQuarter = kLanes / 4;
  for (unsigned at = 0; at < kLanes; at += kQuarter) {
    const uint32_t* place = found.place.data() + at;
    const uint32_t* numbers = table.numbers;
    const QuarterWarp number = {numbers[place[0]],
                                numbers[place[1]],
                                numbers[place[2]],
                                numbers[place[3]],
                                numbers[place[4]],
                                numbers[place[5]],
                                numbers[place[6]],
                                numbers[place[7]]};
    const QuarterWarp age = table.latest - number;
    const QuarterWarp is_old = age >= table.old_age;
    old |= bits_of(is_old) << at;
  }
  found.lines = static_cast<unsigned>(std::popcount(distinct));
  found.old = distinct & old;
  return true;
}

} // namespace

FillRing::FillRing(uint32_t slots, uint64_t most_lines, uint32_t first_number)
    : slots_(slots), most_lines_(most_lines), fills_(first_number + slots), lines_(slots) {}

FillRing::FillRing(const FillRing& other)
    : slots_(other.slots_), most_lines_(other.most_lines_), fills_(other.fills_),
      next_slot_(other.next_slot_), held_(other.held_), lines_(other.lines_) {}

FillRing& FillRing::operator=(const FillRing& other) {
  if (this != &other) {
    *this = FillRing(other);
  }
  return *this;
}

uint32_t FillRing::find_without_numbers(uint64_t line) const {
  for (uint32_t slot = 0; slot < held_; ++slot) {
    if (lines_[slot].line == line) {
      return slot;
    }
  }
  return kNoSlot;
}

void FillRing::write_numbers(uint64_t first_line, uint64_t count) {
  first_line_ = first_line;
  numbers_ = decltype(numbers_)(count);
  for (uint32_t age = 0; age < held_; ++age) {
    numbers_[lines_[slot_of_age(age)].line - first_line] = fills_ - age;
  }
}

bool FillRing::grow(uint64_t line) {
  uint64_t first = line;
  uint64_t last = line;
  if (!numbers_.empty()) {
    first = std::min(first, first_line_);
    last = std::max(last, first_line_ + numbers_.size() - 1);
  } else {
    for (uint32_t slot = 0; slot < held_; ++slot) {
      first = std::min(first, lines_[slot].line);
      last = std::max(last, lines_[slot].line);
    }
  }
  first -= first % kLeastLines;
  if (last - first >= most_lines_) {
    return false;
  }
  write_numbers(first, std::bit_ceil(std::max(last - first + 1, kLeastLines)));
  return true;
}

void FillRing::renumber() {
  fills_ = 2 * slots_;
  write_numbers(first_line_, numbers_.size());
}

void FillRing::clear() {
  if (fills_ > UINT32_MAX - 2 * slots_) {
    renumber();
  }
  fills_ += slots_; // what was there is too old now
  next_slot_ = 0;
  held_ = 0;
  lines_ = decltype(lines_)(slots_);
}

LineUse FillRing::bring_in_range(uint64_t first, uint64_t last) {
  LineUse use;
  for (uint64_t line = first; line <= last; ++line) {
    const auto place = static_cast<size_t>(line - first_line_);
    ++use.lines;
    if (fills_ - numbers_[place] < slots_) {
      ++use.hits;
    } else {
      count_fill(place);
    }
  }
  return use;
}

std::optional<LineUse> FillRing::bring_in(const WarpAddresses& access, uint32_t line_bytes) {
  const auto shift = static_cast<unsigned>(std::countr_zero(line_bytes));
  const auto lane = static_cast<unsigned>(std::countr_zero(access.mask));
  if (access.is_run || access.is_same) {
    const uint64_t begin = access.addresses[lane];
    const uint64_t bytes = uint64_t{access.bytes} * (access.is_run ? isa::kWarpLanes : 1);
    const uint64_t first = begin >> shift;
    const uint64_t last = (begin + bytes - 1) >> shift;
    if (first - first_line_ >= numbers_.size() || last - first_line_ >= numbers_.size()) {
      return std::nullopt;
    }
    return bring_in_range(first, last);
  }
  // Fills of this access may drive out what was there when it began.
  const uint32_t old_age = slots_ - std::min(slots_, isa::kWarpLanes);
  const NumberTable table{numbers_.data(), first_line_, numbers_.size(), fills_, old_age};
  LanePlaces lanes;
  if (!isa::host_loop<place_lanes>.on_host()(
          access.addresses, access.mask, access.bytes, shift, table, lanes)) {
    return std::nullopt;
  }
  LineUse use{lanes.lines, lanes.lines};
  for (uint32_t rest = lanes.old; rest != 0; rest &= rest - 1) {
    const uint32_t place = lanes.place[static_cast<unsigned>(std::countr_zero(rest))];
    if (fills_ - numbers_[place] >= slots_) {
      count_fill(place);
      --use.hits;
    }
  }
  return use;
}

} // namespace pto::sim
