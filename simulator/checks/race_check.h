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
#include "simulator/checks/finding.h"
#include "simulator/checks/happens_before.h"
#include "simulator/observer.h"

#include <memory>
#include <unordered_map>
#include <vector>

namespace pto::sim {

class RaceCheck : public Observer {
public:
  explicit RaceCheck(Findings& findings) : findings_(findings) {}

  Wants wants() const override {
    return kWantsLaunch | kWantsBlock | kWantsIssue | kWantsBarrier | kWantsCopy | kWantsWait;
  }
  void launch_begin(const Launch& launch) override;
  void block_begin(const BlockRun& block) override;
  void block_end(const BlockRun& block) override;
  void after_insn(const BlockRun& block, const IssueRecord& record) override;
  void barrier_release(const BlockRun& block, unsigned id) override;
  void copy_start(const EventSite& site, const CopyRecord& copy) override;
  void wait_end(const EventSite& site, int event) override;

private:
  struct BlockData {
    AccessShadow l1;
    std::vector<CopyRecord> copies;         // not yet waited for by every warp
    std::vector<uint32_t> warp_barrier_pcs; // last BARRIER of each warp since the block's, or
                                            // kNoPc
  };
  struct Access {
    const BlockRun* block = nullptr;
    uint32_t warp = 0;
    Agent agent = kNoAgent;
    uint32_t time = 0;
    uint32_t pc = 0;
    uint32_t lane_mask = 0;
    isa::Space space = isa::Space::kHbm;
    uint64_t address = 0;
    uint64_t bytes = 0;
    bool reads = false;
    bool writes = false;
    bool is_atomic = false;
    bool is_volatile = false;
  };

  void lane_accesses(const BlockRun& block, const IssueRecord& record);
  void synchronise(const BlockRun& block, const IssueRecord& record);
  void range(const Access& access);
  void touch(AccessCell& cell, uint8_t mask, uint64_t address, const Access& access);
  void record_read(AccessCell& cell, uint8_t mask, const Access& access);
  bool is_ordered(const AccessEntry& earlier, const Access& access) const;
  void
  report(const AccessEntry& earlier, bool earlier_wrote, uint64_t address, const Access& access);
  std::string hint_for(const AccessEntry& earlier, const Access& access) const;
  void same_insn_writes(const BlockRun& block, const IssueRecord& record);
  void cached_lines(const BlockRun& block, const IssueRecord& record);
  void stale_read(const BlockRun& block,
                  const IssueRecord& record,
                  unsigned lane,
                  uint32_t writer_pc,
                  uint64_t writer_block);
  AccessShadow& shadow(const Access& access);

  // Lines of hbm as the data caches of the cores may hold them, on a clock that counts accesses.
  struct LineWrite {
    uint64_t time = 0;
    uint64_t block = 0;
    uint32_t core = 0;
    uint32_t pc = 0;
  };

  Findings& findings_;
  HappensBefore order_;
  AccessShadow hbm_;
  std::unordered_map<uint64_t, BlockData> blocks_;
  const Launch* launch_ = nullptr;
  uint64_t line_clock_ = 0;
  std::unordered_map<uint64_t, LineWrite> line_writes_;
  std::vector<std::unordered_map<uint64_t, uint64_t>> cached_; // by core: line -> time of the load
};

} // namespace pto::sim
