// SPDX-License-Identifier: Apache-2.0
// Names, conversions and single-element access of host array types.
#include "simulator/element.h"

#include "isa/error.h"
#include "isa/float16.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace pto::sim {
namespace {

struct NamedType {
  std::string_view name;
  ElementType type;
};

using Class = ElementClass;
constexpr std::array kNamedTypes = {
    NamedType{"f32", {Class::kFloat, 4}},
    NamedType{"f16", {Class::kFloat, 2}},
    NamedType{"bf16", {Class::kBrainFloat, 2}},
    NamedType{"f64", {Class::kFloat, 8}},
    NamedType{"u8", {Class::kUnsigned, 1}},
    NamedType{"s8", {Class::kSigned, 1}},
    NamedType{"u16", {Class::kUnsigned, 2}},
    NamedType{"s16", {Class::kSigned, 2}},
    NamedType{"u32", {Class::kUnsigned, 4}},
    NamedType{"s32", {Class::kSigned, 4}},
    NamedType{"u64", {Class::kUnsigned, 8}},
    NamedType{"s64", {Class::kSigned, 8}},
    NamedType{"b8", {Class::kBits, 1}},
    NamedType{"b16", {Class::kBits, 2}},
    NamedType{"b32", {Class::kBits, 4}},
    NamedType{"b64", {Class::kBits, 8}},
    NamedType{"bool", {Class::kBool, 1}},
};

uint64_t load_bits(size_t size_bytes, const std::byte* at) {
  uint64_t bits = 0;
  for (size_t i = size_bytes; i-- > 0;) {
    bits = (bits << 8) | std::to_integer<uint64_t>(at[i]);
  }
  return bits;
}

} // namespace

std::string to_string(ElementType type) {
  for (const NamedType& named : kNamedTypes) {
    if (named.type == type) {
      return std::string(named.name);
    }
  }
  fail_check("every element type has a name", __FILE__, __LINE__);
}

std::optional<ElementType> find_element_type(std::string_view name) {
  for (const NamedType& named : kNamedTypes) {
    if (named.name == name) {
      return named.type;
    }
  }
  return std::nullopt;
}

const std::vector<std::string_view>& element_type_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> result;
    result.reserve(std::size(kNamedTypes));
    for (const NamedType& named : kNamedTypes) {
      result.push_back(named.name);
    }
    return result;
  }();
  return names;
}

std::optional<ElementType> element_type(isa::Type type) {
  if (type == isa::Type::kF16x2) {
    return ElementType{Class::kBits, 4};
  }
  return find_element_type(isa::name(type));
}

ElementType element_type(NpyType type) {
  const uint8_t size = type.size_bytes;
  switch (type.kind) {
  case 'b':
    return {Class::kBool, size};
  case 'u':
    return {Class::kUnsigned, size};
  case 'i':
    return {Class::kSigned, size};
  case 'V':
    return {Class::kBrainFloat, size};
  default:
    return {Class::kFloat, size};
  }
}

NpyType npy_type(ElementType type) {
  switch (type.element_class) {
  case Class::kBool:
    return {'b', type.size_bytes};
  case Class::kSigned:
    return {'i', type.size_bytes};
  case Class::kFloat:
    return {'f', type.size_bytes};
  default:
    return {'u', type.size_bytes};
  }
}

bool is_compatible(ElementType stored, ElementType wanted) {
  if (stored.size_bytes != wanted.size_bytes) {
    return false;
  }
  const auto is_bits = [](ElementType type) { return type.element_class == Class::kBits; };
  if (stored == wanted || is_bits(stored) || is_bits(wanted)) {
    return true;
  }
  if (wanted.element_class == Class::kBrainFloat) {
    return stored.element_class == Class::kUnsigned;
  }
  return !stored.is_float() && !wanted.is_float();
}

double load_real(ElementType type, const std::byte* at) {
  PTO_CHECK(type.is_float());
  const uint64_t bits = load_bits(type.size_bytes, at);
  if (type.element_class == Class::kBrainFloat) {
    return isa::widen(isa::BF16{static_cast<uint16_t>(bits)});
  }
  switch (type.size_bytes) {
  case 2:
    return isa::widen(isa::F16{static_cast<uint16_t>(bits)});
  case 4:
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  default:
    return std::bit_cast<double>(bits);
  }
}

uint64_t load_integer(ElementType type, const std::byte* at) {
  const uint64_t bits = load_bits(type.size_bytes, at);
  if (!type.is_signed()) {
    return bits;
  }
  const unsigned unused = 64 - 8U * type.size_bytes;
  return static_cast<uint64_t>(static_cast<int64_t>(bits << unused) >> unused);
}

double load_as_double(ElementType type, const std::byte* at) {
  if (type.is_float()) {
    return load_real(type, at);
  }
  const uint64_t bits = load_integer(type, at);
  return type.is_signed() ? static_cast<double>(static_cast<int64_t>(bits))
                          : static_cast<double>(bits);
}

void store_real(ElementType type, double value, std::byte* at) {
  PTO_CHECK(type.is_float());
  if (type.element_class == Class::kBrainFloat) {
    store_bits(type, isa::narrow<isa::BF16>(value).bits, at);
  } else if (type.size_bytes == 2) {
    store_bits(type, isa::narrow<isa::F16>(value).bits, at);
  } else if (type.size_bytes == 4) {
    store_bits(type, std::bit_cast<uint32_t>(isa::narrow<float>(value)), at);
  } else {
    store_bits(type, std::bit_cast<uint64_t>(value), at);
  }
}

void store_bits(ElementType type, uint64_t bits, std::byte* at) {
  for (size_t i = 0; i < type.size_bytes; ++i) {
    at[i] = static_cast<std::byte>(bits >> (8 * i));
  }
}

std::string format_element(ElementType type, const std::byte* at) {
  switch (type.element_class) {
  case Class::kBool:
    return load_integer(type, at) != 0 ? "true" : "false";
  case Class::kSigned:
    return fmt::format("{}", static_cast<int64_t>(load_integer(type, at)));
  case Class::kUnsigned:
    return fmt::format("{}", load_integer(type, at));
  case Class::kBits:
    return fmt::format("0x{:0{}x}", load_integer(type, at), 2 * type.size_bytes);
  default:
    break;
  }
  const double value = load_real(type, at);
  if (std::isnan(value)) {
    return "nan"; // whatever its sign
  }
  return type.size_bytes == 8 ? fmt::format("{}", value)
                              : fmt::format("{}", static_cast<float>(value));
}

} // namespace pto::sim
