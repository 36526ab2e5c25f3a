// SPDX-License-Identifier: Apache-2.0
// Types as template arguments, and what instructions compute from register bits: arithmetic, bits,
// comparison and conversion. Included by pto_simt.h.
#pragma once

namespace pto {

// ---------------------------------------------------------------- types

/// `value` computes, `memory` is what lies in memory, `slot` the register.
// clang-format off
namespace types {
struct u8 { using value = uint8_t; using memory = uint8_t; using slot = uint32_t; };
struct s8 { using value = int8_t; using memory = int8_t; using slot = uint32_t; };
struct u16 { using value = uint16_t; using memory = uint16_t; using slot = uint32_t; };
struct s16 { using value = int16_t; using memory = int16_t; using slot = uint32_t; };
struct u32 { using value = uint32_t; using memory = uint32_t; using slot = uint32_t; };
struct s32 { using value = int32_t; using memory = int32_t; using slot = uint32_t; };
struct u64 { using value = uint64_t; using memory = uint64_t; using slot = uint64_t; };
struct s64 { using value = int64_t; using memory = int64_t; using slot = uint64_t; };
struct f16 { using value = half; using memory = uint16_t; using slot = uint32_t; };
struct bf16 { using value = bfloat16_t; using memory = uint16_t; using slot = uint32_t; };
struct f32 { using value = float; using memory = float; using slot = uint32_t; };
struct f16x2 { using value = uint32_t; using memory = uint32_t; using slot = uint32_t; };
struct pred { using value = bool; using memory = bool; using slot = bool; };
struct b8 : u8 {};
struct b16 : u16 {};
struct b32 : u32 {};
struct b64 : u64 {};
// Paths to memory.
struct ca {};
struct cg {};
struct cv {};
struct wt {};
} // namespace types
// clang-format on
using namespace types;

template <class T> using Slot = typename T::slot;

template <class A, class B> constexpr bool kSame = false;
template <class A> constexpr bool kSame<A, A> = true;
template <class T>
constexpr bool kIsFloat = kSame<T, types::f32> || kSame<T, types::f16> || kSame<T, types::bf16>;
template <class T>
constexpr bool kIsSigned =
    kSame<T, types::s8> || kSame<T, types::s16> || kSame<T, types::s32> || kSame<T, types::s64>;
template <class T> constexpr unsigned kBits = sizeof(typename T::memory) * 8;

/// A NaN that an operation makes is the canonical one in PTO. What pattern the device makes is its
/// own affair, so nothing is spent on it there; the emulation follows the simulator.
PTO_FN float canonical(float x) {
#if defined(PTO_HOST_EMULATION)
  return x == x ? x : __uint_as_float(0x7fc00000u);
#else
  return x;
#endif
}

PTO_FN uint32_t bits(float x) {
  return __float_as_uint(x);
}
PTO_FN float as_float(uint32_t x) {
  return __uint_as_float(x);
}
PTO_FN uint32_t half_bits(half x) {
  union {
    half value;
    uint16_t raw;
  } both;
  both.value = x;
  return both.raw;
}
PTO_FN uint32_t bfloat16_bits(bfloat16_t x) {
  union {
    bfloat16_t value;
    uint16_t raw;
  } both;
  both.value = x;
  return both.raw;
}

template <class T> PTO_FN typename T::value get(Slot<T> slot) {
  if constexpr (kSame<T, types::f32>) {
    return __uint_as_float(slot);
  } else if constexpr (kSame<T, types::f16>) {
    return __ushort_as_half(static_cast<uint16_t>(slot));
  } else if constexpr (kSame<T, types::bf16>) {
    return __ushort_as_bfloat16(static_cast<uint16_t>(slot));
  } else {
    return static_cast<typename T::value>(slot);
  }
}
template <class T> PTO_FN Slot<T> put(typename T::value value) {
  if constexpr (kSame<T, types::f32>) {
    return __float_as_uint(canonical(value));
  } else if constexpr (kSame<T, types::f16>) {
    return half_bits(value);
  } else if constexpr (kSame<T, types::bf16>) {
    return bfloat16_bits(value);
  } else {
    return static_cast<Slot<T>>(value); // extended by its signedness
  }
}
/// Of a float type, exactly.
template <class T> PTO_FN float widen(Slot<T> slot) {
  if constexpr (kSame<T, types::f16>) {
    return __half2float(get<T>(slot));
  } else if constexpr (kSame<T, types::bf16>) {
    return __bfloat162float(get<T>(slot));
  } else {
    return __uint_as_float(slot);
  }
}
/// Rounded to nearest even.
template <class T> PTO_FN Slot<T> narrow(float x) {
  if constexpr (kSame<T, types::f16>) {
    return half_bits(__float2half_rn(x));
  } else if constexpr (kSame<T, types::bf16>) {
    return bfloat16_bits(__float2bfloat16_rn(x));
  } else {
    return __float_as_uint(canonical(x));
  }
}

// ---------------------------------------------------------------- arithmetic

template <class T> PTO_FN Slot<T> add(Slot<T> a, Slot<T> b) {
  if constexpr (kSame<T, types::f16x2>) {
    return add<types::f16>(a & 0xffffu, b & 0xffffu) | add<types::f16>(a >> 16, b >> 16) << 16;
  } else if constexpr (kSame<T, types::f16>) {
    return half_bits(__hadd(get<T>(a), get<T>(b)));
  } else if constexpr (kIsFloat<T>) {
    return narrow<T>(widen<T>(a) + widen<T>(b));
  } else {
    return put<T>(static_cast<typename T::value>(a + b));
  }
}
template <class T> PTO_FN Slot<T> sub(Slot<T> a, Slot<T> b) {
  if constexpr (kSame<T, types::f16x2>) {
    return sub<types::f16>(a & 0xffffu, b & 0xffffu) | sub<types::f16>(a >> 16, b >> 16) << 16;
  } else if constexpr (kSame<T, types::f16>) {
    return half_bits(__hsub(get<T>(a), get<T>(b)));
  } else if constexpr (kIsFloat<T>) {
    return narrow<T>(widen<T>(a) - widen<T>(b));
  } else {
    return put<T>(static_cast<typename T::value>(a - b));
  }
}
template <class T> PTO_FN Slot<T> mul(Slot<T> a, Slot<T> b) {
  if constexpr (kSame<T, types::f16x2>) {
    return mul<types::f16>(a & 0xffffu, b & 0xffffu) | mul<types::f16>(a >> 16, b >> 16) << 16;
  } else if constexpr (kSame<T, types::f16>) {
    return half_bits(__hmul(get<T>(a), get<T>(b)));
  } else if constexpr (kIsFloat<T>) {
    return narrow<T>(widen<T>(a) * widen<T>(b));
  } else {
    return put<T>(static_cast<typename T::value>(a * b));
  }
}
template <class T> PTO_FN uint32_t mulhi(uint32_t a, uint32_t b) {
  if constexpr (kIsSigned<T>) {
    return static_cast<uint32_t>(__mulhi(static_cast<int32_t>(a), static_cast<int32_t>(b)));
  } else {
    return __umulhi(a, b);
  }
}
template <class T> PTO_FN uint32_t mad(uint32_t a, uint32_t b, uint32_t c) {
  return a * b + c;
}
/// The full product of 32-bit a and b, and a 64-bit c.
template <class T> PTO_FN uint64_t mad_wide(uint32_t a, uint32_t b, uint64_t c) {
  if constexpr (kIsSigned<T>) {
    return static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(a)) *
                                 static_cast<int64_t>(static_cast<int32_t>(b))) +
           c;
  } else {
    return static_cast<uint64_t>(a) * b + c;
  }
}
/// Division by zero gives all ones, the most negative number by -1 itself. The device's float
/// division takes subnormal inputs as zero.
template <class T> PTO_FN Slot<T> div(Slot<T> a, Slot<T> b) {
  if constexpr (kIsFloat<T>) {
    return narrow<T>(widen<T>(a) / widen<T>(b));
  } else if constexpr (kIsSigned<T>) {
    using V = typename T::value;
    const V x = static_cast<V>(a);
    const V y = static_cast<V>(b);
    return y == 0 ? ~Slot<T>(0) : y == -1 ? Slot<T>(0) - a : static_cast<Slot<T>>(x / y);
  } else {
    return b == 0 ? ~Slot<T>(0) : a / b;
  }
}
template <class T> PTO_FN Slot<T> rem(Slot<T> a, Slot<T> b) {
  if constexpr (kIsSigned<T>) {
    using V = typename T::value;
    const V x = static_cast<V>(a);
    const V y = static_cast<V>(b);
    return y == 0 ? a : y == -1 ? Slot<T>(0) : static_cast<Slot<T>>(x % y);
  } else {
    return b == 0 ? a : a % b;
  }
}
/// a*b + c rounded once. bf16 by way of f32: the sum is rounded to odd first.
template <class T> PTO_FN Slot<T> fma(Slot<T> a, Slot<T> b, Slot<T> c) {
  if constexpr (kSame<T, types::f16x2>) {
    return fma<types::f16>(a & 0xffffu, b & 0xffffu, c & 0xffffu) |
           fma<types::f16>(a >> 16, b >> 16, c >> 16) << 16;
  } else if constexpr (kSame<T, types::f16>) {
    return half_bits(__hfma(get<T>(a), get<T>(b), get<T>(c)));
  } else if constexpr (kSame<T, types::bf16>) {
    return bfloat16_bits(__hfma(get<T>(a), get<T>(b), get<T>(c)));
  } else {
    return __float_as_uint(canonical(fmaf(widen<T>(a), widen<T>(b), widen<T>(c))));
  }
}

