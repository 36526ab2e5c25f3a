// SPDX-License-Identifier: Apache-2.0
// Two runs beside each other. Runs of different kernels or sources can be compared too: lines that
// only one of them has are listed as such.
#include "simulator/report/reports.h"
#include "simulator/report/text_table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

namespace pto::sim {

namespace {

constexpr size_t kMaxLines = 12;
constexpr size_t kMaxText = 36;

struct Counter {
  std::string name;
  uint64_t before = 0;
  uint64_t after = 0;
};

/// Cycles of a source line, and where it stands in each run; empty: not there.
struct LineCounter {
  Counter cycles;
  std::string before_place;
  std::string after_place;
};

std::string change(uint64_t before, uint64_t after) {
  if (before == after) {
    return "=";
  }
  if (before == 0) {
    return "new";
  }
  const double ratio = static_cast<double>(after) / static_cast<double>(before) - 1;
  return fmt::format("{:+.1f} %", 100 * ratio);
}

std::string delta(uint64_t before, uint64_t after) {
  return fmt::format("{:+d}", static_cast<int64_t>(after - before));
}

std::vector<Counter> counters_of(const TimingReport& a, const TimingReport& b) {
  return {{"cycles", a.cycles, b.cycles},
          {"warp instructions", a.warp_insns, b.warp_insns},
          {"lane instructions", a.lane_insns, b.lane_insns},
          {"cores used", a.cores_used(), b.cores_used()},
          {"requests to hbm", a.memory.requests, b.memory.requests},
          {"lines of them", a.memory.lines, b.memory.lines},
          {"data cache hits", a.memory.cache_hits, b.memory.cache_hits},
          {"data cache misses", a.memory.cache_misses, b.memory.cache_misses},
          {"requests to l1", a.memory.l1_requests, b.memory.l1_requests},
          {"bank conflicts", a.memory.bank_conflicts, b.memory.bank_conflicts},
          {"copied bytes", a.memory.copy_bytes, b.memory.copy_bytes},
          {"hbm bytes read", a.shared.hbm_read_bytes, b.shared.hbm_read_bytes},
          {"hbm bytes written", a.shared.hbm_write_bytes, b.shared.hbm_write_bytes},
          {"float operations", a.roofline.flops, b.roofline.flops}};
}

std::vector<Counter> stalls_of(const TimingReport& a, const TimingReport& b) {
  std::vector<Counter> counters = {{"issued", a.issued_cycles, b.issued_cycles}};
  for (unsigned r = 0; r < kStallReasonCount; ++r) {
    if (a.stalls.cycles[r] + b.stalls.cycles[r] != 0) {
      counters.push_back({std::string(kStallInfo[r].name), a.stalls.cycles[r], b.stalls.cycles[r]});
    }
  }
  return counters;
}

/// Without its comment and with single blanks, so that a line is recognised after an edit beside
/// it.
std::string code_of(std::string_view text) {
  std::string code;
  for (const char c : text.substr(0, text.find("//"))) {
    const bool is_blank = c == ' ' || c == '\t';
    if (!is_blank || (!code.empty() && code.back() != ' ')) {
      code += is_blank ? ' ' : c;
    }
  }
  code.erase(code.find_last_not_of(' ') + 1);
  return code;
}

/// "18", with its file where there are several, "insn 4" where lines are unknown.
std::string place_of(const TimingReport& report, const ReportLine& line) {
  if (line.line == 0) {
    return line.pcs.empty() ? std::string("?") : fmt::format("insn {}", line.pcs.front());
  }
  if (report.files.size() <= 1) {
    return std::to_string(line.line);
  }
  const std::string& file = report.files[line.file];
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), line.line);
}

/// Lines by what they say: the number moves when a line is inserted before. Of equal lines the
/// first of one run stands for the first of the other, and so on.
std::vector<LineCounter> lines_of(const TimingReport& a, const TimingReport& b) {
  std::map<std::pair<std::string, size_t>, size_t> index_of; // of the text that comes so often
  std::vector<LineCounter> result;
  const auto add =
      [&](const TimingReport& report, uint64_t Counter::*side, std::string LineCounter::*place) {
        std::map<std::string, size_t> seen;
        for (const ReportLine& line : report.lines) {
          const std::string text = code_of(line.text);
          const auto [found, is_new] = index_of.try_emplace({text, seen[text]++}, result.size());
          if (is_new) {
            result.push_back({{text, 0, 0}, {}, {}});
          }
          LineCounter& counter = result[found->second];
          counter.cycles.*side = line.cycles();
          counter.*place = place_of(report, line);
        }
      };
  add(a, &Counter::before, &LineCounter::before_place);
  add(b, &Counter::after, &LineCounter::after_place);
  const auto size = [](const LineCounter& line) {
    const Counter& c = line.cycles;
    return c.before > c.after ? c.before - c.after : c.after - c.before;
  };
  std::stable_sort(result.begin(), result.end(), [&](const LineCounter& x, const LineCounter& y) {
    return size(x) > size(y);
  });
  std::erase_if(result, [&](const LineCounter& line) { return size(line) == 0; });
  return result;
}

