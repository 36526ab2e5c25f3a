// SPDX-License-Identifier: Apache-2.0
// PTO instructions as device functions over the SIMT interface of Ascend C (dav-3510): what the
// files of `ptoas --emit=ascendc` include. See docs/npu.md.
//
// Three compilers read this file: the vendor's in pure SIMT mode (--enable-simt), the vendor's in
// hybrid mode (PTO_HYBRID defined: a vector kernel whose lanes run as a SIMT vector function), and
// a host compiler with PTO_HOST_EMULATION defined, for which host/simt_host.h declares the same
// interface and host/simt_host.cc runs it. Everything below uses published names only; the list of
// them is tests/npu/interfaces.txt, and a test compares it with the declarations.
//
// Registers are bits: r registers uint32_t, d registers uint64_t, predicates bool. Functions take
// and give register bits; the type of the instruction is a template argument from pto::types.
#pragma once

#include <stdint.h>

#if defined(PTO_HOST_EMULATION)
#include "simt_host.h"
#define PTO_FN inline
#define PTO_GM
#define PTO_UB
#define PTO_SCALAR_FN inline
#else
#include "acl/acl.h"
#include "simt_api/asc_bf16.h"
#include "simt_api/asc_fp16.h"
#include "simt_api/asc_simt.h"
#if defined(PTO_HYBRID)
#include "c_api/asc_simd.h"
#define PTO_FN __simt_callee__ inline
#define PTO_GM __gm__
#define PTO_UB __ubuf__
#else
#define PTO_FN __aicore__ inline
#define PTO_GM
#define PTO_UB
#endif
#define PTO_SCALAR_FN __aicore__ inline
// The emulation follows lanes by the lines of the emitted file; a device needs none of this.
#define PTO_LINE
#define PTO_LINE_ALONE
#define PTO_PASS_LINE
#define PTO_STEP()
#define PTO_AT()
#define PTO_CALL(call) (call)
#define PTO_PRINT(...) printf(__VA_ARGS__)
#define PTO_SHARED(name, bytes) alignas(128) __ubuf__ uint8_t name[bytes]
#define PTO_DYNAMIC_UB(name) extern __ubuf__ uint8_t name[]
#define PTO_LAUNCH(kernel, grid, block, ub_bytes, stream, ...)                                     \
  kernel<<<grid, block, ub_bytes, static_cast<aclrtStream>(stream)>>>(__VA_ARGS__)
#define PTO_LAUNCH_VECTOR(kernel, blocks, ub_bytes, stream, ...)                                   \
  kernel<<<blocks, ub_bytes, static_cast<aclrtStream>(stream)>>>(__VA_ARGS__)
#define PTO_LAUNCH_STATUS() static_cast<int32_t>(aclrtGetLastError(ACL_RT_THREAD_LEVEL))
#define PTO_IDLE()
#endif

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

// ---------------------------------------------------------------- control that the emulation sees

/// One trip of an endless loop: `for (pto::Loop loop; loop.next();)`. The emulation counts trips,
/// so that lanes that left early wait behind the loop, as on the device.
#if defined(PTO_HOST_EMULATION)
using Loop = ::pto_host::Loop;
#else
struct Loop {
  PTO_FN bool next() { return true; }
};
#endif

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

// ---------------------------------------------------------------- memory

/// An address in global memory (hbm).
struct Gm {
  uint64_t address;
  template <class V> PTO_FN PTO_GM V* as() const { return reinterpret_cast<PTO_GM V*>(address); }
};
/// An address in the block's scratchpad (l1).
struct Ub {
  PTO_UB uint8_t* address;
  template <class V> PTO_FN PTO_UB V* as() const { return reinterpret_cast<PTO_UB V*>(address); }
};

template <class V> PTO_FN uint64_t address(PTO_GM V* base) {
  return reinterpret_cast<uint64_t>(base);
}
PTO_FN Gm gm(uint64_t base, int64_t offset = 0) {
  return {base + static_cast<uint64_t>(offset)};
}
template <class V> PTO_FN Gm gm(PTO_GM V* base, int64_t offset = 0) {
  return {reinterpret_cast<uint64_t>(base) + static_cast<uint64_t>(offset)};
}
PTO_FN Ub ub(PTO_UB uint8_t* l1, int64_t offset) {
  return {l1 + offset};
}
/// An index register of an address, which counts as signed.
PTO_FN int64_t index(uint32_t r) {
  return static_cast<int32_t>(r);
}

