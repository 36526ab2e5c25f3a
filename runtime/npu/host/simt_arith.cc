// SPDX-License-Identifier: Apache-2.0
// What one lane computes by the interface, by way of the ISA's own arithmetic: atomics, arithmetic,
// conversion.
#include "simt_host.h"

#undef truncf
#undef floorf
#undef ceilf
#undef rintf
#undef expf
#undef logf
#undef sqrtf
#undef rsqrtf
#undef tanhf
#undef sinf
#undef cosf
#undef powf
#undef fmaf
#undef clock

#include "isa/convert.h"
#include "isa/fmath.h"

#include <bit>
#include <cstring>
#include <type_traits>

namespace isa = pto::isa;

// ---------------------------------------------------------------- atomics

namespace {

template <class T, class Fn> T exchange(const char* what, T* address, Fn next) {
  pto_host::takes(what);
  T old;
  std::memcpy(&old, address, sizeof(T));
  const T value = static_cast<T>(next(old));
  std::memcpy(address, &value, sizeof(T));
  return old;
}
template <class T> using Wrap = std::make_unsigned_t<T>;

} // namespace

#define PTO_ATOMICS(type)                                                                          \
  type asc_atomic_add(type* p, type v) {                                                           \
    return exchange(                                                                               \
        "asc_atomic_add", p, [v](type old) { return Wrap<type>(old) + Wrap<type>(v); });           \
  }                                                                                                \
  type asc_atomic_sub(type* p, type v) {                                                           \
    return exchange(                                                                               \
        "asc_atomic_sub", p, [v](type old) { return Wrap<type>(old) - Wrap<type>(v); });           \
  }                                                                                                \
  type asc_atomic_exch(type* p, type v) {                                                          \
    return exchange("asc_atomic_exch", p, [v](type) { return v; });                                \
  }                                                                                                \
  type asc_atomic_max(type* p, type v) {                                                           \
    return exchange("asc_atomic_max", p, [v](type old) { return old > v ? old : v; });             \
  }                                                                                                \
  type asc_atomic_min(type* p, type v) {                                                           \
    return exchange("asc_atomic_min", p, [v](type old) { return old < v ? old : v; });             \
  }                                                                                                \
  type asc_atomic_and(type* p, type v) {                                                           \
    return exchange("asc_atomic_and", p, [v](type old) { return old & v; });                       \
  }                                                                                                \
  type asc_atomic_or(type* p, type v) {                                                            \
    return exchange("asc_atomic_or", p, [v](type old) { return old | v; });                        \
  }                                                                                                \
  type asc_atomic_xor(type* p, type v) {                                                           \
    return exchange("asc_atomic_xor", p, [v](type old) { return old ^ v; });                       \
  }                                                                                                \
  type asc_atomic_cas(type* p, type compare, type v) {                                             \
    return exchange("asc_atomic_cas", p, [=](type old) { return old == compare ? v : old; });      \
  }
PTO_ATOMICS(int32_t)
PTO_ATOMICS(uint32_t)
PTO_ATOMICS(int64_t)
PTO_ATOMICS(uint64_t)
#undef PTO_ATOMICS
#define PTO_COUNTERS(type)                                                                         \
  type asc_atomic_inc(type* p, type v) {                                                           \
    return exchange("asc_atomic_inc", p, [v](type old) { return old >= v ? 0 : old + 1; });        \
  }                                                                                                \
  type asc_atomic_dec(type* p, type v) {                                                           \
    return exchange(                                                                               \
        "asc_atomic_dec", p, [v](type old) { return old == 0 || old > v ? v : old - 1; });         \
  }
PTO_COUNTERS(uint32_t)
PTO_COUNTERS(uint64_t)
#undef PTO_COUNTERS
float asc_atomic_add(float* p, float v) {
  return exchange("asc_atomic_add", p, [v](float old) { return isa::add(old, v); });
}
float asc_atomic_max(float* p, float v) {
  return exchange("asc_atomic_max", p, [v](float old) { return isa::max(old, v); });
}
float asc_atomic_min(float* p, float v) {
  return exchange("asc_atomic_min", p, [v](float old) { return isa::min(old, v); });
}

// ---------------------------------------------------------------- arithmetic

uint32_t __float_as_uint(float x) {
  return std::bit_cast<uint32_t>(x);
}
float __uint_as_float(uint32_t x) {
  return std::bit_cast<float>(x);
}
half __ushort_as_half(unsigned short x) {
  return {x};
}
bfloat16_t __ushort_as_bfloat16(unsigned short x) {
  return {x};
}
int32_t __mulhi(int32_t x, int32_t y) {
  pto_host::takes("__mulhi");
  return static_cast<int32_t>(int64_t{x} * y >> 32);
}
uint32_t __umulhi(uint32_t x, uint32_t y) {
  pto_host::takes("__umulhi");
  return static_cast<uint32_t>(uint64_t{x} * y >> 32);
}
int32_t __clz(int32_t x) {
  pto_host::takes("__clz");
  return std::countl_zero(static_cast<uint32_t>(x));
}
int32_t __clz(int64_t x) {
  pto_host::takes("__clz");
  return std::countl_zero(static_cast<uint64_t>(x));
}
int32_t __ffs(int32_t x) {
  pto_host::takes("__ffs");
  return x == 0 ? 0 : std::countr_zero(static_cast<uint32_t>(x)) + 1;
}
int32_t __popc(uint32_t x) {
  pto_host::takes("__popc");
  return std::popcount(x);
}
int32_t __popc(uint64_t x) {
  pto_host::takes("__popc");
  return std::popcount(x);
}
namespace {
template <class T> T reversed(T x) {
  T out = 0;
  for (unsigned i = 0; i < sizeof(T) * 8; ++i) {
    out |= (x >> i & 1) << (sizeof(T) * 8 - 1 - i);
  }
  return out;
}
} // namespace
uint32_t __brev(uint32_t x) {
  pto_host::takes("__brev");
  return reversed(x);
}
uint64_t __brev(uint64_t x) {
  pto_host::takes("__brev");
  return reversed(x);
}

