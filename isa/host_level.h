// SPDX-License-Identifier: Apache-2.0
// Loops over lanes in a copy for each level of x86-64 processors, and which copy runs.
//
// A loop is an inline function marked PTO_HOST_LOOP. host_loop<loop> holds it compiled once a level
// and calls the copy of the level in use. Levels are attributes of those copies and not flags of a
// file: an inline function that is shared with other code is never compiled for a processor that
// the host may not be. All copies give the same bits: nothing is contracted and every operation
// rounds as IEEE 754 says.
#pragma once

#include "isa/error.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pto::isa {

/// What a host's processor has, each level all of the lower ones.
enum class HostLevel : uint8_t {
  kBaseline, // what the build asks for: any x86-64 if it asks for nothing
  kAvx2,     // AVX2, FMA, BMI and BMI2: nearly all from 2013 on
  kAvx512,   // AVX-512 F, BW, CD, DQ and VL
};
inline constexpr size_t kHostLevelCount = 3;
inline constexpr std::array<std::string_view, kHostLevelCount> kHostLevelNames = {
    "baseline", "avx2", "avx512"};

constexpr std::string_view name_of(HostLevel level) {
  return kHostLevelNames[static_cast<size_t>(level)];
}

/// The highest level that is in use without being asked for: the copies for AVX-512 have not been
/// through the tests of all rows on a processor that has it (docs/performance.md).
inline constexpr HostLevel kHighestUnasked = HostLevel::kAvx2;

/// The environment variable that chooses the level; empty is the same as not set.
inline constexpr const char* kHostLevelVariable = "PTO_HOST_LEVEL";

/// kHostLevelVariable names no level, or one that the host does not have.
class HostLevelError : public Error {
public:
  using Error::Error;
};

/// The highest level that this host has.
HostLevel highest_host_level();

/// The level that the text asks for on a host that has `highest`; without a wish (nullptr or empty)
/// the highest up to kHighestUnasked.
/// Throws HostLevelError where it does not name one of the levels up to `highest`.
HostLevel choose_host_level(const char* wanted, HostLevel highest);

/// choose_host_level for this host and its environment.
HostLevel host_level_of_environment();

/// The level in use: the same from the first call on, whatever becomes of the environment. Throws
/// HostLevelError as long as the variable is wrong; programs and launches ask before anything runs.
inline HostLevel host_level() {
  static const HostLevel kLevel = host_level_of_environment();
  return kLevel;
}

// ---------------------------------------------------------------- loops

#define PTO_HOST_LOOP [[gnu::always_inline]] inline

#if defined(__x86_64__) && defined(__GNUC__)
#define PTO_AVX2 [[gnu::target("avx2,fma,bmi,bmi2")]]
#define PTO_AVX512 [[gnu::target("avx2,fma,bmi,bmi2,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]]
#else
#define PTO_AVX2
#define PTO_AVX512
#endif

/// A function in a copy for each level.
template <class Function> struct HostLoop {
  std::array<Function, kHostLevelCount> copies;

  /// The copy of the level in use.
  [[nodiscard]] Function on_host() const { return copies[static_cast<size_t>(host_level())]; }
  template <class... Args> auto operator()(Args... args) const { return on_host()(args...); }
};

namespace detail {

template <auto kLoop, class Function = decltype(kLoop)> struct HostCopies;

// Everything that a loop calls is a part of its copies, so that it is compiled for their level.
template <auto kLoop, class Result, class... Args> struct HostCopies<kLoop, Result (*)(Args...)> {
  [[gnu::flatten]] static Result baseline(Args... args) { return kLoop(args...); }
  PTO_AVX2 [[gnu::flatten]] static Result avx2(Args... args) { return kLoop(args...); }
  PTO_AVX512 [[gnu::flatten]] static Result avx512(Args... args) { return kLoop(args...); }
};

} // namespace detail

template <auto kLoop>
inline constexpr HostLoop<decltype(kLoop)> host_loop = {{&detail::HostCopies<kLoop>::baseline,
                                                         &detail::HostCopies<kLoop>::avx2,
                                                         &detail::HostCopies<kLoop>::avx512}};

} // namespace pto::isa
