// SPDX-License-Identifier: Apache-2.0
// The memory side of the timing model by parts: servers, tags, shared paths, a core.
#include "simulator/timing/core_memory.h"
#include "simulator/timing/core_queue.h"
#include "strided_access.h"
#include "test_machine.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <vector>

using namespace pto::sim;
using pto::isa::CacheHint;
using pto::isa::CopyDirection;
using pto::isa::MachineProfile;
using pto::sim::test::Strided;
using pto::test::machine;

TEST_CASE("equal servers take requests in turn") {
  Servers pipes(2);
  CHECK(pipes.reserve(0, 4) == 0);
  CHECK(pipes.next_free() == 0);
  CHECK(pipes.reserve(1, 2) == 1);
  CHECK(pipes.next_free() == 3);
  CHECK(pipes.count_free(3) == 1);
  CHECK(pipes.reserve(2, 1) == 3); // the second, which is free first
  CHECK(pipes.count_free(4) == 2);
  pipes.reserve_many(2, 5, 1);
  CHECK(pipes.next_free() == 6);
  pipes.reserve_many(3, 7, 1);
  CHECK(pipes.next_free() == 8);
  CHECK(pipes.most_busy_cycles() == 7); // 4 + 1 + 2 of the first
  CHECK(Servers().next_free() == 0);
}

TEST_CASE("servers choose as a search among all would") {
  std::mt19937 random(5);
  for (const size_t count : {size_t{1}, size_t{2}, size_t{3}, size_t{8}}) {
    Servers servers(count);
    std::vector<Server> plain(count);
    double now = 0;
    for (int i = 0; i < 4000; ++i) {
      now += static_cast<double>(random() % 3);
      const double duration = static_cast<double>(random() % 4) * 0.75;
      const bool are_free = std::all_of(
          plain.begin(), plain.end(), [&](const Server& one) { return one.next_free() <= now; });
      const auto free = std::count_if(
          plain.begin(), plain.end(), [&](const Server& one) { return one.next_free() <= now; });
      CHECK(servers.count_free(now) == static_cast<size_t>(free));
      if (are_free && random() % 2 == 0) {
        servers.reserve_many(count, now, duration);
        for (size_t request = 0; request < count; ++request) {
          first_free(plain).reserve(now, duration);
        }
      } else if (random() % 4 == 0) {
        servers.serve([&](Server& one) { one.hold_until(now + 3); });
        first_free(plain).hold_until(now + 3);
      } else {
        CHECK(servers.reserve(now, duration) == first_free(plain).reserve(now, duration));
      }
      CHECK(servers.next_free() == first_free(plain).next_free());
      double most = 0;
      for (const Server& one : plain) {
        most = std::max(most, one.busy_cycles());
      }
      CHECK(servers.most_busy_cycles() == most);
    }
  }
}

TEST_CASE("the core that comes first") {
  CoreQueue queue(5);
  CHECK(queue.first().cycle == UINT64_MAX);
  queue.set(3, 20);
  queue.set(1, 20);
  queue.set(4, 10);
  CHECK(queue.first().core == 4);
  queue.set(4, 30);
  CHECK(queue.first().core == 1); // of equal cycles the lowest number
  queue.set(1, UINT64_MAX);
  CHECK(queue.first().core == 3);
  queue.set(0, 5);
  CHECK(queue.first().core == 0);
  CHECK(queue.first().cycle == 5);
}

TEST_CASE("a cache that fills in order gives line n slot n") {
  CacheTags tags(4, 0, CacheTags::Replacement::kFillOrder);
  for (uint32_t i = 0; i < 4; ++i) {
    CHECK_FALSE(tags.touch(100 + i).has_value());
    CHECK(tags.fill(100 + i)->slot == i);
  }
  CHECK(tags.touch(100) == 0u);
  const auto fill = tags.fill(200); // 100 is the oldest although just used
  CHECK(fill->slot == 0);
  CHECK(fill->has_victim);
  CHECK(fill->victim == 100);
  CHECK_FALSE(tags.find(100).has_value());
  CHECK(tags.line_in(0) == 200u);
}

TEST_CASE("least recently used goes first") {
  CacheTags tags(2, 0, CacheTags::Replacement::kLru);
  (void)tags.fill(1);
  (void)tags.fill(2);
  CHECK(tags.touch(1).has_value());
  CHECK(tags.fill(3)->victim == 2);
  CHECK(tags.find(1).has_value());
}

