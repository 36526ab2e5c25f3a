// SPDX-License-Identifier: Apache-2.0
// Figures outside the latency table: each from a line over an amount, on the device and, for the
// same patterns, on the base profile. What starts a line differs by what the figure must change by
// (additive), how steep it is differs by a factor (where the base has a slope at all).
#include "runtime/profile/calibrate_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pto::rt::detail {
namespace {

class FormulaFit {
public:
  FormulaFit(const Evidence& evidence, const isa::MachineProfile& base, Calibration& calibration)
      : evidence_(evidence), base_(base), calibration_(calibration) {}

  void run() {
    isa::MachineProfile& machine = calibration_.machine;
    fit_copies(machine);
    report_waits();
    fit_barriers(machine);
    fit_atomics(machine);
    fit_memory(machine);
    fit_launch(machine);
  }

private:
  struct Lines {
    std::optional<LineFit> device;
    std::optional<LineFit> base;
    [[nodiscard]] bool both() const { return device && base; }
    [[nodiscard]] double start_difference() const { return device->start - base->start; }
  };

  static std::optional<LineFit> line_of(const std::vector<Slope>& slopes,
                                        std::string_view role,
                                        std::string_view variant,
                                        std::string_view first,
                                        double from_amount) {
    std::vector<LinePoint> points;
    for (const Slope& slope : slopes) {
      if (slope.tag.role == role && slope.tag.variant == variant &&
          (first.empty() || slope.tag.first == first) && slope.tag.amount >= from_amount) {
        points.push_back({slope.tag.amount, slope.value, slope.error});
      }
    }
    std::string why;
    return fit_line(points, why);
  }

  [[nodiscard]] Lines lines(std::string_view role,
                            std::string_view variant,
                            std::string_view first = {},
                            double from_amount = 0) const {
    return {line_of(evidence_.slopes, role, variant, first, from_amount),
            line_of(evidence_.base_slopes, role, variant, first, from_amount)};
  }

  void report(std::string what, const LineFit& fit, std::string note) {
    calibration_.formulas.push_back({std::move(what), fit, {}, 0, 0, std::move(note)});
  }

  /// Sets a whole figure, if it changed by more than measurement error, and reports it.
  void set(std::string what,
           const LineFit& fit,
           const std::string& path,
           uint32_t& figure,
           double value,
           double error) {
    const double before = figure;
    if (std::abs(value - before) > std::max(0.5, 3 * error)) {
      figure = static_cast<uint32_t>(std::llround(std::clamp(value, 0.0, 1e7)));
      note_source(path, fit);
    }
    calibration_.formulas.push_back({std::move(what), fit, path, before, double(figure), {}});
  }

  void set(std::string what,
           const LineFit& fit,
           const std::string& path,
           double& figure,
           double value,
           double error) {
    const double before = figure;
    if (std::abs(value - before) > std::max(0.01 * std::abs(before), 3 * error)) {
      figure = std::round(std::max(0.0, value) * 1e4) / 1e4;
      note_source(path, fit);
    }
    calibration_.formulas.push_back({std::move(what), fit, path, before, figure, {}});
  }

  void note_source(const std::string& path, const LineFit& fit) {
    calibration_.machine.sources[path] =
        fmt::format("measured on {}: {} cycles", calibration_.device, fit.formula("amount"));
  }

  void fit_copies(isa::MachineProfile& machine) {
    const Lines in = lines("copy", "in");
    if (in.both()) {
      set("copy in by bytes",
          *in.device,
          "copy.start_latency",
          machine.copy.start_latency_cycles,
          base_.copy.start_latency_cycles + in.start_difference(),
          in.device->start_error);
      if (in.device->step > 0 && in.device->step > 3 * in.device->step_error) {
        const double factor = in.base->step > 0 && base_.copy.bytes_per_cycle > 0
                                  ? in.base->step * base_.copy.bytes_per_cycle
                                  : 1;
        const double bytes = factor / in.device->step;
        set("copy in by bytes",
            *in.device,
            "copy.bytes_per_cycle",
            machine.copy.bytes_per_cycle,
            bytes,
            bytes * in.device->step_error / in.device->step);
      }
    }
    const Lines out = lines("copy", "out");
    if (out.both() && in.both()) {
      set("copy out by bytes",
          *out.device,
          "copy.out_latency",
          machine.copy.out_latency_cycles,
          base_.copy.out_latency_cycles + out.start_difference() - in.start_difference(),
          std::hypot(out.device->start_error, in.device->start_error));
    }
  }

  /// The model charges a WAIT's issue and what is left of the copy; more has no figure to go into.
  void report_waits() {
    for (const Slope& slope : evidence_.slopes) {
      if (slope.tag.role == "copy" && slope.tag.variant == "done") {
        const Slope* simulated = same_pattern(evidence_.base_slopes, slope.tag);
        report(fmt::format("{} for a copy that is done, by repeats", slope.tag.first),
               slope.fit,
               simulated == nullptr
                   ? std::string("no figure follows from it")
                   : fmt::format(
                         "{} cycles each, {} on the base profile, which charges the issue alone",
                         short_number(slope.value),
                         short_number(simulated->value)));
      }
    }
  }

