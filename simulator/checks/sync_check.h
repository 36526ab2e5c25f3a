// SPDX-License-Identifier: Apache-2.0
// The sync check: barriers in divergent code, block-scoped insns that warp 0 misses or reads
// different operands for, waits on events that no copy carries, copies still running at the end.
//
// Deadlocks are the engine's business (Fault with kind kDeadlock); this check adds the finding that
// says which lanes were missing at the barrier that never filled.
#pragma once

#include "simulator/checks/block_map.h"
#include "simulator/checks/finding.h"
#include "simulator/observer.h"

#include <map>
#include <vector>

namespace pto::sim {

class SyncCheck : public Observer {
public:
  explicit SyncCheck(Findings& findings) : findings_(findings) {}

  Wants wants() const override {
    return kWantsLaunch | kWantsBlock | kWantsBefore | kWantsBarrier | kWantsWait;
  }
  const Interest* interests() const override { return interests_.data(); }
  void launch_begin(const Launch& launch) override;
  void block_begin(const BlockRun& block) override;
  void block_end(const BlockRun& block) override;
  void before_insn(const EventSite& site, uint32_t active_mask, uint32_t exec_mask) override;
  void barrier_arrive(const EventSite& site, unsigned id, uint32_t lane_mask) override;
  void wait_begin(const EventSite& site, int event) override;

private:
  struct BlockData {
    // Per block-scoped insn: how often each warp came by.
    std::map<uint32_t, std::vector<uint64_t>> passes;

    void renew() { passes.clear(); }
  };
  void non_uniform_operands(const EventSite& site, uint32_t exec_mask);

  Findings& findings_;
  std::vector<Interest> interests_;
  BlockMap<BlockData> blocks_;
};

} // namespace pto::sim
