// SPDX-License-Identifier: Apache-2.0
// Finds bubbles in the timeline. The cause of one is what the warp that ended it waited for longest
// in it, all waits for one reason added up: a matrix operation seldom waits itself; the WAIT some
// insns before it does. Of warps that end it together the one counts that came last: the others
// have waited for it.
#include "simulator/report/bubbles.h"

#include "isa/insn_desc.h"
#include "simulator/report/timing_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

namespace pto::sim {

namespace {

// How far back, in entries, a warp's waits are looked for.
constexpr size_t kMaxLookBack = 512;

struct Cause {
  uint32_t at_pc = UINT32_MAX; // insn that waited
  uint32_t cause_pc = UINT32_MAX;
  StallReason reason = StallReason::kIssueSlot;
  bool is_held = false; // a copy or matrix operation that queued for its bytes of l1
  bool is_launch = false;
};

// Less than this share of the time of the cores is noise.
constexpr double kMinShare = 0.002;

/// Whether the wait is for the result of another insn.
bool is_of_operand(StallReason reason) {
  switch (reason) {
  case StallReason::kOperand:
  case StallReason::kCacheMiss:
  case StallReason::kBankConflict:
  case StallReason::kBandwidth:
  case StallReason::kAtomic:
  case StallReason::kFence:
  case StallReason::kCopyWait:
    return true;
  default:
    return false;
  }
}

class BubbleFinder {
public:
  explicit BubbleFinder(const TimingReport& report) : report_(report) {}

  std::vector<Bubble> find(size_t max_bubbles) {
    for (size_t i = 0; i < report_.timeline.size(); ++i) {
      const TimelineEntry& entry = report_.timeline[i];
      Core& core = cores_[entry.core];
      look_at_issue(core, entry);
      look_at_unit(core, entry);
      for (uint32_t warp = entry.first_warp; warp <= entry.last_warp; ++warp) {
        by_warp_[{entry.block, warp}].push_back(i);
      }
      first_of_block_.try_emplace(entry.block, i);
      by_core_[entry.core].push_back(i);
    }
    std::vector<Bubble> result;
    const double least =
        kMinShare * static_cast<double>(report_.cycles) * std::max(1u, report_.cores_used());
    for (auto& [key, bubble] : bubbles_) {
      if (static_cast<double>(bubble.total_cycles) >= least) {
        result.push_back(std::move(bubble));
      }
    }
    std::stable_sort(result.begin(), result.end(), [](const Bubble& a, const Bubble& b) {
      return a.total_cycles > b.total_cycles;
    });
    // Several units idle for one cause are one bubble.
    std::set<std::tuple<uint32_t, uint32_t, StallReason, std::string>> seen;
    std::erase_if(result, [&](const Bubble& bubble) {
      const std::string which = bubble.cause_pc == UINT32_MAX ? bubble.text : std::string();
      return !seen.insert({bubble.at_pc, bubble.cause_pc, bubble.reason, which}).second;
    });
    if (result.size() > max_bubbles) {
      result.resize(max_bubbles);
    }
    return result;
  }

private:
  struct Core {
    bool has_issued = false;
    uint64_t next_issue = 0; // first cycle after the latest issue
    std::array<bool, isa::kUnitCount> is_used{};
    std::array<uint64_t, isa::kUnitCount> busy_until{};
  };
  using Key = std::tuple<std::string, uint32_t, uint32_t, uint32_t, StallReason, bool>;

  void look_at_issue(Core& core, const TimelineEntry& entry) {
    const uint64_t from =
        core.has_issued ? core.next_issue : entry.issue_cycle - entry.stall_cycles;
    if (entry.issue_cycle > from) {
      const uint64_t half = (entry.issue_cycle - from + 1) / 2;
      const uint32_t latest = entry.latest_warp();
      const WarpWait own = entry.wait_of(latest);
      const WarpWait wait = own.stall_cycles >= half ? own : entry.longest_wait();
      Cause cause{entry.pc, wait.cause_pc, wait.reason};
      // Before the block was there, nobody waited.
      if (wait.stall_cycles < half) {
        cause = {entry.pc, UINT32_MAX, StallReason::kEmpty, false, true};
      }
      add("issue", from, entry.issue_cycle, entry, latest, cause);
    }
    core.has_issued = true;
    core.next_issue = std::max(core.next_issue, entry.issue_cycle + 1);
  }