template <class T> PTO_FN Slot<T> from_memory(typename T::memory value) {
  if constexpr (kSame<T, types::f32>) {
    return __float_as_uint(value);
  } else {
    return static_cast<Slot<T>>(value);
  }
}
template <class T> PTO_FN typename T::memory to_memory(Slot<T> slot) {
  if constexpr (kSame<T, types::f32>) {
    return __uint_as_float(slot);
  } else {
    return static_cast<typename T::memory>(slot);
  }
}

// One function for global memory and scratchpad alike; only global memory has paths other than the
// default.
template <class V, class Path, class Place> PTO_FN V read_at(Place from) {
  if constexpr (kSame<Path, types::cg>) {
    return asc_ldcg(from.template as<V>());
  } else if constexpr (kSame<Path, types::cv>) {
    return *from.template as<volatile V>();
  } else {
    return *from.template as<V>();
  }
}
template <class Path, class Place, class V> PTO_FN void write_at(Place to, V value) {
  if constexpr (kSame<Path, types::cg>) {
    asc_stcg(to.template as<V>(), value);
  } else {
    *to.template as<V>() = value;
  }
}

template <class T, class Path = types::ca, class Place> PTO_FN Slot<T> load(Place from PTO_LINE) {
  PTO_STEP();
  return from_memory<T>(read_at<typename T::memory, Path>(from));
}
template <class T, class Path = types::wt, class Place>
PTO_FN void store(Place to, Slot<T> a PTO_LINE) {
  PTO_STEP();
  write_at<Path>(to, to_memory<T>(a));
}

/// The vendor's short vector of n elements of a size.
template <unsigned kBytes, unsigned kCount> struct ShortVector;
template <> struct ShortVector<1, 2> { using type = uchar2; };
template <> struct ShortVector<1, 4> { using type = uchar4; };
template <> struct ShortVector<2, 2> { using type = ushort2; };
template <> struct ShortVector<2, 4> { using type = ushort4; };
template <> struct ShortVector<4, 2> { using type = uint2; };
template <> struct ShortVector<4, 4> { using type = uint4; };
template <> struct ShortVector<8, 2> { using type = ulong2; };
template <> struct ShortVector<8, 4> { using type = ulong4; };
template <class T, unsigned kCount>
using VectorOf = typename ShortVector<sizeof(typename T::memory), kCount>::type;

/// An element of a short vector as register bits.
template <class T, class E> PTO_FN Slot<T> element(E bits_of_element) {
  if constexpr (kSame<T, types::f32>) {
    return bits_of_element;
  } else {
    return static_cast<Slot<T>>(static_cast<typename T::memory>(bits_of_element));
  }
}
template <class T, class Path = types::ca, class Place>
PTO_FN void load_x2(Place from, Slot<T>& r0, Slot<T>& r1 PTO_LINE) {
  PTO_STEP();
  if constexpr (kSame<Path, types::cv>) { // there is no volatile short vector
    r0 = from_memory<T>(from.template as<volatile typename T::memory>()[0]);
    r1 = from_memory<T>(from.template as<volatile typename T::memory>()[1]);
  } else {
    const VectorOf<T, 2> v = read_at<VectorOf<T, 2>, Path>(from);
    r0 = element<T>(v.x);
    r1 = element<T>(v.y);
  }
}
template <class T, class Path = types::ca, class Place>
PTO_FN void load_x4(Place from, Slot<T>& r0, Slot<T>& r1, Slot<T>& r2, Slot<T>& r3 PTO_LINE) {
  PTO_STEP();
  if constexpr (kSame<Path, types::cv>) {
    r0 = from_memory<T>(from.template as<volatile typename T::memory>()[0]);
    r1 = from_memory<T>(from.template as<volatile typename T::memory>()[1]);
    r2 = from_memory<T>(from.template as<volatile typename T::memory>()[2]);
    r3 = from_memory<T>(from.template as<volatile typename T::memory>()[3]);
  } else {
    const VectorOf<T, 4> v = read_at<VectorOf<T, 4>, Path>(from);
    r0 = element<T>(v.x);
    r1 = element<T>(v.y);
    r2 = element<T>(v.z);
    r3 = element<T>(v.w);
  }
}
template <class T, class E> PTO_FN E as_element(Slot<T> slot, E) {
  return static_cast<E>(slot);
}
template <class T, class Path = types::wt, class Place>
PTO_FN void store_x2(Place to, Slot<T> r0, Slot<T> r1 PTO_LINE) {
  PTO_STEP();
  VectorOf<T, 2> v;
  v.x = as_element<T>(r0, v.x);
  v.y = as_element<T>(r1, v.y);
  write_at<Path>(to, v);
}
template <class T, class Path = types::wt, class Place>
PTO_FN void store_x4(Place to, Slot<T> r0, Slot<T> r1, Slot<T> r2, Slot<T> r3 PTO_LINE) {
  PTO_STEP();
  VectorOf<T, 4> v;
  v.x = as_element<T>(r0, v.x);
  v.y = as_element<T>(r1, v.y);
  v.z = as_element<T>(r2, v.z);
  v.w = as_element<T>(r3, v.w);
  write_at<Path>(to, v);
}

