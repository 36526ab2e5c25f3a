// SPDX-License-Identifier: Apache-2.0
// Kernels and launches in a line each, for tests of the runtime.
#pragma once

#include "runtime/device.h"
#include "tests/unit/sim_fixture.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace pto::rt {

/// y[i] = a * x[i] + y[i], i < n
inline std::shared_ptr<const sim::Program> axpy_kernel() {
  static const auto kProgram = sim::program_of(R"(
.kernel axpy(ptr x, ptr y, f32 a, u32 n)
    MOV.u32 r0, %gid.x
    CMP.ge.u32 p0, r0, n
@p0 EXIT
    LOAD.f32 r1, hbm[x + r0*4]
    LOAD.f32 r2, hbm[y + r0*4]
    FMA.f32 r2, r1, a, r2
    STORE.f32 hbm[y + r0*4], r2
    EXIT
.end
)");
  return kProgram;
}

/// Counts to `rounds` in every lane, then adds 1 to the word at x: as long as one likes.
inline std::shared_ptr<const sim::Program> spin_kernel() {
  static const auto kProgram = sim::program_of(R"(
.kernel spin(ptr x, u32 rounds)
    MOV.u32 r0, 0
again:
    ADD.u32 r0, r0, 1
    CMP.lt.u32 p0, r0, rounds
@p0 BRA again
    LOAD.u32 r1, hbm[x]
    ADD.u32 r1, r1, 1
    STORE.u32 hbm[x], r1
    EXIT
.end
)");
  return kProgram;
}

/// Stores past the end of x.
inline std::shared_ptr<const sim::Program> wild_kernel() {
  static const auto kProgram = sim::program_of(R"(
.kernel wild(ptr x)
    MOV.u32 r0, 1000000
    STORE.u32 hbm[x + r0*4], r0
    EXIT
.end
)");
  return kProgram;
}

template <class T> std::span<const uint8_t> bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)};
}
template <class T> std::span<uint8_t> bytes_of(std::vector<T>& values) {
  return {reinterpret_cast<uint8_t*>(values.data()), values.size() * sizeof(T)};
}

inline Buffer words(Device& device, const std::vector<uint32_t>& values, std::string name = {}) {
  Buffer buffer = device.alloc(values.size() * 4, std::move(name));
  buffer.write(bytes_of(values));
  return buffer;
}

inline uint32_t first_word(const Buffer& buffer) {
  std::vector<uint32_t> value(1);
  buffer.read(bytes_of(value));
  return value[0];
}

inline LaunchSpec spin(const Buffer& buffer, uint32_t rounds, LaunchOptions options = {}) {
  return {.program = spin_kernel(),
          .grid = {1, 1, 1},
          .block = {1, 1, 1},
          .args = {LaunchArgument::pointer(buffer), LaunchArgument::scalar(rounds)},
          .options = std::move(options)};
}

/// The message of what `call` throws as E.
template <class E, class Call> std::string message_of(Call&& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

} // namespace pto::rt
