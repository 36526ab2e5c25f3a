// SPDX-License-Identifier: Apache-2.0
// Each format: what is read, and what must agree in it.
#include "runtime/profile/vendor_formats.h"

#include "runtime/profile/samples.h"
#include "simulator/report/text_table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

namespace pto::rt::detail {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxIssues = 20;
constexpr double kClockTolerance = 0.02;
constexpr size_t kMaxNameBytes = 200;
constexpr size_t kMaxPlaceBytes = 1000;

/// A JSON value's number, or nothing for what is none or not finite.
std::optional<double> number_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) {
    return std::nullopt;
  }
  const double value = found->get<double>();
  return std::abs(value) <= 1e11 ? std::optional<double>(value) : std::nullopt;
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) {
    return {};
  }
  return found->is_string() ? found->get<std::string>() : found->is_number() ? found->dump() : "";
}

} // namespace

std::string_view base_name(std::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

void Importer::complain(const std::string& file, int line, std::string message) {
  if (issues_.size() < kMaxIssues) {
    issues_.push_back({file, {}, std::move(message), {}, line, line == 0 ? 0 : 1});
  }
}

std::optional<CsvTable> Importer::csv(const VendorFile& file,
                                      std::vector<std::string_view> required,
                                      bool last_takes_rest) {
  return CsvTable::read(file.bytes, file.name, required, last_takes_rest, issues_);
}

std::string Importer::read_basic_info(const VendorFile& file) {
  const auto table = csv(file, {"Op Name", "Task Duration(us)", "Block Dim"});
  if (!table) {
    return {};
  }
  for (const CsvRow& row : table->rows()) {
    const auto text = [&](std::string_view name) {
      const int column = table->column(name);
      return column < 0 ? std::string() : row.fields[static_cast<size_t>(column)];
    };
    const auto number = [&](std::string_view name) {
      return table->number(row, table->column(name), issues_).value_or(0);
    };
    if (!facts.op_name.empty() && facts.op_name != text("Op Name")) {
      facts.warnings.push_back(fmt::format(
          "{}: operator {} besides {}; import one operator's files at a time to tell them apart",
          file.name,
          text("Op Name").substr(0, kMaxNameBytes),
          facts.op_name));
      continue;
    }
    facts.op_name = text("Op Name").substr(0, kMaxNameBytes);
    facts.duration_us = number("Task Duration(us)");
    facts.blocks = static_cast<uint32_t>(std::min(number("Block Dim"), 4e9));
    facts.current_mhz = number("Current Freq");
    facts.rated_mhz = number("Rated Freq");
  }
  return sim::counted(table->rows().size(), "operator");
}

std::string Importer::read_basic_text(const VendorFile& file) {
  size_t count = 0;
  int line_number = 0;
  for_lines(file.bytes, [&](std::string_view line) {
    ++line_number;
    if (line.empty()) {
      return;
    }
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      complain(file.name, line_number, "expected key=value");
      return;
    }
    ++count;
    const std::string_view key = line.substr(0, equals);
    const std::string value(line.substr(equals + 1));
    const double number = detail::parse_amount(value).value_or(0);
    if (key == "Op Name" && facts.op_name.empty()) {
      facts.op_name = value.substr(0, kMaxNameBytes);
    } else if (key == "Run Soc Version") {
      facts.soc = value.substr(0, kMaxNameBytes);
    } else if (key == "Block Dim" && facts.blocks == 0) {
      facts.blocks = static_cast<uint32_t>(std::min(number, 4e9));
    } else if (key == "Current Freq" && number > 0) {
      facts.current_mhz = number;
    } else if (key == "Rated Freq" && number > 0) {
      facts.rated_mhz = number;
    }
  });
  return fmt::format("{} keys", count);
}

std::string Importer::read_counters(const VendorFile& file) {
  const auto table = csv(file, {"block_id", "sub_block_id"});
  if (!table) {
    return {};
  }
  const std::string_view stem = stem_of(file.name);
  for (const CsvRow& row : table->rows()) {
    for (const std::string_view core : {"aic", "aiv"}) {
      check_core(*table, row, core, file.name);
    }
    for (size_t c = 2; c < table->header().size(); ++c) {
      const auto value = table->number(row, static_cast<int>(c), issues_);
      if (value) {
        add_counter(fmt::format("{}.{}", stem, table->header()[c].substr(0, kMaxNameBytes)),
                    *value);
      }
    }
  }
  return rows_text(*table);
}

std::string Importer::read_insns(const VendorFile& file) {
  const auto table = csv(file, {"instr", "call_count", "cycles"}, true);
  if (!table) {
    return {};
  }
  for (const CsvRow& row : table->rows()) {
    const std::string& insn = row.fields[static_cast<size_t>(table->column("instr"))];
    const auto count = table->number(row, table->column("call_count"), issues_);
    const auto cycles = table->number(row, table->column("cycles"), issues_);
    if (count && cycles) {
      Sum& sum = facts.insns[pto_key_of(insn)];
      sum.count += static_cast<uint64_t>(*count);
      sum.cycles += *cycles;
      check_running_time(*table, row, *cycles, file.name);
    }
  }
  return rows_text(*table);
}

