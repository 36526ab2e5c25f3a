// SPDX-License-Identifier: Apache-2.0
// The memory that all cores share: L2 with tags, HBM bandwidth, and the atomic units.
//
// Requests must come in about the order of their cycles (the model's event loop sees to that): a
// shared path serves first come, first served. Atomics whose lane operations depend on each other's
// return take many steps; they are chains of events that run_atomics advances.
#pragma once

#include "isa/machine.h"
#include "simulator/timing/coalesce.h"
#include "simulator/timing/data_cache.h"
#include "simulator/timing/server.h"

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <unordered_map>
#include <vector>

namespace pto::sim {

/// When data is there, and when it would be were every path idle.
struct Arrival {
  double cycle = 0;
  double unloaded_cycle = 0;
};

class SharedMemory {
public:
  explicit SharedMemory(const isa::MachineProfile& machine);

  /// Reads `bytes` of one sector, which L2 takes in whole where it misses. `leaves`: when the
  /// request leaves its core, at `now` or later.
  Arrival read(double now, double leaves, uint64_t address, uint32_t bytes);
  /// Accepts a store; returns when L2 (or HBM) has taken it.
  double write(double now, double leaves, uint64_t address, uint32_t bytes);

  /// No level takes up time or remembers what it saw: of sectors that ask together, each is there
  /// when the first one is, so that one call can stand for all of them.
  [[nodiscard]] bool is_flat() const;
  Arrival read_flat(double now, double leaves, uint64_t bytes, uint64_t sectors);
  double write_flat(double now, double leaves, uint64_t bytes);

  /// Puts a range into L2 without taking time, as an earlier run of the kernel would have.
  void warm(uint64_t address, uint64_t bytes);
  /// Forgets reservations, not what L2 holds: between two launches.
  void start_launch();

  /// Becomes what `other`, a copy of this object, was.
  void restore(const SharedMemory& other);
  [[nodiscard]] uint64_t size_bytes() const { return l2_.size_bytes() + valid_sectors_.size() * 4; }

  /// Called with the token of a finished atomic and the cycle of its result.
  using AtomicDone = std::function<void(uint64_t token, double cycle)>;
  /// Starts a warp's atomic whose results are read.
  void start_atomic(double now, const AtomicGroups& groups, uint64_t token);
  /// Operations whose result nobody reads: they queue at the core and finish some time. Returns
  /// when the core has room for all of them, which is when the issuing pipe is free.
  double start_reduction(double now, const AtomicGroups& groups, uint32_t core);
  /// Cycle of the next atomic event; infinity if there is none.
  [[nodiscard]] double next_event() const;
  /// Handles all events up to `cycle`.
  void run_atomics(double cycle, const AtomicDone& done);

  struct Counters {
    uint64_t l2_read_bytes = 0;
    uint64_t l2_write_bytes = 0;
    uint64_t l2_hit_sectors = 0;
    uint64_t l2_miss_sectors = 0;
    uint64_t hbm_read_bytes = 0;
    uint64_t hbm_write_bytes = 0;
    uint64_t atomic_ops = 0;
  };
  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] double hbm_busy_cycles() const { return hbm_.busy_cycles(); }
  [[nodiscard]] double l2_busy_cycles() const { return l2_path_.busy_cycles(); }

private:
  struct Chain { // lane operations on one sector that go one after another
    uint64_t sector = 0;
    uint32_t remaining = 0;
    double service = 0;
    double round_trip = 0;
    uint64_t token = 0; // index into pending_, or kReduction
    uint64_t core = 0;
  };
  struct Event {
    double cycle = 0;
    uint64_t order = 0; // equal cycles: first come, first served
    uint32_t chain = 0;
    bool operator<(const Event& other) const {
      return cycle != other.cycle ? cycle > other.cycle : order > other.order;
    }
  };
  struct Pending {
    uint32_t chains = 0;
    double last = 0;
  };
  static constexpr uint64_t kReduction = UINT64_MAX;

  // Brings the sector's L2 state up to date; true if it was there. Charges HBM for write-backs.
  bool touch_l2(double now, uint64_t address, bool is_write, uint32_t* slot);
  uint32_t new_chain(const Chain& chain);
  void push_event(double cycle, uint32_t chain);
  double serve(double cycle, Chain& chain);

  const isa::MachineProfile& machine_;
  CacheTags l2_;
  std::vector<uint32_t> valid_sectors_; // of each L2 slot
  Server l2_path_;
  Server l2_writes_;
  Server hbm_;
  Counters counters_;

  std::vector<Chain> chains_;
  std::vector<uint32_t> free_chains_;
  std::priority_queue<Event> events_;
  uint64_t event_order_ = 0;
  std::unordered_map<uint64_t, Pending> pending_;
  std::unordered_map<uint64_t, Server> sectors_;
  std::unordered_map<uint64_t, Server> slices_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> reductions_; // core, sector -> chain
  std::unordered_map<uint32_t, uint32_t> queued_;                // core -> waiting operations
};

} // namespace pto::sim
