// SPDX-License-Identifier: Apache-2.0
// An ExecContext over plain arrays, for tests of semantics: the obvious thing, no time, no warps.
#pragma once

#include "isa/error.h"
#include "isa/exec_context.h"
#include "isa/insn_desc.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// What a test sets (registers, parameters, memory) and reads is public. Everything that an insn
// asks of the context beyond lane arithmetic is carried out in the simplest way, a copy at once,
// and noted in `calls` as a line of text ("branch 7", "copy in 4x16 e2").
namespace pto::test {

class TestContext final : public isa::ExecContext {
public:
  using Operand = isa::Operand;
  using OperandKind = isa::OperandKind;
  using Outcome = isa::Outcome;
  using Type = isa::Type;

  static constexpr uint64_t kHbmBase = 0x10000;

  /// A span of `lanes` lanes, a multiple of 32, all active.
  explicit TestContext(unsigned lanes = isa::kWarpLanes)
      : r_(size_t{isa::kReg32Count} * lanes), d_(size_t{isa::kReg64Count} * lanes),
        p_(size_t{isa::kPredCount} * lanes / isa::kWarpLanes),
        words_(lanes / isa::kWarpLanes, ~0u) {
    lanes_ = lanes;
    regs32_ = r_.data();
    regs64_ = d_.data();
    preds_ = p_.data();
    stride32_ = lanes;
    stride64_ = lanes;
    stride_pred_ = lanes / isa::kWarpLanes;
    activate(words_);
  }

  // ------------------------------------------------ what a test sets
  std::vector<uint64_t> params;
  std::vector<uint64_t> symbol_offsets;
  std::vector<uint64_t> symbol_bytes;
  std::vector<uint8_t> hbm = std::vector<uint8_t>(1 << 16);
  std::vector<uint8_t> l1 = std::vector<uint8_t>(1 << 16);
  std::vector<uint8_t> constants = std::vector<uint8_t>(1 << 12);
  std::map<unsigned, std::pair<uint64_t, uint64_t>> tiles; // number -> offset and size

  // ------------------------------------------------ what it reads
  std::vector<std::string> calls;
  std::string fault_text; // of the last fault
  isa::MemAccess last_access;

  void activate(std::vector<uint32_t> words) {
    words_ = std::move(words);
    active_ = words_.data();
    all_active_ = true;
    for (const uint32_t word : words_) {
      all_active_ = all_active_ && word == ~0u;
    }
  }
  /// Where insns that compute lane by lane write; null: the register that they name.
  void place_results(void* at) { result_at_ = static_cast<uint8_t*>(at); }
  bool is_active(unsigned lane) const { return (words_[lane / 32] >> lane % 32 & 1) != 0; }

  /// The value that a source operand has in a lane; a predicate is 0 or 1.
  uint64_t get(const Operand& operand, unsigned lane) {
    switch (operand.kind) {
    case OperandKind::kReg32:
      return reg32(operand.index)[lane];
    case OperandKind::kReg64:
      return reg64(operand.index)[lane];
    case OperandKind::kPred:
      return (source_pred(operand, lane / 32) >> lane % 32) & 1;
    default:
      return constant(operand);
    }
  }
  /// Sets a register or predicate (not minding a negation) in a lane.
  void set(const Operand& operand, unsigned lane, uint64_t value) {
    if (operand.kind == OperandKind::kReg32) {
      reg32(operand.index)[lane] = static_cast<uint32_t>(value);
    } else if (operand.kind == OperandKind::kReg64) {
      reg64(operand.index)[lane] = value;
    } else {
      uint32_t& word = pred(operand.index)[lane / 32];
      const uint32_t bit = 1u << lane % 32;
      word = (value & 1) != 0 ? word | bit : word & ~bit;
    }
  }

  uint64_t read_hbm(uint64_t offset, unsigned size) const { return read(hbm, offset, size); }
  uint64_t read_l1(uint64_t offset, unsigned size) const { return read(l1, offset, size); }
  void write_hbm(uint64_t offset, unsigned size, uint64_t value) {
    std::memcpy(hbm.data() + offset, &value, size);
  }
  void write_l1(uint64_t offset, unsigned size, uint64_t value) {
    std::memcpy(l1.data() + offset, &value, size);
  }

