// SPDX-License-Identifier: Apache-2.0
// libascendcl.so, loaded at run time: the documented functions that the NPU backend calls, and a
// call that checks what they return. No header of the toolkit is needed to build this.
#pragma once

#include "runtime/errors.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pto::rt {

// Values of the published headers (acl_base_rt.h, acl_rt.h, rt_error_codes.h).
inline constexpr int kAclSuccess = 0;
inline constexpr int kAclRepeatInitialize = 100002;
inline constexpr int kAclMallocHugeFirst = 0;
inline constexpr int kAclHostToDevice = 1;
inline constexpr int kAclDeviceToHost = 2;

/// A function of the library that failed: its name, its code and the vendor's message.
class AclError : public DeviceError {
public:
  AclError(std::string function, int code, const std::string& message)
      : DeviceError(message), function_(std::move(function)), code_(code) {}
  [[nodiscard]] const std::string& function() const { return function_; }
  [[nodiscard]] int code() const { return code_; }

private:
  std::string function_;
  int code_;
};

/// A member a function, named as the library names it.
struct AclFunctions {
  int (*aclInit)(const char* config_path) = nullptr;
  int (*aclFinalize)() = nullptr;
  const char* (*aclGetRecentErrMsg)() = nullptr;
  int (*aclrtGetDeviceCount)(uint32_t* count) = nullptr;
  int (*aclrtSetDevice)(int32_t device) = nullptr;
  int (*aclrtResetDevice)(int32_t device) = nullptr;
  const char* (*aclrtGetSocName)() = nullptr;
  int (*aclrtCreateStream)(void** stream) = nullptr;
  int (*aclrtDestroyStream)(void* stream) = nullptr;
  int (*aclrtSynchronizeStream)(void* stream) = nullptr;
  int (*aclrtCreateEvent)(void** event) = nullptr;
  int (*aclrtDestroyEvent)(void* event) = nullptr;
  int (*aclrtRecordEvent)(void* event, void* stream) = nullptr;
  int (*aclrtEventElapsedTime)(float* milliseconds, void* begin, void* end) = nullptr;
  int (*aclrtMalloc)(void** memory, size_t bytes, int policy) = nullptr;
  int (*aclrtFree)(void* memory) = nullptr;
  int (*aclrtMemset)(void* memory, size_t max_bytes, int32_t value, size_t bytes) = nullptr;
  int (*aclrtMemcpy)(void* to, size_t to_bytes, const void* from, size_t bytes, int kind) = nullptr;
};

class Acl {
public:
  /// Loads the library and resolves every function. Throws DeviceUnavailableError that names the
  /// library, the function that is missing, or what the loader said.
  explicit Acl(const std::string& library);
  ~Acl();
  Acl(const Acl&) = delete;
  Acl& operator=(const Acl&) = delete;

  [[nodiscard]] const AclFunctions& functions() const { return functions_; }

  /// Throws AclError unless `code` is success. `doing` says for what: "copying 4096 bytes to hbm".
  void check(int code, std::string_view function, std::string_view doing) const;
  [[nodiscard]] std::string last_message() const;

private:
  void* library_ = nullptr;
  AclFunctions functions_;
};

} // namespace pto::rt
