// SPDX-License-Identifier: Apache-2.0
// All that the semantics of an insn may touch. The simulator derives from ExecContext and supplies
// state, memory and control flow; semantics (isa/insns/*.cc) know nothing else, so they never
// mention time, checks or printing.
//
// One call of an ExecFn acts on a *span* of lanes: the 32 lanes of one warp, or all lanes of a
// block while its warps stand together at one insn. Registers are stored lane-contiguous, so that
// a semantic function is a loop over arrays that the compiler vectorises. Lane i of the span is
// bit i%32 of active_words()[i/32]. Results are written in active lanes only; sources may be read
// in all lanes (they are always valid memory).
#pragma once

#include "isa/insn.h"
#include "isa/span_lanes.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace pto::isa {

/// What became of the insn; the engine decides what it means for time and scheduling.
enum class Outcome : uint8_t {
  kNext,    // go on with the next insn
  kControl, // the context has set the pc (branch, call, return, exit)
  kBlocked, // the warp waits (barrier, copies); the context knows for what
  kFault,   // the program is wrong; the context holds the fault
};

enum class CacheHint : uint8_t { kCached /* .ca, .wt */, kL2 /* .cg */, kVolatile /* .cv */ };
enum class FenceScope : uint8_t { kBlock, kDevice };
enum class CacheOp : uint8_t { kPrefetch, kInvalidateLine, kInvalidateAll };
enum class CopyDirection : uint8_t { kHbmToL1, kL1ToHbm };

/// One lane's access: `count` consecutive elements of `type` (8..64 bit).
struct MemAccess {
  Type type = Type::kB32;
  uint8_t count = 1;
  CacheHint hint = CacheHint::kCached;
};

/// A rectangular copy; the one-dimensional form has rows = 1.
struct CopyShape {
  uint32_t rows = 1;
  uint32_t row_bytes = 0;
  int64_t hbm_stride = 0; // bytes from row to row
  int64_t l1_stride = 0;
};

/// New memory value from the old one and the operands, all raw bits of the access type. Pure.
using AtomicFn = uint64_t (*)(uint64_t old, uint64_t a, uint64_t b);

/// AtomicFn of 32-bit elements for each lane of a warp, in ascending order: lane i's lies at
/// host + (addresses[i] - origin). `old` takes what was there, unless it is null.
using AtomicWarpFn = void (*)(uint8_t* host,
                              const uint64_t* addresses,
                              uint64_t origin,
                              const uint32_t* a,
                              const uint32_t* b,
                              uint32_t* old);

/// One operation in both forms.
struct AtomicOp {
  AtomicFn one = nullptr;
  AtomicWarpFn warp = nullptr; // where the type has 32 bits
};

class ExecContext : public SpanLanes {
public:
  virtual ~ExecContext() = default;

  // ------------------------------------------------ registers
  /// lanes() values of a source: register storage, or a broadcast of an immediate, parameter or
  /// symbol address. 32-bit forms for types up to 32 bits, 64-bit forms for 64-bit types.
  const uint32_t* source32(const Operand& operand) {
    return operand.kind == OperandKind::kReg32 ? value32(operand.index) : broadcast32(operand);
  }
  const uint64_t* source64(const Operand& operand) {
    return operand.kind == OperandKind::kReg64 ? value64(operand.index) : broadcast64(operand);
  }
  /// lanes() values of a register, wherever they lie: its storage, or memory that it was loaded
  /// from. Read only, and never a storage that is written in the same insn for another register.
  const uint32_t* value32(unsigned index) {
    return ((viewed32_[index / 64] >> (index % 64)) & 1) != 0 ? views32_[index] : reg32(index);
  }
  const uint64_t* value64(unsigned index) {
    return ((viewed64_ >> index) & 1) != 0 ? views64_[index] : reg64(index);
  }
  /// Storage of a register, lanes() values; write active lanes only. For reading take value32().
  uint32_t* reg32(unsigned index) { return regs32_ + index * stride32_; }
  uint64_t* reg64(unsigned index) { return regs64_ + index * stride64_; }
  /// Where an insn that computes lane by lane, from registers and constants alone, writes its
  /// destination: the register's storage, or where its lanes are wanted. A source may lie in the
  /// same lanes, not in others of them.
  uint32_t* result32(unsigned index) {
    return result_at_ == nullptr ? reg32(index) : reinterpret_cast<uint32_t*>(result_at_);
  }
  uint64_t* result64(unsigned index) {
    return result_at_ == nullptr ? reg64(index) : reinterpret_cast<uint64_t*>(result_at_);
  }
  /// The operand in the lowest active lane of the span's first warp: operands of block-scoped
  /// insns. Sign- or zero-extended by `type`.
  virtual uint64_t uniform_value(const Operand& operand, Type type) = 0;
  /// Writes special register values of the active lanes to dst (an r register, or d for 64 bit).
  virtual Outcome read_special(Special special, const Operand& dst) = 0;

