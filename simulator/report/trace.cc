// SPDX-License-Identifier: Apache-2.0
// Chrome trace events. A warp's row is cut at its issues: a slice for the wait and one for the
// issue, so that slices never overlap; what takes long beside the warp (copies, matrix operations)
// has rows of its own. Timestamps are microseconds with six digits: a picosecond.
#include "isa/insn_desc.h"
#include "simulator/report/reports.h"
#include "simulator/report/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>

namespace pto::sim {

namespace {

constexpr size_t kMaxEvents = 2'000'000;
constexpr uint32_t kRowsPerSlot = 1000; // a block's row and those of its warps
constexpr uint32_t kUnitRows = 1'000'000;

/// Puts what overlaps into rows beside each other.
class Rows {
public:
  uint32_t place(uint64_t from, uint64_t to) {
    for (uint32_t row = 0; row < ends_.size(); ++row) {
      if (ends_[row] <= from) {
        ends_[row] = to;
        return row;
      }
    }
    ends_.push_back(to);
    return static_cast<uint32_t>(ends_.size() - 1);
  }

private:
  std::vector<uint64_t> ends_;
};

class TraceWriter {
public:
  explicit TraceWriter(const TimingReport& report) : report_(report) {}

  std::string write() {
    begin();
    place_blocks();
    for (const TimelineEntry& entry : report_.timeline) {
      if (events_ >= kMaxEvents) {
        left_out_ += entry.last_warp - entry.first_warp + 1;
        continue;
      }
      add_unit_slice(entry);
      for (uint32_t warp = entry.first_warp; warp <= entry.last_warp; ++warp) {
        add_warp_slices(entry, warp);
      }
    }
    end_barriers();
    add_counters();
    finish();
    return std::move(text_);
  }

private:
  struct Copy {
    uint64_t start = 0;
    uint32_t row = 0;
    int event = -1;
  };
  struct BlockState {
    uint32_t slot = 0;
    std::vector<Copy> copies; // not reused since
    std::array<bool, isa::kEventCount> waited{};
    std::map<std::pair<int, uint32_t>, uint32_t> barrier_count; // (id, warp) -> arrivals
  };
  struct Point {
    uint64_t cycle = 0;
    uint32_t core = 0;
    uint32_t row = 0;
  };

  [[nodiscard]] std::string time(uint64_t cycle) const {
    return fmt::format("{:.6f}", static_cast<double>(cycle) / report_.clock_mhz);
  }

  template <class... T> void event(fmt::format_string<T...> format, T&&... args) {
    text_ += events_ == 0 ? "\n" : ",\n";
    fmt::format_to(std::back_inserter(text_), format, std::forward<T>(args)...);
    ++events_;
  }

  void begin() { text_ = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": ["; }

