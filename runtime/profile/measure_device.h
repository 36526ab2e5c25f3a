// SPDX-License-Identifier: Apache-2.0
// Whole-kernel times of a device of the runtime that is not emulated: launches, warm ones first.
#pragma once

#include "runtime/device.h"
#include "runtime/profile/kernel_input.h"

namespace pto::rt {

/// Launches the kernel `warm_ups` + `options.runs` times, each from the arguments as given, and
/// takes the device's own clock of the latter. Throws what the runtime throws, and MeasureError if
/// the device tells no time.
[[nodiscard]] KernelProfile measure_on_device(Device& device,
                                              const KernelInput& input,
                                              const MeasureOptions& options,
                                              uint32_t warm_ups);

} // namespace pto::rt
