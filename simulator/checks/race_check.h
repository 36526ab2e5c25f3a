// SPDX-License-Identifier: Apache-2.0
// The race check: two accesses of the same byte by different agents (warps, copies), at least one a
// write, that nothing orders. It judges the order that the program enforces, not the one that this
// run happened to take, so a race is found in a run that computed the right answer.
//
// No race: two atomics; an atomic or a store against a .cv load (a flag being polled). Lanes of one
// warp are ordered, but lanes that store different values to one byte in one insn are reported,
// since which value remains is undefined. A plain load of a line that this core may have cached
// before another block's write is reported as stale even where the two are ordered.
#pragma once

#include "simulator/checks/access_shadow.h"
#include "simulator/checks/block_map.h"
#include "simulator/checks/finding.h"
#include "simulator/checks/happens_before.h"
#include "simulator/observer.h"

#include <bit>
#include <optional>
#include <unordered_map>
#include <vector>

namespace pto::sim {

class RaceCheck : public Observer {
public:
  explicit RaceCheck(Findings& findings) : findings_(findings) {}

  Wants wants() const override {
    return kWantsLaunch | kWantsBlock | kWantsSpan | kWantsIssue | kWantsBarrier | kWantsCopy |
           kWantsWait;
  }
  const Interest* interests() const override { return interests_.data(); }
  void launch_begin(const Launch& launch) override;
  void block_begin(const BlockRun& block) override;
  void block_end(const BlockRun& block) override;
  void after_span(const SpanRecord& span) override;
  void after_insn(const BlockRun& block, const IssueRecord& record) override;
  void barrier_release(const BlockRun& block, unsigned id) override;
  void copy_start(const EventSite& site, const CopyRecord& copy) override;
  void wait_end(const EventSite& site, int event) override;

private:
  /// Findings of this kind that are told apart at the same two insns.
  enum Topic : unsigned { kConflict, kSameInsn, kStale };
  static constexpr uint32_t kTrackedCores = 64; // whose data caches are followed

  struct BlockData {
    AccessShadow l1;
    std::vector<CopyRecord> copies;         // not yet waited for by every warp
    std::vector<uint32_t> warp_barrier_pcs; // last BARRIER of each warp since the block's, or
                                            // kNoPc
    void renew() {
      l1.clear();
      copies.clear();
    }
  };
  /// Bytes next to each other that lanes next to each other access, or a row of a copy.
  struct Access {
    const BlockRun* block = nullptr;
    HappensBefore::View by; // the warp, also where it starts a copy
    AccessShadow* shadow = nullptr;
    Agent agent = kNoAgent;
    uint32_t time = 0;
    uint32_t pc = 0;
    uint32_t first_lane = 0;
    uint32_t lane_bytes = 0; // of one lane, a power of two; 0: not by lanes
    isa::Space space = isa::Space::kHbm;
    uint64_t address = 0;
    uint64_t bytes = 0;
    bool reads = false;
    bool writes = false;
    bool is_atomic = false;
    bool is_volatile = false;
  };
  /// One warp's share of a span's access.
  struct WarpAccess {
    const SpanRecord& span;
    HappensBefore::View by;
    uint32_t mask = 0;
    const uint64_t* addresses = nullptr; // by lane; null: base + lane * step
    uint64_t base = 0;
    uint64_t step = 0;
    uint64_t address(unsigned lane) const {
      return addresses != nullptr ? addresses[lane] : base + lane * step;
    }
  };

  /// Of a warp's accesses, lane by lane.
  enum class Overlap : uint8_t { kNone, kPerhaps };
  /// What visits the shadow of an access.
  struct Visitor {
    RaceCheck& check;
    const Access& access;

    void cell(AccessCell& cell, uint8_t mask, uint64_t address, uint64_t bytes) {
      check.touch(cell, mask, address, bytes, access);
    }
    bool packs() const { return is_packable(access); }
    uint64_t words(PackedLine& line, uint64_t begin, uint64_t end) {
      return check.touch_packed(line, begin, end, access);
    }
  };

  // Lines of hbm as the data caches of the cores may hold them. Cores past the first kTrackedCores
  // are left out: what they hold is not known.
  struct CachedLine {
    uint64_t held = 0;  // bit a core: it has loaded the line
    uint64_t stale = 0; // of those: another core has written it since
  };
  struct LineOfCore {
    uint64_t number = 0;
    uint32_t core = 0;
    bool operator==(const LineOfCore&) const = default;
  };
  struct HashLineOfCore {
    size_t operator()(const LineOfCore& line) const {
      return static_cast<size_t>((line.number * kTrackedCores + line.core) * 0x9e3779b97f4a7c15U);
    }
  };

