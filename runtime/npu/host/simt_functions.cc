// SPDX-License-Identifier: Apache-2.0
// Functions of the interface by which lanes meet, the clock, cache control, and the scalar unit.
// Copies, fences and cache control act at once.
#include "simt_group.h"
#include "simt_host.h"

#undef clock

#include <algorithm>
#include <cstring>

using namespace pto_host;

namespace {

/// `combine` over what the active lanes brought.
template <class Fn> uint64_t over_active(const char* what, uint64_t value, Fn combine) {
  const Group group = collect(what, value);
  bool is_first = true;
  uint64_t result = 0;
  for (unsigned i = 0; i < kWarp; ++i) {
    if ((group.active >> i & 1) != 0) {
      result = is_first ? group.values[i] : combine(result, group.values[i]);
      is_first = false;
    }
  }
  return result;
}

} // namespace

// ---------------------------------------------------------------- lanes and warps

int32_t laneid() {
  return static_cast<int32_t>(own_lane());
}
int32_t lanemask_eq() {
  return static_cast<int32_t>(1u << own_lane());
}
int32_t lanemask_lt() {
  return static_cast<int32_t>((1u << own_lane()) - 1);
}
int32_t lanemask_le() {
  return lanemask_lt() | lanemask_eq();
}
int32_t lanemask_ge() {
  return ~lanemask_lt();
}
int32_t lanemask_gt() {
  return ~lanemask_le();
}

int32_t asc_all(int32_t predicate) {
  return static_cast<int32_t>(
      over_active("asc_all", predicate != 0 ? 1 : 0, [](uint64_t a, uint64_t b) { return a & b; }));
}
int32_t asc_any(int32_t predicate) {
  return static_cast<int32_t>(
      over_active("asc_any", predicate != 0 ? 1 : 0, [](uint64_t a, uint64_t b) { return a | b; }));
}
uint32_t asc_ballot(int32_t predicate) {
  return static_cast<uint32_t>(over_active("asc_ballot",
                                           predicate != 0 ? uint64_t{1} << own_lane() : 0,
                                           [](uint64_t a, uint64_t b) { return a | b; }));
}
uint32_t asc_activemask() {
  return collect("asc_activemask", 0).active;
}
uint64_t asc_shfl(uint64_t var, int32_t src_lane, int32_t width) {
  const Group group = collect("asc_shfl", var);
  const auto lane = own_lane();
  const auto segment = static_cast<uint32_t>(width);
  const uint32_t source = lane / segment * segment + static_cast<uint32_t>(src_lane) % segment;
  // A lane that is not active gives something that no test can mistake for its value.
  return (group.active >> source & 1) != 0 ? group.values[source] : 0xbad0bad0bad0bad0;
}
uint32_t asc_shfl(uint32_t var, int32_t src_lane, int32_t width) {
  return static_cast<uint32_t>(asc_shfl(uint64_t{var}, src_lane, width));
}
uint32_t asc_reduce_add(uint32_t val) {
  return static_cast<uint32_t>(
      over_active("asc_reduce_add", val, [](uint64_t a, uint64_t b) { return a + b; }));
}
int32_t asc_reduce_min(int32_t val) {
  return static_cast<int32_t>(
      over_active("asc_reduce_min", static_cast<uint32_t>(val), [](uint64_t a, uint64_t b) {
        return static_cast<int32_t>(a) < static_cast<int32_t>(b) ? a : b;
      }));
}
uint32_t asc_reduce_min(uint32_t val) {
  return static_cast<uint32_t>(
      over_active("asc_reduce_min", val, [](uint64_t a, uint64_t b) { return std::min(a, b); }));
}
int32_t asc_reduce_max(int32_t val) {
  return static_cast<int32_t>(
      over_active("asc_reduce_max", static_cast<uint32_t>(val), [](uint64_t a, uint64_t b) {
        return static_cast<int32_t>(a) > static_cast<int32_t>(b) ? a : b;
      }));
}
uint32_t asc_reduce_max(uint32_t val) {
  return static_cast<uint32_t>(
      over_active("asc_reduce_max", val, [](uint64_t a, uint64_t b) { return std::max(a, b); }));
}

// ---------------------------------------------------------------- synchronisation

void asc_syncthreads() {
  wait_for_block("asc_syncthreads");
}
void asc_threadfence() {
  takes("asc_threadfence");
}
void asc_threadfence_block() {
  takes("asc_threadfence_block");
}
void asc_nop() {
  takes("asc_nop");
}
uint64_t simt_clock() {
  return read_clock();
}
void __trap() {
  trap();
}
void asc_dcci_single(void*) {
  takes("asc_dcci_single");
}
void asc_dcci_entire(void*) {
  takes("asc_dcci_entire");
}
void asc_init() {}
// Blocks go round the cores of a small machine.
int64_t asc_get_core_id() {
  return block_idx % 4;
}

// ---------------------------------------------------------------- the scalar unit

void asc_copy_gm2ub_align(uint8_t* dst,
                          uint8_t* src,
                          uint16_t n_burst,
                          uint32_t len_burst,
                          uint8_t,
                          uint8_t,
                          bool,
                          asc_load_l2_cache_mode,
                          uint64_t src_stride,
                          uint32_t dst_stride) {
  for (uint32_t row = 0; row < n_burst; ++row) {
    std::memcpy(dst + size_t{row} * dst_stride, src + row * src_stride, len_burst);
    // The engine fills its last unit of 32 bytes with padding.
    std::memset(dst + size_t{row} * dst_stride + len_burst, 0xee, (32 - len_burst % 32) % 32);
  }
}
void asc_copy_ub2gm_align(uint8_t* dst,
                          uint8_t* src,
                          uint16_t n_burst,
                          uint32_t len_burst,
                          asc_store_l2_cache_mode,
                          uint64_t dst_stride,
                          uint32_t src_stride) {
  for (uint32_t row = 0; row < n_burst; ++row) {
    std::memcpy(dst + row * dst_stride, src + size_t{row} * src_stride, len_burst);
  }
}
void asc_sync_notify(pipe_t, pipe_t, event_t) {}
void asc_sync_wait(pipe_t, pipe_t, event_t) {}
