// SPDX-License-Identifier: Apache-2.0
// Calibration of a machine to itself: there is nothing to learn, so nothing may change.
#include "runtime/profile/calibrate.h"
#include "runtime/profile/kernel_input.h"
#include "runtime/profile/microbench.h"
#include "sim_fixture.h"

namespace pto::rt {
namespace {

constexpr const char* kShipped[] = {"reference", "reference-fused", "ascend950"};

void check_unchanged(const Calibration& calibration, const isa::MachineProfile& base) {
  for (const CalibratedFigure& figure : calibration.figures) {
    CAPTURE(figure.key);
    CAPTURE(figure.figure);
    CAPTURE(figure.evidence);
    CHECK(figure.after == figure.before);
  }
  for (const FormulaFigure& formula : calibration.formulas) {
    CAPTURE(formula.what);
    CAPTURE(formula.key_path);
    CHECK(formula.after == formula.before);
  }
  // Every query of the table, whether an entry of the base or a finer one answers it.
  for (const isa::LatencyEntry& entry : calibration.machine.latency.entries()) {
    CAPTURE(entry.key);
    const isa::LatencyEntry* old = base.latency.find(entry.key);
    REQUIRE(old != nullptr);
    CHECK(entry.latency_cycles == old->latency_cycles);
    CHECK(entry.interval_cycles == old->interval_cycles);
  }
}

TEST_CASE("microbenchmarks of a shipped machine give its own figures back") {
  for (const char* name : kShipped) {
    CAPTURE(name);
    const isa::MachineProfile base = sim::shipped_profile(name);
    Profile profile;
    profile.device = emulated_device(name, base, {});
    const MicrobenchOptions options{
        {"latency", "interval", "memory", "atomic", "barrier", "copy", "launch"}, 0, nullptr, {}};
    measure_microbenches(
        assemble_microbenches(make_microbenches(base, options)), base, {}, profile);
    std::vector<std::string> errors;
    const auto calibration = calibrate({&profile, 1}, base, {}, errors);
    REQUIRE(calibration);
    check_unchanged(*calibration, base);
    for (const std::string& warning : calibration->warnings) {
      CAPTURE(warning);
      CHECK(warning.empty());
    }
    // CALL and RET are told apart, not kept for want of a figure.
    for (const char* key : {"CALL", "RET", "ATOM.hbm.u64"}) {
      CAPTURE(key);
      const isa::LatencyEntry* entry = base.latency.find(key);
      REQUIRE(entry != nullptr);
      const CalibratedFigure* figure = calibration->find(entry->key, "latency");
      REQUIRE(figure != nullptr);
      CHECK(figure->provenance == Provenance::kMeasured);
    }
  }
}

// A row is copied in, all warps wait for it and meet, and what they made of it is copied out.
constexpr const char* kSoftmaxLike = R"(.pto 1
.kernel softmax_like(ptr.f32 a, ptr.f32 o)
.shared part, f32[32]
    mov.u32      r0, %tid.x
    mov.u32      r1, %blocksize
    mov.u32      r2, %lane
    mov.u32      r3, %warp
    mov.u32      r4, %ctaid.x
    shl.b32      r5, r4, 10
    alloc_local  t0, 4096
    async_load   t0, hbm[a + r5*4], 4096, e0
    wait         e0
    barrier_block
    mov.f32      r10, 0.0
    mov.u32      r7, r0
again:
    load.f32     r8, l1[t0 + r7*4]
    exp.f32      r8, r8
    store.f32    l1[t0 + r7*4], r8
    add.f32      r10, r10, r8
    add.u32      r7, r7, r1
    cmp.lt.u32   p0, r7, 1024
@p0 bra again
    reduce.add.f32 r10, r10
    cmp.eq.u32   p1, r2, 0
@p1 store.f32    l1[part + r3*4], r10
    barrier_block
    load.f32     r11, l1[part]
    load.f32     r8, l1[t0 + r0*4]
    div.f32      r8, r8, r11
    store.f32    l1[t0 + r0*4], r8
    barrier_block
    async_store  hbm[o + r5*4], t0, 4096, e1
    wait         e1
    free_local   t0
    exit
.end
)";
// Two copies under way at once, one to a tile and one to a place in scratchpad.
constexpr const char* kCopies = R"(.pto 1
.kernel copies(ptr.f32 a, ptr.f32 o)
.tile t, f32[2][2048]
    async_load   t, hbm[a], 8192, e0
    async_load   l1[t + 8192], hbm[a + 2048*4], 4096, e1
    wait         e0
    async_store  hbm[o], t, 8192, e2
    wait_all
    mov.u32      r0, %tid.x
    load.f32     r1, hbm[a + r0*4]
    store.f32    hbm[o + r0*4], r1
    exit
.end
)";
constexpr const char* kProduct = R"(.pto 1
.kernel product(ptr.f32 a, ptr.f32 o)
.tile x, f32[32][32]
.tile y, f32[32][32]
    alloc_local  t0, 4096
    async_load   x, hbm[a], 4096, e0
    async_load   y, hbm[a + 1024*4], 4096, e0
    fill.b32     t0, 0
    wait         e0
    mma.f32.f32  t0, x, y, 32, 32, 32
    mma.f32.f32  t0, y, x, 32, 32, 32
    async_store  hbm[o], t0, 4096, e1
    wait         e1
    exit
