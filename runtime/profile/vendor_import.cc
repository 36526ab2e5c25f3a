// SPDX-License-Identifier: Apache-2.0
// One function a format; a table says which file name belongs to which.
#include "runtime/profile/vendor_import.h"

#include "isa/file_io.h"
#include "isa/insn_desc.h"
#include "runtime/profile/samples.h"
#include "runtime/profile/vendor_csv.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

namespace pto::rt {

using detail::CsvRow;
using detail::CsvTable;

namespace {

using Json = nlohmann::json;

constexpr size_t kMaxIssues = 20;
constexpr size_t kMaxFiles = 20000;
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 30;
constexpr double kClockTolerance = 0.02;
constexpr size_t kMaxNameBytes = 200;
constexpr size_t kMaxPlaceBytes = 1000;

struct Sum {
  uint64_t count = 0;
  double cycles = 0;
};

/// What all files together say.
struct Facts {
  std::string op_name;
  std::string soc;
  double duration_us = 0;
  double current_mhz = 0;
  double rated_mhz = 0;
  uint32_t blocks = 0;
  double core_cycles = 0; // of the longest core
  double trace_us = 0;    // span of a trace
  std::array<double, isa::kUnitCount> busy{};
  std::map<std::string, Sum> insns;       // instr_exe
  std::map<std::string, Sum> trace_insns; // us instead of cycles, until the clock is known
  std::map<std::string, Sum> log_insns;
  std::map<std::string, Sum> lines;
  std::map<std::string, CounterMeasurement> counters;
  std::map<std::string, std::pair<double, size_t>> means;     // sum and rows, for combine "mean"
  std::map<std::string, std::map<uint64_t, uint64_t>> popped; // by core: id -> tick
  std::map<std::string, std::map<uint64_t, std::pair<uint64_t, std::string>>> completed;
  std::vector<std::string> warnings;

  /// 0 where no file tells it, or none that a chip could have.
  [[nodiscard]] double clock_mhz() const {
    const double mhz = current_mhz > 0 ? current_mhz : rated_mhz;
    return mhz <= 1e5 ? mhz : 0;
  }
};

class Importer {
public:
  explicit Importer(isa::ProfileIssues& issues) : issues_(issues) {}

  void complain(const std::string& file, int line, std::string message) {
    if (issues_.size() < kMaxIssues) {
      issues_.push_back({file, {}, std::move(message), {}, line, line == 0 ? 0 : 1});
    }
  }

  std::optional<CsvTable> csv(const VendorFile& file,
                              std::vector<std::string_view> required,
                              bool last_takes_rest = false) {
    return CsvTable::read(file.bytes, file.name, required, last_takes_rest, issues_);
  }

  std::string read_basic_info(const VendorFile& file) {
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
    return fmt::format("{} operator{}", table->rows().size(), table->rows().size() == 1 ? "" : "s");
  }

