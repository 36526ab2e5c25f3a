// SPDX-License-Identifier: Apache-2.0
// Forward data flow over the insns that a kernel reaches: the registers written on every path.
// After a call these are the caller's and those of every path through the function, whoever else
// calls it.
#include "simulator/checks/first_use.h"

#include "isa/error.h"
#include "isa/insn_desc.h"

#include <algorithm>
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
      : program_(program), written_(program.insns().size()), seen_(program.insns().size(), false),
        calls_(program.object().functions.size()) {}

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
    if (insn.desc->has(isa::kBranch)) {
      flow(isa::target_pc(insn), after);
    } else if (insn.desc->has(isa::kCall)) {
      call(pc, after);
    } else if (insn.desc->has(isa::kReturn)) {
      return_from(calls_at(pc), after);
    }
    constexpr isa::Flags kGoesElsewhere = isa::kBranch | isa::kCall | isa::kReturn | isa::kEndsLane;
    if (insn.guard.present || (insn.desc->flags & kGoesElsewhere) == 0) {
      flow(pc + 1, after);
    }
  }

  /// The calls of a function, and what it has written wherever it returns.
  struct Calls {
    std::vector<uint32_t> pcs;
    bool returns = false;
    ResourceSet written;
  };

  void call(uint32_t pc, const ResourceSet& written) {
    const uint32_t target = isa::target_pc(program_.at(pc).insn);
    flow(target, written);
    Calls& calls = calls_at(target);
    if (std::find(calls.pcs.begin(), calls.pcs.end(), pc) == calls.pcs.end()) {
      calls.pcs.push_back(pc);
    }
    if (calls.returns) {
      flow(pc + 1, either(written, calls.written));
    }
  }

  void return_from(Calls& calls, const ResourceSet& written) {
    calls.written = calls.returns ? both(calls.written, written) : written;
    calls.returns = true;
    for (const uint32_t pc : calls.pcs) {
      flow(pc + 1, either(written_[pc], calls.written));
    }
  }

  /// Of the function that has this pc.
  Calls& calls_at(uint32_t pc) {
    const isa::Object& object = program_.object();
    const isa::Function* const function = object.function_at(pc);
    PTO_CHECK(function != nullptr);
    return calls_[static_cast<size_t>(function - object.functions.data())];
  }

  const Program& program_;
  std::vector<ResourceSet> written_; // before the insn, on every path
  std::vector<bool> seen_;
  std::vector<uint32_t> open_;
  std::vector<Calls> calls_; // by function
};

} // namespace

ResourceSet read_before_write(const Program& program) {
  return FirstUse(program).run();
}

} // namespace pto::sim
