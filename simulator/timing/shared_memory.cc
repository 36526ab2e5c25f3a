// SPDX-License-Identifier: Apache-2.0
// L2, HBM and atomics. What is left out: channels and pages of HBM, the network's topology (near
// and far L2), and reads that a partial write to a missing sector would cause.
#include "simulator/timing/shared_memory.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace pto::sim {

namespace {

double duration(uint32_t bytes, double bytes_per_cycle) {
  return bytes_per_cycle == 0 ? 0 : bytes / bytes_per_cycle;
}

} // namespace

SharedMemory::SharedMemory(const isa::MachineProfile& machine)
    : machine_(machine), l2_(static_cast<uint32_t>(std::min<uint64_t>(
                                 machine.l2.size_bytes / machine.l2.line_bytes, 1u << 26)),
                             0,
                             CacheTags::Replacement::kLru),
      valid_sectors_(l2_.slot_count(), 0) {}

void SharedMemory::start_launch() {
  l2_path_ = {};
  l2_writes_ = {};
  hbm_ = {};
  counters_ = {};
  chains_.clear();
  free_chains_.clear();
  events_ = {};
  event_order_ = 0;
  pending_.clear();
  sectors_.clear();
  slices_.clear();
  reductions_.clear();
  queued_.clear();
  l2_.forget_ready();
}

void SharedMemory::restore(const SharedMemory& other) {
  l2_ = other.l2_;
  valid_sectors_ = other.valid_sectors_;
  l2_path_ = other.l2_path_;
  l2_writes_ = other.l2_writes_;
  hbm_ = other.hbm_;
  counters_ = other.counters_;
  chains_ = other.chains_;
  free_chains_ = other.free_chains_;
  events_ = other.events_;
  event_order_ = other.event_order_;
  pending_ = other.pending_;
  sectors_ = other.sectors_;
  slices_ = other.slices_;
  reductions_ = other.reductions_;
  queued_ = other.queued_;
}

bool SharedMemory::touch_l2(double now, uint64_t address, bool is_write, uint32_t* slot_out) {
  if (l2_.slot_count() == 0) {
    return false;
  }
  const uint32_t line_bytes = machine_.l2.line_bytes; // powers of two, both
  const uint32_t sector_bytes = std::min(machine_.l1.sector_bytes, line_bytes);
  const uint64_t line = address >> std::countr_zero(line_bytes);
  const uint64_t in_line = (address & (line_bytes - 1)) >> std::countr_zero(sector_bytes);
  const uint32_t sector = 1u << std::min<uint64_t>(in_line, 31);
  std::optional<uint32_t> slot = l2_.touch(line);
  bool is_hit = slot.has_value();
  if (!slot) {
    const std::optional<CacheTags::Fill> fill = l2_.fill(line);
    if (!fill) {
      return false;
    }
    if (fill->victim_is_dirty) {
      const uint32_t bytes =
          static_cast<uint32_t>(std::popcount(valid_sectors_[fill->slot])) * sector_bytes;
      hbm_.reserve(now, duration(bytes, machine_.hbm.bytes_per_cycle_total));
      counters_.hbm_write_bytes += bytes;
    }
    slot = fill->slot;
    valid_sectors_[*slot] = 0;
  }
  is_hit = is_hit && (valid_sectors_[*slot] & sector) != 0;
  valid_sectors_[*slot] |= sector;
  if (is_write) {
    l2_.set_dirty(*slot);
  }
  *slot_out = *slot;
  return is_hit;
}

