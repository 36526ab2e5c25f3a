// SPDX-License-Identifier: Apache-2.0
// Text and JSON of a run. Nothing in here depends on the host's speed, so outputs can be compared.
#include "simulator/run_report.h"

#include "simulator/report/text_table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace pto::sim {
namespace {

std::string shape_of(const SimOptions& options) {
  return fmt::format("{} {} of {} {}",
                     to_string(options.grid),
                     options.grid.total() == 1 ? "block" : "blocks",
                     to_string(options.block),
                     options.block.total() == 1 ? "lane" : "lanes");
}

double percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string time_text(double microseconds) {
  if (microseconds >= 1000) {
    return fmt::format("{:.4g} ms", microseconds / 1000);
  }
  return fmt::format("{:.4g} us", microseconds);
}

/// Where the warps' cycles went, largest share first.
std::string cycle_shares(const TimedCounters& counters) {
  struct Share {
    std::string_view name;
    uint64_t cycles;
  };
  std::vector<Share> shares;
  for (unsigned i = 0; i < kStallReasonCount; ++i) {
    shares.push_back({kStallInfo[i].name, counters.stalls.cycles[i]});
  }
  std::stable_sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) {
    return a.cycles > b.cycles;
  });
  const uint64_t all = counters.issued_cycles + counters.stalls.total();
  std::string text = fmt::format("issuing {:.1f} %", percent(counters.issued_cycles, all));
  for (const Share& share : shares) {
    if (percent(share.cycles, all) >= 0.1) {
      text += fmt::format(", {} {:.1f} %", share.name, percent(share.cycles, all));
    }
  }
  return text;
}

std::string verbose_text(const KernelRun& run) {
  const TimedCounters& counters = run.timed->counters;
  std::string text;
  text += fmt::format("  lanes active: {:.1f} %\n", 100.0 * counters.lane_efficiency());
  text += fmt::format("  warp cycles: {}\n", cycle_shares(counters));
  const MemoryCounters& memory = counters.memory;
  if (memory.cache_hits + memory.cache_misses != 0) {
    text += fmt::format("  data cache: {} of {} lines hit\n",
                        memory.cache_hits,
                        memory.cache_hits + memory.cache_misses);
  }
  if (memory.l1_requests != 0) {
    text += fmt::format("  scratchpad: {}, {}\n",
                        counted(memory.l1_requests, "request"),
                        counted(memory.bank_conflicts, "bank conflict"));
  }
  text += fmt::format("  hbm: {} bytes read, {} written\n",
                      counters.shared.hbm_read_bytes,
                      counters.shared.hbm_write_bytes);
  for (const std::string& key : run.timed->missing_keys) {
    text += fmt::format("  profile {} has no latency for {}: {} cycles taken\n",
                        run.profile.name,
                        key,
                        run.profile.fallback_latency_cycles);
  }
  return text;
}

nlohmann::json shape_json(const Dim3& dim) {
  return {dim.x, dim.y, dim.z};
}

nlohmann::json fault_json(const Fault& fault, const Program& program) {
  nlohmann::json json = {{"kind", name(fault.kind)},
                         {"message", fault.message},
                         {"pc", fault.pc},
                         {"place", program.place(fault.pc)},
                         {"instruction", program.text(fault.pc)},
                         {"block", fault.block},
                         {"core", fault.core},
                         {"warp", fault.warp}};
  if (fault.lane != kNoLane) {
    json["lane"] = fault.lane;
    json["lane_mask"] = fault.lane_mask;
  }
  if (fault.has_address) {
    json["address"] = fault.address;
    json["size_bytes"] = fault.size_bytes;
    json["allocation"] = fault.allocation;
  }
  if (fault.kind == FaultKind::kTrap) {
    json["trap_code"] = fault.trap_code;
  }
  if (!fault.details.empty()) {
    json["details"] = fault.details;
  }
  return json;
}

