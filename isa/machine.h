// SPDX-License-Identifier: Apache-2.0
// Machine profiles: the figures of one machine, read from JSON, checked, and changed by `--set`.
//
// A profile is plain data. One table of fields (machine_fields.cc) says for each figure its key
// path, unit, limits and meaning; reading, checking, `--set`, the schema and the listings all walk
// that table. Cycles are the machine's own clock. "0 = unlimited" is said where it applies.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pto::isa {

// One complaint about a profile or an override. Never thrown.
struct ProfileIssue {
  std::string file;       // path or shipped name; empty for an override
  std::string key_path;   // "hbm.latency"; empty when the text is no JSON object at all
  std::string message;    // what was found, what was expected
  std::string suggestion; // nearest known key, or empty
  int line = 0;           // 1-based; only for syntax errors, else 0
  int column = 0;

  // "file:line:col: error: key: message (did you mean `x`?)"
  [[nodiscard]] std::string to_string() const;
};
using ProfileIssues = std::vector<ProfileIssue>;

// All of them, one a line.
[[nodiscard]] std::string to_string(const ProfileIssues& issues);

// What one latency key says. `latency_cycles` runs from issue to the result being usable by the
// next dependent insn; `interval_cycles` is how long one pipe of the unit is taken by one warp.
// A key with a tile (matrix unit, copies) adds ceil(m/M)*ceil(n/N)*ceil(k/K)*step to both.
struct LatencyEntry {
  std::string key; // "FMA", "FMA.f16", "MMA.f32.f16", "LOAD.l1"
  uint32_t latency_cycles = 0;
  uint32_t interval_cycles = 1;
  uint32_t tile_m = 0; // 0: no tile formula
  uint32_t tile_n = 0;
  uint32_t tile_k = 0;
  double step_cycles = 0;
  std::string source;     // where the figure comes from
  std::string definition; // what was measured; empty: issue to dependent issue
  std::string device;     // empty: not measured
  std::string date;
  double spread_cycles = 0; // of the measurement

  // Steps of the tile formula for an m x n x k operation; 0 without a tile.
  [[nodiscard]] uint64_t tile_steps(uint64_t m, uint64_t n, uint64_t k) const;
};

// Key -> latency. A key is a base and suffixes: "CVT.f16.f32". An entry fits a query when the bases
// are equal and its suffixes occur in the query's in the same order; the entry with most suffixes
// wins, and among equals the one whose suffixes stand earlier in the query.
class LatencyTable {
public:
  // The winning entry or null. The pointer stays valid until the table changes; users cache it
  // (or index_of) per decoded insn, so this is not on a hot path.
  [[nodiscard]] const LatencyEntry* find(std::string_view base,
                                         std::span<const std::string_view> suffixes) const;
  [[nodiscard]] const LatencyEntry* find(std::string_view dotted_key) const;
  // The entry with exactly this key, or null.
  [[nodiscard]] const LatencyEntry* find_exact(std::string_view key) const;
  [[nodiscard]] const std::vector<LatencyEntry>& entries() const { return entries_; }
  // Position in entries(), for dense tables.
  [[nodiscard]] size_t index_of(const LatencyEntry* entry) const;
  // Adds the entry, or replaces the one with the same key. Keeps entries() sorted by key.
  void put(LatencyEntry entry);

private:
  std::vector<LatencyEntry> entries_;
};

// Two neighbouring insns that the device's firmware joins: both issue as one and the second's
// result is usable `latency_cycles` after that issue.
struct FusionRule {
  std::string name;
  std::string first; // mnemonic, upper case, with or without suffixes as in latency keys
  std::string second;
  // What must connect the two: "any" (the second reads a register, predicate or tile that the
  // first writes), "none" (being neighbours is enough), or "<dst>-><src>" with operand names of
  // the instruction table, e.g. "d->a".
  std::string connect = "any";
  uint32_t latency_cycles = 0;
  bool keeps_first = false; // the first's result stays visible to other insns
  std::string source;
};

struct MachineProfile {
  // Identity
  std::string name;
  std::string based_on; // empty: none
  std::string description;
  std::string source;
  double clock_mhz = 0;