Arrival SharedMemory::read(double now, double leaves, uint64_t address, uint32_t bytes) {
  const double path = duration(bytes, machine_.l2.bytes_per_cycle);
  const double l2_start = l2_path_.reserve_for(now, leaves, path);
  counters_.l2_read_bytes += bytes;
  uint32_t slot = UINT32_MAX;
  if (touch_l2(now, address, false, &slot)) {
    ++counters_.l2_hit_sectors;
    // A sector that is still on its way from HBM is not there earlier for a second reader.
    const double there = l2_.ready(slot);
    return {std::max(l2_start + machine_.l2.latency_cycles, there),
            std::max(leaves + machine_.l2.latency_cycles, there)};
  }
  ++counters_.l2_miss_sectors;
  // L2 takes in the whole sector, as later readers of the rest of it find it there.
  const uint32_t fetched =
      slot == UINT32_MAX
          ? bytes
          : std::max(bytes, std::min(machine_.l1.sector_bytes, machine_.l2.line_bytes));
  counters_.hbm_read_bytes += fetched;
  const double hbm_start =
      hbm_.reserve_for(now, leaves, duration(fetched, machine_.hbm.bytes_per_cycle_total));
  const Arrival arrival{std::max(hbm_start, l2_start) + machine_.hbm.latency_cycles,
                        leaves + machine_.hbm.latency_cycles};
  if (slot != UINT32_MAX) {
    l2_.set_ready(slot, std::max(l2_.ready(slot), arrival.cycle));
  }
  return arrival;
}

double SharedMemory::write(double now, double leaves, uint64_t address, uint32_t bytes) {
  const double path = duration(bytes, machine_.l2.bytes_per_cycle);
  double accepted = l2_path_.reserve_for(now, leaves, path);
  counters_.l2_write_bytes += bytes;
  if (machine_.l2.writes_per_cycle != 0) {
    accepted =
        std::max(accepted, l2_writes_.reserve_for(now, leaves, 1 / machine_.l2.writes_per_cycle));
  }
  uint32_t slot = UINT32_MAX;
  (void)touch_l2(now, address, true, &slot);
  if (slot == UINT32_MAX) {
    counters_.hbm_write_bytes += bytes;
    accepted = std::max(
        accepted,
        hbm_.reserve_for(now, leaves, duration(bytes, machine_.hbm.bytes_per_cycle_total)));
  } else if (machine_.hbm.bytes_per_cycle_total != 0) {
    // L2 takes writes ahead of HBM only as far as it has room for what it must write back.
    accepted = std::max(accepted, hbm_.next_free() - machine_.l1.store_queue_cycles);
  }
  return accepted;
}

bool SharedMemory::is_flat() const {
  return l2_.slot_count() == 0 && machine_.l2.bytes_per_cycle == 0 &&
         machine_.l2.writes_per_cycle == 0 && machine_.hbm.bytes_per_cycle_total == 0;
}

Arrival SharedMemory::read_flat(double now, double leaves, uint64_t bytes, uint64_t sectors) {
  const double start =
      std::max(l2_path_.reserve_for(now, leaves, 0), hbm_.reserve_for(now, leaves, 0));
  counters_.l2_read_bytes += bytes;
  counters_.l2_miss_sectors += sectors;
  counters_.hbm_read_bytes += bytes;
  return {start + machine_.hbm.latency_cycles, leaves + machine_.hbm.latency_cycles};
}

double SharedMemory::write_flat(double now, double leaves, uint64_t bytes) {
  counters_.l2_write_bytes += bytes;
  counters_.hbm_write_bytes += bytes;
  return std::max(l2_path_.reserve_for(now, leaves, 0), hbm_.reserve_for(now, leaves, 0));
}

void SharedMemory::warm(uint64_t address, uint64_t bytes) {
  const uint32_t line_bytes = machine_.l2.line_bytes;
  if (bytes == 0 || l2_.slot_count() == 0) {
    return;
  }
  const uint64_t last = (address + bytes - 1) / line_bytes;
  for (uint64_t line = address / line_bytes; line <= last; ++line) {
    std::optional<uint32_t> slot = l2_.touch(line);
    if (!slot) {
      slot = l2_.fill(line)->slot;
    }
    valid_sectors_[*slot] = UINT32_MAX;
  }
}

uint32_t SharedMemory::new_chain(const Chain& chain) {
  if (free_chains_.empty()) {
    chains_.push_back(chain);
    return static_cast<uint32_t>(chains_.size() - 1);
  }
  const uint32_t index = free_chains_.back();
  free_chains_.pop_back();
  chains_[index] = chain;
  return index;
}

