// SPDX-License-Identifier: Apache-2.0
// Text of a user or a file as messages quote it.
#pragma once

#include <string>
#include <string_view>

namespace pto::isa {

/// Of a word over 300 bytes the ends stay, of a text over 4000 bytes the beginning, and control
/// characters but line ends and tabs become '?'. Letters of UTF-8 stay whole.
[[nodiscard]] std::string clipped(std::string_view text);

} // namespace pto::isa