.end
)";

KernelProfile measured_kernel(const char* text, uint32_t lanes, const isa::MachineProfile& device) {
  ReplayInput replay;
  replay.text = text;
  replay.args = {"a=rand:f32[4096]:seed=1", "o=zeros:f32[4096]"};
  isa::Diagnostics diags;
  const auto input = KernelInput::prepare(replay, nullptr, {3}, {lanes}, diags);
  REQUIRE_MESSAGE(input, isa::render(diags));
  KernelProfile kernel = input->measure(device, {});
  kernel.name += std::to_string(lanes);
  kernel.replay = replay;
  return kernel;
}

TEST_CASE("kernels of a shipped machine leave it as it is, whatever they copy and wait for") {
  for (const char* name : kShipped) {
    CAPTURE(name);
    const isa::MachineProfile base = sim::shipped_profile(name);
    for (const char* text : {kSoftmaxLike, kCopies, kProduct}) {
      CAPTURE(text);
      for (const uint32_t lanes : {32U, 128U, 1024U}) {
        CAPTURE(lanes);
        Profile profile;
        profile.device = emulated_device(name, base, {});
        profile.kernels = {measured_kernel(text, lanes, base)};
        std::vector<std::string> errors;
        const auto calibration = calibrate({&profile, 1}, base, {}, errors);
        REQUIRE(calibration);
        check_unchanged(*calibration, base);
        REQUIRE(calibration->kernels.size() == 1);
        CHECK(!calibration->kernels[0].is_held_out);
        CHECK(calibration->kernels[0].after == calibration->kernels[0].device);
        // What only looks like a latency is refused, with the reason.
        CHECK(calibration->find("ASYNC_LOAD", "latency")->provenance != Provenance::kMeasured);
        CHECK(calibration->find("WAIT", "latency")->provenance != Provenance::kMeasured);
        REQUIRE(!calibration->warnings.empty());
        CHECK(calibration->warnings[0].find("ASYNC_LOAD.hbm: ") == 0);
        CHECK(calibration->warnings[0].find("not used: they are the copy's") != std::string::npos);
      }
    }
  }
}

TEST_CASE("figures of a kernel learn what differs and nothing else, copies or not") {
  const isa::MachineProfile base = sim::shipped_profile("ascend950");
  isa::MachineProfile device = base;
  isa::LatencyEntry entry = *device.latency.find("EXP");
  entry.latency_cycles += 30;
  device.latency.put(entry);
  entry = *device.latency.find("LOAD.l1");
  entry.key = "LOAD.l1";
  entry.latency_cycles += 20;
  device.latency.put(entry);
  Profile profile;
  profile.device = emulated_device("slower", device, {});
  profile.kernels = {measured_kernel(kSoftmaxLike, 32, device)};
  std::vector<std::string> errors;
  const auto calibration = calibrate({&profile, 1}, base, {}, errors);
  REQUIRE(calibration);
  const isa::LatencyTable& table = calibration->machine.latency;
  CHECK(table.find("EXP.f32")->latency_cycles == device.latency.find("EXP.f32")->latency_cycles);
  CHECK(table.find("LOAD.l1.f32")->latency_cycles ==
        device.latency.find("LOAD.l1.f32")->latency_cycles);
  CHECK(table.find("ASYNC_LOAD")->latency_cycles ==
        base.latency.find("ASYNC_LOAD")->latency_cycles);
  CHECK(calibration->kernels[0].before < calibration->kernels[0].device);
  CHECK(calibration->kernels[0].after == calibration->kernels[0].device);
}

