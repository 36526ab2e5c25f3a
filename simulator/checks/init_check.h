// SPDX-License-Identifier: Apache-2.0
// The init check: use of values that nobody wrote.
//
// Definedness is tracked per lane of every register and per byte of scratchpad, and follows values
// through computation, copies, stores and matrix products. Reading an undefined value is no finding
// (copying a half-filled struct is fine); letting it matter is: it decides a branch or guard, is an
// address, is printed, or is stored to hbm. The finding names that use and where the value came
// from. hbm is defined: the host's allocations are zeroed or written. A zeroed tile of ALLOC_LOCAL
// is defined, static .tile and .shared memory is not.
#pragma once

#include "simulator/checks/finding.h"
#include "simulator/observer.h"

#include <unordered_map>
#include <vector>

namespace pto::sim {

struct ProgramInsn;

class InitCheck : public Observer {
public:
  explicit InitCheck(Findings& findings) : findings_(findings) {}

  Wants wants() const override {
    return kWantsLaunch | kWantsBlock | kWantsBefore | kWantsIssue | kWantsCopy;
  }
  void launch_begin(const Launch& launch) override;
  void block_begin(const BlockRun& block) override;
  void block_end(const BlockRun& block) override;
  void before_insn(const EventSite& site, uint32_t active_mask, uint32_t exec_mask) override;
  void after_insn(const BlockRun& block, const IssueRecord& record) override;
  void copy_start(const EventSite& site, const CopyRecord& copy) override;

private:
  /// Where an undefined value came from. pc kNever: a register that was never written.
  struct Origin {
    static constexpr uint32_t kNever = 0xffffffff;
    static constexpr uint64_t kNoSlot = ~uint64_t{0};
    uint32_t pc = kNever;
    bool is_memory = false;     // read from scratchpad byte `address`
    uint64_t address = kNoSlot; // kNever: the register
  };
  struct BlockData {
    std::vector<uint32_t> defined; // [register of RegisterFile order][warp]: lanes
    std::vector<Origin> origins;   // likewise, of the last undefined value
    std::vector<uint8_t> l1;       // by byte: 1 = defined
    uint32_t warps = 0;
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
  void load_from_l1(const BlockRun& block, const IssueRecord& record);
  void store_to_l1(const IssueRecord& record);
  void matrix_product(const BlockRun& block, const IssueRecord& record);
  void define(const IssueRecord& record, unsigned slot, uint32_t undefined, const Origin& origin);
  bool l1_defined(BlockData& data, uint64_t offset, uint64_t bytes, uint64_t& first_undefined);
  void report(const EventSite& site, const Undefined& undefined, const char* use);

  Findings& findings_;
  std::unordered_map<uint64_t, BlockData> blocks_;
  Undefined operands_;              // of the insn at hand: what its sources miss
  std::vector<Undefined> elements_; // stores: by register of the vector
};

} // namespace pto::sim
