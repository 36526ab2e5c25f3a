// SPDX-License-Identifier: Apache-2.0
// What the writer of saved runs and their reader share: the schema, and one list of names for each
// group of counts. For the files of this folder only.
#pragma once

#include "simulator/report/timing_report.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace pto::sim {

inline constexpr std::string_view kRunSchema = "pto-run-1";

/// A figure and what a saved run calls it.
template <class T> struct RunField {
  const char* name;
  uint64_t T::*member;
};

inline constexpr std::array kRunMemoryFields = {
    RunField<MemoryCounters>{"requests", &MemoryCounters::requests},
    RunField<MemoryCounters>{"lines", &MemoryCounters::lines},
    RunField<MemoryCounters>{"cache_hits", &MemoryCounters::cache_hits},
    RunField<MemoryCounters>{"cache_misses", &MemoryCounters::cache_misses},
    RunField<MemoryCounters>{"l1_requests", &MemoryCounters::l1_requests},
    RunField<MemoryCounters>{"bank_conflicts", &MemoryCounters::bank_conflicts},
    RunField<MemoryCounters>{"bank_conflict_requests", &MemoryCounters::bank_conflict_requests},
    RunField<MemoryCounters>{"l1_bytes", &MemoryCounters::l1_bytes},
    RunField<MemoryCounters>{"hbm_request_bytes", &MemoryCounters::hbm_request_bytes},
    RunField<MemoryCounters>{"copies_in", &MemoryCounters::copies_in},
    RunField<MemoryCounters>{"copies_out", &MemoryCounters::copies_out},
    RunField<MemoryCounters>{"copy_bytes", &MemoryCounters::copy_bytes},
};

inline constexpr std::array kRunSharedFields = {
    RunField<SharedMemory::Counters>{"l2_read_bytes", &SharedMemory::Counters::l2_read_bytes},
    RunField<SharedMemory::Counters>{"l2_write_bytes", &SharedMemory::Counters::l2_write_bytes},
    RunField<SharedMemory::Counters>{"l2_hit_sectors", &SharedMemory::Counters::l2_hit_sectors},
    RunField<SharedMemory::Counters>{"l2_miss_sectors", &SharedMemory::Counters::l2_miss_sectors},
    RunField<SharedMemory::Counters>{"hbm_read_bytes", &SharedMemory::Counters::hbm_read_bytes},
    RunField<SharedMemory::Counters>{"hbm_write_bytes", &SharedMemory::Counters::hbm_write_bytes},
    RunField<SharedMemory::Counters>{"atomic_ops", &SharedMemory::Counters::atomic_ops},
};

} // namespace pto::sim
