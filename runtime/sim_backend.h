// SPDX-License-Identifier: Apache-2.0
// Simulated devices: `sim` computes, `emulated:PROFILE` computes and keeps time as that machine
// would, with noise if asked for, and stands in for a board wherever one is measured. Private.
#pragma once

#include "runtime/device.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace pto::rt {

/// `detail` is what follows the colon in the device's name: a machine profile, or empty.
[[nodiscard]] std::unique_ptr<Backend> open_sim(std::string_view detail,
                                                const DeviceOptions& options);
[[nodiscard]] std::unique_ptr<Backend> open_emulated(std::string_view detail,
                                                     const DeviceOptions& options);
[[nodiscard]] std::vector<DeviceProbe> probe_sim();
[[nodiscard]] std::vector<DeviceProbe> probe_emulated();

} // namespace pto::rt
