// SPDX-License-Identifier: Apache-2.0
// The latency table. Measurements are of full insn keys (CMP.eq.f32); the table has coarser entries
// (CMP). Keys that share an entry and agree make its value; those that do not get entries of their
// own, as coarse as what agrees allows (LOAD.l1 rather than every type of it).
#include "runtime/profile/breakdown.h"
#include "runtime/profile/calibrate_parts.h"
#include "runtime/profile/microbench_insn.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pto::rt::detail {
namespace {

constexpr double kSameCycles = 0.75; // figures nearer than this are one
constexpr double kSamePart = 0.04;
constexpr double kSameErrors = 4;
constexpr double kIssueBound = 1.03; // a stream this near the issue limit says nothing more

/// One measured figure of one insn key.
struct KeyFigure {
  std::string key;  // full
  std::string base; // space and types only
  double value = 0;
  double error = 0;
  std::string definition;
  std::string evidence;
  bool is_upper_bound = false;
};

using Member = uint32_t isa::LatencyEntry::*;

bool agrees(const KeyFigure& figure, double value) {
  return std::abs(figure.value - value) <=
         std::max({kSameCycles, kSameErrors * figure.error, kSamePart * value});
}

double mean_of(const std::vector<const KeyFigure*>& figures) {
  double sum = 0;
  double weight = 0;
  for (const KeyFigure* figure : figures) {
    const double w = 1 / (figure->error * figure->error + 1e-6);
    sum += w * figure->value;
    weight += w;
  }
  return weight == 0 ? 0 : sum / weight;
}

double error_of(const std::vector<const KeyFigure*>& figures) {
  double weight = 0;
  for (const KeyFigure* figure : figures) {
    weight += 1 / (figure->error * figure->error + 1e-12);
  }
  return weight == 0 ? 0 : 1 / std::sqrt(weight);
}

std::vector<std::string> suffixes_of(const std::string& base) {
  std::vector<std::string> parts;
  size_t begin = base.find('.');
  while (begin != std::string::npos) {
    const size_t end = base.find('.', begin + 1);
    parts.push_back(base.substr(begin + 1, end == std::string::npos ? end : end - begin - 1));
    begin = end;
  }
  return parts;
}

bool has_suffix(const std::string& base, const std::string& suffix) {
  const std::vector<std::string> parts = suffixes_of(base);
  return std::find(parts.begin(), parts.end(), suffix) != parts.end();
}

/// Entries for all figures of one entry of the base table.
class EntryMaker {
public:
  EntryMaker(std::string entry_key, std::vector<const KeyFigure*> figures)
      : entry_key_(std::move(entry_key)), figures_(std::move(figures)) {}

  struct Made {
    std::string key;
    std::vector<const KeyFigure*> figures;
  };

  std::vector<Made> make() {
    std::vector<double> values;
    for (const KeyFigure* figure : figures_) {
      values.push_back(figure->value);
    }
    const double common = median_of(values);
    Made main{entry_key_, {}};
    std::vector<const KeyFigure*> others;
    for (const KeyFigure* figure : figures_) {
      (agrees(*figure, common) ? main.figures : others).push_back(figure);
    }
    std::vector<Made> made;
    if (!main.figures.empty()) {
      made.push_back(std::move(main));
    }
    while (!others.empty()) {
      made.push_back(take_coarsest(others));
    }
    return made;
  }

private:
  /// The entry that covers most of what is left and nothing that differs.
  Made take_coarsest(std::vector<const KeyFigure*>& others) {
    Made best{others.front()->base, {others.front()}};
    for (const std::string& suffix : suffixes_of(others.front()->base)) {
      Made candidate{std::string(key_base(entry_key_)) + "." + suffix, {}};
      bool is_clean = !has_suffix(entry_key_, suffix);
      for (const KeyFigure* figure : figures_) {
        if (has_suffix(figure->base, suffix)) {
          is_clean = is_clean && agrees(*figure, others.front()->value);
          candidate.figures.push_back(figure);
        }
      }
      if (is_clean && candidate.figures.size() > best.figures.size()) {
        best = std::move(candidate);
      }
    }
    std::erase_if(others, [&](const KeyFigure* figure) {
      return std::find(best.figures.begin(), best.figures.end(), figure) != best.figures.end();
    });
    return best;
  }

  std::string entry_key_;
  std::vector<const KeyFigure*> figures_;
};

class LatencyFit {
public:
  LatencyFit(const Evidence& evidence, const isa::MachineProfile& base, Calibration& calibration)
      : evidence_(evidence), base_(base), calibration_(calibration) {}