/// There is no published prefetch, and a load would fault where PREFETCH ignores a bad address.
PTO_FN void prefetch(Gm) {}
PTO_FN void inval_line(Gm at) {
  asc_dcci_single(at.as<void>());
}
PTO_FN void inval_all() {
  asc_dcci_entire(static_cast<PTO_GM void*>(nullptr));
}
PTO_FN void inval(Gm at) {
  inval_line(at);
}
PTO_FN void inval() {
  inval_all();
}
PTO_FN void fence_block() {
  asc_threadfence_block();
}
PTO_FN void fence_device() {
  asc_threadfence();
}

// ---------------------------------------------------------------- atomics

#define PTO_ATOMIC(operation)                                                                      \
  template <class T, class Place>                                                                  \
  PTO_FN Slot<T> atomic_##operation(Place at, Slot<T> a PTO_LINE) {                                \
    PTO_STEP();                                                                                    \
    return from_memory<T>(                                                                         \
        asc_atomic_##operation(at.template as<typename T::memory>(), to_memory<T>(a)));            \
  }
PTO_ATOMIC(add)
PTO_ATOMIC(sub)
PTO_ATOMIC(min)
PTO_ATOMIC(max)
PTO_ATOMIC(and)
PTO_ATOMIC(or)
PTO_ATOMIC(xor)
PTO_ATOMIC(inc)
PTO_ATOMIC(dec)
PTO_ATOMIC(exch)
#undef PTO_ATOMIC
template <class T, class Place> PTO_FN Slot<T> atomic_cas(Place at, Slot<T> a, Slot<T> b PTO_LINE) {
  PTO_STEP();
  return from_memory<T>(
      asc_atomic_cas(at.template as<typename T::memory>(), to_memory<T>(a), to_memory<T>(b)));
}

// ---------------------------------------------------------------- warp

PTO_FN uint32_t lane() {
  return static_cast<uint32_t>(laneid());
}
PTO_FN uint32_t activemask(PTO_LINE_ALONE) {
  PTO_AT();
  return asc_activemask();
}

/// `a` of lane `source`, or the own value where that lane is not active: the device leaves such a
/// value open.
template <class V> PTO_FN V from_lane(V a, uint32_t source, bool in_range) {
  const uint32_t active = asc_activemask();
  const uint32_t inside = in_range ? source : lane();
  const V other = asc_shfl(a, static_cast<int32_t>(inside), 32);
  return (active >> inside & 1u) != 0 ? other : a;
}
/// The lanes that a shuffle of that width keeps to: from `start` to before `end`.
struct Segment {
  uint32_t width;
  uint32_t start;
  uint32_t end;
};
PTO_FN Segment segment_of_lane(uint32_t width) {
  width = width == 0 || width > 32 ? 32 : width;
  const uint32_t start = lane() / width * width;
  return {width, start, start + width < 32 ? start + width : 32};
}
template <class T> PTO_FN Slot<T> shfl_idx(Slot<T> a, uint32_t b, uint32_t width = 32 PTO_LINE) {
  PTO_AT();
  const Segment segment = segment_of_lane(width);
  const uint32_t source = segment.start + b % segment.width;
  return from_lane(a, source, source < segment.end);
}
template <class T> PTO_FN Slot<T> shfl_up(Slot<T> a, uint32_t b, uint32_t width = 32 PTO_LINE) {
  PTO_AT();
  return from_lane(a, lane() - b, b <= lane() - segment_of_lane(width).start);
}
template <class T> PTO_FN Slot<T> shfl_down(Slot<T> a, uint32_t b, uint32_t width = 32 PTO_LINE) {
  PTO_AT();
  return from_lane(a, lane() + b, b < segment_of_lane(width).end - lane());
}
template <class T> PTO_FN Slot<T> shfl_xor(Slot<T> a, uint32_t b, uint32_t width = 32 PTO_LINE) {
  PTO_AT();
  return from_lane(a, lane() ^ b, (lane() ^ b) < segment_of_lane(width).end);
}

