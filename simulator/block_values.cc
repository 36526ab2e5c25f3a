// SPDX-License-Identifier: Apache-2.0
// Values that are no register: broadcasts, special registers; and faults, traps and print lines.
#include "isa/print_format.h"
#include "simulator/block_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace pto::sim {

using isa::Outcome;
using isa::Special;

// ---------------------------------------------------------------- broadcasts

namespace {

/// Position of the operand within its insn, or kMaxOperands if it lies elsewhere (a copy).
unsigned position_of(const isa::Operand& operand, const isa::Insn& insn) {
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    if (&insn.operands[i] == &operand) {
      return i;
    }
  }
  return isa::kMaxOperands;
}

} // namespace

const uint32_t* BlockContext::broadcast32(const isa::Operand& operand) {
  uint32_t slot = operand.index;
  unsigned position = 0;
  if (operand.kind != isa::OperandKind::kImm) {
    position = position_of(operand, insn_->insn);
    slot = position < isa::kMaxOperands ? insn_->slots[position] : kNoBroadcast;
  }
  if (slot != kNoBroadcast && !image_.program->broadcast_slots()[slot].wide) {
    return image_.broadcast32.data() + image_.broadcast_offset[slot];
  }
  // Rare: more distinct constants than slots, or an insn that reads an operand in another width.
  position = std::min(position_of(operand, insn_->insn), isa::kMaxOperands - 1);
  std::vector<uint32_t>& spare = spare32_[position];
  spare.assign(
      lanes_,
      static_cast<uint32_t>(run_.source_value(operand, isa::Type::kU32, first_ * isa::kWarpLanes)));
  return spare.data();
}

const uint64_t* BlockContext::broadcast64(const isa::Operand& operand) {
  uint32_t slot = operand.index;
  unsigned position = 0;
  if (operand.kind != isa::OperandKind::kImm) {
    position = position_of(operand, insn_->insn);
    slot = position < isa::kMaxOperands ? insn_->slots[position] : kNoBroadcast;
  }
  if (slot != kNoBroadcast && image_.program->broadcast_slots()[slot].wide) {
    return image_.broadcast64.data() + image_.broadcast_offset[slot];
  }
  position = std::min(position_of(operand, insn_->insn), isa::kMaxOperands - 1);
  std::vector<uint64_t>& spare = spare64_[position];
  spare.assign(lanes_, run_.source_value(operand, isa::Type::kU64, first_ * isa::kWarpLanes));
  return spare.data();
}

// ---------------------------------------------------------------- special registers

Outcome BlockContext::read_special(Special special, const isa::Operand& dst) {
  const uint32_t lane0 = first_ * isa::kWarpLanes;
  if (dst.kind == isa::OperandKind::kReg64) {
    uint64_t* to = reg64(dst.index);
    for_each_lane(active_, count_, [&](unsigned i) {
      const WarpState& warp = state_.warps[first_ + i / isa::kWarpLanes];
      to[i] = special != Special::kClock ? run_.special_value(special, lane0 + i)
              : state_.has_clock         ? state_.clock
                                         : warp.issued + span_issued_ - 1;
    });
    return Outcome::kNext;
  }
  uint32_t* to = reg32(dst.index);
  const auto fill = [&](auto&& value) {
    if (all_active_) {
      for (unsigned i = 0; i < lanes_; ++i) {
        to[i] = value(i);
      }
    } else {
      for_each_lane(active_, count_, [&](unsigned i) { to[i] = value(i); });
    }
  };
  const unsigned axis = static_cast<unsigned>(special) % 3;
  static_assert(static_cast<unsigned>(Special::kTidX) == 2);
  const auto in_group = [&](Special first) { // x, y, z of one kind
    const int step = static_cast<int>(special) - static_cast<int>(first);
    return step >= 0 && step < 3;
  };
  if (in_group(Special::kTidX) || in_group(Special::kGidX)) {
    const unsigned k = (axis + 1) % 3; // kTidX = 2 and kGidX = 14 are both 2 modulo 3
    const uint32_t extents[] = {image_.block.x, image_.block.y, image_.block.z};
    const uint32_t blocks[] = {state_.ctaid.x, state_.ctaid.y, state_.ctaid.z};
    const uint32_t origin = in_group(Special::kGidX) ? blocks[k] * extents[k] : 0;
    const uint32_t* tid = image_.tid[k].data() + lane0;
    fill([&](unsigned i) { return origin + tid[i]; });
  } else if (special == Special::kActivemask) {
    fill([&](unsigned i) { return active_[i / isa::kWarpLanes]; });
  } else if (special == Special::kLane) {
    fill([&](unsigned i) { return i % isa::kWarpLanes; });
  } else if (special == Special::kWarp) {
    fill([&](unsigned i) { return first_ + i / isa::kWarpLanes; });
  } else {
    fill([&](unsigned i) { return static_cast<uint32_t>(run_.special_value(special, lane0 + i)); });
  }
  return Outcome::kNext;
}