  void run() {
    std::vector<KeyFigure> latencies = chain_figures();
    add_hook_figures(latencies);
    apply(latencies, "latency", &isa::LatencyEntry::latency_cycles);
    apply(stream_figures(), "interval", &isa::LatencyEntry::interval_cycles);
    fit_products();
    note_kept();
    std::sort(calibration_.figures.begin(),
              calibration_.figures.end(),
              [](const CalibratedFigure& a, const CalibratedFigure& b) {
                return a.key != b.key ? a.key < b.key : a.figure > b.figure;
              });
  }

private:
  [[nodiscard]] bool is_memory(const std::string& key) const {
    return unit_of(key) == static_cast<unsigned>(isa::Unit::kM);
  }

  /// What the base profile's own table says of the key, so that differences can be added to it.
  [[nodiscard]] double base_latency(const std::string& key) const {
    const isa::LatencyEntry* entry = base_.latency.find(key);
    return entry == nullptr ? base_.fallback_latency_cycles : entry->latency_cycles;
  }

  std::vector<KeyFigure> chain_figures() {
    std::vector<KeyFigure> figures;
    for (const auto& [key, chain] : evidence_.latencies) {
      KeyFigure figure{
          key, typed_key(key), chain.cycles, chain.error, chain.definition, chain.evidence, false};
      const auto simulated = evidence_.base_latencies.find(key);
      if (is_memory(key) && simulated != evidence_.base_latencies.end()) {
        figure.value = base_latency(key) + chain.cycles - simulated->second.cycles;
      }
      if (figure.value < 0.5) {
        calibration_.warnings.push_back(fmt::format(
            "{}: {} cycles make no latency; the figure is kept (was the chain removed by "
            "a compiler?)",
            key,
            short_number(figure.value)));
        continue;
      }
      figures.push_back(std::move(figure));
    }
    return figures;
  }

  void add_hook_figures(std::vector<KeyFigure>& figures) {
    for (const HookFigure& hook : hook_figures(evidence_, calibration_)) {
      const bool is_known = std::any_of(
          figures.begin(), figures.end(), [&](const KeyFigure& f) { return f.key == hook.key; });
      if (is_known || find_unit(hook.key) == isa::kUnitCount) {
        continue;
      }
      if (hook.cycles < 0.5) {
        calibration_.warnings.push_back(
            fmt::format("{}: {} cycles between clock reads make no latency; the figure is kept",
                        hook.key,
                        short_number(hook.cycles)));
        continue;
      }
      if (const std::string why = why_no_latency(hook); !why.empty()) {
        refuse(hook, why);
        continue;
      }
      KeyFigure figure;
      figure.key = hook.key;
      figure.base = typed_key(hook.key);
      figure.value = hook.beyond_base ? base_latency(hook.key) + *hook.beyond_base : hook.cycles;
      if (figure.value < 0.5) {
        refuse(hook,
               fmt::format("{} cycles after the difference to {} make no latency",
                           short_number(figure.value),
                           base_.name));
        continue;
      }
      figure.error = hook.error;
      figure.definition = hook.definition.empty() ? "issue to result usable" : hook.definition;
      figure.evidence =
          fmt::format("seen {} times in kernels: {} cycles", hook.count, short_number(hook.cycles));
      figures.push_back(std::move(figure));
    }
  }

  /// Why what a kernel shows of an insn is not the figure that the table has for it; empty: it is.
  [[nodiscard]] std::string why_no_latency(const HookFigure& hook) const {
    const isa::InsnDesc* row = row_of(hook.key);
    if (row->has(isa::kAsync)) {
      return "they are the copy's or the start's, and the table has what the insn itself takes; "
             "the role `copy` of `ptoprof microbench` tells copies";
    }
    if (row->has(isa::kWaits | isa::kFence | isa::kWarpBarrier | isa::kBlockBarrier)) {
      return "what is waited for may be in them; the roles `barrier` and `copy` of `ptoprof "
             "microbench` tell what waiting itself takes";
    }
    if (is_memory(hook.key) && !hook.beyond_base) {
      return fmt::format("nothing tells how much of them caches and queues of {} add: the profile "
                         "has neither text and arguments to simulate nor {}'s figure",
                         base_.name,
                         base_.name);
    }
    return {};
  }

  void refuse(const HookFigure& hook, const std::string& why) {
    calibration_.warnings.push_back(
        fmt::format("{}: {} in kernels, not used: {}", hook.key, cycles_text(hook.cycles), why));
  }

  unsigned find_unit(const std::string& key) {
    const unsigned unit = unit_of(key);
    if (unit == isa::kUnitCount) {
      calibration_.warnings.push_back(
          fmt::format("{} is no insn of PTO: its figures are not used", key));
    }
    return unit;
  }

