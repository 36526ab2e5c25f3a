// SPDX-License-Identifier: Apache-2.0
// One core's memory side: the load/store pipe, the data cache, l1 banks and the copy engines.
//
// A warp's access takes the pipe for as long as its lines, fills or bank words need and is done
// some latency later; the answer says how much of that the memory added and why.
#pragma once

#include "isa/exec_context.h"
#include "isa/machine.h"
#include "simulator/timing/coalesce.h"
#include "simulator/timing/data_cache.h"
#include "simulator/timing/server.h"
#include "simulator/timing/shared_memory.h"
#include "simulator/timing/stall.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace pto::sim {

/// When a result is usable. From base to unloaded the wait is `reason`'s; from there on the
/// bandwidth's.
struct ResultTime {
  double base_cycle = 0;     // with the latency of the table alone
  double unloaded_cycle = 0; // with misses and conflicts, every shared path idle
  double done_cycle = 0;
  StallReason reason = StallReason::kOperand;
  double start_cycle = 0; // of a copy: when its engine begins with it
};

struct MemoryCounters {
  uint64_t requests = 0;   // warp loads, stores and atomics to hbm
  uint64_t lines = 0;      // lines that they touched
  uint64_t cache_hits = 0; // lines
  uint64_t cache_misses = 0;
  uint64_t l1_requests = 0;    // warp loads, stores and atomics to l1
  uint64_t bank_conflicts = 0; // further words that a port had to serve
  uint64_t bank_conflict_requests = 0;
  uint64_t l1_bytes = 0;
  uint64_t hbm_request_bytes = 0; // that the lanes asked for
  uint64_t copies_in = 0;
  uint64_t copies_out = 0;
  uint64_t copy_bytes = 0;
  void add(const MemoryCounters& other);
};

/// Latency and pipe interval of one memory insn, from the latency table.
struct PipeTime {
  double latency = 0;
  double interval = 0;
};

class CoreMemory {
public:
  CoreMemory(const isa::MachineProfile& machine, SharedMemory& shared);

  /// A block that uses so much scratchpad starts: the data cache gets the rest. What is cached
  /// stays when the share does not change.
  void configure(uint32_t scratchpad_bytes);

  ResultTime load_hbm(double now, const WarpAddresses& access, isa::CacheHint hint, PipeTime time);
  ResultTime store_hbm(double now, const WarpAddresses& access, isa::CacheHint hint, PipeTime time);
  ResultTime access_l1(double now, const WarpAddresses& access, PipeTime time);
  ResultTime atomic_l1(double now, const WarpAddresses& access, PipeTime time);
  /// Takes the pipe for an atomic on hbm; the result comes through SharedMemory::run_atomics.
  double issue_atomic(double now, const WarpAddresses& access, PipeTime time);
  /// When an access that is ready at `ready` has its physical address.
  double translate(double ready, uint64_t address);
  /// Takes a pipe for an insn that moves no data.
  void occupy(double now, double interval) { pipes_.reserve(now, interval); }
  /// Holds a pipe because the memory behind it takes no more until then.
  void hold_pipe(double cycle);
  void invalidate(const WarpAddresses& access);
  void invalidate_all();

  /// A copy that the block's warp hands over now and that may begin at `ready` (its bytes of l1 are
  /// in use until then); returns when it is done. Engines work in order.
  ResultTime copy(double now,
                  double ready,
                  isa::CopyDirection direction,
                  uint64_t hbm_address,
                  const isa::CopyShape& shape,
                  PipeTime time);

  [[nodiscard]] const Servers& pipes() const { return pipes_; }
  /// When a load/store pipe is free for the next warp.
  [[nodiscard]] double pipe_free_cycle() const { return pipes_.next_free(); }
  /// Until when a full queue behind them holds the pipes; later than that they are just busy.
  [[nodiscard]] double held_until() const { return held_until_; }
  [[nodiscard]] double pipe_busy_cycles() const { return pipes_.most_busy_cycles(); }
  [[nodiscard]] double copy_busy_cycles() const;
  [[nodiscard]] const CacheTags& data_cache() const { return cache_; }
  [[nodiscard]] uint32_t cache_begin_bytes() const { return cache_begin_; }
  [[nodiscard]] MemoryCounters& counters() { return counters_; }
  [[nodiscard]] const MemoryCounters& counters() const { return counters_; }

private:
  /// load_hbm of a machine whose memory takes no time: what is cached is counted, and that is all.
  ResultTime load_timeless(double now, const WarpAddresses& access, bool is_cached, PipeTime time);
  /// Brings in a line whose request is ready at `ready`; `left` is when it could leave.
  Arrival fetch(double now, double ready, uint64_t line, double& left);
  void hold(Server& port, double cycle);
  /// Takes the pipe that is free first, and holds it until `held` if that is later.
  void take_pipe(double now, double duration, double held);

  const isa::MachineProfile& machine_;
  SharedMemory& shared_;
  bool is_timeless_; // lines come at once and nothing on their way holds them up
  CacheTags cache_;
  uint32_t cache_bytes_ = UINT32_MAX;
  uint32_t cache_begin_ = 0;
  Servers pipes_;
  double held_until_ = 0;
  std::unordered_map<uint64_t, double> pages_; // touched so far -> when the translation is there
  uint64_t latest_page_ = UINT64_MAX;
  double latest_page_ready_ = 0;
  std::vector<double> under_way_; // ring: when the latest misses come back
  size_t next_miss_ = 0;
  Server hbm_path_; // this core's own share of the way to memory
  std::vector<Server> engines_in_;
  std::vector<Server> engines_out_;
  MemoryCounters counters_;
};

} // namespace pto::sim
