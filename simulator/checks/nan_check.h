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

  Wants wants() const override { return kWantsLaunch | kWantsSpan | kWantsBefore | kWantsIssue; }
  const Interest* interests() const override { return interests_.data(); }
  void launch_begin(const Launch& launch) override;
  void before_span(const SpanRecord& span) override;
  void after_span(const SpanRecord& span) override;
  void before_insn(const EventSite& site, uint32_t active_mask, uint32_t exec_mask) override;
  void after_insn(const BlockRun& block, const IssueRecord& record) override;

private:
  void division(const SpanRecord& span);
  void float_results(const SpanRecord& span, uint32_t warp, uint32_t suspicious);
  uint64_t
  source(const SpanRecord& span, const isa::Operand& operand, isa::Type type, uint32_t lane) const;
  void report(uint32_t pc,
              const BlockRun& block,
              uint32_t warp,
              uint32_t lanes,
              const std::string& message);

  Findings& findings_;
  std::vector<uint8_t> computes_; // by pc: what kind of result the insn has
  std::vector<Interest> interests_;
  std::vector<uint32_t> old_results_; // of the span at hand: the result register before the insn
  bool has_old_results_ = false;
  std::vector<uint8_t> old_tile_; // of the MMA at hand: C before it
};

} // namespace pto::sim
