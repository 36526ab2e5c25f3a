// SPDX-License-Identifier: Apache-2.0
// Calibration: the proof on emulated devices whose profiles the fit does not see, and its parts.
#include "isa/hash.h"
#include "runtime/profile/calibrate.h"
#include "runtime/profile/kernel_input.h"
#include "runtime/profile/microbench.h"
#include "sim_fixture.h"
#include "simulator/generator.h"

#include <cmath>
#include <set>

namespace pto::rt {
namespace {

/// Small seeded numbers.
class Dice {
public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  uint32_t roll(uint32_t low, uint32_t high) {
    return low + static_cast<uint32_t>(sim::random_bits(seed_, next_++) % (high - low + 1));
  }

private:
  uint64_t seed_;
  uint64_t next_ = 0;
};

// Rows that the pair patterns try, with the type of f32 or of 32-bit integers.
constexpr const char* kFirsts[] = {
    "ADD", "MUL", "FMA", "SUB", "MAX", "MIN", "AND", "SHL", "LOAD", "CVT", "NEG", "OR"};
constexpr const char* kSeconds[] = {
    "ADD", "MUL", "FMA", "SUB", "MAX", "XOR", "SHR", "STORE", "ABS", "NOT"};

struct Hidden {
  isa::MachineProfile machine;
  std::vector<isa::FusionRule> planted;
};

Hidden hidden_device(const isa::MachineProfile& base,
                     const std::set<std::string>& measurable,
                     uint64_t seed) {
  Hidden hidden{base, {}};
  for (const isa::LatencyEntry& known : base.latency.entries()) {
    if (measurable.count(known.key) == 0) {
      continue;
    }
    // Each key has dice of its own, so that another row of the instruction table, or another figure
    // that can be measured, leaves every device as it was.
    Dice dice(isa::hash_of(known.key) ^ sim::random_bits(seed, 0));
    isa::LatencyEntry entry = known;
    // Short ones are the most common, as in hardware.
    entry.latency_cycles = dice.roll(0, 2) == 0 ? dice.roll(1, 4) : dice.roll(2, 40);
    entry.interval_cycles = std::min(dice.roll(1, 4), entry.latency_cycles);
    hidden.machine.latency.put(entry);
  }
  Dice dice(seed);
  hidden.machine.name = "hidden";
  hidden.machine.copy.start_latency_cycles = dice.roll(4, 200);
  hidden.machine.copy.bytes_per_cycle = dice.roll(16, 256);
  hidden.machine.sync.block_barrier_cycles = dice.roll(0, 30);
  std::set<std::string> used;
  const uint32_t count = dice.roll(1, 4);
  while (hidden.planted.size() < count) {
    isa::FusionRule rule;
    rule.first = kFirsts[dice.roll(0, std::size(kFirsts) - 1)];
    rule.second = kSeconds[dice.roll(0, std::size(kSeconds) - 1)];
    rule.name = rule.first + "_" + rule.second;
    const isa::LatencyEntry* a = hidden.machine.latency.find(rule.first + ".hbm.f32");
    const isa::LatencyEntry* b = hidden.machine.latency.find(rule.second + ".hbm.f32");
    const uint32_t sum = a->latency_cycles + b->latency_cycles;
    if (sum < 6 || used.count(rule.first) + used.count(rule.second) != 0) {
      continue;
    }
    rule.latency_cycles = std::max(2U, sum * dice.roll(40, 75) / 100);
    rule.keeps_first = dice.roll(0, 1) == 1;
    rule.source = "planted";
    used.insert(rule.first);
    used.insert(rule.second);
    hidden.planted.push_back(rule);
  }
  hidden.machine.fusion = hidden.planted;
  return hidden;
}

constexpr const char* kKernels[] = {
    R"(.pto 1
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
)",
    R"(.pto 1
.kernel polynomial(ptr a, ptr b, ptr o, u32 n)
    mov.u32      r0, %gid.x
    load.f32     r1, hbm[a + r0*4]
    mov.u32      r4, 0
    mov.f32      r3, 1.0
again:
    fma.f32      r3, r3, r1, 0.5
    max.f32      r3, r3, 0.0
    mul.f32      r3, r3, 0.5
    add.u32      r4, r4, 1
    cmp.lt.u32   p1, r4, 40
@p1 bra again
    store.f32    hbm[o + r0*4], r3
    exit
.end
)",
    R"(.pto 1
.kernel block_sum(ptr a, ptr b, ptr o, u32 n)
.shared partial, f32[256]
    mov.u32      r0, %tid.x
    mov.u32      r9, %gid.x
    load.f32     r1, hbm[a + r9*4]
    mov.u32      r5, 128
    store.f32    l1[partial + r0*4], r1
    barrier_block
step:
    cmp.lt.u32   p0, r0, r5
    add.u32      r6, r0, r5
@p0 load.f32     r2, l1[partial + r6*4]
@p0 add.f32      r1, r1, r2
@p0 store.f32    l1[partial + r0*4], r1
    barrier_block
    shr.b32      r5, r5, 1
    cmp.ne.u32   p1, r5, 0
@p1 bra step
    cmp.eq.u32   p2, r0, 0
@p2 store.f32    hbm[o], r1
    exit
.end
)",
    R"(.pto 1