  void look_at_unit(Core& core, const TimelineEntry& entry) {
    const ReportInsn& insn = report_.insns[entry.pc];
    if (insn.is_block_scoped && entry.first_warp != 0) {
      return; // passed over
    }
    if (entry.unit == static_cast<uint8_t>(isa::Unit::kS)) {
      return; // control has no work to be kept busy with
    }
    const uint64_t start = std::max(entry.issue_cycle, entry.start_cycle);
    uint64_t& busy_until = core.busy_until[entry.unit];
    if (core.is_used[entry.unit] && start > busy_until) {
      const uint32_t warp = entry.latest_warp();
      const Cause cause = entry.held_by_pc != UINT32_MAX
                              ? Cause{entry.pc, entry.held_by_pc, StallReason::kUnit, true}
                              : find_cause(entry, warp, busy_until, start);
      add(isa::kUnits[entry.unit].letter, busy_until, start, entry, warp, cause);
    }
    core.is_used[entry.unit] = true;
    busy_until = std::max(busy_until, entry.done_cycle);
  }

  /// Cycles of [from, to) that a warp spent in the wait before an entry of it.
  static uint64_t
  part_of(const TimelineEntry& entry, const WarpWait& wait, uint64_t from, uint64_t to) {
    const uint64_t begin = std::max(from, entry.issue_cycle - wait.stall_cycles);
    const uint64_t end = std::min(to, entry.issue_cycle);
    return end > begin ? end - begin : 0;
  }

  /// What `warp` waited for longest in [from, to), up to the entry: the reason with most cycles,
  /// and where it waited most for that.
  Cause longest_wait(
      const TimelineEntry& entry, uint32_t warp, uint64_t from, uint64_t to, uint64_t& most) const {
    StallCycles by_reason;
    std::map<std::tuple<StallReason, uint32_t, uint32_t>, uint64_t> by_place;
    const auto consider = [&](const TimelineEntry& other) {
      const WarpWait wait = other.wait_of(warp);
      const uint64_t cycles = part_of(other, wait, from, to);
      by_reason[wait.reason] += cycles;
      by_place[{wait.reason, other.pc, wait.cause_pc}] += cycles;
    };
    consider(entry);
    const auto found = by_warp_.find({entry.block, warp});
    if (found != by_warp_.end()) {
      size_t looked_at = 0;
      for (auto at = found->second.rbegin(); at != found->second.rend(); ++at) {
        const TimelineEntry& other = report_.timeline[*at];
        if (other.issue_cycle < from || ++looked_at > kMaxLookBack) {
          break;
        }
        consider(other);
      }
    }
    const StallReason reason = largest_stall(by_reason);
    most = by_reason[reason];
    Cause cause{entry.pc};
    uint64_t most_there = 0;
    for (const auto& [place, cycles] : by_place) {
      if (std::get<0>(place) == reason && cycles > most_there) {
        most_there = cycles;
        cause = {std::get<1>(place), std::get<2>(place), reason};
      }
    }
    return cause;
  }

  /// What kept the unit idle in [from, to), which `warp` ended with the entry.
  Cause find_cause(const TimelineEntry& entry, uint32_t warp, uint64_t from, uint64_t to) const {
    uint64_t most = 0;
    Cause cause = longest_wait(entry, warp, from, to, most);
    const auto found = first_of_block_.find(entry.block);
    const TimelineEntry& first =
        found != first_of_block_.end() ? report_.timeline[found->second] : entry;
    const uint64_t block_begin = first.issue_cycle - first.stall_cycles;
    if (block_begin <= from) {
      return cause;
    }
    // The block came within the stretch: the one before waited, or the core had none.
    uint64_t empty_from = from;
    const auto on_core = by_core_.find(entry.core);
    if (on_core != by_core_.end()) {
      size_t looked_at = 0;
      for (auto at = on_core->second.rbegin(); at != on_core->second.rend(); ++at) {
        const TimelineEntry& other = report_.timeline[*at];
        if (other.issue_cycle < from || ++looked_at > kMaxLookBack) {
          break;
        }
        if (const uint64_t cycles = part_of(other, other.longest_wait(), from, to); cycles > most) {
          most = cycles;
          cause = {other.pc, other.cause_pc, other.reason};
        }
      }
      for (auto at = on_core->second.rbegin(); at != on_core->second.rend(); ++at) {
        const TimelineEntry& other = report_.timeline[*at];
        if (other.issue_cycle < block_begin) {
          empty_from = std::max(empty_from, other.issue_cycle);
          break;
        }
      }
    }
    if (block_begin > empty_from && block_begin - empty_from > most) {
      return {first.pc, UINT32_MAX, StallReason::kEmpty, false, true};
    }
    return cause;
  }

