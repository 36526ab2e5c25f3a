// SPDX-License-Identifier: Apache-2.0
// Values of the simulator as plain Python data: faults, findings, timelines, counters.
#include "isa/print.h"
#include "pybind/bindings.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>

namespace pto::py {

namespace {

namespace pyb = pybind11;

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) {
    return static_cast<char>(std::toupper(c));
  });
  return result;
}

void add_place(pyb::dict& to, const sim::Program& program, uint32_t pc) {
  const isa::SourceLoc loc = program.loc(pc);
  const std::vector<std::string>& files = program.object().files;
  to["pc"] = pc;
  to["place"] = program.place(pc);
  to["instruction"] = program.text(pc);
  to["file"] = loc.line != 0 && loc.file < files.size() ? pyb::object(pyb::str(files[loc.file]))
                                                        : pyb::object(pyb::none());
  to["line"] = loc.line != 0 ? pyb::object(pyb::int_(loc.line)) : pyb::object(pyb::none());
  to["column"] = loc.line != 0 ? pyb::object(pyb::int_(loc.column)) : pyb::object(pyb::none());
}

pyb::dict site_dict(const sim::FindingSite& site, const sim::Program& program) {
  pyb::dict result;
  add_place(result, program, site.pc);
  result["block"] = site.block;
  result["warp"] = site.warp;
  pyb::list lanes;
  for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
    if ((site.lane_mask >> lane & 1) != 0) {
      lanes.append(lane);
    }
  }
  result["lanes"] = lanes;
  result["what"] = site.what;
  return result;
}

pyb::dict stall_dict(const sim::StallCycles& stalls) {
  pyb::dict result;
  for (unsigned i = 0; i < sim::kStallReasonCount; ++i) {
    if (stalls.cycles[i] != 0) {
      result[pyb::str(std::string(sim::kStallInfo[i].name))] = stalls.cycles[i];
    }
  }
  return result;
}

pyb::dict finding_dict(const sim::Finding& finding, const sim::Program& program) {
  pyb::dict result;
  result["kind"] = std::string(name(finding.kind));
  result["message"] = finding.message;
  result["hint"] = finding.hint;
  result["kernel"] = program.kernel().name;
  result["here"] = site_dict(finding.here, program);
  result["there"] =
      finding.there ? pyb::object(site_dict(*finding.there, program)) : pyb::object(pyb::none());
  result["space"] = finding.has_address ? pyb::object(pyb::str(std::string(name(finding.space))))
                                        : pyb::object(pyb::none());
  result["address"] =
      finding.has_address ? pyb::object(pyb::int_(finding.address)) : pyb::object(pyb::none());
  result["nbytes"] = finding.size_bytes;
  result["location"] = finding.location;
  result["count"] = finding.count;
  result["text"] = sim::format_finding(finding, program);
  return result;
}

} // namespace

sim::CheckSet read_checks_or_throw(const std::string& text) {
  std::string error;
  const std::optional<sim::CheckSet> checks = sim::parse_checks(text, error);
  if (!checks) {
    throw InputError(error);
  }
  return *checks;
}

pyb::dict fault_dict(const sim::Fault& fault, const sim::Program& program) {
  pyb::dict result;
  add_place(result, program, fault.pc);
  result["kind"] = std::string(name(fault.kind));
  result["reason"] = fault.message;
  result["block"] = fault.block;
  result["core"] = fault.core;
  result["warp"] = fault.warp;
  result["lane"] =
      fault.lane == sim::kNoLane ? pyb::object(pyb::none()) : pyb::object(pyb::int_(fault.lane));
  result["address"] =
      fault.has_address ? pyb::object(pyb::int_(fault.address)) : pyb::object(pyb::none());
  result["allocation"] = fault.allocation;
  result["trap_code"] = fault.kind == sim::FaultKind::kTrap
                            ? pyb::object(pyb::int_(fault.trap_code))
                            : pyb::object(pyb::none());
  result["details"] = fault.details;
  return result;
}

