// SPDX-License-Identifier: Apache-2.0
// Register use: what each insn reads and writes, what a function needs from its caller, and what a
// kernel uses in all (docs/isa.md, Register budget).
#pragma once

#include "isa/cfg.h"
#include "isa/insn_desc.h"
#include "isa/object.h"

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

namespace pto::as {

/// A set over all registers of a lane: r0..r126, d0..d62, p0..p7.
class RegSet {
public:
  static constexpr unsigned kReg64First = 128;
  static constexpr unsigned kPredFirst = 192;
  static constexpr unsigned kLimit = 256;

  [[nodiscard]] bool contains(unsigned reg) const {
    return (words_[reg / 64] >> reg % 64 & 1) != 0;
  }
  void add(unsigned reg) { words_[reg / 64] |= uint64_t{1} << reg % 64; }
  RegSet& operator|=(const RegSet& other);
  RegSet& operator&=(const RegSet& other);
  [[nodiscard]] RegSet without(const RegSet& other) const;
  [[nodiscard]] bool operator==(const RegSet&) const = default;
  [[nodiscard]] bool empty() const;
  [[nodiscard]] unsigned count32() const;
  [[nodiscard]] unsigned count64() const;
  [[nodiscard]] static RegSet all();

private:
  std::array<uint64_t, 4> words_{};
};

[[nodiscard]] std::string register_name(unsigned reg);

struct InsnRegisters {
  RegSet reads;
  RegSet writes;
};
/// Registers of the insn itself; a predicated write counts as a write.
[[nodiscard]] InsnRegisters registers_of(const isa::Insn& insn);

/// A read of a register that some path reaches without a write.
struct EarlyRead {
  unsigned reg = 0;
  uint32_t pc = 0;
};

struct FunctionUse {
  RegSet reads; // of the function alone
  RegSet writes;
  RegSet all_reads; // with every function that it reaches
  RegSet all_writes;
  RegSet needs; // read here or below before a write on some path from its entry
  std::vector<EarlyRead> early_reads; // the first of each register, by pc
  std::vector<uint32_t> callees;      // functions called directly
  bool uses_file_symbols = false;     // here or below
};

/// One entry a function. `cfgs` are those of the functions.
[[nodiscard]] std::vector<FunctionUse> find_register_use(const isa::Object& object,
                                                         const std::vector<isa::Cfg>& cfgs);

} // namespace pto::as
