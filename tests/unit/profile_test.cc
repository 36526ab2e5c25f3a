// SPDX-License-Identifier: Apache-2.0
// Profiles: statistics, JSON form, measuring on emulated devices, cycle breakdown.
#include "runtime/profile/breakdown.h"
#include "runtime/profile/measure.h"
#include "runtime/profile/profile.h"
#include "runtime/profile/samples.h"
#include "sim_fixture.h"

#include <cmath>

namespace pto::rt {
namespace {

constexpr const char* kVectorAdd = R"(
.pto 1
.kernel vector_add(ptr a, ptr b, ptr o, u32 n)
    mov.u32      r0, %gid.x
    cmp.ge.u32   p0, r0, n
@p0 exit
    load.f32     r1, hbm[a + r0*4]
    load.f32     r2, hbm[b + r0*4]
    fma.f32      r3, r1, 1.0, r2
    store.f32    hbm[o + r0*4], r3
    exit
.end
)";

KernelProfile measure_vector_add(std::string_view machine, const MeasureOptions& options) {
  sim::SimFixture sim(kVectorAdd, machine);
  for (int i = 0; i < 3; ++i) {
    sim.words(std::vector<uint32_t>(1024, i == 2 ? 0 : 0x3f800000));
    sim.args.back().is_pointer = true;
  }
  sim.scalar(1024);
  return measure_emulated(sim.machine, sim.program, {{4}, {256}, sim.args, 0}, options);
}

Profile profile_of(KernelProfile kernel, const NoiseModel& noise = {}) {
  Profile profile;
  profile.device =
      emulated_device("reference-fused", sim::shipped_profile("reference-fused"), noise);
  profile.tool = "test";
  profile.kernels.push_back(std::move(kernel));
  return profile;
}

double cycles_of(const KernelProfile& kernel, std::string_view base) {
  for (const InsnMeasurement& insn : kernel.insns) {
    if (key_base(insn.key) == base) {
      return insn.cycles;
    }
  }
  return -1;
}

TEST_CASE("a run that was interrupted is rejected, noise is not") {
  std::vector<double> samples;
  for (int i = 0; i < 64; ++i) {
    samples.push_back(100 + (i * 7 % 11 - 5)); // 95 to 105
  }
  CHECK(summarise(samples).rejected.empty());
  samples[17] = 205;
  const SampleSummary summary = summarise(samples);
  CHECK(summary.rejected == std::vector<size_t>{17});
  CHECK(summary.used == 63);
  CHECK(summary.centre == doctest::Approx(100).epsilon(0.01));
  CHECK(summary.error == doctest::Approx(summary.spread / std::sqrt(63.0)));
  CHECK(summarise(std::vector<double>{5, 5, 5, 10, 5}).rejected == std::vector<size_t>{3});
  CHECK(summarise(std::vector<double>{5, 10}).rejected.empty());
  CHECK(summarise(std::vector<double>{}).centre == 0);
}

TEST_CASE("25 + 8n is found again, with held-out error and limits") {
  std::vector<LinePoint> points;
  for (const double n : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0}) {
    points.push_back({n, 25 + 8 * n, 0});
  }
  std::string why;
  const auto exact = fit_line(points, why);
  REQUIRE(exact);
  CHECK(exact->start == doctest::Approx(25));
  CHECK(exact->step == doctest::Approx(8));
  CHECK(exact->held_out_error == doctest::Approx(0));
  CHECK(exact->is_inside(20));
  CHECK(!exact->is_inside(33));
  CHECK(!exact->is_inside(0.5));
  CHECK(exact->formula() == "25 + 8*n, n from 1 to 32");
  SUBCASE("one point doubled") {
    points[3].value *= 2;
    const auto robust = fit_line(points, why);
    REQUIRE(robust);
    CHECK(robust->start == doctest::Approx(25));
    CHECK(robust->step == doctest::Approx(8));
    CHECK(robust->rejected == std::vector<size_t>{3});
  }
  SUBCASE("noise shows in the errors") {
    for (size_t i = 0; i < points.size(); ++i) {
      points[i].value *= i % 2 == 0 ? 1.02 : 0.98;
    }
    const auto noisy = fit_line(points, why);
    REQUIRE(noisy);
    CHECK(std::abs(noisy->step - 8) < 4 * noisy->step_error);
    CHECK(noisy->held_out_error > 0.01);
    CHECK(noisy->held_out_error < 0.1);
  }
  SUBCASE("one n is no line") {
    CHECK(!fit_line(std::vector<LinePoint>{{4, 57, 0}, {4, 58, 0}}, why));
    CHECK(why == "2 points with one n give no line; measure at two sizes at least");
  }
}

