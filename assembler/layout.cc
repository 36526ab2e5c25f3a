// SPDX-License-Identifier: Apache-2.0
// Canonical order, offsets and the facts about each function that the object stores.
#include "assembler/layout.h"

#include "isa/object_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace pto::as {

using isa::BasicBlock;
using isa::Cfg;
using isa::Insn;
using isa::Object;
using isa::OperandKind;
using isa::Symbol;
using isa::SymbolKind;

namespace {

uint32_t align_up(uint32_t value, uint32_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

void rename_symbols(Object& object, const std::vector<uint32_t>& new_index) {
  for (Insn& insn : object.code) {
    for (unsigned i = 0; i < insn.operand_count; ++i) {
      isa::Operand& operand = insn.operands[i];
      if (operand.kind == OperandKind::kSymbol) {
        operand.index = new_index[operand.index];
      } else if (operand.kind == OperandKind::kMem) {
        isa::MemRef ref = operand.mem();
        if (ref.base == isa::BaseKind::kSymbol) {
          ref.base_index = static_cast<uint16_t>(new_index[ref.base_index]);
          operand = isa::Operand::memory(ref);
        }
      }
    }
  }
}

void order_symbols(Program& program) {
  Object& object = program.object;
  const size_t count = object.symbols.size();
  std::vector<uint32_t> old_index(count);
  std::iota(old_index.begin(), old_index.end(), 0U);
  const auto rank = [&](uint32_t i) {
    const uint32_t owner = object.symbols[i].owner;
    return owner == isa::kFileScope ? 0 : uint64_t{owner} + 1;
  };
  std::stable_sort(old_index.begin(), old_index.end(), [&](uint32_t a, uint32_t b) {
    return rank(a) < rank(b);
  });
  std::vector<uint32_t> new_index(count);
  std::vector<Symbol> symbols;
  std::vector<isa::SourceRange> ranges;
  std::vector<uint8_t> data;
  for (uint32_t i = 0; i < count; ++i) {
    new_index[old_index[i]] = i;
    Symbol& symbol = symbols.emplace_back(object.symbols[old_index[i]]);
    ranges.push_back(program.symbol_ranges[old_index[i]]);
    if (symbol.kind == SymbolKind::kConst) {
      const uint32_t offset = align_up(static_cast<uint32_t>(data.size()), symbol.align_bytes);
      data.resize(offset);
      const auto begin = object.const_data.begin() + symbol.offset;
      data.insert(data.end(), begin, begin + symbol.size_bytes);
      symbol.offset = offset;
    }
  }
  const bool is_sorted = std::is_sorted(old_index.begin(), old_index.end());
  object.symbols = std::move(symbols);
  object.const_data = std::move(data);
  program.symbol_ranges = std::move(ranges);
  if (!is_sorted) {
    rename_symbols(object, new_index);
  }
}

// File names in the order in which the insns first name them; names that no insn has go.
void order_files(Object& object) {
  constexpr uint32_t kUnused = 0xffffffff;
  std::vector<uint32_t> new_index(object.files.size(), kUnused);
  std::vector<std::string> files;
  uint32_t last = kUnused;
  uint32_t last_new = 0;
  for (isa::SourceLoc& loc : object.locs) {
    if (loc.file != last) {
      last = loc.file;
      if (new_index[last] == kUnused) {
        new_index[last] = static_cast<uint32_t>(files.size());
        files.push_back(object.files[last]);
      }
      last_new = new_index[last];
    }
    loc.file = last_new;
  }
  object.files = std::move(files);
}

std::vector<isa::FunctionReach> reach_of(const std::vector<FunctionUse>& uses) {
  std::vector<isa::FunctionReach> reach;
  reach.reserve(uses.size());
  for (const FunctionUse& use : uses) {
    isa::FunctionReach& one = reach.emplace_back();
    one.registers = use.all_reads;
    one.registers |= use.all_writes;
    one.uses_file_scratchpad = use.uses_file_symbols;
  }
  return reach;
}

bool check_ends(const Program& program, const std::vector<Cfg>& cfgs, isa::Diagnostics& diags) {
  bool is_good = true;
  for (size_t f = 0; f < cfgs.size(); ++f) {
    const isa::Function& function = program.object.functions[f];
    for (const BasicBlock& block : cfgs[f].blocks()) {
      if (block.runs_off && block.is_reachable) {
        const char* cure = function.is_kernel ? "exit" : "ret";
        diags
            .error(program.insn_ranges[block.end_pc - 1],
                   fmt::format("control runs past the end of {} '{}'",
                               function.is_kernel ? "kernel" : "function",
                               function.name))
            .expect(fmt::format("{} before .end", cure))
            .note(program.function_sources[f].end_range, fmt::format("add {} here", cure));
        is_good = false;
        break;
      }
    }
  }
  return is_good;
}

std::vector<Cfg> build_cfgs(const Object& object) {
  std::vector<Cfg> cfgs;
  cfgs.reserve(object.functions.size());
  for (const isa::Function& function : object.functions) {
    cfgs.emplace_back(object, function);
  }
  return cfgs;
}

} // namespace

Analysis analyze(const Object& object) {
  Analysis analysis;
  analysis.cfgs = build_cfgs(object);
  analysis.uses = find_register_use(object, analysis.cfgs);
  return analysis;
}

bool finish_program(Program& program, Analysis& analysis, isa::Diagnostics& diags) {
  Object& object = program.object;
  for (size_t f = 0; f < object.functions.size(); ++f) {
    const isa::Function& function = object.functions[f];
    if (function.insn_count == 0) {
      diags
          .error(program.function_sources[f].name_range,
                 fmt::format("{} '{}' has no instructions",
                             function.is_kernel ? "kernel" : "function",
                             function.name))
          .expect(function.is_kernel ? "at least exit" : "at least ret");
    }
  }
  if (object.symbols.size() > UINT16_MAX) {
    diags
        .error(program.symbol_ranges.back(),
               fmt::format("{} symbols in one program", object.symbols.size()))
        .expect(fmt::format("at most {}", UINT16_MAX));
  }
  if (diags.has_errors()) {
    return false;
  }
  order_symbols(program);
  order_files(object);
  analysis.cfgs = build_cfgs(object);
  if (!check_ends(program, analysis.cfgs, diags)) {
    return false;
  }
  analysis.uses = find_register_use(object, analysis.cfgs);
  for (size_t f = 0; f < object.functions.size(); ++f) {
    isa::Function& function = object.functions[f];
    function.reconvergence = analysis.cfgs[f].reconvergence(object);
    // A label behind the last insn names no place; an unreachable branch to it cannot be taken.
    std::erase_if(function.labels,
                  [&](const isa::Label& label) { return !function.contains(label.pc); });
  }
  const std::vector<isa::FunctionReach> reach = reach_of(analysis.uses);
  isa::count_registers(object.functions, reach);
  if (const auto over = isa::place_scratchpad(object.symbols, object.functions, reach)) {
    diags
        .error(program.symbol_ranges[over->symbol],
               fmt::format("'{}' would end at byte {} of the scratchpad",
                           object.symbols[over->symbol].name,
                           over->end_bytes))
        .expect(fmt::format("at most {}", isa::kMostScratchpadBytes));
    return false;
  }
  return true;
}

} // namespace pto::as
