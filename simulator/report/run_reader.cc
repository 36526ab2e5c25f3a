// SPDX-License-Identifier: Apache-2.0
// A saved run back to the TimingReport that run_json.cc wrote. Any bytes are valid input: what the
// printers rely on is checked here.
#include "isa/clipped.h"
#include "isa/insn_desc.h"
#include "simulator/report/reports.h"
#include "simulator/report/run_fields.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

namespace pto::sim {

namespace {

using Json = nlohmann::ordered_json;

/// A saved run that contradicts itself; caught in read_run.
class RunFormatError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// As messages quote it: whatever a damaged file holds in its place may be long, or no UTF-8.
std::string shown(const Json& json) {
  return json.is_number() ? json.dump() : fmt::format("this {}", json.type_name());
}

/// A limit. The library would make a number of -5 and of 1e300.
template <class T> T whole(const Json& json, uint64_t most = std::numeric_limits<T>::max()) {
  if (!json.is_number_unsigned() || json.get<uint64_t>() > most) {
    throw RunFormatError(
        fmt::format("{} is no count; expected a whole number from 0 to {}", shown(json), most));
  }
  return json.get<T>();
}

/// What was counted or lasted so long; differences of two of them fit 64 bits.
uint64_t count(const Json& json) {
  return whole<uint64_t>(json, std::numeric_limits<int64_t>::max());
}

/// A mean, a share or a rate.
double real(const Json& json) {
  if (!json.is_number() || !(json.get<double>() >= 0)) {
    throw RunFormatError(fmt::format("{} is no figure; expected 0 or more", shown(json)));
  }
  return json.get<double>();
}

/// A pc, or -1 for none.
uint32_t optional_pc(const Json& json) {
  const bool is_none = json.is_number_integer() && json.get<int64_t>() == -1;
  return is_none ? UINT32_MAX : whole<uint32_t>(json);
}

/// An event or barrier, or what stands for none.
int small(const Json& json, const char* key, int absent) {
  const auto found = json.find(key);
  if (found == json.end()) {
    return absent;
  }
  if (!found->is_number_integer() || found->get<int64_t>() < absent ||
      found->get<int64_t>() > UINT16_MAX) {
    throw RunFormatError(fmt::format("{} is no {}", shown(*found), key));
  }
  return found->get<int>();
}

template <class F> auto list_from_json(const Json& json, F convert) {
  std::vector<decltype(convert(json))> values;
  for (const Json& item : json) {
    values.push_back(convert(item));
  }
  return values;
}

template <class T, size_t kCount>
void fields_from_json(const Json& json, T& value, const std::array<RunField<T>, kCount>& fields) {
  for (const RunField<T>& field : fields) {
    value.*field.member = count(json.at(field.name));
  }
}

StallCycles stalls_from_json(const Json& json) {
  StallCycles stalls;
  for (unsigned r = 0; r < kStallReasonCount; ++r) {
    const auto found = json.find(std::string(kStallInfo[r].name));
    stalls.cycles[r] = found == json.end() ? 0 : count(*found);
  }
  return stalls;
}

Dim3 dim_from_json(const Json& json) {
  const Dim3 dim{
      whole<uint32_t>(json.at(0)), whole<uint32_t>(json.at(1)), whole<uint32_t>(json.at(2))};
  if (dim.x == 0 || dim.y == 0 || dim.z == 0) {
    throw RunFormatError(fmt::format("{} is no size", to_string(dim)));
  }
  return dim;
}

ReportInsn insn_from_json(const Json& json) {
  ReportInsn insn;
  insn.pc = whole<uint32_t>(json.at("pc"));
  insn.place = json.at("place").get<std::string>();
  insn.text = json.at("text").get<std::string>();
  insn.mnemonic = json.at("mnemonic").get<std::string>();
  insn.stage = json.value("stage", std::string());
  insn.file = whole<uint32_t>(json.at("file"));
  insn.line = whole<uint32_t>(json.at("line"));
  const std::string letter = json.at("unit").get<std::string>();
  while (insn.unit < isa::kUnitCount && isa::kUnits[insn.unit].letter != letter) {
    ++insn.unit;
  }
  if (insn.unit == isa::kUnitCount) {
    throw RunFormatError(fmt::format("insn {}: no unit '{}'", insn.pc, letter));
  }
  insn.issues = count(json.at("issues"));
  insn.lane_ops = count(json.at("lane_ops"));
  insn.flops = count(json.at("flops"));
  insn.stalls = stalls_from_json(json.at("stalls"));
  insn.wait_event = small(json, "waits_for", ReportInsn::kNoWait);
  insn.is_copy = json.contains("copies");
  insn.is_copy_out = json.value("copies", std::string()) == "out";
  insn.copy_event = small(json, "event", -1);
  insn.barrier = small(json, "barrier", -1);
  insn.is_block_scoped = json.value("block_scoped", false);
  return insn;
}

ReportLine line_from_json(const Json& json) {
  ReportLine line;
  line.file = whole<uint32_t>(json.at("file"));
  line.line = whole<uint32_t>(json.at("line"));
  line.text = json.at("text").get<std::string>();
  line.pcs = list_from_json(json.at("pcs"), [](const Json& pc) { return whole<uint32_t>(pc); });
  line.issues = count(json.at("issues"));
  line.stalls = stalls_from_json(json.at("stalls"));
  return line;
}

CoreCounters core_from_json(const Json& json) {
  CoreCounters core;
  core.blocks = count(json.at("blocks"));
  core.insns = count(json.at("insns"));
  core.busy_cycles = count(json.at("issuing_cycles"));
  core.occupied_cycles = count(json.at("occupied_cycles"));
  for (unsigned unit = 0; unit < isa::kUnitCount; ++unit) {
    core.unit_busy_cycles[unit] = real(json.at("unit_busy_cycles").at(unit));
  }
  fields_from_json(json.at("memory"), core.memory, kRunMemoryFields);
  return core;
}

WarpCounters warp_from_json(const Json& json) {
  WarpCounters warp;
  warp.block = count(json.at("block"));
  warp.warp = whole<uint32_t>(json.at("warp"));
  warp.core = whole<uint32_t>(json.at("core"));
  warp.start_cycle = count(json.at("start"));
  warp.elapsed_cycles = count(json.at("elapsed"));
  warp.issued_cycles = count(json.at("issued"));
  warp.stalls = stalls_from_json(json.at("stalls"));
  return warp;
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
  bubble.total_cycles = count(json.at("total_cycles"));
  bubble.count = count(json.at("count"));
  bubble.longest_cycles = count(json.at("longest_cycles"));
  bubble.longest_from = count(json.at("longest_from"));
  bubble.core = whole<uint32_t>(json.at("core"));
  bubble.block = count(json.at("block"));
  bubble.warp = whole<uint32_t>(json.at("warp"));
  bubble.ended_by_pc = whole<uint32_t>(json.at("ended_by_pc"));
  bubble.at_pc = whole<uint32_t>(json.at("at_pc"));
  bubble.cause_pc = json.contains("cause_pc") ? whole<uint32_t>(json.at("cause_pc")) : UINT32_MAX;
  bubble.reason = reason_from_name(json.at("reason").get<std::string>());
  bubble.text = json.at("text").get<std::string>();
  bubble.hint = json.at("hint").get<std::string>();
  return bubble;
}

std::vector<RoofLimit> limits_from_json(const Json& json) {
  std::vector<RoofLimit> limits;
  for (const Json& item : json) {
    limits.push_back({item.at("name").get<std::string>(),
                      real(item.at("per_cycle")),
                      item.at("matrix").get<bool>()});
  }
  return limits;
}

Roofline roofline_from_json(const Json& json) {
  Roofline roofline;
  roofline.flops = count(json.at("flops"));
  roofline.matrix_flops = count(json.at("matrix_flops"));
  roofline.hbm_bytes = count(json.at("hbm_bytes"));
  roofline.l2_bytes = count(json.at("l2_bytes"));
  roofline.memory = limits_from_json(json.at("memory_limits"));
  roofline.compute = limits_from_json(json.at("compute_limits"));
  roofline.flops_per_cycle = real(json.at("flops_per_cycle"));
  roofline.hbm_bytes_per_cycle = real(json.at("hbm_bytes_per_cycle"));
  roofline.l2_bytes_per_cycle = real(json.at("l2_bytes_per_cycle"));
  roofline.intensity = real(json.at("intensity"));
  roofline.bound = json.at("bound").get<std::string>();
  roofline.bound_fraction = real(json.at("bound_fraction"));
  roofline.text = json.at("text").get<std::string>();
  return roofline;
}

void read_identity(const Json& json, TimingReport& report) {
  report.notice = json.at("notice").get<std::string>();
  report.kernel = json.at("kernel").get<std::string>();
  report.profile = json.at("profile").get<std::string>();
  report.profile_description = json.at("profile_description").get<std::string>();
  report.status = json.at("status").get<std::string>();
  report.grid = dim_from_json(json.at("grid"));
  report.block = dim_from_json(json.at("block"));
  report.clock_mhz = real(json.at("clock_mhz"));
  if (report.clock_mhz == 0) {
    throw RunFormatError("a clock of 0 MHz");
  }
  report.cores = whole<uint32_t>(json.at("cores"));
  report.blocks_per_core = whole<uint32_t>(json.at("blocks_per_core"));
  report.warps_per_block = whole<uint32_t>(json.at("warps_per_block"));
  report.max_warps_per_core = whole<uint32_t>(json.at("max_warps_per_core"));
  report.cycles = count(json.at("cycles"));
  report.blocks_done = count(json.at("blocks_done"));
  report.warp_insns = count(json.at("warp_insns"));
  report.lane_insns = count(json.at("lane_insns"));
  report.issued_cycles = count(json.at("issued_cycles"));
  report.lane_efficiency = real(json.at("lane_efficiency"));
  report.stalls = stalls_from_json(json.at("stalls"));
  report.files = json.at("files").get<std::vector<std::string>>();
  report.sources = json.at("sources").get<std::vector<std::string>>();
  report.sources.resize(report.files.size());
  report.missing_keys = json.at("missing_keys").get<std::vector<std::string>>();
  report.fallback_latency_cycles = whole<uint32_t>(json.at("fallback_latency"));
}

void read_lists(const Json& json, TimingReport& report) {
  report.insns = list_from_json(json.at("insns"), insn_from_json);
  report.lines = list_from_json(json.at("lines"), line_from_json);
  report.units = list_from_json(json.at("units"), [](const Json& item) {
    return ReportUnit{item.at("name").get<std::string>(),
                      item.at("summary").get<std::string>(),
                      count(item.at("issues")),
                      real(item.at("busy_cycles")),
                      real(item.at("most_busy_cycles")),
                      count(item.at("most_under_way_cycles"))};
  });
  report.core_counters = list_from_json(json.at("core_counters"), core_from_json);
  report.blocks = list_from_json(json.at("blocks"), [](const Json& item) {
    return BlockSpan{count(item.at(0)),
                     whole<uint32_t>(item.at(1)),
                     count(item.at(2)),
                     count(item.at(3)),
                     count(item.at(4))};
  });
  report.warps = list_from_json(json.at("warps"), warp_from_json);
  report.occupancy = list_from_json(json.at("occupancy"), [](const Json& item) {
    return OccupancyPoint{count(item.at(0)), real(item.at(1)), real(item.at(2))};
  });
  report.bubbles = list_from_json(json.at("bubbles"), bubble_from_json);
}

void read_timeline(const Json& json, TimingReport& report) {
  report.timeline_dropped = count(json.at("not_recorded"));
  report.timeline_limits.max_blocks = whole<uint64_t>(json.at("limits").at(0));
  report.timeline_limits.from_cycle = whole<uint64_t>(json.at("limits").at(1));
  report.timeline_limits.to_cycle = whole<uint64_t>(json.at("limits").at(2));
  report.timeline_limits.max_entries = whole<uint64_t>(json.at("limits").at(3));
  for (const Json& row : json.at("rows")) {
    TimelineEntry e;
    e.issue_cycle = count(row.at(0));
    e.start_cycle = count(row.at(1));
    e.done_cycle = count(row.at(2));
    e.core = whole<uint32_t>(row.at(3));
    e.block = count(row.at(4));
    e.first_warp = whole<uint32_t>(row.at(5));
    e.last_warp = whole<uint32_t>(row.at(6));
    e.first_lane = whole<uint32_t>(row.at(7));
    e.last_lane = whole<uint32_t>(row.at(8));
    e.active_lanes = whole<uint32_t>(row.at(9));
    e.pc = whole<uint32_t>(row.at(10));
    e.stall_cycles = whole<uint32_t>(row.at(11));
    const unsigned reason = whole<unsigned>(row.at(12));
    e.cause_pc = optional_pc(row.at(13));
    e.held_by_pc = optional_pc(row.at(14));
    e.is_fused = whole<uint32_t>(row.at(15), 1) != 0;
    const bool has_more = row.size() > 16; // runs saved before there was more end here
    e.lane_mask = has_more ? whole<uint32_t>(row.at(16)) : 0;
    e.least_stall_cycles = has_more ? whole<uint32_t>(row.at(17)) : e.stall_cycles;
    const auto is_none_or_pc = [&](uint32_t pc) {
      return pc == UINT32_MAX || pc < report.insns.size();
    };
    if (e.pc >= report.insns.size() || !is_none_or_pc(e.cause_pc) || !is_none_or_pc(e.held_by_pc) ||
        reason >= kStallReasonCount || e.stall_cycles > e.issue_cycle ||
        e.least_stall_cycles > e.stall_cycles) {
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
    if (!is_pc(bubble.ended_by_pc) || !is_pc(bubble.at_pc) ||
        (bubble.cause_pc != UINT32_MAX && !is_pc(bubble.cause_pc))) {
      throw RunFormatError("a bubble names an insn that is not there");
    }
  }
  if (report.units.size() != isa::kUnitCount) {
    throw RunFormatError(
        fmt::format("{} units; expected {}", report.units.size(), isa::kUnitCount));
  }
}

} // namespace

std::optional<TimingReport> read_run(std::string_view text, std::string& error) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) {
    error = "this is no JSON object; expected a run saved with ptosim --report run.json";
    return std::nullopt;
  }
  const auto schema = json.find("schema");
  if (schema == json.end() || *schema != kRunSchema) {
    error =
        fmt::format("its schema is {}; expected \"{}\", a run saved with ptosim --report "
                    "run.json",
                    schema == json.end() ? std::string("missing")
                    : schema->is_string()
                        ? fmt::format("\"{}\"", isa::clipped(schema->get_ref<const std::string&>()))
                        : shown(*schema),
                    kRunSchema);
    return std::nullopt;
  }
  try {
    TimingReport report;
    read_identity(json, report);
    fields_from_json(json.at("memory"), report.memory, kRunMemoryFields);
    fields_from_json(json.at("shared_memory"), report.shared, kRunSharedFields);
    report.roofline = roofline_from_json(json.at("roofline"));
    read_lists(json, report);
    read_timeline(json.at("timeline"), report);
    check_indices(report);
    return report;
  } catch (const RunFormatError& problem) {
    error = isa::clipped(fmt::format("the saved run is damaged: {}", problem.what()));
  } catch (const Json::exception& problem) {
    const std::string_view text_of(problem.what()); // "[json.exception...] what is wrong"
    error = fmt::format("the saved run is damaged: {}", text_of.substr(text_of.find(']') + 2));
  }
  return std::nullopt;
}

} // namespace pto::sim