/// "18", "18 -> 20", "- -> 20".
std::string places_text(const LineCounter& line) {
  if (line.before_place == line.after_place) {
    return line.before_place;
  }
  const auto or_dash = [](const std::string& place) { return place.empty() ? "-" : place; };
  return fmt::format("{} -> {}", or_dash(line.before_place), or_dash(line.after_place));
}

/// What other than the time is not the same; empty where nothing is.
std::vector<std::string> differences(const TimingReport& a, const TimingReport& b) {
  std::vector<std::string> result;
  if (a.kernel != b.kernel) {
    result.push_back(fmt::format("kernel ({}, {})", a.kernel, b.kernel));
  }
  if (a.grid != b.grid || a.block != b.block) {
    result.push_back(fmt::format("launch (<<<{}, {}>>>, <<<{}, {}>>>)",
                                 to_string(a.grid),
                                 to_string(a.block),
                                 to_string(b.grid),
                                 to_string(b.block)));
  }
  if (a.profile != b.profile) {
    result.push_back(fmt::format("machine ({}, {})", a.profile, b.profile));
  }
  return result;
}

nlohmann::ordered_json to_json(const std::vector<Counter>& counters) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Counter& counter : counters) {
    json.push_back({{"name", counter.name}, {"before", counter.before}, {"after", counter.after}});
  }
  return json;
}

nlohmann::ordered_json to_json(const std::vector<LineCounter>& lines) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  const auto or_null = [](const std::string& place) {
    return place.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(place);
  };
  for (const LineCounter& line : lines) {
    json.push_back({{"name", line.cycles.name},
                    {"before_place", or_null(line.before_place)},
                    {"after_place", or_null(line.after_place)},
                    {"before", line.cycles.before},
                    {"after", line.cycles.after}});
  }
  return json;
}

} // namespace

std::string diff_text(const TimingReport& before,
                      const TimingReport& after,
                      std::string_view before_name,
                      std::string_view after_name) {
  std::string text =
      fmt::format("{}: {}\n{}: {}\n", before_name, before.title(), after_name, after.title());
  for (const TimingReport* report : {&before, &after}) {
    if (!report->notice.empty()) {
      text += report->notice + '\n';
    }
  }
  if (const std::vector<std::string> others = differences(before, after); !others.empty()) {
    text += fmt::format("note: the runs differ in their {}\n", fmt::join(others, ", "));
  }
  const double speed =
      after.cycles == 0 || before.cycles == 0 ? 1 : before.microseconds() / after.microseconds();
  text += fmt::format("{:.3f} us -> {:.3f} us: {}\n\n",
                      before.microseconds(),
                      after.microseconds(),
                      std::abs(speed - 1) < 5e-4 ? std::string("as fast")
                      : speed > 1                ? fmt::format("{:.2f} times as fast", speed)
                                                 : fmt::format("{:.2f} times slower", 1 / speed));
  TextTable table("lrrrr");
  table.row({"", "before", "after", "change", ""});
  for (const Counter& counter : counters_of(before, after)) {
    if (counter.before + counter.after != 0) {
      table.row({counter.name,
                 std::to_string(counter.before),
                 std::to_string(counter.after),
                 delta(counter.before, counter.after),
                 change(counter.before, counter.after)});
    }
  }
  text += table.text() + "\nwarp cycles by reason\n";
  TextTable stalls("lrrrr");
  for (const Counter& counter : stalls_of(before, after)) {
    stalls.row({counter.name,
                std::to_string(counter.before),
                std::to_string(counter.after),
                delta(counter.before, counter.after),
                change(counter.before, counter.after)});
  }
  text += stalls.text(2);
  const std::vector<LineCounter> lines = lines_of(before, after);
  if (lines.empty()) {
    return text + "\nno source line differs\n";
  }
  text += "\nwarp cycles by source line, largest change first\n";
  TextTable by_line("rrrrl");
  by_line.row({"line", "before", "after", "change", "source"});
  for (size_t i = 0; i < lines.size() && i < kMaxLines; ++i) {
    const Counter& cycles = lines[i].cycles;
    by_line.row({places_text(lines[i]),
                 std::to_string(cycles.before),
                 std::to_string(cycles.after),
                 delta(cycles.before, cycles.after),
                 fit_text(cycles.name, kMaxText)});
  }
  text += by_line.text(2);
  if (lines.size() > kMaxLines) {
    text += fmt::format("  and {}\n", counted(lines.size() - kMaxLines, "more line"));
  }
  return text;
}

std::string diff_json(const TimingReport& before, const TimingReport& after) {
  const nlohmann::ordered_json json = {{"schema", "pto-diff-1"},
                                       {"before", before.title()},
                                       {"after", after.title()},
                                       {"differences", differences(before, after)},
                                       {"before_microseconds", before.microseconds()},
                                       {"after_microseconds", after.microseconds()},
                                       {"counters", to_json(counters_of(before, after))},
                                       {"warp_cycles", to_json(stalls_of(before, after))},
                                       {"lines", to_json(lines_of(before, after))}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

} // namespace pto::sim