  /// The low bits of a value of that type, extended as a register holds it.
  static uint64_t extended(Type type, uint64_t value) {
    const unsigned width = isa::bits(type);
    if (width >= 64) {
      return value;
    }
    const uint64_t low = value & ((uint64_t{1} << width) - 1);
    const bool negative = isa::is_signed(type) && (low >> (width - 1)) != 0;
    const uint64_t slot = negative ? low | ~((uint64_t{1} << width) - 1) : low;
    return slot & 0xffffffff;
  }

  // ------------------------------------------------ ExecContext
  uint64_t uniform_value(const Operand& operand, Type type) override {
    const unsigned lane = words_[0] == 0 ? 0 : static_cast<unsigned>(std::countr_zero(words_[0]));
    const uint64_t value = get(operand, lane);
    const unsigned width = isa::bits(type);
    if (width >= 64) {
      return value;
    }
    const uint64_t low = value & ((uint64_t{1} << width) - 1);
    const bool negative = isa::is_signed(type) && (low >> (width - 1)) != 0;
    return negative ? low | ~((uint64_t{1} << width) - 1) : low;
  }
  Outcome read_special(isa::Special special, const Operand& dst) override {
    note("special " + std::string(isa::info(special).name));
    for (unsigned lane = 0; lane < lanes_; ++lane) {
      if (is_active(lane)) {
        set(dst, lane, static_cast<uint64_t>(special) * 1000 + lane);
      }
    }
    return Outcome::kNext;
  }

  Outcome load(const Operand& mem, const isa::MemAccess& access, const Operand& dst) override {
    last_access = access;
    return each_access(mem, access, [&](uint8_t* at, unsigned lane) {
      const unsigned size = isa::size_bytes(access.type);
      for (unsigned i = 0; i < access.count; ++i) {
        uint64_t value = 0;
        std::memcpy(&value, at + size_t{i} * size, size);
        Operand next = dst;
        next.index += i;
        set(next, lane, extended(access.type, value));
      }
    });
  }
  Outcome store(const Operand& mem, const isa::MemAccess& access, const Operand& src) override {
    last_access = access;
    return each_access(mem, access, [&](uint8_t* at, unsigned lane) {
      const unsigned size = isa::size_bytes(access.type);
      for (unsigned i = 0; i < access.count; ++i) {
        Operand next = src;
        next.index += i;
        const uint64_t value = get(next, lane);
        std::memcpy(at + size_t{i} * size, &value, size);
      }
    });
  }
  Outcome atomic(const Operand& mem,
                 Type type,
                 const isa::AtomicOp& op,
                 const Operand& dst,
                 const Operand& a,
                 const Operand* b) override {
    return each_access(mem, {.type = type}, [&](uint8_t* at, unsigned lane) {
      uint64_t old = 0;
      std::memcpy(&old, at, isa::size_bytes(type));
      const uint64_t first = get(a, lane);
      const uint64_t second = b == nullptr ? first : get(*b, lane);
      const uint64_t value = op.one(old, first, second);
      if (isa::size_bytes(type) == 4) {
        check_warp_form(op, old, first, second, value);
      }
      std::memcpy(at, &value, isa::size_bytes(type));
      if (dst.kind != OperandKind::kDiscard) {
        set(dst, lane, old);
      }
    });
  }
  /// A warp whose lanes all act on one word, the last of them on what `old` and the first 31 left.
  static void check_warp_form(
      const isa::AtomicOp& op, uint64_t old, uint64_t first, uint64_t second, uint64_t value) {
    std::array<uint32_t, 2> words = {static_cast<uint32_t>(old), static_cast<uint32_t>(old)};
    std::array<uint64_t, isa::kWarpLanes> addresses; // lane 0 alone on the first word
    addresses.fill(1004);
    addresses[0] = 1000;
    std::array<uint32_t, isa::kWarpLanes> a;
    std::array<uint32_t, isa::kWarpLanes> b;
    std::array<uint32_t, isa::kWarpLanes> befores;
    a.fill(static_cast<uint32_t>(first));
    b.fill(static_cast<uint32_t>(second));
    op.warp(reinterpret_cast<uint8_t*>(words.data()),
            addresses.data(),
            1000,
            a.data(),
            b.data(),
            befores.data());
    auto shared = static_cast<uint32_t>(old);
    for (unsigned lane = 1; lane < isa::kWarpLanes; ++lane) {
      PTO_CHECK(befores[lane] == shared);
      shared = static_cast<uint32_t>(op.one(shared, a[lane], b[lane]));
    }
    PTO_CHECK(befores[0] == static_cast<uint32_t>(old));
    PTO_CHECK(words[0] == static_cast<uint32_t>(value));
    PTO_CHECK(words[1] == shared);
  }
  Outcome cache(isa::CacheOp op, const Operand* mem) override {
    const char* const names[] = {"prefetch", "invalidate line", "invalidate all"};
    note(names[static_cast<unsigned>(op)] + std::string(mem == nullptr ? "" : " of an address"));
    return Outcome::kNext;
  }
  Outcome fence(isa::FenceScope scope) override {
    return note(scope == isa::FenceScope::kBlock ? "fence block" : "fence device");
  }

