// SPDX-License-Identifier: Apache-2.0
// From a device's name to its backend and machine. Private.
#pragma once

#include "runtime/backend.h"

#include <memory>
#include <string_view>

namespace pto::rt {

/// Throws DeviceUnavailableError.
[[nodiscard]] std::unique_ptr<Backend> open_backend(std::string_view name,
                                                    const DeviceOptions& options);

/// The machine of a device: options.machine where it is set, else the one of that name or path.
/// Throws DeviceUnavailableError, which names the device.
[[nodiscard]] isa::MachineProfile
load_profile(std::string_view device, std::string_view name, const DeviceOptions& options);

} // namespace pto::rt
