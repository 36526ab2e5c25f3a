// SPDX-License-Identifier: Apache-2.0
// Forward data flow over the insns that a kernel reaches: the registers written on every path.
#include "simulator/checks/first_use.h"

#include "isa/insn_desc.h"

#include <vector>

namespace pto::sim {

namespace {

ResourceSet both(const ResourceSet& a, const ResourceSet& b) {
  ResourceSet out;
  out.reg32[0] = a.reg32[0] & b.reg32[0];
  out.reg32[1] = a.reg32[1] & b.reg32[1];
  out.reg64 = a.reg64 & b.reg64;
  out.preds = a.preds & b.preds;
  return out;
}

ResourceSet either(const ResourceSet& a, const ResourceSet& b) {
  ResourceSet out;
  out.reg32[0] = a.reg32[0] | b.reg32[0];
  out.reg32[1] = a.reg32[1] | b.reg32[1];
  out.reg64 = a.reg64 | b.reg64;
  out.preds = a.preds | b.preds;
  return out;
}

ResourceSet without(const ResourceSet& a, const ResourceSet& b) {
  ResourceSet out;
  out.reg32[0] = a.reg32[0] & ~b.reg32[0];
  out.reg32[1] = a.reg32[1] & ~b.reg32[1];
  out.reg64 = a.reg64 & ~b.reg64;
  out.preds = a.preds & ~b.preds;
  return out;
}

class FirstUse {
public:
  explicit FirstUse(const Program& program)
      : program_(program), written_(program.insns().size()), seen_(program.insns().size(), false) {}

  ResourceSet run() {
    flow(program_.entry_pc(), {});
    while (!open_.empty()) {
      const uint32_t pc = open_.back();
      open_.pop_back();
      visit(pc);
    }
    ResourceSet suspects;
    for (uint32_t pc = 0; pc < seen_.size(); ++pc) {
      if (seen_[pc]) {
        suspects = either(suspects, without(program_.at(pc).reads, written_[pc]));
      }
    }
    return suspects;
  }

private:
  void flow(uint32_t pc, const ResourceSet& written) {
    if (pc >= seen_.size()) {
      return;
    }
    const ResourceSet merged = seen_[pc] ? both(written_[pc], written) : written;
    if (!seen_[pc] || !(merged == written_[pc])) {
      seen_[pc] = true;
      written_[pc] = merged;
      open_.push_back(pc);
    }
  }

  void visit(uint32_t pc) {
    const ProgramInsn& decoded = program_.at(pc);
    const isa::Insn& insn = decoded.insn;
    ResourceSet after = written_[pc];
    if (!insn.guard.present) {
      after = either(after, decoded.writes);
    }
    const bool leaves = insn.desc->has(isa::kReturn) || insn.desc->has(isa::kEndsLane);
    if (insn.desc->has(isa::kBranch) || insn.desc->has(isa::kCall)) {
      flow(isa::target_pc(insn), after);
    }
    const bool always_jumps = insn.desc->has(isa::kBranch) && !insn.guard.present;
    if (!always_jumps && !(leaves && !insn.guard.present)) {
      flow(pc + 1, after);
    }
  }

  const Program& program_;
  std::vector<ResourceSet> written_; // before the insn, on every path
  std::vector<bool> seen_;
  std::vector<uint32_t> open_;
};

} // namespace

ResourceSet read_before_write(const Program& program) {
  return FirstUse(program).run();
}

} // namespace pto::sim