.kernel copied(ptr a, ptr b, ptr o, u32 n)
    alloc_local  t0, 4096
    async_load   t0, hbm[a], 4096, e0
    wait         e0
    mov.u32      r0, %tid.x
    load.f32     r1, l1[t0 + r0*4]
    exp.f32      r1, r1
    rcp.f32      r2, r1
    store.f32    hbm[o + r0*4], r2
    exit
.end
)"};

void add_kernels(Profile& profile, const isa::MachineProfile& device, MeasureOptions options) {
  options.sees_insns = false;
  for (const char* text : kKernels) {
    ReplayInput replay;
    replay.text = text;
    replay.args = {
        "a=rand:f32[1024]:seed=1", "b=rand:f32[1024]:seed=2", "o=zeros:f32[1024]", "n=1024"};
    isa::Diagnostics diags;
    const auto input = KernelInput::prepare(replay, nullptr, {4}, {256}, diags);
    REQUIRE_MESSAGE(input, isa::render(diags));
    KernelProfile kernel = input->measure(device, options);
    kernel.replay = replay;
    profile.kernels.push_back(std::move(kernel));
  }
}

bool is_near(double a, double b) {
  return std::abs(a - b) <= std::max(1.0, 0.05 * b);
}

bool covers(const isa::FusionRule& inferred, const isa::FusionRule& planted) {
  return key_base(inferred.first) == planted.first && key_base(inferred.second) == planted.second;
}

std::set<std::string> measured_keys(const isa::MachineProfile& base, const Profile& measured) {
  std::vector<std::string> errors;
  CalibrateOptions options;
  options.simulates_kernels = false;
  const auto calibration = calibrate({&measured, 1}, base, options, errors);
  REQUIRE(calibration);
  std::set<std::string> keys;
  for (const CalibratedFigure& figure : calibration->figures) {
    if (figure.provenance == Provenance::kMeasured && figure.figure == "latency") {
      keys.insert(figure.key);
    }
  }
  return keys;
}