/// Sign and magnitude as a number that orders as the float does, -0 below +0.
PTO_FN int32_t order_key(uint32_t x) {
  const int32_t key = static_cast<int32_t>(x);
  return key ^ ((key >> 31) & 0x7fffffff);
}
/// Of two floats as f32 bits, the one that MIN or MAX takes: a number beats a NaN.
template <bool kGreater> PTO_FN bool takes_first(float a, float b) {
  if (a != a || b != b) {
    return a == a;
  }
  const int32_t x = order_key(__float_as_uint(a));
  const int32_t y = order_key(__float_as_uint(b));
  return kGreater ? x > y : x < y;
}
template <class T>
constexpr uint32_t kCanonicalNan = kSame<T, types::f32>   ? 0x7fc00000u
                                   : kSame<T, types::f16> ? 0x7e00u
                                                          : 0x7fc0u;

template <class T, bool kGreater> PTO_FN Slot<T> choose(Slot<T> a, Slot<T> b) {
  if constexpr (kSame<T, types::f16x2>) {
    return choose<types::f16, kGreater>(a & 0xffffu, b & 0xffffu) |
           choose<types::f16, kGreater>(a >> 16, b >> 16) << 16;
  } else if constexpr (kIsFloat<T>) {
    const float x = widen<T>(a);
    const float y = widen<T>(b);
    if (x != x && y != y) {
      return kCanonicalNan<T>;
    }
    return takes_first<kGreater>(x, y) ? a & (~0u >> (32 - kBits<T>))
                                       : b & (~0u >> (32 - kBits<T>));
  } else {
    using V = typename T::value;
    const V x = static_cast<V>(a);
    const V y = static_cast<V>(b);
    return put<T>((kGreater ? x > y : x < y) ? x : y);
  }
}
template <class T> PTO_FN Slot<T> min(Slot<T> a, Slot<T> b) {
  return choose<T, false>(a, b);
}
template <class T> PTO_FN Slot<T> max(Slot<T> a, Slot<T> b) {
  return choose<T, true>(a, b);
}

