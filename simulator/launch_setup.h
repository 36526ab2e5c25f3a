// SPDX-License-Identifier: Apache-2.0
// From what a user writes to the pieces of a launch: sizes, and arguments placed in hbm.
#pragma once

#include "simulator/argument.h"
#include "simulator/launch.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pto::sim {

/// "4", "4,2,1" or "4x2x1", each from 1 to 2^32 - 1. Nothing, with a sentence in `error`, for
/// anything else.
[[nodiscard]] std::optional<Dim3> parse_dim3(std::string_view text, std::string& error);

/// Allocates and fills one array for each pointer argument; what a launch takes comes back, in
/// order. Throws HbmError.
[[nodiscard]] std::vector<LaunchArg> place_arguments(const std::vector<Argument>& arguments,
                                                     Hbm& hbm);

} // namespace pto::sim
