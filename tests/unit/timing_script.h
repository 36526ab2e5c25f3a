// SPDX-License-Identifier: Apache-2.0
// A host for the timing model that executes nothing: a script of insns whose warps walk through it,
// with addresses and branches given by functions. Lets a test compute a schedule by hand.
#pragma once

#include "isa/insn_desc.h"
#include "isa/object.h"
#include "simulator/timing/timing_model.h"

#include <array>
#include <functional>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

namespace pto::sim::test {

/// Rows of the script; only what time looks at.
struct Rows {
  isa::InsnDesc alu{.mnemonic = "mov",
                    .operands = {isa::dst("d"), isa::src("a"), isa::optional(isa::src("b"))},
                    .latency = "MOV"};
  isa::InsnDesc fma = alu;
  isa::InsnDesc exp = alu;
  isa::InsnDesc load{.mnemonic = "load",
                     .operands = {isa::dst("d"), isa::mem("m", isa::kAcceptMem)},
                     .unit = isa::Unit::kM,
                     .flags = isa::kReadsMem,
                     .latency = "LOAD"};
  isa::InsnDesc store{.mnemonic = "store",
                      .operands = {isa::mem("m", isa::kAcceptMem), isa::src("a")},
                      .unit = isa::Unit::kM,
                      .flags = isa::kWritesMem,
                      .latency = "STORE"};
  isa::InsnDesc atom{.mnemonic = "atom",
                     .operands = {isa::dst("d"), isa::mem("m", isa::kAcceptMem)},
                     .unit = isa::Unit::kM,
                     .flags = isa::kReadsMem | isa::kWritesMem | isa::kAtomic,
                     .latency = "ATOM"};
  isa::InsnDesc async_load{.mnemonic = "async_load",
                           .operands = {isa::event("e")},
                           .scope = isa::Scope::kBlock,
                           .unit = isa::Unit::kD,
                           .flags = isa::kAsync,
                           .latency = "ASYNC_LOAD"};
  isa::InsnDesc mma{.mnemonic = "mma",
                    .operands = {isa::mem("c", isa::kAcceptTile, isa::Role::kDstSrc),
                                 isa::mem("a", isa::kAcceptTile),
                                 isa::mem("b", isa::kAcceptTile)},
                    .scope = isa::Scope::kBlock,
                    .unit = isa::Unit::kC,
                    .latency = "MMA"};
  isa::InsnDesc wait{.mnemonic = "wait",
                     .operands = {isa::event("e")},
                     .scope = isa::Scope::kWarp,
                     .unit = isa::Unit::kS,
                     .flags = isa::kWaits,
                     .latency = "WAIT"};
  isa::InsnDesc fence{
      .mnemonic = "fence", .unit = isa::Unit::kM, .flags = isa::kFence, .latency = "FENCE"};
  isa::InsnDesc barrier{.mnemonic = "barrier_block",
                        .scope = isa::Scope::kWarp,
                        .unit = isa::Unit::kS,
                        .flags = isa::kBlockBarrier,
                        .latency = "BARRIER_BLOCK"};
  isa::InsnDesc nop{.mnemonic = "nop", .unit = isa::Unit::kS, .latency = "NOP"};
  isa::InsnDesc bra{
      .mnemonic = "bra", .unit = isa::Unit::kS, .flags = isa::kBranch, .latency = "BRA"};
  isa::InsnDesc print{
      .mnemonic = "print", .unit = isa::Unit::kS, .flags = isa::kPrints, .latency = "PRINT"};
  isa::InsnDesc exit{
      .mnemonic = "exit", .unit = isa::Unit::kS, .flags = isa::kEndsLane, .latency = "EXIT"};
  Rows() {
    fma.mnemonic = "fma";
    fma.latency = "FMA";
    exp.mnemonic = "exp";
    exp.latency = "EXP";
    exp.unit = isa::Unit::kX;
  }
};
inline const Rows kRows;

inline isa::Operand r(uint32_t index) {
  return {.kind = isa::OperandKind::kReg32, .index = index};
}
inline isa::Operand tile(uint32_t index) {
  return {.kind = isa::OperandKind::kTile, .index = index};
}
inline isa::Operand event(uint32_t index) {
  return {.kind = isa::OperandKind::kEvent, .index = index};
}
inline isa::Operand memory(isa::Space space) {
  isa::MemRef ref;
  ref.space = space;
  return isa::Operand::memory(ref);
}
inline isa::Operand hbm() {
  return memory(isa::Space::kHbm);
}
inline isa::Operand l1() {
  return memory(isa::Space::kL1);
}

struct Step {
  const isa::InsnDesc* desc = nullptr;
  std::vector<isa::Operand> operands;
  std::function<uint64_t(uint64_t block, uint32_t warp, uint32_t lane)> address{};
  uint32_t bytes = 4;
  CopyRecord copy{};
  uint32_t mnk = 0;
  uint32_t nop_cycles = 0;
  bool is_result_read = true;
  /// Where a branch goes; asked once each time a warp passes it.
  std::function<uint32_t(uint64_t block, uint32_t warp, uint32_t pass)> target{};
  isa::Type type = isa::Type::kNone;
  std::vector<L1Record> l1{}; // scratchpad that it works on as one
};

inline Step op(const isa::InsnDesc& desc, std::vector<isa::Operand> operands) {
  return {.desc = &desc, .operands = std::move(operands)};
}
/// A copy of dense bytes between hbm[0] and scratchpad, tagged with an event.
inline Step copy_in(uint32_t tag, uint64_t l1_offset, uint32_t bytes) {
  Step step = op(kRows.async_load, {event(tag)});
  step.copy.direction = isa::CopyDirection::kHbmToL1;
  step.copy.l1_offset = l1_offset;
  step.copy.shape = {.rows = 1, .row_bytes = bytes};
  step.copy.event = static_cast<int>(tag);
  return step;
}
inline Step copy_out(uint32_t tag, uint64_t l1_offset, uint32_t bytes) {
  Step step = copy_in(tag, l1_offset, bytes);
  step.copy.direction = isa::CopyDirection::kL1ToHbm;
  return step;
}
/// Lanes `stride` bytes apart, warps 32 * stride.
inline Step access(const isa::InsnDesc& desc,
                   std::vector<isa::Operand> operands,
                   uint64_t from,
                   uint64_t stride) {
  Step step = op(desc, std::move(operands));
  step.address = [=](uint64_t, uint32_t warp, uint32_t lane) {
    return from + (warp * 32 + lane) * stride;
  };
  return step;
}

class Script : public TimedHost {
public:
  explicit Script(std::vector<Step> steps) : steps_(std::move(steps)) {
    for (const Step& step : steps_) {
      isa::Insn insn;
      insn.desc = step.desc;
      insn.type = step.type;
      insn.operand_count = static_cast<uint8_t>(step.operands.size());
      std::copy(step.operands.begin(), step.operands.end(), insn.operands.begin());
      object.code.push_back(insn);
    }
  }

