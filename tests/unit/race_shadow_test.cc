// SPDX-License-Identifier: Apache-2.0
// What the race check remembers: packed lines against plain cells, and what fences make known.
#include "simulator/checks/happens_before.h"
#include "simulator/checks/packed_line.h"

#include <doctest/doctest.h>

#include <array>
#include <random>

namespace pto::sim {
namespace {

bool is_same(const AccessEntry& a, const AccessEntry& b) {
  return a.agent == b.agent && a.time == b.time && a.pc == b.pc && a.is_line == b.is_line &&
         a.lane == b.lane;
}

bool is_same(const AccessCell& a, const AccessCell& b) {
  return is_same(a.write, b.write) && is_same(a.reads[0], b.reads[0]) &&
         is_same(a.reads[1], b.reads[1]) && a.write_bytes == b.write_bytes &&
         a.read_bytes == b.read_bytes && a.is_write_atomic == b.is_write_atomic;
}

TEST_CASE("a packed line says of every word what was put there, until its slots are full") {
  std::mt19937 engine(7);
  const auto random = [&] { return static_cast<uint32_t>(engine()); };
  size_t kept = 0;
  size_t refused = 0;
  size_t wrong = 0;
  for (unsigned round = 0; round < 200; ++round) {
    AccessCell line;
    if (round % 3 == 0) {
      line.write = {.agent = 70, .time = 2, .pc = 9, .is_line = 1, .lane = 16};
      line.write_bytes = 0xf;
      line.is_write_atomic = round % 2 == 0;
      line.reads[0] = {.agent = kCopyBit | 5, .time = 0, .pc = 12, .is_line = 1};
      line.read_bytes[0] = 0xf;
    }
    PackedLine packed(line);
    std::array<AccessCell, PackedLine::kWords> cells;
    cells.fill(line);
    for (unsigned step = 0; step < 40; ++step) {
      const PackedLine::Shared shared = {64 + 32 * (random() % 2), 1 + random() % 2, random() % 2};
      const unsigned word = random() % PackedLine::kWords;
      const uint32_t warp = random() % PackedLine::kMaxWarps;
      const uint32_t lane = random() % 32;
      const bool is_write = random() % 4 == 0;
      PackedLine::Code slot = packed.find_slot(shared);
      if (slot == 0) {
        slot = packed.take_slot(shared, word, is_write ? word + 1 : word);
      }
      if (slot == 0) {
        ++refused;
        break;
      }
      const AccessEntry entry = {.agent = shared.agent + warp,
                                 .time = shared.time,
                                 .pc = shared.pc & 1,
                                 .lane = lane & 31};
      const PackedLine::Code code = PackedLine::code(slot, warp, lane);
      if (is_write) {
        packed.set(PackedLine::kWrite, word, code | PackedLine::kAtomic);
        packed.set(PackedLine::kRead, word, 0);
        packed.set(PackedLine::kOtherRead, word, 0);
        cells[word] = {.write = entry, .write_bytes = 0xf, .is_write_atomic = true};
      } else {
        const unsigned r = random() % 2;
        packed.set(r == 0 ? PackedLine::kRead : PackedLine::kOtherRead, word, code);
        cells[word].reads[r] = entry;
        cells[word].read_bytes[r] = 0xf;
      }
      for (unsigned w = 0; w < PackedLine::kWords; ++w) {
        wrong += is_same(packed.cell(w), cells[w]) ? 0 : 1;
      }
      ++kept;
    }
  }
  CHECK(wrong == 0);
  CHECK(kept > 1000);
  CHECK(refused > 20);
}

TEST_CASE("a slot that nobody refers to any more is taken again") {
  PackedLine line;
  for (uint32_t time = 1; time <= PackedLine::kSlots; ++time) {
    const PackedLine::Code slot = line.take_slot({.agent = 0, .time = time, .pc = 3}, 0, 0);
    REQUIRE(slot == 1U << (time - 1));
    line.set(PackedLine::kRead, time, PackedLine::code(slot, 1, 2));
  }
  const PackedLine::Shared more = {.agent = 0, .time = 9, .pc = 3};
  CHECK(line.take_slot(more, 0, 0) == 0);
  CHECK(line.take_slot(more, 2, 3) == 2); // a write of word 2 drops the entry there
  CHECK(line.slots_in_use(0, PackedLine::kWords) == 0xf);
  line.set(PackedLine::kRead, 4, 0);
  CHECK(line.take_slot(more, 0, 0) == 8);
}

/// Three blocks of two warps.
HappensBefore three_blocks() {
  HappensBefore order;
  order.begin(2);
  for (uint64_t block = 0; block < 3; ++block) {
    order.block_begin(block);
  }
  return order;
}
constexpr HappensBefore::FlagAccess kAcquire = {.acquires = true};
constexpr HappensBefore::FlagAccess kRelease = {.releases = true};

TEST_CASE("what one flag makes known, the next one passes on") {
  HappensBefore order = three_blocks();
  order.fence(0, 0, true);
  order.flag_access(0, 0, 0x100, kRelease);
  order.flag_access(1, 1, 0x100, kAcquire);
  CHECK(order.is_ordered(order.agent(0, 0), 1, 1, 1));
  CHECK_FALSE(order.is_ordered(order.agent(0, 0), 2, 1, 1)); // after the fence
  CHECK_FALSE(order.is_ordered(order.agent(0, 0), 1, 1, 0)); // another warp
  order.fence(1, 1, true);
  order.flag_access(1, 1, 0x200, kRelease);
  order.flag_access(2, 0, 0x200, kAcquire);
  CHECK(order.is_ordered(order.agent(0, 0), 1, 2, 0));
  CHECK(order.is_ordered(order.agent(1, 1), 1, 2, 0));
}

TEST_CASE("a location keeps what every fence published there, however many") {
  HappensBefore order;
  order.begin(1);
  constexpr uint64_t kBlocks = 30;
  for (uint64_t block = 0; block <= kBlocks; ++block) {
    order.block_begin(block);
  }
  for (uint64_t block = 0; block < kBlocks; ++block) {
    order.fence(block, 0, true);
    order.flag_access(block, 0, 0x100, kRelease);
    order.flag_access(kBlocks, 0, 0x100, kAcquire);
    for (uint64_t earlier = 0; earlier < kBlocks; ++earlier) {
      CHECK(order.is_ordered(order.agent(earlier, 0), 1, kBlocks, 0) == (earlier <= block));
    }
  }
}

TEST_CASE("fence.block makes known to warps of the same block only") {
  HappensBefore order = three_blocks();
  order.fence(0, 0, false);
  order.flag_access(0, 0, 0x100, kRelease);
  order.flag_access(0, 1, 0x100, kAcquire);
  order.flag_access(1, 0, 0x100, kAcquire);
  CHECK(order.is_ordered(order.agent(0, 0), 1, 0, 1));
  CHECK_FALSE(order.is_ordered(order.agent(0, 0), 1, 1, 0));
  // The location forgets it once another block publishes there.
  order.fence(1, 0, true);
  order.flag_access(1, 0, 0x100, kRelease);
  order.flag_access(2, 0, 0x100, kAcquire);
  CHECK(order.is_ordered(order.agent(1, 0), 1, 2, 0));
  CHECK_FALSE(order.is_ordered(order.agent(0, 0), 1, 2, 0));
}

} // namespace
} // namespace pto::sim
