// SPDX-License-Identifier: Apache-2.0
// What the data caches of the cores hold, for runs in which plain loads may see stale values.
//
// The machine's data caches are private to a core and not coherent (docs/isa.md, Machine state).
// Elsewhere in the simulator every load sees memory; with these caches (ptosim --cache=incoherent)
// a program shows what a missing .cv, atomic or INVAL can do to it:
//   - LOAD.ca takes the line's bytes from the core's cache, and brings the line in if it is not
//     there; PREFETCH brings it in;
//   - STORE.wt writes memory, and the line of its own core if it is there; STORE.cg memory alone;
//   - LOAD.cg and .cv, atomics and copies go past the caches; an atomic drops its own core's line;
//   - INVAL drops lines. All caches are empty when a launch begins.
// A line stays until it is dropped, however many there are: a real cache may keep it that long, and
// the worst case is the one to see.
#pragma once

#include "simulator/memory.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace pto::sim {

class IncoherentCache {
public:
  IncoherentCache(uint32_t cores, uint32_t line_bytes) : line_bytes_(line_bytes), cores_(cores) {}

  /// Copies what the core sees at [address, address + size_bytes) to `to`. The range lies in one
  /// live allocation; a natural alignment keeps it in one line.
  void read(uint32_t core, const Hbm& hbm, uint64_t address, uint64_t size_bytes, uint8_t* to);
  /// Memory has been written there by the core: a line that it holds takes the new bytes.
  void written(uint32_t core, const Hbm& hbm, uint64_t address, uint64_t size_bytes);
  void prefetch(uint32_t core, const Hbm& hbm, uint64_t address);
  void drop_line(uint32_t core, uint64_t address);
  void drop_all(uint32_t core);

private:
  using Line = std::vector<uint8_t>;
  using Lines = std::unordered_map<uint64_t, Line>; // by address / line_bytes_

  /// The line, brought in if need be; bytes outside every allocation are 0.
  Line& fetch(uint32_t core, const Hbm& hbm, uint64_t line);

  uint32_t line_bytes_;
  std::vector<Lines> cores_;
};

} // namespace pto::sim