pyb::list findings_list(const std::vector<sim::Finding>& findings, const sim::Program& program) {
  pyb::list result;
  for (const sim::Finding& finding : findings) {
    result.append(finding_dict(finding, program));
  }
  return result;
}

pyb::list timeline_list(const sim::Timeline& timeline, const sim::Program& program) {
  const std::vector<sim::TimelineEntry>& entries = timeline.entries();
  pyb::list result(entries.size());
  // Strings of an insn are the same in every entry of it.
  struct Texts {
    pyb::object mnemonic, text, place, unit;
  };
  std::map<uint32_t, Texts> texts;
  pyb::list reasons;
  for (const sim::StallInfo& stall : sim::kStallInfo) {
    reasons.append(pyb::str(std::string(stall.name)));
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    const sim::TimelineEntry& entry = entries[i];
    auto found = texts.find(entry.pc);
    if (found == texts.end()) {
      const isa::InsnDesc& row = *program.at(entry.pc).insn.desc;
      found = texts
                  .emplace(entry.pc,
                           Texts{pyb::str(upper(row.mnemonic)),
                                 pyb::str(program.text(entry.pc)),
                                 pyb::str(program.place(entry.pc)),
                                 pyb::str(std::string(isa::info(row.unit).letter))})
                  .first;
    }
    const Texts& text = found->second;
    const bool has_stalled = entry.stall_cycles != 0;
    result[i] =
        pyb::make_tuple(entry.issue_cycle,
                        entry.done_cycle,
                        entry.core,
                        entry.block,
                        pyb::make_tuple(entry.first_warp, entry.last_warp),
                        entry.lanes(),
                        text.mnemonic,
                        text.text,
                        text.place,
                        text.unit,
                        entry.stall_cycles,
                        has_stalled ? pyb::object(reasons[static_cast<unsigned>(entry.reason)])
                                    : pyb::object(pyb::str("")),
                        entry.pc,
                        entry.active_lanes,
                        entry.is_fused,
                        entry.least_stall_cycles);
  }
  return result;
}

pyb::dict counters_dict(const sim::TimedResult& timed, const sim::Program& program) {
  const sim::TimedCounters& counters = timed.counters;
  pyb::dict result;
  result["cycles"] = counters.cycles;
  result["microseconds"] = timed.microseconds();
  result["warp_instructions"] = counters.warp_insns;
  result["lane_instructions"] = counters.lane_insns;
  result["lane_efficiency"] = counters.lane_efficiency();
  result["issued_cycles"] = counters.issued_cycles;
  result["stalls"] = stall_dict(counters.stalls);
  result["l2_read_bytes"] = counters.shared.l2_read_bytes;
  result["l2_write_bytes"] = counters.shared.l2_write_bytes;
  result["hbm_read_bytes"] = counters.shared.hbm_read_bytes;
  result["hbm_write_bytes"] = counters.shared.hbm_write_bytes;
  pyb::list instructions;
  for (uint32_t pc = 0; pc < counters.by_pc.size(); ++pc) {
    const sim::PcCounters& at = counters.by_pc[pc];
    if (at.issues == 0) {
      continue;
    }
    pyb::dict row;
    row["pc"] = pc;
    row["place"] = program.place(pc);
    row["text"] = program.text(pc);
    row["issues"] = at.issues;
    row["lanes"] = at.lane_ops;
    row["stall_cycles"] = at.stalls.total();
    row["stalls"] = stall_dict(at.stalls);
    instructions.append(row);
  }
  result["instructions"] = instructions;
  result["missing_latencies"] = timed.missing_keys;
  return result;
}

void bind_sim(pyb::module_& module) {
  pyb::list stalls;
  for (const sim::StallInfo& stall : sim::kStallInfo) {
    stalls.append(pyb::make_tuple(
        std::string(stall.name), std::string(stall.meaning), std::string(stall.hint)));
  }
  module.attr("stall_reasons") = stalls;
  module.def("check_names",
             [](const std::string& text) { static_cast<void>(read_checks_or_throw(text)); });
}

} // namespace pto::py
