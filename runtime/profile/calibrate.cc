// SPDX-License-Identifier: Apache-2.0
// Puts a calibration together: evidence, the parts of the fit, then the proof on whole kernels.
#include "runtime/profile/calibrate.h"

#include "runtime/profile/calibrate_parts.h"
#include "runtime/profile/kernel_input.h"
#include "runtime/profile/microbench.h"
#include "runtime/profile/microbench_insn.h"
#include "runtime/profile/wrong_order.h"
#include "simulator/report/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace pto::rt {

using namespace detail;

namespace {

/// Of kernels with insn figures every fourth is held out, where there are enough.
constexpr size_t kHoldOutEvery = 4;

bool needs_base(const MicroTag& tag) {
  const bool is_lane_work = tag.role == "latency" || tag.role == "interval";
  if (tag.role == "pair") {
    return false;
  }
  return !is_lane_work || unit_of(tag.first) == static_cast<unsigned>(isa::Unit::kM);
}

/// What closes the chains of those that need the base: their links cannot be told apart without it.
std::set<std::string> closers_of_base(const std::vector<Microbench>& set) {
  std::set<std::string> closers;
  for (bool has_grown = true; has_grown;) {
    has_grown = false;
    for (const Microbench& bench : set) {
      const MicroTag& tag = bench.tag;
      if (tag.role == "latency" && !tag.second.empty() &&
          (needs_base(tag) || closers.count(tag.first) != 0)) {
        has_grown = closers.insert(tag.second).second || has_grown;
      }
    }
  }
  return closers;
}

bool is_same_pattern(const MicroTag& a, const MicroTag& b) {
  return a.role == b.role && a.first == b.first && a.second == b.second && a.variant == b.variant &&
         a.amount == b.amount;
}

/// Profiles of one fit are of one device; with their kernels in one list.
std::optional<Profile> merge(std::span<const Profile> profiles, std::vector<std::string>& errors) {
  if (profiles.empty()) {
    errors.emplace_back("no profile to calibrate from; measure one with `ptoprof microbench`");
    return std::nullopt;
  }
  Profile merged = profiles.front();
  for (const Profile& profile : profiles.subspan(1)) {
    if (profile.device.name != merged.device.name ||
        profile.device.is_emulated != merged.device.is_emulated) {
      errors.push_back(fmt::format("profiles of two devices, {} and {}, make no one machine; "
                                   "calibrate each from its own",
                                   merged.device_label(),
                                   profile.device_label()));
      return std::nullopt;
    }
    if (profile.device.clock_mhz != merged.device.clock_mhz) {
      errors.push_back(fmt::format("{} was measured at {} MHz and at {} MHz; cycles of two clocks "
                                   "do not go together where memory is waited for",
                                   merged.device_label(),
                                   short_number(merged.device.clock_mhz),
                                   short_number(profile.device.clock_mhz)));
      return std::nullopt;
    }
    merged.kernels.insert(merged.kernels.end(), profile.kernels.begin(), profile.kernels.end());
  }
  return merged;
}

void note_rejected(const Profile& profile, Calibration& calibration) {
  for (const KernelProfile& kernel : profile.kernels) {
    for (size_t i = 0; i < kernel.runs.size(); ++i) {
      if (!kernel.runs[i].rejected.empty()) {
        calibration.rejected_runs.push_back(
            fmt::format("{}: run {}: {}", kernel.name, i + 1, kernel.runs[i].rejected));
      }
    }
  }
}

/// Which kernels go into the fit: with patterns none has to, else most of them.
void choose_held_out(const Evidence& evidence, Calibration& calibration) {
  size_t with_insns = 0;
  for (const KernelProfile& kernel : evidence.measured.kernels) {
    with_insns += kernel.micro.is_set() || kernel.insns.empty() ? 0 : 1;
  }
  size_t index = 0;
  for (const KernelProfile& kernel : evidence.measured.kernels) {
    if (kernel.micro.is_set()) {
      continue;
    }
    KernelPrediction prediction;
    prediction.name = kernel.name;
    prediction.device = kernel.cycles;
    const bool is_in_turn =
        with_insns >= kHoldOutEvery && index % kHoldOutEvery == kHoldOutEvery - 1;
    prediction.is_held_out = kernel.insns.empty() || evidence.has_patterns || is_in_turn;
    index += kernel.insns.empty() ? 0 : 1;
    calibration.kernels.push_back(std::move(prediction));
  }
}

const KernelPrediction* prediction_of(const Calibration& calibration, const std::string& name) {
  for (const KernelPrediction& prediction : calibration.kernels) {
    if (prediction.name == name) {
      return &prediction;
    }
  }
  return nullptr;
}

void predict_kernel(const KernelProfile& kernel,
                    const isa::MachineProfile& base,
                    const isa::MachineProfile& fitted,
                    KernelPrediction& prediction) {
  if (!kernel.replay) {
    prediction.problem = "holds no text and arguments to simulate it again";
    return;
  }
  isa::Diagnostics diags;
  const std::optional<KernelInput> input =
      KernelInput::prepare(*kernel.replay, nullptr, kernel.grid, kernel.block, diags);
  if (!input) {
    prediction.problem =
        diags.all().empty() ? "its text or arguments cannot be read" : diags.all().front().message;
    return;
  }
  MeasureOptions options;
  options.sees_insns = false;
  try {
    prediction.before = input->simulate(base, options).cycles;
    prediction.after = input->simulate(fitted, options).cycles;
  } catch (const Error& error) {
    prediction.before = 0;
    prediction.problem = error.what();
  }
}

/// The insn figures of the base profile itself in each kernel that the fit takes some from: as it
/// is given, not as a profile of its name was when the kernel was measured.
void simulate_base(const isa::MachineProfile& base,
                   const Calibration& calibration,
                   Profile& measured) {
  for (KernelProfile& kernel : measured.kernels) {
    const KernelPrediction* prediction = prediction_of(calibration, kernel.name);
    if (kernel.micro.is_set() || prediction == nullptr || prediction->is_held_out ||
        !kernel.replay) {
      continue;
    }
    isa::Diagnostics diags;
    const std::optional<KernelInput> input =
        KernelInput::prepare(*kernel.replay, nullptr, kernel.grid, kernel.block, diags);
    if (!input) {
      continue; // predict_kernel() says why
    }
    std::optional<SimulatedKernel> simulated;
    try {
      simulated = input->simulate(base);
    } catch (const Error&) {
      continue; // as above
    }
    std::erase_if(kernel.simulated,
                  [&](const SimulatedKernel& known) { return known.machine == base.name; });
    kernel.simulated.push_back(std::move(*simulated));
  }
}

/// A figure of each insn can be right and the sum of all the farther off; then one of them is not
/// what the model takes it for, or another was wrong in the other direction.
void note_worse_kernels(const Profile& measured, Calibration& calibration) {
  constexpr double kWorse = 0.01;
  constexpr double kErrors = 3;
  for (const KernelPrediction& kernel : calibration.kernels) {
    if (kernel.is_held_out || kernel.before == 0 || !kernel.problem.empty() || kernel.device == 0) {
      continue;
    }
    const double before = std::abs(kernel.before / kernel.device - 1);
    const double after = std::abs(kernel.after / kernel.device - 1);
    const double noise = kErrors * measured.find(kernel.name)->error / kernel.device;
    if (after > before + std::max(kWorse, noise)) {
      calibration.warnings.push_back(
          fmt::format("the fit is farther from {}, which it was made from, than {} is: {} cycles "
                      "on the device, {} before, {} after; do not predict with it before "
                      "`ptoprof microbench` has measured the figures one by one",
                      kernel.name,
                      calibration.base,
                      short_number(kernel.device, 1),
                      short_number(kernel.before),
                      short_number(kernel.after)));
    }
  }
}

void summarise_kernels(Calibration& calibration) {
  std::vector<double> truth;
  std::vector<double> before;
  std::vector<double> after;
  std::vector<double> held_truth;
  std::vector<double> held_before;
  std::vector<double> held_after;
  for (const KernelPrediction& kernel : calibration.kernels) {
    if (kernel.before == 0 || !kernel.problem.empty()) {
      continue;
    }
    truth.push_back(kernel.device);
    before.push_back(kernel.before);
    after.push_back(kernel.after);
    if (kernel.is_held_out) {
      held_truth.push_back(kernel.device);
      held_before.push_back(kernel.before);
      held_after.push_back(kernel.after);
    }
  }
  calibration.before = prediction_error(before, truth);
  calibration.after = prediction_error(after, truth);
  calibration.held_out_before = prediction_error(held_before, held_truth);
  calibration.held_out_after = prediction_error(held_after, held_truth);
}

void find_wrong_decisions(const Profile& profile, Calibration& calibration) {
  const auto before = [&](const KernelProfile& kernel) {
    const KernelPrediction* prediction = prediction_of(calibration, kernel.name);
    return prediction == nullptr ? 0 : prediction->before;
  };
  for (const WrongOrder& wrong : find_wrong_orders(profile, before)) {
    const std::string& faster = wrong.a_is_faster() ? wrong.a->name : wrong.b->name;
    const std::string& slower = wrong.a_is_faster() ? wrong.b->name : wrong.a->name;
    const KernelPrediction& f = *prediction_of(calibration, faster);
    const KernelPrediction& s = *prediction_of(calibration, slower);
    calibration.wrong_decisions.push_back(fmt::format(
        "{}: {} is the faster one on the device ({} against {} cycles); {} says {} against {}, "
        "the calibrated profile {} against {}",
        wrong.a->group,
        faster,
        short_number(f.device, 1),
        short_number(s.device, 1),
        calibration.base,
        short_number(f.before),
        short_number(s.before),
        short_number(f.after),
        short_number(s.after)));
  }
}

} // namespace

