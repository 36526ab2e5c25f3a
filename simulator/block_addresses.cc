// SPDX-License-Identifier: Apache-2.0
// Addresses of a span's memory access, and the proof that all of them are good.
//
// Two paths. If neighbouring lanes access neighbouring elements (one parameter, symbol or tile plus
// a unit-stride index) the whole span is one range: bounds and alignment are proven once, and the
// data move as a block. Otherwise addresses are computed lane by lane; if their minimum and maximum
// lie in one allocation that proves all, else each lane is looked up by itself.
#include "simulator/block_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace pto::sim {

using isa::Space;

namespace {

/// Most indexes without unit stride are told apart by this.
bool may_have_unit_stride(const uint32_t* index, unsigned lanes) {
  return index[lanes - 1] - index[0] == lanes - 1;
}

bool has_unit_stride(const uint32_t* index, unsigned lanes) {
  const uint32_t first = index[0];
  if (!may_have_unit_stride(index, lanes)) {
    return false;
  }
  uint32_t differs = 0;
  for (unsigned i = 0; i < lanes; ++i) {
    differs |= (index[i] - i) ^ first;
  }
  return differs == 0;
}

PTO_HOST_LOOP void add_index(uint64_t* __restrict to,
                             const uint32_t* __restrict index,
                             uint64_t base,
                             unsigned scale_log2,
                             unsigned lanes) {
  for (unsigned i = 0; i < lanes; ++i) {
    const auto offset = static_cast<uint64_t>(int64_t{static_cast<int32_t>(index[i])});
    to[i] = base + (offset << scale_log2);
  }
}

struct AddressBounds {
  uint64_t lowest = UINT64_MAX;
  uint64_t highest = 0;
  uint64_t bits = 0; // of all addresses
};

PTO_HOST_LOOP void
find_bounds(const uint64_t* __restrict addresses, unsigned lanes, AddressBounds& __restrict found) {
  // Half of the numbers lie on each side of 0, which is the order that hosts compare in.
  constexpr uint64_t kSign = uint64_t{1} << 63;
  int64_t lowest = INT64_MAX;
  int64_t highest = INT64_MIN;
  uint64_t bits = 0;
  for (unsigned i = 0; i < lanes; ++i) {
    const auto value = static_cast<int64_t>(addresses[i] ^ kSign);
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
    bits |= addresses[i];
  }
  found = {static_cast<uint64_t>(lowest) ^ kSign, static_cast<uint64_t>(highest) ^ kSign, bits};
}

struct IndexBounds {
  int32_t lowest = 0;
  int32_t highest = 0;
};

PTO_HOST_LOOP void
find_index_bounds(const uint32_t* __restrict index, unsigned lanes, IndexBounds& __restrict found) {
  int32_t lowest = INT32_MAX;
  int32_t highest = INT32_MIN;
  for (unsigned i = 0; i < lanes; ++i) {
    lowest = std::min(lowest, static_cast<int32_t>(index[i]));
    highest = std::max(highest, static_cast<int32_t>(index[i]));
  }
  found = {lowest, highest};
}

/// Both for the lanes of one warp.
PTO_HOST_LOOP void find_warp_addresses(uint64_t* __restrict to,
                                       const uint32_t* __restrict index,
                                       uint64_t base,
                                       unsigned scale_log2,
                                       IndexBounds& __restrict found) {
  add_index(to, index, base, scale_log2, isa::kWarpLanes);
  find_index_bounds(index, isa::kWarpLanes, found);
}

/// The same of active lanes. `some` is the index of one of them.
PTO_HOST_LOOP void find_active_index_bounds(const uint32_t* __restrict index,
                                            const uint32_t* __restrict active,
                                            unsigned warps,
                                            uint32_t some,
                                            IndexBounds& __restrict found) {
  auto lowest = static_cast<int32_t>(some);
  int32_t highest = lowest;
  for (unsigned w = 0; w < warps; ++w) {
    const uint32_t mask = active[w];
    const uint32_t* __restrict own = index + w * isa::kWarpLanes;
    for (unsigned i = 0; i < isa::kWarpLanes; ++i) {
      const auto value = static_cast<int32_t>((mask & (1u << i)) != 0 ? own[i] : some);
      lowest = std::min(lowest, value);
      highest = std::max(highest, value);
    }
  }
  found = {lowest, highest};
}

} // namespace

// ---------------------------------------------------------------- addresses

