// SPDX-License-Identifier: Apache-2.0
// How checks, timeline, watchpoints and counters look on: events of a run, a call a warp insn.
//
// wants() is asked once, when the observer is attached, so a run pays only for the events that
// somebody wants; with no observer the engine takes loops without calls. Observers never change
// what a program computes: warps execute in the same order with and without them. References are
// valid during the call. Runs with observers use one host thread.
//
// Insns come in two sizes. before_insn and after_insn are called a warp at a time, after_span once
// for all warps of a block that execute an insn together (a single one where warps go one by one).
// An observer that says by interests() which pcs it cares about, and how, leaves the rest of the
// program to the engine's fast loops.
#pragma once

#include "isa/linear.h"
#include "simulator/issue_record.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace pto::sim {

class BlockRun;
class Launch;
struct Fault;
struct ProgramInsn;
struct RunResult;
struct ScratchpadSegment;

using Wants = uint32_t;
inline constexpr Wants kWantsLaunch = 1 << 0;
inline constexpr Wants kWantsBlock = 1 << 1;
inline constexpr Wants kWantsBefore = 1 << 2; // before_insn
inline constexpr Wants kWantsIssue = 1 << 3;  // after_insn
inline constexpr Wants kWantsBarrier = 1 << 4;
inline constexpr Wants kWantsCopy = 1 << 5;
inline constexpr Wants kWantsWait = 1 << 6;
inline constexpr Wants kWantsTile = 1 << 7;
inline constexpr Wants kWantsDivergence = 1 << 8;
inline constexpr Wants kWantsExit = 1 << 9;
inline constexpr Wants kWantsPrint = 1 << 10;
inline constexpr Wants kWantsFault = 1 << 11;
inline constexpr Wants kWantsSpan = 1 << 12; // before_span, after_span; see interests()

/// Where an event happened.
struct EventSite {
  const BlockRun& block;
  uint32_t warp = 0;
  uint32_t pc = 0;
};

/// How an observer wants to hear of the insn at a pc.
enum class Interest : uint8_t {
  kNone,
  kSpan, // before_span and after_span
  kWarp, // before_insn and after_insn, as far as it wants them
};

/// Warps [first_warp, first_warp + warp_count) of a block at one insn; not all of them need to
/// execute it.
struct SpanRecord {
  const BlockRun* block = nullptr;
  const ProgramInsn* decoded = nullptr;
  uint32_t pc = 0;
  uint32_t first_warp = 0;
  uint32_t warp_count = 0;
  const uint32_t* exec_masks = nullptr; // by warp of the span: lanes in which the guard holds

  // After a LOAD, STORE or ATOM; as in IssueRecord.
  bool has_access = false;
  bool is_linear = false; // the lanes' addresses are `at`
  isa::LinearValue at;
  const uint64_t* addresses = nullptr; // by lane of the span, unless it is linear
  isa::Space space = isa::Space::kHbm;
  uint32_t access_bytes = 0;
  uint8_t element_bytes = 0;
  isa::CacheHint hint = isa::CacheHint::kCached;
  bool reads_memory = false;
  bool writes_memory = false;
  bool is_atomic = false;

  /// Neighbouring lanes access neighbouring bytes, across warps as well.
  bool is_contiguous() const {
    return is_linear && at.lane_step == access_bytes &&
           (warp_count == 1 || at.warp_step == uint64_t{access_bytes} * isa::kWarpLanes);
  }
  uint64_t address(uint32_t lane_of_span) const {
    return is_linear ? at.base + lane_of_span % isa::kWarpLanes * at.lane_step +
                           lane_of_span / isa::kWarpLanes * at.warp_step
                     : addresses[lane_of_span];
  }
};

class Observer {
public:
  virtual ~Observer() = default;
  virtual Wants wants() const = 0;
  /// An Interest for every pc of the program, or null: kWarp for all. Asked for when the observer
  /// is attached and when a block starts; what the array holds may change at any time.
  virtual const Interest* interests() const { return nullptr; }

