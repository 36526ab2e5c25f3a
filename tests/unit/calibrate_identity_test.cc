// SPDX-License-Identifier: Apache-2.0
// Calibration of a machine to itself: there is nothing to learn, so nothing may change.
#include "runtime/profile/calibrate.h"
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

} // namespace
} // namespace pto::rt