bool BlockContext::resolve(const isa::Operand& operand, AddressForm& form) {
  const isa::MemRef mem = operand.mem();
  form.base = static_cast<uint64_t>(int64_t{mem.offset});
  if (mem.index_reg != isa::kNoIndexReg) {
    form.index = value32(mem.index_reg);
    form.scale_log2 = mem.scale_log2;
  }
  if (mem.base == isa::BaseKind::kParam) {
    form.base += image_.params[mem.base_index];
    last_allocation_ = image_.param_allocation[mem.base_index];
  } else if (mem.base == isa::BaseKind::kSymbol) {
    form.base += image_.program->object().symbols[mem.base_index].offset;
  } else if (mem.base == isa::BaseKind::kTile) {
    const TileState& tile = state_.tiles[mem.base_index];
    if (!tile.is_live) {
      raise(make_fault(FaultKind::kTile,
                       fmt::format("t{} holds no tile: alloc_local it first, in warp 0, with a "
                                   "barrier_block before other warps use it",
                                   mem.base_index)));
      return false;
    }
    form.base += tile.offset;
  } else if (mem.base == isa::BaseKind::kReg) {
    if (mem.space == Space::kHbm && uniform_.has_reg64(mem.base_index)) {
      form.base += linear64_[mem.base_index].base;
    } else if (mem.space != Space::kHbm && uniform_.has_reg32(mem.base_index)) {
      form.base += linear32_[mem.base_index].base;
    } else if (mem.space == Space::kHbm) {
      form.is_uniform_base = false;
      form.base64 = value64(mem.base_index);
    } else {
      form.is_uniform_base = false;
      form.base32 = value32(mem.base_index);
    }
  }
  return true;
}

void BlockContext::fill_addresses(const AddressForm& form) {
  uint64_t* __restrict to = addresses_.data();
  const uint64_t base = form.base;
  if (form.index != nullptr && form.is_uniform_base) {
    isa::host_loop<add_index>.on_host()(to, form.index, base, form.scale_log2, lanes_);
    return;
  }
  if (form.base64 != nullptr) {
    for (unsigned i = 0; i < lanes_; ++i) {
      to[i] = base + form.base64[i];
    }
  } else if (form.base32 != nullptr) {
    for (unsigned i = 0; i < lanes_; ++i) {
      to[i] = base + form.base32[i];
    }
  } else {
    std::fill_n(to, lanes_, base);
  }
  if (form.index != nullptr) {
    const unsigned scale = form.scale_log2;
    for (unsigned i = 0; i < lanes_; ++i) {
      to[i] += static_cast<uint64_t>(int64_t{static_cast<int32_t>(form.index[i])}) << scale;
    }
  }
}

uint8_t* BlockContext::range_host(Space space, uint64_t address, uint64_t bytes) {
  if (space == Space::kHbm) {
    if (last_allocation_ == nullptr || !last_allocation_->holds(address, bytes)) {
      last_allocation_ = hbm_.find(address);
      if (last_allocation_ == nullptr || !last_allocation_->holds(address, bytes)) {
        return nullptr;
      }
    }
    return last_allocation_->host + (address - last_allocation_->base);
  }
  if (space == Space::kL1) {
    return state_.scratchpad.holds(address, bytes) ? state_.scratchpad.data() + address : nullptr;
  }
  // Constants are only read; the cast serves one signature for all spaces.
  const std::vector<uint8_t>& data = image_.program->object().const_data;
  return address <= data.size() && bytes <= data.size() - address
             ? const_cast<uint8_t*>(data.data()) + address
             : nullptr;
}

bool BlockContext::pass_hooks(uint64_t address, uint64_t bytes, bool reads, bool writes) {
  const Allocation& allocation = *last_allocation_;
  const uint64_t offset = address - allocation.base;
  if (gate_ != nullptr && (writes || gate_->is_watched(allocation))) {
    const bool may = reads && writes ? gate_->may_reduce(allocation, offset, bytes)
                     : reads         ? gate_->may_read(allocation, offset, bytes)
                                     : gate_->may_write(allocation, offset, bytes);
    if (!may) {
      gate_stopped_ = true;
      return false;
    }
  }
  if (writes && hbm_.history() != nullptr) {
    hbm_.history()->before_write(allocation, offset, bytes);
  }
  return true;
}

