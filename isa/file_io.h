// SPDX-License-Identifier: Apache-2.0
// Whole files in and out: bounded reads, and writes that leave either the old file or the new one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pto::isa {

/// Largest file that read_file takes by default (16 GiB).
inline constexpr uint64_t kDefaultFileLimitBytes = uint64_t{1} << 34;

/// Most that is taken of what tells no size before and may have no end: pipes, /dev/zero (1 GiB).
inline constexpr uint64_t kEndlessLimitBytes = uint64_t{1} << 30;

/// Reads a file, pipe or device to its end. On failure returns nothing and puts a sentence into
/// `error` that names the path, what went wrong and, for a file over `limit_bytes`, both sizes.
[[nodiscard]] std::optional<std::vector<std::byte>> read_file(
    const std::string& path, std::string& error, uint64_t limit_bytes = kDefaultFileLimitBytes);

/// The same of standard input, from where it stands.
[[nodiscard]] std::optional<std::vector<std::byte>>
read_standard_input(std::string& error, uint64_t limit_bytes = kEndlessLimitBytes);

/// Writes `bytes` to a new file beside `path` and renames it over `path`, so that a reader never
/// sees half a file and a failed write leaves the old one. A symbolic link is followed; a device or
/// pipe is written directly. A file that exists keeps its mode and, where the system allows it, its
/// owner; one that the user may not write is an error. On failure returns false, with a sentence in
/// `error`.
[[nodiscard]] bool write_file_atomically(const std::string& path,
                                         std::span<const std::byte> bytes,
                                         std::string& error);

} // namespace pto::isa
