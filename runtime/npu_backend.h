// SPDX-License-Identifier: Apache-2.0
// The NPU as a device. Private.
#pragma once

#include "runtime/device.h"

#include <memory>
#include <string_view>
#include <vector>

namespace pto::rt {

/// `detail` is the device number after "npu:", or empty. Throws DeviceUnavailableError, which lists
/// every place that was looked at.
[[nodiscard]] std::unique_ptr<Backend> open_npu(std::string_view detail,
                                                const DeviceOptions& options);
[[nodiscard]] std::vector<DeviceProbe> probe_npu();

} // namespace pto::rt
