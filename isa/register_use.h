// SPDX-License-Identifier: Apache-2.0
// Sets of registers, and which ones an insn reads and writes.
#pragma once

#include "isa/insn.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace pto::isa {

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
  RegSet& operator|=(const RegSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) {
      words_[i] |= other.words_[i];
    }
    return *this;
  }
  RegSet& operator&=(const RegSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) {
      words_[i] &= other.words_[i];
    }
    return *this;
  }
  [[nodiscard]] RegSet without(const RegSet& other) const {
    RegSet out = *this;
    for (size_t i = 0; i < words_.size(); ++i) {
      out.words_[i] &= ~other.words_[i];
    }
    return out;
  }
  [[nodiscard]] bool operator==(const RegSet&) const = default;
  [[nodiscard]] bool empty() const { return *this == RegSet{}; }
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
[[nodiscard]] InsnRegisters registers_of(const Insn& insn);

} // namespace pto::isa
