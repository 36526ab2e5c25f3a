// SPDX-License-Identifier: Apache-2.0
// The field table, number limits and the checks that span several figures.
#include "isa/machine_fields.h"

#include "isa/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace pto::isa::detail {

namespace {

constexpr double kMaxCycles = 10'000'000;
constexpr double kMaxCount = 65'536;
constexpr double kMaxBytesPerCycle = 1e6;
constexpr double kMaxBytes = 1e12;

using P = MachineProfile;

// clang-format off
constexpr MachineField kFields[] = {
    {"name", [](P& p) -> FieldRef { return &p.name; }, "", 0, 0, nullptr, "name that --profile takes"},
    {"description", [](P& p) -> FieldRef { return &p.description; }, "", 0, 0, nullptr, "one sentence on the machine"},
    {"source", [](P& p) -> FieldRef { return &p.source; }, "", 0, 0, nullptr, "where the figures as a whole come from"},
    {"clock_mhz", [](P& p) -> FieldRef { return &p.clock_mhz; }, "MHz", 1, 100'000, nullptr, "clock that one cycle refers to"},
    {"cores", [](P& p) -> FieldRef { return &p.cores; }, "cores", 1, 4096, nullptr, "cores that run blocks"},
    {"blocks_per_core", [](P& p) -> FieldRef { return &p.blocks_per_core; }, "blocks", 1, 64, nullptr, "blocks that are resident on a core at once"},
    {"max_lanes_per_block", [](P& p) -> FieldRef { return &p.max_lanes_per_block; }, "lanes", 32, 65'536, nullptr, "largest block"},
    {"max_grid_blocks", [](P& p) -> FieldRef { return &p.max_grid_blocks; }, "blocks", 1, 2'147'483'647, nullptr, "largest grid"},
    {"warp_schedulers", [](P& p) -> FieldRef { return &p.warp_schedulers; }, "schedulers", 1, 256, nullptr, "schedulers of a core; warp w belongs to scheduler w mod this"},
    {"issue_warps_per_cycle", [](P& p) -> FieldRef { return &p.issue_warps_per_cycle; }, "warps/cycle", 1, 256, nullptr, "warps that a core issues in one cycle over all schedulers"},
    {"warp_policy", [](P& p) -> FieldRef { return &p.warp_policy; }, "", 0, 0, "oldest|round_robin", "which ready warp a scheduler takes"},
    {"call_depth", [](P& p) -> FieldRef { return &p.call_depth; }, "calls", 1, kMaxCount, nullptr, "deepest nesting of CALL"},
    {"fallback_latency", [](P& p) -> FieldRef { return &p.fallback_latency_cycles; }, "cycles", 1, kMaxCycles, nullptr, "used, with a warning, for an insn whose latency key has no entry"},

    {"units.S", [](P& p) -> FieldRef { return &p.units.s_pipes; }, "pipes", 1, 256, nullptr, "scalar and control pipes"},
    {"units.V", [](P& p) -> FieldRef { return &p.units.v_pipes; }, "pipes", 1, 256, nullptr, "lane arithmetic pipes, each takes one warp"},
    {"units.X", [](P& p) -> FieldRef { return &p.units.x_pipes; }, "pipes", 1, 256, nullptr, "special function pipes"},
    {"units.M", [](P& p) -> FieldRef { return &p.units.m_pipes; }, "pipes", 1, 256, nullptr, "load and store pipes"},
    {"units.D", [](P& p) -> FieldRef { return &p.units.d_pipes; }, "pipes", 1, 256, nullptr, "pipes that hand work to the copy engines"},
    {"units.C", [](P& p) -> FieldRef { return &p.units.c_pipes; }, "pipes", 1, 256, nullptr, "matrix units"},

    {"launch.task", [](P& p) -> FieldRef { return &p.launch.task_cycles; }, "cycles", 0, kMaxCycles, nullptr, "fixed cost of a launch, before the first block is handed out"},
    {"launch.dispatch_interval", [](P& p) -> FieldRef { return &p.launch.dispatch_interval_cycles; }, "cycles", 0, kMaxCycles, nullptr, "between two blocks that the dispatcher hands out"},
    {"launch.block_start", [](P& p) -> FieldRef { return &p.launch.block_start_cycles; }, "cycles", 0, kMaxCycles, nullptr, "from taking a block to its first issue"},
    {"launch.block_end", [](P& p) -> FieldRef { return &p.launch.block_end_cycles; }, "cycles", 0, kMaxCycles, nullptr, "from a block's last exit to the core being free"},
    {"launch.warp_start", [](P& p) -> FieldRef { return &p.launch.warp_start_cycles; }, "cycles", 0, kMaxCycles, nullptr, "between the starts of two warps of a block"},

    {"fetch.cache_bytes", [](P& p) -> FieldRef { return &p.fetch.cache_bytes; }, "bytes", 1024, 1e9, nullptr, "insn cache of a core"},
    {"fetch.line_bytes", [](P& p) -> FieldRef { return &p.fetch.line_bytes; }, "bytes", 16, 4096, nullptr, "line of the insn cache, a power of two"},
    {"fetch.insn_bytes", [](P& p) -> FieldRef { return &p.fetch.insn_bytes; }, "bytes", 1, 64, nullptr, "one insn in the machine's own code"},
    {"fetch.ahead", [](P& p) -> FieldRef { return &p.fetch.ahead_bytes; }, "bytes", 0, 65536, nullptr, "code that a miss brings in beyond its line"},
    {"fetch.miss_latency", [](P& p) -> FieldRef { return &p.fetch.miss_latency_cycles; }, "cycles", 0, kMaxCycles, nullptr, "a line of code that the insn cache lacks; 0 = never waits"},

    {"hbm.latency", [](P& p) -> FieldRef { return &p.hbm.latency_cycles; }, "cycles", 0, kMaxCycles, nullptr, "an access that HBM serves, beyond LOAD's latency"},
    {"hbm.bytes_per_cycle_core", [](P& p) -> FieldRef { return &p.hbm.bytes_per_cycle_core; }, "bytes/cycle", 0, kMaxBytesPerCycle, nullptr, "what one core can take or give; 0 = unlimited"},
    {"hbm.bytes_per_cycle_total", [](P& p) -> FieldRef { return &p.hbm.bytes_per_cycle_total; }, "bytes/cycle", 0, kMaxBytesPerCycle, nullptr, "all cores together; 0 = unlimited"},
    {"hbm.page_bytes", [](P& p) -> FieldRef { return &p.hbm.page_bytes; }, "bytes", 0, 1u << 30, nullptr, "memory that one translation of an address covers; 0 = none needed"},
    {"hbm.page_latency", [](P& p) -> FieldRef { return &p.hbm.page_latency_cycles; }, "cycles", 0, kMaxCycles, nullptr, "a core's first access to a page in a launch, in front of L2"},

    {"l2.bytes", [](P& p) -> FieldRef { return &p.l2.size_bytes; }, "bytes", 0, kMaxBytes, nullptr, "capacity; 0 = no L2"},
    {"l2.latency", [](P& p) -> FieldRef { return &p.l2.latency_cycles; }, "cycles", 0, kMaxCycles, nullptr, "an access that L2 serves, beyond LOAD's latency"},
    {"l2.bytes_per_cycle", [](P& p) -> FieldRef { return &p.l2.bytes_per_cycle; }, "bytes/cycle", 0, kMaxBytesPerCycle, nullptr, "all cores together; 0 = unlimited"},
    {"l2.line_bytes", [](P& p) -> FieldRef { return &p.l2.line_bytes; }, "bytes", 16, 65'536, nullptr, "line of L2, a power of two"},
    {"l2.writes_per_cycle", [](P& p) -> FieldRef { return &p.l2.writes_per_cycle; }, "requests/cycle", 0, 1000, nullptr, "store requests of all cores; 0 = unlimited"},
    {"l2.slice_bytes", [](P& p) -> FieldRef { return &p.l2.slice_bytes; }, "bytes", 0, 1e9, nullptr, "consecutive bytes that one atomic unit serves; 0 = no such limit"},

    {"l1.bytes", [](P& p) -> FieldRef { return &p.l1.size_bytes; }, "bytes", 1024, 1e9, nullptr, "on-chip buffer of a core"},
    {"l1.reserved_bytes", [](P& p) -> FieldRef { return &p.l1.reserved_bytes; }, "bytes", 0, 1e9, nullptr, "part that neither scratchpad nor cache may use"},
    {"l1.cache_min_bytes", [](P& p) -> FieldRef { return &p.l1.cache_min_bytes; }, "bytes", 0, 1e9, nullptr, "data cache that a kernel must leave"},
    {"l1.cache_max_bytes", [](P& p) -> FieldRef { return &p.l1.cache_max_bytes; }, "bytes", 0, 1e9, nullptr, "most that the data cache uses"},
    {"l1.line_bytes", [](P& p) -> FieldRef { return &p.l1.line_bytes; }, "bytes", 16, 4096, nullptr, "line of the data cache, a power of two"},
    {"l1.sector_bytes", [](P& p) -> FieldRef { return &p.l1.sector_bytes; }, "bytes", 8, 4096, nullptr, "unit of a request, a power of two that divides the line"},
    {"l1.ways", [](P& p) -> FieldRef { return &p.l1.ways; }, "ways", 0, 65'536, nullptr, "associativity of the data cache; 0 = fully associative"},
    {"l1.replacement", [](P& p) -> FieldRef { return &p.l1.replacement; }, "", 0, 0, "fill_order|lru", "which line a fill drives out"},
    {"l1.banks", [](P& p) -> FieldRef { return &p.l1.banks; }, "banks", 0, 4096, nullptr, "banks; 0 = no bank conflicts"},
    {"l1.bank_bytes", [](P& p) -> FieldRef { return &p.l1.bank_bytes; }, "bytes", 0, 1e9, nullptr, "capacity of one bank"},
    {"l1.row_bytes", [](P& p) -> FieldRef { return &p.l1.row_bytes; }, "bytes", 4, 4096, nullptr, "width of a bank; consecutive rows go to consecutive banks"},
    {"l1.bank_groups", [](P& p) -> FieldRef { return &p.l1.bank_groups; }, "groups", 0, 4096, nullptr, "banks i and i + bank_groups share their ports; 0 = each bank its own"},
    {"l1.subbank_bytes", [](P& p) -> FieldRef { return &p.l1.subbank_bytes; }, "bytes", 4, 4096, nullptr, "word that one port serves at a time"},
    {"l1.bytes_per_cycle", [](P& p) -> FieldRef { return &p.l1.bytes_per_cycle; }, "bytes/cycle", 0, 65536, nullptr, "width of the path between buffer and lanes; 0 = unlimited"},
    {"l1.conflict_cycles", [](P& p) -> FieldRef { return &p.l1.conflict_cycles; }, "cycles", 0, 1000, nullptr, "latency for each further word that one port must serve"},
    {"l1.line_cycles", [](P& p) -> FieldRef { return &p.l1.line_cycles; }, "cycles", 0, 1000, nullptr, "the load/store pipe, for each line that a load touches"},
    {"l1.fill_cycles", [](P& p) -> FieldRef { return &p.l1.fill_cycles; }, "cycles", 0, 1000, nullptr, "the load/store pipe, for each line that comes in"},
    {"l1.miss_queue", [](P& p) -> FieldRef { return &p.l1.miss_queue; }, "lines", 0, 65536, nullptr, "lines of a core that may be under way at once; 0 = unlimited"},
    {"l1.store_cycles", [](P& p) -> FieldRef { return &p.l1.store_cycles; }, "cycles", 0, 1000, nullptr, "the load/store pipe, for each line that a store touches"},
    {"l1.store_queue", [](P& p) -> FieldRef { return &p.l1.store_queue_cycles; }, "cycles", 0, kMaxCycles, nullptr, "how far the stores of a core may run ahead of L2"},
    {"l1.hit_latency", [](P& p) -> FieldRef { return &p.l1.hit_latency_cycles; }, "cycles", 0, kMaxCycles, nullptr, "a data cache hit, beyond LOAD's latency"},
    {"l1.write_policy", [](P& p) -> FieldRef { return &p.l1.write_policy; }, "", 0, 0, "write_through", "what a store does with a cached line"},

    {"copy.start_latency", [](P& p) -> FieldRef { return &p.copy.start_latency_cycles; }, "cycles", 0, kMaxCycles, nullptr, "from the start of a copy to its first byte"},
    {"copy.out_latency", [](P& p) -> FieldRef { return &p.copy.out_latency_cycles; }, "cycles", 0, kMaxCycles, nullptr, "more for a copy out, until memory has its last byte"},
    {"copy.bytes_per_cycle", [](P& p) -> FieldRef { return &p.copy.bytes_per_cycle; }, "bytes/cycle", 0, kMaxBytesPerCycle, nullptr, "of one engine; 0 = unlimited"},
    {"copy.engines_in", [](P& p) -> FieldRef { return &p.copy.engines_in; }, "engines", 1, 64, nullptr, "engines of a core that copy in"},
    {"copy.engines_out", [](P& p) -> FieldRef { return &p.copy.engines_out; }, "engines", 1, 64, nullptr, "engines of a core that copy out"},
    {"copy.row_cycles", [](P& p) -> FieldRef { return &p.copy.row_cycles; }, "cycles", 0, kMaxCycles, nullptr, "least time for one row of a copy"},

    {"sync.barrier", [](P& p) -> FieldRef { return &p.sync.barrier_cycles; }, "cycles", 0, kMaxCycles, nullptr, "BARRIER, from issue to the next insn"},
    {"sync.block_barrier", [](P& p) -> FieldRef { return &p.sync.block_barrier_cycles; }, "cycles", 0, kMaxCycles, nullptr, "BARRIER_BLOCK, from the last arrival to the release"},

    {"atomic.l1", [](P& p) -> FieldRef { return &p.atomic.l1_cycles; }, "cycles", 0, kMaxCycles, nullptr, "each lane operation on one address in l1"},
    {"atomic.sector", [](P& p) -> FieldRef { return &p.atomic.sector_cycles; }, "cycles", 0, kMaxCycles, nullptr, "an L2 sector is taken by one lane operation whose result is read"},
    {"atomic.round_trip", [](P& p) -> FieldRef { return &p.atomic.round_trip_cycles; }, "cycles", 0, kMaxCycles, nullptr, "between two such operations of one warp on one sector"},
    {"atomic.reduce_sector", [](P& p) -> FieldRef { return &p.atomic.reduce_sector_cycles; }, "cycles", 0, kMaxCycles, nullptr, "an L2 sector is taken by one operation whose result nobody reads (32-bit types)"},
    {"atomic.reduce_round_trip", [](P& p) -> FieldRef { return &p.atomic.reduce_round_trip_cycles; }, "cycles", 0, kMaxCycles, nullptr, "between two of those of one core on one sector"},
    {"atomic.slice", [](P& p) -> FieldRef { return &p.atomic.slice_cycles; }, "cycles", 0, kMaxCycles, nullptr, "the atomic unit of an L2 slice is taken by one lane operation"},
    {"atomic.reduce_queue", [](P& p) -> FieldRef { return &p.atomic.reduce_queue; }, "operations", 1, 65536, nullptr, "operations without result that a core may have waiting"},
};

constexpr LatencyField kLatencyFields[] = {
    {"latency", [](LatencyEntry& e) -> FieldRef { return &e.latency_cycles; }, "cycles", 0, kMaxCycles, true, "issue to result usable"},
    {"interval", [](LatencyEntry& e) -> FieldRef { return &e.interval_cycles; }, "cycles", 1, kMaxCycles, true, "cycles before the pipe takes the next warp"},
    {"tile_m", [](LatencyEntry& e) -> FieldRef { return &e.tile_m; }, "elements", 0, kMaxCount, false, "M of start + ceil(m/M)*ceil(n/N)*ceil(k/K)*step"},
    {"tile_n", [](LatencyEntry& e) -> FieldRef { return &e.tile_n; }, "elements", 0, kMaxCount, false, "N of the tile formula"},
    {"tile_k", [](LatencyEntry& e) -> FieldRef { return &e.tile_k; }, "elements", 0, kMaxCount, false, "K of the tile formula"},
    {"step", [](LatencyEntry& e) -> FieldRef { return &e.step_cycles; }, "cycles", 0, kMaxCycles, false, "cycles for one step of the tile formula"},
    {"spread", [](LatencyEntry& e) -> FieldRef { return &e.spread_cycles; }, "cycles", 0, kMaxCycles, false, "spread of the measurement"},
    {"source", [](LatencyEntry& e) -> FieldRef { return &e.source; }, "", 0, 0, true, "where the figure comes from"},
    {"definition", [](LatencyEntry& e) -> FieldRef { return &e.definition; }, "", 0, 0, false, "what was measured, if not issue to dependent issue"},
    {"device", [](LatencyEntry& e) -> FieldRef { return &e.device; }, "", 0, 0, false, "device of the measurement"},
    {"date", [](LatencyEntry& e) -> FieldRef { return &e.date; }, "", 0, 0, false, "date of the measurement"},
};
// clang-format on

} // namespace

std::span<const MachineField> machine_fields() {
  return kFields;
}

std::span<const LatencyField> latency_fields() {
  return kLatencyFields;
}

std::string nearest(std::string_view word, const std::vector<std::string>& names) {
  const std::optional<std::string_view> found = nearest_name(word, names);
  return found ? std::string(*found) : std::string();
}

std::string number_text(double value) {
  if (value == std::floor(value) && std::fabs(value) < 1e15) {
    return fmt::format("{:.0f}", value);
  }
  return fmt::format("{}", value);
}

bool store_number(
    FieldRef ref, double value, double min, double max, const char* unit, std::string& why) {
  const bool is_whole = !std::holds_alternative<double*>(ref);
  if (!(value >= min && value <= max) || (is_whole && value != std::floor(value))) {
    why = fmt::format("expected a {}number{}{} from {} to {}, got {}",
                      is_whole ? "whole " : "",
                      *unit != '\0' ? " of " : "",
                      unit,
                      number_text(min),
                      number_text(max),
                      number_text(value));
    return false;
  }
  if (auto** u32 = std::get_if<uint32_t*>(&ref)) {
    **u32 = static_cast<uint32_t>(value);
  } else if (auto** u64 = std::get_if<uint64_t*>(&ref)) {
    **u64 = static_cast<uint64_t>(value);
  } else if (auto** real = std::get_if<double*>(&ref)) {
    **real = value;
  }
  return true;
}

bool is_latency_key(std::string_view key) {
  size_t at = 0;
  bool is_base = true;
  while (at <= key.size()) {
    const size_t dot = std::min(key.find('.', at), key.size());
    const std::string_view part = key.substr(at, dot - at);
    if (part.empty() || part.size() > 32) {
      return false;
    }
    for (const char c : part) {
      const bool is_letter = is_base ? (c >= 'A' && c <= 'Z') : (c >= 'a' && c <= 'z');
      if (!is_letter && !(c >= '0' && c <= '9') && c != '_') {
        return false;
      }
    }
    is_base = false;
    at = dot + 1;
  }
  return key.size() <= 100;
}

void check_consistency(const MachineProfile& p, std::string_view file, ProfileIssues& issues) {
  const auto complain = [&](const char* path, std::string message) {
    issues.push_back({std::string(file), path, std::move(message), {}, 0, 0});
  };
  const auto power_of_two = [&](const char* path, uint32_t bytes) {
    if (!std::has_single_bit(bytes)) {
      complain(path, fmt::format("expected a power of two, got {}", bytes));
    }
  };
  power_of_two("l1.line_bytes", p.l1.line_bytes);
  power_of_two("l1.sector_bytes", p.l1.sector_bytes);
  power_of_two("l1.row_bytes", p.l1.row_bytes);
  power_of_two("l1.subbank_bytes", p.l1.subbank_bytes);
  power_of_two("l2.line_bytes", p.l2.line_bytes);
  power_of_two("fetch.line_bytes", p.fetch.line_bytes);
  if (p.l1.sector_bytes > p.l1.line_bytes) {
    complain("l1.sector_bytes",
             fmt::format("a sector of {} bytes is larger than the line of {} bytes",
                         p.l1.sector_bytes,
                         p.l1.line_bytes));
  }
  if (p.l1.subbank_bytes > p.l1.row_bytes) {
    complain("l1.subbank_bytes",
             fmt::format("a word of {} bytes is wider than the bank's row of {} bytes",
                         p.l1.subbank_bytes,
                         p.l1.row_bytes));
  }
  if (p.l1.bank_groups != 0 && p.l1.banks % p.l1.bank_groups != 0) {
    complain("l1.bank_groups",
             fmt::format("{} banks do not divide into {} groups", p.l1.banks, p.l1.bank_groups));
  }
  const uint64_t banked = static_cast<uint64_t>(p.l1.banks) * p.l1.bank_bytes;
  if (p.l1.banks != 0 && banked != p.l1.size_bytes) {
    complain("l1.bank_bytes",
             fmt::format("{} banks of {} bytes make {} bytes, but l1.bytes is {}",
                         p.l1.banks,
                         p.l1.bank_bytes,
                         banked,
                         p.l1.size_bytes));
  }
  if (p.l1.cache_min_bytes > p.l1.cache_max_bytes) {
    complain("l1.cache_min_bytes",
             fmt::format("the least data cache ({} bytes) is larger than the most ({} bytes)",
                         p.l1.cache_min_bytes,
                         p.l1.cache_max_bytes));
  }
  if (static_cast<uint64_t>(p.l1.cache_min_bytes) + p.l1.reserved_bytes > p.l1.size_bytes) {
    complain("l1.bytes",
             fmt::format("{} bytes hold less than the reserve of {} and the least data cache of {}",
                         p.l1.size_bytes,
                         p.l1.reserved_bytes,
                         p.l1.cache_min_bytes));
  }
  if (p.issue_warps_per_cycle % p.warp_schedulers != 0) {
    complain("issue_warps_per_cycle",
             fmt::format("expected a multiple of warp_schedulers ({}), got {}",
                         p.warp_schedulers,
                         p.issue_warps_per_cycle));
  }
  if (p.max_lanes_per_block % 32 != 0) {
    complain("max_lanes_per_block",
             fmt::format("expected a multiple of 32 (the warp), got {}", p.max_lanes_per_block));
  }
  uint32_t registers = UINT32_MAX;
  for (const auto& step : p.register_budget) {
    if (step.second > registers) {
      complain("register_budget",
               fmt::format("{} registers for {} lanes are more than a smaller block has ({})",
                           step.second,
                           step.first,
                           registers));
    }
    registers = step.second;
  }
  if (p.register_budget.empty() || p.register_budget.rbegin()->first != p.max_lanes_per_block) {
    complain("register_budget",
             fmt::format("expected a last step at max_lanes_per_block ({} lanes)",
                         p.max_lanes_per_block));
  }
  for (const LatencyEntry& entry : p.latency.entries()) {
    const int given = (entry.tile_m != 0) + (entry.tile_n != 0) + (entry.tile_k != 0);
    if (given != 0 && given != 3) {
      complain(("latency." + entry.key).c_str(),
               "expected all of tile_m, tile_n, tile_k or none of them");
    }
  }
}

} // namespace pto::isa::detail
