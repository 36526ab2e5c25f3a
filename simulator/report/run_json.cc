// SPDX-License-Identifier: Apache-2.0
// A saved run: everything of a TimingReport as JSON. The way back is in run_reader.cc.
#include "simulator/report/run_json.h"

#include "isa/insn_desc.h"
#include "simulator/report/reports.h"
#include "simulator/report/run_fields.h"
#include "simulator/report/timeline_export.h"

#include <fmt/format.h>

#include <array>

namespace pto::sim {

namespace {

using Json = nlohmann::ordered_json;

template <class T, size_t kCount>
Json fields_to_json(const T& value, const std::array<RunField<T>, kCount>& fields) {
  Json json = Json::object();
  for (const RunField<T>& field : fields) {
    json[field.name] = value.*field.member;
  }
  return json;
}

Json stalls_to_json(const StallCycles& stalls) {
  Json json = Json::object();
  for (unsigned r = 0; r < kStallReasonCount; ++r) {
    if (stalls.cycles[r] != 0) {
      json[std::string(kStallInfo[r].name)] = stalls.cycles[r];
    }
  }
  return json;
}

Json dim_to_json(const Dim3& dim) {
  return {dim.x, dim.y, dim.z};
}

Json insn_to_json(const ReportInsn& insn) {
  Json json = {{"pc", insn.pc},
               {"place", insn.place},
               {"text", insn.text},
               {"mnemonic", insn.mnemonic},
               {"file", insn.file},
               {"line", insn.line},
               {"unit", isa::kUnits[insn.unit].letter},
               {"issues", insn.issues},
               {"lane_ops", insn.lane_ops},
               {"flops", insn.flops},
               {"stalls", stalls_to_json(insn.stalls)}};
  if (!insn.stage.empty()) {
    json["stage"] = insn.stage;
  }
  if (insn.wait_event != ReportInsn::kNoWait) {
    json["waits_for"] = insn.wait_event;
  }
  if (insn.is_copy) {
    json["copies"] = insn.is_copy_out ? "out" : "in";
    json["event"] = insn.copy_event;
  }
  if (insn.barrier >= 0) {
    json["barrier"] = insn.barrier;
  }
  if (insn.is_block_scoped) {
    json["block_scoped"] = true;
  }
  return json;
}

Json line_to_json(const ReportLine& line) {
  return {{"file", line.file},
          {"line", line.line},
          {"text", line.text},
          {"pcs", line.pcs},
          {"issues", line.issues},
          {"stalls", stalls_to_json(line.stalls)}};
}

Json core_to_json(const CoreCounters& core) {
  return {{"blocks", core.blocks},
          {"insns", core.insns},
          {"issuing_cycles", core.busy_cycles},
          {"occupied_cycles", core.occupied_cycles},
          {"unit_busy_cycles", core.unit_busy_cycles},
          {"memory", fields_to_json(core.memory, kRunMemoryFields)}};
}

Json warp_to_json(const WarpCounters& warp) {
  return {{"block", warp.block},
          {"warp", warp.warp},
          {"core", warp.core},
          {"start", warp.start_cycle},
          {"elapsed", warp.elapsed_cycles},
          {"issued", warp.issued_cycles},
          {"stalls", stalls_to_json(warp.stalls)}};
}

Json bubble_to_json(const Bubble& bubble) {
  Json json = {{"unit", bubble.unit},
               {"total_cycles", bubble.total_cycles},
               {"count", bubble.count},
               {"longest_cycles", bubble.longest_cycles},
               {"longest_from", bubble.longest_from},
               {"core", bubble.core},
               {"block", bubble.block},
               {"warp", bubble.warp},
               {"ended_by_pc", bubble.ended_by_pc},
               {"at_pc", bubble.at_pc},
               {"reason", info(bubble.reason).name},
               {"text", bubble.text},
               {"hint", bubble.hint}};
  if (bubble.cause_pc != UINT32_MAX) {
    json["cause_pc"] = bubble.cause_pc;
  }
  return json;
}

Json limits_to_json(const std::vector<RoofLimit>& limits) {
  Json json = Json::array();
  for (const RoofLimit& limit : limits) {
    json.push_back(
        {{"name", limit.name}, {"per_cycle", limit.per_cycle}, {"matrix", limit.is_matrix_unit}});
  }
  return json;
}

Json roofline_to_json(const Roofline& roofline) {
  return {{"flops", roofline.flops},
          {"matrix_flops", roofline.matrix_flops},
          {"hbm_bytes", roofline.hbm_bytes},
          {"l2_bytes", roofline.l2_bytes},
          {"memory_limits", limits_to_json(roofline.memory)},
          {"compute_limits", limits_to_json(roofline.compute)},
          {"flops_per_cycle", roofline.flops_per_cycle},
          {"hbm_bytes_per_cycle", roofline.hbm_bytes_per_cycle},
          {"l2_bytes_per_cycle", roofline.l2_bytes_per_cycle},
          {"intensity", roofline.intensity},
          {"bound", roofline.bound},
          {"bound_fraction", roofline.bound_fraction},
          {"text", roofline.text}};
}

template <class T, class F> Json list_to_json(const std::vector<T>& values, F convert) {
  Json json = Json::array();
  for (const T& value : values) {
    json.push_back(convert(value));
  }
  return json;
}

} // namespace

nlohmann::ordered_json run_to_json(const TimingReport& report) {
  Json json = {{"schema", kRunSchema},
               {"notice", report.notice},
               {"kernel", report.kernel},
               {"profile", report.profile},
               {"profile_description", report.profile_description},
               {"status", report.status},
               {"grid", dim_to_json(report.grid)},
               {"block", dim_to_json(report.block)},
               {"clock_mhz", report.clock_mhz},
               {"cycles", report.cycles},
               {"microseconds", report.microseconds()},
               {"cores", report.cores},
               {"blocks_per_core", report.blocks_per_core},
               {"warps_per_block", report.warps_per_block},
               {"max_warps_per_core", report.max_warps_per_core},
               {"blocks_done", report.blocks_done},
               {"warp_insns", report.warp_insns},
               {"lane_insns", report.lane_insns},
               {"issued_cycles", report.issued_cycles},
               {"lane_efficiency", report.lane_efficiency},
               {"stalls", stalls_to_json(report.stalls)},
               {"missing_keys", report.missing_keys},
               {"fallback_latency", report.fallback_latency_cycles},
               {"memory", fields_to_json(report.memory, kRunMemoryFields)},
               {"shared_memory", fields_to_json(report.shared, kRunSharedFields)},
               {"roofline", roofline_to_json(report.roofline)},
               {"bubbles", list_to_json(report.bubbles, bubble_to_json)},
               {"files", report.files},
               {"sources", report.sources},
               {"lines", list_to_json(report.lines, line_to_json)},
               {"insns", list_to_json(report.insns, insn_to_json)}};
  json["units"] = list_to_json(report.units, [](const ReportUnit& unit) {
    return Json{{"name", unit.name},
                {"summary", unit.summary},
                {"issues", unit.issues},
                {"busy_cycles", unit.busy_cycles},
                {"most_busy_cycles", unit.most_busy_cycles},
                {"most_under_way_cycles", unit.most_under_way_cycles}};
  });
  json["core_counters"] = list_to_json(report.core_counters, core_to_json);
  json["occupancy"] = list_to_json(report.occupancy, [](const OccupancyPoint& point) {
    return Json{point.cycle, point.warps, point.issues};
  });
  json["blocks"] = list_to_json(report.blocks, [](const BlockSpan& span) {
    return Json{span.block, span.core, span.dispatch_cycle, span.start_cycle, span.end_cycle};
  });
  return json;
}

std::string run_json(const TimingReport& report) {
  Json json = run_to_json(report);
  json["warps"] = list_to_json(report.warps, warp_to_json);
  std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace);
  text.resize(text.rfind('}'));
  text.erase(text.find_last_not_of(" \n") + 1);
  const TimelineLimits& limits = report.timeline_limits;
  text += fmt::format(",\n \"timeline\": {{\"not_recorded\": {}, \"limits\": [{}, {}, {}, {}],\n"
                      " \"columns\": {},\n \"rows\": {}}}\n}}\n",
                      report.timeline_dropped,
                      limits.max_blocks,
                      limits.from_cycle,
                      limits.to_cycle,
                      limits.max_entries,
                      timeline_columns_json(),
                      timeline_rows_json(report, SIZE_MAX));
  return text;
}

} // namespace pto::sim