bool BlockContext::is_last_access() const {
  if (pc_ + 1 >= image_.program->insns().size()) {
    return false;
  }
  const ProgramInsn& next = insns_[pc_ + 1];
  const isa::InsnDesc& row = *next.insn.desc;
  return !next.is_guarded && row.has(isa::kEndsLane) && !row.has(isa::kTraps) &&
         (!has_parts_ || std::all_of(state_.warps.begin(),
                                     state_.warps.end(),
                                     [](const WarpState& warp) { return warp.stack.empty(); }));
}

bool BlockContext::enter_ledger(
    uint64_t address, uint64_t bytes, unsigned lane, uint32_t lane_bytes, bool writes) {
  uint64_t begin = address;
  uint64_t end = address + bytes;
  if (lane_bytes != 0) { // the pieces of all lanes of the gang
    begin -= (uint64_t{first_} * isa::kWarpLanes + lane) * lane_bytes;
    end = begin + uint64_t{image_.padded_lanes} * lane_bytes;
  }
  if (bytes == 0 || begin > address || !ledger_->note(begin, end, lane_bytes, writes)) {
    ledger_->refuse();
    gate_stopped_ = true;
    return false;
  }
  if (writes && is_last_access()) {
    ledger_->end();
  } else if (writes) {
    ledger_->save(last_allocation_->host + (address - last_allocation_->base), bytes);
  }
  return true;
}

// ---------------------------------------------------------------- proving an access

bool BlockContext::plan_lanes(const isa::Operand& mem,
                              uint32_t element_bytes,
                              uint32_t count,
                              bool reads,
                              bool writes,
                              Lanes& lanes) {
  AddressForm form;
  if (!resolve(mem, form)) {
    return false;
  }
  const Space space = mem.mem().space;
  const bool may_be_run = count == 1 && form.is_uniform_base && form.index != nullptr &&
                          (1u << form.scale_log2) == element_bytes;
  if (is_recording_) {
    if (may_be_run && all_active_ && !is_span_told_ && may_have_unit_stride(form.index, lanes_) &&
        try_contiguous(form, space, element_bytes, reads, writes, lanes)) {
      for (unsigned i = 0; i < isa::kWarpLanes; ++i) {
        addresses_[i] = lanes.first_address + uint64_t{i} * element_bytes;
      }
      record_addresses(mem, element_bytes, count, reads, writes, true, element_bytes);
      return !gate_stopped_;
    }
    if (plan_scattered_warp(mem, form, element_bytes, count, reads, writes, lanes)) {
      return true;
    }
    record_access(mem, form, element_bytes, count, reads, writes);
    const isa::LinearValue at{addresses_[0], static_cast<uint64_t>(record_.stride), 0};
    if (record_.is_strided && all_active_ && !is_span_told_ && !has_hooks(space, writes) &&
        prove_linear(space, at, element_bytes, count, lanes)) {
      return true;
    }
  }
  const bool is_one_address = form.index == nullptr && form.is_uniform_base;
  if (has_linear() || (is_one_address && uses_linear_ && !is_recording_)) {
    if (plan_linear(mem, form, element_bytes, count, reads, writes, lanes)) {
      return !gate_stopped_;
    }
    ResourceSet registers; // of the address
    if (form.index != nullptr) {
      registers.add_reg32(mem.mem().index_reg);
    }
    if (form.base64 != nullptr) {
      registers.add_reg64(mem.mem().base_index);
    } else if (form.base32 != nullptr) {
      registers.add_reg32(mem.mem().base_index);
    }
    settle(registers);
  }
  const bool was_tried = is_recording_ && all_active_ && !is_span_told_;
  if (may_be_run && !was_tried &&
      try_contiguous(form, space, element_bytes, reads, writes, lanes)) {
    const isa::LinearValue at{
        lanes.first_address, element_bytes, uint64_t{element_bytes} * isa::kWarpLanes};
    if (is_span_told_) {
      record_span_access(space, element_bytes, count, reads, writes, &at);
    }
    if (is_together_) {
      note_linear_access(space, element_bytes, at);
    }
    return !gate_stopped_;
  }
  if (!is_recording_) { // else they are there
    fill_addresses(form);
  }
  if (!plan_gather(form, space, element_bytes * count, reads, writes, lanes)) {
    return false;
  }
  if (is_span_told_) {
    record_span_access(space, element_bytes, count, reads, writes, nullptr);
  }
  if (is_together_) {
    note_access(space, element_bytes * count);
  }
  return true;
}

