// SPDX-License-Identifier: Apache-2.0
// Registers that hold a linear function of the lane (isa/linear.h), kept as three numbers.
//
// Most integer work of a kernel is of this kind: the lane's number, a loop's counter, addresses and
// the comparisons that guard them. While a span runs with every lane active, such a result is noted
// and its lanes are not written (the register is *linear*); what needs the lanes writes them first
// (settle). An insn whose sources are uniform but that has no linear form is executed for one warp,
// and its result is uniform. Nobody outside a span sees a linear register: all are settled when the
// span ends, before a fault is told, and before an insn that observers want by the warp; whoever
// asks a BlockRun for a register in between is told its value.
#include "simulator/block_context.h"
#include "simulator/each_bit.h"
#include "simulator/known_values.h"

#include <algorithm>

namespace pto::sim {

using isa::LinearValue;
using isa::Outcome;
using isa::Space;
using isa::Special;

namespace {

template <class Slot>
PTO_HOST_LOOP void
write_lanes(Slot* __restrict to, unsigned warps, Slot base, Slot lane_step, Slot warp_step) {
  for (unsigned w = 0; w < warps; ++w) {
    const Slot first = base + static_cast<Slot>(w) * warp_step;
    for (unsigned i = 0; i < isa::kWarpLanes; ++i) {
      to[w * isa::kWarpLanes + i] = first + static_cast<Slot>(i) * lane_step;
    }
  }
}

} // namespace

// ---------------------------------------------------------------- keeping and settling

void BlockContext::set_linear32(unsigned index, const LinearValue& value) {
  viewed32_[index / 64] &= ~(uint64_t{1} << (index % 64));
  linear32_[index] = value.low_half();
  linear_.add_reg32(index);
  if (linear32_[index].is_uniform()) {
    uniform_.add_reg32(index);
  } else {
    uniform_.reg32[index / 64] &= ~(uint64_t{1} << (index % 64));
  }
}

void BlockContext::set_linear64(unsigned index, const LinearValue& value) {
  viewed64_ &= ~(uint64_t{1} << index);
  linear64_[index] = value;
  linear_.add_reg64(index);
  if (value.is_uniform()) {
    uniform_.add_reg64(index);
  } else {
    uniform_.reg64 &= ~(uint64_t{1} << index);
  }
}

void BlockContext::settle_linear(const ResourceSet& set) {
  for (unsigned half = 0; half < 2; ++half) {
    for_each_bit(set.reg32[half] & linear_.reg32[half], half * 64, [&](unsigned i) {
      const LinearValue& value = linear32_[i];
      isa::host_loop<write_lanes<uint32_t>>(reg32(i),
                                            count_,
                                            static_cast<uint32_t>(value.base),
                                            static_cast<uint32_t>(value.lane_step),
                                            static_cast<uint32_t>(value.warp_step));
    });
  }
  for_each_bit(set.reg64 & linear_.reg64, 0, [&](unsigned i) {
    const LinearValue& value = linear64_[i];
    isa::host_loop<write_lanes<uint64_t>>(
        reg64(i), count_, value.base, value.lane_step, value.warp_step);
  });
  forget_linear(set);
}

void BlockContext::settle_all() {
  if (registers_are_zero_) {
    zero_registers();
  }
  if (has_linear()) {
    settle_linear(linear_);
  }
  if (has_views()) {
    settle_views(all_registers_);
  }
}

void BlockContext::settle_reg32(unsigned index) {
  if (registers_are_zero_) {
    zero_registers();
  }
  ResourceSet one;
  one.add_reg32(index);
  settle(one);
  settle_views(one);
}

uint64_t BlockContext::lane_of(const LinearValue& value, uint32_t lane) {
  return value.base + lane % isa::kWarpLanes * value.lane_step +
         lane / isa::kWarpLanes * value.warp_step;
}

std::optional<uint64_t> BlockContext::unwritten32(unsigned index, uint32_t lane) const {
  if (registers_are_zero_) {
    return 0;
  }
  const uint32_t in_span = lane - first_ * isa::kWarpLanes;
  if (index >= isa::kReg32Count || in_span >= count_ * isa::kWarpLanes) {
    return std::nullopt;
  }
  if (linear_.has_reg32(index)) {
    return lane_of(linear32_[index], in_span);
  }
  return has_view32(index) ? std::optional<uint64_t>(views32_[index][in_span]) : std::nullopt;
}

std::optional<uint64_t> BlockContext::unwritten64(unsigned index, uint32_t lane) const {
  if (registers_are_zero_) {
    return 0;
  }
  const uint32_t in_span = lane - first_ * isa::kWarpLanes;
  if (index >= isa::kReg64Count || in_span >= count_ * isa::kWarpLanes) {
    return std::nullopt;
  }
  if (linear_.has_reg64(index)) {
    return lane_of(linear64_[index], in_span);
  }
  return has_view64(index) ? std::optional<uint64_t>(views64_[index][in_span]) : std::nullopt;
}

void BlockContext::start_registers() {
  if (!uses_linear_) {
    zero_registers();
    return;
  }
  registers_are_zero_ = false;
  linear_ = uniform_ = all_registers_;
  std::fill_n(linear32_.begin(), image_.program->reg32_limit(), LinearValue{});
  std::fill_n(linear64_.begin(), image_.program->reg64_limit(), LinearValue{});
}

void BlockContext::zero_registers() {
  registers_are_zero_ = false;
  std::fill(state_.reg32.begin(), state_.reg32.end(), 0u);
  std::fill(state_.reg64.begin(), state_.reg64.end(), uint64_t{0});
}

// ---------------------------------------------------------------- executing

bool BlockContext::linear_special(Special special, LinearValue& value) const {
  if (special == Special::kLane) {
    value = {0, 1, 0};
    return true;
  }
  if (special == Special::kWarp) {
    value = {first_, 0, 1};
    return true;
  }
  const std::optional<SpecialOfAxis> at = special_of_axis(special);
  if (!at) {
    return false;
  }
  const Dim3& block = image_.block;
  const uint32_t extent = along(block, at->axis);
  const uint32_t place = along(state_.ctaid, at->axis);
  if (at->group == Special::kCtaidX) {
    value = LinearValue::uniform(place);
    return true;
  }
  if (extent == 1) {
    value = {};
  } else if (block.y == 1 && block.z == 1) {
    value = {first_ * isa::kWarpLanes, 1, isa::kWarpLanes};
  } else if (block.x == isa::kWarpLanes && block.z == 1) { // a warp a row
    value = at->axis == 0 ? LinearValue{0, 1, 0} : LinearValue{first_, 0, 1};
  } else {
    return false;
  }
  value.base += at->group == Special::kGidX ? uint64_t{place} * extent : 0;
  return true;
}

bool BlockContext::linear_source(const isa::Operand& operand, LinearValue& value) const {
  const bool is_for_predicate = insn_->insn.operands[0].kind != isa::OperandKind::kReg32;
  if (operand.kind == isa::OperandKind::kSpecial && is_for_predicate) {
    return false;
  }
  const auto special = [&](Special which, LinearValue& found) {
    return linear_special(which, found);
  };
  return source_value(operand, image_, linear_registers(), special, value);
}

bool BlockContext::execute_linear() {
  const isa::Insn& insn = insn_->insn;
  if (insn.desc->linear.of_span != nullptr) {
    isa::LinearSources sources;
    sources.warps = count_;
    const unsigned end = std::min<unsigned>(insn.operand_count, sources.at.size());
    for (unsigned i = 1; i < end; ++i) {
      if (!linear_source(insn.operands[i], sources.at[i])) {
        return false;
      }
    }
    LinearValue result;
    if (insn.desc->linear.of_span(*this, insn, sources, result)) {
      const isa::Operand& dst = insn.operands[0];
      if (dst.kind == isa::OperandKind::kReg32) {
        set_linear32(dst.index, result);
      } else if (dst.kind == isa::OperandKind::kReg64) {
        set_linear64(dst.index, result);
      }
      return true;
    }
  }
  if (insn_->is_pure && insn_->reads.is_within(uniform_)) {
    execute_once();
    return true;
  }
  return false;
}

void BlockContext::execute_once() {
  static constexpr uint32_t kAllLanes = ~0u;
  const isa::Insn& insn = insn_->insn;
  for (unsigned half = 0; half < 2; ++half) {
    for_each_bit(insn_->reads.reg32[half], half * 64, [&](unsigned i) {
      std::fill_n(reg32(i), isa::kWarpLanes, static_cast<uint32_t>(linear32_[i].base));
    });
  }
  for_each_bit(insn_->reads.reg64, 0, [&](unsigned i) {
    std::fill_n(reg64(i), isa::kWarpLanes, linear64_[i].base);
  });
  const unsigned lanes = lanes_;
  const uint32_t* active = active_;
  lanes_ = isa::kWarpLanes;
  active_ = &kAllLanes;
  insn_->exec(*this, insn);
  lanes_ = lanes;
  active_ = active;
  const isa::Operand& dst = insn.operands[0];
  if (dst.kind == isa::OperandKind::kReg32) {
    set_linear32(dst.index, LinearValue::uniform(reg32(dst.index)[0]));
  } else if (dst.kind == isa::OperandKind::kReg64) {
    set_linear64(dst.index, LinearValue::uniform(reg64(dst.index)[0]));
  } else {
    uint32_t* words = pred(dst.index);
    std::fill_n(words, count_, words[0]);
  }
}

// ---------------------------------------------------------------- addresses

std::optional<LinearValue> BlockContext::linear_address(const isa::Operand& operand,
                                                        const AddressForm& form) const {
  const auto widened = [&](const LinearValue& value, bool is_signed) {
    const auto range = isa::linear_range(value, count_, is_signed);
    return range ? std::optional<LinearValue>(range->widened()) : std::nullopt;
  };
  return lane_address(operand.mem(), form.base, form.is_uniform_base, linear_registers(), widened);
}

bool BlockContext::plan_linear(const isa::Operand& operand,
                               const AddressForm& form,
                               uint32_t element_bytes,
                               uint32_t count,
                               bool reads,
                               bool writes,
                               Lanes& lanes) {
  const isa::MemRef mem = operand.mem();
  const std::optional<LinearValue> linear = linear_address(operand, form);
  if (!linear) {
    return false;
  }
  const LinearValue& at = *linear;
  const bool is_told = has_hooks(mem.space, writes);
  if (!all_active_ && (is_told || has_ledger(mem.space))) {
    return false;
  }
  const std::optional<AccessRange> range = prove_linear(mem.space, at, element_bytes, count, lanes);
  if (!range) {
    return false;
  }
  const uint32_t access_bytes = element_bytes * count;
  const uint64_t lowest = range->lowest;
  const uint64_t bytes = range->bytes;
  if (is_told) {
    if (lanes.is_contiguous || at.is_uniform()) {
      static_cast<void>(pass_hooks(lowest, bytes, reads, writes));
    } else {
      const bool is_row = lanes.lane_step == int64_t{element_bytes} && count == 1;
      const unsigned lanes_at_once = is_row ? isa::kWarpLanes : 1;
      for (unsigned i = 0; i < lanes_ && !gate_stopped_; i += lanes_at_once) {
        const uint64_t address =
            at.base + (i % isa::kWarpLanes) * at.lane_step + i / isa::kWarpLanes * at.warp_step;
        static_cast<void>(pass_hooks(address, access_bytes * lanes_at_once, reads, writes));
      }
    }
  }
  if (has_ledger(mem.space) && !gate_stopped_) {
    const bool is_by_lane = lanes.lane_step == int64_t{access_bytes} &&
                            (count_ == 1 || lanes.warp_step == lanes.lane_step * isa::kWarpLanes);
    static_cast<void>(enter_ledger(lowest, bytes, 0, is_by_lane ? access_bytes : 0, writes));
  }
  if (is_span_told_) {
    record_span_access(mem.space, element_bytes, count, reads, writes, &at);
  }
  if (is_together_) {
    note_linear_access(mem.space, access_bytes, at);
  }
  return true;
}

std::optional<AccessRange> BlockContext::prove_linear(
    Space space, const LinearValue& at, uint32_t element_bytes, uint32_t count, Lanes& lanes) {
  const std::optional<AccessRange> range = linear_range_of(at, element_bytes * count, count_);
  // Inactive lanes may lie outside: then the other path looks at each lane.
  uint8_t* host = range ? range_host(space, range->lowest, range->bytes) : nullptr;
  if (host == nullptr) {
    return std::nullopt;
  }
  lanes.host = host + range->before_first;
  lanes.is_contiguous = count == 1 && is_one_run(at, element_bytes, count_);
  lanes.is_linear = !lanes.is_contiguous;
  lanes.lane_step = static_cast<int64_t>(at.lane_step);
  lanes.warp_step = static_cast<int64_t>(at.warp_step);
  return range;
}

} // namespace pto::sim
