// SPDX-License-Identifier: Apache-2.0
#include "runtime/npu/acl.h"

#include <fmt/format.h>

#include <dlfcn.h>

namespace pto::rt {

namespace {

template <class Function>
void resolve(void* library, const std::string& path, const char* name, Function*& to) {
  void* found = dlsym(library, name);
  if (found == nullptr) {
    throw DeviceUnavailableError(fmt::format(
        "{} lacks the function {}; is it of a CANN toolkit of version 9.1 or later?", path, name));
  }
  to = reinterpret_cast<Function*>(found);
}

} // namespace

Acl::Acl(const std::string& library) {
  library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL); // compiled kernels use it too
  if (library_ == nullptr) {
    const char* reason = dlerror();
    throw DeviceUnavailableError(
        fmt::format("cannot load {}: {}", library, reason != nullptr ? reason : "no reason given"));
  }
  try {
    const auto get = [&](const char* name, auto& to) { resolve(library_, library, name, to); };
    get("aclInit", functions_.aclInit);
    get("aclFinalize", functions_.aclFinalize);
    get("aclGetRecentErrMsg", functions_.aclGetRecentErrMsg);
    get("aclrtGetDeviceCount", functions_.aclrtGetDeviceCount);
    get("aclrtSetDevice", functions_.aclrtSetDevice);
    get("aclrtResetDevice", functions_.aclrtResetDevice);
    get("aclrtGetSocName", functions_.aclrtGetSocName);
    get("aclrtCreateStream", functions_.aclrtCreateStream);
    get("aclrtDestroyStream", functions_.aclrtDestroyStream);
    get("aclrtSynchronizeStream", functions_.aclrtSynchronizeStream);
    get("aclrtCreateEvent", functions_.aclrtCreateEvent);
    get("aclrtDestroyEvent", functions_.aclrtDestroyEvent);
    get("aclrtRecordEvent", functions_.aclrtRecordEvent);
    get("aclrtEventElapsedTime", functions_.aclrtEventElapsedTime);
    get("aclrtMalloc", functions_.aclrtMalloc);
    get("aclrtFree", functions_.aclrtFree);
    get("aclrtMemset", functions_.aclrtMemset);
    get("aclrtMemcpy", functions_.aclrtMemcpy);
  } catch (...) {
    dlclose(library_);
    throw;
  }
}

Acl::~Acl() {
  dlclose(library_);
}

std::string Acl::last_message() const {
  const char* message = functions_.aclGetRecentErrMsg();
  return message != nullptr && *message != '\0' ? message : "(the library gave no message)";
}

void Acl::check(int code, std::string_view function, std::string_view doing) const {
  if (code == kAclSuccess) {
    return;
  }
  throw AclError(std::string(function),
                 code,
                 fmt::format("{}: {} returned {}: {}", doing, function, code, last_message()));
}

} // namespace pto::rt