  // Shape
  uint32_t cores = 0;
  uint32_t blocks_per_core = 0;
  uint32_t max_lanes_per_block = 0;
  uint32_t max_grid_blocks = 0;
  uint32_t warp_schedulers = 0;
  uint32_t issue_warps_per_cycle = 0;
  std::string warp_policy; // "oldest" or "round_robin"
  uint32_t call_depth = 0;
  uint32_t fallback_latency_cycles = 0;         // for a key without an entry, with a warning
  std::map<uint32_t, uint32_t> register_budget; // up to so many lanes a block -> registers a lane

  struct Units { // warps that each unit can start per interval
    uint32_t s_pipes = 0;
    uint32_t v_pipes = 0;
    uint32_t x_pipes = 0;
    uint32_t m_pipes = 0;
    uint32_t d_pipes = 0;
    uint32_t c_pipes = 0;
  } units;

  struct Launch {
    uint32_t task_cycles = 0;            // fixed cost of a launch
    double dispatch_interval_cycles = 0; // between two blocks that the dispatcher hands out
    uint32_t block_start_cycles = 0;     // core takes a block -> its first issue
    uint32_t block_end_cycles = 0;       // last lane's exit -> the core is free
    double warp_start_cycles = 0;        // between the starts of two warps of a block
  } launch;

  struct Fetch {
    uint32_t cache_bytes = 0; // insn cache of a core
    uint32_t line_bytes = 0;
    uint32_t insn_bytes = 0;          // one insn in the machine's own code
    uint32_t ahead_bytes = 0;         // that a miss brings in beyond its line
    uint32_t miss_latency_cycles = 0; // a line that is not in the insn cache
  } fetch;

  struct Hbm {
    uint32_t latency_cycles = 0;     // beyond LOAD's own latency
    double bytes_per_cycle_core = 0; // 0 = unlimited
    double bytes_per_cycle_total = 0;
    uint32_t page_bytes = 0;          // that one translation of an address covers; 0 = none needed
    uint32_t page_latency_cycles = 0; // a core's first access to a page in a launch, in front of L2
  } hbm;

  struct L2 {
    uint64_t size_bytes = 0;
    uint32_t latency_cycles = 0; // beyond LOAD's own latency
    double bytes_per_cycle = 0;  // all cores together; 0 = unlimited
    uint32_t line_bytes = 0;
    double writes_per_cycle = 0; // store requests of all cores; 0 = unlimited
    uint32_t slice_bytes = 0;    // consecutive bytes that one atomic unit serves; 0 = one address
  } l2;

  struct L1 {
    uint32_t size_bytes = 0;
    uint32_t reserved_bytes = 0;
    uint32_t cache_min_bytes = 0;
    uint32_t cache_max_bytes = 0;
    uint32_t line_bytes = 0;
    uint32_t sector_bytes = 0;
    uint32_t ways = 0;               // 0 = fully associative
    std::string replacement;         // "fill_order" or "lru"
    uint32_t banks = 0;              // 0 = no bank conflicts
    uint32_t bank_bytes = 0;         // capacity of one bank
    uint32_t row_bytes = 0;          // width of a bank: consecutive rows go to consecutive banks
    uint32_t bank_groups = 0;        // banks i and i+bank_groups share a port
    uint32_t subbank_bytes = 0;      // the unit that one port serves a cycle
    uint32_t bytes_per_cycle = 0;    // width of the path to the lanes, 0 = unlimited
    double conflict_cycles = 0;      // latency for each further word that one port must serve
    double line_cycles = 0;          // the load/store pipe, for each line that a load touches
    double fill_cycles = 0;          // the pipe, for each line that comes in
    uint32_t miss_queue = 0;         // lines that may be under way at once; 0 = unlimited
    double store_cycles = 0;         // the pipe, for each line that a store touches
    uint32_t store_queue_cycles = 0; // how far stores may run ahead of L2
    uint32_t hit_latency_cycles = 0; // a data-cache hit, beyond LOAD's own latency
    std::string write_policy;        // "write_through"
  } l1;

  struct Copy {
    uint32_t start_latency_cycles = 0;
    uint32_t out_latency_cycles = 0; // more for a copy out: until memory has its last byte
    double bytes_per_cycle = 0;      // of one engine; 0 = unlimited
    uint32_t engines_in = 0;
    uint32_t engines_out = 0;
    uint32_t row_cycles = 0; // for each row of a strided copy, at least
  } copy;