PTO_FN bool vote_all(bool p PTO_LINE) {
  PTO_AT();
  return asc_all(p ? 1 : 0) != 0;
}
PTO_FN bool vote_any(bool p PTO_LINE) {
  PTO_AT();
  return asc_any(p ? 1 : 0) != 0;
}
PTO_FN bool vote_uni(bool p PTO_LINE) {
  PTO_AT();
  const uint32_t yes = asc_ballot(p ? 1 : 0);
  return yes == 0 || yes == asc_activemask();
}
PTO_FN uint32_t vote_ballot(bool p PTO_LINE) {
  PTO_AT();
  return asc_ballot(p ? 1 : 0);
}

struct Sum {
  template <class T> static PTO_FN uint32_t of(uint32_t x, uint32_t y) { return add<T>(x, y); }
};
struct Least {
  template <class T> static PTO_FN uint32_t of(uint32_t x, uint32_t y) { return min<T>(x, y); }
};
struct Greatest {
  template <class T> static PTO_FN uint32_t of(uint32_t x, uint32_t y) { return max<T>(x, y); }
};
struct And {
  template <class T> static PTO_FN uint32_t of(uint32_t x, uint32_t y) { return x & y; }
};
struct Or {
  template <class T> static PTO_FN uint32_t of(uint32_t x, uint32_t y) { return x | y; }
};
struct Xor {
  template <class T> static PTO_FN uint32_t of(uint32_t x, uint32_t y) { return x ^ y; }
};

/// The tree over lane distances 16, 8, 4, 2, 1 with the lower lane first, which is what PTO
/// promises; the order within asc_reduce_add is not published. With lanes missing each lane
/// collects all values and works the tree itself.
template <class T, class Op> PTO_FN uint32_t reduce_tree(uint32_t a) {
  const uint32_t present = asc_activemask();
  if (present == ~0u) {
    for (int32_t distance = 16; distance > 0; distance /= 2) {
      const uint32_t other = asc_shfl(a, static_cast<int32_t>(lane()) + distance, 32);
      a = Op::template of<T>(a, other);
    }
    return asc_shfl(a, 0, 32); // lane 0 has the sum of the tree
  }
  uint32_t tree[32];
  for (int32_t from = 0; from < 32; ++from) {
    tree[from] = asc_shfl(a, from, 32);
  }
  uint32_t filled = present;
  for (uint32_t distance = 16; distance > 0; distance /= 2) {
    for (uint32_t i = 0; i < distance; ++i) {
      const bool low = (filled >> i & 1u) != 0;
      const bool high = (filled >> (i + distance) & 1u) != 0;
      tree[i] = low && high ? Op::template of<T>(tree[i], tree[i + distance])
                : high      ? tree[i + distance]
                            : tree[i];
      filled |= high ? 1u << i : 0u;
    }
  }
  return tree[0];
}
template <class T> PTO_FN uint32_t reduce_add(uint32_t a PTO_LINE) {
  PTO_AT();
  if constexpr (kIsFloat<T>) {
    return reduce_tree<T, Sum>(a);
  } else {
    return asc_reduce_add(a);
  }
}
template <class T> PTO_FN uint32_t reduce_min(uint32_t a PTO_LINE) {
  PTO_AT();
  if constexpr (kIsFloat<T>) {
    return reduce_tree<T, Least>(a);
  } else {
    return static_cast<uint32_t>(asc_reduce_min(static_cast<typename T::value>(a)));
  }
}
template <class T> PTO_FN uint32_t reduce_max(uint32_t a PTO_LINE) {
  PTO_AT();
  if constexpr (kIsFloat<T>) {
    return reduce_tree<T, Greatest>(a);
  } else {
    return static_cast<uint32_t>(asc_reduce_max(static_cast<typename T::value>(a)));
  }
}
template <class T> PTO_FN uint32_t reduce_and(uint32_t a PTO_LINE) {
  PTO_AT();
  return reduce_tree<T, And>(a);
}
template <class T> PTO_FN uint32_t reduce_or(uint32_t a PTO_LINE) {
  PTO_AT();
  return reduce_tree<T, Or>(a);
}
template <class T> PTO_FN uint32_t reduce_xor(uint32_t a PTO_LINE) {
  PTO_AT();
  return reduce_tree<T, Xor>(a);
}

