// SPDX-License-Identifier: Apache-2.0
// One function a warning, all over the control flow and register use that assembling found.
#include "assembler/lints.h"

#include "isa/insn_desc.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace pto::as {

using isa::BasicBlock;
using isa::Cfg;
using isa::Insn;
using isa::Object;

namespace {

class Linter {
public:
  Linter(const Program& program,
         const Analysis& analysis,
         const isa::MachineProfile* machine,
         isa::Diagnostics& diags)
      : program_(program), object_(program.object), analysis_(analysis), machine_(machine),
        diags_(diags) {}

  void run() {
    for (uint32_t f = 0; f < object_.functions.size(); ++f) {
      unreachable_code(f);
      barrier_scope(f);
      if (object_.functions[f].is_kernel) {
        read_before_write(f);
        unused_register(f);
        register_budget(f);
        scratchpad_size(f);
      }
    }
  }

private:
  void unreachable_code(uint32_t f) {
    const auto& blocks = analysis_.cfgs[f].blocks();
    for (size_t b = 0; b < blocks.size(); ++b) {
      const bool is_first = b == 0 || blocks[b - 1].is_reachable;
      if (blocks[b].is_reachable || !is_first) {
        continue;
      }
      size_t last = b;
      while (last + 1 < blocks.size() && !blocks[last + 1].is_reachable) {
        ++last;
      }
      const uint32_t count = blocks[last].end_pc - blocks[b].first_pc;
      diags_
          .warning(warnings::kUnreachableCode,
                   program_.insn_ranges[blocks[b].first_pc],
                   count == 1 ? std::string("no path leads to this instruction")
                              : fmt::format("no path leads to this and the next {} instruction{}",
                                            count - 1,
                                            count == 2 ? "" : "s"))
          .advise("remove it, or branch to a label before it");
    }
  }

  void read_before_write(uint32_t f) {
    for (const EarlyRead& read : analysis_.uses[f].early_reads) {
      const bool is_call = object_.code[read.pc].desc->has(isa::kCall);
      const bool is_ever_written = analysis_.uses[f].all_writes.contains(read.reg);
      diags_
          .warning(
              warnings::kReadBeforeWrite,
              program_.insn_ranges[read.pc],
              fmt::format("{} is read{} but {}",
                          register_name(read.reg),
                          is_call ? " by the function called here" : "",
                          is_ever_written ? "not written on every path to here" : "never written"))
          .advise("its value is undefined; set it before");
    }
  }

  void unused_register(uint32_t f) {
    const isa::Function& function = object_.functions[f];
    RegSet unused = analysis_.uses[f].writes.without(analysis_.uses[f].all_reads);
    if (unused.empty()) {
      return;
    }
    for (uint32_t pc = function.first_pc; pc < function.first_pc + function.insn_count; ++pc) {
      const Insn& insn = object_.code[pc];
      const RegSet writes = registers_of(insn).writes;
      // A vector is of use if any of its registers is.
      if (writes.empty() || !writes.without(unused).empty()) {
        continue;
      }
      for (unsigned reg = 0; reg < RegSet::kLimit; ++reg) {
        if (!writes.contains(reg)) {
          continue;
        }
        isa::Diagnostic& warning =
            diags_.warning(warnings::kUnusedRegister,
                           program_.insn_ranges[pc],
                           fmt::format("{} is written but never read", register_name(reg)));
        const bool may_discard = (isa::spec_of(insn, 0).accepts & isa::kAcceptDiscard) != 0;
        warning.advise(may_discard ? "write _ as destination: nobody reads the old value"
                                   : "remove the instruction, or use its result");
        break;
      }
      unused = unused.without(writes);
    }
  }