std::string Importer::read_lines(const VendorFile& file) {
  const auto table = csv(file, {"code", "call_count", "cycles"});
  if (!table) {
    return {};
  }
  for (const CsvRow& row : table->rows()) {
    const auto count = table->number(row, table->column("call_count"), issues_);
    const auto cycles = table->number(row, table->column("cycles"), issues_);
    if (count && cycles) {
      Sum& sum = facts.lines[row.fields[static_cast<size_t>(table->column("code"))].substr(
          0, kMaxPlaceBytes)];
      sum.count += static_cast<uint64_t>(*count);
      sum.cycles += *cycles;
    }
  }
  return rows_text(*table);
}

void Importer::for_lines(std::string_view text, const std::function<void(std::string_view)>& each) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    each(line);
  }
}

std::string Importer::rows_text(const CsvTable& table) {
  return sim::counted(table.rows().size(), "row");
}

std::string_view Importer::stem_of(std::string_view name) {
  name = base_name(name);
  name = name.substr(0, name.find('.'));
  const size_t mark = name.rfind('_');
  return mark != std::string_view::npos && name.size() - mark == 18 ? name.substr(0, mark) : name;
}

void Importer::check_core(const CsvTable& table,
                          const CsvRow& row,
                          std::string_view core,
                          const std::string& file) {
  const auto get = [&](std::string_view name) {
    return table.number(row, table.column(fmt::format("{}_{}", core, name)), issues_).value_or(0);
  };
  const double cycles = get("total_cycles");
  const double time = get("time(us)");
  if (cycles == 0) {
    return;
  }
  facts.core_cycles = std::max(facts.core_cycles, cycles);
  const double clock = facts.clock_mhz();
  if (time > 0 && clock > 0 && std::abs(time * clock - cycles) > kClockTolerance * cycles) {
    warn_once("clock",
              fmt::format("{}:{}: {} us at {} MHz are {} cycles, but {} are recorded: the clock "
                          "changed or the columns sum over cores",
                          file,
                          row.line,
                          short_number(time, 3),
                          short_number(clock),
                          short_number(time * clock, 0),
                          short_number(cycles, 0)));
  }
  const std::pair<const char*, isa::Unit> pipes[] = {{"scalar_time(us)", isa::Unit::kS},
                                                     {"vec_time(us)", isa::Unit::kV},
                                                     {"cube_time(us)", isa::Unit::kC},
                                                     {"mte2_time(us)", isa::Unit::kD},
                                                     {"mte3_time(us)", isa::Unit::kD}};
  for (const auto& [name, unit] : pipes) {
    const double busy = get(name);
    double& most = facts.busy[static_cast<size_t>(unit)];
    if (time > 0 && busy > time * (1 + kClockTolerance)) {
      warn_once("busy",
                fmt::format("{}:{}: {}_{} is {} us of a core time of {} us; a core cannot end "
                            "before its busiest pipe",
                            file,
                            row.line,
                            core,
                            name,
                            short_number(busy, 3),
                            short_number(time, 3)));
    } else if (time > 0) {
      most = std::max(most, std::min(1.0, busy / time) * cycles);
    }
  }
}

void Importer::check_running_time(const CsvTable& table,
                                  const CsvRow& row,
                                  double cycles,
                                  const std::string& file) {
  const double time = table.number(row, table.column("running_time(us)"), issues_).value_or(0);
  const double clock = facts.clock_mhz();
  if (time > 0 && clock > 0 && cycles > 50 &&
      std::abs(time * clock - cycles) > kClockTolerance * cycles) {
    warn_once("insn clock",
              fmt::format("{}:{}: {} cycles in {} us are no {} MHz",
                          file,
                          row.line,
                          short_number(cycles, 0),
                          short_number(time, 6),
                          short_number(clock)));
  }
}

void Importer::warn_once(const std::string& kind, std::string text) {
  if (warned_.insert(kind).second) {
    facts.warnings.push_back(std::move(text));
  }
}

void Importer::add_counter(const std::string& name, double value) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  const bool is_mean = has("ratio") || has("rate") || has("_bw");
  const bool is_max = has("time(us)") || has("total_cycles");
  CounterMeasurement& counter = facts.counters[name];
  counter.name = name;
  counter.combine = is_mean ? "mean" : is_max ? "max" : "sum";
  if (is_mean) {
    auto& [sum, rows] = facts.means[name];
    sum += value;
    ++rows;
    counter.value = sum / static_cast<double>(rows);
  } else {
    counter.value = is_max ? std::max(counter.value, value) : counter.value + value;
  }
}

