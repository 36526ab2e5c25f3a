// SPDX-License-Identifier: Apache-2.0
// Constants as operands: the bits that a value has in an operand's type.
#include "assembler/operands.h"
#include "isa/float16.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

namespace pto::as {

using isa::SourceRange;
using isa::Type;

namespace {

struct FloatBits {
  uint64_t bits;
  bool is_infinite;
};

template <class T> FloatBits narrow_bits(double value) {
  const T narrow = isa::narrow<T>(value);
  return {narrow.bits, std::isinf(isa::widen(narrow))};
}

FloatBits float_bits(const ConstValue& value, Type type) {
  if (type == Type::kF16) {
    return narrow_bits<isa::F16>(value.real);
  }
  if (type == Type::kBF16) {
    return narrow_bits<isa::BF16>(value.real);
  }
  float single = static_cast<float>(value.real);
  if (value.literal != nullptr && value.literal->kind == TokenKind::kFloat) {
    single = parse_float(value.literal->text); // rounded once
    single = value.is_negated_literal ? -single : single;
  }
  if (std::isnan(single)) {
    return {0x7FC00000, false};
  }
  return {std::bit_cast<uint32_t>(single), std::isinf(single)};
}

std::string_view greatest(Type type) {
  return type == Type::kF16 ? "65504" : "3.4e38";
}

} // namespace

std::optional<uint64_t> OperandReader::to_bits(const ConstValue& value,
                                               Type type,
                                               SourceRange range,
                                               const std::function<std::string()>& role) {
  const TokenKind literal = value.literal != nullptr ? value.literal->kind : TokenKind::kEnd;
  const bool is_bit_literal = literal == TokenKind::kBitsF32 || literal == TokenKind::kBits16;
  if (is_bit_literal) {
    const unsigned width = literal == TokenKind::kBitsF32 ? 32 : 16;
    const bool fits = isa::bits(type) == width &&
                      (isa::is_float(type) || isa::is_bits(type) || type == Type::kF16x2);
    if (!fits) {
      diags_
          .error(range,
                 fmt::format("'{}' gives the {} bits of a float, but {} has type {}",
                             value.literal->text,
                             width,
                             role(),
                             isa::name(type)))
          .expect("0f and eight digits for f32, 0h and four for f16 and bf16");
      return std::nullopt;
    }
    const uint64_t sign = value.is_negated_literal ? uint64_t{1} << (width - 1) : 0;
    return value.literal->value ^ sign;
  }
  if (isa::is_float(type)) {
    if (!value.is_float) {
      isa::Diagnostic& error = diags_.error(range,
                                            fmt::format("integer constant {} where {} has type {}",
                                                        to_string(value),
                                                        role(),
                                                        isa::name(type)));
      error.expect("a float constant");
      if (value.literal != nullptr && value.literal->text.substr(0, 2) != "0x") {
        error.replace(range, fmt::format("{}.0", to_string(value)));
      } else if (type == Type::kF32) {
        error.advise("write 0f and eight hexadecimal digits to give the bits");
      }
      return std::nullopt;
    }
    const FloatBits result = float_bits(value, type);
    if (result.is_infinite && std::isfinite(value.real)) {
      diags_.error(range, fmt::format("constant {} does not fit {}", value.real, isa::name(type)))
          .expect(fmt::format("at most {} in size", greatest(type)));
      return std::nullopt;
    }
    return result.bits;
  }
  if (value.is_float) {
    diags_
        .error(range,
               fmt::format("float constant {} where {} has type {}",
                           to_string(value),
                           role(),
                           isa::name(type)))
        .expect(type == Type::kF16x2 ? "the 32 bits of the pair as an integer, high half first"
                                     : "an integer constant")
        .advise(isa::is_bits(type) && isa::bits(type) == 32
                    ? "a type of f32 takes it, and 0f with eight digits gives the bits"
                    : "");
    return std::nullopt;
  }
  const unsigned bits = isa::bits(type);
  const WideInt least = bits <= 1 ? 0 : -(WideInt{1} << (bits - 1));
  const WideInt greatest_value = (WideInt{1} << bits) - 1;
  if (value.integer < least || value.integer > greatest_value) {
    const auto text = [](WideInt number) { return to_string(ConstValue{.integer = number}); };
    diags_
        .error(range,
               fmt::format(
                   "constant {} does not fit {} ({} bit)", to_string(value), isa::name(type), bits))
        .expect(fmt::format("{} to {}", text(least), text(greatest_value)));
    return std::nullopt;
  }
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  return static_cast<uint64_t>(value.integer) & mask;
}

} // namespace pto::as