  [[nodiscard]] uint32_t pipes_of(const std::string& key) const {
    const uint32_t pipes[] = {base_.units.s_pipes,
                              base_.units.v_pipes,
                              base_.units.x_pipes,
                              base_.units.m_pipes,
                              base_.units.d_pipes,
                              base_.units.c_pipes};
    const unsigned unit = unit_of(key);
    return unit < isa::kUnitCount ? pipes[unit] : 1;
  }

  /// W warps issue one insn each per repeat; P pipes take one warp an interval.
  std::vector<KeyFigure> stream_figures() {
    std::vector<KeyFigure> figures;
    for (const Slope& slope : evidence_.slopes) {
      if (slope.tag.role != "interval") {
        continue;
      }
      const std::string& key = slope.tag.first;
      const double warps = slope.lanes / static_cast<double>(isa::kWarpLanes);
      const double pipes = pipes_of(key);
      KeyFigure figure{key, typed_key(key), 0, 0, {}, {}, false};
      figure.value = slope.value * pipes / warps;
      figure.error = slope.error * pipes / warps;
      figure.evidence = fmt::format("{} warps, independent: {} cycles for one insn of each",
                                    short_number(warps),
                                    short_number(slope.value));
      if (is_memory(key) && has_other_limit(slope, pipes / warps)) {
        continue;
      }
      const double issue = warps / base_.issue_warps_per_cycle;
      const auto chain = evidence_.latencies.find(key);
      const double latency_bound =
          chain == evidence_.latencies.end() ? 0 : chain->second.cycles / slope.tag.amount;
      const bool is_at_issue = slope.value <= issue * kIssueBound + 3 * slope.error;
      const bool is_at_latency =
          latency_bound > issue &&
          std::abs(slope.value - latency_bound) <= std::max(3 * slope.error, 0.03 * latency_bound);
      if ((is_at_issue || is_at_latency) && figure.value >= 1.25) {
        figure.is_upper_bound = true;
        figure.evidence += is_at_issue ? "; issue is the limit, so this is the most it can be"
                                       : "; latency is the limit, so this is the most it can be";
      }
      figures.push_back(std::move(figure));
    }
    return figures;
  }

  /// Lines, banks or bandwidth already explain more than the interval on the base profile.
  [[nodiscard]] bool has_other_limit(const Slope& slope, double scale) const {
    const Slope* simulated = same_pattern(evidence_.base_slopes, slope.tag);
    const isa::LatencyEntry* entry = base_.latency.find(slope.tag.first);
    return simulated != nullptr && entry != nullptr &&
           simulated->value * scale > entry->interval_cycles * 1.05 + 0.05;
  }

  void apply(const std::vector<KeyFigure>& figures, const char* what, Member member) {
    std::map<std::string, std::vector<const KeyFigure*>> groups;
    for (const KeyFigure& figure : figures) {
      const isa::LatencyEntry* entry = calibration_.machine.latency.find(figure.key);
      groups[entry == nullptr ? std::string(key_base(figure.key)) : entry->key].push_back(&figure);
    }
    for (const auto& [entry_key, members] : groups) {
      for (const EntryMaker::Made& made : EntryMaker(entry_key, members).make()) {
        put(made, what, member);
      }
    }
  }

  void put(const EntryMaker::Made& made, const char* what, Member member) {
    const isa::LatencyEntry* known = calibration_.machine.latency.find(made.key);
    isa::LatencyEntry entry = known == nullptr ? isa::LatencyEntry{} : *known;
    const bool is_latency = member == &isa::LatencyEntry::latency_cycles;
    const isa::LatencyEntry* old = base_.latency.find(made.key);
    CalibratedFigure figure;
    figure.key = made.key;
    figure.figure = what;
    figure.before = old == nullptr ? 0 : old->*member;
    figure.measured = mean_of(made.figures);
    figure.error = error_of(made.figures);
    figure.provenance = Provenance::kMeasured;
    figure.is_new = base_.latency.find_exact(made.key) == nullptr;
    figure.evidence = made.figures.front()->evidence;
    if (made.figures.size() > 1) {
      figure.evidence += fmt::format("; the same in {} forms", made.figures.size());
    }
    const bool is_bound = std::all_of(made.figures.begin(),
                                      made.figures.end(),
                                      [](const KeyFigure* f) { return f->is_upper_bound; });
    const auto rounded =
        static_cast<uint32_t>(std::llround(std::max(1.0, std::min(1e7, figure.measured))));
    entry.key = made.key;
    if (is_bound && old != nullptr && figure.before <= figure.measured + 0.3) {
      figure.after = entry.*member;
      figure.provenance = kept_provenance(*old);
    } else {
      figure.after = is_bound ? std::floor(figure.measured + 0.1) : rounded;
      entry.*member = static_cast<uint32_t>(figure.after);
      // A table entry was written for the latency; the interval's own evidence is in the report.
      if (is_latency || figure.after != figure.before) {
        describe(entry, figure, made, is_latency);
      }
      calibration_.machine.latency.put(entry);
    }
    calibration_.figures.push_back(std::move(figure));
  }

