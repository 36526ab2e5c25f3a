// SPDX-License-Identifier: Apache-2.0
// The NPU as a device: not available in this build.
#include "runtime/npu_backend.h"

namespace pto::rt {

std::unique_ptr<Backend> open_npu(std::string_view /*detail*/, const DeviceOptions& /*options*/) {
  throw DeviceUnavailableError("device npu: this build has no NPU backend; use \"sim\", or "
                               "\"emulated:PROFILE\" to measure a stand-in");
}

std::vector<DeviceProbe> probe_npu() {
  return {
      {.name = "npu", .is_usable = false, .summary = "this build has no NPU backend", .tried = {}}};
}

} // namespace pto::rt
