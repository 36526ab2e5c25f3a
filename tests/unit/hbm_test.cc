// SPDX-License-Identifier: Apache-2.0
// hbm, its undo history, and scratchpad allocation.
#include "simulator/memory.h"
#include "simulator/scratchpad.h"

#include <doctest/doctest.h>

#include <array>

namespace pto::sim {
namespace {

TEST_CASE("allocations are apart, aligned, zero and never reused") {
  Hbm hbm;
  const uint64_t a = hbm.alloc(4096, "a");
  const uint64_t b = hbm.alloc(100, "b");
  CHECK(a == Hbm::kFirstBase);
  CHECK(b % Hbm::kAlignBytes == 0);
  CHECK(b - (a + 4096) >= Hbm::kGuardBytes);
  CHECK(hbm.find(0) == nullptr);
  CHECK(hbm.find(a + 4095)->name == "a");
  CHECK(hbm.find(a + 4096) == nullptr);
  CHECK(hbm.host(a + 4092, 4) != nullptr);
  CHECK(hbm.host(a + 4093, 4) == nullptr);
  CHECK(hbm.host(b, 100)[99] == 0);
  CHECK(hbm.live_bytes() == 4196);
  hbm.free(a, "x.pto:3");
  CHECK(hbm.live_bytes() == 100);
  CHECK(hbm.host(a, 1) == nullptr);
  CHECK(hbm.alloc(4096, "c") > b);
}

TEST_CASE("a view keeps the allocations of its moment and shares their bytes") {
  Hbm hbm;
  const uint64_t a = hbm.alloc(64, "a");
  const uint64_t old = hbm.alloc(64, "old");
  hbm.free(old, "x.py:1");
  const auto table = hbm.table();
  CHECK(hbm.table() == table); // nothing changed
  Hbm view(table);
  hbm.host(a, 1)[0] = 7;
  CHECK(view.host(a, 1)[0] == 7);
  view.host(a, 1)[1] = 8;
  CHECK(hbm.host(a, 2)[1] == 8);
  const uint64_t later = hbm.alloc(64, "later");
  hbm.free(a, "x.py:2");
  CHECK(hbm.host(a, 1) == nullptr);
  CHECK(view.host(a, 1)[0] == 7); // still there for whoever began before
  CHECK(view.find(later) == nullptr);
  CHECK(view.live_bytes() == 64);
  CHECK(view.find_freed(old)->freed_by == "x.py:1");
  CHECK(hbm.table() != table);
  CHECK_THROWS_AS(view.alloc(8, "no"), InternalError);
  CHECK_THROWS_AS(view.free(a), InternalError);
}

TEST_CASE("addresses are described by what is near") {
  Hbm hbm;
  CHECK(hbm.describe(64) == "0x40: hbm has no allocation");
  const uint64_t a = hbm.alloc(4096, "a", "main.py:3");
  const uint64_t b = hbm.alloc(64, "");
  CHECK(hbm.describe(a + 16, 4) == "allocation a (4096 bytes) + 16");
  CHECK(hbm.describe(a + 4096, 4) == "allocation a (4096 bytes) + 4096: 4 bytes past the end");
  CHECK(hbm.describe(a + 4094, 4) ==
        "allocation a (4096 bytes) + 4094: the last 2 bytes are past the end");
  CHECK(hbm.describe(a - 4, 4) == "allocation a (4096 bytes) - 4: 4 bytes before its start");
  CHECK(hbm.describe(b - 8, 4) == "allocation #1 (64 bytes) - 8: 8 bytes before its start");
  CHECK(hbm.describe(0, 4) ==
        "0x0: far below every allocation (the lowest is allocation a (4096 bytes))");
  CHECK(hbm.label(a + 4) == "a + 4");
  hbm.free(a, "main.py:9");
  CHECK(hbm.describe(a + 8, 4) == "allocation a (4096 bytes) + 8: freed by main.py:9");
}

TEST_CASE("misuse of hbm says what it was") {
  Hbm hbm;
  const uint64_t a = hbm.alloc(16, "a");
  CHECK_THROWS_WITH_AS(hbm.free(a + 4),
                       "cannot free 0x10000004: it is no start of an allocation (allocation a (16 "
                       "bytes) + 4)",
                       HbmError);
  hbm.free(a, "first");
  CHECK_THROWS_WITH_AS(hbm.free(a),
                       "double free of allocation a (16 bytes at 0x10000000); first freed by first",
                       HbmError);
  CHECK_THROWS_AS(hbm.alloc(uint64_t{1} << 60, "huge"), HbmError);
  const uint64_t empty = hbm.alloc(0, "empty");
  CHECK(hbm.find(empty) == nullptr);
  CHECK_FALSE(hbm.write(empty, std::array<uint8_t, 1>{1}));
}

TEST_CASE("a huge allocation costs nothing until it is touched") {
  Hbm hbm;
  const uint64_t a = hbm.alloc(uint64_t{1} << 33, "a");
  CHECK(hbm.write(a + (uint64_t{1} << 32), std::array<uint8_t, 2>{7, 8}));
  CHECK(*hbm.host(a + (uint64_t{1} << 32) + 1, 1) == 8);
}

TEST_CASE("history goes back to any mark") {
  Hbm hbm;
  const uint64_t a = hbm.alloc(10000, "a");
  HbmHistory history(hbm);
  const auto put = [&](uint64_t offset, uint8_t value) {
    REQUIRE(hbm.write(a + offset, std::array<uint8_t, 1>{value}));
  };
  const auto at = [&](uint64_t offset) { return *hbm.host(a + offset, 1); };
  const auto first = history.mark();
  put(0, 1);
  put(9999, 1);
  const auto second = history.mark();
  put(0, 2);
  const auto third = history.mark();
  put(0, 3);
  put(5000, 3);
  REQUIRE(history.rewind(third));
  CHECK(at(0) == 2);
  CHECK(at(5000) == 0);
  put(0, 4);
  REQUIRE(history.rewind(second));
  CHECK(at(0) == 1);
  CHECK_FALSE(history.can_rewind(third));
  REQUIRE(history.rewind(first));
  CHECK(at(0) == 0);
  CHECK(at(9999) == 0);
  put(0, 9);
  REQUIRE(history.rewind(first));
  CHECK(at(0) == 0);
}

TEST_CASE("history forgets the oldest marks at its limit") {
  Hbm hbm;
  const uint64_t a = hbm.alloc(1 << 20, "a");
  HbmHistory history(hbm, 10 * HbmHistory::kPageBytes);
  std::array<HbmHistory::Mark, 20> marks{};
  for (uint8_t i = 0; i < marks.size(); ++i) {
    marks[i] = history.mark();
    REQUIRE(hbm.write(a + i * 4096u, std::array<uint8_t, 1>{1}));
    REQUIRE(history.kept_bytes() <= 11 * (HbmHistory::kPageBytes + 64));
  }
  CHECK_FALSE(history.can_rewind(marks[0]));
  REQUIRE(history.rewind(marks[15]));
  CHECK(*hbm.host(a + 14 * 4096, 1) == 1);
  CHECK(*hbm.host(a + 15 * 4096, 1) == 0);
}

TEST_CASE("scratchpad is handed out first fit and zeroed") {
  Scratchpad pad;
  pad.reset(100, 1024);
  CHECK(pad.holds(0, 100));
  CHECK_FALSE(pad.holds(0, 101));
  CHECK(pad.alloc(200, 0, 1) == 128u);
  CHECK(pad.alloc(300, 1, 2) == 352u);
  CHECK(pad.holds(128, 200));
  CHECK_FALSE(pad.holds(96, 64)); // the alignment gap
  pad.data()[130] = 9;
  pad.free(128);
  CHECK_FALSE(pad.holds(130, 1));
  CHECK_FALSE(pad.alloc(400, 2, 3).has_value());
  CHECK(pad.largest_gap_bytes() == 352); // above t1
  CHECK(pad.alloc(64, 3, 4) == 128u);
  CHECK(pad.data()[130] == 0);
  CHECK(pad.used_bytes() == 100 + 300 + 64);
  CHECK(pad.high_water_bytes() == 652);
  CHECK(pad.map() == "      0..99          100 bytes  statics (.shared, .tile)\n"
                     "    100..127          28 bytes  free\n"
                     "    128..191          64 bytes  t3\n"
                     "    192..351         160 bytes  free\n"
                     "    352..651         300 bytes  t1\n"
                     "    652..1023        372 bytes  free\n");
}

} // namespace
} // namespace pto::sim