bool BlockContext::plan_scattered_warp(const isa::Operand& mem,
                                       const AddressForm& form,
                                       uint32_t element_bytes,
                                       uint32_t count,
                                       bool reads,
                                       bool writes,
                                       Lanes& lanes) {
  const Space space = mem.mem().space;
  const uint32_t access_bytes = element_bytes * count;
  if (form.index == nullptr || !form.is_uniform_base || !all_active_ || is_span_told_ ||
      has_hooks(space, writes) || has_ledger(space) || !is_form_aligned(form, access_bytes)) {
    return false;
  }
  const uint32_t* index = form.index;
  constexpr unsigned kLast = isa::kWarpLanes - 1;
  if (index[kLast] - index[0] == kLast * (index[1] - index[0])) {
    return false; // the others mostly, too
  }
  IndexBounds bounds;
  isa::host_loop<find_warp_addresses>.on_host()(
      addresses_.data(), index, form.base, form.scale_log2, bounds);
  const uint64_t lowest = form.address_of(bounds.lowest);
  const uint64_t bytes = form.address_of(bounds.highest) - lowest + access_bytes;
  uint8_t* host = lowest > form.address_of(bounds.highest) || bytes < access_bytes
                      ? nullptr
                      : range_host(space, lowest, bytes);
  if (host == nullptr) {
    return false;
  }
  lanes.host = host;
  lanes.origin = lowest;
  record_addresses(mem, element_bytes, count, reads, writes, false, addresses_[1] - addresses_[0]);
  return true;
}

void BlockContext::record_span_access(Space space,
                                      uint32_t element_bytes,
                                      uint32_t count,
                                      bool reads,
                                      bool writes,
                                      const isa::LinearValue* at) {
  span_.has_access = true;
  span_.is_linear = at != nullptr;
  if (at != nullptr) {
    span_.at = *at;
  }
  span_.addresses = addresses_.data();
  span_.space = space;
  span_.access_bytes = element_bytes * count;
  span_.element_bytes = static_cast<uint8_t>(element_bytes);
  span_.reads_memory = reads;
  span_.writes_memory = writes;
  span_.hint = isa::CacheHint::kCached;
  span_.is_atomic = reads && writes;
}

bool BlockContext::try_contiguous(const AddressForm& form,
                                  Space space,
                                  uint32_t element_bytes,
                                  bool reads,
                                  bool writes,
                                  Lanes& lanes) {
  unsigned low = 0;
  unsigned high = lanes_ - 1;
  if (all_active_) {
    if (!has_unit_stride(form.index, lanes_)) {
      return false;
    }
  } else {
    unsigned first_word = 0;
    unsigned last_word = count_ - 1;
    while (active_[first_word] == 0) {
      ++first_word;
    }
    while (active_[last_word] == 0) {
      --last_word;
    }
    low =
        first_word * isa::kWarpLanes + static_cast<unsigned>(std::countr_zero(active_[first_word]));
    high = last_word * isa::kWarpLanes + 31 -
           static_cast<unsigned>(std::countl_zero(active_[last_word]));
    const uint32_t origin = form.index[low] - low;
    uint32_t differs = 0;
    for_each_lane(active_ + first_word, last_word - first_word + 1, [&](unsigned i) {
      const unsigned lane = first_word * isa::kWarpLanes + i;
      differs |= (form.index[lane] - lane) ^ origin;
    });
    if (differs != 0) {
      return false;
    }
  }
  const int64_t first_index = static_cast<int32_t>(form.index[low]);
  if (static_cast<int32_t>(form.index[high]) - first_index != int64_t{high} - low) {
    return false; // the index wraps
  }
  const uint64_t begin = form.base + (static_cast<uint64_t>(first_index) << form.scale_log2);
  const uint64_t bytes = uint64_t{high - low + 1} * element_bytes;
  uint8_t* host = range_host(space, begin, bytes);
  if (host == nullptr || begin % element_bytes != 0) {
    return false; // the other path says exactly what is wrong
  }
  if ((has_hooks(space, writes) && !pass_hooks(begin, bytes, reads, writes)) ||
      (has_ledger(space) && !enter_ledger(begin, bytes, low, element_bytes, writes))) {
    return true;
  }
  lanes.is_contiguous = true;
  lanes.first_address = begin - uint64_t{low} * element_bytes;
  lanes.host = host - size_t{low} * element_bytes;
  return true;
}

