// SPDX-License-Identifier: Apache-2.0
// The reports of a timed run as texts. All of them take the one value of timing_report.h, are the
// same bytes for the same run, and say when limits left part of the timeline out.
#pragma once

#include "simulator/report/timing_report.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pto::sim {

struct GanttOptions {
  size_t max_rows = 64; // entries shown; 0: all
  unsigned width = 100; // columns of the terminal
  uint64_t from_cycle = 0;
  uint64_t to_cycle = UINT64_MAX;
};

/// For a terminal, each with a line end: one row an entry with a bar from issue to result.
[[nodiscard]] std::string timeline_text(const TimingReport& report,
                                        const GanttOptions& options = {});
/// Stall cycles by reason, by source line, and the longest bubbles.
[[nodiscard]] std::string stalls_text(const TimingReport& report, size_t max_lines = 12);
[[nodiscard]] std::string bubbles_text(const TimingReport& report, size_t max_bubbles = 6);
/// Every counter: issue, units, memory, roofline.
[[nodiscard]] std::string counters_text(const TimingReport& report);

/// One line an entry, with a header line. Cycles are the machine's own.
[[nodiscard]] std::string timeline_csv(const TimingReport& report);
/// {"schema": "pto-timeline-1", ..., "entries": [...]}
[[nodiscard]] std::string timeline_json(const TimingReport& report);

/// Everything, for saving: {"schema": "pto-run-1", ...}. read_run of it gives the same report.
[[nodiscard]] std::string run_json(const TimingReport& report);
/// Total: any text. Nothing and a sentence in `error` if it is no saved run.
[[nodiscard]] std::optional<TimingReport> read_run(std::string_view text, std::string& error);

/// Chrome trace format (chrome://tracing, ui.perfetto.dev): a process a core, a thread a warp,
/// copies of their own, arrows from copies to the WAITs for them and from warps at a barrier to the
/// one that arrives last. Times are real ones: cycles divided by the clock, to the nanosecond.
[[nodiscard]] std::string trace_json(const TimingReport& report);

/// One page that needs nothing else: no network, no other file. Of a long timeline it shows the
/// first entries, and says what is left out.
[[nodiscard]] std::string html_report(const TimingReport& report);

/// Two runs of a kernel side by side: cycles, counters, stalls by reason and by source line.
[[nodiscard]] std::string diff_text(const TimingReport& before,
                                    const TimingReport& after,
                                    std::string_view before_name = "before",
                                    std::string_view after_name = "after");
[[nodiscard]] std::string diff_json(const TimingReport& before, const TimingReport& after);

} // namespace pto::sim
