// SPDX-License-Identifier: Apache-2.0
// Loads, stores and atomics of a span: the data move, once block_addresses.cc has proven every
// lane's access. Nothing has moved when a fault is found: the insn has no effect.
#include "simulator/block_context.h"
#include "simulator/memory_element.h"
#include "simulator/prefetch_next.h"
#include "simulator/reductions.h"

#include <algorithm>

namespace pto::sim {

using isa::Outcome;

namespace {

template <class Element, class Value>
void load_block(Value* __restrict dst, const uint8_t* __restrict host, unsigned lanes) {
  for (unsigned i = 0; i < lanes; ++i) {
    dst[i] = load_element<Element, Value>(host + i * sizeof(Element));
  }
}

template <class Element, class Value>
void store_block(uint8_t* __restrict host, const Value* __restrict src, unsigned lanes) {
  for (unsigned i = 0; i < lanes; ++i) {
    store_element<Element>(host + i * sizeof(Element), src[i]);
  }
}

/// One warp whose lanes are `step` bytes apart.
template <class Element, class Value>
void load_row(Value* to, const uint8_t* host, int64_t step, uint32_t active) {
  if (active == ~0u && step == int64_t{sizeof(Element)}) {
    load_block<Element>(to, host, isa::kWarpLanes);
  } else if (active == ~0u && step == 0) {
    std::fill_n(to, isa::kWarpLanes, load_element<Element, Value>(host));
  } else {
    for_each_lane(
        &active, 1, [&](unsigned i) { to[i] = load_element<Element, Value>(host + i * step); });
  }
}

template <class Element, class Value>
void store_row(uint8_t* host, const Value* from, int64_t step, uint32_t active) {
  if (active == ~0u && step == int64_t{sizeof(Element)}) {
    store_block<Element>(host, from, isa::kWarpLanes);
  } else {
    for_each_lane(
        &active, 1, [&](unsigned i) { store_element<Element>(host + i * step, from[i]); });
  }
}

} // namespace

inline uint8_t*
BlockContext::lane_host(const Lanes& lanes, unsigned lane, uint32_t element_bytes) const {
  if (lanes.is_contiguous) {
    return lanes.host + size_t{lane} * element_bytes;
  }
  if (lanes.is_linear) {
    return lanes.host + lane % isa::kWarpLanes * lanes.lane_step +
           lane / isa::kWarpLanes * lanes.warp_step;
  }
  return lanes.is_scattered ? pointers_[lane] : lanes.host + (addresses_[lane] - lanes.origin);
}

// ---------------------------------------------------------------- the accesses

Outcome
BlockContext::load(const isa::Operand& mem, const isa::MemAccess& access, const isa::Operand& dst) {
  const uint32_t element_bytes = isa::size_bytes(access.type);
  if (is_recording_) {
    record_.hint = access.hint;
  }
  const bool is_in_hbm = mem.mem().space == isa::Space::kHbm;
  Lanes lanes;
  if (!plan_lanes(mem, element_bytes, access.count, true, false, lanes)) {
    return Outcome::kFault;
  }
  span_.hint = access.hint;
  group_.hint = access.hint;
  if (has_data_caches(mem) && access.hint == isa::CacheHint::kCached) {
    load_through_caches(mem, access, dst);
    return Outcome::kNext;
  }
  with_element(access.type, [&](auto element, auto value) {
    using Element = decltype(element);
    using Value = decltype(value);
    for (unsigned j = 0; j < access.count; ++j) {
      Value* to;
      if constexpr (sizeof(Value) == 8) {
        to = reg64(dst.index + j);
      } else {
        to = reg32(dst.index + j);
      }
      if (lanes.is_contiguous) {
        if (all_active_) {
          if (is_in_hbm) {
            prefetch_next(lanes.host, lanes_ * sizeof(Element));
          }
          if (keeps_views_ && sizeof(Element) == sizeof(Value)) {
            loaded_view_ = lanes.host;
          } else {
            load_block<Element>(to, lanes.host, lanes_);
          }
          continue;
        }
        for (unsigned w = 0; w < count_; ++w) {
          const size_t lane = size_t{w} * isa::kWarpLanes;
          load_row<Element>(
              to + lane, lanes.host + lane * sizeof(Element), int64_t{sizeof(Element)}, active_[w]);
        }
        continue;
      }
      const size_t skip = j * sizeof(Element);
      if (lanes.is_linear) {
        if (lanes.lane_step == 0 && lanes.warp_step == 0 && all_active_ && uses_linear_) {
          loaded_[loaded_count_++] = load_element<Element, Value>(lanes.host + skip);
          continue;
        }
        for (unsigned w = 0; w < count_; ++w) {
          const uint8_t* host = lanes.host + skip + w * lanes.warp_step;
          load_row<Element>(to + w * isa::kWarpLanes, host, lanes.lane_step, active_[w]);
        }
        continue;
      }
      if (lanes.is_scattered) {
        for_each_lane(active_, count_, [&](unsigned i) {
          to[i] = load_element<Element, Value>(pointers_[i] + skip);
        });
      } else {
        const uint8_t* host = lanes.host + skip;
        const uint64_t origin = lanes.origin;
        const uint64_t* addresses = addresses_.data();
        for_each_lane(active_, count_, [&](unsigned i) {
          to[i] = load_element<Element, Value>(host + (addresses[i] - origin));
        });
      }
    }
  });
  return Outcome::kNext;
}

Outcome BlockContext::store(const isa::Operand& mem,
                            const isa::MemAccess& access,
                            const isa::Operand& src) {
  const uint32_t element_bytes = isa::size_bytes(access.type);
  if (is_recording_) {
    record_.hint = access.hint;
  }
  const bool is_in_hbm = mem.mem().space == isa::Space::kHbm;
  Lanes lanes;
  if (!plan_lanes(mem, element_bytes, access.count, false, true, lanes)) {
    return Outcome::kFault;
  }
  span_.hint = access.hint;
  group_.hint = access.hint;
  if (has_views()) {
    settle_views_under(lanes, mem.mem().space, element_bytes);
  }
  with_element(access.type, [&](auto element, auto value) {
    using Element = decltype(element);
    using Value = decltype(value);
    for (unsigned j = 0; j < access.count; ++j) {
      const Value* from;
      if constexpr (sizeof(Value) == 8) {
        from = src.kind == isa::OperandKind::kReg64 ? value64(src.index + j) : source64(src);
      } else {
        from = src.kind == isa::OperandKind::kReg32 ? value32(src.index + j) : source32(src);
      }
      if (lanes.is_contiguous) {
        if (all_active_) {
          if (is_in_hbm) {
            prefetch_next(lanes.host, lanes_ * sizeof(Element));
          }
          store_block<Element>(lanes.host, from, lanes_);
          continue;
        }
        for (unsigned w = 0; w < count_; ++w) {
          const size_t lane = size_t{w} * isa::kWarpLanes;
          store_row<Element>(lanes.host + lane * sizeof(Element),
                             from + lane,
                             int64_t{sizeof(Element)},
                             active_[w]);
        }
        continue;
      }
      const size_t skip = j * sizeof(Element);
      if (lanes.is_linear) {
        for (unsigned w = 0; w < count_; ++w) {
          uint8_t* host = lanes.host + skip + w * lanes.warp_step;
          store_row<Element>(host, from + w * isa::kWarpLanes, lanes.lane_step, active_[w]);
        }
        continue;
      }
      for_each_lane(active_, count_, [&](unsigned i) {
        store_element<Element>(lane_host(lanes, i, element_bytes) + skip, from[i]);
      });
    }
  });
  if (has_data_caches(mem)) {
    store_through_caches(mem, element_bytes * access.count, access.hint);
  }
  return Outcome::kNext;
}

void BlockContext::put_off(const Lanes& lanes,
                           uint32_t element_bytes,
                           isa::AtomicFn fn,
                           const isa::Operand& source) {
  Reductions& reductions = gate_->reductions();
  reductions.begin(fn, element_bytes);
  const auto add = [&](const auto* values) {
    for_each_lane(active_, count_, [&](unsigned i) {
      reductions.add(lane_host(lanes, i, element_bytes), values[i]);
    });
  };
  if (element_bytes == 8) {
    add(source64(source));
  } else {
    add(source32(source));
  }
}

Outcome BlockContext::atomic(const isa::Operand& mem,
                             isa::Type type,
                             const isa::AtomicOp& op,
                             const isa::Operand& dst,
                             const isa::Operand& a,
                             const isa::Operand* b) {
  const uint32_t element_bytes = isa::size_bytes(type);
  const bool has_result = dst.kind != isa::OperandKind::kDiscard;
  Lanes lanes;
  if (!plan_lanes(mem, element_bytes, 1, true, true, lanes)) {
    return Outcome::kFault;
  }
  if (is_recording_) {
    record_.is_atomic = true;
    record_.is_result_read = has_result;
  }
  if (has_data_caches(mem)) {
    atomic_through_caches(mem);
  }
  if (gate_ != nullptr && mem.mem().space == isa::Space::kHbm) {
    put_off(lanes, element_bytes, op.one, a);
    return Outcome::kNext;
  }
  if (element_bytes == 8) {
    const uint64_t* first = source64(a);
    const uint64_t* second = b != nullptr ? source64(*b) : first;
    uint64_t* old_values = has_result ? reg64(dst.index) : nullptr;
    for_each_lane(active_, count_, [&](unsigned i) {
      uint8_t* host = lane_host(lanes, i, element_bytes);
      const auto old = load_element<uint64_t, uint64_t>(host);
      store_element<uint64_t>(host, op.one(old, first[i], second[i]));
      if (old_values != nullptr) {
        old_values[i] = old;
      }
    });
    return Outcome::kNext;
  }
  const uint32_t* first = source32(a);
  const uint32_t* second = b != nullptr ? source32(*b) : first;
  uint32_t* old_values = has_result ? reg32(dst.index) : nullptr;
  if (all_active_ && !lanes.is_contiguous && !lanes.is_linear && !lanes.is_scattered) {
    for (unsigned at = 0; at < lanes_; at += isa::kWarpLanes) {
      op.warp(lanes.host,
              addresses_.data() + at,
              lanes.origin,
              first + at,
              second + at,
              old_values != nullptr ? old_values + at : nullptr);
    }
    return Outcome::kNext;
  }
  for_each_lane(active_, count_, [&](unsigned i) {
    uint8_t* host = lane_host(lanes, i, element_bytes);
    const auto old = load_element<uint32_t, uint32_t>(host);
    store_element<uint32_t>(host, static_cast<uint32_t>(op.one(old, first[i], second[i])));
    if (old_values != nullptr) {
      old_values[i] = old;
    }
  });
  return Outcome::kNext;
}

} // namespace pto::sim