template <class T> PTO_FN Slot<T> abs(Slot<T> a) {
  if constexpr (kSame<T, types::f16x2>) {
    return a & 0x7fff7fffu;
  } else if constexpr (kIsFloat<T>) {
    return a & (0x7fffffffu >> (32 - kBits<T>));
  } else {
    return put<T>(
        static_cast<typename T::value>(static_cast<typename T::value>(a) < 0 ? Slot<T>(0) - a : a));
  }
}
template <class T> PTO_FN Slot<T> neg(Slot<T> a) {
  if constexpr (kSame<T, types::f16x2>) {
    return a ^ 0x80008000u;
  } else if constexpr (kIsFloat<T>) {
    return (a ^ (1u << (kBits<T> - 1))) & (~0u >> (32 - kBits<T>));
  } else {
    return put<T>(static_cast<typename T::value>(Slot<T>(0) - a));
  }
}

// f16 is computed in f32 and rounded.
template <class T> PTO_FN uint32_t exp(uint32_t a) {
  return narrow<T>(expf(widen<T>(a)));
}
template <class T> PTO_FN uint32_t log(uint32_t a) {
  return narrow<T>(logf(widen<T>(a)));
}
template <class T> PTO_FN uint32_t sqrt(uint32_t a) {
  return narrow<T>(sqrtf(widen<T>(a)));
}
template <class T> PTO_FN uint32_t rsqrt(uint32_t a) {
  return narrow<T>(rsqrtf(widen<T>(a)));
}
template <class T> PTO_FN uint32_t rcp(uint32_t a) {
  return narrow<T>(1.0f / widen<T>(a));
}
template <class T> PTO_FN uint32_t tanh(uint32_t a) {
  return narrow<T>(tanhf(widen<T>(a)));
}
template <class T> PTO_FN uint32_t sin(uint32_t a) {
  return narrow<T>(sinf(widen<T>(a)));
}
template <class T> PTO_FN uint32_t cos(uint32_t a) {
  return narrow<T>(cosf(widen<T>(a)));
}
template <class T> PTO_FN uint32_t pow(uint32_t a, uint32_t b) {
  return narrow<T>(powf(widen<T>(a), widen<T>(b)));
}