TEST_CASE("prediction error and ranking") {
  const std::vector<double> truth = {10, 20, 30, 40};
  const PredictionError same = prediction_error(truth, truth);
  CHECK(same.mean == 0);
  CHECK(same.kendall_tau == 1);
  const PredictionError reversed = prediction_error(std::vector<double>{40, 30, 20, 10}, truth);
  CHECK(reversed.kendall_tau == -1);
  CHECK(reversed.worst == doctest::Approx(3));
  CHECK(reversed.worst_index == 0);
}

TEST_CASE("the emulated device gives the documented cycles of vector_add") {
  const KernelProfile kernel = measure_vector_add("reference-fused", {});
  CHECK(cycles_of(kernel, "LOAD") == 3);
  CHECK(cycles_of(kernel, "FMA") == 5);
  CHECK(cycles_of(kernel, "STORE") == 2);
  CHECK(kernel.runs.size() == 5);
  CHECK(kernel.spread == 0);
  CHECK(kernel.warnings.empty());
  for (const double busy : kernel.unit_busy_cycles) {
    CHECK(busy <= kernel.cycles);
  }
  Profile profile = profile_of(kernel);
  SimulatedKernel simulated;
  simulated.machine = "reference";
  simulated.cycles = 20;
  simulated.insns.push_back({"LOAD.hbm.f32", 64, 4, 0, {}});
  profile.kernels[0].simulated.push_back(simulated);
  const std::string text = cycle_breakdown(profile, profile.kernels[0]).to_string();
  CAPTURE(text);
  CHECK(text.find("LOAD: 3 cycles (simulator: 4), 64 warp insns") != std::string::npos);
  CHECK(text.find("FMA: 5 cycles, 32 warp insns") != std::string::npos);
  CHECK(text.find("STORE: 2 cycles") != std::string::npos);
  CHECK(text.find("on emulated:reference-fused (emulated)") != std::string::npos);
}

TEST_CASE("noise is seeded, and a doubled run is rejected and named") {
  MeasureOptions options;
  options.runs = 40;
  options.noise = {0.05, 7, 1};
  const KernelProfile kernel = measure_vector_add("reference-fused", options);
  const KernelProfile again = measure_vector_add("reference-fused", options);
  REQUIRE(kernel.runs.size() == 40);
  size_t rejected = 0;
  for (size_t i = 0; i < kernel.runs.size(); ++i) {
    CHECK(kernel.runs[i].cycles == again.runs[i].cycles);
    if (!kernel.runs[i].rejected.empty()) {
      ++rejected;
      CHECK(kernel.runs[i].rejected.find("where the median of 40 runs is") != std::string::npos);
      CHECK(kernel.runs[i].cycles > 1.6 * kernel.cycles);
    }
  }
  CHECK(rejected == 1);
  CHECK(kernel.spread / kernel.cycles > 0.02);
  CHECK(kernel.spread / kernel.cycles < 0.08);
  const double exact = measure_vector_add("reference-fused", {}).cycles;
  CHECK(kernel.cycles == doctest::Approx(exact).epsilon(0.04));
  CHECK(cycles_of(kernel, "LOAD") == doctest::Approx(3).epsilon(0.05));
  options.noise.seed = 8;
  CHECK(measure_vector_add("reference-fused", options).runs[0].cycles != kernel.runs[0].cycles);
}

TEST_CASE("inputs that are all zero are warned of") {
  sim::SimFixture sim(kVectorAdd);
  for (int i = 0; i < 3; ++i) {
    sim.words(std::vector<uint32_t>(256));
    sim.args.back().is_pointer = true;
  }
  sim.scalar(256);
  const KernelProfile kernel =
      measure_emulated(sim.machine, sim.program, {{1}, {256}, sim.args, 0}, {});
  REQUIRE(kernel.warnings.size() == 1);
  CHECK(kernel.warnings[0].starts_with("all input arrays are zero"));
}

TEST_CASE("an insn without a latency is named") {
  sim::SimFixture sim(".pto 1\n.kernel k()\n    tanh.f32 r0, 1.0\n    exit\n.end\n");
  isa::LatencyTable table;
  for (const isa::LatencyEntry& entry : sim.machine.profile.latency.entries()) {
    if (entry.key != "TANH") {
      table.put(entry);
    }
  }
  sim.machine.profile.latency = table;
  const KernelProfile kernel = measure_emulated(sim.machine, sim.program, {{1}, {32}, {}, 0}, {});
  REQUIRE(kernel.warnings.size() == 1);
  CHECK(kernel.warnings[0].find("no latency for TANH.f32") != std::string::npos);
}

