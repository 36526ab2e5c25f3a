// SPDX-License-Identifier: Apache-2.0
// The block's state seen from outside; execution is in block_context.cc and its neighbours.
#include "simulator/block.h"

#include "isa/error.h"
#include "simulator/block_context.h"
#include "simulator/each_bit.h"

#include <algorithm>

namespace pto::sim {

using isa::Special;

std::string_view name(WarpStatus status) {
  static constexpr std::string_view kNames[] = {
      "ready", "at block barrier", "waiting for event", "waiting for all copies", "done"};
  return kNames[static_cast<unsigned>(status)];
}

BlockRun::BlockRun(Launch& launch)
    : launch_(launch), context_(std::make_unique<BlockContext>(*this)) {}

BlockRun::~BlockRun() = default;

const LaunchImage& BlockRun::image() const {
  return launch_.image();
}

void BlockRun::start(uint64_t index, uint32_t core) {
  const LaunchImage& image = launch_.image();
  const Program& program = *image.program;
  state_.index = index;
  state_.ctaid = image.block_index(index);
  state_.core = core;
  if (context_->has_ended_fresh()) {
    for_each_bit(program.used_preds(), 0, [&](unsigned pred) {
      std::fill_n(state_.preds.begin() + size_t{pred} * image.warps, image.warps, 0u);
    });
  } else {
    start_warps();
  }
  state_.scratchpad.reset(image.static_l1_bytes, image.max_l1_bytes);
  state_.tiles.fill({});
  state_.pending.clear();
  state_.copies_started = 0;
  state_.events_used = 0;
  state_.barriers_passed = 0;
  state_.counts = {};
  state_.clock = 0;
  state_.has_clock = false;
  state_.turn = 0;
  state_.meeting_pc = isa::kNoReconvergence;
  state_.meeting_depth = 0;
  live_warps_ = image.warps;
  fault_.reset();
  context_->rebind();
  context_->start();
  context_->set_forgets_ended(false);
}

void BlockRun::start_warps() {
  const LaunchImage& image = launch_.image();
  const Program& program = *image.program;
  state_.reg32.resize(size_t{program.reg32_limit()} * image.padded_lanes);
  state_.reg64.resize(size_t{program.reg64_limit()} * image.padded_lanes);
  state_.preds.assign(size_t{isa::kPredCount} * image.warps, 0);
  state_.masks = image.warp_masks;
  state_.exited.assign(image.warps, 0);
  state_.parked.assign(image.warps, 0);
  state_.warps.resize(image.warps);
  if (context_->has_parts()) {
    for (WarpState& warp : state_.warps) {
      warp.stack.clear();
    }
  }
  for (WarpState& warp : state_.warps) {
    warp.pc = program.entry_pc();
    warp.join_pc = isa::kNoReconvergence;
    warp.is_call_base = false;
    warp.status = WarpStatus::kReady;
    warp.barrier_id = 0;
    warp.wait_event = -1;
    warp.arrived_mask = 0;
    warp.call_depth = 0;
    warp.issued = 0;
  }
}

void BlockRun::restore(const BlockState& state) {
  state_ = state;
  live_warps_ = static_cast<uint32_t>(
      std::count_if(state_.warps.begin(), state_.warps.end(), [](const WarpState& warp) {
        return warp.status != WarpStatus::kDone;
      }));
  fault_.reset();
  context_->rebind();
}

// ---------------------------------------------------------------- looking

uint32_t BlockRun::live_mask(uint32_t warp) const {
  return launch_.image().warp_masks[warp] & ~state_.exited[warp];
}

bool BlockRun::has_ready_warp() const {
  return std::any_of(state_.warps.begin(), state_.warps.end(), [](const WarpState& warp) {
    return warp.status == WarpStatus::kReady;
  });
}

const ProgramInsn& BlockRun::next_insn(uint32_t warp) const {
  return launch_.program().at(state_.warps[warp].pc);
}

uint32_t BlockRun::next_exec_mask(uint32_t warp) const {
  const isa::Guard guard = next_insn(warp).insn.guard;
  if (!guard.present) {
    return state_.masks[warp];
  }
  const uint32_t word = state_.preds[size_t{guard.pred} * state_.warps.size() + warp];
  return state_.masks[warp] & (guard.negated ? ~word : word);
}

const BlockState& BlockRun::state() const {
  context_->settle_all();
  return state_;
}

uint32_t BlockRun::reg32(unsigned index, uint32_t lane) const {
  if (const std::optional<uint64_t> value = context_->unwritten32(index, lane)) {
    return static_cast<uint32_t>(*value);
  }
  const size_t at = size_t{index} * launch_.image().padded_lanes + lane;
  return at < state_.reg32.size() ? state_.reg32[at] : 0;
}

const uint32_t* BlockRun::reg32_of_warp(unsigned index, uint32_t warp) const {
  PTO_CHECK(index < launch_.program().reg32_limit());
  context_->settle_reg32(index);
  return state_.reg32.data() + size_t{index} * launch_.image().padded_lanes +
         size_t{warp} * isa::kWarpLanes;
}

uint64_t BlockRun::reg64(unsigned index, uint32_t lane) const {
  if (const std::optional<uint64_t> value = context_->unwritten64(index, lane)) {
    return *value;
  }
  const size_t at = size_t{index} * launch_.image().padded_lanes + lane;
  return at < state_.reg64.size() ? state_.reg64[at] : 0;
}

bool BlockRun::pred(unsigned index, uint32_t lane) const {
  const uint32_t word = state_.preds[size_t{index} * state_.warps.size() + lane / isa::kWarpLanes];
  return ((word >> (lane % isa::kWarpLanes)) & 1) != 0;
}

void BlockRun::set_reg32(unsigned index, uint32_t lane, uint32_t value) {
  context_->settle_all();
  const size_t at = size_t{index} * launch_.image().padded_lanes + lane;
  if (at < state_.reg32.size()) {
    state_.reg32[at] = value;
  }
}

void BlockRun::set_reg64(unsigned index, uint32_t lane, uint64_t value) {
  context_->settle_all();
  const size_t at = size_t{index} * launch_.image().padded_lanes + lane;
  if (at < state_.reg64.size()) {
    state_.reg64[at] = value;
  }
}

void BlockRun::set_pred(unsigned index, uint32_t lane, bool value) {
  uint32_t& word = state_.preds[size_t{index} * state_.warps.size() + lane / isa::kWarpLanes];
  const uint32_t bit = 1u << (lane % isa::kWarpLanes);
  word = value ? word | bit : word & ~bit;
}

uint64_t BlockRun::source_value(const isa::Operand& operand, isa::Type type, uint32_t lane) const {
  uint64_t bits = operand.bits;
  if (operand.kind == isa::OperandKind::kReg32) {
    bits = reg32(operand.index, lane);
  } else if (operand.kind == isa::OperandKind::kReg64) {
    bits = reg64(operand.index, lane);
  } else if (operand.kind == isa::OperandKind::kPred) {
    return pred(operand.index, lane) != operand.negated ? 1 : 0;
  } else if (operand.kind == isa::OperandKind::kParam) {
    bits = launch_.image().params[operand.index];
  } else if (operand.kind == isa::OperandKind::kSymbol) {
    bits = launch_.program().object().symbols[operand.index].offset;
  } else if (operand.kind == isa::OperandKind::kSpecial) {
    bits = special_value(static_cast<Special>(operand.index), lane);
  }
  const unsigned width = isa::bits(type);
  if (width == 0 || width >= 64) {
    return bits;
  }
  const uint64_t mask = (uint64_t{1} << width) - 1;
  const bool is_negative = isa::is_signed(type) && ((bits >> (width - 1)) & 1) != 0;
  return is_negative ? bits | ~mask : bits & mask;
}

uint64_t BlockRun::address(const isa::Operand& operand, uint32_t lane) const {
  const isa::MemRef mem = operand.mem();
  auto sum = static_cast<uint64_t>(int64_t{mem.offset});
  if (mem.index_reg != isa::kNoIndexReg) {
    const auto index = static_cast<int32_t>(reg32(mem.index_reg, lane));
    sum += static_cast<uint64_t>(int64_t{index}) << mem.scale_log2;
  }
  if (mem.base == isa::BaseKind::kParam) {
    sum += launch_.image().params[mem.base_index];
  } else if (mem.base == isa::BaseKind::kSymbol) {
    sum += launch_.program().object().symbols[mem.base_index].offset;
  } else if (mem.base == isa::BaseKind::kTile) {
    sum += state_.tiles[mem.base_index].offset;
  } else if (mem.base == isa::BaseKind::kReg) {
    sum +=
        mem.space == isa::Space::kHbm ? reg64(mem.base_index, lane) : reg32(mem.base_index, lane);
  }
  return sum;
}

uint64_t BlockRun::special_value(Special special, uint32_t lane) const {
  const LaunchImage& image = launch_.image();
  const uint32_t in_warp = lane % isa::kWarpLanes;
  const uint32_t warp = lane / isa::kWarpLanes;
  const uint32_t bit = 1u << in_warp;
  const Dim3& block = image.block;
  const Dim3& grid = image.grid;
  const Dim3& at = state_.ctaid;
  const uint32_t x = image.tid[0][lane];
  const uint32_t y = image.tid[1][lane];
  const uint32_t z = image.tid[2][lane];
  const WarpState& state = state_.warps[warp];
  const bool is_running = state.status != WarpStatus::kDone;
  // In the order of isa::Special.
  const uint64_t values[isa::kSpecialCount] = {
      in_warp,
      warp,
      x,
      y,
      z,
      block.x,
      block.y,
      block.z,
      at.x,
      at.y,
      at.z,
      grid.x,
      grid.y,
      grid.z,
      uint32_t{at.x * block.x + x},
      uint32_t{at.y * block.y + y},
      uint32_t{at.z * block.z + z},
      image.extent.x,
      image.extent.y,
      image.extent.z,
      image.lanes,
      state_.core,
      state_.has_clock ? state_.clock : state.issued,
      is_running ? next_exec_mask(warp) : 0,
      bit,
      bit - 1,
      bit | (bit - 1),
      ~(bit | (bit - 1)),
      ~(bit - 1),
  };
  return values[static_cast<unsigned>(special)];
}

// ---------------------------------------------------------------- running

const IssueRecord& BlockRun::step(uint32_t warp) {
  return context_->step(warp);
}

bool BlockRun::step_pure(uint32_t warp, uint32_t& exec_mask) {
  return context_->step_pure(warp, exec_mask);
}

const GroupRecord* BlockRun::step_together() {
  return context_->step_together();
}

void BlockRun::stand_apart() {
  context_->stand_apart();
}

BlockStop BlockRun::run(uint64_t budget) {
  return context_->run(budget);
}

void BlockRun::set_clock(uint64_t cycle) {
  state_.clock = cycle;
  state_.has_clock = true;
}

void BlockRun::complete_copy(size_t i) {
  PTO_CHECK(i < state_.pending.size());
  context_->complete_copy(i, false);
  context_->wake_waiters();
}

void BlockRun::set_gate(AccessGate* gate) {
  context_->set_gate(gate);
}

void BlockRun::set_ledger(AccessLedger* ledger) {
  context_->set_ledger(ledger);
}

void BlockRun::forget_when_ended() {
  context_->set_forgets_ended(true);
}

bool BlockRun::was_stopped_by_gate() const {
  return context_->was_stopped_by_gate();
}

void BlockRun::finish() {
  context_->complete_all_copies(true);
}

} // namespace pto::sim
