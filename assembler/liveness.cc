// SPDX-License-Identifier: Apache-2.0
// Register sets of functions. Calls share the caller's registers, so a call reads what
// its callee needs and may write what its callee writes; recursion is met by iterating to a fixed
// point.
#include "assembler/liveness.h"

#include "assembler/large_pages.h"
#include "isa/insn_desc.h"
#include "isa/object_layout.h"

#include <algorithm>

namespace pto::as {

using isa::Cfg;
using isa::Insn;

namespace {

constexpr uint32_t kNoFunction = 0xffffffff;

// Index of the function that a CALL enters.
uint32_t callee_of(const isa::Object& object, const Insn& insn) {
  const isa::Function* callee = object.function_at(isa::target_pc(insn));
  return callee == nullptr ? kNoFunction : static_cast<uint32_t>(callee - object.functions.data());
}

// Definitely-written registers at block entries, then the reads that come too early.
class EarlyReads {
public:
  EarlyReads(const isa::Object& object,
             const std::vector<InsnRegisters>& registers,
             const Cfg& cfg,
             const std::vector<FunctionUse>& uses)
      : object_(object), registers_(registers), cfg_(cfg), uses_(uses) {}

  void find(FunctionUse& use) {
    const auto& blocks = cfg_.blocks();
    const auto before = cfg_.predecessors();
    std::vector<RegSet> writes(blocks.size());
    for (uint32_t b = 0; b < blocks.size(); ++b) {
      for (uint32_t pc = blocks[b].first_pc; pc < blocks[b].end_pc; ++pc) {
        writes[b] |= effect(pc).writes;
      }
    }
    std::vector<RegSet> at_end(blocks.size(), RegSet::all());
    std::vector<RegSet> at_start(blocks.size(), RegSet::all());
    for (bool changed = true; changed;) {
      changed = false;
      for (const uint32_t b : cfg_.order()) {
        RegSet start = b == 0 ? RegSet{} : RegSet::all();
        for (const uint32_t p : before[b]) {
          if (blocks[p].is_reachable) {
            start &= at_end[p];
          }
        }
        at_start[b] = start;
        start |= writes[b];
        if (!(start == at_end[b])) {
          at_end[b] = start;
          changed = true;
        }
      }
    }
    use.needs = {};
    use.early_reads.clear();
    for (uint32_t b = 0; b < blocks.size(); ++b) {
      if (!blocks[b].is_reachable) {
        continue;
      }
      RegSet written = at_start[b];
      for (uint32_t pc = blocks[b].first_pc; pc < blocks[b].end_pc; ++pc) {
        const InsnRegisters regs = effect(pc);
        const RegSet early = regs.reads.without(written).without(use.needs);
        if (!early.empty()) {
          for (unsigned reg = 0; reg < RegSet::kLimit; ++reg) {
            if (early.contains(reg)) {
              use.early_reads.push_back({reg, pc});
            }
          }
          use.needs |= early;
        }
        written |= regs.writes;
      }
    }
  }

private:
  [[nodiscard]] InsnRegisters effect(uint32_t pc) const {
    const Insn& insn = object_.code[pc];
    InsnRegisters regs = registers_[pc];
    if (insn.desc->has(isa::kCall)) {
      if (const uint32_t callee = callee_of(object_, insn); callee != kNoFunction) {
        regs.reads |= uses_[callee].needs;
        regs.writes |= uses_[callee].all_writes;
      }
    }
    return regs;
  }

  const isa::Object& object_;
  const std::vector<InsnRegisters>& registers_; // by pc
  const Cfg& cfg_;
  const std::vector<FunctionUse>& uses_;
};

} // namespace

std::vector<FunctionUse> find_register_use(const isa::Object& object,
                                           const std::vector<Cfg>& cfgs) {
  std::vector<FunctionUse> uses(object.functions.size());
  std::vector<InsnRegisters> registers; // by pc: worked out once, read several times
  reserve_large(registers, object.code.size());
  for (const Insn& insn : object.code) {
    registers.push_back(registers_of(insn));
  }
  for (size_t f = 0; f < uses.size(); ++f) {
    const isa::Function& function = object.functions[f];
    FunctionUse& use = uses[f];
    for (uint32_t pc = function.first_pc; pc < function.first_pc + function.insn_count; ++pc) {
      const Insn& insn = object.code[pc];
      const InsnRegisters& regs = registers[pc];
      use.reads |= regs.reads;
      use.writes |= regs.writes;
      use.uses_file_symbols = use.uses_file_symbols || isa::names_file_scratchpad(object, insn);
      if (insn.desc->has(isa::kCall)) {
        const uint32_t callee = callee_of(object, insn);
        if (callee != kNoFunction &&
            std::find(use.callees.begin(), use.callees.end(), callee) == use.callees.end()) {
          use.callees.push_back(callee);
        }
      }
    }
    use.all_reads = use.reads;
    use.all_writes = use.writes;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (FunctionUse& use : uses) {
      for (const uint32_t callee : use.callees) {
        const FunctionUse before = {.all_reads = use.all_reads,
                                    .all_writes = use.all_writes,
                                    .uses_file_symbols = use.uses_file_symbols};
        use.all_reads |= uses[callee].all_reads;
        use.all_writes |= uses[callee].all_writes;
        use.uses_file_symbols = use.uses_file_symbols || uses[callee].uses_file_symbols;
        changed = changed || !(before.all_reads == use.all_reads) ||
                  !(before.all_writes == use.all_writes) ||
                  before.uses_file_symbols != use.uses_file_symbols;
      }
    }
  }
  // One round is enough without calls; with calls a caller may stand before its callee.
  const bool has_calls = std::any_of(
      uses.begin(), uses.end(), [](const FunctionUse& use) { return !use.callees.empty(); });
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t f = 0; f < uses.size(); ++f) {
      const RegSet before = uses[f].needs;
      EarlyReads(object, registers, cfgs[f], uses).find(uses[f]);
      changed = changed || (has_calls && !(before == uses[f].needs));
    }
  }
  return uses;
}

} // namespace pto::as
