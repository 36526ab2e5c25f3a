// SPDX-License-Identifier: Apache-2.0
// What a timed run says about a kernel, as one plain value that every report is printed from: text,
// JSON, CSV, a trace for Perfetto, HTML, and the comparison of two runs. ptosim, the debugger and
// the Python module build it with make_timing_report and hand it to the functions of this folder.
#pragma once

#include "isa/machine.h"
#include "simulator/program.h"
#include "simulator/report/bubbles.h"
#include "simulator/report/roofline.h"
#include "simulator/timed.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pto::sim {

struct ReportOptions {
  Dim3 grid{};
  Dim3 block{};
  std::string notice; // shown at the top of every report, such as "emulated device"; may be empty
  /// Text of each file of Object::files, for the listing; shorter or empty: insns stand alone.
  std::vector<std::string> sources;
  /// Names of stages by pc (pipelines); shorter or empty: none.
  std::vector<std::string> stages;
  size_t max_bubbles = 20;
};

/// One insn of the program.
struct ReportInsn {
  uint32_t pc = 0;
  std::string place;    // "x.pto:12" without folders, or "pc 7"
  std::string text;     // "fma.f32 r3, r1, 1.0, r2"
  std::string mnemonic; // "FMA.f32" as in traces
  std::string stage;
  uint32_t file = 0; // index in TimingReport::files
  uint32_t line = 0; // 0: unknown
  uint8_t unit = 0;  // isa::Unit
  uint64_t issues = 0;
  uint64_t lane_ops = 0;
  uint64_t flops = 0; // floating-point operations of all lanes, all passes
  StallCycles stalls; // of warps in front of this insn
  int wait_event = kNoWait;
  int copy_event = -1; // of a copy; -1: none
  int barrier = -1;    // of BARRIER_BLOCK
  bool is_copy = false;
  bool is_copy_out = false;
  bool is_block_scoped = false; // warp 0 does it, the others pass over

  static constexpr int kNoWait = -2; // else: the event, or -1 for all copies
  /// Warp cycles that the insn cost: its issues and the waits before them.
  [[nodiscard]] uint64_t cycles() const { return issues + stalls.total(); }
};

/// One line of a source file, or one insn where lines are unknown.
struct ReportLine {
  uint32_t file = 0;
  uint32_t line = 0;
  std::string text;          // of the source; of the insn where there is no source
  std::vector<uint32_t> pcs; // insns that come from it
  uint64_t issues = 0;
  StallCycles stalls;
  [[nodiscard]] uint64_t cycles() const { return issues + stalls.total(); }
};

struct ReportUnit {
  std::string name;            // "V"
  std::string summary;         // "lane arithmetic"
  uint64_t issues = 0;         // warp insns
  double busy_cycles = 0;      // sum over the cores, of the busiest pipe of each
  double most_busy_cycles = 0; // of the busiest core
  /// Cycles of that core in which something of the unit was under way; from the recorded timeline.
  uint64_t most_under_way_cycles = 0;
};

/// Resident warps and issues over time, in equal steps.
struct OccupancyPoint {
  uint64_t cycle = 0; // begin of the step
  double warps = 0;   // resident, over all cores, mean of the step
  double issues = 0;  // warp insns a cycle over all cores; from the recorded timeline
};

struct TimingReport {
  std::string notice;
  std::string kernel;
  std::string profile;
  std::string profile_description;
  std::string status; // "completed"
  Dim3 grid{};
  Dim3 block{};
  double clock_mhz = 0;
  uint32_t cores = 0;           // of the machine
  uint32_t blocks_per_core = 0; // at most
  uint32_t warps_per_block = 0;
  uint32_t max_warps_per_core = 0; // that the largest blocks would give
  uint64_t cycles = 0;
  uint64_t blocks_done = 0;
  uint64_t warp_insns = 0;
  uint64_t lane_insns = 0;
  uint64_t issued_cycles = 0; // over all warps
  double lane_efficiency = 0; // 0 to 1
  StallCycles stalls;         // over all warps
  MemoryCounters memory;
  SharedMemory::Counters shared;
  std::vector<std::string> files;
  std::vector<std::string> sources; // text of each file, empty where it was not given
  std::vector<ReportInsn> insns;    // by pc, the whole program
  std::vector<ReportLine> lines;    // in order of file and line; those with insns only
  std::vector<ReportUnit> units;    // all six
  std::vector<CoreCounters> core_counters;
  std::vector<BlockSpan> blocks;   // at most TimedCounters::kMaxSpans
  std::vector<WarpCounters> warps; // of those
  std::vector<OccupancyPoint> occupancy;
  std::vector<Bubble> bubbles; // longest first
  Roofline roofline;
  std::vector<TimelineEntry> timeline; // in order of issue
  uint64_t timeline_dropped = 0;       // warp insns that limits left out
  TimelineLimits timeline_limits;
  std::vector<std::string> missing_keys;
  uint32_t fallback_latency_cycles = 0;

  [[nodiscard]] double microseconds() const {
    return clock_mhz == 0 ? 0 : static_cast<double>(cycles) / clock_mhz;
  }
  /// Cycles of all warps: issued and stalled.
  [[nodiscard]] uint64_t warp_cycles() const { return issued_cycles + stalls.total(); }
  [[nodiscard]] uint32_t cores_used() const;
  /// "vector_add<<<4, 256>>> on ascend950"
  [[nodiscard]] std::string title() const;
};

/// `result` as run_timed or TimedRun::result gave it; the timeline is there if the run recorded it
/// (TimingOptions::record_timeline), bubbles only then.
[[nodiscard]] TimingReport make_timing_report(const TimedResult& result,
                                              const Program& program,
                                              const isa::MachineProfile& machine,
                                              const ReportOptions& options = {});

/// The reason with most cycles; kEmpty with 0 if there is no stall at all.
[[nodiscard]] StallReason largest_stall(const StallCycles& stalls);
/// Reasons with cycles, most first.
[[nodiscard]] std::vector<StallReason> stalls_by_size(const StallCycles& stalls);

/// Text of each file of the object where it can be read now (relative to the current folder), for
/// ReportOptions::sources; empty where not.
[[nodiscard]] std::vector<std::string> read_sources(const Program& program);

} // namespace pto::sim
