// SPDX-License-Identifier: Apache-2.0
// Stall tables, bubbles and counters for a terminal.
#include "simulator/report/reports.h"
#include "simulator/report/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace pto::sim {

namespace {

constexpr size_t kMaxLineText = 40;

std::string heading(const TimingReport& report, std::string_view what) {
  std::string text = fmt::format("{} of {}\n", what, report.title());
  return report.notice.empty() ? text : text + report.notice + '\n';
}

std::string place_of(const TimingReport& report, const ReportLine& line) {
  return line.pcs.empty() ? std::string() : report.insns[line.pcs.front()].place;
}

std::string per_cycle(double value, double limit, std::string_view what) {
  return limit > 0
             ? fmt::format(
                   "{:.2f} {} a cycle, {:.1f} % of {:g}", value, what, 100 * value / limit, limit)
             : fmt::format("{:.2f} {} a cycle, no limit set", value, what);
}

double limit_of(const std::vector<RoofLimit>& limits, std::string_view name) {
  for (const RoofLimit& limit : limits) {
    if (limit.name == name) {
      return limit.per_cycle;
    }
  }
  return 0;
}

void add_memory(const TimingReport& report, TextTable& table) {
  const MemoryCounters& memory = report.memory;
  const SharedMemory::Counters& shared = report.shared;
  const uint64_t lookups = memory.cache_hits + memory.cache_misses;
  if (memory.requests != 0) {
    table.row(
        {"requests to hbm",
         fmt::format("{}, {:.2f} lines each",
                     memory.requests,
                     static_cast<double>(memory.lines) / static_cast<double>(memory.requests))});
  }
  if (lookups != 0) {
    table.row({"data cache",
               fmt::format("{} of {} lines hit ({})",
                           memory.cache_hits,
                           lookups,
                           share(memory.cache_hits, lookups))});
  }
  if (memory.l1_requests != 0) {
    table.row({"requests to l1",
               fmt::format("{}, {} with bank conflicts ({} more words)",
                           memory.l1_requests,
                           memory.bank_conflict_requests,
                           memory.bank_conflicts)});
  }
  if (memory.copies_in + memory.copies_out != 0) {
    table.row(
        {"copies",
         fmt::format(
             "{} in, {} out, {} bytes", memory.copies_in, memory.copies_out, memory.copy_bytes)});
  }
  const uint64_t sectors = shared.l2_hit_sectors + shared.l2_miss_sectors;
  if (sectors != 0) {
    table.row({"l2",
               fmt::format("{} of {} sectors hit ({}), {} bytes read, {} written",
                           shared.l2_hit_sectors,
                           sectors,
                           share(shared.l2_hit_sectors, sectors),
                           shared.l2_read_bytes,
                           shared.l2_write_bytes)});
  }
  if (shared.atomic_ops != 0) {
    table.row({"atomics", std::to_string(shared.atomic_ops)});
  }
  table.row(
      {"hbm",
       fmt::format("{} bytes read, {} written", shared.hbm_read_bytes, shared.hbm_write_bytes)});
}

} // namespace

std::string stalls_text(const TimingReport& report, size_t max_lines) {
  std::string text = heading(report, "warp cycles");
  const uint64_t all = report.warp_cycles();
  TextTable reasons("lrrl");
  reasons.row({"reason", "cycles", "share", ""});
  reasons.row({"issued",
               std::to_string(report.issued_cycles),
               share(report.issued_cycles, all),
               "the warp issued an instruction"});
  for (const StallReason reason : stalls_by_size(report.stalls)) {
    reasons.row({std::string(info(reason).name),
                 std::to_string(report.stalls[reason]),
                 share(report.stalls[reason], all),
                 std::string(info(reason).meaning)});
  }
  reasons.row({"total", std::to_string(all), share(all, all), ""});
  text += reasons.text(2);

  std::vector<const ReportLine*> lines;
  for (const ReportLine& line : report.lines) {
    if (line.cycles() != 0) {
      lines.push_back(&line);
    }
  }
  std::stable_sort(lines.begin(), lines.end(), [](const ReportLine* a, const ReportLine* b) {
    return a->cycles() > b->cycles();
  });
  TextTable by_line("lrrrll");
  by_line.row({"place", "cycles", "share", "issued", "mostly", "source"});
  for (size_t i = 0; i < lines.size() && i < max_lines; ++i) {
    const ReportLine& line = *lines[i];
    const StallReason reason = largest_stall(line.stalls);
    const size_t begin = std::min(line.text.find_first_not_of(" \t"), line.text.size());
    by_line.row(
        {place_of(report, line),
         std::to_string(line.cycles()),
         share(line.cycles(), all),
         std::to_string(line.issues),
         line.stalls.total() == 0
             ? std::string("issue")
             : fmt::format("{} {}", info(reason).name, share(line.stalls[reason], line.cycles())),
         fit_text(std::string_view(line.text).substr(begin), kMaxLineText)});
  }
  text += "\nby source line\n" + by_line.text(2);
  if (lines.size() > max_lines) {
    text += fmt::format("  and {}\n", counted(lines.size() - max_lines, "more line"));
  }
  return text;
}

