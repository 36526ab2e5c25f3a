// SPDX-License-Identifier: Apache-2.0
// From a device's name to its backend. Private.
#pragma once

#include "runtime/backend.h"

#include <memory>
#include <string_view>

namespace pto::rt {

/// Throws DeviceUnavailableError.
[[nodiscard]] std::unique_ptr<Backend> open_backend(std::string_view name,
                                                    const DeviceOptions& options);

} // namespace pto::rt