  void add(std::string_view unit,
           uint64_t from,
           uint64_t to,
           const TimelineEntry& entry,
           uint32_t warp,
           const Cause& cause) {
    const bool has_cause = cause.is_held || is_of_operand(cause.reason);
    const uint32_t cause_pc = has_cause ? cause.cause_pc : UINT32_MAX;
    const Key key{std::string(unit), entry.pc, cause.at_pc, cause_pc, cause.reason, cause.is_held};
    Bubble& bubble = bubbles_[key];
    if (bubble.count == 0) {
      bubble.unit = unit;
      bubble.ended_by_pc = entry.pc;
      bubble.at_pc = cause.at_pc;
      bubble.cause_pc = cause_pc;
      bubble.reason = cause.reason;
      bubble.text = describe(entry, cause);
      bubble.hint = cause.is_held     ? "give the copy bytes of its own: use two buffers in turn"
                    : cause.is_launch ? "give each block more to do, or start more blocks at once"
                                      : std::string(info(cause.reason).hint);
    }
    ++bubble.count;
    bubble.total_cycles += to - from;
    if (to - from > bubble.longest_cycles) {
      bubble.longest_cycles = to - from;
      bubble.longest_from = from;
      bubble.core = entry.core;
      bubble.block = entry.block;
      bubble.warp = warp;
    }
  }

  [[nodiscard]] std::string name_of(uint32_t pc) const {
    const ReportInsn& insn = report_.insns[pc];
    return fmt::format("{} at {}", insn.mnemonic, insn.place);
  }

  [[nodiscard]] std::string describe(const TimelineEntry& entry, const Cause& cause) const {
    const bool has_cause =
        cause.cause_pc < report_.insns.size() && (cause.is_held || is_of_operand(cause.reason));
    const std::string other = has_cause ? name_of(cause.cause_pc) : std::string();
    const std::string at = name_of(cause.at_pc);
    if (cause.is_held) {
      return fmt::format("{} could not begin before {} had done with its bytes of l1", at, other);
    }
    if (cause.is_launch) {
      return fmt::format("no block was there before {}", at);
    }
    std::string text;
    switch (cause.reason) {
    case StallReason::kOperand:
      text = fmt::format(
          "{} needs the result of {}", at, has_cause ? other : "an earlier instruction");
      break;
    case StallReason::kCopyWait:
      text = fmt::format(
          "{} waits for the copy of {}", at, has_cause ? other : "an earlier instruction");
      break;
    case StallReason::kIssueSlot:
      text = fmt::format("its warp had other instructions to issue before {}", at);
      break;
    default:
      text = has_cause ? fmt::format("{} waits for {}: {}", at, other, info(cause.reason).meaning)
                       : fmt::format("{}: {}", at, info(cause.reason).meaning);
    }
    if (cause.at_pc != entry.pc) {
      text += fmt::format(", before {}", name_of(entry.pc));
    }
    return text;
  }

  const TimingReport& report_;
  std::map<uint32_t, Core> cores_;
  // What is recorded so far.
  std::map<std::pair<uint64_t, uint32_t>, std::vector<size_t>> by_warp_; // of a block
  std::unordered_map<uint64_t, size_t> first_of_block_;
  std::unordered_map<uint32_t, std::vector<size_t>> by_core_;
  std::map<Key, Bubble> bubbles_;
};

} // namespace

std::vector<Bubble> find_bubbles(const TimingReport& report, size_t max_bubbles) {
  return BubbleFinder(report).find(max_bubbles);
}

} // namespace pto::sim
