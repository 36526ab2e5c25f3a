// SPDX-License-Identifier: Apache-2.0
// Devices, buffers, launches: results, order, lifetimes and every error.
#include "tests/unit/runtime_fixture.h"

#include <bit>
#include <cmath>

namespace pto::rt {
namespace {

constexpr uint32_t kLong = 200'000; // rounds: some milliseconds

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a launch computes, and copies wait for it") {
  for (const char* name : {"sim", "sim:ascend950", "emulated:reference"}) {
    CAPTURE(name);
    Device device = Device::open(name);
    constexpr uint32_t kCount = 1000;
    std::vector<float> x(kCount);
    std::vector<float> y(kCount);
    for (uint32_t i = 0; i < kCount; ++i) {
      x[i] = static_cast<float>(i);
      y[i] = 1;
    }
    Buffer d_x = device.alloc(kCount * 4, "x");
    Buffer d_y = device.alloc(kCount * 4, "y");
    d_x.write(bytes_of(x));
    d_y.write(bytes_of(y));
    const LaunchSpec spec{.program = axpy_kernel(),
                          .grid = {4, 1, 1},
                          .block = {256, 1, 1},
                          .args = {LaunchArgument::pointer(d_x),
                                   LaunchArgument::pointer(d_y),
                                   LaunchArgument::scalar(std::bit_cast<uint32_t>(2.0f)),
                                   LaunchArgument::scalar(kCount)},
                          .options = {}};
    device.launch(spec);
    const Ticket ticket = device.launch(spec);
    d_y.read(bytes_of(y));
    CHECK(y[999] == 4 * 999 + 1);
    CHECK(ticket.is_done());
    CHECK(ticket.result().timed.has_value() == device.info().is_emulated);
    CHECK((ticket.result().cycles > 0) == device.info().is_emulated);
  }
}

TEST_CASE("buffers are zero, and an argument may point into one") {
  Device device = Device::open("sim");
  Buffer buffer = device.alloc(64);
  CHECK(first_word(buffer) == 0);
  device.launch({.program = spin_kernel(),
                 .grid = {},
                 .block = {},
                 .args = {LaunchArgument::pointer(buffer, 8), LaunchArgument::scalar(1)},
                 .options = {}});
  std::vector<uint32_t> all(16);
  buffer.read(bytes_of(all));
  CHECK(all[2] == 1);
  CHECK(all[0] == 0);
  CHECK(device.usage().bytes == 64);
}

TEST_CASE("names of devices") {
  CHECK(message_of<DeviceUnavailableError>([] { (void)Device::open("smi"); }) ==
        "there is no device 'smi'; did you mean 'sim'?; expected one of: sim[:PROFILE], "
        "emulated:PROFILE, npu[:NUMBER]");
  CHECK(contains(message_of<DeviceUnavailableError>([] { (void)Device::open("emulated"); }),
                 "emulated:reference"));
  CHECK(contains(message_of<DeviceUnavailableError>([] { (void)Device::open("sim:refernce"); }),
                 "refernce"));
  CHECK(contains(
      message_of<DeviceUnavailableError>([] { (void)Device::open("sim", {.noise = 0.1}); }),
      "no noise"));
  CHECK(contains(message_of<DeviceUnavailableError>(
                     [] { (void)Device::open("emulated:reference", {.noise = 7}); }),
                 "noise is 7"));
  CHECK(Device::open("emulated:reference-fused").info().name == "emulated:reference-fused");
  CHECK(contains(Device::open("emulated:reference").info().description, "emulated"));
  CHECK(probe_devices().size() >= 5);
}

TEST_CASE("misuse throws with the numbers") {
  Device device = Device::open("sim");
  Buffer buffer = device.alloc(64, "x", "a.py:1");
  std::vector<uint8_t> bytes(65);
  CHECK(message_of<CopySizeError>([&] { buffer.write(bytes); }) ==
        "cannot copy to buffer x: 65 bytes from offset 0 do not fit its 64 bytes; at most 64 fit "
        "there");
  CHECK(contains(message_of<CopySizeError>([&] { buffer.read(bytes, 60); }), "at most 4 fit"));
  CHECK_THROWS_AS(buffer.read(bytes, UINT64_MAX), CopySizeError);

  Device other = Device::open("sim");
  CHECK(contains(message_of<WrongDeviceError>([&] { other.launch(spin(buffer, 1)); }),
                 "argument 1 of kernel spin is buffer x"));
  LaunchSpec spec = spin(buffer, 1);
  spec.args.pop_back();
  CHECK(contains(message_of<sim::LaunchError>([&] { device.launch(spec); }), "takes 2 arguments"));
  spec = spin(buffer, 1);
  std::swap(spec.args[0], spec.args[1]);
  CHECK(contains(message_of<sim::LaunchError>([&] { device.launch(spec); }), "expected"));
  spec = spin(buffer, 1);
  spec.block = {100000, 1, 1};
  CHECK_THROWS_AS(device.launch(spec), sim::LaunchError);

  buffer.free("a.py:7");
  CHECK(buffer.is_freed());
  CHECK(
      message_of<FreedBufferError>([&] { buffer.free("a.py:8"); }) ==
      "cannot free buffer x (64 bytes): it was freed by a.py:7 already; free once, after the last "
      "use");
  CHECK_THROWS_AS(buffer.write({}), FreedBufferError);
  CHECK(contains(message_of<FreedBufferError>([&] { device.launch(spin(buffer, 1)); }),
                 "argument 1 of kernel spin is buffer x"));
  CHECK(contains(message_of<UnknownKernelError>(
                     [] { (void)find_kernel(axpy_kernel()->shared_object(), "axpi"); }),
                 "axpy"));
  CHECK_THROWS_AS((void)device.alloc(uint64_t{1} << 50), sim::HbmError);
}

TEST_CASE("a fault is told once, by the first wait that covers it") {
  Device device = Device::open("sim");
  Buffer buffer = device.alloc(64, "x");
  Buffer other = device.alloc(64, "other");
  const LaunchSpec wild{.program = wild_kernel(),
                        .grid = {},
                        .block = {},
                        .args = {LaunchArgument::pointer(buffer)},
                        .options = {.launched_by = "a.py:5"}};
  SUBCASE("sync") {
    const Ticket ticket = device.launch(wild);
    device.launch(wild);
    try {
      device.sync();
      FAIL("sync did not throw");
    } catch (const KernelError& error) {
      CHECK(error.fault()->kind == sim::FaultKind::kOutOfBounds);
      CHECK(error.program().kernel().name == "wild");
      CHECK(contains(error.what(), "launched at a.py:5"));
      CHECK(contains(error.what(), "past the end"));
    }
    device.sync(); // told
    ticket.wait();
    CHECK(ticket.result().run.status == sim::RunStatus::kFault);
  }
  SUBCASE("copy of the buffer, and of no other") {
    device.launch(wild);
    std::vector<uint8_t> bytes(64);
    other.read(bytes_of(bytes));
    CHECK_THROWS_AS(buffer.read(bytes), KernelError);
    buffer.read(bytes);
    device.sync();
  }
  SUBCASE("its ticket") {
    const Ticket ticket = device.launch(wild);
    CHECK_THROWS_AS(ticket.wait(), KernelError);
    device.sync();
  }
  SUBCASE("its stream, its event") {
    const Stream stream = device.make_stream();
    device.launch(wild, stream);
    device.default_stream().sync();
    CHECK_THROWS_AS(stream.sync(), KernelError);
    device.launch(wild, stream);
    CHECK_THROWS_AS(stream.record().wait(), KernelError);
    device.sync();
  }
}

TEST_CASE("an endless loop meets its limit") {
  Device device = Device::open("sim");
  Buffer buffer = device.alloc(64);
  const Ticket ticket = device.launch(spin(buffer, UINT32_MAX, {.max_insns = 1000}));
  CHECK(contains(message_of<KernelError>([&] { ticket.wait(); }), "stopped at its limit"));
}

TEST_CASE("work that shares a buffer keeps its order across streams") {
  Device device = Device::open("sim");
  Buffer buffer = device.alloc(4);
  std::vector<Stream> streams;
  for (int i = 0; i < 3; ++i) {
    streams.push_back(device.make_stream());
  }
  for (uint32_t i = 0; i < 30; ++i) {
    device.launch(spin(buffer, i % 3 == 0 ? 3000 : 1), streams[i % 3]);
  }
  CHECK(first_word(buffer) == 30);
}

TEST_CASE("events order streams that share nothing") {
  Device device = Device::open("sim");
  Buffer a = device.alloc(4);
  Buffer b = device.alloc(4);
  const Stream first = device.make_stream();
  Stream second = device.make_stream();
  CHECK(Event().is_done());
  second.wait(Event());
  const Ticket slow = device.launch(spin(a, kLong), first);
  second.wait(first.record());
  const Ticket fast = device.launch(spin(b, 1), second);
  fast.wait();
  CHECK(slow.is_done());
  Device elsewhere = Device::open("sim");
  CHECK_THROWS_AS(elsewhere.make_stream().wait(first.record()), WrongDeviceError);
}

TEST_CASE("freeing or dropping a buffer that a kernel uses is safe") {
  Device device = Device::open("sim");
  Buffer keep = device.alloc(4);
  {
    Buffer dropped = device.alloc(1 << 16);
    Buffer freed = device.alloc(1 << 16);
    for (int i = 0; i < 4; ++i) {
      device.launch(spin(dropped, kLong / 4));
      device.launch(spin(freed, kLong / 4));
    }
    freed.free();
  }
  CHECK(device.usage().buffers == 1);
  device.sync();
}

TEST_CASE("handles may go in any order, the device first") {
  auto device = std::make_unique<Device>(Device::open("sim"));
  auto buffer = std::make_unique<Buffer>(device->alloc(4));
  auto stream = std::make_unique<Stream>(device->make_stream());
  auto ticket = std::make_unique<Ticket>(device->launch(spin(*buffer, kLong), *stream));
  device.reset();
  stream.reset();
  CHECK_FALSE(buffer->is_freed());
  CHECK(first_word(*buffer) == 1);
  ticket->wait();
  buffer.reset();
  CHECK(ticket->result().is_completed());
}

TEST_CASE("the check mem reports an early free with both places") {
  Device device = Device::open("sim");
  LaunchOptions options;
  options.checks.add(sim::CheckKind::kMem);
  options.launched_by = "train.py:30";
  Buffer buffer = device.alloc(4, "d_x", "train.py:3");
  // Whether the kernel is done by then must not matter.
  for (const uint32_t rounds : {1u, kLong}) {
    Buffer early = device.alloc(4, "d_x", "train.py:3");
    const Ticket ticket = device.launch(spin(early, rounds, options));
    early.free("train.py:31");
    const LaunchResult result = ticket.result();
    CHECK(result.is_completed());
    REQUIRE(result.findings.size() == 1);
    const sim::Finding& finding = result.findings[0];
    CHECK(finding.kind == sim::CheckKind::kMem);
    CHECK(
        finding.message ==
        "buffer d_x (4 bytes, allocated at train.py:3) was freed at train.py:31 while kernel spin "
        "(launched at train.py:30) could still use it");
    CHECK(spin_kernel()->text(finding.here.pc) == "load.u32 r1, hbm[x]");
    CHECK(finding.here.what == "first load of 4 bytes");
  }
  SUBCASE("not after a sync") {
    const Ticket ticket = device.launch(spin(buffer, 1, options));
    device.sync();
    buffer.free();
    CHECK(ticket.result().findings.empty());
  }
  SUBCASE("not after a copy, on whatever stream") {
    const Ticket ticket = device.launch(spin(buffer, 1, options), device.make_stream());
    CHECK(first_word(buffer) == 1);
    buffer.free();
    CHECK(ticket.result().findings.empty());
  }
  SUBCASE("not without the check") {
    const Ticket ticket = device.launch(spin(buffer, kLong));
    buffer.free();
    CHECK(ticket.result().findings.empty());
  }
}

TEST_CASE("a pointer to what was freed before the launch faults and says who freed it") {
  Device device = Device::open("sim");
  Buffer buffer = device.alloc(4, "gone");
  const uint64_t address = buffer.address();
  buffer.free("a.py:9");
  const Ticket ticket =
      device.launch({.program = spin_kernel(),
                     .grid = {},
                     .block = {},
                     .args = {LaunchArgument::scalar(address), LaunchArgument::scalar(1)},
                     .options = {}});
  CHECK(contains(message_of<KernelError>([&] { ticket.wait(); }), "freed by a.py:9"));
}

TEST_CASE("interrupt ends what runs and drops what waits") {
  Device device = Device::open("sim");
  Buffer buffer = device.alloc(4);
  const Ticket running = device.launch(spin(buffer, UINT32_MAX));
  const Ticket waiting = device.launch(spin(buffer, UINT32_MAX));
  CHECK_FALSE(device.wait_idle(0.01));
  device.interrupt();
  CHECK_THROWS_AS(running.wait(), InterruptedError);
  CHECK_THROWS_AS(waiting.wait(), InterruptedError);
  device.sync();
  CHECK(first_word(buffer) == 0);
}

TEST_CASE("a wait may be given up, and what waits behind it keeps its order") {
  bool gives_up = false;
  Device device = Device::open("sim", {.on_wait = [&] {
                                 if (gives_up) {
                                   throw InterruptedError("enough");
                                 }
                               }});
  Buffer buffer = device.alloc(4);
  device.launch(spin(buffer, UINT32_MAX));
  gives_up = true;
  CHECK_THROWS_AS(first_word(buffer), InterruptedError);
  const Ticket behind = device.launch(spin(buffer, 1));
  CHECK_FALSE(device.wait_idle(0.02));
  CHECK_FALSE(behind.is_done());
  gives_up = false;
  device.interrupt();
  device.sync();
}

TEST_CASE("noise is what the seed says, and results do not depend on it") {
  const auto cycles = [](const DeviceOptions& options) {
    Device device = Device::open("emulated:reference", options);
    Buffer buffer = device.alloc(4);
    std::vector<double> all;
    for (int i = 0; i < 50; ++i) {
      all.push_back(device.launch(spin(buffer, 100)).result().cycles);
    }
    CHECK(first_word(buffer) == 50);
    return all;
  };
  const std::vector<double> exact = cycles({});
  const std::vector<double> noisy = cycles({.noise = 0.05, .noise_seed = 1});
  CHECK(noisy == cycles({.noise = 0.05, .noise_seed = 1}));
  CHECK(noisy != cycles({.noise = 0.05, .noise_seed = 2}));
  double sum = 0;
  double squares = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    const double deviation = noisy[i] / exact[i] - 1;
    sum += deviation;
    squares += deviation * deviation;
  }
  CHECK(std::abs(sum / 50) < 0.02);
  CHECK(std::sqrt(squares / 50) == doctest::Approx(0.05).epsilon(0.3));
}

