// SPDX-License-Identifier: Apache-2.0
// Measuring on a device of the runtime: launches, warm ones first. Where the device can put clock
// reads into a kernel, insns and pairs too.
//
// Whole runs are timed by the device, around the kernel as it is. Insns are looked at in launches
// of their own, because clock reads change what lies between them: one kernel with reads around
// every insn, two with reads around neighbours, from the first insn and from the second. What an
// empty pair of reads takes is measured in the same launch and subtracted.
#pragma once

#include "runtime/device.h"
#include "runtime/profile/kernel_input.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace pto::rt {

/// What a kernel is launched on.
struct DeviceInput {
  struct Arg {
    uint64_t bits = 0; // of a scalar
    isa::Type type = isa::Type::kNone;
    std::optional<size_t> array; // a pointer to this one
  };
  std::shared_ptr<const sim::Program> program;
  sim::Dim3 grid{};
  sim::Dim3 block{};
  uint32_t dynamic_l1_bytes = 0;
  std::vector<std::span<const uint8_t>> arrays; // what they hold before each launch
  std::vector<Arg> args;
};

/// The same as a view: `input` has to outlive it.
[[nodiscard]] DeviceInput device_input(const KernelInput& input);

/// The device as profiles record it.
[[nodiscard]] ProfileDevice profile_device(const Device& device);

/// Launches the kernel `warm_ups` + `options.runs` times, each from the arrays as given, and takes
/// the device's own clock of the latter; then for insns and pairs `options.runs` times each. Throws
/// what the runtime throws, and MeasureError if the device tells no time.
[[nodiscard]] KernelProfile measure_on_device(Device& device,
                                              const DeviceInput& input,
                                              const MeasureOptions& options,
                                              uint32_t warm_ups);

/// Memory of a device that kernels run on one after the other.
class DeviceArrays {
public:
  DeviceArrays(Device& device, const std::vector<std::span<const uint8_t>>& contents);
  /// Everything as it was given.
  void restore();
  [[nodiscard]] const Buffer& at(size_t index) const { return buffers_.at(index); }

private:
  std::vector<std::span<const uint8_t>> contents_;
  std::vector<Buffer> buffers_;
};

/// Runs of a kernel by clock reads at its begin and end (the longest block counts), so that a few
/// dozen cycles show; arrays are left as the runs leave them. The device must read clocks.
[[nodiscard]] KernelProfile measure_span(Device& device,
                                         const DeviceInput& input,
                                         const DeviceArrays& arrays,
                                         uint32_t runs,
                                         uint32_t warm_ups);
/// Likewise by the device's own clock, launch included.
[[nodiscard]] KernelProfile measure_launch(Device& device,
                                           const DeviceInput& input,
                                           const DeviceArrays& arrays,
                                           uint32_t runs,
                                           uint32_t warm_ups);

} // namespace pto::rt
