// SPDX-License-Identifier: Apache-2.0
// One kernel of an object, with everything about its insns that can be worked out beforehand.
#pragma once

#include "isa/insn_desc.h"
#include "isa/object.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pto::sim {

/// Registers, predicates, tiles and events as a set: what a scoreboard compares.
struct ResourceSet {
  uint64_t reg32[2] = {0, 0}; // bit i: r_i
  uint64_t reg64 = 0;         // bit i: d_i
  uint32_t preds = 0;         // bit i: p_i
  uint16_t tiles = 0;         // bit i: t_i
  uint8_t events = 0;         // bit i: e_i

  constexpr bool operator==(const ResourceSet&) const = default;
  constexpr bool intersects(const ResourceSet& other) const {
    return (reg32[0] & other.reg32[0]) != 0 || (reg32[1] & other.reg32[1]) != 0 ||
           (reg64 & other.reg64) != 0 || (preds & other.preds) != 0 || (tiles & other.tiles) != 0 ||
           (events & other.events) != 0;
  }
  constexpr bool empty() const { return *this == ResourceSet{}; }
  constexpr void add_reg32(unsigned i) { reg32[i / 64] |= uint64_t{1} << (i % 64); }
  constexpr void add_reg64(unsigned i) { reg64 |= uint64_t{1} << i; }
  constexpr bool has_reg32(unsigned i) const { return ((reg32[i / 64] >> (i % 64)) & 1) != 0; }
  constexpr bool has_reg64(unsigned i) const { return ((reg64 >> i) & 1) != 0; }
  constexpr void add(const ResourceSet& other) {
    reg32[0] |= other.reg32[0];
    reg32[1] |= other.reg32[1];
    reg64 |= other.reg64;
    preds |= other.preds;
    tiles |= other.tiles;
    events |= other.events;
  }
  /// Registers alone, predicates left out.
  constexpr bool is_within(const ResourceSet& other) const {
    return ((reg32[0] & ~other.reg32[0]) | (reg32[1] & ~other.reg32[1]) | (reg64 & ~other.reg64)) ==
           0;
  }
};

inline constexpr uint32_t kNoBroadcast = 0xffffffff;

/// A value that an insn reads in every lane alike: an immediate, a parameter or a symbol's offset.
/// A launch fills one array a slot, so that reading such an operand is an array look-up.
struct BroadcastSlot {
  isa::OperandKind kind = isa::OperandKind::kImm; // kImm, kParam or kSymbol
  uint64_t value = 0;                             // bits, or index of the parameter or symbol
  bool wide = false;                              // 64-bit values
};

struct ProgramInsn {
  /// As in the object, but Operand::index of an immediate is its broadcast slot (or kNoBroadcast).
  isa::Insn insn;
  isa::ExecFn exec = nullptr;
  uint32_t join_pc = isa::kNoReconvergence; // where lanes rejoin that this insn splits
  bool is_reached = false;                  // in the kernel or a function that it may call
  bool is_guarded = false;
  bool is_block_scoped = false;
  bool writes_hbm = false; // STORE, ATOM or copy to hbm
  /// Writes no memory but by ExecContext::store, and moves none.
  bool keeps_memory = false;
  /// The destination, operand 0, depends on source registers alone, lane by lane.
  bool is_pure = false;
  /// Pure, and the next insn stores the destination, all of its bits and nothing else, to an
  /// address that does not depend on it.
  bool feeds_store = false;
  /// May have a result that is linear in the lane (isa/linear.h).
  bool may_be_linear = false;
  std::array<int8_t, 3> mnk{-1, -1, -1}; // operands with MMA's m, n, k
  ResourceSet reads;                     // guard, sources, address registers
  ResourceSet writes;                    // destinations
  /// `reads` without the address registers of a lane's memory access, unless it overwrites them.
  ResourceSet lane_reads;
  /// Broadcast slot of operand i that is a parameter or symbol, kNoBroadcast otherwise.
  std::array<uint32_t, isa::kMaxOperands> slots; // parallel to operands
};

/// An operand is %clock.
bool names_clock(const isa::Insn& insn);

class Program {
public:
  /// Broadcast slots at most; further operands are broadcast when they are executed.
  static constexpr uint32_t kMaxBroadcastSlots = 1024;

  /// `kernel` indexes object->functions and must be a kernel (PTO_CHECK).
  Program(std::shared_ptr<const isa::Object> object, uint32_t kernel);
  /// By name; an empty name takes the only kernel. Null, with a message that lists the kernels, if
  /// there is none of that name.
  static std::shared_ptr<const Program>
  find(std::shared_ptr<const isa::Object> object, std::string_view kernel, std::string& error);

  const isa::Object& object() const { return *object_; }
  std::shared_ptr<const isa::Object> shared_object() const { return object_; }
  const isa::Function& kernel() const { return object_->functions[kernel_]; }
  uint32_t kernel_index() const { return kernel_; }
  uint32_t entry_pc() const { return kernel().first_pc; }

  /// By pc: the whole object's code.
  const ProgramInsn& at(uint32_t pc) const { return insns_[pc]; }
  const std::vector<ProgramInsn>& insns() const { return insns_; }
  const std::vector<BroadcastSlot>& broadcast_slots() const { return slots_; }

  /// Highest register used here and in every function reached, plus one: what a block stores.
  uint32_t reg32_limit() const { return reg32_limit_; }
  uint32_t reg64_limit() const { return reg64_limit_; }
  /// Flags of every insn that the kernel can reach, or-ed.
  isa::Flags flags() const { return flags_; }
  bool reads_clock() const { return reads_clock_; }
  /// Bit i: some insn reached reads or writes p_i.
  uint32_t used_preds() const { return used_preds_; }

  /// "x.pto:12", or "pc 7" where the line is unknown.
  std::string place(uint32_t pc) const;
  isa::SourceLoc loc(uint32_t pc) const;
  /// Text of the insn at pc.
  std::string text(uint32_t pc) const;

private:
  void decode(uint32_t pc);
  static void find_lane_reads(ProgramInsn& decoded);
  uint32_t slot_for(isa::OperandKind kind, uint64_t value, bool wide);
  void survey();

  std::shared_ptr<const isa::Object> object_;
  uint32_t kernel_;
  std::vector<ProgramInsn> insns_;
  std::vector<BroadcastSlot> slots_;
  uint32_t reg32_limit_ = 0;
  uint32_t reg64_limit_ = 0;
  isa::Flags flags_ = 0;
  bool reads_clock_ = false;
  uint32_t used_preds_ = 0;
};

} // namespace pto::sim