TEST_CASE("prints come in the order of the launches, once") {
  Device device = Device::open("sim");
  Buffer buffer = device.alloc(4);
  const auto printer = sim::program_of(R"(
.kernel show(ptr x, u32 value)
    PRINT "value %u", value
    EXIT
.end
)");
  for (uint32_t i = 0; i < 3; ++i) {
    device.launch({.program = printer,
                   .grid = {},
                   .block = {},
                   .args = {LaunchArgument::pointer(buffer), LaunchArgument::scalar(i)},
                   .options = {}},
                  device.make_stream());
  }
  device.sync();
  const std::vector<std::string> lines = device.take_prints();
  REQUIRE(lines.size() == 3);
  CHECK(contains(lines[2], "value 2"));
  CHECK(device.take_prints().empty());
}

TEST_CASE("a view runs on the device's memory, and a turn keeps others away") {
  Device device = Device::open("sim");
  Buffer buffer = device.alloc(4);
  {
    const Buffer* const used[] = {&buffer};
    const Device::Turn turn = device.take_turn(used);
    const auto machine = device.view();
    const Ticket ticket = device.launch(spin(buffer, 1));
    sim::Launch launch(
        *machine,
        spin_kernel(),
        {.grid = {1, 1, 1}, .block = {1, 1, 1}, .args = {{.bits = buffer.address()}, {.bits = 5}}});
    CHECK(sim::run_functional(launch).status == sim::RunStatus::kCompleted);
    CHECK_FALSE(ticket.is_done());
  }
  CHECK(first_word(buffer) == 2);
}

} // namespace
} // namespace pto::rt