void SharedMemory::push_event(double cycle, uint32_t chain) {
  events_.push({cycle, event_order_++, chain});
}

void SharedMemory::start_atomic(double now, const AtomicGroups& groups, uint64_t token) {
  const auto& atomic = machine_.atomic;
  pending_[token] = {groups.count, now};
  for (unsigned i = 0; i < groups.count; ++i) {
    const AtomicGroup& group = groups.group[i];
    const uint32_t chain = new_chain(
        {group.sector, group.lane_ops, atomic.sector_cycles, atomic.round_trip_cycles, token, 0});
    push_event(now + atomic.round_trip_cycles / 2, chain);
  }
}

double SharedMemory::start_reduction(double now, const AtomicGroups& groups, uint32_t core) {
  const auto& atomic = machine_.atomic;
  uint32_t& queued = queued_[core];
  for (unsigned i = 0; i < groups.count; ++i) {
    const AtomicGroup& group = groups.group[i];
    // Lanes with different addresses in one sector go together; equal addresses one by one.
    const uint32_t operations = group.same_address;
    queued += operations;
    const auto found = reductions_.find({core, group.sector});
    if (found != reductions_.end()) {
      chains_[found->second].remaining += operations;
      continue;
    }
    const uint32_t chain = new_chain({group.sector,
                                      operations,
                                      atomic.reduce_sector_cycles,
                                      atomic.reduce_round_trip_cycles,
                                      kReduction,
                                      core});
    reductions_[{core, group.sector}] = chain;
    push_event(now + atomic.reduce_round_trip_cycles / 2, chain);
  }
  if (queued <= atomic.reduce_queue) {
    return now;
  }
  // The queue drains at the pace of its chain, or of the sector when other cores share it.
  uint32_t sharing = 0;
  for (const auto& reduction : reductions_) {
    sharing += reduction.first.second == groups.group[0].sector ? 1 : 0;
  }
  const double pace = std::max(atomic.reduce_sector_cycles + atomic.reduce_round_trip_cycles,
                               sharing * atomic.reduce_sector_cycles);
  return now + pace * (queued - atomic.reduce_queue);
}

double SharedMemory::next_event() const {
  return events_.empty() ? std::numeric_limits<double>::infinity() : events_.top().cycle;
}

double SharedMemory::serve(double cycle, Chain& chain) {
  ++counters_.atomic_ops;
  double start = cycle;
  if (machine_.l2.slice_bytes != 0) {
    const uint64_t slice = chain.sector * machine_.l1.sector_bytes / machine_.l2.slice_bytes;
    start = slices_[slice].reserve(cycle, machine_.atomic.slice_cycles);
  }
  return sectors_[chain.sector].reserve(start, chain.service) + chain.service;
}

void SharedMemory::run_atomics(double cycle, const AtomicDone& done) {
  while (!events_.empty() && events_.top().cycle <= cycle) {
    const Event event = events_.top();
    events_.pop();
    Chain& chain = chains_[event.chain];
    const double finished = serve(event.cycle, chain);
    --chain.remaining;
    if (chain.token == kReduction) {
      --queued_[static_cast<uint32_t>(chain.core)];
    }
    if (chain.remaining != 0) {
      push_event(finished + chain.round_trip, event.chain);
      continue;
    }
    if (chain.token == kReduction) {
      reductions_.erase({static_cast<uint32_t>(chain.core), chain.sector});
    } else {
      Pending& pending = pending_[chain.token];
      pending.last = std::max(pending.last, finished + chain.round_trip / 2);
      if (--pending.chains == 0) {
        const double last = pending.last;
        const uint64_t token = chain.token;
        pending_.erase(token);
        free_chains_.push_back(event.chain);
        done(token, last);
        continue;
      }
    }
    free_chains_.push_back(event.chain);
  }
}

} // namespace pto::sim
