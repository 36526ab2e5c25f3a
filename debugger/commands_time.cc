// SPDX-License-Identifier: Apache-2.0
// Where the cycles go: timeline, bubbles, stalls, and why a warp waits.
#include "debugger/command.h"
#include "isa/insn_desc.h"
#include "simulator/block.h"

#include <algorithm>

namespace pto::dbg {

namespace {

/// The session if it keeps time.
Session* need_time(Debugger& debugger) {
  Session* session = debugger.need_session();
  if (session != nullptr && session->mode() != RunMode::kTimed) {
    debugger.fail("a lockstep run has no time; 'set mode timed' and 'run' give it one");
    return nullptr;
  }
  return session;
}

bool timeline(Debugger& debugger, std::string_view arguments) {
  Session* session = need_time(debugger);
  if (session == nullptr) {
    return false;
  }
  const std::string_view from_text = next_word(arguments);
  const std::string_view to_text = next_word(arguments);
  const auto from = read_amount(debugger, from_text, 0, "cycle");
  const auto to = read_amount(debugger, to_text, UINT64_MAX, "cycle");
  if (!from || !to) {
    return false;
  }
  const sim::Timeline& line = *session->timeline();
  constexpr uint64_t kShown = 200;
  uint64_t count = 0;
  nlohmann::ordered_json& list = debugger.result().data["timeline"];
  list = nlohmann::ordered_json::array();
  for (const sim::TimelineEntry& entry : line.entries()) {
    if (entry.issue_cycle < *from || entry.issue_cycle > *to) {
      continue;
    }
    const std::string mnemonic = upper_mnemonic(session->program().object().code[entry.pc]);
    list.push_back({{"cycle", entry.issue_cycle},
                    {"done", entry.done_cycle},
                    {"core", entry.core},
                    {"block", entry.block},
                    {"lanes", entry.lanes()},
                    {"pc", entry.pc},
                    {"insn", mnemonic}});
    if (++count > kShown) {
      continue;
    }
    const std::string waited = entry.stall_text();
    debugger.print("Cycle {}: core {} block {} lane {}: {}, result at {}{}{}\n",
                   entry.issue_cycle,
                   entry.core,
                   entry.block,
                   entry.lanes_text(),
                   mnemonic,
                   entry.done_cycle,
                   entry.is_fused ? ", fused" : "",
                   entry.stall_cycles != 0 ? fmt::format(", after {} cycle{} of {}",
                                                         waited,
                                                         waited == "1" ? "" : "s",
                                                         sim::info(entry.reason).name)
                                           : "");
  }
  if (count > kShown) {
    debugger.print("... {} more; 'timeline FROM TO' shows others\n", count - kShown);
  }
  if (line.dropped() != 0) {
    debugger.print("{} warp insns past the limit are not kept\n", line.dropped());
  }
  if (count == 0) {
    debugger.print("Nothing has issued there.\n");
  }
  return true;
}

bool bubbles(Debugger& debugger, std::string_view /*arguments*/) {
  Session* session = need_time(debugger);
  if (session == nullptr) {
    return false;
  }
  // Cycles of a core in which nothing issued, by the insn that was waited in front of.
  const sim::TimedResult timed = *session->timed_result();
  struct Row {
    uint32_t pc = 0;
    uint64_t cycles = 0;
    sim::StallReason reason = sim::StallReason::kOperand;
  };
  std::vector<Row> rows;
  for (uint32_t pc = 0; pc < timed.counters.by_pc.size(); ++pc) {
    const sim::StallCycles& stalls = timed.counters.by_pc[pc].stalls;
    for (unsigned r = 0; r < sim::kStallReasonCount; ++r) {
      const auto reason = static_cast<sim::StallReason>(r);
      if (stalls[reason] != 0 && reason != sim::StallReason::kIssueSlot) {
        rows.push_back({pc, stalls[reason], reason});
      }
    }
  }
  std::stable_sort(
      rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.cycles > b.cycles; });
  if (rows.empty()) {
    debugger.print("No warp has waited.\n");
  }
  constexpr size_t kShown = 12;
  for (size_t i = 0; i < rows.size() && i < kShown; ++i) {
    debugger.print("{:>8} warp cycles  {:<14} in front of {}\n",
                   rows[i].cycles,
                   sim::info(rows[i].reason).name,
                   describe_insn(session->program(), rows[i].pc));
  }
  if (rows.size() > kShown) {
    debugger.print("... {} more\n", rows.size() - kShown);
  }
  return true;
}

bool info_stalls(Debugger& debugger, std::string_view /*arguments*/) {
  Session* session = need_time(debugger);
  if (session == nullptr) {
    return false;
  }
  const sim::TimedResult timed = *session->timed_result();
  sim::StallCycles total;
  for (const sim::PcCounters& counters : timed.counters.by_pc) {
    total.add(counters.stalls);
  }
  const uint64_t sum = total.total();
  debugger.print("cycle {}: {} warp insns issued, {} warp cycles waited\n",
                 session->cycle(),
                 timed.counters.warp_insns,
                 sum);
  for (unsigned r = 0; r < sim::kStallReasonCount; ++r) {
    const auto reason = static_cast<sim::StallReason>(r);
    if (total[reason] != 0) {
      debugger.print("{:>10} {:>5.1f} %  {:<14} {}\n",
                     total[reason],
                     100.0 * static_cast<double>(total[reason]) / static_cast<double>(sum),
                     sim::info(reason).name,
                     sim::info(reason).meaning);
      debugger.result().data["stalls"][std::string(sim::info(reason).name)] = total[reason];
    }
  }
  return true;
}

bool why(Debugger& debugger, std::string_view /*arguments*/) {
  Session* session = debugger.need_session();
  const sim::BlockRun* run = session != nullptr ? debugger.need_block() : nullptr;
  if (run == nullptr) {
    return false;
  }
  const uint32_t w = session->focus().warp;
  const sim::WarpState& warp = run->warp(w);
  const sim::Program& program = session->program();
  if (warp.status == sim::WarpStatus::kDone) {
    debugger.print("Warp {} has ended.\n", w);
    return true;
  }
  debugger.print("Warp {} stands at {}\n", w, describe_insn(program, warp.pc));
  if (warp.status == sim::WarpStatus::kAtBlockBarrier) {
    std::vector<std::string> missing;
    for (uint32_t other = 0; other < run->warp_count(); ++other) {
      const sim::WarpState& state = run->warp(other);
      if (state.status != sim::WarpStatus::kDone &&
          state.status != sim::WarpStatus::kAtBlockBarrier) {
        missing.push_back(
            fmt::format("  warp {} at {}\n", other, describe_insn(program, state.pc)));
      }
    }
    if (missing.empty()) {
      debugger.print(
          "It waits at barrier {} in vain: every warp is there, but not with all its lanes.\n",
          warp.barrier_id);
      return true;
    }
    debugger.print("It waits at barrier {} for {} warps:\n", warp.barrier_id, missing.size());
    for (const std::string& line : missing) {
      debugger.print("{}", line);
    }
    return true;
  }
  if (warp.status == sim::WarpStatus::kWaitingEvent ||
      warp.status == sim::WarpStatus::kWaitingAll) {
    debugger.print("It waits for {}.\n",
                   warp.status == sim::WarpStatus::kWaitingAll
                       ? std::string("all copies")
                       : fmt::format("event e{}", warp.wait_event));
    return true;
  }
  const auto status = session->warp_status(run->index(), w);
  if (!status) {
    debugger.print("It is ready.\n");
    return true;
  }
  const sim::StallInfo& info = sim::info(status->reason);
  if (status->ready_cycle != UINT64_MAX && status->ready_cycle <= session->cycle()) {
    debugger.print("It may issue in this cycle ({}).\n", session->cycle());
    return true;
  }
  if (status->has_issued && status->reason == sim::StallReason::kIssueSlot) {
    debugger.print("It has issued in this cycle ({}); its next issue may be in cycle {}.\n",
                   session->cycle(),
                   status->ready_cycle);
    return true;
  }
  debugger.print("It {}: {} ({})\n",
                 status->ready_cycle == UINT64_MAX
                     ? std::string("waits for others")
                     : fmt::format("can issue from cycle {} on", status->ready_cycle),
                 info.name,
                 info.meaning);
  if (!status->operand.empty()) {
    debugger.print("  awaited: {}{}\n",
                   status->operand,
                   status->cause_pc < program.insns().size()
                       ? " of " + describe_insn(program, status->cause_pc)
                       : std::string());
  }
  debugger.print("  hint: {}\n", info.hint);
  return true;
}

constexpr Command kRows[] = {
    {.name = "timeline",
     .aliases = "info timeline",
     .group = CommandGroup::kTime,
     .usage = "timeline [FROM [TO]]",
     .summary = "What issued in which cycle, lanes together, with its result's cycle.",
     .example = "timeline 0 20",
     .run = timeline},
    {.name = "bubbles",
     .group = CommandGroup::kTime,
     .usage = "bubbles",
     .summary = "Insns in front of which warps waited longest, and why.",
     .example = "bubbles",
     .run = bubbles},
    {.name = "info stalls",
     .group = CommandGroup::kTime,
     .usage = "info stalls",
     .summary = "Waiting cycles of all warps by reason.",
     .example = "info stalls",
     .run = info_stalls},
    {.name = "why",
     .group = CommandGroup::kTime,
     .usage = "why",
     .summary = "Why the focused warp is not issuing.",
     .example = "why",
     .run = why},
};

} // namespace

std::span<const Command> time_commands() {
  return kRows;
}

} // namespace pto::dbg
