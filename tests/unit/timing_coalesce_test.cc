// SPDX-License-Identifier: Apache-2.0
// What the addresses of a warp come to: lines, sectors, banks, lanes on one address.
#include "simulator/timing/coalesce.h"
#include "strided_access.h"
#include "test_machine.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

using namespace pto::sim;
using pto::isa::MachineProfile;
using pto::sim::test::Strided;
using pto::test::machine;

namespace {

BankUse banks(uint64_t stride, uint32_t bytes = 4) {
  static const MachineProfile profile = machine("ascend950");
  return bank_use(Strided(0, stride).access(bytes), profile.l1);
}

} // namespace

TEST_CASE("distinct lines and what the lanes cover of them") {
  const Strided unit(256, 4);
  LineSet lines = distinct_lines(unit.access(4), 128);
  CHECK(lines.count == 1);
  CHECK(lines.line[0] == 2);
  CHECK(lines.covered_bytes[0] == 128);
  lines = distinct_lines(Strided(4, 4).access(4), 128);
  CHECK(lines.count == 2);
  CHECK(lines.covered_bytes[0] == 124);
  CHECK(lines.covered_bytes[1] == 4);
  CHECK(distinct_lines(Strided(0, 128).access(4), 128).count == 32);
  CHECK(distinct_lines(Strided(0, 0).access(4), 128).count == 1);
  CHECK(distinct_lines(Strided(0, 0).access(4), 128).covered_bytes[0] == 128); // clamped
  CHECK(distinct_lines(Strided(0, 16).access(16), 128).count == 4);
  CHECK(distinct_lines(Strided(0, 128).access(4, 0b101), 128).count == 2);
  CHECK(distinct_lines(Strided(0, 128).access(4, 0), 128).count == 0);
}

TEST_CASE("what is known of the addresses changes no line") {
  const auto are_equal = [](const LineSet& a, const LineSet& b) {
    return a.count == b.count &&
           std::equal(a.line.begin(), a.line.begin() + a.count, b.line.begin()) &&
           std::equal(
               a.covered_bytes.begin(), a.covered_bytes.begin() + a.count, b.covered_bytes.begin());
  };
  for (const uint32_t bytes : {1u, 2u, 4u, 8u, 16u}) {
    for (const uint64_t from : {0u, 16u, 112u, 128u}) {
      const Strided lanes(from, bytes);
      WarpAddresses run = lanes.access(bytes);
      const LineSet found = distinct_lines(run, 128);
      run.is_run = true;
      CHECK(are_equal(distinct_lines(run, 128), found));
      const Strided one(from, 0);
      for (const uint32_t mask : {~0u, 0x00ff0000u, 1u, 0u}) {
        WarpAddresses same = one.access(bytes, mask);
        const LineSet apart = distinct_lines(same, 128);
        same.is_same = true;
        CHECK(are_equal(distinct_lines(same, 128), apart));
      }
    }
  }
}

TEST_CASE("lines of scattered addresses come in the order of first touch") {
  Strided mixed(0, 0);
  std::vector<uint64_t> expected;
  for (unsigned lane = 0; lane < 32; ++lane) {
    mixed.addresses[lane] = (lane * 7919 % 23) * 64 * 128 + lane % 3 * 4; // lines alike modulo 64
    const uint64_t line = mixed.addresses[lane] / 128;
    if (std::find(expected.begin(), expected.end(), line) == expected.end()) {
      expected.push_back(line);
    }
  }
  const LineSet lines = distinct_lines(mixed.access(4), 128);
  CHECK(std::vector<uint64_t>(lines.line.begin(), lines.line.begin() + lines.count) == expected);
}