TEST_CASE("50 hidden devices: figures, rules and kernels are recovered through the noise") {
  const isa::MachineProfile base = sim::shipped_profile("reference");
  MicrobenchOptions set_options{{"latency", "interval", "pair", "barrier", "copy"}, 1, nullptr};
  const auto set = assemble_microbenches(make_microbenches(base, set_options));
  const Profile base_measurement = measure_base(base);
  Profile self;
  self.device = emulated_device("reference", base, {});
  measure_microbenches(set, base, {}, self);
  const std::set<std::string> measurable = measured_keys(base, self);
  CHECK(measurable.size() >= 55);
  for (int device = 0; device < 50; ++device) {
    CAPTURE(device);
    const Hidden hidden = hidden_device(base, measurable, 1000 + static_cast<uint64_t>(device));
    MeasureOptions measure;
    measure.runs = 100;
    measure.noise = {0.05, static_cast<uint64_t>(device) + 1, 1};
    Profile profile;
    profile.device = emulated_device("hidden", hidden.machine, measure.noise);
    measure_microbenches(set, hidden.machine, measure, profile);
    MicrobenchOptions follow_up = set_options;
    follow_up.follow_up = &profile;
    measure_microbenches(assemble_microbenches(make_microbenches(base, follow_up)),
                         hidden.machine,
                         measure,
                         profile);
    add_kernels(profile, hidden.machine, measure);
    CalibrateOptions options;
    options.base_measurement = &base_measurement;
    std::vector<std::string> errors;
    const auto calibration = calibrate({&profile, 1}, base, options, errors);
    REQUIRE(calibration);
    for (const CalibratedFigure& figure : calibration->figures) {
      if (figure.provenance != Provenance::kMeasured) {
        continue;
      }
      CAPTURE(figure.key);
      CAPTURE(figure.figure);
      CAPTURE(figure.measured);
      CAPTURE(figure.evidence);
      const isa::LatencyEntry* truth = hidden.machine.latency.find(figure.key);
      REQUIRE(truth != nullptr);
      CAPTURE(truth->latency_cycles);
      CAPTURE(truth->interval_cycles);
      const bool is_latency = figure.figure == "latency";
      CHECK(is_near(figure.after, is_latency ? truth->latency_cycles : truth->interval_cycles));
    }
    for (const isa::FusionRule& planted : hidden.planted) {
      CAPTURE(planted.name);
      CAPTURE(planted.latency_cycles);
      bool is_found = false;
      for (const InferredRule& inferred : calibration->rules) {
        is_found = is_found || (covers(inferred.rule, planted) &&
                                is_near(inferred.rule.latency_cycles, planted.latency_cycles));
      }
      CHECK(is_found);
    }
    for (const InferredRule& inferred : calibration->rules) {
      CAPTURE(inferred.rule.name);
      CAPTURE(inferred.evidence.front());
      bool is_planted = false;
      for (const isa::FusionRule& planted : hidden.planted) {
        is_planted = is_planted || covers(inferred.rule, planted);
      }
      CHECK(is_planted);
    }
    CAPTURE(calibration->before.mean);
    CAPTURE(calibration->after.mean);
    CHECK(calibration->held_out_after.count == std::size(kKernels));
    CHECK(calibration->held_out_after.mean < 0.05);
    CHECK(calibration->after.mean < calibration->before.mean);
    CHECK(!calibration->rejected_runs.empty());
  }
}

TEST_CASE("the hidden devices do not depend on what else is in the table") {
  const isa::MachineProfile base = sim::shipped_profile("reference");
  isa::MachineProfile more = base;
  isa::LatencyEntry added = *base.latency.find("SHL");
  added.key = "ADDED";
  more.latency.put(added);
  std::set<std::string> keys;
  for (const isa::LatencyEntry& entry : base.latency.entries()) {
    keys.insert(entry.key);
  }
  std::set<std::string> more_keys = keys;
  more_keys.insert("ADDED");
  for (uint64_t seed = 1000; seed < 1050; ++seed) {
    CAPTURE(seed);
    const Hidden one = hidden_device(base, keys, seed);
    const Hidden other = hidden_device(more, more_keys, seed);
    for (const isa::LatencyEntry& entry : one.machine.latency.entries()) {
      const isa::LatencyEntry* same = other.machine.latency.find_exact(entry.key);
      REQUIRE(same != nullptr);
      CHECK(same->latency_cycles == entry.latency_cycles);
      CHECK(same->interval_cycles == entry.interval_cycles);
    }
    REQUIRE(other.planted.size() == one.planted.size());
    for (size_t i = 0; i < one.planted.size(); ++i) {
      CHECK(other.planted[i].name == one.planted[i].name);
      CHECK(other.planted[i].latency_cycles == one.planted[i].latency_cycles);
    }
    CHECK(other.machine.copy.bytes_per_cycle == one.machine.copy.bytes_per_cycle);
  }
}

/// A profile of hook figures alone, as many kernels as given.
Profile hook_profile(size_t kernels) {
  Profile profile;
  profile.device = {"board", false, 1000, 0, 0};
  for (size_t i = 0; i < kernels; ++i) {
    KernelProfile kernel;
    kernel.name = "k" + std::to_string(i);
    kernel.cycles = 100;
    kernel.insns = {{"FMA.f32", 10, 6, 0.1, {}}, {"MYSTERY", 1, 5, 0, {}}};
    profile.kernels.push_back(kernel);
  }
  return profile;
}

