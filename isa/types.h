// SPDX-License-Identifier: Apache-2.0
// Value types of the PTO instruction set: names, sizes and classes (docs/isa.md, section Types).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pto::isa {

/// A value type as written in a suffix (`.f32`). kNone stands for "this insn has no type".
enum class Type : uint8_t {
  kNone,
  kU8,
  kS8,
  kU16,
  kS16,
  kU32,
  kS32,
  kU64,
  kS64,
  kF16,
  kBF16,
  kF32,
  kF16x2,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
};
inline constexpr unsigned kTypeCount = 18;

enum class TypeClass : uint8_t { kNone, kUnsigned, kSigned, kFloat, kPacked, kPred, kBits };

struct TypeInfo {
  std::string_view name;
  uint8_t bits; // 0 for kNone, 1 for kPred
  TypeClass type_class;
};

inline constexpr std::array<TypeInfo, kTypeCount> kTypeInfo = {{
    {"none", 0, TypeClass::kNone},
    {"u8", 8, TypeClass::kUnsigned},
    {"s8", 8, TypeClass::kSigned},
    {"u16", 16, TypeClass::kUnsigned},
    {"s16", 16, TypeClass::kSigned},
    {"u32", 32, TypeClass::kUnsigned},
    {"s32", 32, TypeClass::kSigned},
    {"u64", 64, TypeClass::kUnsigned},
    {"s64", 64, TypeClass::kSigned},
    {"f16", 16, TypeClass::kFloat},
    {"bf16", 16, TypeClass::kFloat},
    {"f32", 32, TypeClass::kFloat},
    {"f16x2", 32, TypeClass::kPacked},
    {"pred", 1, TypeClass::kPred},
    {"b8", 8, TypeClass::kBits},
    {"b16", 16, TypeClass::kBits},
    {"b32", 32, TypeClass::kBits},
    {"b64", 64, TypeClass::kBits},
}};

constexpr const TypeInfo& info(Type type) {
  return kTypeInfo[static_cast<unsigned>(type)];
}
constexpr std::string_view name(Type type) {
  return info(type).name;
}
constexpr unsigned bits(Type type) {
  return info(type).bits;
}
/// Size in memory; 0 for kNone and kPred, which have none.
constexpr unsigned size_bytes(Type type) {
  return info(type).bits / 8;
}
constexpr bool is_float(Type type) {
  return info(type).type_class == TypeClass::kFloat;
}
constexpr bool is_signed(Type type) {
  return info(type).type_class == TypeClass::kSigned;
}
constexpr bool is_integer(Type type) {
  return info(type).type_class == TypeClass::kUnsigned || is_signed(type);
}
constexpr bool is_bits(Type type) {
  return info(type).type_class == TypeClass::kBits;
}
/// True where a value of this type occupies a 64-bit `d` register.
constexpr bool is_wide(Type type) {
  return bits(type) == 64;
}

/// The type of that name, exactly as printed (lower case); nullopt if there is none.
std::optional<Type> find_type(std::string_view name);

/// A set of types, for table columns.
class TypeSet {
public:
  constexpr TypeSet() = default;
  constexpr TypeSet(Type type) : bits_(1u << static_cast<unsigned>(type)) {}
  constexpr bool contains(Type type) const {
    return (bits_ & (1u << static_cast<unsigned>(type))) != 0;
  }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr TypeSet operator|(TypeSet other) const { return TypeSet(bits_ | other.bits_); }
  constexpr bool operator==(const TypeSet&) const = default;

private:
  constexpr explicit TypeSet(uint32_t raw) : bits_(raw) {}
  uint32_t bits_ = 0;
};

/// One-element sets, so that rows read `.types = kF16 | kF32` (using namespace type_sets).
namespace type_sets {
inline constexpr TypeSet kU8 = Type::kU8, kS8 = Type::kS8, kU16 = Type::kU16, kS16 = Type::kS16,
                         kU32 = Type::kU32, kS32 = Type::kS32, kU64 = Type::kU64, kS64 = Type::kS64,
                         kF16 = Type::kF16, kBF16 = Type::kBF16, kF32 = Type::kF32,
                         kF16x2 = Type::kF16x2, kPred = Type::kPred, kB8 = Type::kB8,
                         kB16 = Type::kB16, kB32 = Type::kB32, kB64 = Type::kB64;
} // namespace type_sets

} // namespace pto::isa
