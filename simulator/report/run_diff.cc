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

/// Lines by what they say: the number moves when a line is inserted before.
std::vector<Counter> lines_of(const TimingReport& a, const TimingReport& b) {
  std::map<std::string, Counter> lines;
  std::vector<std::string> order;
  const auto add = [&](const TimingReport& report, uint64_t Counter::*side) {
    for (const ReportLine& line : report.lines) {
      const std::string text = code_of(line.text);
      if (lines.find(text) == lines.end()) {
        order.push_back(text);
      }
      Counter& counter = lines[text];
      counter.name = text;
      counter.*side += line.cycles();
    }
  };
  add(a, &Counter::before);
  add(b, &Counter::after);
  std::vector<Counter> result;
  for (const std::string& text : order) {
    result.push_back(lines[text]);
  }
  std::stable_sort(result.begin(), result.end(), [](const Counter& x, const Counter& y) {
    const auto size = [](const Counter& c) {
      return c.before > c.after ? c.before - c.after : c.after - c.before;
    };
    return size(x) > size(y);
  });
  std::erase_if(result, [](const Counter& c) { return c.before == c.after; });
  return result;
}

nlohmann::ordered_json to_json(const std::vector<Counter>& counters) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Counter& counter : counters) {
    json.push_back({{"name", counter.name}, {"before", counter.before}, {"after", counter.after}});
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
  const std::vector<Counter> lines = lines_of(before, after);
  if (lines.empty()) {
    return text + "\nno source line differs\n";
  }
  text += "\nwarp cycles by source line, largest change first\n";
  TextTable by_line("rrrl");
  for (size_t i = 0; i < lines.size() && i < kMaxLines; ++i) {
    by_line.row({std::to_string(lines[i].before),
                 std::to_string(lines[i].after),
                 delta(lines[i].before, lines[i].after),
                 fit_text(lines[i].name, kMaxText)});
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
                                       {"before_microseconds", before.microseconds()},
                                       {"after_microseconds", after.microseconds()},
                                       {"counters", to_json(counters_of(before, after))},
                                       {"warp_cycles", to_json(stalls_of(before, after))},
                                       {"lines", to_json(lines_of(before, after))}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

} // namespace pto::sim