namespace detail {

const Slope* same_pattern(const std::vector<Slope>& slopes, const MicroTag& tag) {
  for (const Slope& slope : slopes) {
    if (is_same_pattern(slope.tag, tag)) {
      return &slope;
    }
  }
  return nullptr;
}

std::vector<HookFigure> hook_figures(const Evidence& evidence, const Calibration& calibration) {
  std::map<std::string, HookFigure> by_key;
  std::map<std::string, double> weights;
  std::map<std::string, std::pair<double, double>> beyond; // sum and weight
  for (const KernelProfile& kernel : evidence.measured.kernels) {
    const KernelPrediction* prediction = prediction_of(calibration, kernel.name);
    if (kernel.micro.is_set() || prediction == nullptr || prediction->is_held_out) {
      continue;
    }
    const SimulatedKernel* simulated = nullptr;
    for (const SimulatedKernel& candidate : kernel.simulated) {
      simulated = candidate.machine == calibration.base ? &candidate : simulated;
    }
    const double runs = static_cast<double>(std::max<size_t>(1, kernel.runs.size()));
    for (const InsnMeasurement& insn : kernel.insns) {
      HookFigure& figure = by_key[insn.key];
      const auto count = static_cast<double>(std::max<uint64_t>(1, insn.count));
      figure.key = insn.key;
      figure.definition = insn.definition;
      figure.cycles += insn.cycles * count;
      figure.error += insn.spread / std::sqrt(runs) * count;
      figure.count += insn.count;
      weights[insn.key] += count;
      for (size_t i = 0; simulated != nullptr && i < simulated->insns.size(); ++i) {
        if (simulated->insns[i].key == insn.key) {
          beyond[insn.key].first += (insn.cycles - simulated->insns[i].cycles) * count;
          beyond[insn.key].second += count;
        }
      }
    }
  }
  std::vector<HookFigure> figures;
  for (auto& [key, figure] : by_key) {
    figure.cycles /= weights[key];
    figure.error /= weights[key];
    if (const auto found = beyond.find(key); found != beyond.end()) {
      figure.beyond_base = found->second.first / found->second.second;
    }
    figures.push_back(figure);
  }
  return figures;
}

} // namespace detail

