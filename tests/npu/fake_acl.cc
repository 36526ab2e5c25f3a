// SPDX-License-Identifier: Apache-2.0
// A libascendcl.so for tests: device memory is host memory, kernels are the emulated ones, and
// every call is counted and may be told to fail.
//
//   PTO_FAKE_ACL_FAIL=aclrtMalloc:2   the second call of aclrtMalloc since the last reset fails
//   PTO_FAKE_ACL_LOG=FILE             a line a call, and what is still held when it is finalised
//
// Between two events lie 125 us and what the emulated kernels took by their clock, which is that of
// the Ascend 950.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace {

constexpr int kFailure = 507899;
constexpr double kClockMhz = 1650;

/// Of a stream: how long what was put on it takes, in cycles. Of an event: where it was recorded.
struct Timed {
  double cycles = 0;
};

struct State {
  std::mutex lock;
  std::map<std::string, int> calls;
  std::set<void*> memory, streams, events;
  std::string message;
};
State& state() {
  static State one;
  return one;
}

void log(const std::string& line) {
  if (const char* path = std::getenv("PTO_FAKE_ACL_LOG"); path != nullptr) {
    if (FILE* file = std::fopen(path, "a"); file != nullptr) {
      std::fprintf(file, "%s\n", line.c_str());
      std::fclose(file);
    }
  }
}

/// Counts the call; true if it is the one to fail.
bool fails(const char* function) {
  const std::scoped_lock hold(state().lock);
  const int count = ++state().calls[function];
  log(function);
  const char* wanted = std::getenv("PTO_FAKE_ACL_FAIL");
  if (wanted != nullptr && wanted == std::string(function) + ":" + std::to_string(count)) {
    state().message = std::string("EZ9999: told to fail in ") + function;
    return true;
  }
  return false;
}

} // namespace

extern "C" {

int aclInit(const char*) {
  return fails("aclInit") ? kFailure : 0;
}
int aclFinalize() {
  const bool failed = fails("aclFinalize");
  log("held: memory " + std::to_string(state().memory.size()) + ", streams " +
      std::to_string(state().streams.size()) + ", events " + std::to_string(state().events.size()));
  return failed ? kFailure : 0;
}
const char* aclGetRecentErrMsg() {
  static thread_local std::string text;
  const std::scoped_lock hold(state().lock);
  text = state().message;
  return text.empty() ? nullptr : text.c_str();
}
int aclrtGetDeviceCount(uint32_t* count) {
  if (fails("aclrtGetDeviceCount")) {
    return kFailure;
  }
  const char* devices = std::getenv("PTO_FAKE_ACL_DEVICES");
  *count = devices != nullptr ? static_cast<uint32_t>(std::atoi(devices)) : 1;
  return 0;
}
int aclrtSetDevice(int32_t) {
  return fails("aclrtSetDevice") ? kFailure : 0;
}
int aclrtResetDevice(int32_t) {
  return fails("aclrtResetDevice") ? kFailure : 0;
}
const char* aclrtGetSocName() {
  return "FakeAscend950";
}
int aclrtCreateStream(void** stream) {
  if (fails("aclrtCreateStream")) {
    return kFailure;
  }
  *stream = new Timed;
  const std::scoped_lock hold(state().lock);
  state().streams.insert(*stream);
  return 0;
}
int aclrtDestroyStream(void* stream) {
  const bool failed = fails("aclrtDestroyStream");
  const std::scoped_lock hold(state().lock);
  if (state().streams.erase(stream) == 0) {
    std::abort(); // destroyed twice, or never made
  }
  delete static_cast<Timed*>(stream);
  return failed ? kFailure : 0;
}
int aclrtSynchronizeStream(void*) {
  return fails("aclrtSynchronizeStream") ? kFailure : 0;
}
int aclrtCreateEvent(void** event) {
  if (fails("aclrtCreateEvent")) {
    return kFailure;
  }
  *event = new Timed;
  const std::scoped_lock hold(state().lock);
  state().events.insert(*event);
  return 0;
}
int aclrtDestroyEvent(void* event) {
  const bool failed = fails("aclrtDestroyEvent");
  const std::scoped_lock hold(state().lock);
  if (state().events.erase(event) == 0) {
    std::abort();
  }
  delete static_cast<Timed*>(event);
  return failed ? kFailure : 0;
}
int aclrtRecordEvent(void* event, void* stream) {
  if (fails("aclrtRecordEvent")) {
    return kFailure;
  }
  static_cast<Timed*>(event)->cycles = static_cast<Timed*>(stream)->cycles;
  return 0;
}
int aclrtEventElapsedTime(float* milliseconds, void* begin, void* end) {
  if (fails("aclrtEventElapsedTime")) {
    return kFailure;
  }
  const double cycles = static_cast<Timed*>(end)->cycles - static_cast<Timed*>(begin)->cycles;
  *milliseconds = static_cast<float>(0.125 + cycles / kClockMhz / 1000);
  return 0;
}
/// Called by the emulation.
void pto_host_launched(void* stream, uint64_t cycles) {
  if (stream != nullptr) {
    static_cast<Timed*>(stream)->cycles += static_cast<double>(cycles);
  }
}
int aclrtMalloc(void** memory, size_t bytes, int) {
  if (fails("aclrtMalloc")) {
    return kFailure;
  }
  *memory = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  std::memset(*memory, 0xcd, bytes);
  const std::scoped_lock hold(state().lock);
  state().memory.insert(*memory);
  return 0;
}
int aclrtFree(void* memory) {
  const bool failed = fails("aclrtFree");
  const std::scoped_lock hold(state().lock);
  if (state().memory.erase(memory) == 0) {
    std::abort();
  }
  std::free(memory);
  return failed ? kFailure : 0;
}
int aclrtMemset(void* memory, size_t max_bytes, int32_t value, size_t bytes) {
  if (fails("aclrtMemset") || bytes > max_bytes) {
    return kFailure;
  }
  std::memset(memory, value, bytes);
  return 0;
}
int aclrtMemcpy(void* to, size_t to_bytes, const void* from, size_t bytes, int kind) {
  if (fails("aclrtMemcpy") || bytes > to_bytes || (kind != 1 && kind != 2)) {
    return kFailure;
  }
  std::memcpy(to, from, bytes);
  return 0;
}

// For the tests.
void fake_acl_reset() {
  const std::scoped_lock hold(state().lock);
  state().calls.clear();
  state().message.clear();
}
int fake_acl_held() {
  const std::scoped_lock hold(state().lock);
  return static_cast<int>(state().memory.size() + state().streams.size() + state().events.size());
}
int fake_acl_calls(const char* function) {
  const std::scoped_lock hold(state().lock);
  return state().calls[function];
}

} // extern "C"
