// SPDX-License-Identifier: Apache-2.0
// What the runtime throws: each type carries the numbers that its message quotes. Launches that do
// not fit the machine or the kernel's parameters throw sim::LaunchError, exhausted memory
// sim::HbmError.
#pragma once

#include "isa/error.h"
#include "simulator/fault.h"
#include "simulator/launch.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pto::rt {

/// Base of the runtime's own errors.
class DeviceError : public Error {
public:
  using Error::Error;
};

/// A device name that means nothing, or a device that is not there. `tried` lists every place that
/// was looked at and what was found, in order.
class DeviceUnavailableError : public DeviceError {
public:
  explicit DeviceUnavailableError(const std::string& message, std::vector<std::string> tried = {});
  [[nodiscard]] const std::vector<std::string>& tried() const { return tried_; }

private:
  std::vector<std::string> tried_;
};

/// The name is at fault: there is no such device, or no such profile.
class UnknownDeviceError : public DeviceUnavailableError {
public:
  using DeviceUnavailableError::DeviceUnavailableError;
};

/// A buffer that was freed: freed again, copied, or given to a launch.
class FreedBufferError : public DeviceError {
public:
  FreedBufferError(std::string_view action,
                   std::string_view buffer,
                   uint64_t size_bytes,
                   std::string freed_by);
  [[nodiscard]] uint64_t size_bytes() const { return size_bytes_; }
  [[nodiscard]] const std::string& freed_by() const { return freed_by_; }

private:
  uint64_t size_bytes_;
  std::string freed_by_;
};

/// A copy that does not lie within its buffer.
class CopySizeError : public DeviceError {
public:
  CopySizeError(std::string_view action,
                std::string_view buffer,
                uint64_t buffer_bytes,
                uint64_t offset,
                uint64_t copy_bytes);
  [[nodiscard]] uint64_t buffer_bytes() const { return buffer_bytes_; }
  [[nodiscard]] uint64_t offset() const { return offset_; }
  [[nodiscard]] uint64_t copy_bytes() const { return copy_bytes_; }

private:
  uint64_t buffer_bytes_;
  uint64_t offset_;
  uint64_t copy_bytes_;
};

/// An object without a kernel of that name.
class UnknownKernelError : public DeviceError {
public:
  UnknownKernelError(std::string kernel, const std::string& message)
      : DeviceError(message), kernel_(std::move(kernel)) {}
  [[nodiscard]] const std::string& kernel() const { return kernel_; }

private:
  std::string kernel_;
};

/// Clock reads of an instrumented launch that would fill more memory than they are worth.
class ProbeSizeError : public DeviceError {
public:
  using DeviceError::DeviceError;
};

/// Buffers, streams or events of one device given to another.
class WrongDeviceError : public DeviceError {
public:
  using DeviceError::DeviceError;
};

/// A wait was given up, or a launch ended because of Device::interrupt.
class InterruptedError : public DeviceError {
public:
  using DeviceError::DeviceError;
};

/// A launch ended before its time: fault, deadlock or limit. Thrown where somebody waits for it.
class KernelError : public DeviceError {
public:
  KernelError(std::shared_ptr<const sim::Program> program,
              sim::RunStatus status,
              std::optional<sim::Fault> fault,
              const std::string& message)
      : DeviceError(message), program_(std::move(program)), status_(status),
        fault_(std::move(fault)) {}
  [[nodiscard]] const sim::Program& program() const { return *program_; }
  [[nodiscard]] sim::RunStatus status() const { return status_; }
  /// Block, warp, lane, address, place; nothing where the device cannot tell.
  [[nodiscard]] const std::optional<sim::Fault>& fault() const { return fault_; }

private:
  std::shared_ptr<const sim::Program> program_;
  sim::RunStatus status_;
  std::optional<sim::Fault> fault_;
};

} // namespace pto::rt