TEST_CASE("sets") {
  CacheTags tags(4, 2, CacheTags::Replacement::kLru); // sets of even and odd lines
  (void)tags.fill(0);
  (void)tags.fill(2);
  (void)tags.fill(1);
  CHECK(tags.fill(4)->victim == 0);
  CHECK(tags.find(1).has_value());
}

TEST_CASE("invalidation") {
  CacheTags tags(3, 0, CacheTags::Replacement::kFillOrder);
  for (uint64_t line = 0; line < 3; ++line) {
    (void)tags.fill(line);
  }
  CHECK(tags.invalidate(1));
  CHECK_FALSE(tags.invalidate(1));
  const auto fill = tags.fill(9); // takes the hole and drives nothing out
  CHECK(fill->slot == 1);
  CHECK_FALSE(fill->has_victim);
  tags.invalidate_all();
  CHECK_FALSE(tags.find(9).has_value());
  CHECK(tags.fill(5)->slot == 0);
}

TEST_CASE("a cache without slots never holds anything") {
  CacheTags tags(0, 0, CacheTags::Replacement::kLru);
  CHECK_FALSE(tags.fill(1).has_value());
  CHECK_FALSE(tags.touch(1).has_value());
}

TEST_CASE("lines that share a home, and lines beyond any memory, are told apart") {
  CacheTags tags(4, 0, CacheTags::Replacement::kFillOrder); // 16 homes
  const uint64_t high = uint64_t{1} << 56;
  const uint64_t lines[] = {0, 17, high, high + (uint64_t{1} << 40), 272, high << 1};
  for (unsigned i = 0; i < std::size(lines); ++i) {
    CHECK_FALSE(tags.find(lines[i]).has_value());
    const auto fill = tags.fill(lines[i]);
    CHECK(fill->has_victim == (i >= 4));
    for (unsigned k = 0; k < std::size(lines); ++k) {
      CHECK(tags.find(lines[k]).has_value() == (k <= i && k + 4 > i));
    }
  }
  CHECK(tags.invalidate(lines[3]));
  CHECK_FALSE(tags.find(lines[3]).has_value());
  CHECK(tags.find(lines[2]) == 2u);
}

TEST_CASE("no line comes later than the latest") {
  CacheTags tags(2, 0, CacheTags::Replacement::kFillOrder);
  tags.set_ready(tags.fill(1)->slot, 30);
  tags.set_ready(tags.fill(2)->slot, 20);
  CHECK(tags.latest_ready() == 30);
  tags.forget_ready();
  CHECK(tags.latest_ready() == 0);
  CHECK(tags.ready(0) == 0);
}

TEST_CASE("memory that takes no time counts as memory that takes a little") {
  const MachineProfile none = machine("reference");
  MachineProfile little = none;
  little.l1.line_cycles = 1e-9;
  SharedMemory none_shared(none);
  SharedMemory little_shared(little);
  CoreMemory timeless(none, none_shared);
  CoreMemory looked_up(little, little_shared);
  std::mt19937_64 random(3);
  for (unsigned round = 0; round < 2000; ++round) {
    Strided lanes(random() % (1 << 22) * 4, round % 5 == 0 ? 0 : round % 5 == 1 ? 4 : 0);
    if (round % 5 > 1) {
      for (uint64_t& address : lanes.addresses) {
        address = random() % (1 << 20) * 4;
      }
    }
    WarpAddresses access = lanes.access(4, round % 3 == 0 ? static_cast<uint32_t>(random()) : ~0u);
    access.is_same = round % 5 == 0;
    access.is_run = round % 5 == 1 && access.mask == ~0u;
    const CacheHint hint = round % 11 == 0 ? CacheHint::kL2 : CacheHint::kCached;
    const double now = round * 2.0;
    const ResultTime at_once = timeless.load_hbm(now, access, hint, {4, 1});
    const ResultTime one_by_one = looked_up.load_hbm(now, access, hint, {4, 1});
    REQUIRE(at_once.base_cycle == one_by_one.base_cycle);
    REQUIRE(at_once.unloaded_cycle == doctest::Approx(one_by_one.unloaded_cycle));
    REQUIRE(at_once.done_cycle == doctest::Approx(one_by_one.done_cycle));
    REQUIRE(at_once.reason == one_by_one.reason);
    REQUIRE(timeless.counters().lines == looked_up.counters().lines);
    REQUIRE(timeless.counters().cache_hits == looked_up.counters().cache_hits);
    REQUIRE(timeless.counters().cache_misses == looked_up.counters().cache_misses);
    REQUIRE(timeless.counters().requests == looked_up.counters().requests);
    REQUIRE(timeless.counters().hbm_request_bytes == looked_up.counters().hbm_request_bytes);
    REQUIRE(none_shared.counters().hbm_read_bytes == little_shared.counters().hbm_read_bytes);
    REQUIRE(none_shared.counters().l2_read_bytes == little_shared.counters().l2_read_bytes);
    REQUIRE(none_shared.counters().l2_miss_sectors == little_shared.counters().l2_miss_sectors);
  }
}

