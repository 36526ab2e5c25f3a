// SPDX-License-Identifier: Apache-2.0
// Gathers counters, program and machine into a TimingReport.
#include "simulator/report/timing_report.h"

#include "isa/file_io.h"
#include "isa/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace pto::sim {

namespace {

constexpr unsigned kOccupancySteps = 120;

void describe(const isa::Insn& insn, ReportInsn& line) {
  const isa::InsnDesc& desc = *insn.desc;
  int event = -1;
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    const isa::Operand& operand = insn.operand(i);
    if (operand.kind == isa::OperandKind::kEvent) {
      event = static_cast<int>(operand.index);
    }
  }
  if (desc.has(isa::kAsync)) {
    line.is_copy = true;
    line.copy_event = event;
    // The target is named first: memory outside l1 is a copy out.
    line.is_copy_out = insn.operand(0).kind == isa::OperandKind::kMem &&
                       insn.operand(0).mem().space == isa::Space::kHbm;
  }
  if (desc.has(isa::kWaits)) {
    line.wait_event = event;
  }
  if (desc.has(isa::kBlockBarrier)) {
    line.barrier = insn.operand_count != 0 && insn.operand(0).kind == isa::OperandKind::kImm
                       ? static_cast<int>(insn.operand(0).bits)
                       : 0;
  }
  line.is_block_scoped = desc.scope == isa::Scope::kBlock;
}

std::vector<ReportInsn>
list_insns(const TimedResult& result, const Program& program, const ReportOptions& options) {
  const isa::Object& object = program.object();
  std::vector<ReportInsn> insns(object.code.size());
  for (uint32_t pc = 0; pc < insns.size(); ++pc) {
    ReportInsn& line = insns[pc];
    const isa::Insn& insn = object.code[pc];
    const isa::SourceLoc loc = program.loc(pc);
    line.pc = pc;
    line.place = program.place(pc);
    line.place.erase(0, line.place.find_last_of('/') + 1);
    line.text = program.text(pc);
    line.mnemonic = isa::print_mnemonic(insn, true);
    line.stage = pc < options.stages.size() ? options.stages[pc] : std::string();
    line.file = loc.file;
    line.line = loc.file < object.files.size() ? loc.line : 0;
    line.unit = static_cast<uint8_t>(insn.desc->unit);
    describe(insn, line);
    if (pc < result.counters.by_pc.size()) {
      const PcCounters& counters = result.counters.by_pc[pc];
      line.issues = counters.issues;
      line.lane_ops = counters.lane_ops;
      line.flops = counters.lane_ops * flops_per_lane(insn) + 2 * counters.matrix_macs;
      line.stalls = counters.stalls;
    }
  }
  return insns;
}

/// Line `number` (from 1) of a text, without its end.
std::string line_of(std::string_view text, uint32_t number) {
  size_t begin = 0;
  for (uint32_t line = 1; line < number; ++line) {
    const size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) {
      return {};
    }
    begin = end + 1;
  }
  std::string_view found = text.substr(begin, text.find('\n', begin) - begin);
  if (found.ends_with('\r')) {
    found.remove_suffix(1);
  }
  return std::string(found);
}

std::vector<ReportLine> list_lines(const std::vector<ReportInsn>& insns,
                                   const isa::Function& kernel,
                                   const std::vector<std::string>& sources) {
  std::map<std::pair<uint32_t, uint64_t>, ReportLine> lines;
  for (const ReportInsn& insn : insns) {
    if (insn.issues == 0 && !kernel.contains(insn.pc)) {
      continue; // functions that this kernel does not use
    }
    // Without a line number each insn is a line of its own, after all others.
    const uint64_t key = insn.line != 0 ? insn.line : (uint64_t{1} << 32) + insn.pc;
    ReportLine& line = lines[{insn.line != 0 ? insn.file : UINT32_MAX, key}];
    line.file = insn.file;
    line.line = insn.line;
    if (line.pcs.empty() && insn.line != 0 && insn.file < sources.size()) {
      line.text = line_of(sources[insn.file], insn.line);
    }
    if (line.text.empty()) {
      line.text = insn.text;
    }
    line.pcs.push_back(insn.pc);
    line.issues += insn.issues;
    line.stalls.add(insn.stalls);
  }
  std::vector<ReportLine> result;
  result.reserve(lines.size());
  for (auto& [key, line] : lines) {
    result.push_back(std::move(line));
  }
  return result;
}

/// By unit: cycles in which something was under way, of the core with most.
std::array<uint64_t, isa::kUnitCount> under_way(const TimingReport& report) {
  struct Span {
    uint64_t end = 0;
    uint64_t cycles = 0;
  };
  std::map<uint32_t, std::array<Span, isa::kUnitCount>> cores;
  std::array<uint64_t, isa::kUnitCount> most{};
  // Entries come by issue; what starts later in its queue is counted a little short.
  for (const TimelineEntry& entry : report.timeline) {
    if (report.insns[entry.pc].is_block_scoped && entry.first_warp != 0) {
      continue;
    }
    Span& span = cores[entry.core][entry.unit];
    const uint64_t from = std::max(span.end, std::max(entry.start_cycle, entry.issue_cycle));
    const uint64_t to = std::max(entry.done_cycle, entry.issue_cycle + 1);
    if (to > from) {
      span.cycles += to - from;
      span.end = to;
    }
    most[entry.unit] = std::max(most[entry.unit], span.cycles);
  }
  return most;
}

