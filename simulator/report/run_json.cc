// SPDX-License-Identifier: Apache-2.0
// A saved run: everything of a TimingReport as JSON and back. Each group of figures has one list of
// names, used in both directions.
#include "simulator/report/run_json.h"

#include "isa/insn_desc.h"
#include "simulator/report/reports.h"
#include "simulator/report/timeline_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pto::sim {

namespace {

using Json = nlohmann::ordered_json;
constexpr std::string_view kSchema = "pto-run-1";

template <class T> struct Field {
  const char* name;
  uint64_t T::*member;
};

constexpr std::array kMemoryFields = {
    Field<MemoryCounters>{"requests", &MemoryCounters::requests},
    Field<MemoryCounters>{"lines", &MemoryCounters::lines},
    Field<MemoryCounters>{"cache_hits", &MemoryCounters::cache_hits},
    Field<MemoryCounters>{"cache_misses", &MemoryCounters::cache_misses},
    Field<MemoryCounters>{"l1_requests", &MemoryCounters::l1_requests},
    Field<MemoryCounters>{"bank_conflicts", &MemoryCounters::bank_conflicts},
    Field<MemoryCounters>{"bank_conflict_requests", &MemoryCounters::bank_conflict_requests},
    Field<MemoryCounters>{"l1_bytes", &MemoryCounters::l1_bytes},
    Field<MemoryCounters>{"hbm_request_bytes", &MemoryCounters::hbm_request_bytes},
    Field<MemoryCounters>{"copies_in", &MemoryCounters::copies_in},
    Field<MemoryCounters>{"copies_out", &MemoryCounters::copies_out},
    Field<MemoryCounters>{"copy_bytes", &MemoryCounters::copy_bytes},
};
using SharedCounters = SharedMemory::Counters;
constexpr std::array kSharedFields = {
    Field<SharedCounters>{"l2_read_bytes", &SharedCounters::l2_read_bytes},
    Field<SharedCounters>{"l2_write_bytes", &SharedCounters::l2_write_bytes},
    Field<SharedCounters>{"l2_hit_sectors", &SharedCounters::l2_hit_sectors},
    Field<SharedCounters>{"l2_miss_sectors", &SharedCounters::l2_miss_sectors},
    Field<SharedCounters>{"hbm_read_bytes", &SharedCounters::hbm_read_bytes},
    Field<SharedCounters>{"hbm_write_bytes", &SharedCounters::hbm_write_bytes},
    Field<SharedCounters>{"atomic_ops", &SharedCounters::atomic_ops},
};

template <class T, size_t kCount>
Json fields_to_json(const T& value, const std::array<Field<T>, kCount>& fields) {
  Json json = Json::object();
  for (const Field<T>& field : fields) {
    json[field.name] = value.*field.member;
  }
  return json;
}

template <class T, size_t kCount>
void fields_from_json(const Json& json, T& value, const std::array<Field<T>, kCount>& fields) {
  for (const Field<T>& field : fields) {
    value.*field.member = json.at(field.name).template get<uint64_t>();
  }
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

StallCycles stalls_from_json(const Json& json) {
  StallCycles stalls;
  for (unsigned r = 0; r < kStallReasonCount; ++r) {
    stalls.cycles[r] = json.value(std::string(kStallInfo[r].name), uint64_t{0});
  }
  return stalls;
}

Json dim_to_json(const Dim3& dim) {
  return {dim.x, dim.y, dim.z};
}

Dim3 dim_from_json(const Json& json) {
  return {json.at(0).get<uint32_t>(), json.at(1).get<uint32_t>(), json.at(2).get<uint32_t>()};
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

ReportInsn insn_from_json(const Json& json) {
  ReportInsn insn;
  insn.pc = json.at("pc").get<uint32_t>();
  insn.place = json.at("place").get<std::string>();
  insn.text = json.at("text").get<std::string>();
  insn.mnemonic = json.at("mnemonic").get<std::string>();
  insn.stage = json.value("stage", std::string());
  insn.file = json.at("file").get<uint32_t>();
  insn.line = json.at("line").get<uint32_t>();
  const std::string letter = json.at("unit").get<std::string>();
  while (insn.unit < isa::kUnitCount && isa::kUnits[insn.unit].letter != letter) {
    ++insn.unit;
  }
  if (insn.unit == isa::kUnitCount) {
    throw RunFormatError(fmt::format("insn {}: no unit '{}'", insn.pc, letter));
  }
  insn.issues = json.at("issues").get<uint64_t>();
  insn.lane_ops = json.at("lane_ops").get<uint64_t>();
  insn.flops = json.at("flops").get<uint64_t>();
  insn.stalls = stalls_from_json(json.at("stalls"));
  insn.wait_event = json.value("waits_for", int{ReportInsn::kNoWait});
  insn.is_copy = json.contains("copies");
  insn.is_copy_out = json.value("copies", std::string()) == "out";
  insn.copy_event = json.value("event", -1);
  insn.barrier = json.value("barrier", -1);
  insn.is_block_scoped = json.value("block_scoped", false);
  return insn;
}

Json line_to_json(const ReportLine& line) {
  return {{"file", line.file},
          {"line", line.line},
          {"text", line.text},
          {"pcs", line.pcs},
          {"issues", line.issues},
          {"stalls", stalls_to_json(line.stalls)}};
}

ReportLine line_from_json(const Json& json) {
  ReportLine line;
  line.file = json.at("file").get<uint32_t>();
  line.line = json.at("line").get<uint32_t>();
  line.text = json.at("text").get<std::string>();
  line.pcs = json.at("pcs").get<std::vector<uint32_t>>();
  line.issues = json.at("issues").get<uint64_t>();
  line.stalls = stalls_from_json(json.at("stalls"));
  return line;
}

Json core_to_json(const CoreCounters& core) {
  return {{"blocks", core.blocks},
          {"insns", core.insns},
          {"issuing_cycles", core.busy_cycles},
          {"occupied_cycles", core.occupied_cycles},
          {"unit_busy_cycles", core.unit_busy_cycles},
          {"memory", fields_to_json(core.memory, kMemoryFields)}};
}

CoreCounters core_from_json(const Json& json) {
  CoreCounters core;
  core.blocks = json.at("blocks").get<uint64_t>();
  core.insns = json.at("insns").get<uint64_t>();
  core.busy_cycles = json.at("issuing_cycles").get<uint64_t>();
  core.occupied_cycles = json.at("occupied_cycles").get<uint64_t>();
  core.unit_busy_cycles = json.at("unit_busy_cycles").get<std::array<double, isa::kUnitCount>>();
  fields_from_json(json.at("memory"), core.memory, kMemoryFields);
  return core;
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

WarpCounters warp_from_json(const Json& json) {
  WarpCounters warp;
  warp.block = json.at("block").get<uint64_t>();
  warp.warp = json.at("warp").get<uint32_t>();
  warp.core = json.at("core").get<uint32_t>();
  warp.start_cycle = json.at("start").get<uint64_t>();
  warp.elapsed_cycles = json.at("elapsed").get<uint64_t>();
  warp.issued_cycles = json.at("issued").get<uint64_t>();
  warp.stalls = stalls_from_json(json.at("stalls"));
  return warp;
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

StallReason reason_from_name(const std::string& name) {
  for (unsigned r = 0; r < kStallReasonCount; ++r) {
    if (kStallInfo[r].name == name) {
      return static_cast<StallReason>(r);
    }
  }
  throw RunFormatError(fmt::format("no stall reason '{}'", name));
}

Bubble bubble_from_json(const Json& json) {
  Bubble bubble;
  bubble.unit = json.at("unit").get<std::string>();
  bubble.total_cycles = json.at("total_cycles").get<uint64_t>();
  bubble.count = json.at("count").get<uint64_t>();
  bubble.longest_cycles = json.at("longest_cycles").get<uint64_t>();
  bubble.longest_from = json.at("longest_from").get<uint64_t>();
  bubble.core = json.at("core").get<uint32_t>();
  bubble.block = json.at("block").get<uint64_t>();
  bubble.warp = json.at("warp").get<uint32_t>();
  bubble.ended_by_pc = json.at("ended_by_pc").get<uint32_t>();
  bubble.at_pc = json.at("at_pc").get<uint32_t>();
  bubble.cause_pc = json.value("cause_pc", UINT32_MAX);
  bubble.reason = reason_from_name(json.at("reason").get<std::string>());
  bubble.text = json.at("text").get<std::string>();
  bubble.hint = json.at("hint").get<std::string>();
  return bubble;
}

Json limits_to_json(const std::vector<RoofLimit>& limits) {
  Json json = Json::array();
  for (const RoofLimit& limit : limits) {
    json.push_back(
        {{"name", limit.name}, {"per_cycle", limit.per_cycle}, {"matrix", limit.is_matrix_unit}});
  }
  return json;
}

std::vector<RoofLimit> limits_from_json(const Json& json) {
  std::vector<RoofLimit> limits;
  for (const Json& item : json) {
    limits.push_back({item.at("name").get<std::string>(),
                      item.at("per_cycle").get<double>(),
                      item.at("matrix").get<bool>()});
  }
  return limits;
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

Roofline roofline_from_json(const Json& json) {
  Roofline roofline;
  roofline.flops = json.at("flops").get<uint64_t>();
  roofline.matrix_flops = json.at("matrix_flops").get<uint64_t>();
  roofline.hbm_bytes = json.at("hbm_bytes").get<uint64_t>();
  roofline.l2_bytes = json.at("l2_bytes").get<uint64_t>();
  roofline.memory = limits_from_json(json.at("memory_limits"));
  roofline.compute = limits_from_json(json.at("compute_limits"));
  roofline.flops_per_cycle = json.at("flops_per_cycle").get<double>();
  roofline.hbm_bytes_per_cycle = json.at("hbm_bytes_per_cycle").get<double>();
  roofline.l2_bytes_per_cycle = json.at("l2_bytes_per_cycle").get<double>();
  roofline.intensity = json.at("intensity").get<double>();
  roofline.bound = json.at("bound").get<std::string>();
  roofline.bound_fraction = json.at("bound_fraction").get<double>();
  roofline.text = json.at("text").get<std::string>();
  return roofline;
}

template <class T, class F> Json list_to_json(const std::vector<T>& values, F convert) {
  Json json = Json::array();
  for (const T& value : values) {
    json.push_back(convert(value));
  }
  return json;
}

template <class F> auto list_from_json(const Json& json, F convert) {
  std::vector<decltype(convert(json))> values;
  for (const Json& item : json) {
    values.push_back(convert(item));
  }
  return values;
}

void read_identity(const Json& json, TimingReport& report) {
  report.notice = json.at("notice").get<std::string>();
  report.kernel = json.at("kernel").get<std::string>();
  report.profile = json.at("profile").get<std::string>();
  report.profile_description = json.at("profile_description").get<std::string>();
  report.status = json.at("status").get<std::string>();
  report.grid = dim_from_json(json.at("grid"));
  report.block = dim_from_json(json.at("block"));
  report.clock_mhz = json.at("clock_mhz").get<double>();
  report.cores = json.at("cores").get<uint32_t>();
  report.blocks_per_core = json.at("blocks_per_core").get<uint32_t>();
  report.warps_per_block = json.at("warps_per_block").get<uint32_t>();
  report.max_warps_per_core = json.at("max_warps_per_core").get<uint32_t>();
  report.cycles = json.at("cycles").get<uint64_t>();
  report.blocks_done = json.at("blocks_done").get<uint64_t>();
  report.warp_insns = json.at("warp_insns").get<uint64_t>();
  report.lane_insns = json.at("lane_insns").get<uint64_t>();
  report.issued_cycles = json.at("issued_cycles").get<uint64_t>();
  report.lane_efficiency = json.at("lane_efficiency").get<double>();
  report.stalls = stalls_from_json(json.at("stalls"));
  report.files = json.at("files").get<std::vector<std::string>>();
  report.sources = json.at("sources").get<std::vector<std::string>>();
  report.sources.resize(report.files.size());
  report.missing_keys = json.at("missing_keys").get<std::vector<std::string>>();
  report.fallback_latency_cycles = json.at("fallback_latency").get<uint32_t>();
}

void read_lists(const Json& json, TimingReport& report) {
  report.insns = list_from_json(json.at("insns"), insn_from_json);
  report.lines = list_from_json(json.at("lines"), line_from_json);
  report.units = list_from_json(json.at("units"), [](const Json& item) {
    return ReportUnit{item.at("name").get<std::string>(),
                      item.at("summary").get<std::string>(),
                      item.at("issues").get<uint64_t>(),
                      item.at("busy_cycles").get<double>(),
                      item.at("most_busy_cycles").get<double>(),
                      item.at("most_under_way_cycles").get<uint64_t>()};
  });
  report.core_counters = list_from_json(json.at("core_counters"), core_from_json);
  report.blocks = list_from_json(json.at("blocks"), [](const Json& item) {
    return BlockSpan{item.at(0).get<uint64_t>(),
                     item.at(1).get<uint32_t>(),
                     item.at(2).get<uint64_t>(),
                     item.at(3).get<uint64_t>(),
                     item.at(4).get<uint64_t>()};
  });
  report.warps = list_from_json(json.at("warps"), warp_from_json);
  report.occupancy = list_from_json(json.at("occupancy"), [](const Json& item) {
    return OccupancyPoint{
        item.at(0).get<uint64_t>(), item.at(1).get<double>(), item.at(2).get<double>()};
  });
  report.bubbles = list_from_json(json.at("bubbles"), bubble_from_json);
}

void read_timeline(const Json& json, TimingReport& report) {
  report.timeline_dropped = json.at("not_recorded").get<uint64_t>();
  report.timeline_limits.max_blocks = json.at("limits").at(0).get<uint64_t>();
  report.timeline_limits.from_cycle = json.at("limits").at(1).get<uint64_t>();
  report.timeline_limits.to_cycle = json.at("limits").at(2).get<uint64_t>();
  report.timeline_limits.max_entries = json.at("limits").at(3).get<uint64_t>();
  for (const Json& row : json.at("rows")) {
    TimelineEntry e;
    e.issue_cycle = row.at(0).get<uint64_t>();
    e.start_cycle = row.at(1).get<uint64_t>();
    e.done_cycle = row.at(2).get<uint64_t>();
    e.core = row.at(3).get<uint32_t>();
    e.block = row.at(4).get<uint64_t>();
    e.first_warp = row.at(5).get<uint32_t>();
    e.last_warp = row.at(6).get<uint32_t>();
    e.first_lane = row.at(7).get<uint32_t>();
    e.last_lane = row.at(8).get<uint32_t>();
    e.active_lanes = row.at(9).get<uint32_t>();
    e.pc = row.at(10).get<uint32_t>();
    e.stall_cycles = row.at(11).get<uint32_t>();
    const unsigned reason = row.at(12).get<unsigned>();
    e.cause_pc = static_cast<uint32_t>(row.at(13).get<int64_t>());
    e.held_by_pc = static_cast<uint32_t>(row.at(14).get<int64_t>());
    e.is_fused = row.at(15).get<int>() != 0;
    if (e.pc >= report.insns.size() || reason >= kStallReasonCount ||
        e.stall_cycles > e.issue_cycle) {
      throw RunFormatError(fmt::format("timeline entry {} is impossible", report.timeline.size()));
    }
    e.reason = static_cast<StallReason>(reason);
    e.unit = report.insns[e.pc].unit;
    report.timeline.push_back(e);
  }
}

/// What the printers rely on, so that an edited file cannot make them read past the end.
void check_indices(const TimingReport& report) {
  const size_t count = report.insns.size();
  const auto is_pc = [&](uint32_t pc) { return pc < count; };
  for (size_t i = 0; i < count; ++i) {
    if (report.insns[i].pc != i ||
        (report.insns[i].line != 0 && report.insns[i].file >= report.files.size())) {
      throw RunFormatError(fmt::format("insn {} does not fit the list", i));
    }
  }
  for (const ReportLine& line : report.lines) {
    if (!std::all_of(line.pcs.begin(), line.pcs.end(), is_pc) ||
        (line.line != 0 && line.file >= report.files.size())) {
      throw RunFormatError(fmt::format("line {} names insns that are not there", line.line));
    }
  }
  for (const Bubble& bubble : report.bubbles) {
    if (!is_pc(bubble.ended_by_pc) || !is_pc(bubble.at_pc)) {
      throw RunFormatError("a bubble names an insn that is not there");
    }
  }
  if (report.units.size() != isa::kUnitCount) {
    throw RunFormatError(
        fmt::format("{} units; expected {}", report.units.size(), isa::kUnitCount));
  }
}

} // namespace

nlohmann::ordered_json run_to_json(const TimingReport& report) {
  Json json = {{"schema", kSchema},
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
               {"memory", fields_to_json(report.memory, kMemoryFields)},
               {"shared_memory", fields_to_json(report.shared, kSharedFields)},
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

std::optional<TimingReport> read_run(std::string_view text, std::string& error) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) {
    error = "this is no JSON object; expected a run saved with ptosim --report run.json";
    return std::nullopt;
  }
  const auto schema = json.find("schema");
  if (schema == json.end() || *schema != kSchema) {
    error = fmt::format("its schema is {}; expected \"{}\", a run saved with ptosim --report "
                        "run.json",
                        schema == json.end() ? std::string("missing") : schema->dump(),
                        kSchema);
    return std::nullopt;
  }
  try {
    TimingReport report;
    read_identity(json, report);
    fields_from_json(json.at("memory"), report.memory, kMemoryFields);
    fields_from_json(json.at("shared_memory"), report.shared, kSharedFields);
    report.roofline = roofline_from_json(json.at("roofline"));
    read_lists(json, report);
    read_timeline(json.at("timeline"), report);
    check_indices(report);
    return report;
  } catch (const RunFormatError& problem) {
    error = fmt::format("the saved run is damaged: {}", problem.what());
  } catch (const Json::exception& problem) {
    const std::string_view text_of(problem.what()); // "[json.exception...] what is wrong"
    error = fmt::format("the saved run is damaged: {}", text_of.substr(text_of.find(']') + 2));
  }
  return std::nullopt;
}

} // namespace pto::sim
