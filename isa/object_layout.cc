// SPDX-License-Identifier: Apache-2.0
// Reach of functions, counts of registers, places of scratchpad symbols.
#include "isa/object_layout.h"

#include "isa/insn_desc.h"

#include <algorithm>
#include <utility>

namespace pto::isa {

bool names_file_scratchpad(const Object& object, const Insn& insn) {
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    const Operand& operand = insn.operands[i];
    std::optional<uint32_t> symbol;
    if (operand.kind == OperandKind::kSymbol) {
      symbol = operand.index;
    } else if (operand.kind == OperandKind::kMem && operand.mem().base == BaseKind::kSymbol) {
      symbol = operand.mem().base_index;
    }
    if (symbol && object.symbols[*symbol].owner == kFileScope &&
        object.symbols[*symbol].kind != SymbolKind::kConst) {
      return true;
    }
  }
  return false;
}

std::vector<FunctionReach> find_reach(const Object& object) {
  std::vector<FunctionReach> reach(object.functions.size());
  std::vector<std::vector<uint32_t>> callers(reach.size());
  for (uint32_t f = 0; f < reach.size(); ++f) {
    const Function& function = object.functions[f];
    for (uint32_t pc = function.first_pc; pc < function.first_pc + function.insn_count; ++pc) {
      const Insn& insn = object.code[pc];
      const InsnRegisters used = registers_of(insn);
      reach[f].registers |= used.reads;
      reach[f].registers |= used.writes;
      reach[f].uses_file_scratchpad |= names_file_scratchpad(object, insn);
      if (insn.desc->has(kCall)) {
        const auto callee =
            static_cast<size_t>(object.function_at(static_cast<uint32_t>(insn.operands[0].bits)) -
                                object.functions.data());
        if (callers[callee].empty() || callers[callee].back() != f) {
          callers[callee].push_back(f);
        }
      }
    }
  }
  // From callees to callers. A function comes up again only when its set has grown, so that chains
  // and circles of calls cost no more than the calls there are, times the registers.
  std::vector<uint32_t> open;
  for (uint32_t f = 0; f < reach.size(); ++f) {
    open.push_back(f);
  }
  while (!open.empty()) {
    const uint32_t callee = open.back();
    open.pop_back();
    for (const uint32_t caller : callers[callee]) {
      FunctionReach& above = reach[caller];
      FunctionReach both = above;
      both.registers |= reach[callee].registers;
      both.uses_file_scratchpad |= reach[callee].uses_file_scratchpad;
      if (!(both.registers == above.registers) ||
          both.uses_file_scratchpad != above.uses_file_scratchpad) {
        above = both;
        open.push_back(caller);
      }
    }
  }
  return reach;
}

void count_registers(std::vector<Function>& functions, const std::vector<FunctionReach>& reach) {
  for (size_t f = 0; f < functions.size(); ++f) {
    functions[f].reg32_count = reach[f].registers.count32();
    functions[f].reg64_count = reach[f].registers.count64();
  }
}

std::optional<ScratchpadOverflow> place_scratchpad(std::vector<Symbol>& symbols,
                                                   std::vector<Function>& functions,
                                                   const std::vector<FunctionReach>& reach) {
  uint64_t file_bytes = 0;
  std::vector<uint64_t> next(functions.size());
  bool is_file_done = false;
  const auto end_file = [&] {
    for (size_t f = 0; f < next.size() && !is_file_done; ++f) {
      next[f] = reach[f].uses_file_scratchpad ? file_bytes : 0;
    }
    is_file_done = true;
  };
  for (size_t s = 0; s < symbols.size(); ++s) {
    Symbol& symbol = symbols[s];
    if (symbol.kind == SymbolKind::kConst) {
      continue;
    }
    if (symbol.owner != kFileScope) {
      end_file();
    }
    uint64_t& end = symbol.owner == kFileScope ? file_bytes : next[symbol.owner];
    const uint64_t offset =
        (end + symbol.align_bytes - 1) / symbol.align_bytes * symbol.align_bytes;
    end = offset + symbol.size_bytes;
    if (end > kMostScratchpadBytes) {
      return ScratchpadOverflow{s, end};
    }
    symbol.offset = static_cast<uint32_t>(offset);
  }
  end_file();
  for (size_t f = 0; f < next.size(); ++f) {
    functions[f].l1_bytes = static_cast<uint32_t>(next[f]);
  }
  return std::nullopt;
}

} // namespace pto::isa
