// SPDX-License-Identifier: Apache-2.0
// StallReason: the one reason that each cycle without an issue is charged to.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace pto::sim {

enum class StallReason : uint8_t {
#define PTO_STALL(id, name, meaning, hint) id,
#include "simulator/timing/stall_reasons.def"
#undef PTO_STALL
};

struct StallInfo {
  std::string_view name;    // "bank-conflict", for tables and JSON
  std::string_view meaning; // "lanes met in one bank of l1"
  std::string_view hint;    // what a programmer may do about it
};

inline constexpr std::array kStallInfo = {
#define PTO_STALL(id, name, meaning, hint) StallInfo{name, meaning, hint},
#include "simulator/timing/stall_reasons.def"
#undef PTO_STALL
};
inline constexpr unsigned kStallReasonCount = kStallInfo.size();

constexpr const StallInfo& info(StallReason reason) {
  return kStallInfo[static_cast<unsigned>(reason)];
}

/// Cycles by reason.
struct StallCycles {
  std::array<uint64_t, kStallReasonCount> cycles{};

  uint64_t& operator[](StallReason reason) { return cycles[static_cast<unsigned>(reason)]; }
  uint64_t operator[](StallReason reason) const { return cycles[static_cast<unsigned>(reason)]; }
  [[nodiscard]] uint64_t total() const {
    uint64_t sum = 0;
    for (const uint64_t c : cycles) {
      sum += c;
    }
    return sum;
  }
  void add(const StallCycles& other) {
    for (unsigned i = 0; i < kStallReasonCount; ++i) {
      cycles[i] += other.cycles[i];
    }
  }
};

} // namespace pto::sim