nlohmann::json timed_json(const TimedResult& timed) {
  const TimedCounters& counters = timed.counters;
  nlohmann::json stalls = nlohmann::json::object();
  for (unsigned i = 0; i < kStallReasonCount; ++i) {
    stalls[std::string(kStallInfo[i].name)] = counters.stalls.cycles[i];
  }
  const MemoryCounters& memory = counters.memory;
  nlohmann::json sample; // null: every block was timed
  if (timed.sample) {
    sample = {{"timed_blocks", timed.sample->timed_blocks}, {"timed_cycles", counters.cycles}};
  }
  return {{"cycles", timed.total_cycles()},
          {"sample", sample},
          {"microseconds", timed.microseconds()},
          {"lane_efficiency", counters.lane_efficiency()},
          {"issued_cycles", counters.issued_cycles},
          {"stall_cycles", stalls},
          {"memory",
           {{"requests", memory.requests},
            {"lines", memory.lines},
            {"cache_hits", memory.cache_hits},
            {"cache_misses", memory.cache_misses},
            {"l1_requests", memory.l1_requests},
            {"bank_conflicts", memory.bank_conflicts},
            {"copy_bytes", memory.copy_bytes},
            {"l2_read_bytes", counters.shared.l2_read_bytes},
            {"l2_write_bytes", counters.shared.l2_write_bytes},
            {"hbm_read_bytes", counters.shared.hbm_read_bytes},
            {"hbm_write_bytes", counters.shared.hbm_write_bytes}}}};
}

nlohmann::json run_json(const KernelRun& run, const Program& program) {
  nlohmann::json json = {{"profile", run.profile.name},
                         {"status", name(run.result.status)},
                         {"blocks_done", run.result.blocks_done},
                         {"warp_instructions", run.result.counts.warp_insns},
                         {"lane_instructions", run.result.counts.lane_insns}};
  if (run.timed) {
    json.update(timed_json(*run.timed));
  }
  if (!run.device.empty()) {
    json["device"] = run.device;
    if (run.device_microseconds > 0) { // a device without a clock tells no time
      json["microseconds"] = run.device_microseconds;
    }
  }
  if (run.result.fault) {
    json["fault"] = fault_json(*run.result.fault, program);
  }
  return json;
}

nlohmann::json fuzz_json(const ScheduleFuzz& fuzz) {
  nlohmann::json json = {{"schedules", fuzz.tried},
                         {"arrays", fuzz.arrays},
                         {"agree", !fuzz.difference.has_value()},
                         {"interrupted", fuzz.is_interrupted}};
  if (!fuzz.difference && (fuzz.is_interrupted || !fuzz.skipped.empty())) {
    json["agree"] = nullptr; // nobody knows about the orders that were not tried
  }
  if (!fuzz.skipped.empty()) {
    json["skipped"] = fuzz.skipped;
  }
  if (fuzz.difference) {
    const ScheduleDifference& difference = *fuzz.difference;
    json["difference"] = {
        {"schedules", {difference.first, difference.other}},
        {"status", {name(difference.first_status), name(difference.other_status)}}};
    if (difference.is_value()) {
      json["difference"]["array"] = difference.array;
      json["difference"]["index"] = difference.index;
      json["difference"]["values"] = {difference.first_value, difference.other_value};
      json["difference"]["differing"] = difference.differing;
    }
  }
  return json;
}

/// NaN and infinity, which JSON lacks, as null.
nlohmann::json number_json(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

nlohmann::json difference_json(const ElementDifference& difference) {
  nlohmann::json json = {{"index", difference.index},
                         {"got", difference.got},
                         {"expected", difference.expected},
                         {"absolute_error", number_json(difference.absolute)},
                         {"relative_error", number_json(difference.relative)}};
  if (difference.ulps) {
    json["ulps"] = *difference.ulps;
  }
  return json;
}

nlohmann::json expect_json(const ExpectOutcome& outcome) {
  nlohmann::json json = {
      {"name", outcome.file.name}, {"file", outcome.file.path}, {"equal", outcome.is_good()}};
  if (!outcome.comparison) {
    json["error"] = outcome.text;
    return json;
  }
  const Comparison& comparison = *outcome.comparison;
  json["elements"] = comparison.count;
  json["differing"] = comparison.differing;
  json["max_absolute_error"] = number_json(comparison.max_absolute);
  json["max_relative_error"] = number_json(comparison.max_relative);
  if (comparison.first) {
    json["first"] = difference_json(*comparison.first);
    json["worst"] = difference_json(*comparison.worst);
  }
  return json;
}

const HostArray& array_of(const RunReport& report, std::string_view array_name) {
  const auto& arguments = *report.arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].param.name == array_name) {
      return report.runs.front().arrays[i];
    }
  }
  PTO_CHECK(false);
  return report.runs.front().arrays.front();
}

