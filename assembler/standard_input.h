// SPDX-License-Identifier: Apache-2.0
// Programs from standard input.
#pragma once

#include <optional>
#include <string>

namespace pto::as {

/// All of it, as read_text_file gives a file; nullopt and a sentence in `error` if it cannot be
/// read.
[[nodiscard]] std::optional<std::string> read_standard_input(std::string& error);

} // namespace pto::as
