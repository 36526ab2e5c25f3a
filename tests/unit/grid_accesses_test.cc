// SPDX-License-Identifier: Apache-2.0
// Lanes that meet are found, against a look at all pairs of lanes.
#include "random_choice.h"
#include "simulator/grid_accesses.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

namespace pto::sim {
namespace {

using isa::AffineRegion;
using isa::AffineValue;
using isa::HalfSpace;
using isa::kAxes;
using Access = GridAccesses::Access;
using Meeting = GridAccesses::Meeting;
using Place = std::array<uint32_t, kAxes>;

constexpr uint64_t kBase = 100000;

template <class Call> void each_place(const AffineRegion& region, Call&& call) {
  Place place{};
  while (true) {
    const bool is_in =
        std::all_of(region.cuts().begin(), region.cuts().end(), [&](const HalfSpace& cut) {
          int64_t sum = 0;
          for (size_t i = 0; i < kAxes; ++i) {
            sum += cut.steps[i] * int64_t{place[i]};
          }
          return sum <= cut.most;
        });
    if (is_in) {
      call(place);
    }
    size_t i = 0;
    while (i < kAxes && ++place[i] == region.extents()[i]) {
      place[i++] = 0;
    }
    if (i == kAxes) {
      return;
    }
  }
}

Access access_of(const AffineRegion& region, const AffineValue& at, uint64_t bytes, bool writes) {
  std::array<int64_t, kAxes> steps{};
  std::copy(at.steps.begin(), at.steps.end(), steps.begin());
  const auto bounds = region.bounds(steps);
  REQUIRE(bounds.has_value());
  return {at,
          bytes,
          writes,
          at.base + static_cast<uint64_t>(bounds->lowest),
          at.base + static_cast<uint64_t>(bounds->highest) + bytes,
          region};
}

/// Byte by byte.
Meeting meeting_by_bytes(const std::vector<Access>& accesses) {
  struct Use {
    Place place{};
    bool writes = false;
  };
  std::map<uint64_t, std::vector<Use>> uses;
  for (const Access& access : accesses) {
    each_place(access.region, [&](const Place& place) {
      uint64_t address = access.at.base;
      for (size_t i = 0; i < kAxes; ++i) {
        address += access.at.steps[i] * place[i];
      }
      for (uint64_t byte = 0; byte < access.bytes; ++byte) {
        uses[address + byte].push_back({place, access.writes});
      }
    });
  }
  Meeting found = Meeting::kNone;
  for (const auto& [address, users] : uses) {
    for (const Use& a : users) {
      for (const Use& b : users) {
        if ((a.writes || b.writes) && a.place != b.place) {
          const bool is_one_block = std::equal(a.place.begin() + isa::kFirstBlockAxis,
                                               a.place.end(),
                                               b.place.begin() + isa::kFirstBlockAxis);
          found = std::max(found, is_one_block ? Meeting::kWithinBlock : Meeting::kAny);
        }
      }
    }
  }
  return found;
}

Meeting meeting_of(const std::vector<Access>& accesses) {
  GridAccesses all;
  for (const Access& access : accesses) {
    REQUIRE(all.add(access));
  }
  return all.meeting();
}

AffineValue value_of(uint64_t base, const std::array<int64_t, kAxes>& steps) {
  AffineValue value = AffineValue::uniform(base);
  std::copy(steps.begin(), steps.end(), value.steps.begin());
  return value;
}

} // namespace

TEST_CASE("tiles of a transpose") {
  // out[(ctaid.x * 32 + tid.y + 8 i) * rows + ctaid.y * 32 + tid.x]
  const auto stores = [](uint32_t rows, int64_t columns_done) {
    AffineRegion region({32, 8, 1, 3, (rows + 31) / 32, 1});
    region.cut({{1, 0, 0, 0, 32, 0}, int64_t{rows} - 1});
    std::vector<Access> accesses;
    for (uint64_t i = 0; i < 4; ++i) {
      const int64_t pitch = 4 * int64_t{rows};
      accesses.push_back(access_of(region,
                                   value_of(kBase + static_cast<uint64_t>(columns_done * pitch) * i,
                                            {4, pitch, 0, 32 * pitch, 128, 0}),
                                   4,
                                   true));
    }
    return accesses;
  };
  for (const uint32_t rows : {32u, 96u, 90u, 33u, 1u}) {
    CAPTURE(rows);
    CHECK(meeting_by_bytes(stores(rows, 8)) == Meeting::kNone);
    CHECK(meeting_of(stores(rows, 8)) == Meeting::kNone);
    CHECK(meeting_by_bytes(stores(rows, 7)) == Meeting::kWithinBlock);
    CHECK(meeting_of(stores(rows, 7)) == Meeting::kWithinBlock);
    CHECK(meeting_by_bytes(stores(rows, 9)) == Meeting::kAny);
    CHECK(meeting_of(stores(rows, 9)) == Meeting::kAny);
  }
}

TEST_CASE("random accesses: no meeting is missed") {
  std::mt19937 random(3);
  RandomChoice choose(random);
  unsigned counts[3] = {};
  unsigned exact = 0;
  for (int round = 0; round < 4000; ++round) {
    std::array<uint32_t, kAxes> extents{};
    std::generate(extents.begin(), extents.end(), [&] {
      return static_cast<uint32_t>(choose.between(0, 2) == 0 ? 1 : choose.between(1, 4));
    });
    // An address that counts through some axes in some order, with or without gaps.
    std::array<size_t, kAxes> order = {0, 1, 2, 3, 4, 5};
    std::shuffle(order.begin(), order.end(), random);
    std::array<int64_t, kAxes> steps{};
    int64_t next = 4;
    for (const size_t i : order) {
      steps[i] = choose.between(0, 9) == 0 ? 0 : choose.between(0, 5) == 0 ? -next : next;
      next *= int64_t{extents[i]} + (choose.between(0, 7) == 0 ? choose.between(-1, 1) : 0);
      next = std::max<int64_t>(next, 4);
    }
    const size_t fast = order[0];
    const size_t slow = order[1];
    HalfSpace cut;
    cut.steps[fast] = 1;
    cut.steps[slow] = int64_t{extents[fast]};
    cut.most = choose.between(0, 12);
    const bool has_cut = choose.between(0, 1) == 0;
    if (has_cut) { // rows of so many lanes
      for (size_t i = 2; i < kAxes; ++i) {
        steps[order[i]] = steps[order[i]] /
                          std::max<int64_t>(1, int64_t{extents[fast]} * extents[slow]) *
                          (cut.most + 1);
      }
    }
    std::vector<Access> accesses;
    for (int i = choose.between(1, 3); i > 0; --i) {
      AffineRegion region(extents);
      if (has_cut) {
        region.cut(cut);
      }
      const int64_t apart =
          choose.between(0, 2) == 0 ? 0 : 4 * choose.between(-6, 6) + (choose.between(0, 9) == 0);
      std::array<int64_t, kAxes> own = steps;
      if (choose.between(0, 9) == 0) {
        own[order[2]] += 4;
      }
      accesses.push_back(access_of(region,
                                   value_of(kBase + static_cast<uint64_t>(apart), own),
                                   choose.between(0, 3) == 0 ? 8 : 4,
                                   choose.between(0, 2) != 0));
    }
    const Meeting truth = meeting_by_bytes(accesses);
    const Meeting told = meeting_of(accesses);
    REQUIRE(told >= truth);
    ++counts[static_cast<size_t>(truth)];
    exact += told == truth ? 1 : 0;
  }
  for (const unsigned count : counts) {
    CHECK(count > 200);
  }
  CHECK(exact > 3000);
}

TEST_CASE("accesses that cannot be told apart may meet") {
  const AffineRegion box({32, 1, 1, 4, 1, 1});
  const auto up = access_of(box, value_of(kBase, {4, 0, 0, 128, 0, 0}), 4, true);
  const auto down = access_of(box, value_of(kBase + 508, {-4, 0, 0, -128, 0, 0}), 4, false);
  CHECK(meeting_of({up}) == Meeting::kNone);
  CHECK(meeting_of({down}) == Meeting::kNone); // reads
  CHECK(meeting_of({up, down}) == Meeting::kAny);
  const auto apart = access_of(box, value_of(kBase + 1020, {-4, 0, 0, -128, 0, 0}), 4, false);
  CHECK(meeting_of({up, apart}) == Meeting::kNone);
  const auto huge = Access{value_of(kBase, {int64_t{1} << 50, 0, 0, 4, 0, 0}),
                           4,
                           true,
                           kBase,
                           kBase + (uint64_t{1} << 56),
                           box};
  CHECK(meeting_of({huge}) == Meeting::kAny);
  GridAccesses many;
  bool has_room = true;
  for (uint64_t i = 0; i < 3000 && has_room; ++i) {
    has_room = many.add(access_of(box, value_of(kBase + 512 * i, {4, 0, 0, 128, 0, 0}), 4, true));
  }
  CHECK_FALSE(has_room);
}

} // namespace pto::sim