TEST_CASE("a copy is measured once a block, however many warps pass over it") {
  const isa::MachineProfile base = sim::shipped_profile("ascend950");
  const auto figure = [](const KernelProfile& kernel, std::string_view key) {
    for (const InsnMeasurement& insn : kernel.insns) {
      if (insn.key == key) {
        return insn;
      }
    }
    FAIL("no figure of " << std::string(key));
    return kernel.insns.front();
  };
  const KernelProfile one = measured_kernel(kSoftmaxLike, 32, base);
  const KernelProfile all = measured_kernel(kSoftmaxLike, 1024, base);
  for (const KernelProfile* kernel : {&one, &all}) {
    CAPTURE(kernel->name);
    const InsnMeasurement copy = figure(*kernel, "ASYNC_LOAD.hbm");
    CHECK(copy.count == 3);
    CHECK(copy.cycles == figure(one, "ASYNC_LOAD.hbm").cycles);
    CHECK(copy.cycles > 500);
    CHECK(copy.definition == "issue to the end of the copy");
    CHECK(figure(*kernel, "ASYNC_STORE.hbm").count == 3);
    CHECK(figure(*kernel, "WAIT").count == 6 * kernel->block.x / 32); // each warp waits itself
    CHECK(figure(*kernel, "EXP.f32").definition.empty());
  }
  CHECK(figure(all, "EXP.f32").count == 3 * 32);
  // A tile and a place in scratchpad are one key, as they are one entry of the table.
  CHECK(figure(measured_kernel(kCopies, 128, base), "ASYNC_LOAD.hbm").count == 3 * 2);
}

/// FMA as `fma_cycles`, in a kernel that the base profile predicts exactly.
Profile with_fma_of(double fma_cycles, const isa::MachineProfile& base) {
  Profile profile;
  profile.device = emulated_device("x", base, {});
  KernelProfile kernel = measured_kernel(R"(.pto 1
.kernel chain(ptr.f32 a, ptr.f32 o)
    mov.u32      r0, %tid.x
    load.f32     r1, hbm[a + r0*4]
    fma.f32      r1, r1, r1, r1
    fma.f32      r1, r1, r1, r1
    fma.f32      r1, r1, r1, r1
    store.f32    hbm[o + r0*4], r1
    exit
.end
)",
                                         32,
                                         base);
  for (InsnMeasurement& insn : kernel.insns) {
    insn.cycles = insn.key == "FMA.f32" ? fma_cycles : insn.cycles;
  }
  profile.kernels = {kernel};
  return profile;
}

TEST_CASE("a fit that is farther from its own kernel than the base says so") {
  const isa::MachineProfile base = sim::shipped_profile("reference");
  const auto warnings = [&](double fma_cycles) {
    const Profile profile = with_fma_of(fma_cycles, base);
    std::vector<std::string> errors;
    const auto calibration = calibrate({&profile, 1}, base, {}, errors);
    REQUIRE(calibration);
    CHECK(calibration->machine.latency.find("FMA.f32")->latency_cycles == fma_cycles);
    return calibration->warnings;
  };
  CHECK(warnings(8).empty());
  const std::vector<std::string> worse = warnings(60);
  REQUIRE(worse.size() == 1);
  CHECK(worse[0].find("the fit is farther from chain32, which it was made from, than reference "
                      "is: ") == 0);
}

TEST_CASE("a memory figure without the base profile's own in the same kernel is not used") {
  const isa::MachineProfile base = sim::shipped_profile("ascend950");
  Profile profile = with_fma_of(base.latency.find("FMA.f32")->latency_cycles, base);
  profile.kernels[0].replay.reset();
  std::vector<std::string> errors;
  const auto calibration = calibrate({&profile, 1}, base, {}, errors);
  REQUIRE(calibration);
  check_unchanged(*calibration, base);
  REQUIRE(calibration->warnings.size() == 2);
  CHECK(calibration->warnings[0].find("LOAD.hbm.f32: ") == 0);
  CHECK(calibration->warnings[0].find("caches and queues of ascend950") != std::string::npos);
  CHECK(calibration->warnings[1].find("STORE.hbm.f32: ") == 0);
}

} // namespace
} // namespace pto::rt
