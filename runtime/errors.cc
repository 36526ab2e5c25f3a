// SPDX-License-Identifier: Apache-2.0
// Messages of the runtime's errors.
#include "runtime/errors.h"

#include <fmt/format.h>

namespace pto::rt {

namespace {

std::string with_tried(const std::string& message, const std::vector<std::string>& tried) {
  std::string text = message;
  for (const std::string& line : tried) {
    text += "\n  tried: " + line;
  }
  return text;
}

} // namespace

DeviceUnavailableError::DeviceUnavailableError(const std::string& message,
                                               std::vector<std::string> tried)
    : DeviceError(with_tried(message, tried)), tried_(std::move(tried)) {}

FreedBufferError::FreedBufferError(std::string_view action,
                                   std::string_view buffer,
                                   uint64_t size_bytes,
                                   std::string freed_by)
    : DeviceError(
          fmt::format("{} {} ({} bytes): it was freed{}{} already; free once, after the last "
                      "use",
                      action,
                      buffer,
                      size_bytes,
                      freed_by.empty() ? "" : " by ",
                      freed_by)),
      size_bytes_(size_bytes), freed_by_(std::move(freed_by)) {}

CopySizeError::CopySizeError(std::string_view action,
                             std::string_view buffer,
                             uint64_t buffer_bytes,
                             uint64_t offset,
                             uint64_t copy_bytes)
    : DeviceError(fmt::format("{} {}: {} bytes from offset {} do not fit its {} bytes; at most {} "
                              "fit there",
                              action,
                              buffer,
                              copy_bytes,
                              offset,
                              buffer_bytes,
                              offset > buffer_bytes ? 0 : buffer_bytes - offset)),
      buffer_bytes_(buffer_bytes), offset_(offset), copy_bytes_(copy_bytes) {}

} // namespace pto::rt
