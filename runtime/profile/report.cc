// SPDX-License-Identifier: Apache-2.0
// Contents of the reports, and their two renderings.
#include "runtime/profile/report.h"

#include "runtime/profile/breakdown.h"
#include "runtime/profile/wrong_order.h"
#include "simulator/report/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pto::rt {
namespace {

constexpr size_t kMostRows = 40;

std::string percent(double part) {
  return short_number(100 * part, 1) + " %";
}

std::string signed_percent(double measured, double simulated) {
  if (measured == 0) {
    return "-";
  }
  return fmt::format("{:+.1f} %", 100 * (simulated - measured) / measured);
}

ReportSection
kernel_section(const Profile& profile, const KernelProfile& kernel, std::string_view machine) {
  const CycleBreakdown breakdown = cycle_breakdown(profile, kernel, machine);
  ReportSection section;
  section.title = kernel.name;
  const std::string text = breakdown.to_string();
  section.lines.push_back(text.substr(0, text.find('\n')));
  if (kernel.cycles == 0) {
    section.lines.back() =
        fmt::format("{} on {}: total not recorded", kernel.name, breakdown.device);
  }
  section.header = {"insn", "warp insns", "cycles", "simulator", "difference"};
  for (const BreakdownRow& row : breakdown.rows) {
    const bool has = row.simulated > 0;
    section.rows.push_back({row.key,
                            std::to_string(row.count),
                            short_number(row.cycles, 2),
                            has ? short_number(row.simulated, 2) : "-",
                            has ? signed_percent(row.cycles, row.simulated) : "-"});
  }
  for (const BreakdownPair& pair : breakdown.pairs) {
    if (pair.is_joined) {
      section.remarks.push_back(fmt::format("{} + {} issue as one: {}, {} times",
                                            pair.first,
                                            pair.second,
                                            cycles_text(pair.cycles),
                                            pair.count));
    }
  }
  for (const RunSample& run : kernel.runs) {
    if (!run.rejected.empty()) {
      section.remarks.push_back("rejected run: " + run.rejected);
    }
  }
  for (unsigned unit = 0; unit < isa::kUnitCount; ++unit) {
    if (kernel.unit_busy_cycles[unit] > 0 && kernel.cycles > 0) {
      section.remarks.push_back(
          fmt::format("unit {} ({}): busy {}",
                      isa::kUnits[unit].letter,
                      isa::kUnits[unit].summary,
                      percent(kernel.unit_busy_cycles[unit] / kernel.cycles)));
    }
  }
  for (const std::string& warning : kernel.warnings) {
    section.remarks.push_back("warning: " + warning);
  }
  return section;
}

ReportSection lines_section(const KernelProfile& kernel) {
  ReportSection section;
  section.title = kernel.name + ": source lines";
  section.header = {"line", "executions", "cycles"};
  std::vector<LineMeasurement> lines = kernel.lines;
  std::stable_sort(
      lines.begin(), lines.end(), [](const LineMeasurement& a, const LineMeasurement& b) {
        return a.cycles > b.cycles;
      });
  for (size_t i = 0; i < lines.size() && i < kMostRows; ++i) {
    section.rows.push_back(
        {lines[i].place, std::to_string(lines[i].count), short_number(lines[i].cycles, 1)});
  }
  return section;
}

ReportSection counters_section(const KernelProfile& kernel) {
  ReportSection section;
  section.title = kernel.name + ": counters";
  section.header = {"counter", "over rows", "value"};
  for (const CounterMeasurement& counter : kernel.counters) {
    if (counter.value != 0) {
      section.rows.push_back({counter.name, counter.combine, short_number(counter.value, 3)});
    }
  }
  return section;
}

/// 0: nothing was simulated.
double simulated_cycles(const KernelProfile& kernel, std::string_view machine) {
  const SimulatedKernel* simulated = kernel.find_simulation(machine);
  return simulated == nullptr ? 0 : simulated->cycles;
}

std::string text_of(const WrongOrder& wrong) {
  return fmt::format(
      "{}: the device runs {} in {} and {} in {} cycles, the simulator in {} and {}: "
      "whoever believes it takes the slower",
      wrong.a->group,
      wrong.a->name,
      short_number(wrong.a->cycles, 1),
      wrong.b->name,
      short_number(wrong.b->cycles, 1),
      short_number(wrong.predicted_a, 1),
      short_number(wrong.predicted_b, 1));
}

ReportSection summary_section(const Profile& profile, std::string_view machine) {
  ReportSection section;
  section.title = "Kernels";
  section.header = {"kernel", "device", "deviation", "error", "simulator", "difference"};
  size_t patterns = 0;
  std::vector<double> truth;
  std::vector<double> predicted;
  for (const KernelProfile& kernel : profile.kernels) {
    if (kernel.micro.is_set()) {
      ++patterns;
      continue;
    }
    const double simulated = simulated_cycles(kernel, machine);
    const bool has = simulated > 0;
    section.rows.push_back({kernel.name,
                            kernel.cycles > 0 ? short_number(kernel.cycles, 1) : "not recorded",
                            short_number(kernel.spread, 1),
                            short_number(kernel.error, 2),
                            has ? short_number(simulated, 1) : "-",
                            has ? signed_percent(kernel.cycles, simulated) : "-"});
    if (has) {
      truth.push_back(kernel.cycles);
      predicted.push_back(simulated);
    }
  }
  if (patterns != 0) {
    section.remarks.push_back(fmt::format(
        "{} microbenchmark kernels; `ptoprof calibrate` makes figures of them", patterns));
  }
  if (!truth.empty()) {
    const PredictionError error = prediction_error(predicted, truth);
    section.remarks.push_back(
        fmt::format("simulator against device: mean error {}, worst {}{}",
                    percent(error.mean),
                    percent(error.worst),
                    truth.size() > 1
                        ? fmt::format(", ranking (Kendall tau) {}", short_number(error.kendall_tau))
                        : std::string()));
  }
  const auto by_machine = [&](const KernelProfile& kernel) {
    return simulated_cycles(kernel, machine);
  };
  for (const WrongOrder& wrong : find_wrong_orders(profile, by_machine)) {
    section.remarks.push_back("wrong order: " + text_of(wrong));
  }
  return section;
}

// ---------------------------------------------------------------- calibration

ReportSection figures_section(const Calibration& calibration) {
  ReportSection section;
  section.title = "Latency table";
  section.header = {"key", "figure", calibration.base, "fitted", "measured", "error", "evidence"};
  size_t measured = 0;
  size_t changed = 0;
  for (const CalibratedFigure& figure : calibration.figures) {
    if (figure.provenance != Provenance::kMeasured) {
      continue;
    }
    ++measured;
    changed += figure.before != figure.after ? 1 : 0;
    if (figure.before == figure.after && !figure.is_new) {
      continue;
    }
    section.rows.push_back({figure.key,
                            figure.figure,
                            short_number(figure.before),
                            short_number(figure.after),
                            short_number(figure.measured),
                            short_number(figure.error, 3),
                            figure.evidence});
  }
  section.lines.push_back(fmt::format("{} figures measured, {} of them changed{}",
                                      measured,
                                      changed,
                                      section.rows.empty() ? "" : ":"));
  return section;
}

ReportSection kept_section(const Calibration& calibration) {
  ReportSection section;
  section.title = "Kept without a measurement";
  for (const Provenance provenance :
       {Provenance::kPublished, Provenance::kInherited, Provenance::kGuess}) {
    std::string keys;
    size_t count = 0;
    for (const CalibratedFigure& figure : calibration.figures) {
      if (figure.provenance == provenance && figure.figure == "latency") {
        keys += keys.empty() ? figure.key : ", " + figure.key;
        ++count;
      }
    }
    if (count != 0) {
      section.lines.push_back(fmt::format("{} ({}): {}", name(provenance), count, keys));
    }
  }
  if (section.lines.empty()) {
    section.lines.emplace_back("none");
  }
  return section;
}

ReportSection rules_section(const Calibration& calibration) {
  ReportSection section;
  section.title = "Fusion rules";
  if (calibration.rules.empty()) {
    section.lines.emplace_back("none inferred");
    return section;
  }
  section.header = {
      "rule", "first", "second", "connect", "cycles", "measured +- error", "first stays"};
  for (const InferredRule& inferred : calibration.rules) {
    section.rows.push_back(
        {inferred.rule.name,
         inferred.rule.first,
         inferred.rule.second,
         inferred.rule.connect,
         std::to_string(inferred.rule.latency_cycles),
         fmt::format("{} +- {}", short_number(inferred.measured), short_number(inferred.error)),
         inferred.rule.keeps_first ? "yes" : "no"});
    for (const std::string& line : inferred.evidence) {
      section.remarks.push_back(fmt::format("{}: {}", inferred.rule.name, line));
    }
    for (const std::string& line : inferred.open) {
      section.remarks.push_back(
          fmt::format("{}: not told by the data: {}", inferred.rule.name, line));
    }
  }
  return section;
}

ReportSection formulas_section(const Calibration& calibration) {
  ReportSection section;
  section.title = "Formulas";
  section.header = {"what", "cycles", "held-out error", "figure", calibration.base, "fitted"};
  for (const FormulaFigure& formula : calibration.formulas) {
    section.rows.push_back({formula.what,
                            formula.fit.formula("n"),
                            percent(formula.fit.held_out_error),
                            formula.key_path.empty() ? "-" : formula.key_path,
                            formula.key_path.empty() ? "-" : short_number(formula.before, 3),
                            formula.key_path.empty() ? "-" : short_number(formula.after, 3)});
    if (!formula.note.empty()) {
      section.remarks.push_back(fmt::format("{}: {}", formula.what, formula.note));
    }
  }
  section.remarks.emplace_back("outside its range of n a formula is an extrapolation");
  return section;
}

ReportSection prediction_section(const Calibration& calibration) {
  ReportSection section;
  section.title = "Kernels";
  section.header = {
      "kernel", "device", calibration.base, "fitted", "error before", "after", "in fit"};
  for (const KernelPrediction& kernel : calibration.kernels) {
    const bool has = kernel.before > 0 && kernel.problem.empty();
    section.rows.push_back({kernel.name,
                            short_number(kernel.device, 1),
                            has ? short_number(kernel.before, 1) : "-",
                            has ? short_number(kernel.after, 1) : "-",
                            has ? signed_percent(kernel.device, kernel.before) : "-",
                            has ? signed_percent(kernel.device, kernel.after) : "-",
                            kernel.is_held_out ? "held out" : "yes"});
    if (!kernel.problem.empty()) {
      section.remarks.push_back(fmt::format("{}: {}", kernel.name, kernel.problem));
    }
  }
  const auto add = [&](const char* what,
                       const PredictionError& before,
                       const PredictionError& after) {
    if (after.count != 0) {
      section.remarks.push_back(fmt::format(
          "{} ({}): mean error {} before, {} after; worst {} before, {} after; ranking (Kendall "
          "tau) {} before, {} after",
          what,
          after.count,
          percent(before.mean),
          percent(after.mean),
          percent(before.worst),
          percent(after.worst),
          short_number(before.kendall_tau),
          short_number(after.kendall_tau)));
    }
  };
  add("all kernels", calibration.before, calibration.after);
  add("held out", calibration.held_out_before, calibration.held_out_after);
  for (const std::string& wrong : calibration.wrong_decisions) {
    section.remarks.push_back("wrong decision: " + wrong);
  }
  return section;
}

ReportSection data_section(const Calibration& calibration) {
  ReportSection section;
  section.title = "Data";
  if (calibration.patterns != 0) {
    section.lines.push_back(fmt::format("{} microbenchmark patterns, mean held-out error {}",
                                        calibration.patterns,
                                        percent(calibration.pattern_held_out)));
  }
  section.lines.push_back(fmt::format("{} runs rejected", calibration.rejected_runs.size()));
  constexpr size_t kShown = 5;
  for (size_t i = 0; i < calibration.rejected_runs.size() && i < kShown; ++i) {
    section.lines.push_back("  " + calibration.rejected_runs[i]);
  }
  if (calibration.rejected_runs.size() > kShown) {
    section.lines.push_back(fmt::format("  ... {} more, named in the profile",
                                        calibration.rejected_runs.size() - kShown));
  }
  for (size_t i = 0; i < calibration.warnings.size() && i < kMostRows; ++i) {
    section.lines.push_back("warning: " + calibration.warnings[i]);
  }
  return section;
}

bool is_number_cell(const std::string& cell) {
  return !cell.empty() && cell.find_first_not_of("0123456789.-+ %") == std::string::npos;
}

std::string table_text(const ReportSection& section) {
  std::string alignment(section.header.size(), 'r');
  for (const auto& row : section.rows) {
    for (size_t c = 0; c < alignment.size() && c < row.size(); ++c) {
      alignment[c] = is_number_cell(row[c]) ? alignment[c] : 'l';
    }
  }
  sim::TextTable table(alignment);
  table.row(section.header);
  for (const auto& row : section.rows) {
    table.row(row);
  }
  return table.text(2);
}

} // namespace

