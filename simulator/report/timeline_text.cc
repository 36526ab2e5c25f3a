// SPDX-License-Identifier: Apache-2.0
// The text Gantt: one row an entry, '=' from issue to result, '.' while the warp waited before it.
#include "simulator/report/reports.h"
#include "simulator/report/text_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace pto::sim {

namespace {

constexpr unsigned kMinBar = 16;
constexpr unsigned kMaxText = 34;
constexpr size_t kMaxLanes = 20;

std::string cycles_of(uint64_t issue, uint64_t done) {
  return fmt::format("{}-{}", issue, done);
}

/// The lanes in a column: of a long list how it begins and how many there are.
std::string short_lanes(const TimelineEntry& entry) {
  std::string text = entry.lanes_text();
  if (text.size() <= kMaxLanes) {
    return text;
  }
  const std::string end = fmt::format(",.. ({})", entry.active_lanes);
  return text.substr(0, text.rfind(',', kMaxLanes - end.size())) + end;
}

struct Row {
  const TimelineEntry* entry = nullptr;
  std::string where; // "0 0" block and core
  std::string lanes;
  std::string text;
  std::string wait; // "244 copy"
};

/// A bar over [from, to) scaled to `width` columns.
std::string bar(const TimelineEntry& entry, uint64_t from, uint64_t to, unsigned width) {
  const double scale =
      static_cast<double>(width) / static_cast<double>(std::max<uint64_t>(to - from, 1));
  const auto column = [&](uint64_t cycle) {
    const uint64_t clipped = std::clamp(cycle, from, to);
    return std::min(width, static_cast<unsigned>(static_cast<double>(clipped - from) * scale));
  };
  std::string text(width, ' ');
  const unsigned issue = std::min(column(entry.issue_cycle), width - 1);
  const unsigned done = column(entry.done_cycle);
  for (unsigned i = column(entry.issue_cycle - entry.stall_cycles); i < issue; ++i) {
    text[i] = '.';
  }
  const unsigned start = column(std::max(entry.start_cycle, entry.issue_cycle));
  for (unsigned i = issue; i < std::max(done, issue + 1); ++i) {
    text[i] = i < start ? '-' : '=';
  }
  text[issue] = entry.is_fused ? '+' : '#';
  return text;
}

/// A line on what the limits of the recording left out; empty where that is nothing.
std::string what_is_missing(const TimingReport& report) {
  if (report.timeline_dropped == 0) {
    return {};
  }
  return fmt::format("{} of {} were not recorded (--trace-blocks, --trace-window, --trace-limit)\n",
                     report.timeline_dropped,
                     counted(report.warp_insns, "warp instruction"));
}

} // namespace

std::string timeline_text(const TimingReport& report, const GanttOptions& options) {
  std::string text = fmt::format("timeline of {}\n", report.title());
  if (!report.notice.empty()) {
    text += report.notice + '\n';
  }
  std::vector<Row> rows;
  uint64_t left_out = 0;
  for (const TimelineEntry& entry : report.timeline) {
    if (entry.issue_cycle < options.from_cycle || entry.issue_cycle > options.to_cycle) {
      continue;
    }
    if (options.max_rows != 0 && rows.size() == options.max_rows) {
      ++left_out;
      continue;
    }
    const ReportInsn& insn = report.insns[entry.pc];
    Row row;
    row.entry = &entry;
    row.where = fmt::format("{}.{}", entry.core, entry.block);
    row.lanes = short_lanes(entry);
    row.text = fit_text(insn.stage.empty() ? insn.text : insn.stage + ": " + insn.text, kMaxText);
    row.wait = entry.stall_cycles == 0
                   ? std::string()
                   : fmt::format("{} {}", entry.stall_text(), info(entry.reason).name);
    rows.push_back(std::move(row));
  }
  if (rows.empty()) {
    text += report.timeline.empty() ? "no entry was recorded\n"
                                    : "no entry lies between these cycles\n";
    return text + what_is_missing(report);
  }
  uint64_t from = UINT64_MAX;
  uint64_t to = 0;
  for (const Row& row : rows) {
    from = std::min(from, row.entry->issue_cycle);
    to = std::max({to, row.entry->done_cycle, row.entry->issue_cycle + 1});
  }
  TextTable plain("lllll");
  plain.row({"core.block", "lanes", "cycles", "place", "instruction"});
  for (const Row& row : rows) {
    plain.row({row.where,
               row.lanes,
               cycles_of(row.entry->issue_cycle, row.entry->done_cycle),
               report.insns[row.entry->pc].place,
               row.text});
  }
  size_t fixed = 0;
  const std::string lines = plain.text();
  for (size_t begin = 0; begin < lines.size();) {
    const size_t end = lines.find('\n', begin);
    fixed = std::max(fixed, text_width(std::string_view(lines).substr(begin, end - begin)));
    begin = end + 1;
  }
  size_t widest_wait = 6;
  for (const Row& row : rows) {
    widest_wait = std::max(widest_wait, row.wait.size());
  }
  const size_t taken = fixed + 2 + widest_wait + 3;
  const auto width = static_cast<unsigned>(
      std::max<size_t>(kMinBar, options.width > taken ? options.width - taken : 0));
  size_t begin = 0;
  for (size_t i = 0; i <= rows.size(); ++i) {
    const size_t end = lines.find('\n', begin);
    std::string line = lines.substr(begin, end - begin);
    line += std::string(fixed - text_width(line) + 2, ' ');
    if (i == 0) {
      const std::string left = std::to_string(from);
      const std::string right = std::to_string(to);
      const size_t gap =
          width > left.size() + right.size() ? width - left.size() - right.size() : 1;
      line += fmt::format("|{}{}{}| waited", left, std::string(gap, ' '), right);
    } else {
      line += fmt::format("|{}| {}", bar(*rows[i - 1].entry, from, to, width), rows[i - 1].wait);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
    begin = end + 1;
  }
  text += "# issue  = under way  - queued in its unit  + joined with the one before  . waits\n";
  if (left_out != 0) {
    text += fmt::format("{} more entries (--timeline=0 shows all)\n", left_out);
  }
  return text + what_is_missing(report);
}

} // namespace pto::sim
