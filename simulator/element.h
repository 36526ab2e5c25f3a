// SPDX-License-Identifier: Apache-2.0
// Element types of host arrays: every type of PTO that memory can hold, and numpy's f64 and bool.
#pragma once

#include "isa/types.h"
#include "simulator/npy.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pto::sim {

enum class ElementClass : uint8_t { kBool, kUnsigned, kSigned, kBits, kFloat, kBrainFloat };

struct ElementType {
  ElementClass element_class = ElementClass::kBits;
  uint8_t size_bytes = 1;

  [[nodiscard]] bool is_float() const {
    return element_class == ElementClass::kFloat || element_class == ElementClass::kBrainFloat;
  }
  [[nodiscard]] bool is_signed() const { return element_class == ElementClass::kSigned; }
  friend bool operator==(const ElementType&, const ElementType&) = default;
};

/// "f32", "bf16", "s8", "b32", "f64", "bool".
[[nodiscard]] std::string to_string(ElementType type);
/// By that name; nothing for any other, f16x2 and pred included.
[[nodiscard]] std::optional<ElementType> find_element_type(std::string_view name);
/// Every name that find_element_type knows.
[[nodiscard]] const std::vector<std::string_view>& element_type_names();

/// Nothing for kNone and pred; f16x2 is an array of b32.
[[nodiscard]] std::optional<ElementType> element_type(isa::Type type);
[[nodiscard]] ElementType element_type(NpyType type);
/// bf16 is stored as u2 (its bits), b types as unsigned integers.
[[nodiscard]] NpyType npy_type(ElementType type);

/// True where bytes of `stored` may stand for `wanted` without conversion: same size, and both
/// floats of one format, both integers, or one of them without a meaning of its own (bits, and u16
/// for bf16, which numpy lacks).
[[nodiscard]] bool is_compatible(ElementType stored, ElementType wanted);

/// Value of a float element, exactly. PTO_CHECK for other types.
[[nodiscard]] double load_real(ElementType type, const std::byte* at);
/// Value of any other element: sign-extended for kSigned, else zero-extended.
[[nodiscard]] uint64_t load_integer(ElementType type, const std::byte* at);
/// Any element as the nearest double.
[[nodiscard]] double load_as_double(ElementType type, const std::byte* at);
/// Rounds once, to nearest even, to the float type. PTO_CHECK for other types.
void store_real(ElementType type, double value, std::byte* at);
/// Low bytes of `bits`.
void store_bits(ElementType type, uint64_t bits, std::byte* at);

/// Shortest decimal that reads back to the same value; bits as hex, bool as true or false.
[[nodiscard]] std::string format_element(ElementType type, const std::byte* at);

/// An array on the host: little endian, C order.
struct HostArray {
  std::optional<ElementType> element; ///< nothing: bytes of unknown meaning
  std::vector<uint64_t> shape;        ///< in elements; in bytes without an element type
  std::vector<std::byte> data;
};

} // namespace pto::sim