std::string Importer::read_trace(const VendorFile& file) {
  bool is_too_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t, Json&) {
    is_too_deep = is_too_deep || depth > 12;
    return depth <= 12;
  };
  Json root;
  try {
    root = Json::parse(file.bytes, watch);
  } catch (const Json::exception&) {
    complain(file.name, 0, "no valid JSON; expected a trace with traceEvents (is it cut short?)");
    return {};
  }
  const auto events = root.is_object() ? root.find("traceEvents") : root.end();
  if (is_too_deep || !root.is_object() || events == root.end() || !events->is_array()) {
    complain(file.name, 0, "expected an object with a list traceEvents");
    return {};
  }
  const std::string folder = std::filesystem::path(file.name).parent_path().filename().string();
  const bool is_of_core = folder.starts_with("core");
  size_t count = 0;
  double begin = 0;
  double end = 0;
  for (const Json& event : *events) {
    if (!event.is_object() || text_of(event, "ph") != "X") {
      continue;
    }
    const auto ts = number_of(event, "ts");
    const auto dur = number_of(event, "dur");
    if (!ts || !dur || *dur < 0) {
      complain(file.name, 0, fmt::format("event {}: expected numbers ts and dur", count));
      return {};
    }
    begin = count == 0 ? *ts : std::min(begin, *ts);
    end = count == 0 ? *ts + *dur : std::max(end, *ts + *dur);
    ++count;
    const std::string name = text_of(event, "name");
    if (name == "SET_FLAG" || name == "WAIT_FLAG" || name.starts_with("Warp_")) {
      continue;
    }
    Sum& sum = (is_of_core ? facts.trace_insns : facts.summary_insns)[pto_key_of(name)];
    ++sum.count;
    sum.cycles += *dur;
  }
  facts.trace_us = std::max(facts.trace_us, end - begin);
  return fmt::format("{} events, span {} us", count, short_number(end - begin, 3));
}

/// "[info] [00000749] (PC: 0x11bbe03c) SCALAR : (Binary: 0x..) (ID: 000123) ADD_IMM  dtype:..."
std::string Importer::read_log(const VendorFile& file, bool is_popped) {
  size_t count = 0;
  int line_number = 0;
  const std::string core = file.name.substr(0, file.name.find("instr_"));
  for_lines(file.bytes, [&](std::string_view line) {
    ++line_number;
    if (line.empty()) {
      return;
    }
    const auto after = [&](std::string_view mark) {
      const size_t at = line.find(mark);
      return at == std::string_view::npos ? std::string_view() : line.substr(at + mark.size());
    };
    const auto whole = [](std::string_view text) -> std::optional<uint64_t> {
      uint64_t value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      return error == std::errc() && end != text.data() ? std::optional<uint64_t>(value)
                                                        : std::nullopt;
    };
    const auto tick = whole(after("[info] ["));
    const std::string_view id_text = after("(ID: ");
    const auto id = whole(id_text);
    const size_t close = id_text.find(") ");
    if (!tick || !id || close == std::string_view::npos) {
      complain(file.name,
               line_number,
               "expected '[info] [tick] (PC: 0x..) PIPE : (Binary: 0x..) (ID: n) NAME'");
      return;
    }
    std::string_view name = id_text.substr(close + 2);
    name = name.substr(0, name.find(' '));
    ++count;
    if (is_popped) {
      facts.popped[core][*id] = *tick;
    } else {
      facts.completed[core][*id] = {*tick, std::string(name)};
    }
  });
  return fmt::format("{} lines", count);
}

std::string Importer::read_icache(const VendorFile& file) {
  size_t misses = 0;
  size_t reads = 0;
  for_lines(file.bytes, [&](std::string_view line) {
    reads += line.find("icache read address") != std::string_view::npos ? 1 : 0;
    misses += line.find("status is MISS") != std::string_view::npos ? 1 : 0;
  });
  add_counter("icache.reads", static_cast<double>(reads));
  add_counter("icache.misses", static_cast<double>(misses));
  return fmt::format("{} reads", reads);
}

/// Records of 16 bytes: a program counter of three and nine counts of states.
std::string Importer::read_pc_samples(const VendorFile& file) {
  constexpr size_t kRecord = 16;
  constexpr size_t kFirstState = 3;
  constexpr std::array<const char*, 9> kStates = {"IBuf_Empty",
                                                  "Nop_Cycles",
                                                  "Scoreboard_Not_Ready",
                                                  "Register_bank_conflict",
                                                  "Resource_conflict",
                                                  "Warp_Level_Sync",
                                                  "Divergence_Stack_Spill",
                                                  "Others",
                                                  "Active"};
  if (file.bytes.size() % kRecord != 0) {
    complain(
        file.name,
        0,
        fmt::format("{} bytes are no whole number of {}-byte records", file.bytes.size(), kRecord));
    return {};
  }
  for (size_t at = 0; at < file.bytes.size(); at += kRecord) {
    for (size_t state = 0; state < kStates.size(); ++state) {
      add_counter(fmt::format("stall.{}", kStates[state]),
                  static_cast<uint8_t>(file.bytes[at + kFirstState + state]));
    }
  }
  return fmt::format("{} records", file.bytes.size() / kRecord);
}

} // namespace pto::rt::detail