#define PTO_MATH(name, ...)                                                                        \
  float simt_##name(float x) {                                                                     \
    pto_host::takes(#name);                                                                        \
    return __VA_ARGS__;                                                                            \
  }
PTO_MATH(truncf, isa::round_integral<isa::Rounding::kTowardZero>(x))
PTO_MATH(floorf, isa::round_integral<isa::Rounding::kDown>(x))
PTO_MATH(ceilf, isa::round_integral<isa::Rounding::kUp>(x))
PTO_MATH(rintf, isa::round_integral<isa::Rounding::kNearestEven>(x))
PTO_MATH(expf, isa::exp(x))
PTO_MATH(logf, isa::log(x))
PTO_MATH(sqrtf, isa::sqrt(x))
PTO_MATH(rsqrtf, isa::rsqrt(x))
PTO_MATH(tanhf, isa::tanh(x))
PTO_MATH(sinf, isa::sin(x))
PTO_MATH(cosf, isa::cos(x))
#undef PTO_MATH
float simt_powf(float x, float y) {
  pto_host::takes("powf");
  return isa::pow(x, y);
}
float simt_fmaf(float x, float y, float z) {
  pto_host::takes("fmaf");
  return isa::fused(x, y, z);
}

namespace {
isa::F16 of(half x) {
  return {x.bits};
}
isa::BF16 of(bfloat16_t x) {
  return {x.bits};
}
half to_half(isa::F16 x) {
  return {x.bits};
}
bfloat16_t to_bfloat16(isa::BF16 x) {
  return {x.bits};
}
} // namespace

half __hadd(half x, half y) {
  pto_host::takes("__hadd");
  return to_half(isa::add(of(x), of(y)));
}
half __hsub(half x, half y) {
  pto_host::takes("__hsub");
  return to_half(isa::sub(of(x), of(y)));
}
half __hmul(half x, half y) {
  pto_host::takes("__hmul");
  return to_half(isa::mul(of(x), of(y)));
}
half __hfma(half x, half y, half z) {
  pto_host::takes("__hfma");
  return to_half(isa::fused(of(x), of(y), of(z)));
}
bfloat16_t __hfma(bfloat16_t x, bfloat16_t y, bfloat16_t z) {
  pto_host::takes("__hfma");
  return to_bfloat16(isa::fused(of(x), of(y), of(z)));
}

// ---------------------------------------------------------------- conversion

float __half2float(half x) {
  return isa::widen(of(x));
}
float __bfloat162float(bfloat16_t x) {
  return isa::widen(of(x));
}
// clang-format off
#define PTO_CONVERSION(to, isa_to, from, isa_from, name, wrap, mode)                               \
  to name(from x) { pto_host::takes(#name); return wrap(isa::convert<isa_to, isa::Rounding::mode>(isa_from(x))); }
#define PTO_CONVERSIONS(to, isa_to, from, isa_from, name, wrap)                                    \
  PTO_CONVERSION(to, isa_to, from, isa_from, name##_rn, wrap, kNearestEven)                        \
  PTO_CONVERSION(to, isa_to, from, isa_from, name##_rz, wrap, kTowardZero)                         \
  PTO_CONVERSION(to, isa_to, from, isa_from, name##_rd, wrap, kDown)                               \
  PTO_CONVERSION(to, isa_to, from, isa_from, name##_ru, wrap, kUp)
PTO_CONVERSIONS(half, isa::F16, float, float, __float2half, to_half)
PTO_CONVERSIONS(bfloat16_t, isa::BF16, float, float, __float2bfloat16, to_bfloat16)
PTO_CONVERSIONS(int32_t, int32_t, float, float, __float2int, )
PTO_CONVERSIONS(uint32_t, uint32_t, float, float, __float2uint, )
PTO_CONVERSIONS(long long int, int64_t, float, float, __float2ll, )
PTO_CONVERSIONS(unsigned long long int, uint64_t, float, float, __float2ull, )
PTO_CONVERSIONS(float, float, int32_t, int32_t, __int2float, )
PTO_CONVERSIONS(float, float, uint32_t, uint32_t, __uint2float, )
PTO_CONVERSIONS(float, float, long long int, int64_t, __ll2float, )
PTO_CONVERSIONS(float, float, unsigned long long int, uint64_t, __ull2float, )
PTO_CONVERSIONS(half, isa::F16, int32_t, int32_t, __int2half, to_half)
PTO_CONVERSIONS(half, isa::F16, uint32_t, uint32_t, __uint2half, to_half)
PTO_CONVERSIONS(half, isa::F16, long long int, int64_t, __ll2half, to_half)
PTO_CONVERSIONS(half, isa::F16, unsigned long long int, uint64_t, __ull2half, to_half)
PTO_CONVERSIONS(bfloat16_t, isa::BF16, int32_t, int32_t, __int2bfloat16, to_bfloat16)
PTO_CONVERSIONS(bfloat16_t, isa::BF16, uint32_t, uint32_t, __uint2bfloat16, to_bfloat16)
PTO_CONVERSIONS(bfloat16_t, isa::BF16, long long int, int64_t, __ll2bfloat16, to_bfloat16)
PTO_CONVERSIONS(bfloat16_t, isa::BF16, unsigned long long int, uint64_t, __ull2bfloat16, to_bfloat16)
#undef PTO_CONVERSIONS
#undef PTO_CONVERSION
// clang-format on