  uint8_t* l1_range(const Operand& operand, uint64_t size_bytes, bool reads, bool writes) override {
    const auto offset = l1_offset(operand);
    if (!offset || *offset > l1.size() || size_bytes > l1.size() - *offset) {
      fault("l1 range");
      return nullptr;
    }
    note("range " + std::to_string(*offset) + " " + std::to_string(size_bytes) +
         (reads ? " reads" : "") + (writes ? " writes" : ""));
    return l1.data() + *offset;
  }
  uint64_t tile_bytes(const Operand& tile) override {
    return tile.kind == OperandKind::kSymbol ? symbol_bytes.at(tile.index)
                                             : tiles.at(tile.index).second;
  }
  Outcome alloc_tile(const Operand& tile, uint64_t size_bytes) override {
    return note("alloc t" + std::to_string(tile.index) + " " + std::to_string(size_bytes));
  }
  Outcome free_tile(const Operand& tile) override {
    return note("free t" + std::to_string(tile.index));
  }
  Outcome start_copy(isa::CopyDirection direction,
                     const Operand& l1_end,
                     const Operand& hbm_end,
                     const isa::CopyShape& shape,
                     const Operand* event) override {
    const bool in = direction == isa::CopyDirection::kHbmToL1;
    note(std::string("copy ") + (in ? "in " : "out ") + std::to_string(shape.rows) + "x" +
         std::to_string(shape.row_bytes) +
         (event == nullptr ? "" : " e" + std::to_string(event->index)));
    const auto offset = l1_offset(l1_end);
    const unsigned lane = words_[0] == 0 ? 0 : static_cast<unsigned>(std::countr_zero(words_[0]));
    const uint64_t address = address_of(hbm_end.mem(), lane);
    for (uint32_t row = 0; offset && row < shape.rows; ++row) {
      uint8_t* local = l1.data() + *offset + row * shape.l1_stride;
      uint8_t* global = hbm.data() + (address - kHbmBase) + row * shape.hbm_stride;
      std::memcpy(in ? local : global, in ? global : local, shape.row_bytes);
    }
    return Outcome::kNext;
  }
  Outcome wait_event(unsigned event) override { return note("wait e" + std::to_string(event)); }
  Outcome wait_all() override { return note("wait all"); }