Report profile_report(const Profile& profile, std::string_view machine) {
  Report report;
  report.title = "Profile of " + profile.device_label();
  if (profile.device.clock_mhz > 0) {
    report.title += fmt::format(" at {} MHz", short_number(profile.device.clock_mhz));
  }
  report.sections.push_back(summary_section(profile, machine));
  for (const KernelProfile& kernel : profile.kernels) {
    if (kernel.micro.is_set()) {
      continue;
    }
    report.sections.push_back(kernel_section(profile, kernel, machine));
    if (!kernel.lines.empty()) {
      report.sections.push_back(lines_section(kernel));
    }
    if (!kernel.counters.empty()) {
      report.sections.push_back(counters_section(kernel));
    }
  }
  return report;
}

Report calibration_report(const Calibration& calibration) {
  Report report;
  report.title = fmt::format("{} calibrated to {}", calibration.base, calibration.device);
  report.sections.push_back(figures_section(calibration));
  report.sections.push_back(rules_section(calibration));
  if (!calibration.formulas.empty()) {
    report.sections.push_back(formulas_section(calibration));
  }
  report.sections.push_back(kept_section(calibration));
  if (!calibration.kernels.empty()) {
    report.sections.push_back(prediction_section(calibration));
  }
  report.sections.push_back(data_section(calibration));
  return report;
}

