// SPDX-License-Identifier: Apache-2.0
// Words one by one, a lane each: gathers, scatters, atomics. All shadow that a warp needs is looked
// up first, so that the host's cache fetches it at once, then the lanes are judged in order.
#include "simulator/checks/race_packed.h"
#include "simulator/each_lane.h"

#include <algorithm>
#include <array>

namespace pto::sim {

namespace {

constexpr std::array<uint8_t, isa::kWarpLanes> kAllLanes = [] {
  std::array<uint8_t, isa::kWarpLanes> numbers{};
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<uint8_t>(i);
  }
  return numbers;
}();

/// The lanes of a mask, side by side.
class Lanes {
public:
  template <class WarpAccess> explicit Lanes(const WarpAccess& warp) {
    if (warp.mask == ~0u && warp.addresses != nullptr) {
      addresses = warp.addresses;
      numbers = kAllLanes.data();
      count = isa::kWarpLanes;
      return;
    }
    addresses = own_addresses_.data();
    numbers = own_numbers_.data();
    own_addresses_[0] = 0; // in case that no lane is active
    for_each_lane(&warp.mask, 1, [&](unsigned lane) {
      own_addresses_[count] = warp.address(lane);
      own_numbers_[count++] = static_cast<uint8_t>(lane);
    });
  }
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  const uint64_t* addresses = nullptr;
  const uint8_t* numbers = nullptr;
  size_t count = 0;

private:
  std::array<uint64_t, isa::kWarpLanes> own_addresses_;
  std::array<uint8_t, isa::kWarpLanes> own_numbers_;
};

/// How the words of lanes lie to each other.
struct Arrangement {
  bool has_neighbours = false; // of two lanes in turn: at one word, or the second at the next one
  bool is_apart = false;       // no two lanes are at one word; may be false even so
};

Arrangement arrangement_of(const Lanes& lanes) {
  constexpr uint64_t kWordBytes = AccessShadow::kWordBytes;
  unsigned near = 0;
  unsigned descents = 0;
  for (size_t i = 1; i < lanes.count; ++i) {
    const uint64_t step = lanes.addresses[i] - lanes.addresses[i - 1];
    near += step == 0 || step == kWordBytes ? 1 : 0;
    descents += static_cast<int64_t>(step) < static_cast<int64_t>(kWordBytes) ? 1 : 0;
  }
  // Rows that begin elsewhere, as along the diagonals of a tile: what comes after the one descent
  // lies before all else.
  const bool wraps = descents == 1 && lanes.addresses[lanes.count - 1] < lanes.addresses[0];
  return {.has_neighbours = near != 0, .is_apart = descents == 0 || wraps};
}

struct Shadows {
  std::array<AccessCell*, isa::kWarpLanes> lines;
  std::array<AccessShadow::Place, isa::kWarpLanes> places; // if `are_far`
  bool are_far;                                            // from the host's processor
};

// Always inline, for the sake of what only prefetches.
[[gnu::always_inline]] inline void
look_up(AccessShadow& shadow, const Lanes& lanes, Shadows& shadows) {
  shadow.lines_of(lanes.addresses, lanes.count, shadows.lines.data());
  shadows.are_far = shadow.is_large();
  if (!shadows.are_far) {
    return;
  }
  for (size_t i = 0; i < lanes.count; ++i) {
    AccessShadow::prefetch(*shadows.lines[i]);
  }
  for (size_t i = 0; i < lanes.count; ++i) {
    shadows.places[i] = shadow.place_of(*shadows.lines[i], lanes.addresses[i]);
    AccessShadow::prefetch(shadows.places[i]);
  }
}

} // namespace

std::optional<RaceCheck::Overlap> RaceCheck::scattered_words(const WarpAccess& warp,
                                                             Access access) {
  if (access.lane_bytes != AccessShadow::kWordBytes) {
    return std::nullopt;
  }
  const Lanes lanes(warp);
  const Arrangement arrangement = arrangement_of(lanes);
  if (arrangement.has_neighbours) {
    return std::nullopt; // they are one access
  }
  AccessShadow& shadow = *access.shadow;
  Shadows shadows;
  look_up(shadow, lanes, shadows);
  const bool packs = is_packable(access) && (access.writes || keeps_read_of(access));
  PackedTouch packed(order_, access);
  for (size_t i = 0; i < lanes.count; ++i) {
    const uint64_t address = lanes.addresses[i];
    AccessCell& line = *shadows.lines[i];
    const AccessShadow::Place place =
        shadows.are_far ? shadows.places[i] : shadow.place_of(line, address);
    // A lane before may have split the line. What is split stays where it is.
    if (place.packed != nullptr && line.is_packed && packs) {
      const unsigned word = AccessShadow::word_of(address);
      if (access.writes ? packed.write_word(*place.packed, word, lanes.numbers[i])
                        : packed.read_word(*place.packed, word, lanes.numbers[i])) {
        continue;
      }
    }
    access.first_lane = lanes.numbers[i];
    access.address = address;
    access.bytes = AccessShadow::kWordBytes;
    if (place.word != nullptr && AccessShadow::is_whole(*place.word)) {
      touch(*place.word, AccessShadow::kAllBytes, address, access.bytes, access);
    } else {
      shadow.visit_in_line(line, address, address + access.bytes, Visitor{*this, access});
    }
  }
  return arrangement.is_apart ? Overlap::kNone : Overlap::kPerhaps;
}

// Words that belong together are one access only as far as they are a line, and a line that is
// split is none. So the lanes before the first one that needs more may be judged one by one.
uint32_t RaceCheck::atomic_words(const WarpAccess& warp, const Access& access) {
  if (access.lane_bytes != AccessShadow::kWordBytes) {
    return warp.mask;
  }
  const Lanes lanes(warp);
  AccessShadow& shadow = *access.shadow;
  Shadows shadows;
  look_up(shadow, lanes, shadows);
  const Agent agent = access.agent;
  const uint32_t time = access.time;
  const uint32_t pc = access.pc;
  for (size_t i = 0; i < lanes.count; ++i) {
    const uint64_t address = lanes.addresses[i];
    AccessCell& line = *shadows.lines[i];
    if (!line.is_split) {
      return warp.mask & ~0u << lanes.numbers[i];
    }
    AccessCell& word = shadow.word_in(line, address);
    if (word.is_left_to_atomics()) {
      word.write = {
          .agent = agent, .time = time, .pc = pc & 0x3ffffff, .lane = lanes.numbers[i] & 31u};
    } else {
      word_of_lane(line, address, lanes.numbers[i], access);
    }
  }
  return 0;
}

[[gnu::noinline]] void
RaceCheck::word_of_lane(AccessCell& line, uint64_t address, unsigned lane, Access access) {
  access.bytes = AccessShadow::kWordBytes;
  access.first_lane = lane;
  access.address = address;
  access.shadow->visit_in_line(
      line, address, address + AccessShadow::kWordBytes, Visitor{*this, access});
}

} // namespace pto::sim
