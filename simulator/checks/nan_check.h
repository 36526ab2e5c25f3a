// SPDX-License-Identifier: Apache-2.0
// The nan check: insns that make a NaN from operands that are none, or an infinity from finite
// ones, and integer divisions by zero. Values that were not finite in the input are carried, not
// reported.
#pragma once

#include "simulator/checks/finding.h"
#include "simulator/observer.h"

#include <string>
#include <vector>

namespace pto::sim {

class NanCheck : public Observer {
public:
  explicit NanCheck(Findings& findings) : findings_(findings) {}

  Wants wants() const override { return kWantsLaunch | kWantsBefore | kWantsIssue; }
  void launch_begin(const Launch& launch) override;
  void before_insn(const EventSite& site, uint32_t active_mask, uint32_t exec_mask) override;
  void after_insn(const BlockRun& block, const IssueRecord& record) override;

private:
  void lane_results(const BlockRun& block, const IssueRecord& record);
  void matrix_result(const BlockRun& block, const IssueRecord& record);
  void report(const BlockRun& block,
              const IssueRecord& record,
              uint32_t lanes,
              const std::string& message);

  Findings& findings_;
  std::vector<uint8_t> computes_; // by pc: an insn with a float result in registers
  uint32_t finite_lanes_ = 0;     // of the insn at hand: all its float sources are finite
  uint32_t number_lanes_ = 0;     // none of them is NaN
  uint32_t zero_divisor_lanes_ = 0;
};

} // namespace pto::sim