// ---------------------------------------------------------------- synchronisation and the rest

/// BARRIER joins the lanes of one warp. There is no such function on the device: the lanes of a
/// warp run in lock step, and the fence makes what they wrote visible to each other.
PTO_FN void barrier(PTO_LINE_ALONE) {
  PTO_STEP();
  asc_threadfence_block();
}
/// The number of a barrier only names it; the device has one.
PTO_FN void barrier_block(uint32_t = 0 PTO_LINE) {
  PTO_AT();
  asc_syncthreads();
}
/// asc_nop holds a lane 15 cycles.
PTO_FN void nop(uint32_t cycles = 1) {
  for (uint32_t held = 0; held < cycles; held += 15) {
    asc_nop();
  }
}
PTO_FN uint64_t clock_now(PTO_LINE_ALONE) {
  PTO_STEP();
  return clock();
}
/// The device reports that a kernel trapped, not the code: print it first.
PTO_FN void trap(uint32_t code = 0 PTO_LINE) {
  PTO_STEP();
  PTO_PRINT("pto: trap %u\n", code);
  __trap();
}

/// Cycles spent between two marks, for --instrument: the lowest lane of each warp adds the time
/// since the last mark to the entry of the instruction that was just run. An entry is two words,
/// cycles and times. Entry 0 measures an empty pair of marks.
struct Probe {
  PTO_GM uint64_t* entries; // of this warp
  uint64_t last;
};
PTO_FN Probe open_probe(PTO_GM uint64_t* profile, uint64_t warp, uint64_t entry_count PTO_LINE) {
  PTO_STEP();
  Probe probe;
  probe.entries = profile + warp * entry_count * 2;
  probe.last = clock();
  return probe;
}
PTO_FN void mark(Probe& probe, uint32_t entry PTO_LINE) {
  PTO_AT();
  const uint32_t active = asc_activemask();
  const uint64_t now = clock();
  if ((active & (~active + 1u)) == 1u << lane()) {
    probe.entries[entry * 2] += now - probe.last;
    probe.entries[entry * 2 + 1] += 1;
  }
  probe.last = clock();
}

/// The launch of a hybrid kernel, whose blocks are numbered by one number only.
struct Shape {
  uint32_t grid_x, grid_y, grid_z;
  uint32_t block_x, block_y, block_z;
};
PTO_FN uint32_t ctaid_x(const Shape& shape, uint32_t block) {
  return block % shape.grid_x;
}
PTO_FN uint32_t ctaid_y(const Shape& shape, uint32_t block) {
  return block / shape.grid_x % shape.grid_y;
}
PTO_FN uint32_t ctaid_z(const Shape& shape, uint32_t block) {
  return block / shape.grid_x / shape.grid_y;
}

/// Lane within the block, x fastest.
PTO_FN uint32_t linear_lane() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
PTO_FN uint32_t warp() {
  return linear_lane() / 32;
}
PTO_FN uint32_t warps_of_block() {
  return (blockDim.x * blockDim.y * blockDim.z + 31) / 32;
}
/// Number of the warp within the grid, for the entries of Probe.
PTO_FN uint64_t global_warp(const Shape&, uint32_t block) {
  return static_cast<uint64_t>(block) * warps_of_block() + warp();
}
PTO_FN uint64_t global_warp() {
  const uint64_t block =
      blockIdx.x + static_cast<uint64_t>(gridDim.x) *
                       (blockIdx.y + static_cast<uint64_t>(gridDim.y) * blockIdx.z);
  return block * warps_of_block() + warp();
}

/// Host side: a scalar argument from its bits.
inline float host_float(uint64_t bits_of_argument) {
  union {
    uint32_t raw;
    float value;
  } both;
  both.raw = static_cast<uint32_t>(bits_of_argument);
  return both.value;
}

} // namespace pto

#if defined(PTO_HYBRID)
#include "pto_board.h"
#endif