std::string_view name(Provenance provenance) {
  constexpr std::string_view kNames[] = {"measured", "published", "inherited", "guess"};
  return kNames[static_cast<unsigned>(provenance)];
}

const CalibratedFigure* Calibration::find(std::string_view key, std::string_view figure) const {
  for (const CalibratedFigure& candidate : figures) {
    if (candidate.key == key && candidate.figure == figure) {
      return &candidate;
    }
  }
  return nullptr;
}

Profile measure_base(const isa::MachineProfile& base) {
  std::vector<Microbench> set = make_microbenches(base);
  const std::set<std::string> closers = closers_of_base(set);
  std::erase_if(set, [&](const Microbench& bench) {
    return !needs_base(bench.tag) &&
           (bench.tag.role != "latency" ||
            (closers.count(bench.tag.first) == 0 && bench.tag.variant != "spacer"));
  });
  Profile profile;
  profile.device = emulated_device(base.name, base, {});
  MeasureOptions options;
  options.runs = 1;
  measure_microbenches(assemble_microbenches(std::move(set)), base, options, profile);
  return profile;
}

std::optional<Calibration> calibrate(std::span<const Profile> profiles,
                                     const isa::MachineProfile& base,
                                     const CalibrateOptions& options,
                                     std::vector<std::string>& errors) {
  std::optional<Profile> merged = merge(profiles, errors);
  if (!merged) {
    return std::nullopt;
  }
  Evidence evidence;
  evidence.measured = std::move(*merged);
  evidence.date = options.date.empty() ? evidence.measured.date : options.date;
  Calibration calibration;
  calibration.machine = base;
  calibration.base = base.name;
  calibration.device = evidence.measured.device_label();
  calibration.is_emulated = evidence.measured.device.is_emulated;
  evidence.slopes = micro_slopes(evidence.measured, calibration.warnings);
  evidence.latencies = chain_latencies(evidence.slopes, calibration.warnings);
  bool needs = false;
  for (const KernelProfile& kernel : evidence.measured.kernels) {
    evidence.has_patterns =
        evidence.has_patterns || kernel.micro.role == "latency" || kernel.micro.role == "interval";
    needs = needs || (kernel.micro.is_set() && needs_base(kernel.micro));
  }
  if (needs) {
    evidence.base_measurement =
        options.base_measurement != nullptr ? *options.base_measurement : measure_base(base);
    std::vector<std::string> ignored;
    evidence.base_slopes = micro_slopes(evidence.base_measurement, ignored);
    evidence.base_latencies = chain_latencies(evidence.base_slopes, ignored);
  }
  choose_held_out(evidence, calibration);
  simulate_base(base, calibration, evidence.measured);
  if (evidence.slopes.empty() && hook_figures(evidence, calibration).empty()) {
    errors.push_back(fmt::format(
        "the {} of {} hold no insn figures and no microbenchmark patterns, so no figure "
        "can be fitted; measure with `ptoprof microbench` or `ptoprof run`",
        sim::counted(evidence.measured.kernels.size(), "kernel"),
        calibration.device));
    return std::nullopt;
  }
  isa::MachineProfile& machine = calibration.machine;
  machine.name = options.name;
  machine.based_on.clear();
  machine.description = fmt::format("{} calibrated to {}", base.name, calibration.device);
  machine.source = fmt::format("measured on {}{}{}; figures without a measurement are {}'s",
                               calibration.device,
                               evidence.date.empty() ? "" : ", ",
                               evidence.date,
                               base.name);
  if (evidence.measured.device.clock_mhz > 0) {
    machine.clock_mhz = evidence.measured.device.clock_mhz;
  }
  note_rejected(evidence.measured, calibration);
  fit_latencies(evidence, base, calibration);
  fit_fusion(evidence, calibration);
  fit_formulas(evidence, base, calibration);
  calibration.patterns = evidence.slopes.size();
  for (const Slope& slope : evidence.slopes) {
    calibration.pattern_held_out += slope.fit.held_out_error;
  }
  calibration.pattern_held_out /= static_cast<double>(std::max<size_t>(1, evidence.slopes.size()));
  if (options.simulates_kernels) {
    for (KernelPrediction& prediction : calibration.kernels) {
      predict_kernel(*evidence.measured.find(prediction.name), base, machine, prediction);
    }
    summarise_kernels(calibration);
    note_worse_kernels(evidence.measured, calibration);
    find_wrong_decisions(evidence.measured, calibration);
  }
  return calibration;
}

} // namespace pto::rt
