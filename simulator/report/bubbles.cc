// SPDX-License-Identifier: Apache-2.0
// Finds bubbles in the timeline. The cause of one is the wait, of the warp that ended it, that
// covers most of it: a matrix operation seldom waits itself; the WAIT some insns before it does.
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

// How far back a warp's waits are looked for.
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
      by_block_[entry.block].push_back(i);
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
      Cause cause{entry.pc, entry.cause_pc, entry.reason};
      // Before the block was there, nobody waited.
      if (entry.stall_cycles < (entry.issue_cycle - from + 1) / 2) {
        cause = {entry.pc, UINT32_MAX, StallReason::kEmpty, false, true};
      }
      add("issue", from, entry.issue_cycle, entry, cause);
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
      const Cause cause = entry.held_by_pc != UINT32_MAX
                              ? Cause{entry.pc, entry.held_by_pc, StallReason::kUnit, true}
                              : find_cause(entry, busy_until, start);
      add(isa::kUnits[entry.unit].letter, busy_until, start, entry, cause);
    }
    core.is_used[entry.unit] = true;
    busy_until = std::max(busy_until, entry.done_cycle);
  }

  /// The wait of the entry's warp that covers most of [from, to).
  Cause find_cause(const TimelineEntry& entry, uint64_t from, uint64_t to) const {
    Cause cause{entry.pc};
    uint64_t most = 0;
    const auto consider = [&](const TimelineEntry& other) {
      const uint64_t begin = std::max(from, other.issue_cycle - other.stall_cycles);
      const uint64_t end = std::min(to, other.issue_cycle);
      if (end > begin && end - begin > most) {
        most = end - begin;
        cause = {other.pc, other.cause_pc, other.reason};
      }
    };
    consider(entry);
    const auto look_back = [&](const std::vector<size_t>& indices, bool of_any_warp) {
      size_t looked_at = 0;
      for (auto at = indices.rbegin(); at != indices.rend(); ++at) {
        const TimelineEntry& other = report_.timeline[*at];
        if (other.issue_cycle < from || ++looked_at > kMaxLookBack) {
          break;
        }
        if (of_any_warp ||
            (other.first_warp <= entry.first_warp && entry.first_warp <= other.last_warp)) {
          consider(other);
        }
      }
    };
    const auto found = by_block_.find(entry.block);
    if (found != by_block_.end()) {
      look_back(found->second, false);
    }
    const TimelineEntry& first =
        found != by_block_.end() ? report_.timeline[found->second.front()] : entry;
    const uint64_t block_begin = first.issue_cycle - first.stall_cycles;
    if (block_begin > from) {
      // The block came within the stretch: the one before waited, or the core had none.
      uint64_t empty_from = from;
      const auto on_core = by_core_.find(entry.core);
      if (on_core != by_core_.end()) {
        look_back(on_core->second, true);
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
    }
    return cause;
  }

  void add(std::string_view unit,
           uint64_t from,
           uint64_t to,
           const TimelineEntry& entry,
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
      bubble.warp = entry.first_warp;
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
  std::unordered_map<uint64_t, std::vector<size_t>> by_block_; // what is recorded so far
  std::unordered_map<uint32_t, std::vector<size_t>> by_core_;
  std::map<Key, Bubble> bubbles_;
};

} // namespace

std::vector<Bubble> find_bubbles(const TimingReport& report, size_t max_bubbles) {
  return BubbleFinder(report).find(max_bubbles);
}

} // namespace pto::sim