TEST_CASE("tags agree with a plain model over many random accesses") {
  CacheTags tags(16, 4, CacheTags::Replacement::kLru);
  std::map<uint64_t, uint64_t> last_use; // the resident lines
  uint64_t seed = 1;
  for (uint64_t time = 0; time < 20'000; ++time) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const uint64_t line = (seed >> 33) % 64;
    const bool was_there = last_use.count(line) != 0;
    REQUIRE(tags.touch(line).has_value() == was_there);
    if (!was_there) {
      const auto fill = tags.fill(line);
      if (fill->has_victim) {
        uint64_t oldest = UINT64_MAX;
        uint64_t victim = 0;
        for (const auto& use : last_use) {
          if (use.first % 4 == line % 4 && use.second < oldest) {
            oldest = use.second;
            victim = use.first;
          }
        }
        REQUIRE(fill->victim == victim);
        last_use.erase(victim);
      }
    }
    last_use[line] = time;
  }
}

TEST_CASE("shared memory: hits cost L2's latency, misses HBM's, and HBM serves one after another") {
  const MachineProfile m = machine("ascend950",
                                   {"l2.latency=100",
                                    "hbm.latency=300",
                                    "hbm.bytes_per_cycle_total=64",
                                    "l2.bytes_per_cycle=0"});
  SharedMemory shared(m);
  CHECK(shared.read(10, 10, 0, 128).cycle == 310);             // miss
  CHECK(shared.read(10, 10, 4096, 128).cycle == 312);          // 128 bytes at 64 a cycle later
  CHECK(shared.read(10, 10, 4096, 128).unloaded_cycle == 312); // still under way
  CHECK(shared.read(1000, 1000, 0, 128).cycle == 1100);        // now in L2
  CHECK(shared.read(1000, 1000, 128, 128).cycle == 1300);      // another sector of the same line
  CHECK(shared.counters().hbm_read_bytes == 384);
  CHECK(shared.counters().l2_hit_sectors == 2);
  shared.warm(1 << 20, 4096);
  CHECK(shared.read(2000, 2000, (1 << 20) + 4095, 1).cycle == 2100);
}

TEST_CASE("shared memory: a sector comes from HBM as a whole, whoever asks for a part of it") {
  const MachineProfile m = machine("ascend950", {"hbm.bytes_per_cycle_total=64"});
  SharedMemory shared(m);
  const double first = shared.read(10, 10, 0, 64).cycle;
  CHECK(shared.counters().hbm_read_bytes == 128);
  CHECK(shared.read(10, 10, 4096, 128).cycle == first + 2); // behind 128 bytes at 64 a cycle
  (void)shared.read(5000, 5000, 64, 64);                    // the rest is there
  CHECK(shared.counters().l2_hit_sectors == 1);
  CHECK(shared.counters().hbm_read_bytes == 256);
  CHECK(shared.counters().l2_read_bytes == 256);

  const MachineProfile without = machine("ascend950", {"l2.bytes=0"});
  SharedMemory direct(without);
  (void)direct.read(10, 10, 0, 64); // nobody keeps the rest
  CHECK(direct.counters().hbm_read_bytes == 64);
}

TEST_CASE("shared memory: what is written back costs HBM bandwidth") {
  const MachineProfile m = machine("ascend950", {"l2.bytes=1024", "hbm.bytes_per_cycle_total=64"});
  SharedMemory shared(m); // two lines of 512 bytes
  (void)shared.write(0, 0, 0, 128);
  (void)shared.write(0, 0, 512, 128);
  CHECK(shared.counters().hbm_write_bytes == 0);
  (void)shared.write(0, 0, 1024, 128); // drives the first line out: one sector of it was written
  CHECK(shared.counters().hbm_write_bytes == 128);
}