// ---------------------------------------------------------------- bits

template <class T> PTO_FN Slot<T> bit_and(Slot<T> a, Slot<T> b) {
  return a & b;
}
template <class T> PTO_FN Slot<T> bit_or(Slot<T> a, Slot<T> b) {
  return a | b;
}
template <class T> PTO_FN Slot<T> bit_xor(Slot<T> a, Slot<T> b) {
  return a ^ b;
}
template <class T> PTO_FN Slot<T> bit_not(Slot<T> a) {
  if constexpr (kSame<T, types::pred>) {
    return !a;
  } else {
    return ~a;
  }
}
/// The count is taken modulo the width.
template <class T> PTO_FN Slot<T> shl(Slot<T> a, uint32_t b) {
  return a << (b % kBits<T>);
}
template <class T> PTO_FN Slot<T> shr(Slot<T> a, uint32_t b) {
  return static_cast<Slot<T>>(static_cast<typename T::value>(a) >> (b % kBits<T>));
}
template <class T> PTO_FN uint32_t popc(Slot<T> a) {
  return static_cast<uint32_t>(__popc(a));
}
template <class T> PTO_FN uint32_t clz(Slot<T> a) {
  if constexpr (kBits<T> == 64) {
    return a == 0 ? 64u : static_cast<uint32_t>(__clz(static_cast<int64_t>(a)));
  } else {
    return a == 0 ? 32u : static_cast<uint32_t>(__clz(static_cast<int32_t>(a)));
  }
}
template <class T> PTO_FN Slot<T> brev(Slot<T> a) {
  return __brev(a);
}
/// Bytes of the pair b:a; bit 3 of a selector asks for the byte's sign in all eight bits.
PTO_FN uint32_t prmt(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t pair = static_cast<uint64_t>(b) << 32 | a;
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const uint32_t nibble = selector >> (4 * i) & 15u;
    const uint32_t byte = static_cast<uint32_t>(pair >> (8 * (nibble & 7u))) & 255u;
    result |= (nibble > 7u ? ((byte >> 7) != 0 ? 255u : 0u) : byte) << (8 * i);
  }
  return result;
}

