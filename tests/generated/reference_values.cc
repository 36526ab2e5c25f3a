// SPDX-License-Identifier: Apache-2.0
// The second implementation of arithmetic: slow, obvious, and sharing nothing with isa/.
#include "reference_values.h"

#include "isa/error.h"

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>

namespace pto::test {

using isa::Rounding;
using isa::Type;

namespace {

uint64_t low_mask(unsigned width) {
  return width >= 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
}

const Format& format_of(Type type) {
  return type == Type::kF16 ? kF16Format : type == Type::kBF16 ? kBf16Format : kF32Format;
}

// A pattern of f16, bf16 or f32.
struct Pattern {
  const Format& format;
  uint32_t bits;

  Pattern(Type type, uint64_t slot)
      : format(format_of(type)),
        bits(static_cast<uint32_t>(slot & (uint64_t{format.sign} * 2 - 1))) {}
  uint32_t size() const { return bits & (format.sign - 1); }
  bool negative() const { return (bits & format.sign) != 0; }
  bool is_nan() const { return size() > format.infinity; }
  bool is_infinite() const { return size() == format.infinity; }
  bool is_zero() const { return size() == 0; }
  Exact exact() const { return test::exact(format, bits); }
};

// Rounds a host operation in that mode; operands and result pass through volatile, so that it
// happens here and now.
class HostRounding {
public:
  explicit HostRounding(Rounding mode) : before_(std::fegetround()) {
    constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(kModes[static_cast<unsigned>(mode)]);
  }
  ~HostRounding() { std::fesetround(before_); }
  HostRounding(const HostRounding&) = delete;
  HostRounding& operator=(const HostRounding&) = delete;

private:
  int before_;
};

float host_narrow(double value, Rounding mode) {
  const HostRounding rounding(mode);
  const volatile double in = value;
  const volatile float out = static_cast<float>(in);
  return out;
}

uint64_t f32_slot(float value) {
  return std::isnan(value) ? canonical_nan(Type::kF32) : std::bit_cast<uint32_t>(value);
}

template <class F> uint64_t on_halves(F of_half) {
  return (of_half(0u) & 0xffff) | (of_half(16u) & 0xffff) << 16;
}

// a * b + c of f16 or bf16.
uint64_t exact_fma(Type type, uint64_t a_slot, uint64_t b_slot, uint64_t c_slot) {
  const Pattern a(type, a_slot);
  const Pattern b(type, b_slot);
  const Pattern c(type, c_slot);
  const Format& format = a.format;
  const bool negative = a.negative() != b.negative();
  if (a.is_nan() || b.is_nan() || c.is_nan()) {
    return format.nan;
  }
  if (a.is_infinite() || b.is_infinite()) {
    const bool invalid =
        a.is_zero() || b.is_zero() || (c.is_infinite() && c.negative() != negative);
    return invalid ? format.nan : format.infinity | (negative ? format.sign : 0);
  }
  if (c.is_infinite()) {
    return c.bits;
  }
  return reference_fused(format, a.exact() * b.exact(), negative, c.exact(), c.negative());
}

uint64_t one_of(Type type) {
  const Format& format = format_of(type);
  return static_cast<uint64_t>(format.bias) << format.fraction_bits;
}

} // namespace

Int128 integer_of(Type type, uint64_t slot) {
  const unsigned width = isa::bits(type);
  const uint64_t low = slot & low_mask(width);
  const bool negative = isa::is_signed(type) && (low >> (width - 1) & 1) != 0;
  return Int128{low} - (negative ? Int128{1} << width : Int128{0});
}

uint64_t slot_of(Type type, Int128 value) {
  const unsigned width = isa::bits(type);
  const uint64_t low = static_cast<uint64_t>(value) & low_mask(width);
  const bool negative = isa::is_signed(type) && (low >> (width - 1) & 1) != 0;
  const uint64_t extended = negative ? low | ~low_mask(width) : low;
  return width == 64 ? extended : extended & low_mask(32);
}

bool is_nan(Type type, uint64_t slot) {
  return Pattern(type, slot).is_nan();
}

uint64_t canonical_nan(Type type) {
  return format_of(type).nan;
}

double number_of(Type type, uint64_t slot) {
  const Pattern pattern(type, slot);
  if (pattern.is_nan()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const Exact value = pattern.exact();
  const double size = pattern.is_infinite()
                          ? std::numeric_limits<double>::infinity()
                          : std::ldexp(static_cast<double>(std::abs(value.m)), value.e);
  return pattern.negative() ? -size : size;
}

uint64_t slot_of_number(Type type, double value) {
  return slot_of_rounded(type, value, Rounding::kTowardZero);
}

uint64_t slot_of_rounded(Type type, double value, Rounding mode) {
  const Format& format = format_of(type);
  const uint32_t sign = std::signbit(value) ? format.sign : 0;
  if (std::isnan(value)) {
    return format.nan;
  }
  if (std::isinf(value)) {
    return format.infinity | sign;
  }
  if (type == Type::kF32) {
    return f32_slot(host_narrow(value, mode));
  }
  int exponent = 0;
  const auto m = static_cast<int64_t>(std::ldexp(std::frexp(value, &exponent), 53));
  if (exponent - 53 < -300) { // only f64 subnormals and the like; every format has a wider gap here
    return slot_of_rounded(type, std::copysign(0x1p-200, value), mode);
  }
  return reference_narrow(format, {m, exponent - 53}, std::signbit(value), mode);
}

uint64_t slot_of_rounded(Type type, Int128 value, Rounding mode) {
  if (type == Type::kF32) {
    const HostRounding rounding(mode);
    if (value < 0) {
      const volatile auto in = static_cast<int64_t>(value);
      const volatile float out = static_cast<float>(in);
      return f32_slot(out);
    }
    const volatile auto in = static_cast<uint64_t>(value);
    const volatile float out = static_cast<float>(in);
    return f32_slot(out);
  }
  const bool negative = value < 0;
  const auto size = static_cast<uint64_t>(negative ? -value : value);
  const int64_t sign = negative ? -1 : 1;
  const Exact high{sign * static_cast<int64_t>(size >> 32), 32};
  const Exact low{sign * static_cast<int64_t>(size & 0xffffffff), 0};
  return reference_fused(format_of(type), high, negative, low, negative, mode);
}

double integral_of(double value, Rounding mode) {
  switch (mode) {
  case Rounding::kNearestEven: {
    const double below = std::floor(value);
    const double distance = value - below;
    const bool up = distance > 0.5 || (distance == 0.5 && std::fmod(below, 2.0) != 0);
    return std::copysign(up ? below + 1 : below, value);
  }
  case Rounding::kTowardZero:
    return std::trunc(value);
  case Rounding::kDown:
    return std::floor(value);
  case Rounding::kUp:
    break;
  }
  return std::ceil(value);
}

uint64_t float_add(Type type, uint64_t a, uint64_t b) {
  if (type == Type::kF16x2) {
    return on_halves([&](unsigned at) { return float_add(Type::kF16, a >> at, b >> at); });
  }
  if (type == Type::kF32) {
    return f32_slot(host_narrow(number_of(type, a) + number_of(type, b), Rounding::kNearestEven));
  }
  return exact_fma(type, a, one_of(type), b);
}

uint64_t float_mul(Type type, uint64_t a, uint64_t b) {
  if (type == Type::kF16x2) {
    return on_halves([&](unsigned at) { return float_mul(Type::kF16, a >> at, b >> at); });
  }
  if (type == Type::kF32) {
    return f32_slot(host_narrow(number_of(type, a) * number_of(type, b), Rounding::kNearestEven));
  }
  const bool negative = Pattern(type, a).negative() != Pattern(type, b).negative();
  return exact_fma(type, a, b, negative ? format_of(type).sign : 0);
}

uint64_t float_div(Type type, uint64_t a_slot, uint64_t b_slot) {
  if (type == Type::kF32) {
    return f32_slot(
        host_narrow(number_of(type, a_slot) / number_of(type, b_slot), Rounding::kNearestEven));
  }
  const Pattern a(type, a_slot);
  const Pattern b(type, b_slot);
  const bool negative = a.negative() != b.negative();
  const uint32_t sign = negative ? a.format.sign : 0;
  if (a.is_nan() || b.is_nan() || (a.is_zero() && b.is_zero()) ||
      (a.is_infinite() && b.is_infinite())) {
    return a.format.nan;
  }
  if (a.is_infinite() || b.is_zero()) {
    return a.format.infinity | sign;
  }
  return b.is_infinite() ? sign : reference_div(a.format, a.exact(), b.exact(), negative);
}

uint64_t float_fma(Type type, uint64_t a, uint64_t b, uint64_t c) {
  if (type == Type::kF16x2) {
    return on_halves([&](unsigned at) { return float_fma(Type::kF16, a >> at, b >> at, c >> at); });
  }
  if (type == Type::kF32) {
    const volatile float x = std::bit_cast<float>(static_cast<uint32_t>(a));
    const volatile float y = std::bit_cast<float>(static_cast<uint32_t>(b));
    const volatile float z = std::bit_cast<float>(static_cast<uint32_t>(c));
    return f32_slot(std::fma(x, y, z));
  }
  return exact_fma(type, a, b, c);
}

uint64_t float_sqrt(Type type, uint64_t slot) {
  if (type == Type::kF32) {
    return f32_slot(host_narrow(std::sqrt(number_of(type, slot)), Rounding::kNearestEven));
  }
  const Pattern a(type, slot);
  if (a.is_nan() || (a.negative() && !a.is_zero())) {
    return a.format.nan;
  }
  return a.is_zero() || a.is_infinite() ? a.bits : reference_sqrt(a.format, a.exact());
}

uint64_t float_least(Type type, uint64_t a_slot, uint64_t b_slot, bool greatest) {
  if (type == Type::kF16x2) {
    return on_halves(
        [&](unsigned at) { return float_least(Type::kF16, a_slot >> at, b_slot >> at, greatest); });
  }
  const Pattern a(type, a_slot);
  const Pattern b(type, b_slot);
  if (a.is_nan() || b.is_nan()) {
    return !a.is_nan() ? a.bits : !b.is_nan() ? b.bits : a.format.nan;
  }
  const double x = number_of(type, a_slot);
  const double y = number_of(type, b_slot);
  const bool a_is_less = x < y || (x == y && a.negative() && !b.negative());
  return a_is_less != greatest ? a.bits : b.bits;
}

uint64_t float_negated(Type type, uint64_t a) {
  return type == Type::kF16x2 ? (a ^ 0x80008000) & 0xffffffff
         : type == Type::kF32 ? (a ^ 0x80000000) & 0xffffffff
                              : (a ^ 0x8000) & 0xffff;
}

uint64_t float_magnitude(Type type, uint64_t a) {
  return type == Type::kF16x2 ? a & 0x7fff7fff : type == Type::kF32 ? a & 0x7fffffff : a & 0x7fff;
}

// ---------------------------------------------------------------- values to try

namespace {

std::vector<uint64_t> float_edges(Type type, bool few) {
  const Format& format = format_of(type);
  const uint32_t unit = 1u << format.fraction_bits;
  std::vector<uint32_t> sizes = {0,
                                 1,
                                 unit - 1,
                                 unit,
                                 format.infinity - 1,
                                 format.infinity,
                                 format.infinity + 1,
                                 format.nan | 5};
  const auto power = [&](int exponent) {
    return static_cast<uint32_t>(format.bias + exponent) << format.fraction_bits;
  };
  sizes.push_back(power(0));
  sizes.push_back(power(1) + unit / 2); // 3
  if (!few) {
    sizes.insert(sizes.end(), {2, 3, unit / 2, unit + 1, format.nan});
    for (const int exponent : {2,
                               7,
                               8,
                               -1,
                               -2,
                               15,
                               -format.fraction_bits,
                               -format.fraction_bits - 1,
                               format.fraction_bits}) {
      const uint32_t at = std::min(power(exponent), format.infinity - unit);
      sizes.insert(sizes.end(), {at - 1, at, at + 1, at + unit / 2 + 1});
    }
    for (const int exponent : {16, 31, 32, 63, 64}) { // bounds of integers, where they exist
      if (exponent < format.bias) {
        sizes.insert(sizes.end(), {power(exponent) - 1, power(exponent), power(exponent) + 1});
      }
    }
  }
  std::vector<uint64_t> values;
  for (const uint32_t size : sizes) {
    values.push_back(size);
    values.push_back(size | format.sign);
  }
  return values;
}

std::vector<uint64_t> integer_edges(Type type, bool few) {
  const unsigned width = isa::bits(type);
  std::vector<Int128> values = {0, 1, 2, 3, 7, -1, -2, -7};
  const Int128 top = Int128{1} << (width - 1);
  values.insert(values.end(), {top, top - 1, top + 1, 2 * top - 2});
  if (!few) {
    values.insert(values.end(), {8,      10,     15,     16,      17,   31,   32,  33,   63,
                                 64,     65,     100,    127,     128,  255,  256, 1000, 0x5555,
                                 0xaaaa, 0x8000, 0xffff, 0x10000, -128, -100, -32, -31,  -64});
    values.insert(values.end(), {top / 2, top / 2 - 1, top + top / 2, 2 * top / 3, 4 * top / 3});
    values.insert(values.end(), {0x7fffffff, Int128{1} << 31, (Int128{1} << 32) - 1});
  }
  std::vector<uint64_t> slots;
  for (const Int128 value : values) {
    slots.push_back(slot_of(type, value));
  }
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  return slots;
}

std::vector<uint64_t> edges(Type type, bool few) {
  switch (isa::info(type).type_class) {
  case isa::TypeClass::kPred:
    return {0, 1};
  case isa::TypeClass::kFloat:
    return float_edges(type, few);
  case isa::TypeClass::kPacked: {
    // Each half meets each value, beside a neighbour that differs from it.
    const std::vector<uint64_t> half = float_edges(Type::kF16, few);
    std::vector<uint64_t> values;
    for (size_t i = 0; i < half.size(); ++i) {
      values.push_back(half[i] | half[(i * 7 + 3) % half.size()] << 16);
    }
    return values;
  }
  default:
    return integer_edges(type, few);
  }
}

} // namespace

std::vector<uint64_t> edge_values(Type type) {
  return edges(type, false);
}
std::vector<uint64_t> few_edge_values(Type type) {
  return edges(type, true);
}

uint64_t random_value(Type type, Random& random) {
  const uint64_t mask = isa::bits(type) == 64 ? ~uint64_t{0} : 0xffffffff;
  const uint64_t bits = random.next() & mask;
  if (type == Type::kPred) {
    return bits >> 7 & 1;
  }
  const uint32_t choice = random.bits32() % 8;
  if (choice < 3) {
    return bits; // above a narrow type too: semantics take its low bits
  }
  if (isa::is_float(type)) {
    const Format& format = format_of(type);
    const uint32_t fraction = static_cast<uint32_t>(bits) & ((1u << format.fraction_bits) - 1);
    const auto near = static_cast<uint32_t>(format.bias) - 6 + random.bits32() % 14;
    const uint32_t sign = (bits >> 40 & 1) != 0 || (choice & 1) != 0 ? format.sign : 0;
    // Few fraction bits, so that ties happen; exponents near one another.
    const uint32_t kept =
        choice < 5 ? fraction & ~((1u << (format.fraction_bits / 2 + 1)) - 1) : fraction;
    return sign | near << format.fraction_bits | kept;
  }
  if (type == Type::kF16x2) {
    return (random_value(Type::kF16, random) & 0xffff) << 16 |
           (random_value(Type::kF16, random) & 0xffff);
  }
  if (choice < 6) {
    const uint64_t small = bits >> (random.bits32() % 64);
    return slot_of(type, (choice & 1) != 0 ? Int128{small} : -Int128{small});
  }
  const std::vector<uint64_t> some = few_edge_values(type);
  return some[random.bits32() % some.size()];
}

} // namespace pto::test