  void fit_barriers(isa::MachineProfile& machine) {
    const auto single = [&](const std::vector<Slope>& slopes, std::string_view variant) {
      const Slope* found = nullptr;
      for (const Slope& slope : slopes) {
        if (slope.tag.role == "barrier" && slope.tag.variant == variant && slope.tag.amount == 1) {
          found = &slope;
        }
      }
      return found;
    };
    const Slope* block = single(evidence_.slopes, "block");
    const Slope* base_block = single(evidence_.base_slopes, "block");
    if (block != nullptr && base_block != nullptr) {
      const Lines by_warps = lines("barrier", "block");
      set("block barrier by warps",
          by_warps.device ? *by_warps.device : block->fit,
          "sync.block_barrier",
          machine.sync.block_barrier_cycles,
          base_.sync.block_barrier_cycles + block->value - base_block->value,
          block->error);
    }
    const Slope* warp = single(evidence_.slopes, "warp");
    const Slope* base_warp = single(evidence_.base_slopes, "warp");
    if (warp != nullptr && base_warp != nullptr) {
      set("warp barrier by repeats",
          warp->fit,
          "sync.barrier",
          machine.sync.barrier_cycles,
          base_.sync.barrier_cycles + warp->value - base_warp->value,
          warp->error);
    }
  }

  /// With few lanes the round trip hides the queue; the line is taken where lanes queue up.
  void fit_atomics(isa::MachineProfile& machine) {
    for (const Slope& slope : evidence_.slopes) {
      if (slope.tag.role != "atomic" || slope.tag.amount != 1 ||
          !slope.tag.first.ends_with(".u32")) {
        continue;
      }
      const bool is_l1 = slope.tag.first.find(".l1.") != std::string::npos;
      const Lines queue = lines("atomic", "one address", slope.tag.first, 16);
      if (!queue.both() || queue.base->step <= 0) {
        continue;
      }
      const double factor = queue.device->step / queue.base->step;
      const double error = queue.device->step_error / queue.base->step;
      double& figure = is_l1 ? machine.atomic.l1_cycles : machine.atomic.sector_cycles;
      const double before = is_l1 ? base_.atomic.l1_cycles : base_.atomic.sector_cycles;
      set(fmt::format("{} by lanes on one address", slope.tag.first),
          *queue.device,
          is_l1 ? "atomic.l1" : "atomic.sector",
          figure,
          before * factor,
          before * error);
    }
  }

  void fit_memory(isa::MachineProfile& machine) {
    const Slope* miss = find_slope(evidence_.slopes, "memory", "LOAD", "", "miss");
    const Slope* base_miss = find_slope(evidence_.base_slopes, "memory", "LOAD", "", "miss");
    if (miss != nullptr && base_miss != nullptr) {
      // What a load costs anyway is LOAD's own figure.
      const double own = latency_of(machine) - latency_of(base_);
      set("chain of loads from untouched lines, by repeats",
          miss->fit,
          "hbm.latency",
          machine.hbm.latency_cycles,
          base_.hbm.latency_cycles + miss->value - base_miss->value - own,
          miss->error);
    }
    const Lines conflict = lines("memory", "conflict");
    if (conflict.both() && conflict.base->step > 0.01) {
      const double factor = conflict.device->step / conflict.base->step;
      set("load from one bank of l1, by rows",
          *conflict.device,
          "l1.conflict_cycles",
          machine.l1.conflict_cycles,
          base_.l1.conflict_cycles * factor,
          base_.l1.conflict_cycles * conflict.device->step_error / conflict.base->step);
    } else if (conflict.device) {
      report("load from one bank of l1, by rows",
             *conflict.device,
             "the base profile has no bank conflicts");
    }
    for (const char* variant : {"stride", "bandwidth"}) {
      if (const Lines amount = lines("memory", variant); amount.device) {
        report(variant[0] == 's' ? "load by stride in bytes" : "loads of all cores by bytes",
               *amount.device,
               "shown for comparison; no one figure follows from it");
      }
    }
  }

  static double latency_of(const isa::MachineProfile& machine) {
    const isa::LatencyEntry* entry = machine.latency.find("LOAD.hbm.u32");
    return entry == nullptr ? machine.fallback_latency_cycles : entry->latency_cycles;
  }

  static std::optional<LineFit> launch_line(const Profile& profile) {
    std::vector<LinePoint> points;
    for (const KernelProfile& kernel : profile.kernels) {
      if (kernel.micro.role == "launch") {
        points.push_back({kernel.micro.amount, kernel.cycles, kernel.error});
      }
    }
    std::string why;
    return fit_line(points, why);
  }

  void fit_launch(isa::MachineProfile& machine) {
    const std::optional<LineFit> device = launch_line(evidence_.measured);
    const std::optional<LineFit> base = launch_line(measured_base_);
    if (!device) {
      return;
    }
    if (!base) {
      report("empty kernel by blocks", *device, "no figure of the base profile to compare with");
      return;
    }
    set("empty kernel by blocks",
        *device,
        "launch.task",
        machine.launch.task_cycles,
        base_.launch.task_cycles + device->start - base->start,
        device->start_error);
    if (base->step > 0.01 && base_.launch.dispatch_interval_cycles > 0) {
      set("empty kernel by blocks",
          *device,
          "launch.dispatch_interval",
          machine.launch.dispatch_interval_cycles,
          base_.launch.dispatch_interval_cycles + device->step - base->step,
          device->step_error);
    }
  }

  const Evidence& evidence_;
  const isa::MachineProfile& base_;
  const Profile& measured_base_ = evidence_.base_measurement;
  Calibration& calibration_;
};

} // namespace

void fit_formulas(const Evidence& evidence,
                  const isa::MachineProfile& base,
                  Calibration& calibration) {
  FormulaFit(evidence, base, calibration).run();
}

} // namespace pto::rt::detail
