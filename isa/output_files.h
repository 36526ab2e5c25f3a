// SPDX-License-Identifier: Apache-2.0
// Files that a command line reads and writes: no output may replace an input or another output.
#pragma once

#include <span>
#include <string>

namespace pto::isa {

/// A file that an option names: "-o", "--report"; for a positional argument what it is: "the
/// input".
struct OptionFile {
  std::string option;
  std::string path;
};

/// Both paths lead to one regular file, by whatever links and spellings; also where that file does
/// not exist yet. Devices and pipes can be read and written at once and are never the same.
[[nodiscard]] bool is_same_file(const std::string& first, const std::string& second);

/// A sentence that names both options if an output is also an input or an earlier output, and says
/// what to do; empty if all is well. "-" and an empty path name no file.
[[nodiscard]] std::string find_overwritten_file(std::span<const OptionFile> inputs,
                                                std::span<const OptionFile> outputs);

} // namespace pto::isa
