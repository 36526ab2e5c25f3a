// SPDX-License-Identifier: Apache-2.0
// Emits PTO programs as Ascend C, builds them with the host compiler over the emulation, and runs a
// kernel both there and in the simulator.
#pragma once

#include "isa/object.h"
#include "runtime/npu/ascendc_emitter.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace pto::test {

/// What a kernel is launched on. Buffers become its pointer parameters, then scalars follow.
struct KernelCase {
  std::string kernel;
  uint32_t grid = 1;
  uint32_t block = 64;
  std::vector<std::vector<uint8_t>> buffers;
  std::vector<uint64_t> scalars;
};

struct KernelOutcome {
  std::string error; // empty: it ran to its end
  std::vector<std::vector<uint8_t>> buffers;
  std::vector<std::string> printed; // simulator only
};

class HostBuild {
public:
  HostBuild();
  ~HostBuild();
  HostBuild(const HostBuild&) = delete;
  HostBuild& operator=(const HostBuild&) = delete;

  /// Assembles and emits a program; its number. Errors fail the test.
  size_t add(const std::string& text, const rt::EmitOptions& options = {});
  [[nodiscard]] const isa::Object& object(size_t program) const;
  [[nodiscard]] const rt::AscendC& file(size_t program) const;
  /// Puts a mistake into the emitted text, for tests of the tests.
  void replace(size_t program, const std::string& right, const std::string& wrong);

  /// Compiles what was added since, two files at a time, with $CXX_UNDER_TEST or the compiler of
  /// this build. Errors fail the test, with the compiler's messages.
  void build();

  KernelOutcome emulate(size_t program, const KernelCase& launch) const;
  KernelOutcome simulate(size_t program, const KernelCase& launch) const;

  /// Both, and the first difference in words; empty where they agree bit for bit.
  std::string difference(size_t program, const KernelCase& launch) const;

private:
  struct Program;
  std::string directory_;
  std::vector<std::unique_ptr<Program>> programs_;
};

} // namespace pto::test
