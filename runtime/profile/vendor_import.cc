// SPDX-License-Identifier: Apache-2.0
// Which file name belongs to which format, and the profile that all files together make.
#include "runtime/profile/vendor_import.h"

#include "isa/file_io.h"
#include "runtime/profile/vendor_formats.h"
#include "simulator/report/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

namespace pto::rt {

using namespace detail;

namespace {

constexpr size_t kMaxFiles = 20000;
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 30;

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
    add_insns(facts.trace_insns.empty() ? facts.summary_insns : facts.trace_insns, clock, kernel);
  } else if (!facts.trace_insns.empty() || !facts.summary_insns.empty()) {
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
    std::string message =
        fmt::format("{}, none of a format that ptoprof imports; expected an OPPROF_* folder with",
                    sim::counted(files.size(), "file"));
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
        issues.push_back({is_folder ? name : path, {}, error, {}, 0, 0});
        return std::nullopt;
      }
      file.bytes.assign(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    }
    files.push_back(std::move(file));
  }
  const size_t issues_before = issues.size();
  std::optional<VendorImport> imported = import_vendor_files(files, path, issues);
  for (size_t i = issues_before; i < issues.size() && !is_folder; ++i) {
    issues[i].file = path; // as it was given, not the name alone that tells its format
  }
  return imported;
}

} // namespace pto::rt