TEST_CASE("a kernel that faults gives an error, not figures") {
  sim::SimFixture sim(".pto 1\n.kernel k()\n    trap 3\n.end\n");
  CHECK_THROWS_AS((void)measure_emulated(sim.machine, sim.program, {{1}, {32}, {}, 0}, {}),
                  MeasureError);
}

TEST_CASE("a fused pair is a pair and no two insns") {
  sim::SimFixture sim(R"(
.pto 1
.kernel k(ptr a)
    load.f32 r1, hbm[a]
    add.f32 r2, r1, r1
    store.f32 hbm[a], r2
    exit
.end
)");
  sim.words({1, 2});
  sim.machine.profile.fusion.push_back({"load_add", "LOAD", "ADD", "any", 3, false, "test"});
  const KernelProfile kernel =
      measure_emulated(sim.machine, sim.program, {{1}, {32}, sim.args, 0}, {});
  CHECK(cycles_of(kernel, "LOAD") == -1);
  CHECK(cycles_of(kernel, "ADD") == -1);
  REQUIRE(kernel.pairs.size() == 2);
  const PairMeasurement& pair = kernel.pairs[1];
  CHECK(pair.first == "LOAD.hbm.f32");
  CHECK(pair.second == "ADD.f32");
  CHECK(pair.is_joined);
  CHECK(pair.cycles == 3);
}

TEST_CASE("a profile survives its JSON form") {
  MeasureOptions options;
  options.noise = {0.05, 3, 1};
  options.runs = 20;
  Profile profile = profile_of(measure_vector_add("reference-fused", options), options.noise);
  KernelProfile& kernel = profile.kernels[0];
  kernel.micro = {"latency", "FMA.f32", "", "tight", 64, 2};
  kernel.replay = ReplayInput{"text", "k", {"a=zeros:f32[4]"}, 16};
  kernel.simulated.push_back({"reference", 20, {{"FMA.f32", 4, 8, 0, {}}}});
  profile.notes = {"a note"};
  profile.date = "2026-08-21";
  const std::string text = to_json_text(profile);
  isa::ProfileIssues issues;
  const auto again = read_profile(text, "p.json", issues);
  REQUIRE_MESSAGE(again, isa::to_string(issues));
  CHECK(to_json_text(*again) == text);
  CHECK(again->device.is_emulated);
  CHECK(again->kernels[0].runs.size() == 20);
  CHECK(again->kernels[0].micro.first == "FMA.f32");
  CHECK(again->kernels[0].replay->dynamic_l1_bytes == 16);
}

TEST_CASE("what is no profile is refused with a reason") {
  const auto message = [](std::string_view text) {
    isa::ProfileIssues issues;
    CHECK(!read_profile(text, "p.json", issues));
    return isa::to_string(issues);
  };
  const std::string head =
      R"({"format": "pto-profile", "version": 1, "device": {"name": "d", "is_emulated": true})";
  CHECK(message("{").find("p.json:1:2: error: no valid JSON at byte 1") == 0);
  CHECK(message("[]").find("expected a profile (an object), got a list") != std::string::npos);
  CHECK(message("{}").find("format: expected \"pto-profile\", got nothing") != std::string::npos);
  CHECK(message(R"({"format": "pto-profile", "version": 2})").find("reads version 1 only") !=
        std::string::npos);
  CHECK(message(head + "}").find("kernels: missing: what was measured") != std::string::npos);
  CHECK(message(head + R"(, "kernels": [{"name": "k", "cycles": "12"}]})")
            .find("kernels[0].cycles: expected a number, got the text \"12\"") !=
        std::string::npos);
  CHECK(message(head + R"(, "kernels": [{"name": "k", "cycles": -1}]})")
            .find("out of range; expected 0 to") != std::string::npos);
  CHECK(message(head + R"(, "kernels": [{"name": "k", "cycels": 1, "cycles": 1}]})")
            .find("kernels[0].cycels: unknown key; did you mean 'cycles'?") != std::string::npos);
  CHECK(message(head + R"(, "kernels": [{"name": "k", "cycles": 1}, {"name": "k", "cycles": 1}]})")
            .find("two kernels are named 'k'") != std::string::npos);
  CHECK(message(
            head +
            R"(, "kernels": [{"name": "k", "cycles": 100, "unit_busy_cycles": [0,0,0,150,0,0]}]})")
            .find("unit M is busy for 150 cycles of a run of 100") != std::string::npos);
}

} // namespace
} // namespace pto::rt
