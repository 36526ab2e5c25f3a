// SPDX-License-Identifier: Apache-2.0
// Words far apart, one a lane: gathers and scatters. All shadow that a warp needs is looked up
// first, so that the host's cache fetches it at once, then the lanes are judged in order.
#include "simulator/checks/race_check.h"
#include "simulator/each_lane.h"

#include <array>

namespace pto::sim {

namespace {

struct Lanes {
  std::array<uint64_t, isa::kWarpLanes> addresses{};
  std::array<uint8_t, isa::kWarpLanes> numbers{};
  size_t count = 0;
};

struct Places {
  std::array<AccessCell*, isa::kWarpLanes> lines;
  std::array<AccessShadow::Place, isa::kWarpLanes> parts;
};

[[gnu::always_inline]] inline void
look_up(AccessShadow& shadow, const Lanes& lanes, Places& places, bool prefetches) {
  for (size_t i = 0; i < lanes.count; ++i) {
    places.lines[i] = &shadow.line_of_scattered(lanes.addresses[i]);
    if (prefetches) {
      AccessShadow::prefetch(*places.lines[i]);
    }
  }
  for (size_t i = 0; i < lanes.count; ++i) {
    places.parts[i] = shadow.place_of(*places.lines[i], lanes.addresses[i]);
    if (prefetches) {
      AccessShadow::prefetch(places.parts[i]);
    }
  }
}

} // namespace

std::optional<RaceCheck::Order> RaceCheck::scattered_words(const WarpAccess& warp, Access access) {
  if (access.lane_bytes != AccessShadow::kWordBytes) {
    return std::nullopt;
  }
  Lanes lanes;
  bool is_apart = true;
  bool ascends = true;
  uint64_t end = 0; // of the lane before
  for_each_lane(&warp.mask, 1, [&](unsigned lane) {
    const uint64_t address = warp.address(lane);
    const bool is_first = lanes.count == 0;
    is_apart &= is_first || (address != end && address + AccessShadow::kWordBytes != end);
    ascends &= is_first || address >= end;
    end = address + AccessShadow::kWordBytes;
    lanes.addresses[lanes.count] = address;
    lanes.numbers[lanes.count++] = static_cast<uint8_t>(lane);
  });
  if (!is_apart) {
    return std::nullopt;
  }
  AccessShadow& shadow = *access.shadow;
  Places places;
  look_up(shadow, lanes, places, shadow.is_large());
  access.bytes = AccessShadow::kWordBytes;
  const bool is_plain_read =
      access.reads && !access.writes && !access.is_atomic && !access.is_volatile;
  const bool packs = access.by.warp() < PackedLine::kMaxWarps;
  const PackedLine::Shared shared = {access.by.first_agent(), access.time, access.pc};
  for (size_t i = 0; i < lanes.count; ++i) {
    const uint64_t address = lanes.addresses[i];
    AccessCell& line = *places.lines[i];
    const AccessShadow::Place& part = places.parts[i];
    // A lane before may have split the line. What is split stays where it is.
    if (part.packed != nullptr && line.is_packed && is_plain_read && packs) {
      PackedLine& packed = *part.packed;
      const unsigned word = AccessShadow::word_of(address);
      if (packed.at(PackedLine::kWrite, word) == 0 && packed.at(PackedLine::kRead, word) == 0) {
        if (const PackedLine::Code slot = packed.find_slot(shared); slot != 0) {
          packed.set(
              PackedLine::kRead, word, PackedLine::code(slot, access.by.warp(), lanes.numbers[i]));
          continue;
        }
      }
    }
    access.first_lane = lanes.numbers[i];
    access.address = address;
    if (part.word != nullptr && AccessShadow::is_whole(*part.word)) {
      touch(*part.word, AccessShadow::kAllBytes, address, AccessShadow::kWordBytes, access);
    } else {
      shadow.visit_in_line(
          line, address, address + AccessShadow::kWordBytes, Visitor{*this, access});
    }
  }
  return ascends ? Order::kAscending : Order::kAny;
}

} // namespace pto::sim