ElementType shown_type(const HostArray& array) {
  return array.element.value_or(ElementType{ElementClass::kBits, 1});
}

} // namespace

std::string summary_text(const RunReport& report) {
  const KernelRun& run = report.runs.front();
  const std::string stop =
      run.is_completed() ? "" : fmt::format("stopped ({}) after ", name(run.result.status));
  if (!run.device.empty()) {
    return fmt::format("{}: {}: {}{} on {}\n",
                       report.program->kernel().name,
                       shape_of(*report.options),
                       stop,
                       run.device_microseconds > 0
                           ? time_text(run.device_microseconds)
                           : counted(run.result.counts.warp_insns, "warp instruction"),
                       run.device);
  }
  std::string text = fmt::format("{}: {}: {}{}",
                                 report.program->kernel().name,
                                 shape_of(*report.options),
                                 stop,
                                 counted(run.result.counts.warp_insns, "warp instruction"));
  if (run.timed) {
    text += fmt::format(" in {}{} ({} at {:g} MHz, {})",
                        run.timed->sample ? "about " : "",
                        counted(run.timed->total_cycles(), "cycle"),
                        time_text(run.timed->microseconds()),
                        run.profile.clock_mhz,
                        run.profile.name);
  }
  text += '\n';
  if (run.timed && run.timed->sample) {
    text += fmt::format("  estimated from the first {} in {}, which other figures are about\n",
                        counted(run.timed->sample->timed_blocks, "block"),
                        counted(run.timed->counters.cycles, "cycle"));
  }
  if (report.options->is_verbose && run.timed) {
    text += verbose_text(run);
  }
  return text;
}