  void name_row(uint32_t core, uint32_t row, const std::string& name) {
    if (!named_.insert({core, row}).second) {
      return;
    }
    if (named_cores_.insert(core).second) {
      event(R"({{"ph":"M","pid":{},"tid":0,"name":"process_name","args":{{"name":"core {}"}}}})",
            core,
            core);
      event(
          R"({{"ph":"M","pid":{},"tid":0,"name":"process_sort_index","args":{{"sort_index":{}}}}})",
          core,
          core);
    }
    event(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})",
          core,
          row,
          json_string(name));
    event(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})",
          core,
          row,
          row);
  }

  /// Slots by core, so that blocks that follow each other share rows.
  void place_blocks() {
    std::map<uint64_t, BlockSpan> spans;
    for (const TimelineEntry& entry : report_.timeline) {
      const uint64_t from = entry.issue_cycle - entry.stall_cycles;
      BlockSpan& span =
          spans.try_emplace(entry.block, BlockSpan{entry.block, entry.core, 0, from, 0})
              .first->second;
      span.start_cycle = std::min(span.start_cycle, from);
      span.end_cycle = std::max({span.end_cycle, entry.done_cycle, entry.issue_cycle + 1});
    }
    std::vector<BlockSpan> order;
    order.reserve(spans.size());
    for (const auto& [block, span] : spans) {
      order.push_back(span);
    }
    std::stable_sort(order.begin(), order.end(), [](const BlockSpan& a, const BlockSpan& b) {
      return a.start_cycle < b.start_cycle;
    });
    std::map<uint32_t, Rows> slots;
    for (const BlockSpan& span : order) {
      const uint32_t slot = slots[span.core].place(span.start_cycle, span.end_cycle);
      blocks_[span.block].slot = slot;
      name_row(
          span.core, slot * kRowsPerSlot, slot == 0 ? "blocks" : fmt::format("blocks {}", slot));
      event(R"({{"ph":"X","cat":"block","name":"block {}","pid":{},"tid":{},"ts":{},"dur":{},)"
            R"("args":{{"cycle":{},"end_cycle":{}}}}})",
            span.block,
            span.core,
            slot * kRowsPerSlot,
            time(span.start_cycle),
            duration(span.start_cycle, span.end_cycle),
            span.start_cycle,
            span.end_cycle);
    }
  }

  [[nodiscard]] std::string duration(uint64_t from, uint64_t to) const { return time(to - from); }

  [[nodiscard]] uint32_t warp_row(const BlockState& block, uint32_t warp) const {
    return block.slot * kRowsPerSlot + 1 + warp;
  }

  std::string name_of(const ReportInsn& insn) const {
    return insn.stage.empty() ? insn.mnemonic : insn.stage + ": " + insn.mnemonic;
  }

  std::string name_of(const TimelineEntry& entry) const {
    return name_of(report_.insns[entry.pc]) + (entry.active_lanes == 0 ? " (no lane)" : "");
  }

  /// Copies and matrix operations on the rows of their unit.
  void add_unit_slice(const TimelineEntry& entry) {
    const ReportInsn& insn = report_.insns[entry.pc];
    if (!insn.is_block_scoped || entry.first_warp != 0 || entry.done_cycle <= entry.start_cycle ||
        (!insn.is_copy && insn.unit != static_cast<uint8_t>(isa::Unit::kC))) {
      return;
    }
    const uint32_t kind = insn.is_copy ? (insn.is_copy_out ? 1 : 0) : 2;
    constexpr const char* kNames[] = {"copy in", "copy out", "matrix unit"};
    const uint32_t lane = unit_rows_[{entry.core, kind}].place(entry.start_cycle, entry.done_cycle);
    const uint32_t row = kUnitRows + kind * kRowsPerSlot + lane;
    name_row(entry.core, row, lane == 0 ? kNames[kind] : fmt::format("{} {}", kNames[kind], lane));
    event(
        R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{)"
        R"("issue_cycle":{},"start_cycle":{},"done_cycle":{},"block":{},"source":{},"insn":{}}}}})",
        insn.is_copy ? "copy" : "matrix",
        json_string(name_of(insn)),
        entry.core,
        row,
        time(entry.start_cycle),
        duration(entry.start_cycle, entry.done_cycle),
        entry.issue_cycle,
        entry.start_cycle,
        entry.done_cycle,
        entry.block,
        json_string(insn.place),
        json_string(insn.text));
    if (insn.is_copy) {
      BlockState& block = blocks_[entry.block];
      const int tag = insn.copy_event;
      if (tag >= 0 && block.waited[static_cast<size_t>(tag) % isa::kEventCount]) {
        // The event starts anew.
        block.waited[static_cast<size_t>(tag) % isa::kEventCount] = false;
        std::erase_if(block.copies, [&](const Copy& copy) { return copy.event == tag; });
      }
      block.copies.push_back({entry.start_cycle, row, tag});
    }
  }

  void add_warp_slices(const TimelineEntry& entry, uint32_t warp) {
    const ReportInsn& insn = report_.insns[entry.pc];
    BlockState& block = blocks_[entry.block];
    const uint32_t row = warp_row(block, warp);
    name_row(entry.core,
             row,
             block.slot == 0 ? fmt::format("warp {}", warp)
                             : fmt::format("warp {} of blocks {}", warp, block.slot));
    const WarpWait wait = entry.wait_of(warp);
    uint64_t& end = row_ends_[{entry.core, row}];
    uint64_t target = entry.issue_cycle; // where arrows end
    const uint64_t from = std::max(end, entry.issue_cycle - wait.stall_cycles);
    if (wait.stall_cycles != 0 && from < entry.issue_cycle) {
      event(R"({{"ph":"X","cat":"wait","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{)"
            R"("cycle":{},"cycles":{},"meaning":{},"before":{},"source":{}{}}}}})",
            info(wait.reason).name,
            entry.core,
            row,
            time(from),
            duration(from, entry.issue_cycle),
            from,
            entry.issue_cycle - from,
            json_string(info(wait.reason).meaning),
            json_string(insn.mnemonic),
            json_string(insn.place),
            wait.cause_pc < report_.insns.size()
                ? ",\"cause\":" + json_string(report_.insns[wait.cause_pc].text + " at " +
                                              report_.insns[wait.cause_pc].place)
                : std::string());
      target = from;
    }
    if (entry.issue_cycle >= end) {
      event(R"({{"ph":"X","cat":"insn","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{)"
            R"("cycle":{},"done_cycle":{},"block":{},"lanes":"{}","active_lanes":{},"unit":"{}",)"
            R"("source":{},"insn":{}}}}})",
            json_string(name_of(entry)),
            entry.core,
            row,
            time(entry.issue_cycle),
            duration(entry.issue_cycle, entry.issue_cycle + 1),
            entry.issue_cycle,
            entry.done_cycle,
            entry.block,
            entry.lanes(),
            entry.active_lanes,
            isa::kUnits[insn.unit].letter,
            json_string(insn.place),
            json_string(insn.text));
      end = entry.issue_cycle + 1;
    }
    if (insn.wait_event != ReportInsn::kNoWait) {
      add_copy_arrows(entry, block, insn.wait_event, row, target);
    }
    if (insn.barrier >= 0) {
      const uint32_t generation = block.barrier_count[{insn.barrier, warp}]++;
      arrivals_[{entry.block, insn.barrier, generation}].push_back(
          {entry.issue_cycle, entry.core, row});
    }
  }

  void arrow(const char* name, const Point& from, const Point& to) {
    ++flows_;
    event(R"({{"ph":"s","cat":"{}","name":"{}","id":{},"pid":{},"tid":{},"ts":{}}})",
          name,
          name,
          flows_,
          from.core,
          from.row,
          time(from.cycle));
    event(R"({{"ph":"f","bp":"e","cat":"{}","name":"{}","id":{},"pid":{},"tid":{},"ts":{}}})",
          name,
          name,
          flows_,
          to.core,
          to.row,
          time(to.cycle));
  }

  void add_copy_arrows(const TimelineEntry& entry,
                       BlockState& block,
                       int wait_event,
                       uint32_t row,
                       uint64_t target) {
    for (const Copy& copy : block.copies) {
      if (wait_event >= 0 && copy.event != wait_event) {
        continue;
      }
      arrow("copy",
            {copy.start, entry.core, copy.row},
            {std::max(target, copy.start), entry.core, row});
    }
    if (wait_event >= 0) {
      block.waited[static_cast<size_t>(wait_event) % isa::kEventCount] = true;
    } else {
      block.waited.fill(true);
      // Copies without an event are awaited by this alone.
      std::erase_if(block.copies, [](const Copy& copy) { return copy.event < 0; });
    }
  }

  void end_barriers() {
    for (const auto& [key, arrivals] : arrivals_) {
      const auto last =
          std::max_element(arrivals.begin(), arrivals.end(), [](const Point& a, const Point& b) {
            return a.cycle < b.cycle;
          });
      for (const Point& arrival : arrivals) {
        if (arrival.row != last->row && events_ < kMaxEvents) {
          arrow("barrier", arrival, *last);
        }
      }
    }
  }

  void add_counters() {
    const uint32_t pid = report_.cores;
    event(R"({{"ph":"M","pid":{},"tid":0,"name":"process_name","args":{{"name":"machine"}}}})",
          pid);
    for (const OccupancyPoint& point : report_.occupancy) {
      event(
          R"({{"ph":"C","name":"resident warps","pid":{},"tid":0,"ts":{},"args":{{"warps":{:.2f}}}}})",
          pid,
          time(point.cycle),
          point.warps);
      event(
          R"({{"ph":"C","name":"issues a cycle","pid":{},"tid":0,"ts":{},"args":{{"issues":{:.3f}}}}})",
          pid,
          time(point.cycle),
          point.issues);
    }
    // The whole launch, so that the trace spans cycles / clock.
    event(R"({{"ph":"X","cat":"launch","name":{},"pid":{},"tid":0,"ts":0,"dur":{},"args":{{)"
          R"("cycles":{},"clock_mhz":{}}}}})",
          json_string(report_.title()),
          pid,
          duration(0, report_.cycles),
          report_.cycles,
          report_.clock_mhz);
  }

  void finish() {
    fmt::format_to(std::back_inserter(text_),
                   "\n], \"otherData\": {{\"notice\": {}, \"kernel\": {}, \"profile\": {}, "
                   "\"clock_mhz\": \"{}\", \"cycles\": \"{}\", \"warp_instructions_not_in_trace\": "
                   "\"{}\"}}}}\n",
                   json_string(report_.notice),
                   json_string(report_.kernel),
                   json_string(report_.profile),
                   report_.clock_mhz,
                   report_.cycles,
                   report_.timeline_dropped + left_out_);
  }

  const TimingReport& report_;
  std::string text_;
  size_t events_ = 0;
  uint64_t left_out_ = 0;
  uint64_t flows_ = 0;
  std::set<std::pair<uint32_t, uint32_t>> named_;
  std::set<uint32_t> named_cores_;
  std::unordered_map<uint64_t, BlockState> blocks_;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t>
      row_ends_; // of the latest slice, by core and row
  std::map<std::pair<uint32_t, uint32_t>, Rows> unit_rows_;
  std::map<std::tuple<uint64_t, int, uint32_t>, std::vector<Point>> arrivals_;
};

} // namespace

std::string trace_json(const TimingReport& report) {
  return TraceWriter(report).write();
}

} // namespace pto::sim
