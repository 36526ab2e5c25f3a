// SPDX-License-Identifier: Apache-2.0
// Microbenchmarks: the generated set assembles, runs and tells the figures of a known machine.
#include "runtime/profile/microbench.h"
#include "runtime/profile/pair_screen.h"
#include "runtime/profile/slopes.h"
#include "sim_fixture.h"

#include <set>

namespace pto::rt {
namespace {

Profile measure(const isa::MachineProfile& machine, const MicrobenchOptions& options) {
  Profile profile;
  profile.device = emulated_device(machine.name, machine, {});
  measure_microbenches(
      assemble_microbenches(make_microbenches(machine, options)), machine, {}, profile);
  return profile;
}

const detail::Slope* slope_of(const std::vector<detail::Slope>& slopes,
                              std::string_view role,
                              std::string_view variant,
                              double amount) {
  for (const detail::Slope& slope : slopes) {
    if (slope.tag.role == role && slope.tag.variant == variant && slope.tag.amount == amount) {
      return &slope;
    }
  }
  return nullptr;
}

TEST_CASE("chains and streams give back the reference machine's table, exactly") {
  const isa::MachineProfile reference = sim::shipped_profile("reference");
  const Profile profile = measure(reference, {{"latency", "interval"}, 0, nullptr});
  std::vector<std::string> problems;
  const auto slopes = detail::micro_slopes(profile, problems);
  const auto latencies = detail::chain_latencies(slopes, problems);
  CHECK(problems.empty());
  CHECK(latencies.size() > 280);
  std::set<const isa::LatencyEntry*> entries;
  for (const auto& known : latencies) {
    const std::string& key = known.first;
    const detail::ChainLatency& latency = known.second;
    CAPTURE(key);
    const isa::LatencyEntry* entry = reference.latency.find(key);
    REQUIRE(entry != nullptr);
    entries.insert(entry);
    CHECK(latency.cycles == doctest::Approx(entry->latency_cycles));
  }
  // All but what has no result to wait for: control flow, copies, caches, barriers.
  CHECK(entries.size() >= 55);
  for (const detail::Slope& slope : slopes) {
    if (slope.tag.role == "interval") {
      CAPTURE(slope.tag.first);
      CHECK(slope.value * reference.units.v_pipes / 32 == doctest::Approx(1));
    }
  }
}

TEST_CASE("memory, atomics, barriers and copies follow their formulas") {
  isa::MachineProfile machine = sim::shipped_profile("reference");
  machine.copy.start_latency_cycles = 20;
  machine.copy.bytes_per_cycle = 64;
  machine.sync.block_barrier_cycles = 6;
  machine.hbm.latency_cycles = 300;
  const Profile profile =
      measure(machine, {{"memory", "atomic", "barrier", "copy", "launch"}, 1, nullptr});
  std::vector<std::string> problems;
  const auto slopes = detail::micro_slopes(profile, problems);
  CHECK(problems.empty());
  REQUIRE(slope_of(slopes, "memory", "miss", 0));
  CHECK(slope_of(slopes, "memory", "miss", 0)->value == doctest::Approx(304));
  CHECK(slope_of(slopes, "barrier", "block", 1)->value == doctest::Approx(7));
  CHECK(slope_of(slopes, "copy", "in", 2048)->value == doctest::Approx(300 + 20 + 2048 / 64 + 2));
  CHECK(slope_of(slopes, "copy", "in", 8192)->value == doctest::Approx(300 + 20 + 8192 / 64 + 2));
  CHECK(slope_of(slopes, "atomic", "one address", 32)->value >
        slope_of(slopes, "atomic", "one address", 1)->value + 20);
}

TEST_CASE("calls and returns are told apart, and a wait for what is done costs its issue") {
  isa::MachineProfile machine = sim::shipped_profile("reference");
  for (const auto& [key, cycles] : {std::pair("CALL", 5U), std::pair("RET", 9U)}) {
    isa::LatencyEntry entry = *machine.latency.find(key);
    entry.latency_cycles = cycles;
    machine.latency.put(entry);
  }
  MicrobenchOptions options{{"latency", "copy"}, 1, nullptr};
  options.keys = {"RET", "WAIT"};
  const Profile profile = measure(machine, options);
  std::vector<std::string> problems;
  const auto slopes = detail::micro_slopes(profile, problems);
  const auto latencies = detail::chain_latencies(slopes, problems);
  CHECK(problems.empty());
  REQUIRE(latencies.size() == 2); // RET, and CALL, which it needs; NOP is no latency
  CHECK(latencies.at("CALL").cycles == doctest::Approx(5));
  CHECK(latencies.at("RET").cycles == doctest::Approx(9));
  CHECK(latencies.at("RET").definition == "issue to issue of the target");
  const detail::Slope* wait = detail::find_slope(slopes, "copy", "WAIT", "", "done");
  REQUIRE(wait != nullptr);
  CHECK(wait->value == doctest::Approx(1));
  CHECK(detail::spacer_cycles(slopes) == 1);
}

TEST_CASE("a chain whose nops take long is read without them") {
  // 7 cycles a link; the nops, of 15, came on top of it or hid it.
  for (const double spaced : {22.0, 16.0}) {
    Profile profile;
    for (const double n : {8.0, 16.0, 48.0}) {
      for (const auto& [first, variant, slope] : {std::tuple("FMA.f32", "spaced", spaced),
                                                  std::tuple("FMA.f32", "tight", 7.0),
                                                  std::tuple("NOP", "spacer", 15.0)}) {
        KernelProfile kernel;
        kernel.micro = {"latency", first, "", variant, n, 0};
        kernel.cycles = 100 + slope * n;
        profile.kernels.push_back(kernel);
      }
    }
    std::vector<std::string> problems;
    const auto slopes = detail::micro_slopes(profile, problems);
    const auto latencies = detail::chain_latencies(slopes, problems);
    CHECK(problems.empty());
    CHECK(latencies.at("FMA.f32").cycles == doctest::Approx(7));
    CHECK(latencies.count("NOP") == 0);
  }
}

TEST_CASE("pairs: none is found where none is, and a planted one is") {
  isa::MachineProfile machine = sim::shipped_profile("reference");
  const MicrobenchOptions options{{"latency", "pair"}, 2, nullptr};
  CHECK(joined_pairs(measure(machine, options)).empty());
  machine.fusion.push_back({"fma_max", "FMA", "MAX", "any", 4, false, "test"});
  machine.fusion.push_back({"load_mma", "LOAD", "MMA", "none", 5, true, "test"});
  const auto joined = joined_pairs(measure(machine, options));
  std::set<std::string> names;
  for (const JoinedPair& pair : joined) {
    names.insert(pair.first + "+" + pair.second);
    CHECK(pair.cycles == doctest::Approx(pair.is_unconnected ? 5 : 4));
  }
  std::string all;
  for (const std::string& name : names) {
    all += name + " ";
  }
  CAPTURE(all);
  CHECK(names == std::set<std::string>{"FMA.f16x2+MAX.u32",
                                       "FMA.f32+MAX.f32",
                                       "LOAD.const.f32+MMA.f32.f32",
                                       "LOAD.hbm.f32+MMA.f32.f32",
                                       "LOAD.l1.f32+MMA.f32.f32"});
}

TEST_CASE("the set is the same every time, with one name a kernel") {
  const isa::MachineProfile machine = sim::shipped_profile("ascend950");
  const auto once = make_microbenches(machine);
  const auto again = make_microbenches(machine);
  REQUIRE(once.size() == again.size());
  std::set<std::string> names;
  std::set<std::string> roles;
  for (size_t i = 0; i < once.size(); ++i) {
    CHECK(once[i].text == again[i].text);
    CHECK(names.insert(once[i].name).second);
    roles.insert(once[i].tag.role);
  }
  for (const MicrobenchRole& role : microbench_roles()) {
    CAPTURE(role.name);
    CHECK(roles.count(std::string(role.name)) == 1);
  }
}

} // namespace
} // namespace pto::rt