// ---------------------------------------------------------------- print

Outcome BlockContext::print(const isa::Insn& insn) {
  const std::string& format = image_.program->object().strings[insn.operand(0).index];
  for_each_lane(active_, count_, [&](unsigned i) {
    const uint32_t lane = first_ * isa::kWarpLanes + i;
    std::string line;
    unsigned next = 1;
    for (size_t at = 0; at < format.size(); ++at) {
      if (format[at] != '%' || at + 1 == format.size()) {
        line += format[at];
        continue;
      }
      const char kind = format[++at];
      if (kind == '%' || next >= insn.operand_count) {
        line += kind;
        continue;
      }
      const isa::Operand& operand = insn.operand(next);
      const bool is_wide = isa::is_wide_print_value(operand, image_.program->kernel().params);
      const uint64_t bits =
          run_.source_value(operand, is_wide ? isa::Type::kU64 : isa::Type::kU32, lane);
      ++next;
      if (kind == 'd') {
        line += fmt::format(
            "{}", is_wide ? static_cast<int64_t>(bits) : int64_t{static_cast<int32_t>(bits)});
      } else if (kind == 'x') {
        line += fmt::format("{:x}", bits);
      } else if (kind == 'f') {
        line += fmt::format("{:f}", std::bit_cast<float>(static_cast<uint32_t>(bits)));
      } else if (kind == 'p') {
        line += fmt::format("{:#x}", bits);
      } else {
        line += fmt::format("{}", bits);
      }
    }
    const uint32_t warp = lane / isa::kWarpLanes;
    observers().notify(kWantsPrint, [&](Observer& observer) {
      observer.print_line(site(warp), lane % isa::kWarpLanes, line);
    });
    run_.launch_.add_print({.block = state_.index,
                            .warp = warp,
                            .lane = lane % isa::kWarpLanes,
                            .pc = pc_,
                            .text = std::move(line)});
  });
  return Outcome::kNext;
}

// ---------------------------------------------------------------- faults

unsigned BlockContext::lowest_lane() const {
  for (unsigned w = 0; w < count_; ++w) {
    if (active_[w] != 0) {
      return w * isa::kWarpLanes + static_cast<unsigned>(std::countr_zero(active_[w]));
    }
  }
  return 0;
}

Fault BlockContext::make_fault(FaultKind kind, std::string message) const {
  Fault fault;
  fault.kind = kind;
  fault.message = std::move(message);
  fault.pc = pc_;
  fault.loc = image_.program->loc(pc_);
  fault.block = state_.index;
  fault.core = state_.core;
  const unsigned lane = lowest_lane();
  fault.warp = first_ + lane / isa::kWarpLanes;
  fault.lane = static_cast<int>(lane % isa::kWarpLanes);
  fault.lane_mask = active_[lane / isa::kWarpLanes];
  return fault;
}

Outcome BlockContext::raise(Fault fault) {
  if (!run_.fault_.has_value()) { // the first one counts
    if (!is_recording_) {
      settle_all(); // observers may look at registers
    }
    run_.fault_ = std::move(fault);
    observers().notify(kWantsFault,
                       [&](Observer& observer) { observer.fault(run_, *run_.fault_); });
  }
  return Outcome::kFault;
}

Outcome BlockContext::trap(uint32_t code) {
  Fault fault = make_fault(FaultKind::kTrap, fmt::format("trap {}", code));
  fault.trap_code = code;
  return raise(std::move(fault));
}

Outcome BlockContext::fault(std::string_view what) {
  return raise(make_fault(FaultKind::kOperand, std::string(what)));
}

} // namespace pto::sim