  // BARRIER joins one warp. A store to scratchpad before it and a load of the same data after it,
  // without a BARRIER_BLOCK between, mostly means that the whole block should have waited.
  void barrier_scope(uint32_t f) {
    const isa::Function& function = object_.functions[f];
    if (function.max_lanes != 0 && function.max_lanes <= isa::kWarpLanes) {
      return;
    }
    constexpr unsigned kMostBarriers = 64; // bounds the work on generated programs
    unsigned seen = 0;
    for (uint32_t pc = function.first_pc; pc < function.first_pc + function.insn_count; ++pc) {
      if (!object_.code[pc].desc->has(isa::kWarpBarrier)) {
        continue;
      }
      if (++seen > kMostBarriers) {
        return;
      }
      const std::vector<uint32_t> stores = collect(f, pc, false);
      const std::vector<uint32_t> loads = stores.empty() ? stores : collect(f, pc, true);
      for (const uint32_t store : stores) {
        const auto load = std::find_if(loads.begin(), loads.end(), [&](uint32_t other) {
          return may_share(*l1_access(store), *l1_access(other));
        });
        if (load != loads.end()) {
          diags_
              .warning(warnings::kBarrierScope,
                       program_.insn_ranges[pc],
                       "BARRIER joins the 32 lanes of this warp only, but l1 is written before and "
                       "read after it")
              .advise("use BARRIER_BLOCK where other warps read the data")
              .note(program_.insn_ranges[store], "written here")
              .note(program_.insn_ranges[*load], "read here");
          break;
        }
      }
    }
  }

  [[nodiscard]] std::optional<isa::MemRef> l1_access(uint32_t pc) const {
    const Insn& insn = object_.code[pc];
    for (unsigned i = 0; i < insn.operand_count; ++i) {
      if (insn.operands[i].kind == isa::OperandKind::kMem &&
          insn.operands[i].mem().space == isa::Space::kL1) {
        return insn.operands[i].mem();
      }
    }
    return std::nullopt;
  }

  static bool may_share(const isa::MemRef& a, const isa::MemRef& b) {
    const bool both_named = a.base != isa::BaseKind::kReg && b.base != isa::BaseKind::kReg;
    return !both_named || (a.base == b.base && a.base_index == b.base_index);
  }

  // l1 loads reached from pc, or stores that reach it, without a block barrier between.
  [[nodiscard]] std::vector<uint32_t> collect(uint32_t f, uint32_t pc, bool forward) const {
    const Cfg& cfg = analysis_.cfgs[f];
    const auto before = forward ? std::vector<std::vector<uint32_t>>{} : cfg.predecessors();
    std::vector<bool> seen(cfg.blocks().size(), false);
    std::vector<uint32_t> found;
    std::vector<uint32_t> work;
    // Scans one block from a pc on; false where a block barrier stops it.
    const auto scan = [&](uint32_t from, uint32_t block) {
      const BasicBlock& bounds = cfg.blocks()[block];
      uint32_t at = from;
      while (forward ? at < bounds.end_pc : at > bounds.first_pc) {
        const uint32_t here = forward ? at++ : --at;
        const Insn& insn = object_.code[here];
        if (insn.desc->has(isa::kBlockBarrier)) {
          return false;
        }
        const bool wanted = insn.desc->scope == isa::Scope::kLane &&
                            insn.desc->has(forward ? isa::kReadsMem : isa::kWritesMem) &&
                            !insn.desc->has(isa::kAtomic);
        if (wanted && l1_access(here)) {
          found.push_back(here);
        }
      }
      return true;
    };
    const auto push = [&](uint32_t block) {
      if (forward) {
        const BasicBlock& bounds = cfg.blocks()[block];
        work.insert(work.end(),
                    bounds.successors.begin(),
                    bounds.successors.begin() + bounds.successor_count);
      } else {
        work.insert(work.end(), before[block].begin(), before[block].end());
      }
    };
    const uint32_t start = cfg.block_at(pc);
    if (scan(forward ? pc + 1 : pc, start)) {
      push(start);
    }
    while (!work.empty()) {
      const uint32_t block = work.back();
      work.pop_back();
      if (seen[block]) {
        continue;
      }
      seen[block] = true;
      const BasicBlock& bounds = cfg.blocks()[block];
      if (scan(forward ? bounds.first_pc : bounds.end_pc, block)) {
        push(block);
      }
    }
    return found;
  }

