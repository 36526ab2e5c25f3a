// SPDX-License-Identifier: Apache-2.0
// The init check: use of values that nobody wrote.
//
// Definedness is tracked per lane of every register and per byte of scratchpad, and follows values
// through computation, copies, stores and matrix products. Reading an undefined value is no finding
// (copying a half-filled struct is fine); letting it matter is: it decides a branch or guard, is an
// address, is printed, or is stored to hbm. The finding names that use and where the value came
// from. hbm is defined: the host's allocations are zeroed or written. A zeroed tile of ALLOC_LOCAL
// is defined, static .tile and .shared memory is not.
//
// Most programs never let an undefined value into a register. A look at the control flow beforehand
// finds the registers that some path may read before it writes them; insns that touch one of those
// are followed warp by warp. The rest is followed only while some register of a running block holds
// an undefined value from scratchpad (`is_tainted_`); otherwise only loads from scratchpad and
// stores to it matter, a span at a time.
#pragma once

#include "simulator/checks/block_map.h"
#include "simulator/checks/finding.h"
#include "simulator/observer.h"
#include "simulator/program.h"

#include <vector>

namespace pto::sim {

class InitCheck : public Observer {
public:
  explicit InitCheck(Findings& findings) : findings_(findings) {}

  Wants wants() const override {
    return kWantsLaunch | kWantsBlock | kWantsBefore | kWantsIssue | kWantsSpan | kWantsCopy;
  }
  const Interest* interests() const override { return interests_.data(); }
  void launch_begin(const Launch& launch) override;
  void block_begin(const BlockRun& block) override;
  void block_end(const BlockRun& block) override;
  void before_insn(const EventSite& site, uint32_t active_mask, uint32_t exec_mask) override;
  void after_insn(const BlockRun& block, const IssueRecord& record) override;
  void after_span(const SpanRecord& span) override;
  void copy_start(const EventSite& site, const CopyRecord& copy) override;

private:
  /// Where an undefined value came from. pc kNever: a register that was never written.
  struct Origin {
    static constexpr uint32_t kNever = 0xffffffff;
    static constexpr uint64_t kNoSlot = ~uint64_t{0};
    uint32_t pc = kNever;
    bool is_memory = false;     // read from scratchpad byte `address`
    uint64_t address = kNoSlot; // kNever: the register
    bool operator==(const Origin&) const = default;
  };
  struct BlockData {
    std::vector<uint32_t> defined; // [register of RegisterFile order][warp]: lanes
    std::vector<Origin> origins;   // likewise, of the last undefined value
    std::vector<uint8_t> l1;       // by byte: 1 = defined
    // Bytes that hold an undefined value which somebody stored: by byte, the number in `spoils`
    // plus 1; counts while the byte is undefined. Empty until it happens.
    std::vector<uint32_t> spoiled_by;
    std::vector<Origin> spoils;
    uint64_t l1_end = 0;      // of the bytes that were defined at some time
    bool has_changed = false; // `defined` is no longer that of a new block
    uint32_t warps = 0;

    uint64_t tainted = 0; // (register, warp) pairs with an undefined value, of registers that
                          // are written before they are read

    void renew() { tainted = 0; } // block_begin() does the rest
    void define_l1(uint64_t offset, uint64_t bytes);
    void spoil_l1(uint64_t offset, uint64_t bytes, const Origin& origin);
    /// Of the undefined byte at `offset`, which the insn at `pc` reads.
    [[nodiscard]] Origin l1_origin(uint64_t offset, uint32_t pc) const;
  };
  /// One warp's access to scratchpad.
  struct L1Access {
    const BlockRun& block;
    const isa::Insn& insn;
    uint32_t pc = 0;
    uint32_t warp = 0;
    uint32_t mask = 0;
    uint32_t access_bytes = 0;
    uint32_t element_bytes = 0;
    bool writes = false;
    bool is_atomic = false;
    std::array<uint64_t, isa::kWarpLanes> addresses{};
  };
  struct Undefined {
    uint32_t lanes = 0;
    Origin origin;
    void add(uint32_t more, const Origin& from);
  };

  static unsigned slot_of(isa::OperandKind kind, uint32_t index);
  Undefined value(const EventSite& site, const isa::Operand& operand, uint32_t lanes);
  Undefined register_value(uint64_t block, unsigned slot, uint32_t warp, uint32_t lanes);
  Undefined address_value(const EventSite& site, const isa::Operand& mem, uint32_t lanes);
  Undefined selected(const EventSite& site, const isa::Insn& insn, uint32_t lanes);
  void load_from_l1(const L1Access& access);
  void store_to_l1(const L1Access& access);
  /// In the quiet state.
  void span_stores_to_l1(const SpanRecord& span);
  void span_loads_from_l1(const SpanRecord& span);
  void matrix_product(const BlockRun& block, const IssueRecord& record);
  void define(uint64_t block,
              uint32_t warp,
              unsigned slot,
              uint32_t mask,
              uint32_t undefined,
              const Origin& origin);
  void set_tainted(bool is_tainted);
  bool l1_defined(BlockData& data, uint64_t offset, uint64_t bytes, uint64_t& first_undefined);
  void report(const EventSite& site, const Undefined& undefined, const char* use);

  Findings& findings_;
  ResourceSet suspects_;                // registers that may be read before they are written
  std::vector<unsigned> suspect_slots_; // the same
  std::vector<Interest> quiet_;         // interests while nothing is tainted
  std::vector<Interest> interests_;     // as they are now
  bool is_tainted_ = false;
  uint64_t tainted_blocks_ = 0;
  BlockMap<BlockData> blocks_;
  Undefined operands_;              // of the insn at hand: what its sources miss
  std::vector<Undefined> elements_; // stores: by register of the vector
};

} // namespace pto::sim
