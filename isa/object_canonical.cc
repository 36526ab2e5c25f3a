// SPDX-License-Identifier: Apache-2.0
// What of an object follows from the rest of it: places, counts, reconvergence, order of lists.
#include "isa/object_canonical.h"

#include "isa/cfg.h"
#include "isa/object_layout.h"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <vector>

namespace pto::isa {

namespace {

// Constants lie one behind the other, in the order of their symbols, with zeros between.
std::string check_const_data(const Object& object) {
  uint64_t end = 0;
  for (const Symbol& symbol : object.symbols) {
    if (symbol.kind != SymbolKind::kConst) {
      continue;
    }
    const uint64_t begin = (end + symbol.align_bytes - 1) / symbol.align_bytes * symbol.align_bytes;
    if (symbol.offset != begin) {
      return fmt::format(
          "symbol '{}' at offset {} of const, where {} is next", symbol.name, symbol.offset, begin);
    }
    for (uint64_t at = end; at < begin; ++at) {
      if (object.const_data[at] != 0) {
        return fmt::format("symbol '{}': the bytes before it are not 0", symbol.name);
      }
    }
    end = begin + symbol.size_bytes;
  }
  return end == object.const_data.size()
             ? ""
             : fmt::format("const data ends at offset {}, but its last symbol at offset {}",
                           object.const_data.size(),
                           end);
}

// What declarations and code determine is as the assembler would have written it.
std::string check_layout(const Object& object) {
  uint64_t last = 0;
  for (const Symbol& symbol : object.symbols) {
    const uint64_t rank = symbol.owner == kFileScope ? 0 : uint64_t{symbol.owner} + 1;
    if (rank < last) {
      return fmt::format("symbol '{}' stands behind those of a later function", symbol.name);
    }
    if (rank != 0 && !object.functions[symbol.owner].is_kernel) {
      return fmt::format("symbol '{}' belongs to a function that is no kernel", symbol.name);
    }
    last = rank;
  }
  if (std::string fault = check_const_data(object); !fault.empty()) {
    return fault;
  }
  std::vector<Symbol> symbols = object.symbols;
  std::vector<Function> functions = object.functions;
  const std::vector<FunctionReach> reach = find_reach(object);
  count_registers(functions, reach);
  if (const auto over = place_scratchpad(symbols, functions, reach)) {
    return fmt::format("symbol '{}' would end at byte {} of the scratchpad",
                       symbols[over->symbol].name,
                       over->end_bytes);
  }
  for (size_t s = 0; s < symbols.size(); ++s) {
    if (symbols[s].offset != object.symbols[s].offset) {
      return fmt::format("symbol '{}' at offset {} of the scratchpad, where {} is next",
                         symbols[s].name,
                         object.symbols[s].offset,
                         symbols[s].offset);
    }
  }
  for (size_t f = 0; f < functions.size(); ++f) {
    const Function& stated = object.functions[f];
    const Function& found = functions[f];
    if (stated.reg32_count != found.reg32_count || stated.reg64_count != found.reg64_count) {
      return fmt::format("function '{}': {} r and {} d registers, but its code uses {} and {}",
                         stated.name,
                         stated.reg32_count,
                         stated.reg64_count,
                         found.reg32_count,
                         found.reg64_count);
    }
    if (stated.l1_bytes != found.l1_bytes) {
      return fmt::format("function '{}': {} bytes of scratchpad, but its symbols take {}",
                         stated.name,
                         stated.l1_bytes,
                         found.l1_bytes);
    }
    if (stated.reconvergence != Cfg(object, stated).reconvergence(object)) {
      return fmt::format("function '{}': reconvergence points that are not those of its branches",
                         stated.name);
    }
  }
  return "";
}

// Source positions are whole or unknown, and lists hold what insns refer to, once, in the order in
// which they first do.
std::string check_first_uses(const Object& object) {
  uint32_t files = 0;
  uint32_t strings = 0;
  for (uint32_t pc = 0; pc < object.code.size(); ++pc) {
    const SourceLoc& loc = object.locs[pc];
    if (loc.line == 0 ? !(loc == SourceLoc{}) : loc.column == 0) {
      return fmt::format("insn {}: a source position that is neither whole nor unknown", pc);
    }
    if (loc.line != 0 && loc.file > files) {
      return fmt::format("insn {}: source file {}, where {} is next", pc, loc.file, files);
    }
    files += loc.line != 0 && loc.file == files ? 1 : 0;
    const Insn& insn = object.code[pc];
    for (unsigned i = 0; i < insn.operand_count; ++i) {
      if (insn.operands[i].kind != OperandKind::kString) {
        continue;
      }
      if (insn.operands[i].index > strings) {
        return fmt::format(
            "insn {}: string {}, where {} is next", pc, insn.operands[i].index, strings);
      }
      strings += insn.operands[i].index == strings ? 1 : 0;
    }
  }
  if (files != object.files.size() || strings != object.strings.size()) {
    return fmt::format(
        "insn by insn {} source files and {} strings are named, but {} and {} listed",
        files,
        strings,
        object.files.size(),
        object.strings.size());
  }
  for (const std::vector<std::string>* list : {&object.files, &object.strings}) {
    std::set<std::string_view> seen;
    for (const std::string& text : *list) {
      if (!seen.insert(text).second) {
        return fmt::format("insn by insn, {} {} is listed twice",
                           list == &object.files ? "source file" : "string",
                           &text - list->data());
      }
    }
  }
  return "";
}

} // namespace

std::string check_canonical(const Object& object) {
  std::string fault = check_layout(object);
  return fault.empty() ? check_first_uses(object) : fault;
}

} // namespace pto::isa