  /// key=value lines.
  std::string read_basic_text(const VendorFile& file) {
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

  /// The eight files with one row a block and sub core: every column a counter; times of pipes are
  /// busy cycles of units besides.
  std::string read_counters(const VendorFile& file) {
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

  std::string read_insns(const VendorFile& file) {
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

  std::string read_lines(const VendorFile& file) {
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

  std::string read_trace(const VendorFile& file);
  std::string read_log(const VendorFile& file, bool is_popped);
  std::string read_icache(const VendorFile& file);
  std::string read_pc_samples(const VendorFile& file);

  Facts facts;

private:
  static void for_lines(std::string_view text, const std::function<void(std::string_view)>& each) {
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

  static std::string rows_text(const CsvTable& table) {
    return fmt::format("{} row{}", table.rows().size(), table.rows().size() == 1 ? "" : "s");
  }

  static std::string_view stem_of(std::string_view name) {
    const size_t slash = name.rfind('/');
    name = slash == std::string_view::npos ? name : name.substr(slash + 1);
    name = name.substr(0, name.find('.'));
    const size_t mark = name.rfind('_');
    return mark != std::string_view::npos && name.size() - mark == 18 ? name.substr(0, mark) : name;
  }

  /// A core's time, cycles and busiest pipe must agree.
  void check_core(const CsvTable& table,
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

  void check_running_time(const CsvTable& table,
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

  void warn_once(const std::string& kind, std::string text) {
    if (warned_.insert(kind).second) {
      facts.warnings.push_back(std::move(text));
    }
  }

  /// Rates and ratios are averaged, totals of cores take the longest, everything else adds up.
  void add_counter(const std::string& name, double value) {
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

  isa::ProfileIssues& issues_;
  std::set<std::string> warned_;
};

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
    Sum& sum = facts.trace_insns[pto_key_of(name)];
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

struct FormatReader {
  VendorFormat format;
  bool (*fits)(std::string_view base); // file name without folder
  std::string (*read)(Importer&, const VendorFile&);
};

bool has_stem(std::string_view base, std::string_view stem) {
  return base.starts_with(stem) && base.ends_with(".csv");
}

const std::vector<FormatReader>& readers() {
  static const std::vector<FormatReader> list = {
      // First what tells the clock.
      {{"OpBasicInfo.csv", "name, duration, blocks, clock"},
       [](std::string_view base) { return has_stem(base, "OpBasicInfo"); },
       [](Importer& i, const VendorFile& f) { return i.read_basic_info(f); }},
      {{"op_basic_info.txt", "the same and the SoC, as key=value"},
       [](std::string_view base) { return base == "op_basic_info.txt"; },
       [](Importer& i, const VendorFile& f) { return i.read_basic_text(f); }},
      {{"PipeUtilization.csv", "busy time of pipes by block and core"},
       [](std::string_view base) { return has_stem(base, "PipeUtilization"); },
       [](Importer& i, const VendorFile& f) { return i.read_counters(f); }},
      {{"ArithmeticUtilization.csv, L2Cache.csv, Memory.csv, MemoryL0.csv, MemoryUB.csv, "
        "ResourceConflictRatio.csv",
        "counters by block and core"},
       [](std::string_view base) {
         return has_stem(base, "ArithmeticUtilization") || has_stem(base, "L2Cache") ||
                has_stem(base, "Memory") || has_stem(base, "ResourceConflictRatio");
       },
       [](Importer& i, const VendorFile& f) { return i.read_counters(f); }},
      {{"*_instr_exe.csv", "simulator: executions and cycles of each instruction"},
       [](std::string_view base) {
         return base.ends_with(".csv") && base.find("_instr_exe") != std::string_view::npos;
       },
       [](Importer& i, const VendorFile& f) { return i.read_insns(f); }},
      {{"*_code_exe.csv", "simulator: executions and cycles of each source line"},
       [](std::string_view base) {
         return base.ends_with(".csv") && base.find("_code_exe") != std::string_view::npos;
       },
       [](Importer& i, const VendorFile& f) { return i.read_lines(f); }},
      {{"trace.json", "timeline of pipes or warps: span and instruction times"},
       [](std::string_view base) { return base.ends_with("trace.json"); },
       [](Importer& i, const VendorFile& f) { return i.read_trace(f); }},
      {{"*instr_popped_log.dump", "simulator: ticks at which instructions start"},
       [](std::string_view base) { return base.ends_with("instr_popped_log.dump"); },
       [](Importer& i, const VendorFile& f) { return i.read_log(f, true); }},
      {{"*instr_log.dump", "simulator: ticks at which instructions complete"},
       [](std::string_view base) { return base.ends_with("instr_log.dump"); },
       [](Importer& i, const VendorFile& f) { return i.read_log(f, false); }},
      {{"*icache*.dump", "simulator: reads and misses of the insn cache"},
       [](std::string_view base) {
         return base.ends_with(".dump") && base.find("icache") != std::string_view::npos;
       },
       [](Importer& i, const VendorFile& f) { return i.read_icache(f); }},
      {{"*pc_sampling*.bin", "board: states of warps by program counter, 16-byte records"},
       [](std::string_view base) {
         return base.ends_with(".bin") && base.find("pc_sampling") != std::string_view::npos;
       },
       [](Importer& i, const VendorFile& f) { return i.read_pc_samples(f); }}};
  return list;
}

std::string_view base_name(std::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

void add_insns(const std::map<std::string, Sum>& sums, double factor, KernelProfile& kernel) {
  for (const auto& [key, sum] : sums) {
    if (sum.count != 0) {
      kernel.insns.push_back({key,
                              sum.count,
                              sum.cycles * factor / static_cast<double>(sum.count),
                              0,
                              "as the vendor's profiler counts an instruction"});
    }
  }
}

void join_logs(Facts& facts) {
  for (const auto& [core, insns] : facts.completed) {
    const auto popped = facts.popped.find(core);
    if (popped == facts.popped.end()) {
      continue;
    }
    for (const auto& [id, done] : insns) {
      const auto start = popped->second.find(id);
      if (start != popped->second.end() && done.first >= start->second) {
        Sum& sum = facts.log_insns[pto_key_of(done.second)];
        ++sum.count;
        sum.cycles += static_cast<double>(done.first - start->second);
      }
    }
  }
}

VendorImport finish(Facts& facts, std::string_view source) {
  VendorImport result;
  Profile& profile = result.profile;
  profile.device.name = facts.soc.empty() ? "vendor profiler" : facts.soc;
  profile.device.clock_mhz = facts.clock_mhz();
  profile.tool = "ptoprof import";
  profile.notes.push_back(fmt::format("imported from {}", source));
  KernelProfile kernel;
  kernel.name = facts.op_name.empty() ? "operator" : facts.op_name;
  kernel.source = source;
  kernel.grid.x = std::max(1U, facts.blocks);
  const double clock = facts.clock_mhz();
  kernel.cycles = facts.core_cycles > 0 ? facts.core_cycles : facts.trace_us * clock;
  if (kernel.cycles > 0) {
    kernel.runs.push_back({kernel.cycles, {}});
  }
  if (facts.duration_us > 0) {
    facts.counters["OpBasicInfo.Task Duration(us)"] = {
        "OpBasicInfo.Task Duration(us)", "max", facts.duration_us};
  }
  for (size_t unit = 0; unit < isa::kUnitCount; ++unit) {
    kernel.unit_busy_cycles[unit] = std::min(facts.busy[unit], kernel.cycles);
  }
  join_logs(facts);
  if (!facts.insns.empty()) {
    add_insns(facts.insns, 1, kernel);
  } else if (!facts.log_insns.empty()) {
    add_insns(facts.log_insns, 1, kernel);
  } else if (clock > 0) {
    add_insns(facts.trace_insns, clock, kernel);
  } else if (!facts.trace_insns.empty()) {
    facts.warnings.emplace_back("the trace's times could not be turned into cycles: no file tells "
                                "the clock (OpBasicInfo.csv or op_basic_info.txt)");
  }
  for (const auto& [place, sum] : facts.lines) {
    kernel.lines.push_back({place, sum.count, sum.cycles});
  }
  for (const auto& [name, counter] : facts.counters) {
    kernel.counters.push_back(counter);
  }
  kernel.warnings = facts.warnings;
  profile.kernels.push_back(std::move(kernel));
  return result;
}

std::string skip_reason(std::string_view base) {
  return base == "visualize_data.bin" ? "binary, its layout is not published"
                                      : "no format that ptoprof knows";
}

} // namespace

const std::vector<VendorFormat>& vendor_formats() {
  static const std::vector<VendorFormat> formats = [] {
    std::vector<VendorFormat> list;
    for (const FormatReader& reader : readers()) {
      list.push_back(reader.format);
    }
    return list;
  }();
  return formats;
}

std::string pto_key_of(std::string_view vendor_insn) {
  struct Family {
    std::string_view prefix;
    std::string_view key;
  };
  constexpr Family kFamilies[] = {{"SIMT_LDG_", "LOAD.hbm"},
                                  {"SIMT_STG_", "STORE.hbm"},
                                  {"SIMT_LDS_", "LOAD.l1"},
                                  {"SIMT_STS_", "STORE.l1"}};
  constexpr std::pair<std::string_view, std::string_view> kTypes[] = {{"U8", "u8"},
                                                                      {"S8", "s8"},
                                                                      {"B8", "b8"},
                                                                      {"U16", "u16"},
                                                                      {"S16", "s16"},
                                                                      {"B16", "b16"},
                                                                      {"B32", "b32"},
                                                                      {"B64", "b64"},
                                                                      {"B128", "x4.b32"}};
  for (const Family& family : kFamilies) {
    if (!vendor_insn.starts_with(family.prefix)) {
      continue;
    }
    const std::string_view suffix = vendor_insn.substr(family.prefix.size());
    for (const auto& [vendor, type] : kTypes) {
      if (suffix == vendor) {
        return fmt::format("{}.{}", family.key, type);
      }
    }
  }
  return std::string(vendor_insn.substr(0, 200));
}

std::optional<VendorImport> import_vendor_files(const std::vector<VendorFile>& files,
                                                std::string_view source,
                                                isa::ProfileIssues& issues) {
  const size_t issues_before = issues.size();
  Importer importer(issues);
  std::vector<std::string> read;
  std::set<std::string> known;
  for (const FormatReader& reader : readers()) {
    for (const VendorFile& file : files) {
      if (known.count(file.name) != 0 || !reader.fits(base_name(file.name))) {
        continue;
      }
      known.insert(file.name);
      const std::string what = reader.read(importer, file);
      if (!what.empty()) {
        read.push_back(fmt::format("{}: {}", file.name, what));
      }
    }
  }
  if (issues.size() != issues_before) {
    return std::nullopt;
  }
  if (read.empty()) {
    std::string message = fmt::format(
        "{} file{}, none of a format that ptoprof imports; expected an OPPROF_* folder with",
        files.size(),
        files.size() == 1 ? "" : "s");
    for (const VendorFormat& format : vendor_formats()) {
      message += fmt::format("\n  {}: {}", format.name, format.meaning);
    }
    issues.push_back({std::string(source), {}, std::move(message), {}, 0, 0});
    return std::nullopt;
  }
  VendorImport result = finish(importer.facts, source);
  result.read = std::move(read);
  for (const VendorFile& file : files) {
    if (known.count(file.name) == 0) {
      result.skipped.push_back(fmt::format("{}: {}", file.name, skip_reason(base_name(file.name))));
    }
  }
  return result;
}

std::optional<VendorImport> import_vendor(const std::string& path, isa::ProfileIssues& issues) {
  namespace fs = std::filesystem;
  std::error_code code;
  std::vector<std::string> names;
  const bool is_folder = fs::is_directory(path, code);
  if (is_folder) {
    for (fs::recursive_directory_iterator at(path, code), end; !code && at != end;
         at.increment(code)) {
      if (at->is_regular_file(code)) {
        names.push_back(fs::relative(at->path(), path, code).generic_string());
      }
      if (names.size() > kMaxFiles) {
        issues.push_back({path,
                          {},
                          fmt::format("more than {} files; name one OPPROF_* folder", kMaxFiles),
                          {},
                          0,
                          0});
        return std::nullopt;
      }
    }
    if (code) {
      issues.push_back({path, {}, "cannot be listed: " + code.message(), {}, 0, 0});
      return std::nullopt;
    }
    std::sort(names.begin(), names.end());
  } else {
    names.emplace_back(base_name(path));
  }
  std::vector<VendorFile> files;
  for (const std::string& name : names) {
    const bool is_known =
        std::any_of(readers().begin(), readers().end(), [&](const FormatReader& r) {
          return r.fits(base_name(name));
        });
    VendorFile file{name, {}};
    if (is_known || !is_folder) {
      std::string error;
      const auto bytes = isa::read_file(is_folder ? path + "/" + name : path, error, kMaxFileBytes);
      if (!bytes) {
        issues.push_back({name, {}, error, {}, 0, 0});
        return std::nullopt;
      }
      file.bytes.assign(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    }
    files.push_back(std::move(file));
  }
  return import_vendor_files(files, path, issues);
}

} // namespace pto::rt