  /// Bytes that a LOAD, STORE or ATOM accesses in a lane; 0 for other insns.
  static uint32_t lane_bytes_of(const ProgramInsn& decoded);
  static Interest interest_in(const ProgramInsn& decoded);
  void lane_accesses(WarpAccess warp, AccessShadow& shadow);
  /// The accesses of lanes that are not known to be in a row.
  Overlap lane_by_lane(const WarpAccess& warp, Access access);
  /// The same for words that are judged one by one; nothing where they are others.
  std::optional<Overlap> scattered_words(const WarpAccess& warp, Access access);
  /// Atomics on words that have cells of their own, up to the first lane whose word has none.
  /// Returns the lanes that are left.
  uint32_t atomic_words(const WarpAccess& warp, const Access& access);
  void word_of_lane(AccessCell& line, uint64_t address, unsigned lane, Access access);
  void synchronise(const WarpAccess& warp);
  void range(const Access& access);
  /// Words of a packed line. Returns the first one that it left alone, for touch() to judge: there
  /// a race may be to report, or the line has no room.
  uint64_t touch_packed(PackedLine& line, uint64_t begin, uint64_t end, const Access& access);
  void
  touch(AccessCell& cell, uint8_t mask, uint64_t address, uint64_t bytes, const Access& access);
  class PackedTouch; // race_packed.h
  static bool is_packable(const Access& access) {
    // Words that warps take turns at by atomics often have fences between, so other times each.
    return !access.is_atomic &&
           ((access.agent & kCopyBit) != 0 || access.by.warp() < PackedLine::kMaxWarps);
  }
  /// A read that no later write races with is not kept: it would only hide one that can.
  static bool keeps_read_of(const Access& access) {
    return access.reads && !access.is_atomic && !access.is_volatile;
  }
  void record_read(AccessCell& cell, uint8_t mask, const AccessEntry& entry, const Access& access);
  /// The lane of an access that touches the address first.
  static uint32_t lane_of(uint64_t address, const Access& access) {
    if (access.lane_bytes == 0) {
      return 0;
    }
    const auto offset = static_cast<uint32_t>(address - access.address); // of one warp
    const uint32_t lanes = offset >> std::countr_zero(access.lane_bytes);
    return (access.first_lane + lanes) % isa::kWarpLanes;
  }
  bool is_ordered(const AccessEntry& earlier, const Access& access) const {
    // The warp that starts a copy acts for it: what the warp knows, the copy knows.
    return earlier.agent == access.agent ||
           order_.is_ordered(earlier.agent, earlier.time, access.by);
  }
  void report(const AccessEntry& earlier,
              bool earlier_wrote,
              uint64_t address,
              uint64_t bytes,
              const Access& access);
  uint64_t conflicting_bytes(const AccessEntry& earlier,
                             bool earlier_wrote,
                             uint64_t address,
                             uint64_t known_bytes,
                             uint64_t end,
                             const Access& access);
  std::string hint_for(const AccessEntry& earlier, const Access& access) const;
  void same_insn_writes(const WarpAccess& warp);
  void cached_lines(const WarpAccess& warp);
  /// Of lanes that are not in a row, on a core that is tracked.
  void gather_cached(const WarpAccess& warp, uint32_t core);
  void forget_settled_copies(const BlockRun& block);
  void control_cached(const BlockRun& block, const IssueRecord& record);
  void drop_line(uint64_t number, uint32_t core);
  /// Parts of the line that the warp accesses; `whole`: only those of which it takes every byte.
  uint64_t parts_of(const WarpAccess& warp, uint64_t number, bool whole) const;
  void write_cached(const WarpAccess& warp, uint64_t number, CachedLine& line);
  void stale_read(const WarpAccess& warp, uint64_t number);
  void report_stale(const WarpAccess& warp, unsigned lane, const AccessEntry& write);
  AccessShadow& shadow(const BlockRun& block, isa::Space space);

  Findings& findings_;
  std::vector<Interest> interests_;
  HappensBefore order_;
  AccessShadow hbm_;
  BlockMap<BlockData> blocks_;
  const Launch* launch_ = nullptr;
  bool has_caches_ = false; // several, and several blocks
  unsigned line_log2_ = 0;
  unsigned part_log2_ = 0; // of a part of a line, of which there are 64 at most
  PagedArray<CachedLine> lines_;
  // Of stale lines: the parts that other cores have written, bit a part.
  std::unordered_map<LineOfCore, uint64_t, HashLineOfCore> stale_parts_;
  std::vector<std::vector<uint64_t>> lines_of_core_; // that it has loaded, some of them twice
};

} // namespace pto::sim
