// SPDX-License-Identifier: Apache-2.0
// Insn <-> 16-byte word. Generic over the row; the layout is described in docs/object-format.md.
#pragma once

#include "isa/insn.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace pto::isa {

/// Bits 0..63 and 64..127, little endian in the file.
struct Word {
  uint64_t low = 0;
  uint64_t high = 0;
  constexpr bool operator==(const Word&) const = default;
};

/// Pool of 64-bit values shared by the insns of an object: immediates that do not fit, addresses,
/// operands beyond the fourth. Entries appear in the order of first use, equal ones once.
class Pool {
public:
  static constexpr uint32_t kLimit = 1u << 20;
  /// Index of the value, or kLimit when the pool is full.
  uint32_t intern(uint64_t value);
  /// Appends a run that stays together; index of its first entry, or kLimit when full.
  uint32_t append_run(const std::vector<uint64_t>& values);
  const std::vector<uint64_t>& values() const { return values_; }

private:
  std::vector<uint64_t> values_;
  std::unordered_map<uint64_t, uint32_t> index_;
};

/// nullopt where a field overflows (pool or code size); `error` says which.
std::optional<Word> encode(const Insn& insn, Pool& pool, std::string& error);

/// Structural decoding and validate(); nullopt and `error` if the word is no valid insn.
std::optional<Insn> decode(const Word& word, const std::vector<uint64_t>& pool, std::string& error);

} // namespace pto::isa
