// SPDX-License-Identifier: Apache-2.0
// Timeline as CSV and JSON. Written as text piece by piece: a million entries as a tree of JSON
// values would take ten times the memory.
#include "simulator/report/timeline_export.h"

#include "isa/insn_desc.h"
#include "simulator/report/reports.h"
#include "simulator/report/text_table.h"

#include <fmt/format.h>

#include <iterator>

namespace pto::sim {

namespace {

/// A CSV field: in quotes where it must be.
std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) {
    return std::string(text);
  }
  std::string result = "\"";
  for (const char c : text) {
    result += c == '"' ? "\"\"" : std::string(1, c);
  }
  return result + '"';
}

std::string pc_or_empty(uint32_t pc) {
  return pc == UINT32_MAX ? std::string() : std::to_string(pc);
}

std::string pc_or_null(uint32_t pc) {
  return pc == UINT32_MAX ? std::string("null") : std::to_string(pc);
}

} // namespace

std::string timeline_columns_json() {
  return R"(["issue","start","done","core","block","first_warp","last_warp","first_lane","last_lane",)"
         R"("active_lanes","pc","stall","reason","cause_pc","held_by_pc","fused","lane_mask","least_stall"])";
}

std::string timeline_rows_json(const TimingReport& report, size_t max_entries) {
  std::string text = "[";
  auto out = std::back_inserter(text);
  const size_t count = std::min(max_entries, report.timeline.size());
  for (size_t i = 0; i < count; ++i) {
    const TimelineEntry& e = report.timeline[i];
    // -1 where there is no such insn.
    fmt::format_to(out,
                   "{}\n[{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}]",
                   i == 0 ? "" : ",",
                   e.issue_cycle,
                   e.start_cycle,
                   e.done_cycle,
                   e.core,
                   e.block,
                   e.first_warp,
                   e.last_warp,
                   e.first_lane,
                   e.last_lane,
                   e.active_lanes,
                   e.pc,
                   e.stall_cycles,
                   static_cast<unsigned>(e.reason),
                   static_cast<int32_t>(e.cause_pc),
                   static_cast<int32_t>(e.held_by_pc),
                   e.is_fused ? 1 : 0,
                   e.lane_mask,
                   e.least_stall_cycles);
  }
  return text + "]";
}

std::string timeline_csv(const TimingReport& report) {
  std::string text =
      "core,block,first_warp,last_warp,lanes,active_lanes,issue_cycle,start_cycle,"
      "done_cycle,stall_cycles,least_stall_cycles,stall_reason,cause_pc,held_by_pc,pc,place,unit,"
      "mnemonic,stage,fused,insn\n";
  auto out = std::back_inserter(text);
  for (const TimelineEntry& e : report.timeline) {
    const ReportInsn& insn = report.insns[e.pc];
    fmt::format_to(out,
                   "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                   e.core,
                   e.block,
                   e.first_warp,
                   e.last_warp,
                   csv_field(e.lanes()),
                   e.active_lanes,
                   e.issue_cycle,
                   e.start_cycle,
                   e.done_cycle,
                   e.stall_cycles,
                   e.least_stall_cycles,
                   e.stall_cycles == 0 ? std::string_view() : info(e.reason).name,
                   pc_or_empty(e.cause_pc),
                   pc_or_empty(e.held_by_pc),
                   e.pc,
                   csv_field(insn.place),
                   isa::kUnits[insn.unit].letter,
                   insn.mnemonic,
                   csv_field(insn.stage),
                   e.is_fused ? 1 : 0,
                   csv_field(insn.text));
  }
  return text;
}

std::string timeline_json(const TimingReport& report) {
  std::string text;
  auto out = std::back_inserter(text);
  fmt::format_to(out,
                 "{{\n \"schema\": \"pto-timeline-1\",\n \"notice\": {},\n \"kernel\": {},\n"
                 " \"profile\": {},\n \"clock_mhz\": {},\n \"cycles\": {},\n"
                 " \"not_recorded\": {},\n \"entries\": [",
                 json_string(report.notice),
                 json_string(report.kernel),
                 json_string(report.profile),
                 report.clock_mhz,
                 report.cycles,
                 report.timeline_dropped);
  bool is_first = true;
  for (const TimelineEntry& e : report.timeline) {
    const ReportInsn& insn = report.insns[e.pc];
    fmt::format_to(out,
                   "{}\n  {{\"core\": {}, \"block\": {}, \"first_warp\": {}, \"last_warp\": {}, "
                   "\"lanes\": \"{}\", \"active_lanes\": {}, \"issue_cycle\": {}, "
                   "\"start_cycle\": {}, \"done_cycle\": {}, \"stall_cycles\": {}, "
                   "\"least_stall_cycles\": {}, ",
                   is_first ? "" : ",",
                   e.core,
                   e.block,
                   e.first_warp,
                   e.last_warp,
                   e.lanes(),
                   e.active_lanes,
                   e.issue_cycle,
                   e.start_cycle,
                   e.done_cycle,
                   e.stall_cycles,
                   e.least_stall_cycles);
    fmt::format_to(out,
                   "\"stall_reason\": {}, \"cause_pc\": {}, \"held_by_pc\": {}, \"pc\": {}, "
                   "\"file\": {}, \"line\": {}, \"unit\": \"{}\", \"mnemonic\": {}, \"stage\": {}, "
                   "\"fused\": {}, \"insn\": {}}}",
                   e.stall_cycles == 0 ? "null" : json_string(info(e.reason).name),
                   pc_or_null(e.cause_pc),
                   pc_or_null(e.held_by_pc),
                   e.pc,
                   insn.line == 0 ? "null" : json_string(report.files[insn.file]),
                   insn.line == 0 ? std::string("null") : std::to_string(insn.line),
                   isa::kUnits[insn.unit].letter,
                   json_string(insn.mnemonic),
                   json_string(insn.stage),
                   e.is_fused,
                   json_string(insn.text));
    is_first = false;
  }
  return text + "\n ]\n}\n";
}

} // namespace pto::sim