  void describe(isa::LatencyEntry& entry,
                const CalibratedFigure& figure,
                const EntryMaker::Made& made,
                bool is_latency) {
    if (is_latency) {
      entry.source = fmt::format("measured on {}: {}", calibration_.device, figure.evidence);
      entry.definition = made.figures.front()->definition;
      entry.spread_cycles = std::round(figure.error * 1000) / 1000;
      entry.device = calibration_.device;
      entry.date = evidence_.date;
    } else if (entry.source.find("; interval: ") == std::string::npos) {
      entry.source +=
          fmt::format("; interval: measured on {}: {}", calibration_.device, figure.evidence);
      entry.device = calibration_.device;
      entry.date = evidence_.date;
    }
  }

  /// Matrix products of several sizes, where the base has a formula for them.
  void fit_products() {
    std::map<std::string, std::vector<LinePoint>> by_key;
    for (const Slope& slope : evidence_.slopes) {
      const isa::LatencyEntry* entry = base_.latency.find(slope.tag.first);
      if (slope.tag.role != "latency" || slope.tag.amount == 0 || entry == nullptr) {
        continue;
      }
      const auto edge = static_cast<uint64_t>(slope.tag.amount);
      const double n = entry->tile_m == 0
                           ? slope.tag.amount * slope.tag.amount * slope.tag.amount
                           : static_cast<double>(entry->tile_steps(edge, edge, edge));
      by_key[slope.tag.first].push_back({n, slope.value, slope.error});
    }
    for (const auto& [key, points] : by_key) {
      std::string why;
      const std::optional<LineFit> fit = fit_line(points, why);
      if (!fit) {
        continue;
      }
      const isa::LatencyEntry* current = calibration_.machine.latency.find(key);
      FormulaFigure formula{fmt::format("{} by {}", key, current->tile_m == 0 ? "m*n*k" : "tiles"),
                            *fit,
                            {},
                            0,
                            0,
                            {}};
      const bool grows = fit->step * (fit->n_max - fit->n_min) > std::max(1.0, 0.05 * fit->start);
      if (current->tile_m != 0) {
        isa::LatencyEntry entry = *current;
        formula.key_path = fmt::format("latency.{}.step", entry.key);
        formula.before = entry.step_cycles;
        entry.latency_cycles = static_cast<uint32_t>(std::llround(std::max(0.0, fit->start)));
        entry.step_cycles = std::max(0.0, fit->step);
        formula.after = entry.step_cycles;
        calibration_.machine.latency.put(entry);
        for (CalibratedFigure& figure : calibration_.figures) {
          if (figure.key == entry.key && figure.figure == "latency") {
            figure.after = entry.latency_cycles;
            figure.evidence += "; start of the line over tiles";
          }
        }
      } else if (grows) {
        formula.note = "grows with the size, which the base profile's entry does not: give it a "
                       "tile (m, n, k) to take the step";
        calibration_.warnings.push_back(fmt::format("{}: {}", formula.what, formula.note));
      } else {
        formula.note = "does not depend on the size";
      }
      calibration_.formulas.push_back(std::move(formula));
    }
  }

  static Provenance kept_provenance(const isa::LatencyEntry& entry) {
    for (const char* word : {"assumed", "chosen", "not published"}) {
      if (entry.source.find(word) != std::string::npos) {
        return Provenance::kGuess;
      }
    }
    return Provenance::kPublished;
  }

  /// Every figure of the base table that nothing was measured for.
  void note_kept() {
    for (const isa::LatencyEntry& entry : base_.latency.entries()) {
      for (const char* what : {"latency", "interval"}) {
        if (calibration_.find(entry.key, what) != nullptr) {
          continue;
        }
        CalibratedFigure figure;
        figure.key = entry.key;
        figure.figure = what;
        figure.before = what[0] == 'l' ? entry.latency_cycles : entry.interval_cycles;
        figure.after = figure.before;
        figure.provenance = entry.source.empty() ? Provenance::kInherited : kept_provenance(entry);
        figure.evidence = fmt::format(
            "none, kept: {}", entry.source.empty() ? "as the less specific key" : entry.source);
        calibration_.figures.push_back(std::move(figure));
      }
    }
  }

  const Evidence& evidence_;
  const isa::MachineProfile& base_;
  Calibration& calibration_;
};

} // namespace

void fit_latencies(const Evidence& evidence,
                   const isa::MachineProfile& base,
                   Calibration& calibration) {
  LatencyFit(evidence, base, calibration).run();
}

} // namespace pto::rt::detail
