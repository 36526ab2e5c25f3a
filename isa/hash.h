// SPDX-License-Identifier: Apache-2.0
// FNV-1a with 64 bits: a number for bytes that are to be told apart or found again. It guards
// against accidents, not against anybody.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace pto::isa {

inline constexpr uint64_t kHashStart = 0xcbf29ce484222325;

/// Goes on from `hash`, so that several pieces make one number.
[[nodiscard]] constexpr uint64_t hash_of(std::span<const uint8_t> bytes,
                                         uint64_t hash = kHashStart) {
  for (const uint8_t byte : bytes) {
    hash = (hash ^ byte) * 0x100000001b3;
  }
  return hash;
}
[[nodiscard]] constexpr uint64_t hash_of(std::string_view text, uint64_t hash = kHashStart) {
  for (const char c : text) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  }
  return hash;
}

} // namespace pto::isa
