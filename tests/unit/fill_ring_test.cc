// SPDX-License-Identifier: Apache-2.0
// A cache that fills in order says the same as a ring of fill numbers and as lists of slots.
#include "isa/insn.h"
#include "simulator/timing/data_cache.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <random>

namespace pto::sim {
namespace {

constexpr uint32_t kLineBytes = 128;
constexpr uint32_t kSlots = 100;

CacheTags lists(uint32_t slots = kSlots) {
  return CacheTags(slots, 0, CacheTags::Replacement::kFillOrder);
}

CacheTags ring(uint64_t lines, uint32_t slots = kSlots) {
  return CacheTags(slots, 0, CacheTags::Replacement::kFillOrder, lines);
}

void check_same(const CacheTags& a, const CacheTags& b) {
  REQUIRE(a.slot_count() == b.slot_count());
  REQUIRE(a.latest_ready() == b.latest_ready());
  for (uint32_t slot = 0; slot < a.slot_count(); ++slot) {
    const std::optional<uint64_t> line = a.line_in(slot);
    REQUIRE(line == b.line_in(slot));
    if (line) {
      REQUIRE(a.find(*line) == slot);
      REQUIRE(b.find(*line) == slot);
      REQUIRE(a.ready(slot) == b.ready(slot));
    }
  }
}

/// Lanes of one access, some of them on the same lines.
struct Lanes {
  std::array<uint64_t, isa::kWarpLanes> addresses{};
  WarpAddresses access;

  Lanes(std::mt19937_64& random, uint64_t lines) {
    const auto kind = random() % 6;
    const uint64_t base = random() % lines * kLineBytes;
    for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
      addresses[lane] = kind == 0   ? base
                        : kind == 1 ? base + uint64_t{lane} * 4
                        : kind == 2 ? base + uint64_t{lane} * 60 // ascends
                        : kind == 3 ? (base / kLineBytes + random() % 5) * kLineBytes
                        : kind == 4 ? base + random() % (1 << 21) // far from each other
                                    : random() % (lines * kLineBytes);
      addresses[lane] -= addresses[lane] % 4;
    }
    const auto some = static_cast<uint32_t>(random() | 1u << random() % 32);
    access = {random() % 2 == 0 ? ~0u : some, addresses.data(), 4};
    if (random() % 4 == 0) {
      access.bytes = 16; // may reach into a second line
    }
    access.is_same = kind == 0;
    access.is_run = kind == 1 && access.mask == ~0u && access.bytes == 4;
  }
};

TEST_CASE("accesses meet in a ring what they meet in lists") {
  std::mt19937_64 random(7);
  for (const uint64_t lines : {150, 4'000, 100'000}) {
    CacheTags as_lists = lists();
    CacheTags as_ring = ring(1 << 21);
    for (unsigned round = 0; round < 3'000; ++round) {
      const Lanes lanes(random, lines);
      const LineUse expected = as_lists.bring_in(lanes.access, kLineBytes);
      const LineUse found = as_ring.bring_in(lanes.access, kLineBytes);
      REQUIRE(found.lines == expected.lines);
      REQUIRE(found.hits == expected.hits);
      if (round % 100 == 0) {
        check_same(as_ring, as_lists);
      }
    }
    check_same(as_ring, as_lists);
  }
}

TEST_CASE("whatever is done with single lines, a ring and lists agree") {
  std::mt19937_64 random(11);
  for (unsigned run = 0; run < 40; ++run) {
    // Some runs soon reach lines that no ring of this length has.
    const uint64_t lines = run % 4 == 0 ? uint64_t{1} << 40 : 200 + random() % 5'000;
    CacheTags as_lists = lists(run % 5 == 0 ? 3 : kSlots);
    CacheTags as_ring = ring(1 << 13, run % 5 == 0 ? 3 : kSlots);
    for (unsigned step = 0; step < 2'000; ++step) {
      const uint64_t line = random() % lines;
      const auto choice = random() % 1'000;
      if (choice == 0) {
        as_lists.invalidate_all();
        as_ring.invalidate_all();
      } else if (choice < 3 && run % 2 == 0) {
        REQUIRE(as_ring.invalidate(line) == as_lists.invalidate(line));
      } else if (choice == 3) {
        as_lists.forget_ready();
        as_ring.forget_ready();
      } else if (choice < 6) {
        const CacheTags copy = as_ring;
        check_same(copy, as_lists);
        as_ring = copy;
      } else {
        const uint32_t slot = as_ring.touch_slot(line);
        REQUIRE(slot == as_lists.touch_slot(line));
        if (slot == CacheTags::kNoSlot) {
          const auto found = as_ring.fill(line);
          const auto expected = as_lists.fill(line);
          REQUIRE(found->slot == expected->slot);
          REQUIRE(found->has_victim == expected->has_victim);
          REQUIRE((!found->has_victim || found->victim == expected->victim));
          const auto ready = static_cast<double>(random() % 100);
          as_ring.set_ready(found->slot, ready);
          as_lists.set_ready(found->slot, ready);
        }
      }
    }
    check_same(as_ring, as_lists);
  }
}

TEST_CASE("numbers of fills run out and begin again") {
  constexpr uint32_t kFew = 4;
  FillRing tags(kFew, 1 << 13, UINT32_MAX - kFew - 10);
  std::deque<uint64_t> cached;
  for (uint64_t line = 0; line < 40; ++line) {
    REQUIRE(tags.reach(line * 3 % 40));
    REQUIRE(tags.find(line * 3 % 40) == FillRing::kNoSlot);
    REQUIRE(tags.add(line * 3 % 40).slot == line % kFew);
    cached.push_back(line * 3 % 40);
    if (cached.size() > kFew) {
      cached.pop_front();
    }
    for (uint64_t other = 0; other < 40; ++other) {
      const bool is_there = std::find(cached.begin(), cached.end(), other) != cached.end();
      REQUIRE((tags.find(other) != FillRing::kNoSlot) == is_there);
    }
  }
  for (unsigned i = 0; i < 20; ++i) { // the same by clearing
    FillRing other(kFew, 1 << 13, UINT32_MAX - kFew - 10);
    REQUIRE(other.reach(5));
    for (unsigned k = 0; k < i; ++k) {
      REQUIRE(other.find(5) == FillRing::kNoSlot);
      REQUIRE(other.add(5).slot == 0);
      REQUIRE(other.find(5) == 0);
      other.clear();
    }
    REQUIRE(other.find(5) == FillRing::kNoSlot);
  }
}

} // namespace
} // namespace pto::sim
