// SPDX-License-Identifier: Apache-2.0
// Data-flow over the basic blocks of assembler/cfg.h: forward for definedness, backward for
// liveness, with bit sets of all registers.
#include "assembler/liveness.h"

#include "assembler/cfg.h"
#include "isa/insn_desc.h"

#include <algorithm>

namespace pto::as {

namespace {

using isa::Insn;
using isa::Operand;
using isa::OperandKind;

void add_address(const isa::MemRef& ref, RegisterSet& reads) {
  if (ref.base == isa::BaseKind::kReg) {
    reads.set(ref.space == isa::Space::kHbm ? kFirstReg64 + ref.base_index : ref.base_index);
  }
  if (ref.index_reg != isa::kNoIndexReg) {
    reads.set(ref.index_reg);
  }
}

// First bit of a register operand, or RegisterSet().size() if it is none.
size_t bit_of(const Operand& operand) {
  switch (operand.kind) {
  case OperandKind::kReg32:
    return operand.index;
  case OperandKind::kReg64:
    return kFirstReg64 + operand.index;
  case OperandKind::kPred:
    return kFirstPred + operand.index;
  default:
    return RegisterSet().size();
  }
}

RegisterSet all_writes(const isa::Object& object, const isa::Function& function) {
  RegisterSet writes;
  for (const isa::Function* reached : reachable_functions(object, function)) {
    for (uint32_t pc = reached->first_pc; pc < reached->first_pc + reached->insn_count; ++pc) {
      writes |= register_effects(object.code[pc]).writes;
    }
  }
  return writes;
}

RegisterSet all_reads(const isa::Object& object, const isa::Function& function) {
  RegisterSet reads;
  for (const isa::Function* reached : reachable_functions(object, function)) {
    for (uint32_t pc = reached->first_pc; pc < reached->first_pc + reached->insn_count; ++pc) {
      reads |= register_effects(object.code[pc]).reads;
    }
  }
  return reads;
}

const isa::Function* callee_of(const isa::Object& object, const Insn& insn) {
  return insn.desc->has(isa::kCall)
             ? object.function_at(static_cast<uint32_t>(insn.operands[0].bits))
             : nullptr;
}

uint32_t weight(const RegisterSet& set) {
  uint32_t count = 0;
  for (unsigned i = 0; i < kFirstPred; ++i) {
    count += set[i] ? (i < kFirstReg64 ? 1 : 2) : 0;
  }
  return count;
}

} // namespace

RegisterEffects register_effects(const Insn& insn) {
  RegisterEffects effects;
  if (insn.guard.present) {
    effects.reads.set(kFirstPred + insn.guard.pred);
    effects.is_write_certain = false;
  }
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    const Operand& operand = insn.operands[i];
    if (operand.kind == OperandKind::kMem) {
      add_address(operand.mem(), effects.reads);
      continue;
    }
    const size_t first = bit_of(operand);
    if (first == effects.reads.size()) {
      continue;
    }
    const isa::OperandSpec& spec = isa::spec_of(insn, i);
    const unsigned count = spec.vector ? isa::vector_count(insn) : 1;
    for (size_t bit = first; bit < first + count; ++bit) {
      if (isa::reads(spec.role)) {
        effects.reads.set(bit);
      }
      if (isa::writes(spec.role)) {
        effects.writes.set(bit);
      }
    }
  }
  return effects;
}

std::vector<const isa::Function*> reachable_functions(const isa::Object& object,
                                                      const isa::Function& function) {
  std::vector<const isa::Function*> reached = {&function};
  for (size_t at = 0; at < reached.size(); ++at) {
    const isa::Function& caller = *reached[at];
    for (uint32_t pc = caller.first_pc; pc < caller.first_pc + caller.insn_count; ++pc) {
      const isa::Function* callee = callee_of(object, object.code[pc]);
      if (callee != nullptr && std::find(reached.begin(), reached.end(), callee) == reached.end()) {
        reached.push_back(callee);
      }
    }
  }
  return reached;
}

RegisterUse register_use(const isa::Object& object, const isa::Function& function) {
  const RegisterSet used = all_writes(object, function) | all_reads(object, function);
  RegisterUse use;
  for (unsigned i = 0; i < kFirstPred; ++i) {
    if (used[i]) {
      ++(i < kFirstReg64 ? use.reg32_count : use.reg64_count);
    }
  }
  return use;
}

std::vector<MaybeUninitialised> maybe_uninitialised(const isa::Object& object,
                                                    const isa::Function& function) {
  if (!function.is_kernel) {
    return {};
  }
  const ControlFlow flow(object, function);
  const auto& blocks = flow.blocks();
  // Registers written on every path to a block; all of them where no path is known yet.
  RegisterSet everything;
  everything.set();
  std::vector<RegisterSet> defined(blocks.size(), everything);
  defined[0].reset();
  const auto step = [&](uint32_t pc, RegisterSet& state) {
    const Insn& insn = object.code[pc];
    // A write in some lanes counts: the other lanes' value is their own business, and lanes that
    // skipped the write usually skip the read under the same predicate.
    state |= register_effects(insn).writes;
    if (const isa::Function* callee = callee_of(object, insn); callee != nullptr) {
      state |= all_writes(object, *callee);
    }
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t b = 0; b < blocks.size(); ++b) {
      if (!blocks[b].reachable) {
        continue;
      }
      RegisterSet state = defined[b];
      for (uint32_t pc = blocks[b].first_pc; pc < blocks[b].end_pc; ++pc) {
        step(pc, state);
      }
      for (const uint32_t next : blocks[b].successors) {
        const RegisterSet met = defined[next] & state;
        changed |= met != defined[next];
        defined[next] = met;
      }
    }
  }
  std::vector<MaybeUninitialised> found;
  RegisterSet reported; // each register once, at its first read
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    if (!blocks[b].reachable) {
      continue;
    }
    RegisterSet state = defined[b];
    for (uint32_t pc = blocks[b].first_pc; pc < blocks[b].end_pc; ++pc) {
      const RegisterSet missing = register_effects(object.code[pc]).reads & ~state & ~reported;
      for (unsigned reg = 0; missing.any() && reg < missing.size(); ++reg) {
        if (missing[reg]) {
          found.push_back({.pc = pc, .reg = reg});
        }
      }
      reported |= missing;
      step(pc, state);
    }
  }
  return found;
}

uint32_t max_live_registers(const isa::Object& object, const isa::Function& function) {
  const ControlFlow flow(object, function);
  const auto& blocks = flow.blocks();
  std::vector<RegisterSet> live_in(blocks.size());
  uint32_t most = 0;
  const auto walk = [&](uint32_t b, RegisterSet live) {
    for (uint32_t pc = blocks[b].end_pc; pc-- > blocks[b].first_pc;) {
      const RegisterEffects effects = register_effects(object.code[pc]);
      if (effects.is_write_certain) {
        live &= ~effects.writes;
      }
      live |= effects.reads;
      if (const isa::Function* callee = callee_of(object, object.code[pc]); callee != nullptr) {
        live |= all_reads(object, *callee);
      }
      most = std::max(most, weight(live | effects.writes));
    }
    return live;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t b = static_cast<uint32_t>(blocks.size()); b-- > 0;) {
      RegisterSet live_out;
      for (const uint32_t next : blocks[b].successors) {
        live_out |= live_in[next];
      }
      const RegisterSet live = walk(b, live_out);
      changed |= live != live_in[b];
      live_in[b] = live;
    }
  }
  return most;
}

} // namespace pto::as
