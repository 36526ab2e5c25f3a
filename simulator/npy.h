// SPDX-License-Identifier: Apache-2.0
// numpy's .npy files: a reader that is total (any bytes give an array or a sentence) and a writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pto::sim {

/// Element type of a .npy array as numpy spells it, without byte order: b1, u1, i4, f2, V2, ...
/// Kind 'V' (raw bytes) is accepted with two bytes only; bfloat16 extensions of numpy write that.
struct NpyType {
  char kind = 'f'; ///< 'b' bool, 'u', 'i', 'f', or 'V'
  uint8_t size_bytes = 4;

  friend bool operator==(const NpyType&, const NpyType&) = default;
};

/// "f4", "u1", ...
[[nodiscard]] std::string to_string(NpyType type);

/// An array in memory. Data are little endian and in C order (last index fastest) whatever the file
/// had. An empty shape is a scalar of one element.
struct NpyArray {
  NpyType type;
  std::vector<uint64_t> shape;
  std::vector<std::byte> data;

  [[nodiscard]] uint64_t size() const { return data.size() / type.size_bytes; }
};

/// Parses a complete .npy file image (formats 1.0, 2.0 and 3.0). Memory use is bounded by the size
/// of `file`. On failure returns nothing and puts a sentence without the file's name into `error`.
[[nodiscard]] std::optional<NpyArray> parse_npy(std::span<const std::byte> file,
                                                std::string& error);

/// The file image of an array (format 1.0, or 2.0 when the header needs it). `data` must hold the
/// product of `shape` times the element size; throws pto::Error otherwise.
[[nodiscard]] std::vector<std::byte>
format_npy(NpyType type, std::span<const uint64_t> shape, std::span<const std::byte> data);

/// read_file and parse_npy; the error names the path.
[[nodiscard]] std::optional<NpyArray> read_npy(const std::string& path, std::string& error);

/// format_npy and write_file_atomically.
[[nodiscard]] bool write_npy(const std::string& path,
                             NpyType type,
                             std::span<const uint64_t> shape,
                             std::span<const std::byte> data,
                             std::string& error);

/// Product of the extents times `size_bytes`; nothing when it does not fit into 64 bits.
[[nodiscard]] std::optional<uint64_t> shape_bytes(std::span<const uint64_t> shape,
                                                  uint64_t size_bytes);

/// "[64,32]"; "[]" for a scalar.
[[nodiscard]] std::string shape_to_string(std::span<const uint64_t> shape);

} // namespace pto::sim
