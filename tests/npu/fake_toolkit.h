// SPDX-License-Identifier: Apache-2.0
// The tests' own CANN toolkit: chosen for the time of a test, and what its library tells.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <string>
#include <thread>
#include <unistd.h>

namespace pto::rt {

/// Environment variables for the time of a test.
class Setting {
public:
  Setting(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~Setting() { unsetenv(name_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

private:
  const char* name_;
};

/// The functions that only the tests' library has.
struct FakeAcl {
  FakeAcl() {
    library = dlopen(PTO_FAKE_TOOLKIT "/lib64/libascendcl.so", RTLD_NOW);
    REQUIRE(library != nullptr);
    reset = reinterpret_cast<void (*)()>(dlsym(library, "fake_acl_reset"));
    held = reinterpret_cast<int (*)()>(dlsym(library, "fake_acl_held"));
    calls = reinterpret_cast<int (*)(const char*)>(dlsym(library, "fake_acl_calls"));
    reset();
  }
  void* library = nullptr;
  void (*reset)() = nullptr;
  int (*held)() = nullptr;
  int (*calls)(const char*) = nullptr;
};

/// The runtime lets go of a failed launch's things on its own thread.
inline int held_soon(const FakeAcl& fake) {
  for (int i = 0; i < 200 && fake.held() != 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return fake.held();
}

struct Workshop {
  Setting home{"ASCEND_HOME_PATH", PTO_FAKE_TOOLKIT};
  Setting cache{
      "PTO_NPU_CACHE",
      (std::filesystem::temp_directory_path() / fmt::format("pto-npu-test-{}", getpid())).string()};
  ~Workshop() { std::filesystem::remove_all(std::getenv("PTO_NPU_CACHE")); }
};

} // namespace pto::rt
