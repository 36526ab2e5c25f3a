// SPDX-License-Identifier: Apache-2.0
// Numbers as a person writes them on a command line, as bits of an element type.
#pragma once

#include "simulator/element.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pto::sim {

/// A number of the given type, as its bits (sign-extended to 64 for kSigned). Integers: decimal,
/// 0x, 0b, with `_` between digits; they must fit the type, for kBits in either reading. Floats:
/// decimal, hex-float, integers, inf, nan, 0f and 8 hex digits (f32 bits), 0h and 4 (f16, bf16
/// bits); rounded to nearest even; a finite number that would become infinite is an error. bool:
/// 0, 1, true, false. On failure nothing, and `error` says what was wrong and what was expected.
[[nodiscard]] std::optional<uint64_t>
parse_number(std::string_view text, ElementType type, std::string& error);

/// An unsigned integer in the same spelling.
[[nodiscard]] std::optional<uint64_t> parse_count(std::string_view text, std::string& error);

} // namespace pto::sim
