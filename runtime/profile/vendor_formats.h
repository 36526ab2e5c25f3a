// SPDX-License-Identifier: Apache-2.0
// One function for each format of the vendor's profiler; what they find adds up in Facts. Private
// to runtime/profile/.
#pragma once

#include "isa/insn_desc.h"
#include "runtime/profile/vendor_csv.h"
#include "runtime/profile/vendor_import.h"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pto::rt::detail {

/// A file's name without its folder.
[[nodiscard]] std::string_view base_name(std::string_view name);

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
  std::map<std::string, Sum> insns; // instr_exe
  // Of traces: us instead of cycles, until the clock is known. The simulator writes a trace a core
  // and one of all cores together; the latter counts where there is no other.
  std::map<std::string, Sum> trace_insns;
  std::map<std::string, Sum> summary_insns;
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

  void complain(const std::string& file, int line, std::string message);
  std::optional<CsvTable>
  csv(const VendorFile& file, std::vector<std::string_view> required, bool last_takes_rest = false);

  // Each returns what was read, in words; nothing where an issue says why.
  std::string read_basic_info(const VendorFile& file);
  /// key=value lines.
  std::string read_basic_text(const VendorFile& file);
  /// The eight files with one row a block and sub core: every column a counter; times of pipes are
  /// busy cycles of units besides.
  std::string read_counters(const VendorFile& file);
  std::string read_insns(const VendorFile& file);
  std::string read_lines(const VendorFile& file);
  std::string read_trace(const VendorFile& file);
  std::string read_log(const VendorFile& file, bool is_popped);
  std::string read_icache(const VendorFile& file);
  std::string read_pc_samples(const VendorFile& file);

  Facts facts;

private:
  static void for_lines(std::string_view text, const std::function<void(std::string_view)>& each);
  static std::string rows_text(const CsvTable& table);
  static std::string_view stem_of(std::string_view name);
  /// A core's time, cycles and busiest pipe must agree.
  void check_core(const CsvTable& table,
                  const CsvRow& row,
                  std::string_view core,
                  const std::string& file);
  void check_running_time(const CsvTable& table,
                          const CsvRow& row,
                          double cycles,
                          const std::string& file);
  void warn_once(const std::string& kind, std::string text);
  /// Rates and ratios are averaged, totals of cores take the longest, everything else adds up.
  void add_counter(const std::string& name, double value);

  isa::ProfileIssues& issues_;
  std::set<std::string> warned_;
};

} // namespace pto::rt::detail