std::string report_text(const Report& report) {
  std::string out = report.title + "\n";
  for (const ReportSection& section : report.sections) {
    out += "\n" + section.title + "\n";
    for (const std::string& line : section.lines) {
      out += "  " + line + "\n";
    }
    if (!section.rows.empty()) {
      out += table_text(section);
    }
    for (const std::string& remark : section.remarks) {
      out += "  " + remark + "\n";
    }
  }
  return out;
}

std::string report_html(const Report& report) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\n"
      "<style>\nbody {{ font: 14px/1.4 system-ui, sans-serif; margin: 2em; max-width: 80em; }}\n"
      "table {{ border-collapse: collapse; margin: .5em 0; }}\n"
      "th, td {{ border-bottom: 1px solid #ccc; padding: .2em .8em; text-align: left; }}\n"
      "td.number {{ text-align: right; font-variant-numeric: tabular-nums; }}\n"
      "@media (prefers-color-scheme: dark) {{ body {{ background: #181818; color: #ddd; }} }}\n"
      "</style></head><body>\n<h1>{0}</h1>\n",
      sim::escape_html(report.title));
  for (const ReportSection& section : report.sections) {
    out += fmt::format("<h2>{}</h2>\n", sim::escape_html(section.title));
    for (const std::string& line : section.lines) {
      out += fmt::format("<p>{}</p>\n", sim::escape_html(line));
    }
    if (!section.rows.empty()) {
      out += "<table><tr>";
      for (const std::string& cell : section.header) {
        out += fmt::format("<th>{}</th>", sim::escape_html(cell));
      }
      out += "</tr>\n";
      for (const auto& row : section.rows) {
        out += "<tr>";
        for (const std::string& cell : row) {
          out += fmt::format("<td{}>{}</td>",
                             is_number_cell(cell) ? " class=\"number\"" : "",
                             sim::escape_html(cell));
        }
        out += "</tr>\n";
      }
      out += "</table>\n";
    }
    if (!section.remarks.empty()) {
      out += "<ul>\n";
      for (const std::string& remark : section.remarks) {
        out += fmt::format("<li>{}</li>\n", sim::escape_html(remark));
      }
      out += "</ul>\n";
    }
  }
  return out + "</body></html>\n";
}

} // namespace pto::rt