TEST_CASE("touched lines are the distinct ones, whatever the addresses") {
  const auto check = [](const Strided& lanes, uint32_t bytes, uint32_t mask) {
    const LineSet expected = distinct_lines(lanes.access(bytes, mask), 128);
    const LineList found = touched_lines(lanes.access(bytes, mask), 128);
    REQUIRE(found.count == expected.count);
    CHECK(std::equal(found.line.begin(), found.line.begin() + found.count, expected.line.begin()));
  };
  uint64_t seed = 7;
  const auto random = [&](uint64_t below) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % below;
  };
  for (unsigned round = 0; round < 400; ++round) {
    const uint32_t mask = round % 3 == 0 ? ~0u : static_cast<uint32_t>(random(1u << 31));
    Strided lanes(1u << 20, 0);
    for (uint64_t& address : lanes.addresses) {
      address += random(uint64_t{8} << round % 20) * 4;
    }
    check(lanes, 4, mask);
    std::sort(lanes.addresses.begin(), lanes.addresses.end());
    check(lanes, 4, mask);
    lanes.addresses[random(32)] = uint64_t{1} << (20 + random(40)); // far from the others
    check(lanes, 4, mask);
    check(lanes, 32, mask); // some reach into the next line
  }
}

TEST_CASE("the most lanes on one address, counted one by one") {
  uint64_t seed = 11;
  for (unsigned round = 0; round < 400; ++round) {
    Strided lanes(0, 0);
    std::map<uint64_t, unsigned> counts;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const auto mask = round % 4 == 0 ? ~0u : static_cast<uint32_t>(seed >> 32);
    unsigned most = 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      // Words that are near each other, words that are not, and what is no word.
      lanes.addresses[lane] = (seed >> 33) % (4 + round) * (round % 3 == 2 ? 3 : 4 << round % 13);
      if ((mask >> lane & 1) != 0) {
        most = std::max(most, ++counts[lanes.addresses[lane]]);
      }
    }
    REQUIRE(most_on_one_address(lanes.access(4, mask)) == most);
  }
}

TEST_CASE("the most lanes on one address") {
  CHECK(most_on_one_address(Strided(64, 4).access(4)) == 1);
  CHECK(most_on_one_address(Strided(64, 0).access(4)) == 32);
  CHECK(most_on_one_address(Strided(64, 0).access(4, 0x0f0f)) == 8);
  CHECK(most_on_one_address(Strided(64, 0).access(4, 0)) == 0);
  Strided pairs(0, 4);
  pairs.addresses[5] = pairs.addresses[20] = pairs.addresses[31];
  CHECK(most_on_one_address(pairs.access(4)) == 3);
  CHECK(most_on_one_address(pairs.access(4, ~(1u << 31))) == 2);
}

TEST_CASE("bank conflicts of the 950 as its sample measures them") {
  CHECK(banks(0).degree == 1);    // all lanes read one word
  CHECK(banks(8).degree == 1);    // 32 different ports
  CHECK(banks(4).degree == 1);    // two lanes share a word
  CHECK(banks(512).degree == 32); // one bank
  CHECK(banks(256).degree == 32); // banks i and i + 8 of one group
  CHECK(banks(128).degree == 16);
  CHECK(banks(136).degree == 1); // the padded transpose
  CHECK(banks(64).degree == 8);
  CHECK(banks(32).degree == 4);
  CHECK(banks(16).degree == 2);
}

TEST_CASE("the path to the lanes carries 128 bytes a cycle") {
  CHECK(banks(4).bus_words == 1);
  CHECK(banks(8).bus_words == 2);    // 256 bytes
  CHECK(banks(128).bus_words == 32); // every word in the same byte lanes
  CHECK(banks(8, 8).bus_words == 2);
}

TEST_CASE("a machine without banks has no conflicts") {
  const MachineProfile reference = machine("reference");
  CHECK(bank_use(Strided(0, 512).access(4), reference.l1).degree == 1);
  CHECK(bank_use(Strided(0, 512).access(4, 0), reference.l1).degree == 0);
}

TEST_CASE("atomics by sector") {
  AtomicGroups groups = atomic_groups(Strided(0, 0).access(4), 128);
  CHECK(groups.count == 1);
  CHECK(groups.group[0].lane_ops == 32);
  CHECK(groups.group[0].same_address == 32);
  groups = atomic_groups(Strided(0, 4).access(4), 128);
  CHECK(groups.count == 1);
  CHECK(groups.group[0].same_address == 1);
  groups = atomic_groups(Strided(0, 8).access(8), 128);
  CHECK(groups.count == 2);
  CHECK(groups.group[1].lane_ops == 16);
}