  virtual void launch_begin(const Launch& launch);
  virtual void launch_end(const Launch& launch, const RunResult& result);
  virtual void block_begin(const BlockRun& block);
  /// After the last lane ended, with copies still pending (they complete right after this call).
  virtual void block_end(const BlockRun& block);

  /// The state is as it was before the insn: sources, old memory. exec_mask: lanes in which the
  /// guard holds (0: nothing will happen). Not called for a warp whose insn was blocked and goes
  /// on.
  virtual void before_insn(const EventSite& site, uint32_t active_mask, uint32_t exec_mask);
  /// After the insn, unless it faulted (see fault).
  virtual void after_insn(const BlockRun& block, const IssueRecord& record);

  /// The same for spans. Not called where no lane executes the insn.
  virtual void before_span(const SpanRecord& span);
  virtual void after_span(const SpanRecord& span);

  virtual void barrier_arrive(const EventSite& site, unsigned id, uint32_t lane_mask);
  /// All warps of the block passed barrier `id`.
  virtual void barrier_release(const BlockRun& block, unsigned id);
  virtual void copy_start(const EventSite& site, const CopyRecord& copy);
  /// The data has moved; `forced` at the end of the block, where nothing waited for it.
  virtual void copy_complete(const BlockRun& block, const CopyRecord& copy, bool forced);
  /// `event` -1: WAIT_ALL. wait_end follows once its copies are complete (at once if they are).
  virtual void wait_begin(const EventSite& site, int event);
  virtual void wait_end(const EventSite& site, int event);
  virtual void tile_alloc(const EventSite& site, const ScratchpadSegment& segment);
  virtual void tile_free(const EventSite& site, const ScratchpadSegment& segment);
  virtual void diverge(const EventSite& site, uint32_t taken, uint32_t not_taken, uint32_t join_pc);
  /// Lanes met again at site.pc; `mask` is active from here.
  virtual void reconverge(const EventSite& site, uint32_t mask);
  virtual void exit_lanes(const EventSite& site, uint32_t mask);
  virtual void print_line(const EventSite& site, unsigned lane, std::string_view line);
  virtual void fault(const BlockRun& block, const Fault& fault);
};

/// The observers of a run, by event. A value; observers are borrowed.
class ObserverList {
public:
  void attach(Observer& observer);
  void detach(Observer& observer);
  bool empty() const { return entries_.empty(); }
  bool wants(Wants events) const { return (union_ & events) != 0; }
  /// Some observer wants an event of an insn.
  bool wants_insns() const { return wants(kInsnEvents); }

  /// Asks every observer for its interests again.
  void refresh_interests();
  /// The finest size in which some observer wants the insn at `pc`.
  Interest interest(uint32_t pc) const {
    Interest most = Interest::kNone;
    for (const Entry& entry : entries_) {
      const Interest own = entry.interest(pc);
      most = own > most ? own : most;
    }
    return most;
  }
  /// As notify, to observers with just this interest in the insn.
  template <class Call>
  void notify_insn(Wants event, uint32_t pc, Interest interest, Call&& call) const {
    if (wants(event)) {
      for (const Entry& entry : entries_) {
        if ((entry.wants & event) != 0 && entry.interest(pc) == interest) {
          call(*entry.observer);
        }
      }
    }
  }

  template <class Call> void notify(Wants event, Call&& call) const {
    if (wants(event)) {
      for (const Entry& entry : entries_) {
        if ((entry.wants & event) != 0) {
          call(*entry.observer);
        }
      }
    }
  }

private:
  static constexpr Wants kInsnEvents = ~(kWantsLaunch | kWantsBlock | kWantsFault);

  struct Entry {
    Observer* observer = nullptr;
    Wants wants = 0;
    const Interest* interests = nullptr;

    Interest interest(uint32_t pc) const {
      if (interests != nullptr) {
        return interests[pc];
      }
      return (wants & kInsnEvents) != 0 ? Interest::kWarp : Interest::kNone;
    }
  };
  std::vector<Entry> entries_;
  Wants union_ = 0;
};

} // namespace pto::sim