std::string comparison_table(const RunReport& report) {
  std::vector<std::vector<std::string>> rows = {
      {"profile", "cores", "MHz", "cycles", "time", "against first", "largest stall"}};
  const double first = report.runs.front().timed->microseconds();
  for (const KernelRun& run : report.runs) {
    const TimedCounters& counters = run.timed->counters;
    const auto largest =
        std::max_element(counters.stalls.cycles.begin(), counters.stalls.cycles.end());
    const auto index = static_cast<size_t>(largest - counters.stalls.cycles.begin());
    const uint64_t all = counters.issued_cycles + counters.stalls.total();
    rows.push_back({run.profile.name,
                    std::to_string(run.profile.cores),
                    fmt::format("{:g}", run.profile.clock_mhz),
                    std::to_string(run.timed->total_cycles()),
                    time_text(run.timed->microseconds()),
                    fmt::format("{:.2f}", run.timed->microseconds() / first),
                    fmt::format("{} {:.0f} %", kStallInfo[index].name, percent(*largest, all))});
  }
  std::string text =
      fmt::format("{}: {}\n", report.program->kernel().name, shape_of(*report.options));
  for (const std::vector<std::string>& row : rows) {
    for (size_t column = 0; column < row.size(); ++column) {
      size_t width = 0;
      for (const std::vector<std::string>& other : rows) {
        width = std::max(width, other[column].size());
      }
      const bool is_text = column == 0 || column + 1 == row.size();
      const std::string cell = is_text ? fmt::format("{:<{}}", row[column], width)
                                       : fmt::format("{:>{}}", row[column], width);
      text += (column == 0 ? "" : "  ") + cell;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

std::string array_text(std::string_view array_name, const HostArray& array, uint64_t count) {
  constexpr uint64_t kPerLine = 8;
  const ElementType type = shown_type(array);
  const uint64_t size = array.data.size() / type.size_bytes;
  const uint64_t shown = std::min(size, count);
  std::string text =
      fmt::format("{}: {}{}", array_name, to_string(type), shape_to_string(array.shape));
  text += shown < size ? fmt::format(", first {}:\n", shown) : ":\n";
  const size_t label_width =
      shown == 0 ? 0 : index_to_string((shown - 1) / kPerLine * kPerLine, array.shape).size();
  for (uint64_t i = 0; i < shown; ++i) {
    if (i % kPerLine == 0) {
      text += fmt::format("  {:<{}}", index_to_string(i, array.shape), label_width);
    }
    text += fmt::format("  {}", format_element(type, array.data.data() + i * type.size_bytes));
    if (i % kPerLine == kPerLine - 1 || i + 1 == shown) {
      text += '\n';
    }
  }
  return text;
}

std::string stop_text(const RunReport& report, const KernelRun& run) {
  const RunResult& result = run.result;
  const std::string progress = fmt::format("{} of {} blocks done, {} executed",
                                           result.blocks_done,
                                           report.options->grid.total(),
                                           counted(result.counts.warp_insns, "warp instruction"));
  switch (result.status) {
  case RunStatus::kCompleted:
    return {};
  case RunStatus::kFault:
  case RunStatus::kDeadlock: {
    std::string text = format_fault(*result.fault, *report.program);
    if (text.empty() || text.back() != '\n') {
      text += '\n';
    }
    return text;
  }
  case RunStatus::kLimit: {
    const bool is_cycles = run.timed && result.counts.warp_insns < report.options->max_insns;
    // The warps of a block run together past the limit, and a grid ends some cycles after its last
    // block: then everything was done, but not in time.
    std::string text = fmt::format(
        "ptosim: {} {} {}: {}\n",
        result.blocks_done == report.options->grid.total() ? "took more than" : "stopped at",
        is_cycles ? "--max-cycles" : "--max-instructions",
        is_cycles ? report.options->max_cycles : report.options->max_insns,
        progress);
    if (result.fault) {
      text += format_fault(*result.fault, *report.program);
    }
    return text;
  }
  case RunStatus::kInterrupted:
    return fmt::format("ptosim: interrupted: {}\n", progress);
  }
  return {};
}

std::string findings_text(const RunReport& report, const KernelRun& run) {
  std::string text;
  for (const Finding& finding : run.findings) {
    if (!finding.is_stop) { // that one is in stop_text
      text += format_finding(finding, *report.program);
    }
  }
  if (!run.findings.empty()) {
    text +=
        fmt::format("ptosim: the checks found {}{}\n",
                    counted(run.findings.size(), "problem"),
                    run.findings_dropped == 0 ? std::string()
                                              : fmt::format(" and {} more", run.findings_dropped));
  }
  return text;
}

std::string report_json(const RunReport& report) {
  const SimOptions& options = *report.options;
  const KernelRun& first = report.runs.front();
  nlohmann::json json = run_json(first, *report.program);
  json["file"] = options.file;
  json["kernel"] = report.program->kernel().name;
  json["mode"] = !options.device.empty()    ? "device"
                 : options.is_functional    ? "functional"
                 : options.schedule.empty() ? "timed"
                                            : options.schedule;
  json["grid"] = shape_json(options.grid);
  json["block"] = shape_json(options.block);
  if (report.runs.size() > 1) {
    for (const KernelRun& run : report.runs) {
      json["profiles"].push_back(run_json(run, *report.program));
    }
    json["disagreements"] = report.disagreements;
  }
  json["findings"] = nlohmann::json::array();
  for (const Finding& finding : first.findings) {
    json["findings"].push_back(nlohmann::json::parse(finding_json(finding, *report.program)));
  }
  if (report.fuzz) {
    json["schedule_fuzz"] = fuzz_json(*report.fuzz);
  }
  json["prints"] = nlohmann::json::array();
  for (const PrintLine& line : first.result.prints) {
    json["prints"].push_back({{"block", line.block},
                              {"warp", line.warp},
                              {"lane", line.lane},
                              {"place", report.program->place(line.pc)},
                              {"text", line.text}});
  }
  json["outputs"] = nlohmann::json::array();
  for (const WrittenFile& written : report.written) {
    json["outputs"].push_back({{"name", written.file.name},
                               {"file", written.file.path},
                               {"type", written.type},
                               {"shape", written.shape}});
  }
  json["reports"] = report.report_files;
  json["expects"] = nlohmann::json::array();
  for (const ExpectOutcome& outcome : report.expects) {
    json["expects"].push_back(expect_json(outcome));
  }
  for (const PrintRequest& request : options.prints) {
    const HostArray& array = array_of(report, request.name);
    const ElementType type = shown_type(array);
    nlohmann::json values = nlohmann::json::array();
    const uint64_t count = std::min<uint64_t>(request.count, array.data.size() / type.size_bytes);
    for (uint64_t i = 0; i < count; ++i) {
      values.push_back(format_element(type, array.data.data() + i * type.size_bytes));
    }
    json["arrays"][request.name] = {
        {"type", to_string(type)}, {"shape", array.shape}, {"first", values}};
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

} // namespace pto::sim
