// SPDX-License-Identifier: Apache-2.0
// The NPU backend against the tests' own toolkit: the whole way from a kernel to its results, and
// every call of the library failing in turn.
#include "assembler/assemble.h"
#include "fake_toolkit.h"
#include "runtime/device.h"
#include "runtime/errors.h"
#include "runtime/npu/acl.h"
#include "runtime/npu/toolkit.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <numeric>

namespace pto::rt {
namespace {

constexpr const char* kText = R"(.pto 1
.const table, u32 {10, 20, 30, 40}
.kernel scale(ptr.u32 a, ptr.u32 o, u32 n, f32 x)
    mov.u32    r0, %gid.x
    cmp.ge.u32 p0, r0, n
@p0 exit
    load.u32   r1, hbm[a + r0*4]
    and.b32    r2, r0, 3
    load.u32   r3, const[table + r2*4]
    mad.u32    r1, r1, 3, r3
    cvt.u32.f32 r4, x
    add.u32    r1, r1, r4
    store.u32  hbm[o + r0*4], r1
    exit
.end
.kernel stops(ptr o)
    trap 9
.end
.kernel core(ptr.u32 o)
    mov.u32 r0, %core
    mov.u32 r1, %gid.x
    store.u32 hbm[o + r1*4], r0
    exit
.end
.kernel copies(ptr a, ptr o)
    alloc_local t0, 256
    async_load t0, hbm[a], 256, e0
    wait e0
    async_store hbm[o], t0, 256, e1
    wait e1
    exit
.end
)";

std::shared_ptr<const isa::Object> program(const std::string& text = kText) {
  isa::Diagnostics diags({.no_warnings = true});
  auto object = as::assemble_text("npu.pto", text, {.run_lints = false}, diags);
  REQUIRE_MESSAGE(object.has_value(), isa::render(diags));
  return std::make_shared<const isa::Object>(std::move(*object));
}

std::vector<uint32_t> scaled(Device& device, uint32_t n) {
  std::vector<uint32_t> values(n);
  std::iota(values.begin(), values.end(), 5u);
  Buffer a = device.alloc(n * 4, "a");
  Buffer o = device.alloc(n * 4, "o");
  const auto bytes = [](std::vector<uint32_t>& words) {
    return std::span<uint8_t>(reinterpret_cast<uint8_t*>(words.data()), words.size() * 4);
  };
  a.write(bytes(values));
  LaunchSpec spec;
  spec.program = find_kernel(program(), "scale");
  spec.grid = {(n + 63) / 64};
  spec.block = {64};
  uint32_t x = 0;
  const float two = 2.0F;
  std::memcpy(&x, &two, 4);
  spec.args = {LaunchArgument::pointer(a),
               LaunchArgument::pointer(o),
               LaunchArgument::scalar(n),
               LaunchArgument::scalar(x)};
  const LaunchResult result = device.launch(spec).result();
  CHECK(result.is_completed());
  CHECK(result.microseconds > 0);
  std::vector<uint32_t> out(n);
  o.read(bytes(out));
  return out;
}

std::vector<uint32_t> expected(uint32_t n) {
  std::vector<uint32_t> out(n);
  for (uint32_t i = 0; i < n; ++i) {
    out[i] = (i + 5) * 3 + (i % 4 + 1) * 10 + 2;
  }
  return out;
}

TEST_CASE("without a toolkit every place that was tried is listed") {
  const Setting home("ASCEND_HOME_PATH", "/nowhere/at/all");
  const ToolkitSearch search = find_toolkit();
  CHECK(!search.toolkit.has_value());
  CHECK(search.tried.size() >= 5);
  try {
    static_cast<void>(Device::open("npu"));
    FAIL("there is a device");
  } catch (const DeviceUnavailableError& error) {
    CHECK(error.tried() == search.tried);
    const std::string text = error.what();
    CHECK(text.find("ASCEND_HOME_PATH=/nowhere/at/all: no such folder") != std::string::npos);
    CHECK(text.find("/usr/local/Ascend/cann") != std::string::npos);
  }
  for (const DeviceProbe& probe : probe_devices()) {
    if (probe.name == "npu") {
      CHECK(!probe.is_usable);
      CHECK(probe.tried == search.tried);
    }
  }
}

TEST_CASE("a folder that is no toolkit says what it lacks") {
  const std::string folder =
      (std::filesystem::temp_directory_path() / fmt::format("pto-empty-{}", getpid())).string();
  std::filesystem::create_directories(folder);
  {
    const Setting home("ASCEND_HOME_PATH", folder);
    CHECK(find_toolkit().tried.back().find("no such") != std::string::npos);
    CHECK(find_toolkit().tried[1].find("no compiler (bin/bisheng") != std::string::npos);
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("a kernel runs on the device") {
  const Workshop workshop;
  const FakeAcl fake;
  {
    Device device = Device::open("npu:0");
    CHECK(device.info().description.find("FakeAscend950") != std::string::npos);
    CHECK(scaled(device, 200) == expected(200));
    CHECK(scaled(device, 7) == expected(7));
    LaunchSpec spec;
    Buffer a = device.alloc(256, "a");
    Buffer o = device.alloc(256, "o");
    std::vector<uint8_t> bytes(256);
    std::iota(bytes.begin(), bytes.end(), uint8_t{0});
    a.write(bytes);
    spec.program = find_kernel(program(), "copies");
    spec.grid = {1};
    spec.block = {32};
    spec.args = {LaunchArgument::pointer(a), LaunchArgument::pointer(o)};
    CHECK(device.launch(spec).result().is_completed());
    std::vector<uint8_t> out(256);
    o.read(out);
    CHECK(out == bytes);
  }
  CHECK(held_soon(fake) == 0);
  CHECK(fake.calls("aclFinalize") == 1);
  CHECK(fake.calls("aclrtResetDevice") == 1);
}

TEST_CASE("kernels that differ in their constants alone are kept apart") {
  const Workshop workshop;
  const FakeAcl fake;
  Device device = Device::open("npu");
  for (const uint32_t value : {10u, 20u, 10u}) {
    Buffer o = device.alloc(4, "o");
    LaunchSpec spec;
    spec.program = find_kernel(program(fmt::format(".pto 1\n.const table, u32 {{{}}}\n"
                                                   ".kernel k(ptr.u32 o)\n"
                                                   "    load.u32 r0, const[table]\n"
                                                   "    store.u32 hbm[o], r0\n"
                                                   "    exit\n.end\n",
                                                   value)));
    spec.grid = {1};
    spec.block = {1};
    spec.args = {LaunchArgument::pointer(o)};
    CHECK(device.launch(spec).result().is_completed());
    uint32_t out = 0;
    o.read({reinterpret_cast<uint8_t*>(&out), sizeof(out)});
    CHECK(out == value);
  }
}

TEST_CASE("the scalar unit tells lanes their core") {
  const Workshop workshop;
  const FakeAcl fake;
  Device device = Device::open("npu");
  Buffer o = device.alloc(6 * 64 * 4, "o");
  LaunchSpec spec;
  spec.program = find_kernel(program(), "core");
  spec.grid = {6};
  spec.block = {64};
  spec.args = {LaunchArgument::pointer(o)};
  CHECK(device.launch(spec).result().is_completed());
  std::vector<uint32_t> out(6 * 64);
  o.read({reinterpret_cast<uint8_t*>(out.data()), out.size() * 4});
  for (uint32_t i = 0; i < out.size(); ++i) {
    CHECK(out[i] == i / 64 % 4); // the emulation gives blocks to four cores in turn
  }
}

TEST_CASE("a kernel that traps is a fault with the code of the runtime") {
  const Workshop workshop;
  const FakeAcl fake;
  {
    Device device = Device::open("npu");
    Buffer o = device.alloc(64, "o");
    LaunchSpec spec;
    spec.program = find_kernel(program(), "stops");
    spec.grid = {1};
    spec.block = {32};
    spec.args = {LaunchArgument::pointer(o)};
    const LaunchResult result = device.launch(spec).result();
    REQUIRE(result.run.status == sim::RunStatus::kFault);
    CHECK(result.run.fault->message.find("507015") != std::string::npos);
    CHECK(scaled(device, 64) == expected(64)); // the device goes on
  }
  CHECK(held_soon(fake) == 0);
}

TEST_CASE("what the device cannot do is refused before it is tried") {
  const Workshop workshop;
  const FakeAcl fake;
  Device device = Device::open("npu");
  Buffer o = device.alloc(64, "o");
  LaunchSpec spec;
  spec.grid = {1};
  spec.block = {32};
  spec.args = {LaunchArgument::pointer(o)};
  spec.program = find_kernel(program(), "stops");
  spec.options.checks.add(sim::CheckKind::kMem);
  CHECK_THROWS_WITH_AS(static_cast<void>(device.launch(spec)),
                       doctest::Contains("device npu cannot do checks"),
                       DeviceError);
  spec.options = {};
  spec.block = {4096};
  CHECK_THROWS_AS(static_cast<void>(device.launch(spec)), sim::LaunchError);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(Device::open("npu:x")), doctest::Contains("npu:0"), DeviceUnavailableError);
  CHECK_THROWS_WITH_AS(static_cast<void>(Device::open("npu:3")),
                       doctest::Contains("sees 1 devices"),
                       DeviceUnavailableError);
}

TEST_CASE("the compiler's words reach the user") {
  const Workshop workshop;
  const FakeAcl fake;
  const Setting fail("PTO_FAKE_BISHENG_FAIL", "1");
  Device device = Device::open("npu");
  try {
    static_cast<void>(scaled(device, 64));
    FAIL("it compiled");
  } catch (const DeviceError& error) {
    const std::string text = error.what();
    CHECK(text.find("error: told to fail") != std::string::npos);
    CHECK(text.find("--enable-simt") != std::string::npos);
    CHECK(text.find("--npu-arch=dav-3510") != std::string::npos);
  }
}

TEST_CASE(
    "every call of the library may fail: the vendor's message is told, nothing is left behind") {
  const Workshop workshop;
  const FakeAcl fake;
  const std::vector<const char*> functions = {"aclInit",
                                              "aclrtGetDeviceCount",
                                              "aclrtSetDevice",
                                              "aclrtMalloc",
                                              "aclrtMemset",
                                              "aclrtMemcpy",
                                              "aclrtCreateStream",
                                              "aclrtCreateEvent",
                                              "aclrtRecordEvent",
                                              "aclrtSynchronizeStream",
                                              "aclrtEventElapsedTime"};
  const auto run = [] {
    Device device = Device::open("npu");
    const auto result = scaled(device, 64); // not in CHECK, which would keep what it throws
    CHECK(result == expected(64));
  };
  fail_each_call(fake, functions, run, [](const std::string& function, const std::string& text) {
    // A release that fails, after the results are there, has nobody to tell.
    const bool is_told = text.find("told to fail") != std::string::npos;
    CHECK((is_told || text.empty()));
    if (function != "aclrtSetDevice") {
      CHECK(is_told);
      CHECK(text.find(function) != std::string::npos);
    }
  });
  for (const char* function : {"aclFinalize",
                               "aclrtResetDevice",
                               "aclrtFree",
                               "aclrtDestroyStream",
                               "aclrtDestroyEvent"}) {
    fake.reset();
    const Setting fail("PTO_FAKE_ACL_FAIL", fmt::format("{}:1", function));
    Device device = Device::open("npu");
    CHECK(scaled(device, 64) == expected(64));
  }
}

TEST_CASE("a library without a function is refused by name") {
  CHECK_THROWS_WITH_AS(
      Acl("libm.so.6"), doctest::Contains("lacks the function aclInit"), DeviceUnavailableError);
  CHECK_THROWS_WITH_AS(
      Acl("/nowhere/libascendcl.so"), doctest::Contains("cannot load"), DeviceUnavailableError);
}

} // namespace
} // namespace pto::rt