  struct Sync {
    uint32_t barrier_cycles = 0;       // last arrival -> release, one warp
    uint32_t block_barrier_cycles = 0; // last arrival -> release, the block
  } sync;

  struct Atomic {
    double l1_cycles = 0;                // each lane operation on one address in l1
    double sector_cycles = 0;            // an L2 sector is taken by one operation, result read
    double round_trip_cycles = 0;        // between two such operations of one warp on one sector
    double reduce_sector_cycles = 0;     // the same when nobody reads the result (32-bit types)
    double reduce_round_trip_cycles = 0; // between two of those of one core on one sector
    double slice_cycles = 0;             // the atomic unit of an L2 slice is taken by one operation
    uint32_t reduce_queue = 0;           // operations without result that a core may have waiting
  } atomic;

  LatencyTable latency;
  std::vector<FusionRule> fusion;
  std::map<std::string, std::string> sources; // key path or prefix of one -> where from

  // Registers a lane may use in a block of `lanes` lanes; nothing when the block is too large.
  [[nodiscard]] std::optional<uint32_t> registers_per_lane(uint32_t lanes) const;
  // Bytes of scratchpad that a kernel may use at most.
  [[nodiscard]] uint32_t max_scratchpad_bytes() const;
  // Bytes of data cache when the kernel uses so much scratchpad; 0 when that is too much.
  [[nodiscard]] uint32_t cache_bytes(uint32_t scratchpad_bytes) const;
  // First byte of the data cache in l1: after the scratchpad (rounded up to a line) and the
  // reserve.
  [[nodiscard]] uint32_t cache_begin_bytes(uint32_t scratchpad_bytes) const;
  [[nodiscard]] double microseconds(double cycles) const { return cycles / clock_mhz; }
  // Where the figure at this key path comes from: its own note, else the longest prefix's, else
  // empty (the profile as a whole has `source`).
  [[nodiscard]] std::string_view source_of(std::string_view key_path) const;
};

// One figure of a profile as text, for listings, comparisons and reports.
struct ProfileFigure {
  std::string key_path;
  std::string value;
  std::string unit; // "cycles", "bytes", "bytes/cycle", ...
  std::string meaning;
  std::string source;
};

// Gives the text of a profile that another one names in `based_on`, or nothing.
using ProfileResolver = std::function<std::optional<std::string>(std::string_view name)>;

// Names of the profiles built into the library, sorted.
[[nodiscard]] std::vector<std::string> shipped_machine_names();
// Their JSON text; nothing for an unknown name.
[[nodiscard]] std::optional<std::string_view> shipped_machine_text(std::string_view name);

// A shipped profile by name, or a file by its path (anything with a '/' or ending in .json).
// `based_on` is a shipped name or a path relative to the file. Nothing, with issues, on any error.
[[nodiscard]] std::optional<MachineProfile> load_machine(std::string_view name_or_path,
                                                         ProfileIssues& issues);

// Reads JSON text; `file` is what messages call it. Any bytes are valid input.
[[nodiscard]] std::optional<MachineProfile> parse_machine(std::string_view json_text,
                                                          std::string_view file,
                                                          const ProfileResolver& resolve,
                                                          ProfileIssues& issues);

// `--set path=value`: "latency.FMA.latency", "hbm.bytes_per_cycle_total", "cores". A latency key
// may be more specific than the existing ones ("latency.FMA.f16.latency"): it then starts as a copy
// of the entry that it refines. False, with an issue and the profile unchanged, on any error.
[[nodiscard]] bool apply_override(MachineProfile& profile,
                                  std::string_view path,
                                  std::string_view value,
                                  ProfileIssues& issues);
// The same from one "path=value" text.
[[nodiscard]] bool
apply_override(MachineProfile& profile, std::string_view assignment, ProfileIssues& issues);

// Every figure, in the order of the field table, then latencies and fusion rules.
[[nodiscard]] std::vector<ProfileFigure> list_figures(const MachineProfile& profile);

// The profile as JSON, complete (without based_on); parse_machine of it gives the same figures.
[[nodiscard]] std::string to_json_text(const MachineProfile& profile);

// The JSON schema of a profile file, generated from the field table.
[[nodiscard]] std::string machine_schema_text();

} // namespace pto::isa