  // ------------------------------------------------ memory, per lane
  /// Loads into dst and the count-1 registers after it; elements are sign- or zero-extended.
  virtual Outcome load(const Operand& mem, const MemAccess& access, const Operand& dst) = 0;
  /// Stores from src (register or broadcast) and the registers after it.
  virtual Outcome store(const Operand& mem, const MemAccess& access, const Operand& src) = 0;
  /// Read-modify-write, lanes in ascending order. dst may be kDiscard. `b` is null where unused.
  virtual Outcome atomic(const Operand& mem,
                         Type type,
                         const AtomicOp& op,
                         const Operand& dst,
                         const Operand& a,
                         const Operand* b) = 0;
  /// `mem` is null for kInvalidateAll.
  virtual Outcome cache(CacheOp op, const Operand* mem) = 0;
  virtual Outcome fence(FenceScope scope) = 0;

  // ------------------------------------------------ scratchpad, copies, per block
  /// Host pointer to `size_bytes` bytes of scratchpad that a tile, symbol or l1[...] operand names,
  /// or null after recording a fault (out of bounds, tile not allocated). `writes` tells observers.
  virtual uint8_t*
  l1_range(const Operand& operand, uint64_t size_bytes, bool reads, bool writes) = 0;
  /// Size in bytes of the tile that a tile register or symbol names (for FILL without a size).
  virtual uint64_t tile_bytes(const Operand& tile) = 0;
  virtual Outcome alloc_tile(const Operand& tile, uint64_t size_bytes) = 0;
  virtual Outcome free_tile(const Operand& tile) = 0;
  /// `event` is null where the copy has none.
  virtual Outcome start_copy(CopyDirection direction,
                             const Operand& l1,
                             const Operand& hbm,
                             const CopyShape& shape,
                             const Operand* event) = 0;
  virtual Outcome wait_event(unsigned event) = 0;
  virtual Outcome wait_all() = 0;

  // ------------------------------------------------ control
  /// Active lanes jump, the others go on; lanes rejoin at the insn's reconvergence point.
  virtual Outcome branch(uint32_t target_pc) = 0;
  virtual Outcome call(uint32_t target_pc) = 0;
  virtual Outcome ret() = 0;
  virtual Outcome exit_lanes() = 0;
  virtual Outcome barrier_warp() = 0;
  virtual Outcome barrier_block(unsigned id) = 0;
  virtual Outcome nop(uint32_t cycles) = 0;
  /// One line an active lane; values are operands 1.. of the insn.
  virtual Outcome print(const Insn& insn) = 0;
  virtual Outcome trap(uint32_t code) = 0;
  /// Records a fault of the program found by semantics themselves (an impossible size, ...).
  virtual Outcome fault(std::string_view what) = 0;

protected:
  /// lanes() copies of a non-register source; stays valid until the insn ends.
  virtual const uint32_t* broadcast32(const Operand& operand) = 0;
  virtual const uint64_t* broadcast64(const Operand& operand) = 0;

  uint32_t* regs32_ = nullptr;
  uint64_t* regs64_ = nullptr;
  unsigned stride32_ = 0; // values from one register to the next
  unsigned stride64_ = 0;
  // Registers whose storage is out of date: bit i, and where the lanes of r_i or d_i lie.
  std::array<uint64_t, 2> viewed32_{};
  uint64_t viewed64_ = 0;
  std::array<const uint32_t*, kReg32Count> views32_{};
  std::array<const uint64_t*, kReg64Count> views64_{};
  uint8_t* result_at_ = nullptr; // of result32() and result64(), if not the register's storage
};

} // namespace pto::isa