  isa::Object object;
  uint64_t blocks = 1;
  uint32_t warps = 1;
  uint32_t scratchpad_bytes = 0;

  std::optional<AdmittedBlock> admit(uint32_t place, uint32_t) override {
    if (next_block_ == blocks) {
      return std::nullopt;
    }
    if (places_.size() <= place) {
      places_.resize(place + 1);
    }
    places_[place] = {next_block_, std::vector<Warp>(warps)};
    return AdmittedBlock{next_block_++, warps, warps * 32, scratchpad_bytes};
  }
  [[nodiscard]] bool has_more_blocks() const override { return next_block_ != blocks; }
  void retire(uint32_t) override {}
  Next next(uint32_t place, uint32_t warp) override {
    const Warp& w = places_[place].warps[warp];
    return {w.pc, w.is_done, w.is_waiting};
  }
  const IssueRecord& step(uint32_t place, uint32_t warp, uint64_t) override {
    Place& p = places_[place];
    Warp& w = p.warps[warp];
    const Step& s = steps_[w.pc];
    record_ = {};
    record_.insn = &object.code[w.pc];
    record_.pc = w.pc;
    record_.block = p.block;
    record_.warp = warp;
    record_.active_mask = record_.exec_mask = ~0u;
    record_.access_bytes = s.bytes;
    record_.is_result_read = s.is_result_read;
    record_.m = record_.n = record_.k = s.mnk;
    record_.nop_cycles = s.nop_cycles;
    if (s.address) {
      for (uint32_t lane = 0; lane < 32; ++lane) {
        addresses_[lane] = s.address(p.block, warp, lane);
      }
      record_.addresses = addresses_.data();
      for (const isa::Operand& operand : s.operands) {
        if (operand.kind == isa::OperandKind::kMem) {
          record_.space = operand.mem().space;
        }
      }
    }
    record_.writes_memory = s.desc->has(isa::kWritesMem);
    record_.l1_count = static_cast<uint8_t>(s.l1.size());
    std::copy(s.l1.begin(), s.l1.end(), record_.l1.begin());
    if (s.address) {
      record_.stride = static_cast<int64_t>(addresses_[1] - addresses_[0]);
      record_.is_strided = true;
      for (uint32_t lane = 0; lane < 32; ++lane) {
        record_.is_strided &=
            addresses_[lane] == addresses_[0] + lane * static_cast<uint64_t>(record_.stride);
      }
    }
    if (s.copy.shape.row_bytes != 0 && warp == 0) {
      record_.copy = &s.copy;
    }
    ++w.pc;
    if (s.target) {
      w.pc = s.target(p.block, warp, w.passes++);
    }
    if (s.desc->has(isa::kEndsLane)) {
      w.is_done = true;
    }
    if (s.desc->has(isa::kBlockBarrier)) {
      w.is_waiting = true;
      record_.outcome = isa::Outcome::kBlocked;
    }
    bool all_wait = true;
    for (const Warp& other : p.warps) {
      all_wait = all_wait && (other.is_waiting || other.is_done);
    }
    if (all_wait) {
      for (Warp& other : p.warps) {
        other.is_waiting = false;
      }
    }
    record_.next_pc = w.pc;
    return record_;
  }
  bool wants_stop() override { return false; }

private:
  struct Warp {
    uint32_t pc = 0;
    uint32_t passes = 0;
    bool is_done = false;
    bool is_waiting = false;
  };
  struct Place {
    uint64_t block = 0;
    std::vector<Warp> warps;
  };
  std::vector<Step> steps_;
  std::vector<Place> places_;
  uint64_t next_block_ = 0;
  IssueRecord record_;
  std::array<uint64_t, 32> addresses_{};
};

} // namespace pto::sim::test