// ---------------------------------------------------------------- comparison and conversion

/// What a type compares as.
template <class T> PTO_FN auto comparable(Slot<T> a) {
  if constexpr (kIsFloat<T>) {
    return widen<T>(a);
  } else {
    return static_cast<typename T::value>(a);
  }
}
template <class T> PTO_FN bool cmp_eq(Slot<T> a, Slot<T> b) {
  return comparable<T>(a) == comparable<T>(b);
}
template <class T> PTO_FN bool cmp_ne(Slot<T> a, Slot<T> b) {
  return !(comparable<T>(a) == comparable<T>(b));
}
template <class T> PTO_FN bool cmp_lt(Slot<T> a, Slot<T> b) {
  return comparable<T>(a) < comparable<T>(b);
}
template <class T> PTO_FN bool cmp_le(Slot<T> a, Slot<T> b) {
  return comparable<T>(a) <= comparable<T>(b);
}
template <class T> PTO_FN bool cmp_gt(Slot<T> a, Slot<T> b) {
  return comparable<T>(a) > comparable<T>(b);
}
template <class T> PTO_FN bool cmp_ge(Slot<T> a, Slot<T> b) {
  return comparable<T>(a) >= comparable<T>(b);
}

enum class Round { kNone, kNearest, kZero, kDown, kUp };