  Outcome branch(uint32_t target_pc) override {
    note("branch " + std::to_string(target_pc));
    return Outcome::kControl;
  }
  Outcome call(uint32_t target_pc) override {
    note("call " + std::to_string(target_pc));
    return Outcome::kControl;
  }
  Outcome ret() override {
    note("ret");
    return Outcome::kControl;
  }
  Outcome exit_lanes() override {
    note("exit");
    return Outcome::kControl;
  }
  Outcome barrier_warp() override { return note("barrier warp"); }
  Outcome barrier_block(unsigned id) override { return note("barrier " + std::to_string(id)); }
  Outcome nop(uint32_t cycles) override { return note("nop " + std::to_string(cycles)); }
  Outcome print(const isa::Insn& insn) override {
    return note("print " + std::to_string(insn.operand_count - 1));
  }
  Outcome trap(uint32_t code) override {
    note("trap " + std::to_string(code));
    return Outcome::kFault;
  }
  Outcome fault(std::string_view what) override {
    fault_text = what;
    return Outcome::kFault;
  }

protected:
  const uint32_t* broadcast32(const Operand& operand) override {
    return broadcasts32_.emplace_back(lanes_, static_cast<uint32_t>(constant(operand))).data();
  }
  const uint64_t* broadcast64(const Operand& operand) override {
    return broadcasts64_.emplace_back(lanes_, constant(operand)).data();
  }

private:
  Outcome note(std::string text) {
    calls.push_back(std::move(text));
    return Outcome::kNext;
  }
  static uint64_t read(const std::vector<uint8_t>& memory, uint64_t offset, unsigned size) {
    uint64_t value = 0;
    std::memcpy(&value, memory.data() + offset, size);
    return value;
  }
  uint64_t constant(const Operand& operand) const {
    switch (operand.kind) {
    case OperandKind::kImm:
      return operand.bits;
    case OperandKind::kParam:
      return params.at(operand.index);
    case OperandKind::kSymbol:
      return symbol_offsets.at(operand.index);
    default:
      return 0;
    }
  }
  std::optional<uint64_t> l1_offset(const Operand& operand) {
    switch (operand.kind) {
    case OperandKind::kTile:
      return tiles.contains(operand.index) ? std::optional(tiles.at(operand.index).first)
                                           : std::nullopt;
    case OperandKind::kSymbol:
      return symbol_offsets.at(operand.index);
    default: {
      const unsigned lane = words_[0] == 0 ? 0 : static_cast<unsigned>(std::countr_zero(words_[0]));
      return address_of(operand.mem(), lane);
    }
    }
  }
  uint64_t address_of(const isa::MemRef& ref, unsigned lane) {
    uint64_t address = 0;
    switch (ref.base) {
    case isa::BaseKind::kAbsolute:
      break;
    case isa::BaseKind::kParam:
      address = params.at(ref.base_index);
      break;
    case isa::BaseKind::kReg:
      address = ref.space == isa::Space::kHbm ? reg64(ref.base_index)[lane]
                                              : uint64_t{reg32(ref.base_index)[lane]};
      break;
    case isa::BaseKind::kTile:
      address = tiles.at(ref.base_index).first;
      break;
    case isa::BaseKind::kSymbol:
      address = symbol_offsets.at(ref.base_index);
      break;
    }
    if (ref.index_reg != isa::kNoIndexReg) {
      const auto index = static_cast<int32_t>(reg32(ref.index_reg)[lane]);
      address += static_cast<uint64_t>(int64_t{index} * (int64_t{1} << ref.scale_log2));
    }
    return address + static_cast<uint64_t>(int64_t{ref.offset});
  }
  /// visit(host pointer, lane) for every active lane, or a fault.
  template <class Visit>
  Outcome each_access(const Operand& mem, const isa::MemAccess& access, Visit visit) {
    const isa::MemRef ref = mem.mem();
    std::vector<uint8_t>& memory = ref.space == isa::Space::kHbm  ? hbm
                                   : ref.space == isa::Space::kL1 ? l1
                                                                  : constants;
    const uint64_t base = ref.space == isa::Space::kHbm ? kHbmBase : 0;
    const uint64_t size = uint64_t{isa::size_bytes(access.type)} * access.count;
    for (unsigned lane = 0; lane < lanes_; ++lane) {
      if (!is_active(lane)) {
        continue;
      }
      const uint64_t address = address_of(ref, lane);
      if (address < base || address - base > memory.size() ||
          size > memory.size() - (address - base) || address % size != 0) {
        return fault("address " + std::to_string(address) + " in lane " + std::to_string(lane));
      }
      visit(memory.data() + (address - base), lane);
    }
    return Outcome::kNext;
  }

  std::vector<uint32_t> r_;
  std::vector<uint64_t> d_;
  std::vector<uint32_t> p_;
  std::vector<uint32_t> words_;
  std::deque<std::vector<uint32_t>> broadcasts32_; // kept: cheap in a test, and never dangling
  std::deque<std::vector<uint64_t>> broadcasts64_;
};

} // namespace pto::test
