// SPDX-License-Identifier: Apache-2.0
// What one warp's memory access looks like to the memory: distinct lines, bank words, atomics.
//
// Pure functions of 32 addresses and a mask; the time that follows from them is elsewhere.
#pragma once

#include "isa/machine.h"

#include <array>
#include <cstdint>
#include <span>

namespace pto::sim {

inline constexpr unsigned kMaxWarpLines = 64;

/// The addresses of one warp insn. Addresses of inactive lanes are ignored.
struct WarpAddresses {
  uint32_t mask = 0;
  const uint64_t* addresses = nullptr; // 32 byte addresses
  uint32_t bytes = 0;                  // each lane's access, aligned to its element
  bool is_run = false;  // known: all lanes are active, each at the end of the lane before
  bool is_same = false; // known: one address in all lanes
};

/// Distinct lines in the order of first touch, with the bytes that the lanes cover in each.
struct LineSet {
  unsigned count = 0;
  // Of `count` lines; the rest is not even zeroed, which would cost more than the search.
  std::array<uint64_t, kMaxWarpLines> line; // address / line_bytes
  std::array<uint32_t, kMaxWarpLines> covered_bytes;
};
[[nodiscard]] LineSet distinct_lines(const WarpAddresses& access, uint32_t line_bytes);

/// The same lines for whoever does not ask what is covered, which is most of the work.
struct LineList {
  unsigned count = 0;
  std::array<uint64_t, kMaxWarpLines> line; // of `count` lines
};
[[nodiscard]] LineList touched_lines(const WarpAddresses& access, uint32_t line_bytes);

/// How an l1 access meets the banks. `degree` is the most words that one port must serve (1: free
/// of conflicts); `bus_words` the most that one byte lane of the path to the lanes must carry.
/// Lanes that read one word share it.
struct BankUse {
  unsigned degree = 0;
  unsigned bus_words = 0;
};
[[nodiscard]] BankUse bank_use(const WarpAddresses& access, const isa::MachineProfile::L1& l1);

/// Of an access to l1, whose offsets have 32 bits: the most lanes on one address.
[[nodiscard]] unsigned most_on_one_address(const WarpAddresses& access);

/// Lane operations of an atomic by sector: how many in all, and the most on one address.
struct AtomicGroup {
  uint64_t sector = 0; // address / sector_bytes
  uint32_t lane_ops = 0;
  uint32_t same_address = 0;
};
struct AtomicGroups {
  unsigned count = 0;
  std::array<AtomicGroup, 32> group{};
};
[[nodiscard]] AtomicGroups atomic_groups(const WarpAddresses& access, uint32_t sector_bytes);

} // namespace pto::sim