  void register_budget(uint32_t f) {
    if (machine_ == nullptr) {
      return;
    }
    const isa::Function& function = object_.functions[f];
    const uint32_t use = function.register_use();
    const isa::SourceRange range = program_.function_sources[f].name_range;
    if (function.max_lanes != 0) {
      const std::optional<uint32_t> budget = machine_->registers_per_lane(function.max_lanes);
      if (!budget) {
        diags_.warning(warnings::kRegisterBudget,
                       range,
                       fmt::format(".maxlanes {} is over the {} lanes of a block on {}",
                                   function.max_lanes,
                                   machine_->max_lanes_per_block,
                                   machine_->name));
        return;
      }
      if (use > *budget) {
        diags_
            .warning(warnings::kRegisterBudget,
                     range,
                     fmt::format("kernel '{}' uses {} registers a lane, but a block of {} lanes "
                                 "has {} on {}",
                                 function.name,
                                 use,
                                 function.max_lanes,
                                 *budget,
                                 machine_->name))
            .advise("use fewer registers or smaller blocks: a launch over budget is refused");
      }
      return;
    }
    constexpr uint32_t kNear = 2;
    uint32_t lanes_with_use = 0;
    for (const auto& [lanes, budget] : machine_->register_budget) {
      if (use <= budget) {
        lanes_with_use = std::max(lanes_with_use, lanes);
      }
    }
    for (const auto& [lanes, budget] : machine_->register_budget) {
      if (use > budget && use - budget <= kNear && lanes_with_use != 0) {
        diags_
            .warning(warnings::kRegisterBudget,
                     range,
                     fmt::format("kernel '{}' uses {} registers a lane, {} over the limit for "
                                 "blocks of {} lanes on {}",
                                 function.name,
                                 use,
                                 use - budget,
                                 lanes,
                                 machine_->name))
            .advise(fmt::format("with {} a block may have {} lanes, with {} at most {}",
                                budget,
                                lanes,
                                use,
                                lanes_with_use));
        return;
      }
    }
    if (lanes_with_use == 0 && !machine_->register_budget.empty()) {
      diags_.warning(warnings::kRegisterBudget,
                     range,
                     fmt::format("kernel '{}' uses {} registers a lane, more than any block has on "
                                 "{}",
                                 function.name,
                                 use,
                                 machine_->name));
    }
  }

  void scratchpad_size(uint32_t f) {
    const isa::Function& function = object_.functions[f];
    if (machine_ == nullptr || function.l1_bytes <= machine_->max_scratchpad_bytes()) {
      return;
    }
    diags_
        .warning(warnings::kScratchpadSize,
                 program_.function_sources[f].name_range,
                 fmt::format("kernel '{}' takes {} bytes of scratchpad, but {} has {}",
                             function.name,
                             function.l1_bytes,
                             machine_->name,
                             machine_->max_scratchpad_bytes()))
        .advise("make .tile and .shared smaller: a launch is refused");
  }

  const Program& program_;
  const Object& object_;
  const Analysis& analysis_;
  const isa::MachineProfile* machine_;
  isa::Diagnostics& diags_;
};

} // namespace

const std::vector<WarningInfo>& all_warnings() {
  static const std::vector<WarningInfo> all = {
#define PTO_WARNING(constant, name, summary) {name, summary},
#include "assembler/warnings.def"
#undef PTO_WARNING
  };
  return all;
}

std::vector<std::string_view> warning_names() {
  std::vector<std::string_view> names;
  for (const WarningInfo& info : all_warnings()) {
    names.push_back(info.name);
  }
  return names;
}

void run_lints(const Program& program,
               const Analysis& analysis,
               const isa::MachineProfile* machine,
               isa::Diagnostics& diags) {
  Linter(program, analysis, machine, diags).run();
}

} // namespace pto::as