// The vendor's spelling of a conversion in a rounding known when compiling; `otherwise` where none
// was written.
#define PTO_ROUNDED(mode, otherwise, name, value)                                                  \
  ((mode) == Round::kZero || ((mode) == Round::kNone && (otherwise) == Round::kZero)               \
       ? name##_rz(value)                                                                          \
   : (mode) == Round::kDown ? name##_rd(value)                                                     \
   : (mode) == Round::kUp   ? name##_ru(value)                                                     \
                            : name##_rn(value))

template <class To, Round kMode> PTO_FN Slot<To> float_to_integer(float x) {
  constexpr Round kZero = Round::kZero;
  if (x != x) {
    return 0; // whatever the device's conversion makes of a NaN
  }
  if constexpr (kSame<To, types::s64>) {
    return static_cast<uint64_t>(PTO_ROUNDED(kMode, kZero, __float2ll, x));
  } else if constexpr (kSame<To, types::u64>) {
    return PTO_ROUNDED(kMode, kZero, __float2ull, x);
  } else if constexpr (kSame<To, types::u32>) {
    return PTO_ROUNDED(kMode, kZero, __float2uint, x);
  } else {
    int32_t value = PTO_ROUNDED(kMode, kZero, __float2int, x);
    if constexpr (kBits<To> < 32) { // saturates at the narrow type's limits
      constexpr int32_t kLow = kIsSigned<To> ? -(1 << (kBits<To> - 1)) : 0;
      constexpr int32_t kHigh = (1 << (kIsSigned<To> ? kBits<To> - 1 : kBits<To>)) - 1;
      value = value < kLow ? kLow : value > kHigh ? kHigh : value;
    }
    return static_cast<uint32_t>(value);
  }
}

template <class To, class From, Round kMode> PTO_FN Slot<To> integer_to_float(Slot<From> a) {
  constexpr Round kNearest = Round::kNearest;
  const typename From::value whole = static_cast<typename From::value>(a);
  if constexpr (kSame<From, types::s64>) {
    if constexpr (kSame<To, types::f32>) {
      return bits(PTO_ROUNDED(kMode, kNearest, __ll2float, whole));
    } else if constexpr (kSame<To, types::f16>) {
      return half_bits(PTO_ROUNDED(kMode, kNearest, __ll2half, whole));
    } else {
      return bfloat16_bits(PTO_ROUNDED(kMode, kNearest, __ll2bfloat16, whole));
    }
  } else if constexpr (kSame<From, types::u64>) {
    if constexpr (kSame<To, types::f32>) {
      return bits(PTO_ROUNDED(kMode, kNearest, __ull2float, whole));
    } else if constexpr (kSame<To, types::f16>) {
      return half_bits(PTO_ROUNDED(kMode, kNearest, __ull2half, whole));
    } else {
      return bfloat16_bits(PTO_ROUNDED(kMode, kNearest, __ull2bfloat16, whole));
    }
  } else if constexpr (kIsSigned<From>) {
    const int32_t value = whole;
    if constexpr (kSame<To, types::f32>) {
      return bits(PTO_ROUNDED(kMode, kNearest, __int2float, value));
    } else if constexpr (kSame<To, types::f16>) {
      return half_bits(PTO_ROUNDED(kMode, kNearest, __int2half, value));
    } else {
      return bfloat16_bits(PTO_ROUNDED(kMode, kNearest, __int2bfloat16, value));
    }
  } else {
    const uint32_t value = whole;
    if constexpr (kSame<To, types::f32>) {
      return bits(PTO_ROUNDED(kMode, kNearest, __uint2float, value));
    } else if constexpr (kSame<To, types::f16>) {
      return half_bits(PTO_ROUNDED(kMode, kNearest, __uint2half, value));
    } else {
      return bfloat16_bits(PTO_ROUNDED(kMode, kNearest, __uint2bfloat16, value));
    }
  }
}

template <Round kMode> PTO_FN float round_integral(float x) {
  return kMode == Round::kZero   ? truncf(x)
         : kMode == Round::kDown ? floorf(x)
         : kMode == Round::kUp   ? ceilf(x)
                                 : rintf(x);
}

template <class To, class From, Round kMode> PTO_FN Slot<To> convert(Slot<From> a) {
  constexpr Round kNearest = Round::kNearest;
  if constexpr (kIsFloat<To> && kSame<To, From>) {
    const float x = widen<From>(a);
    return narrow<To>(kMode == Round::kNone ? x : round_integral<kMode>(x));
  } else if constexpr (kSame<To, types::f32> && kIsFloat<From>) {
    return bits(canonical(widen<From>(a)));
  } else if constexpr (kSame<To, types::f16> && kIsFloat<From>) {
    const float x = widen<From>(a);
    return half_bits(PTO_ROUNDED(kMode, kNearest, __float2half, x));
  } else if constexpr (kSame<To, types::bf16> && kIsFloat<From>) {
    const float x = widen<From>(a);
    return bfloat16_bits(PTO_ROUNDED(kMode, kNearest, __float2bfloat16, x));
  } else if constexpr (kIsFloat<To>) {
    return integer_to_float<To, From, kMode>(a);
  } else if constexpr (kIsFloat<From>) {
    return float_to_integer<To, kMode>(widen<From>(a));
  } else {
    return put<To>(static_cast<typename To::value>(static_cast<typename From::value>(a)));
  }
}
template <class To, class From> PTO_FN Slot<To> cvt(Slot<From> a) {
  return convert<To, From, Round::kNone>(a);
}
template <class To, class From> PTO_FN Slot<To> cvt_rn(Slot<From> a) {
  return convert<To, From, Round::kNearest>(a);
}
template <class To, class From> PTO_FN Slot<To> cvt_rz(Slot<From> a) {
  return convert<To, From, Round::kZero>(a);
}
template <class To, class From> PTO_FN Slot<To> cvt_rm(Slot<From> a) {
  return convert<To, From, Round::kDown>(a);
}
template <class To, class From> PTO_FN Slot<To> cvt_rp(Slot<From> a) {
  return convert<To, From, Round::kUp>(a);
}

} // namespace pto
