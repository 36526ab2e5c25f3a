// SPDX-License-Identifier: Apache-2.0
// The load/store pipe, the data cache and the copy engines of a core.
//
// The pipe is the one port of the buffer that lanes, fills and write-throughs share; that sharing
// is what the measured copies show (docs/calibration/ascend950.md). Left out: the depth of the miss
// queue, and the port time of copies.
#include "simulator/timing/core_memory.h"

#include "simulator/issue_record.h"

#include <algorithm>
#include <cmath>

namespace pto::sim {

namespace {

CacheTags make_cache(const isa::MachineProfile& machine, uint32_t bytes) {
  constexpr uint64_t kRingLines = 1u << 23; // of all cores: 32 MiB of the host at most
  const bool is_lru = machine.l1.replacement == "lru";
  return CacheTags(bytes / machine.l1.line_bytes,
                   machine.l1.ways,
                   is_lru ? CacheTags::Replacement::kLru : CacheTags::Replacement::kFillOrder,
                   kRingLines / machine.cores);
}

bool has_timeless_memory(const isa::MachineProfile& machine, const SharedMemory& shared) {
  return shared.is_flat() && machine.hbm.latency_cycles == 0 &&
         machine.hbm.bytes_per_cycle_core == 0 && machine.hbm.page_bytes == 0 &&
         machine.l1.miss_queue == 0 && machine.l1.line_cycles == 0 && machine.l1.fill_cycles == 0;
}

} // namespace

void MemoryCounters::add(const MemoryCounters& other) {
  requests += other.requests;
  lines += other.lines;
  cache_hits += other.cache_hits;
  cache_misses += other.cache_misses;
  l1_requests += other.l1_requests;
  bank_conflicts += other.bank_conflicts;
  bank_conflict_requests += other.bank_conflict_requests;
  l1_bytes += other.l1_bytes;
  hbm_request_bytes += other.hbm_request_bytes;
  copies_in += other.copies_in;
  copies_out += other.copies_out;
  copy_bytes += other.copy_bytes;
}

CoreMemory::CoreMemory(const isa::MachineProfile& machine, SharedMemory& shared)
    : machine_(machine), shared_(shared), is_timeless_(has_timeless_memory(machine, shared)),
      cache_(0, 0, CacheTags::Replacement::kLru), pipes_(machine.units.m_pipes),
      under_way_(machine.l1.miss_queue, 0), engines_in_(machine.copy.engines_in),
      engines_out_(machine.copy.engines_out) {
  configure(0);
}

void CoreMemory::configure(uint32_t scratchpad_bytes) {
  const uint32_t bytes = machine_.cache_bytes(scratchpad_bytes);
  const uint32_t begin = machine_.cache_begin_bytes(scratchpad_bytes);
  if (bytes != cache_bytes_ || begin != cache_begin_) {
    cache_ = make_cache(machine_, bytes);
    cache_bytes_ = bytes;
    cache_begin_ = begin;
  }
}

double CoreMemory::translate(double ready, uint64_t address) {
  const auto& hbm = machine_.hbm;
  if (hbm.page_bytes == 0) {
    return ready;
  }
  const uint64_t page = address / hbm.page_bytes;
  if (page != latest_page_) {
    latest_page_ = page;
    latest_page_ready_ = pages_.try_emplace(page, ready + hbm.page_latency_cycles).first->second;
  }
  return std::max(ready, latest_page_ready_);
}

Arrival CoreMemory::fetch(double now, double ready, uint64_t line, double& left) {
  const uint32_t line_bytes = machine_.l1.line_bytes;
  ready = translate(ready, line * line_bytes);
  left = ready;
  if (!under_way_.empty()) {
    left = std::max(left, under_way_[next_miss_]);
  }
  double leaves = left;
  if (machine_.hbm.bytes_per_cycle_core != 0) {
    leaves = hbm_path_.reserve_for(now, left, line_bytes / machine_.hbm.bytes_per_cycle_core);
  }
  Arrival arrival = shared_.read(now, leaves, line * line_bytes, line_bytes);
  arrival.unloaded_cycle -= leaves - ready;
  if (!under_way_.empty()) {
    under_way_[next_miss_] = arrival.cycle;
    next_miss_ = (next_miss_ + 1) % under_way_.size();
  }
  return arrival;
}

ResultTime
CoreMemory::load_timeless(double now, const WarpAddresses& access, bool is_cached, PipeTime time) {
  const uint32_t line_bytes = machine_.l1.line_bytes;
  const double start = std::max(now, pipes_.next_free());
  const LineUse use = is_cached ? cache_.bring_in(access, line_bytes)
                                : LineUse{touched_lines(access, line_bytes).count, 0};
  const unsigned misses = use.lines - use.hits;
  if (misses != 0) {
    const uint64_t bytes = uint64_t{misses} * line_bytes;
    (void)shared_.read_flat(now, start, bytes, misses);
  }
  occupy(now, time.interval);
  ++counters_.requests;
  counters_.lines += use.lines;
  counters_.cache_hits += use.hits;
  counters_.cache_misses += misses;
  counters_.hbm_request_bytes += uint64_t{lane_count(access.mask)} * access.bytes;
  const double done = start + time.latency + (is_cached ? machine_.l1.hit_latency_cycles : 0);
  return {now + time.latency, done, done, StallReason::kCacheMiss};
}

ResultTime
CoreMemory::load_hbm(double now, const WarpAddresses& access, isa::CacheHint hint, PipeTime time) {
  if (is_timeless_ && cache_.latest_ready() <= now) { // a store may leave a line for later
    return load_timeless(now, access, hint == isa::CacheHint::kCached, time);
  }
  const LineList lines = touched_lines(access, machine_.l1.line_bytes);
  const bool is_cached = hint == isa::CacheHint::kCached;
  const double start = std::max(now, pipes_.next_free());
  const double base = now + time.latency;
  const double hit = time.latency + (is_cached ? machine_.l1.hit_latency_cycles : 0);
  ResultTime result{base, start + hit, start + hit, StallReason::kCacheMiss};
  unsigned hits = 0;
  unsigned misses = 0;
  unsigned misses_before_hit = 0; // the latest
  double left = start;
  // Hits are looked up one after another; misses follow each other at the pace of the fills.
  const auto reached_after = [&](unsigned hits_before, unsigned misses_before) {
    return start + hits_before * machine_.l1.line_cycles + misses_before * machine_.l1.fill_cycles;
  };
  const auto arrive = [&](const Arrival& arrival) {
    result.unloaded_cycle = std::max(result.unloaded_cycle, arrival.unloaded_cycle + hit);
    result.done_cycle = std::max(result.done_cycle, arrival.cycle + hit);
  };
  for (unsigned i = 0; i < lines.count; ++i) {
    cache_.prefetch(lines.line[i]);
  }
  for (unsigned i = 0; i < lines.count; ++i) {
    const uint64_t line = lines.line[i];
    const uint32_t slot = is_cached ? cache_.touch_slot(line) : CacheTags::kNoSlot;
    if (slot != CacheTags::kNoSlot) {
      if (cache_.latest_ready() > start) { // this one may be on its way
        const double there = std::max(reached_after(hits, misses), cache_.ready(slot));
        arrive({there, there});
      }
      ++hits;
      misses_before_hit = misses;
    } else {
      const Arrival arrival = fetch(now, reached_after(hits, misses), line, left);
      ++misses;
      arrive(arrival);
      if (is_cached) {
        if (const std::optional<CacheTags::Fill> fill = cache_.fill(line)) {
          cache_.set_ready(fill->slot, arrival.cycle);
        }
      }
    }
  }
  if (hits != 0) { // those before the latest hit were reached no later
    const double reached = reached_after(hits - 1, misses_before_hit);
    arrive({reached, reached});
  }
  const double looked_up = hits * machine_.l1.line_cycles;
  const double occupied = std::max(time.interval, looked_up) + misses * machine_.l1.fill_cycles;
  take_pipe(now, occupied, left); // a full miss queue holds the pipe
  ++counters_.requests;
  counters_.lines += lines.count;
  counters_.cache_hits += hits;
  counters_.cache_misses += misses;
  counters_.hbm_request_bytes += uint64_t{lane_count(access.mask)} * access.bytes;
  return result;
}

ResultTime
CoreMemory::store_hbm(double now, const WarpAddresses& access, isa::CacheHint hint, PipeTime time) {
  const uint32_t line_bytes = machine_.l1.line_bytes;
  const LineSet lines = distinct_lines(access, line_bytes);
  const double start = std::max(now, pipes_.next_free());
  const double base = now + time.latency;
  double occupied = 0;
  double accepted = start;
  for (unsigned i = 0; i < lines.count; ++i) {
    const bool is_whole = lines.covered_bytes[i] == line_bytes;
    // Part of a line goes out in beats of 4 bytes a lane.
    const double beats = is_whole ? 1 : std::max(1.0, access.bytes / 4.0);
    const double leaves = translate(start + occupied, lines.line[i] * line_bytes);
    occupied += machine_.l1.store_cycles * beats;
    if (machine_.hbm.bytes_per_cycle_core != 0) {
      accepted =
          std::max(accepted,
                   hbm_path_.reserve_for(
                       now, leaves, lines.covered_bytes[i] / machine_.hbm.bytes_per_cycle_core));
    }
    accepted = std::max(
        accepted, shared_.write(now, leaves, lines.line[i] * line_bytes, lines.covered_bytes[i]));
    if (hint == isa::CacheHint::kCached && cache_.touch_slot(lines.line[i]) == CacheTags::kNoSlot &&
        is_whole) {
      if (const std::optional<CacheTags::Fill> fill = cache_.fill(lines.line[i])) {
        cache_.set_ready(fill->slot, leaves);
      }
    }
  }
  take_pipe(now, std::max(time.interval, occupied), accepted - machine_.l1.store_queue_cycles);
  ++counters_.requests;
  counters_.lines += lines.count;
  counters_.hbm_request_bytes += uint64_t{lane_count(access.mask)} * access.bytes;
  const double unloaded = start + time.latency;
  return {base, unloaded, std::max(unloaded, accepted + time.latency), StallReason::kBandwidth};
}

ResultTime CoreMemory::access_l1(double now, const WarpAddresses& access, PipeTime time) {
  const BankUse use = bank_use(access, machine_.l1);
  const double words = std::max(use.degree, use.bus_words);
  const double start = pipes_.reserve(now, std::max(time.interval, words));
  const double further = std::max(0.0, words - std::max(1.0, time.interval));
  const double done = start + time.latency + further * machine_.l1.conflict_cycles;
  ++counters_.l1_requests;
  if (use.degree > 1) {
    counters_.bank_conflicts += use.degree - 1;
    ++counters_.bank_conflict_requests;
  }
  counters_.l1_bytes += uint64_t{lane_count(access.mask)} * access.bytes;
  return {now + time.latency, done, done, StallReason::kBankConflict};
}

ResultTime CoreMemory::atomic_l1(double now, const WarpAddresses& access, PipeTime time) {
  const double operations = std::max(1u, most_on_one_address(access));
  const double serial = operations * machine_.atomic.l1_cycles;
  const double start = pipes_.reserve(now, std::max(time.interval, serial));
  const double done = start + time.latency + std::max(0.0, serial - machine_.atomic.l1_cycles);
  ++counters_.l1_requests;
  return {now + time.latency, done, done, StallReason::kAtomic};
}

double CoreMemory::issue_atomic(double now, const WarpAddresses& access, PipeTime time) {
  ++counters_.requests;
  counters_.hbm_request_bytes += uint64_t{lane_count(access.mask)} * access.bytes;
  return pipes_.reserve(now, time.interval);
}

void CoreMemory::hold(Server& port, double cycle) {
  if (cycle > port.next_free()) {
    port.hold_until(cycle);
    held_until_ = std::max(held_until_, cycle);
  }
}

void CoreMemory::take_pipe(double now, double duration, double held) {
  pipes_.serve([&](Server& port) {
    port.reserve(now, duration);
    hold(port, held);
  });
}

void CoreMemory::hold_pipe(double cycle) {
  pipes_.serve([&](Server& port) { hold(port, cycle); });
}

void CoreMemory::invalidate(const WarpAddresses& access) {
  const LineList lines = touched_lines(access, machine_.l1.line_bytes);
  for (unsigned i = 0; i < lines.count; ++i) {
    cache_.invalidate(lines.line[i]);
  }
}

void CoreMemory::invalidate_all() {
  cache_.invalidate_all();
}

ResultTime CoreMemory::copy(double now,
                            double ready,
                            isa::CopyDirection direction,
                            uint64_t hbm_address,
                            const isa::CopyShape& shape,
                            PipeTime time) {
  const bool is_in = direction == isa::CopyDirection::kHbmToL1;
  std::vector<Server>& engines = is_in ? engines_in_ : engines_out_;
  Server& engine = first_free(engines);
  const double row = std::max<double>(
      machine_.copy.bytes_per_cycle == 0 ? 0 : shape.row_bytes / machine_.copy.bytes_per_cycle,
      machine_.copy.row_cycles);
  const double work = std::max(time.interval, shape.rows * row);
  const double start = engine.reserve(ready, work);
  const double latency =
      machine_.copy.start_latency_cycles + (is_in ? 0 : machine_.copy.out_latency_cycles);
  // The shared paths are charged from now on, so that a queued copy does not block them early.
  const uint32_t sector = machine_.l1.sector_bytes;
  double last = ready;
  double memory_latency = 0;
  const bool is_flat = machine_.hbm.page_bytes == 0 && shared_.is_flat();
  uint64_t sectors = 0;
  for (uint32_t r = 0; r < shape.rows; ++r) {
    const uint64_t from = hbm_address + static_cast<uint64_t>(r * shape.hbm_stride);
    const uint64_t to = from + shape.row_bytes;
    if (is_flat) {
      sectors += from == to ? 0 : (to - 1) / sector - from / sector + 1;
      continue;
    }
    for (uint64_t at = from; at < to;) {
      const uint64_t end = std::min(to, (at / sector + 1) * sector);
      const uint32_t bytes = static_cast<uint32_t>(end - at);
      const double leaves = translate(ready, at);
      if (is_in) {
        const Arrival arrival = shared_.read(now, leaves, at, bytes);
        last = std::max(last, arrival.cycle);
        memory_latency = std::max(memory_latency, arrival.unloaded_cycle - ready);
      } else {
        last = std::max(last, shared_.write(now, leaves, at, bytes));
      }
      at = end;
    }
  }
  if (sectors != 0) {
    const uint64_t bytes = uint64_t{shape.rows} * shape.row_bytes;
    if (is_in) {
      const Arrival arrival = shared_.read_flat(now, ready, bytes, sectors);
      last = std::max(last, arrival.cycle);
      memory_latency = std::max(memory_latency, arrival.unloaded_cycle - ready);
    } else {
      last = std::max(last, shared_.write_flat(now, ready, bytes));
    }
  }
  const double unloaded = start + latency + work + memory_latency;
  const double done = std::max(unloaded, last + latency);
  // What memory delivers late, the engine waits for.
  engine.hold_until(last - memory_latency);
  ++(is_in ? counters_.copies_in : counters_.copies_out);
  counters_.copy_bytes += static_cast<uint64_t>(shape.rows) * shape.row_bytes;
  return {now + time.latency, unloaded, done, StallReason::kCopyWait, start};
}

double CoreMemory::copy_busy_cycles() const {
  double busy = 0;
  for (const Server& engine : engines_in_) {
    busy = std::max(busy, engine.busy_cycles());
  }
  for (const Server& engine : engines_out_) {
    busy = std::max(busy, engine.busy_cycles());
  }
  return busy;
}

} // namespace pto::sim
