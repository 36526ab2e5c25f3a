// SPDX-License-Identifier: Apache-2.0
// Measuring on the NPU device with the tests' own toolkit. Its emulation runs a clock that counts
// what the test says of each function of the interface; a measurement has to find that again.
#include "assembler/assemble.h"
#include "fake_toolkit.h"
#include "runtime/profile/calibrate.h"
#include "runtime/profile/measure_device.h"
#include "runtime/profile/microbench.h"
#include "runtime/profile/slopes.h"

#include <cmath>
#include <cstring>

namespace pto::rt {
namespace {

constexpr const char* kText = R"(.pto 1
.func scale
    fma.f32      r1, r1, r1, r1
    ret
.end
.kernel work(ptr.f32 a, ptr.f32 o, u32 n)
    mov.u32      r0, %gid.x
    load.f32     r1, hbm[a + r0*4]
    mov.u32      r4, 0
again:
    fma.f32      r2, r1, r1, r1
    sqrt.f32     r3, r2
    call         scale
    add.u32      r4, r4, 1
    cmp.lt.u32   p1, r4, n
@p1 bra again
    cmp.lt.u32   p0, r0, 8
@p0 exp.f32      r3, r3
    store.f32    hbm[o + r0*4], r3
    exit
.end
.kernel stops(ptr a, ptr o, u32 n)
    trap 3
.end
.kernel blocks(ptr.f32 a, ptr.f32 o, u32 n)
    alloc_local  t0, 256
    async_load   t0, hbm[a], 256, e0
    wait         e0
    mov.u32      r0, %tid.x
    load.f32     r1, l1[t0 + r0*4]
    sqrt.f32     r1, r1
    store.f32    hbm[o + r0*4], r1
    exit
.end
)";
constexpr const char* kCycles = "fmaf=7,sqrtf=11,expf=30,load=20,store=5,clock=4";

std::shared_ptr<const sim::Program> kernel(const char* name) {
  isa::Diagnostics diags({.no_warnings = true});
  auto object = as::assemble_text("npu.pto", kText, {.run_lints = false}, diags);
  REQUIRE_MESSAGE(object.has_value(), isa::render(diags));
  return find_kernel(std::make_shared<const isa::Object>(std::move(*object)), name);
}

/// 128 lanes in two blocks, of a loop with three trips.
struct Work {
  explicit Work(const char* name = "work") {
    input.program = kernel(name);
    input.grid = {2};
    input.block = {64};
    input.arrays = {ones, zeros};
    input.args = {{0, isa::Type::kNone, 0}, {0, isa::Type::kNone, 1}, {3, isa::Type::kU32, {}}};
  }
  std::vector<uint8_t> ones = std::vector<uint8_t>(512, 0x3f);
  std::vector<uint8_t> zeros = std::vector<uint8_t>(512, 0);
  DeviceInput input;
};

KernelProfile measure(Device& device, const char* name = "work", uint32_t runs = 3) {
  const Work work(name);
  MeasureOptions options;
  options.runs = runs;
  return measure_on_device(device, work.input, options, 1);
}

const InsnMeasurement& insn(const KernelProfile& kernel, std::string_view key) {
  for (const InsnMeasurement& found : kernel.insns) {
    if (found.key == key) {
      return found;
    }
  }
  FAIL("no figure of " << std::string(key));
  return kernel.insns.front();
}

const PairMeasurement*
pair(const KernelProfile& kernel, std::string_view first, std::string_view second) {
  for (const PairMeasurement& found : kernel.pairs) {
    if (found.first == first && found.second == second) {
      return &found;
    }
  }
  return nullptr;
}

TEST_CASE("clock reads find the cycles of each insn and pair again") {
  const Workshop workshop;
  const FakeAcl fake;
  const Setting cycles("PTO_HOST_CYCLES", kCycles);
  {
    Device device = Device::open("npu:0");
    REQUIRE(device.reads_clocks());
    const KernelProfile kernel = measure(device);
    CHECK(kernel.runs.size() == 3);
    // 4 warps; a loop of three trips; the function's insns count too.
    CHECK(insn(kernel, "FMA.f32").cycles == 7);
    CHECK(insn(kernel, "FMA.f32").count == 4 * 3 * 2);
    CHECK(insn(kernel, "SQRT.f32").cycles == 11);
    CHECK(insn(kernel, "SQRT.f32").count == 4 * 3);
    CHECK(insn(kernel, "LOAD.hbm.f32").cycles == 20);
    CHECK(insn(kernel, "LOAD.hbm.f32").count == 4);
    CHECK(insn(kernel, "STORE.hbm.f32").cycles == 5);
    // Only warp 0 of block 0 has lanes that run it; the others pass over.
    CHECK(insn(kernel, "EXP.f32").cycles == 7.5);
    CHECK(insn(kernel, "EXP.f32").definition.find("clock read") == 0);
    CHECK(insn(kernel, "ADD.u32").cycles == 0); // no function of the interface
    REQUIRE(kernel.counters.size() == 1);
    CHECK(kernel.counters[0].name == "clock_reads.overhead_cycles");
    CHECK(kernel.counters[0].value == 4);
    const PairMeasurement* fused = pair(kernel, "FMA.f32", "SQRT.f32");
    REQUIRE(fused != nullptr);
    CHECK(fused->cycles == 18);
    CHECK(fused->count == 4 * 3);
    CHECK(!fused->is_joined);
    // Not connected; not neighbours in one block.
    CHECK(pair(kernel, "LOAD.hbm.f32", "MOV.u32") == nullptr);
    CHECK(pair(kernel, "LOAD.hbm.f32", "FMA.f32") == nullptr);
    REQUIRE(!kernel.warnings.empty());
    CHECK(kernel.warnings.back().find("ADD.u32") != std::string::npos);
    // Block-scoped insns, in a hybrid kernel.
    const KernelProfile hybrid = measure(device, "blocks");
    CHECK(insn(hybrid, "LOAD.l1.f32").cycles == 20);
    CHECK(insn(hybrid, "SQRT.f32").cycles == 11);
    CHECK(insn(hybrid, "WAIT").count == 4);
    // One warp of each block does it, the others pass over.
    CHECK(insn(hybrid, "ASYNC_LOAD.hbm").count == 2);
  }
  CHECK(held_soon(fake) == 0);
}

TEST_CASE("a slow run is rejected and named, and jitter shows as spread") {
  const Workshop workshop;
  const FakeAcl fake;
  const Setting cycles("PTO_HOST_CYCLES", "fmaf=700,sqrtf=1100,clock=4");
  const Setting slow("PTO_HOST_SLOW", "7");
  const Setting jitter("PTO_HOST_JITTER", "0.01");
  Device device = Device::open("npu");
  const KernelProfile kernel = measure(device, "work", 16);
  REQUIRE(kernel.runs.size() == 16);
  CHECK(insn(kernel, "FMA.f32").cycles == doctest::Approx(700).epsilon(0.01));
  CHECK(insn(kernel, "FMA.f32").spread > 0);
  CHECK(insn(kernel, "FMA.f32").spread < 14);
}

TEST_CASE("kernels too large to look at are refused with the numbers") {
  const Workshop workshop;
  const FakeAcl fake;
  Device device = Device::open("npu");
  Work work;
  work.input.grid = {65535};
  LaunchSpec spec;
  const DeviceArrays arrays(device, work.input.arrays);
  spec.program = work.input.program;
  spec.grid = work.input.grid;
  spec.block = {1024};
  spec.args = {LaunchArgument::pointer(arrays.at(0)),
               LaunchArgument::pointer(arrays.at(1)),
               LaunchArgument::scalar(3, isa::Type::kU32)};
  spec.options.instrument = Instrument::kInsns;
  CHECK_THROWS_WITH_AS(
      static_cast<void>(device.launch(spec)),
      doctest::Contains("by 2097120 warps take 402647040 bytes, more than 268435456"),
      ProbeSizeError);
}

TEST_CASE("only devices that read clocks are asked to") {
  Device device = Device::open("emulated:reference");
  CHECK(!device.reads_clocks());
  const KernelProfile kernel = measure(device);
  CHECK(kernel.insns.empty());
  CHECK(kernel.warnings.back() == "whole kernel only: the device's hook gave no insn figures");
  LaunchSpec spec;
  spec.program = pto::rt::kernel("work");
  const Buffer a = device.alloc(512, "a");
  spec.grid = {1};
  spec.block = {32};
  spec.args = {LaunchArgument::pointer(a),
               LaunchArgument::pointer(a),
               LaunchArgument::scalar(1, isa::Type::kU32)};
  spec.options.instrument = Instrument::kInsns;
  CHECK_THROWS_WITH_AS(static_cast<void>(device.launch(spec)),
                       doctest::Contains("emulated:reference is simulated"),
                       DeviceError);
}

TEST_CASE("every call may fail while a kernel is looked at") {
  const Workshop workshop;
  const FakeAcl fake;
  const std::vector<const char*> functions = {"aclrtMalloc",
                                              "aclrtMemset",
                                              "aclrtMemcpy",
                                              "aclrtCreateStream",
                                              "aclrtCreateEvent",
                                              "aclrtRecordEvent",
                                              "aclrtSynchronizeStream",
                                              "aclrtEventElapsedTime"};
  const auto run = [] {
    Device device = Device::open("npu");
    static_cast<void>(measure(device, "blocks", 1));
  };
  fail_each_call(fake, functions, run, [](const std::string& function, const std::string& text) {
    CHECK(text.find("told to fail") != std::string::npos);
    CHECK(text.find(function) != std::string::npos);
  });
  // What was compiled stays; a kernel whose instrumented form does not compile says so.
  fake.reset();
  std::filesystem::remove_all(std::getenv("PTO_NPU_CACHE"));
  const Setting fail("PTO_FAKE_BISHENG_FAIL", "1");
  CHECK_THROWS_WITH_AS(run(), doctest::Contains("told to fail"), DeviceError);
}

TEST_CASE("entries that no kernel can have written are refused") {
  std::string error;
  const std::vector<ProbeRegion> regions = {{3, 4}};
  static_cast<void>(
      read_probe(std::vector<uint64_t>{0, 0, 9, 1}, regions, Instrument::kInsns, 1, error));
  CHECK(error == "warp 0 left no clock reads");
  error.clear();
  static_cast<void>(
      read_probe(std::vector<uint64_t>{10, 20, 30, 25}, {}, Instrument::kKernel, 1, error));
  CHECK(error == "warp 0 of block 1 began at clock 30 and ended at clock 25");
  error.clear();
  const ProbeResult two_blocks = read_probe(
      std::vector<uint64_t>{10, 20, 12, 40, 30, 35, 31, 36}, {}, Instrument::kKernel, 2, error);
  CHECK(error.empty());
  CHECK(two_blocks.span_cycles == 30);
  const ProbeResult sums = read_probe(
      std::vector<uint64_t>{8, 2, 50, 5, 6, 2, 30, 3}, regions, Instrument::kInsns, 1, error);
  CHECK(error.empty());
  CHECK(sums.overhead_cycles == 4);
  REQUIRE(sums.regions.size() == 1);
  CHECK(sums.regions[0].region.first_pc == 3);
  CHECK(sums.regions[0].count == 8);
  CHECK(sums.regions[0].cycles == 80);
  // What warp 0 does for its block: the second warp only passes over.
  const std::vector<ProbeRegion> of_block = {{3, 4, true}};
  const ProbeResult once = read_probe(
      std::vector<uint64_t>{8, 2, 50, 5, 6, 2, 30, 3}, of_block, Instrument::kInsns, 2, error);
  CHECK(error.empty());
  REQUIRE(once.regions.size() == 1);
  CHECK(once.regions[0].count == 5);
  CHECK(once.regions[0].cycles == 50);
}

TEST_CASE("regions keep to runs of insns between branches") {
  const auto program = kernel("work");
  const isa::Object& object = program->object();
  const isa::Function& function = object.functions.at(1);
  const auto text = [&](Instrument instrument) {
    std::string out;
    for (const ProbeRegion& region : probe_regions(object, function, instrument)) {
      out += fmt::format(
          "{}-{} ", region.first_pc - function.first_pc, region.end_pc - function.first_pc);
    }
    return out;
  };
  // 0 mov, load, mov; 3 fma, sqrt; 5 call; 6 add, cmp; 8 bra; 9 cmp, exp, store; 12 exit
  CHECK(text(Instrument::kBlocks) == "0-3 3-5 6-8 9-12 ");
  CHECK(text(Instrument::kInsns) == "0-1 1-2 2-3 3-4 4-5 6-7 7-8 9-10 10-11 11-12 ");
  CHECK(text(Instrument::kPairs) == "0-2 3-5 6-8 9-11 ");
  CHECK(text(Instrument::kPairsFromSecond) == "1-3 10-12 ");
  CHECK(text(Instrument::kKernel).empty());
}

TEST_CASE("microbenchmarks run on the device, and their slopes are what the clock was told") {
  const Workshop workshop;
  const FakeAcl fake;
  const isa::MachineProfile base = Device::open("emulated:ascend950").profile();
  MicrobenchOptions options;
  options.roles = {"latency"};
  options.keys = {"FMA.f32"};
  auto set = assemble_microbenches(make_microbenches(base, options));
  CHECK(set.size() == 9); // three lengths with nops, without, and of nops alone
  options.keys = {"CALL"};
  for (auto& bench : assemble_microbenches(make_microbenches(base, options))) {
    if (bench.bench.tag.variant != "spacer") {
      set.push_back(std::move(bench));
    }
  }
  CHECK(set.size() == 15);
  MicrobenchRuns how;
  how.runs = 16;
  how.warm_ups = 1;
  Profile profile;
  const auto slopes = [&] {
    std::vector<std::string> problems;
    auto found = detail::micro_slopes(profile, problems);
    CHECK(problems.empty());
    return found;
  };
  SUBCASE("nops that add their time") {
    const Setting cycles("PTO_HOST_CYCLES", "fmaf=7,asc_nop=15");
    const Setting slow("PTO_HOST_SLOW", "9");
    Device device = Device::open("npu");
    size_t told = 0;
    how.on_kernel = [&](size_t done) { CHECK(done == told++); };
    measure_microbenches(set, device, how, profile);
    CHECK(told == set.size());
    REQUIRE(profile.kernels.size() == set.size());
    size_t rejected = 0;
    for (const KernelProfile& kernel : profile.kernels) {
      REQUIRE(kernel.runs.size() == 16);
      for (size_t i = 0; i < kernel.runs.size(); ++i) {
        rejected += kernel.runs[i].rejected.empty() ? 0 : 1;
        if (kernel.micro.first == "FMA.f32" && i % 9 == 7) { // a warm-up before, every ninth
          CHECK(kernel.runs[i].rejected.find("where the median of 16 runs is") !=
                std::string::npos);
        }
      }
      CHECK(kernel.spread == 0); // of those that count
    }
    CHECK(rejected >= 9 * 2 - 6);
    std::vector<std::string> problems;
    const auto found = slopes();
    CHECK(detail::spacer_cycles(found) == 15);
    const auto latencies = detail::chain_latencies(found, problems);
    CHECK(problems.empty());
    CHECK(latencies.at("FMA.f32").cycles == 7);
    CHECK(detail::find_slope(found, "latency", "FMA.f32", "", "spaced")->value == 22);
  }
  SUBCASE("a kernel that fails is named, and the set goes on; eight in a row end it") {
    Device device = Device::open("npu");
    fake.reset();
    set.resize(3);
    {
      // 17 launches of the first kernel; then a warm-up and 15 of 16 runs of the second.
      const Setting fail("PTO_FAKE_ACL_FAIL", "aclrtSynchronizeStream:33");
      measure_microbenches(set, device, how, profile);
    }
    REQUIRE(profile.kernels.size() == 2);
    REQUIRE(profile.notes.size() == 1);
    CHECK(profile.notes[0].find(set[1].bench.name + ": not measured: ") == 0);
    CHECK(profile.notes[0].find("told to fail in aclrtSynchronizeStream") != std::string::npos);
    std::vector<AssembledMicrobench> again(8, set[0]);
    for (auto& entry : again) {
      entry.bench.name = "again";
      entry.program = kernel("stops");
    }
    CHECK_THROWS_AS(measure_microbenches(again, device, how, profile), DeviceError);
    CHECK(profile.notes.size() == 1 + 8);
  }
  SUBCASE("launches by the runtime's events") {
    const Setting cycles("PTO_HOST_CYCLES", "clock=1");
    MicrobenchOptions launches;
    launches.roles = {"launch"};
    auto empty = assemble_microbenches(make_microbenches(base, launches));
    empty.resize(1);
    Device device = Device::open("npu");
    measure_microbenches(empty, device, how, profile);
    // 125 us between the events of the tests' library, at the clock of the profile
    CHECK(profile.kernels.at(0).cycles == doctest::Approx(125 * base.clock_mhz));
  }
}

} // namespace
} // namespace pto::rt