bool BlockContext::find_form_bounds(const AddressForm& form,
                                    uint32_t access_bytes,
                                    uint64_t& lowest,
                                    uint64_t& highest) {
  if (form.index == nullptr || !form.is_uniform_base || !is_form_aligned(form, access_bytes)) {
    return false;
  }
  IndexBounds bounds;
  if (all_active_) {
    isa::host_loop<find_index_bounds>.on_host()(form.index, lanes_, bounds);
  } else {
    const uint32_t some = form.index[lowest_lane()];
    isa::host_loop<find_active_index_bounds>.on_host()(form.index, active_, count_, some, bounds);
  }
  if (form.address_of(bounds.lowest) > form.address_of(bounds.highest)) {
    return false; // they go round
  }
  lowest = form.address_of(bounds.lowest);
  highest = form.address_of(bounds.highest);
  return true;
}

bool BlockContext::plan_gather(const AddressForm& form,
                               Space space,
                               uint32_t access_bytes,
                               bool reads,
                               bool writes,
                               Lanes& lanes) {
  AddressBounds bounds;
  const uint64_t* addresses = addresses_.data();
  if (find_form_bounds(form, access_bytes, bounds.lowest, bounds.highest)) {
    // aligned, all of them
  } else if (all_active_) {
    isa::host_loop<find_bounds>.on_host()(addresses, lanes_, bounds);
  } else {
    for_each_lane(active_, count_, [&](unsigned i) {
      bounds.lowest = std::min(bounds.lowest, addresses[i]);
      bounds.highest = std::max(bounds.highest, addresses[i]);
      bounds.bits |= addresses[i];
    });
  }
  const uint64_t lowest = bounds.lowest;
  const uint64_t bytes = bounds.highest - lowest + access_bytes;
  uint8_t* host = bytes < access_bytes ? nullptr : range_host(space, lowest, bytes);
  if (host != nullptr && (bounds.bits & (access_bytes - 1)) == 0) {
    lanes.host = host;
    lanes.origin = lowest;
  } else {
    if (!check_lanes(space, access_bytes)) {
      return false;
    }
    lanes.is_scattered = true;
  }
  const bool is_told = has_hooks(space, writes) &&
                       (writes || lanes.is_scattered || gate_->is_watched(*last_allocation_));
  if (is_told) {
    bool passed = true;
    if (bounds.lowest == bounds.highest && !lanes.is_scattered) { // a flag that all lanes poll
      passed = pass_hooks(lowest, bytes, reads, writes);
    } else {
      for_each_lane(active_, count_, [&](unsigned i) {
        if (passed && lanes.is_scattered) {
          range_host(space, addresses[i], access_bytes);
        }
        passed = passed && pass_hooks(addresses[i], access_bytes, reads, writes);
      });
    }
    if (!passed) {
      return false;
    }
  }
  // A lane by itself in its allocation has no one range: none is as good as refused.
  return !has_ledger(space) || enter_ledger(lowest, lanes.is_scattered ? 0 : bytes, 0, 0, writes);
}

void BlockContext::record_access(const isa::Operand& mem,
                                 const AddressForm& form,
                                 uint32_t element_bytes,
                                 uint32_t count,
                                 bool reads,
                                 bool writes) {
  fill_addresses(form);
  const uint64_t stride = addresses_[1] - addresses_[0];
  constexpr unsigned kLast = isa::kWarpLanes - 1;
  bool is_strided = addresses_[kLast] == addresses_[0] + kLast * stride; // the others mostly, too
  if (is_strided) {
    uint64_t differs = 0;
    for (unsigned i = 0; i < isa::kWarpLanes; ++i) {
      differs |= addresses_[i] ^ (addresses_[0] + i * stride);
    }
    is_strided = differs == 0;
  }
  record_addresses(mem, element_bytes, count, reads, writes, is_strided, stride);
}

void BlockContext::record_addresses(const isa::Operand& mem,
                                    uint32_t element_bytes,
                                    uint32_t count,
                                    bool reads,
                                    bool writes,
                                    bool is_strided,
                                    uint64_t stride) {
  record_.addresses = addresses_.data();
  record_.space = mem.mem().space;
  record_.element_bytes = static_cast<uint8_t>(element_bytes);
  record_.access_bytes = element_bytes * count;
  record_.reads_memory = reads;
  record_.writes_memory = writes;
  record_.is_strided = is_strided;
  record_.stride = static_cast<int64_t>(stride);
}

} // namespace pto::sim