TEST_CASE("hook figures fit keys, name what is unknown, and hold kernels out") {
  const isa::MachineProfile base = sim::shipped_profile("reference");
  std::vector<std::string> errors;
  const Profile profile = hook_profile(4);
  const auto calibration = calibrate({&profile, 1}, base, {}, errors);
  REQUIRE(calibration);
  CHECK(calibration->machine.latency.find("FMA.f32")->latency_cycles == 6);
  CHECK(calibration->machine.latency.find("FMA.f32")->device == "board");
  CHECK(calibration->machine.latency.find("MUL.f32")->latency_cycles == 4);
  CHECK(calibration->find("FMA", "latency")->provenance == Provenance::kMeasured);
  CHECK(calibration->find("MMA", "latency")->provenance == Provenance::kPublished);
  CHECK(calibration->find("MUL", "latency")->provenance == Provenance::kGuess);
  REQUIRE(!calibration->warnings.empty());
  CHECK(calibration->warnings[0].find("MYSTERY is no insn of PTO") != std::string::npos);
  CHECK(!calibration->kernels[2].is_held_out);
  CHECK(calibration->kernels[3].is_held_out);
  CHECK(calibration->kernels[0].problem.find("no text and arguments") != std::string::npos);
}

TEST_CASE("profiles that do not go together, or say nothing, are refused") {
  const isa::MachineProfile base = sim::shipped_profile("reference");
  const auto message = [&](const std::vector<Profile>& profiles) {
    std::vector<std::string> errors;
    CHECK(!calibrate(profiles, base, {}, errors));
    REQUIRE(errors.size() == 1);
    return errors[0];
  };
  CHECK(message({}).find("no profile to calibrate from") == 0);
  std::vector<Profile> two = {hook_profile(1), hook_profile(1)};
  two[1].device.name = "other board";
  CHECK(message(two).find("profiles of two devices, board and other board") == 0);
  two[1].device = two[0].device;
  two[1].device.clock_mhz = 900;
  CHECK(message(two).find("at 1000 MHz and at 900 MHz") != std::string::npos);
  Profile empty = hook_profile(2);
  for (KernelProfile& kernel : empty.kernels) {
    kernel.insns.clear();
  }
  CHECK(message({empty}).find("the 2 kernels of board hold no insn figures") == 0);
}

TEST_CASE("types that differ get entries of their own, spaces one together") {
  isa::MachineProfile device = sim::shipped_profile("reference");
  isa::LatencyEntry entry = *device.latency.find("FMA");
  entry.key = "FMA.f16";
  entry.latency_cycles = 20;
  device.latency.put(entry);
  entry = *device.latency.find("LOAD");
  entry.key = "LOAD.l1";
  entry.latency_cycles = 11;
  device.latency.put(entry);
  const isa::MachineProfile base = sim::shipped_profile("reference");
  Profile profile;
  profile.device = emulated_device("x", device, {});
  measure_microbenches(assemble_microbenches(make_microbenches(base, {{"latency"}, 0, nullptr})),
                       device,
                       {},
                       profile);
  std::vector<std::string> errors;
  const auto calibration = calibrate({&profile, 1}, base, {}, errors);
  REQUIRE(calibration);
  CHECK(calibration->machine.latency.find_exact("FMA.f16")->latency_cycles == 20);
  CHECK(calibration->machine.latency.find("FMA.f32")->latency_cycles == 8);
  REQUIRE(calibration->machine.latency.find_exact("LOAD.l1"));
  CHECK(calibration->machine.latency.find_exact("LOAD.l1")->latency_cycles == 11);
  CHECK(calibration->machine.latency.find("LOAD.hbm.f32")->latency_cycles == 4);
  CHECK(calibration->find("LOAD.l1", "latency")->is_new);
  CHECK(calibration->machine.description.find("(emulated)") != std::string::npos);
  isa::ProfileIssues issues;
  CHECK(isa::parse_machine(isa::to_json_text(calibration->machine), "fitted", {}, issues));
}

} // namespace
} // namespace pto::rt