std::vector<ReportUnit> list_units(const TimingReport& report) {
  const std::array<uint64_t, isa::kUnitCount> busy = under_way(report);
  std::vector<ReportUnit> units;
  for (unsigned u = 0; u < isa::kUnitCount; ++u) {
    ReportUnit unit;
    unit.name = isa::kUnits[u].letter;
    unit.summary = isa::kUnits[u].summary;
    unit.most_under_way_cycles = busy[u];
    for (const ReportInsn& insn : report.insns) {
      unit.issues += insn.unit == u ? insn.issues : 0;
    }
    for (const CoreCounters& core : report.core_counters) {
      unit.busy_cycles += core.unit_busy_cycles[u];
      unit.most_busy_cycles = std::max(unit.most_busy_cycles, core.unit_busy_cycles[u]);
    }
    units.push_back(std::move(unit));
  }
  return units;
}

std::vector<OccupancyPoint> list_occupancy(const TimingReport& report) {
  if (report.cycles == 0) {
    return {};
  }
  const uint64_t count = std::min<uint64_t>(kOccupancySteps, report.cycles);
  const double step = static_cast<double>(report.cycles) / static_cast<double>(count);
  std::vector<OccupancyPoint> points(count);
  for (size_t i = 0; i < count; ++i) {
    points[i].cycle = static_cast<uint64_t>(static_cast<double>(i) * step);
  }
  for (const BlockSpan& span : report.blocks) {
    const auto from = static_cast<double>(span.start_cycle);
    const auto to = static_cast<double>(std::max(span.end_cycle, span.start_cycle));
    const auto first = static_cast<size_t>(from / step);
    for (size_t i = first; i < count && static_cast<double>(i) * step < to; ++i) {
      const double begin = std::max(from, static_cast<double>(i) * step);
      const double end = std::min(to, static_cast<double>(i + 1) * step);
      points[i].warps += std::max(0.0, end - begin) / step * report.warps_per_block;
    }
  }
  for (const TimelineEntry& entry : report.timeline) {
    const auto at = static_cast<size_t>(static_cast<double>(entry.issue_cycle) / step);
    if (at < count) {
      points[at].issues += (entry.last_warp - entry.first_warp + 1) / step;
    }
  }
  return points;
}

} // namespace

std::vector<StallReason> stalls_by_size(const StallCycles& stalls) {
  std::vector<StallReason> reasons;
  for (unsigned r = 0; r < kStallReasonCount; ++r) {
    if (stalls.cycles[r] != 0) {
      reasons.push_back(static_cast<StallReason>(r));
    }
  }
  std::stable_sort(reasons.begin(), reasons.end(), [&](StallReason a, StallReason b) {
    return stalls[a] > stalls[b];
  });
  return reasons;
}

StallReason largest_stall(const StallCycles& stalls) {
  const std::vector<StallReason> reasons = stalls_by_size(stalls);
  return reasons.empty() ? StallReason::kEmpty : reasons.front();
}

uint32_t TimingReport::cores_used() const {
  return static_cast<uint32_t>(
      std::count_if(core_counters.begin(), core_counters.end(), [](const CoreCounters& core) {
        return core.blocks != 0;
      }));
}

std::string TimingReport::title() const {
  return fmt::format("{}<<<{}, {}>>> on {}", kernel, to_string(grid), to_string(block), profile);
}

TimingReport make_timing_report(const TimedResult& result,
                                const Program& program,
                                const isa::MachineProfile& machine,
                                const ReportOptions& options) {
  TimingReport report;
  const TimedCounters& counters = result.counters;
  report.notice = options.notice;
  report.kernel = program.kernel().name;
  report.profile = machine.name;
  report.profile_description = machine.description;
  report.status = name(result.run.status);
  report.grid = options.grid;
  report.block = options.block;
  report.clock_mhz = machine.clock_mhz;
  report.cores = machine.cores;
  report.blocks_per_core = machine.blocks_per_core;
  report.warps_per_block =
      static_cast<uint32_t>((options.block.total() + isa::kWarpLanes - 1) / isa::kWarpLanes);
  report.max_warps_per_core =
      machine.blocks_per_core * (machine.max_lanes_per_block / isa::kWarpLanes);
  report.cycles = counters.cycles;
  report.blocks_done = result.run.blocks_done;
  report.warp_insns = counters.warp_insns;
  report.lane_insns = counters.lane_insns;
  report.issued_cycles = counters.issued_cycles;
  report.lane_efficiency = counters.lane_efficiency();
  report.stalls = counters.stalls;
  report.memory = counters.memory;
  report.shared = counters.shared;
  report.files = program.object().files;
  report.sources = options.sources;
  report.sources.resize(report.files.size());
  report.core_counters = counters.cores;
  report.blocks = counters.blocks;
  report.warps = counters.warps;
  report.timeline = result.timeline.entries();
  report.timeline_dropped = result.timeline.dropped();
  report.timeline_limits = result.timeline.limits();
  report.missing_keys = result.missing_keys;
  report.fallback_latency_cycles = machine.fallback_latency_cycles;
  report.insns = list_insns(result, program, options);
  report.lines = list_lines(report.insns, program.kernel(), options.sources);
  report.units = list_units(report);
  report.occupancy = list_occupancy(report);
  report.bubbles = find_bubbles(report, options.max_bubbles);
  report.roofline = make_roofline(report, machine);
  return report;
}

std::vector<std::string> read_sources(const Program& program) {
  constexpr uint64_t kLimitBytes = 4 << 20;
  std::vector<std::string> sources;
  for (const std::string& path : program.object().files) {
    std::string error;
    std::string text;
    if (const auto bytes = isa::read_file(path, error, kLimitBytes)) {
      text.assign(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    }
    sources.push_back(std::move(text));
  }
  return sources;
}

} // namespace pto::sim
