// SPDX-License-Identifier: Apache-2.0
// Which files `--arg` texts read.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace pto::sim {

/// Paths in the order of the texts; of those alone that can be understood.
[[nodiscard]] std::vector<std::string> argument_files(std::span<const std::string> texts);

} // namespace pto::sim