TEST_CASE("reference: a miss costs nothing beyond LOAD's latency") {
  const MachineProfile m = machine("reference");
  SharedMemory shared(m);
  CoreMemory core(m, shared);
  const Strided unit(0, 4);
  ResultTime time = core.load_hbm(7, unit.access(4), CacheHint::kCached, {4, 1});
  CHECK(time.done_cycle == 11);
  CHECK(core.counters().cache_misses == 1);
  time = core.load_hbm(8, unit.access(4), CacheHint::kCached, {4, 1});
  CHECK(time.done_cycle == 12);
  CHECK(core.counters().cache_hits == 1);
  CHECK(core.data_cache().line_in(0) == 0u);
  CHECK(core.store_hbm(9, unit.access(4), CacheHint::kCached, {3, 1}).done_cycle == 12);
}

TEST_CASE("a conflict of degree n serves one word a cycle") {
  const MachineProfile m = machine("ascend950", {"l1.conflict_cycles=1", "l1.bytes_per_cycle=0"});
  const std::map<uint64_t, unsigned> degree_of_stride = {{8, 1}, {16, 2}, {64, 8}, {512, 32}};
  for (const auto& item : degree_of_stride) {
    const uint64_t stride = item.first;
    const unsigned degree = item.second;
    SharedMemory shared(m);
    CoreMemory core(m, shared);
    const ResultTime time = core.access_l1(0, Strided(0, stride).access(4), {10, 1});
    INFO("degree ", degree);
    CHECK(time.done_cycle == 10 + degree - 1);
    CHECK(time.base_cycle == 10);
    CHECK(time.reason == StallReason::kBankConflict);
    CHECK(core.pipe_free_cycle() == degree);
    CHECK(core.counters().bank_conflicts == degree - 1);
  }
}

TEST_CASE("lines of a scattered load come in one after another") {
  const MachineProfile m = machine("ascend950",
                                   {"l1.fill_cycles=3",
                                    "l1.line_cycles=1",
                                    "l2.latency=100",
                                    "l2.bytes_per_cycle=0",
                                    "hbm.page_latency=0"});
  SharedMemory shared(m);
  shared.warm(0, 1 << 16);
  CoreMemory core(m, shared);
  const ResultTime time = core.load_hbm(0, Strided(0, 128).access(4), CacheHint::kCached, {10, 4});
  CHECK(time.done_cycle == 31 * 3 + 100 + 10);
  CHECK(core.pipe_free_cycle() == 4 + 32 * 3);
  // The second time every line hits: the pipe looks up one line a cycle.
  const ResultTime again =
      core.load_hbm(500, Strided(0, 128).access(4), CacheHint::kCached, {10, 4});
  CHECK(again.done_cycle == 500 + 31 + 10);
  CHECK(core.pipe_free_cycle() == 532);
}

TEST_CASE(
    "a core's first access to a page waits for its address, later ones and other pages do not") {
  const MachineProfile m = machine("reference",
                                   {"l2.bytes=1048576",
                                    "l2.latency=100",
                                    "hbm.latency=100",
                                    "hbm.page_bytes=65536",
                                    "hbm.page_latency=50"});
  SharedMemory shared(m);
  CoreMemory core(m, shared);
  const auto done = [&](double now, uint64_t address) {
    return core.load_hbm(now, Strided(address, 4).access(4), CacheHint::kCached, {4, 1}).done_cycle;
  };
  CHECK(done(0, 0) == 154);
  CHECK(done(10, 128) == 154);    // the translation is under way
  CHECK(done(200, 256) == 304);   // and is there
  CHECK(done(200, 65536) == 354); // a page of its own
  CHECK(done(400, 512) == 504);   // the first one is still known
  CHECK(done(500, 0) == 504);     // a hit needs no address
  CoreMemory other(m, shared);    // each core has its own
  const ResultTime time = other.load_hbm(600, Strided(0, 4).access(4), CacheHint::kCached, {4, 1});
  CHECK(time.done_cycle == 754);
  CHECK(time.unloaded_cycle == 754); // a latency, no want of bandwidth
  const pto::isa::CopyShape kilobyte{.rows = 1, .row_bytes = 1024};
  CoreMemory copies(m, shared);
  const double first =
      copies.copy(2000, 2000, CopyDirection::kHbmToL1, 131072, kilobyte, {1, 1}).done_cycle;
  const double second =
      copies.copy(3000, 3000, CopyDirection::kHbmToL1, 135168, kilobyte, {1, 1}).done_cycle;
  CHECK(first - 2000 == second - 3000 + 50);
}