std::string bubbles_text(const TimingReport& report, size_t max_bubbles) {
  std::string text = heading(report, "longest bubbles");
  if (report.timeline.empty()) {
    return text + "  none known: no timeline was recorded\n";
  }
  if (report.bubbles.empty()) {
    return text + "  none\n";
  }
  for (size_t i = 0; i < report.bubbles.size() && i < max_bubbles; ++i) {
    const Bubble& bubble = report.bubbles[i];
    text += fmt::format("  {:<5} idle for {}", bubble.unit, counted(bubble.total_cycles, "cycle"));
    if (bubble.count > 1) {
      text += fmt::format(" in {} stretches, the longest {}", bubble.count, bubble.longest_cycles);
    }
    text += fmt::format(" at cycle {} on core {}\n", bubble.longest_from, bubble.core);
    text += fmt::format("        {}\n        hint: {}\n", bubble.text, bubble.hint);
  }
  if (report.timeline_dropped != 0) {
    text += "  (in the recorded part of the run)\n";
  }
  return text;
}

std::string counters_text(const TimingReport& report) {
  std::string text = heading(report, "counters");
  TextTable table("ll");
  table.row({"time",
             fmt::format("{} = {:.3f} us at {:g} MHz",
                         counted(report.cycles, "cycle"),
                         report.microseconds(),
                         report.clock_mhz)});
  table.row({"blocks",
             fmt::format("{} on {} of {}",
                         report.blocks_done,
                         report.cores_used(),
                         counted(report.cores, "core"))});
  table.row({"warp instructions",
             fmt::format("{}, {:.3f} a cycle on each core used",
                         report.warp_insns,
                         static_cast<double>(report.warp_insns) /
                             static_cast<double>(std::max<uint64_t>(report.cycles, 1)) /
                             std::max(1u, report.cores_used()))});
  table.row({"lanes active", fmt::format("{:.1f} %", 100 * report.lane_efficiency)});
  double resident = 0;
  for (const OccupancyPoint& point : report.occupancy) {
    resident += point.warps / static_cast<double>(report.occupancy.size());
  }
  table.row({"resident warps",
             fmt::format("{:.1f} of {} on each core used, on average",
                         resident / std::max(1u, report.cores_used()),
                         report.max_warps_per_core)});
  for (const ReportUnit& unit : report.units) {
    if (unit.issues != 0) {
      table.row(
          {fmt::format("unit {}", unit.name),
           fmt::format("{} ({}); on the busiest core its pipe is taken {:.1f} % of the time{}",
                       counted(unit.issues, "issue"),
                       unit.summary,
                       100 * unit.most_busy_cycles /
                           static_cast<double>(std::max<uint64_t>(report.cycles, 1)),
                       unit.most_under_way_cycles == 0
                           ? std::string()
                           : fmt::format(", work is under way {}",
                                         share(unit.most_under_way_cycles, report.cycles)))});
    }
  }
  add_memory(report, table);
  const Roofline& roofline = report.roofline;
  table.row({"hbm bandwidth",
             per_cycle(roofline.hbm_bytes_per_cycle, limit_of(roofline.memory, "hbm"), "bytes")});
  if (roofline.flops != 0) {
    table.row({"float operations",
               fmt::format("{}, {:.2f} a cycle{}",
                           roofline.flops,
                           roofline.flops_per_cycle,
                           roofline.matrix_flops == 0
                               ? std::string()
                               : fmt::format(", {} of them in the matrix unit",
                                             share(roofline.matrix_flops, roofline.flops)))});
    if (roofline.intensity > 0) {
      table.row({"intensity", fmt::format("{:.3f} operations a byte of hbm", roofline.intensity)});
    }
  }
  table.row({"bound by", fmt::format("{}: {}", roofline.bound, roofline.text)});
  for (const std::string& key : report.missing_keys) {
    table.row(
        {"missing latency",
         fmt::format("{}: {} assumed", key, counted(report.fallback_latency_cycles, "cycle"))});
  }
  return text + table.text(2);
}

} // namespace pto::sim
