// SPDX-License-Identifier: Apache-2.0
// The tests' own CANN toolkit: chosen for the time of a test, and what its library tells.
#pragma once

#include "isa/error.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

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

/// `run` once as it is, to see how often it calls each of `functions`, and once for each of these
/// calls, which fails: `check` gets its function and the message of the error, empty if none.
template <class Run, class Check>
void fail_each_call(const FakeAcl& fake,
                    const std::vector<const char*>& functions,
                    const Run& run,
                    const Check& check) {
  run();
  std::vector<int> counts;
  counts.reserve(functions.size());
  for (const char* function : functions) {
    counts.push_back(fake.calls(function));
    CHECK(counts.back() > 0);
  }
  for (size_t f = 0; f < functions.size(); ++f) {
    const std::string function = functions[f];
    for (int call = 1; call <= counts[f]; ++call) {
      CAPTURE(function);
      CAPTURE(call);
      fake.reset();
      const Setting fail("PTO_FAKE_ACL_FAIL", fmt::format("{}:{}", function, call));
      std::string text;
      try {
        run();
      } catch (const Error& error) {
        text = error.what();
      }
      check(function, text);
      CHECK(held_soon(fake) == 0);
    }
  }
}

struct Workshop {
  Setting home{"ASCEND_HOME_PATH", PTO_FAKE_TOOLKIT};
  Setting cache{
      "PTO_NPU_CACHE",
      (std::filesystem::temp_directory_path() / fmt::format("pto-npu-test-{}", getpid())).string()};
  ~Workshop() { std::filesystem::remove_all(std::getenv("PTO_NPU_CACHE")); }
};

} // namespace pto::rt