TEST_CASE("hints go past the data cache") {
  const MachineProfile m = machine("ascend950");
  SharedMemory shared(m);
  CoreMemory core(m, shared);
  const Strided unit(0, 4);
  (void)core.load_hbm(0, unit.access(4), CacheHint::kL2, {10, 4});
  (void)core.load_hbm(0, unit.access(4), CacheHint::kVolatile, {10, 4});
  CHECK_FALSE(core.data_cache().find(0).has_value());
  CHECK(core.counters().cache_misses == 2);
  (void)core.store_hbm(0, unit.access(4), CacheHint::kL2, {4, 4});
  CHECK_FALSE(core.data_cache().find(0).has_value());
  (void)core.store_hbm(0, unit.access(4), CacheHint::kCached, {4, 4}); // a whole line enters
  CHECK(core.data_cache().find(0).has_value());
  core.invalidate(unit.access(4));
  CHECK_FALSE(core.data_cache().find(0).has_value());
}

TEST_CASE("the data cache gets what the scratchpad leaves") {
  const MachineProfile m = machine("ascend950");
  SharedMemory shared(m);
  CoreMemory core(m, shared);
  CHECK(core.data_cache().slot_count() == 1024); // 128 KiB
  core.configure(221184);
  CHECK(core.data_cache().slot_count() == 256); // 32 KiB
  CHECK(core.cache_begin_bytes() == 221184 + 8192);
}

TEST_CASE("copies of one engine go in order, those of two engines overlap") {
  const MachineProfile m = machine("reference"); // 4 cycles and 128 bytes a cycle
  SharedMemory shared(m);
  CoreMemory core(m, shared);
  const pto::isa::CopyShape kilobyte{.rows = 1, .row_bytes = 1024};
  CHECK(core.copy(0, 0, CopyDirection::kHbmToL1, 0, kilobyte, {1, 1}).done_cycle == 12);
  CHECK(core.copy(0, 0, CopyDirection::kHbmToL1, 0, kilobyte, {1, 1}).done_cycle == 20);
  CHECK(core.copy(0, 0, CopyDirection::kL1ToHbm, 0, kilobyte, {1, 1}).done_cycle == 12);
  const pto::isa::CopyShape rows{.rows = 3, .row_bytes = 128, .hbm_stride = 4096, .l1_stride = 128};
  CHECK(core.copy(100, 100, CopyDirection::kHbmToL1, 0, rows, {1, 1}).done_cycle == 107);
  CHECK(core.counters().copy_bytes == 3 * 1024 + 384);
}

TEST_CASE("atomics whose results are read: one round trip after another") {
  const MachineProfile m = machine("reference", {"atomic.sector=10", "atomic.round_trip=20"});
  SharedMemory shared(m);
  const auto finish = [&] {
    std::map<uint64_t, double> done;
    while (shared.next_event() < std::numeric_limits<double>::infinity()) {
      shared.run_atomics(shared.next_event(),
                         [&](uint64_t token, double cycle) { done[token] = cycle; });
    }
    return done;
  };
  // 32 lanes on one address: 32 services and 32 round trips.
  shared.start_atomic(0, atomic_groups(Strided(0, 0).access(4), 128), 1);
  CHECK(finish()[1] == 32 * 30);
  // Lanes in 32 sectors do not wait for each other.
  shared.start_launch();
  shared.start_atomic(0, atomic_groups(Strided(0, 128).access(4), 128), 2);
  CHECK(finish()[2] == 30);
  // Three warps at one sector: the sector is the limit, 96 operations of 10 cycles.
  shared.start_launch();
  for (uint64_t token = 3; token < 6; ++token) {
    shared.start_atomic(0, atomic_groups(Strided(0, 0).access(4), 128), token);
  }
  CHECK(finish()[5] == 10 + 96 * 10 + 10);
}

TEST_CASE("atomics whose results nobody reads queue at the core") {
  const MachineProfile m =
      machine("reference",
              {"atomic.reduce_sector=10", "atomic.reduce_round_trip=0", "atomic.reduce_queue=8"});
  SharedMemory shared(m);
  CHECK(shared.start_reduction(0, atomic_groups(Strided(0, 4).access(4), 128), 0) ==
        0); // one operation
  CHECK(shared.start_reduction(0, atomic_groups(Strided(0, 0).access(4), 128), 0) ==
        250); // 33 - 8 left
}

TEST_CASE("atomics in l1 serialise by address") {
  const MachineProfile m = machine("reference");
  SharedMemory shared(m);
  CoreMemory core(m, shared);
  CHECK(core.atomic_l1(0, Strided(0, 4).access(4), {8, 1}).done_cycle == 8);
  CHECK(core.atomic_l1(100, Strided(0, 0).access(4), {8, 1}).done_cycle == 100 + 8 + 31);
}
