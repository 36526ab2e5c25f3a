// SPDX-License-Identifier: Apache-2.0
// Consistency of an object that was read from bytes: names, ranges, references, control flow.
#include "isa/object_check.h"

#include "isa/insn_desc.h"
#include "isa/object_canonical.h"
#include "isa/object_layout.h"
#include "isa/print_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace pto::isa {

namespace {

// A word as the assembler reads one.
bool is_name(std::string_view text) {
  const auto starts = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '.';
  };
  return !text.empty() && starts(text[0]) && std::all_of(text.begin(), text.end(), [&](char c) {
    return starts(c) || (c >= '0' && c <= '9');
  });
}

// The first of the names that is no name or occurs twice; null if there is none.
template <class Named> const std::string* bad_name(const std::vector<Named>& all) {
  std::set<std::string_view> seen;
  for (const Named& each : all) {
    if (!is_name(each.name) || !seen.insert(each.name).second) {
      return &each.name;
    }
  }
  return nullptr;
}

// Text from a damaged file, fit for a message.
std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 64)) {
    out += c >= 0x20 && c < 0x7f ? c : '.';
  }
  return out;
}

std::string check_symbols(const Object& object) {
  for (const Symbol& symbol : object.symbols) {
    const unsigned element = size_bytes(symbol.type);
    const uint64_t elements = uint64_t{symbol.rows} * symbol.cols;
    const uint64_t limit =
        symbol.kind == SymbolKind::kConst ? object.const_data.size() : kMostScratchpadBytes;
    if (element == 0 || elements == 0 || elements > kMostScratchpadBytes ||
        elements * element != symbol.size_bytes || symbol.align_bytes < element ||
        symbol.align_bytes > kMostAlignBytes || symbol.size_bytes > kMostSymbolBytes ||
        (symbol.kind != SymbolKind::kTile && symbol.rows != 1) ||
        (symbol.align_bytes & (symbol.align_bytes - 1)) != 0 ||
        symbol.offset % symbol.align_bytes != 0 ||
        uint64_t{symbol.offset} + symbol.size_bytes > limit) {
      return fmt::format("symbol '{}' has an impossible type, size, alignment or place",
                         symbol.name);
    }
    if (symbol.owner != kFileScope && symbol.owner >= object.functions.size()) {
      return fmt::format("symbol '{}' belongs to a function that does not exist", symbol.name);
    }
  }
  return "";
}

std::string check_function(const Object& object, const Function& function, uint32_t expected_pc) {
  const auto wrong = [&](const char* what) {
    return fmt::format("function '{}': {}", function.name, what);
  };
  if (function.first_pc != expected_pc || function.insn_count == 0 ||
      function.insn_count > object.code.size() - function.first_pc) {
    return wrong("its code range does not follow the one before, is empty or leaves the code");
  }
  if (function.reg32_count > kReg32Count || function.reg64_count > kReg64Count ||
      function.l1_bytes > kMostScratchpadBytes) {
    return wrong("more registers or scratchpad than the machine can have");
  }
  if (function.max_lanes > (function.is_kernel ? kMostLanes : 0)) {
    return wrong("more lanes than a block can have, or a limit on a function that is no kernel");
  }
  if (!function.is_kernel && !function.params.empty()) {
    return wrong("parameters on a function that is no kernel");
  }
  for (const Param& param : function.params) {
    const bool fits = param.is_pointer
                          ? param.type == Type::kU64
                          : size_bytes(param.type) != 0 && param.element == Type::kNone;
    if (!fits || param.element == Type::kPred) {
      return wrong("a parameter of an impossible type");
    }
  }
  uint32_t last_label = function.first_pc;
  for (const Label& label : function.labels) {
    if (!function.contains(label.pc) || label.pc < last_label) {
      return wrong("a label outside its code or out of order");
    }
    last_label = label.pc;
  }
  uint32_t next_branch = function.first_pc;
  for (const Reconvergence& point : function.reconvergence) {
    if (!function.contains(point.branch_pc) || point.branch_pc < next_branch ||
        !object.code[point.branch_pc].desc->has(kBranch) ||
        (point.join_pc != kNoReconvergence && !function.contains(point.join_pc))) {
      return wrong("a reconvergence point that belongs to no branch of it");
    }
    next_branch = point.branch_pc + 1;
  }
  return "";
}

// A function has no parameters of its own, so an insn of it may not name one.
std::string check_reference(const Object& object,
                            const Function& function,
                            const Insn& insn,
                            const Operand& operand,
                            unsigned index) {
  const auto param_fits = [&](uint32_t param, bool pointer) {
    return param < function.params.size() && (!pointer || function.params[param].is_pointer);
  };
  const auto symbol_fits = [&](uint32_t symbol, bool wants_const) {
    return symbol < object.symbols.size() &&
           (object.symbols[symbol].kind == SymbolKind::kConst) == wants_const;
  };
  switch (operand.kind) {
  case OperandKind::kParam:
    if (!param_fits(operand.index, false)) {
      return "a parameter that the kernel lacks";
    }
    return spec_of(insn, index).type == TypeRule::kAny || // PRINT shows either width
                   is_wide(operand_type(insn, index)) ==
                       is_wide(function.params[operand.index].type)
               ? ""
               : "a parameter of another width";
  case OperandKind::kSymbol: {
    const bool as_tile = (spec_of(insn, index).accepts & kAcceptTile) != 0;
    return operand.index < object.symbols.size() && (!as_tile || symbol_fits(operand.index, false))
               ? ""
               : "a symbol that does not exist or names no scratchpad";
  }
  case OperandKind::kString: {
    if (operand.index >= object.strings.size()) {
      return "a string that does not exist";
    }
    const auto fault = check_print_format(insn, object.strings[operand.index], function.params);
    return fault ? fault->message : "";
  }
  case OperandKind::kLabel: {
    if (operand.bits >= object.code.size()) {
      return "a target outside the code";
    }
    const auto target = static_cast<uint32_t>(operand.bits);
    if (!insn.desc->has(kCall)) {
      return function.contains(target) ? "" : "a branch out of its function";
    }
    const Function* callee = object.function_at(target);
    return callee != nullptr && !callee->is_kernel && callee->first_pc == target
               ? ""
               : "a call of something that is no function";
  }
  case OperandKind::kMem: {
    const MemRef ref = operand.mem();
    if (ref.base == BaseKind::kParam && !param_fits(ref.base_index, true)) {
      return "an address based on a parameter that is no pointer of the kernel";
    }
    if (ref.base == BaseKind::kSymbol && !symbol_fits(ref.base_index, ref.space == Space::kConst)) {
      return "an address based on a symbol that does not exist or lies in another space";
    }
    return "";
  }
  default:
    return "";
  }
}

/// The symbol that an operand names; null if none.
const Symbol* symbol_of(const Object& object, const Operand& operand) {
  if (operand.kind == OperandKind::kSymbol) {
    return &object.symbols[operand.index];
  }
  const bool based = operand.kind == OperandKind::kMem && operand.mem().base == BaseKind::kSymbol;
  return based ? &object.symbols[operand.mem().base_index] : nullptr;
}

// The static scratchpad of a kernel holds every symbol that it or a function it reaches refers to.
// A function refers to its own symbols and those of the file.
std::string check_scratchpad(const Object& object) {
  struct Use {
    uint64_t end = 0; // of the furthest scratchpad symbol
    std::vector<uint32_t> callees;
  };
  std::vector<Use> uses(object.functions.size());
  for (uint32_t f = 0; f < uses.size(); ++f) {
    const Function& function = object.functions[f];
    for (uint32_t pc = function.first_pc; pc < function.first_pc + function.insn_count; ++pc) {
      const Insn& insn = object.code[pc];
      for (unsigned i = 0; i < insn.operand_count; ++i) {
        const Symbol* symbol = symbol_of(object, insn.operands[i]);
        if (symbol != nullptr && symbol->owner != kFileScope && symbol->owner != f) {
          return fmt::format("insn {}: symbol '{}' of another function", pc, symbol->name);
        }
        if (symbol != nullptr && symbol->kind != SymbolKind::kConst) {
          uses[f].end = std::max(uses[f].end, uint64_t{symbol->offset} + symbol->size_bytes);
        }
      }
      if (insn.desc->has(kCall)) {
        const Function* callee = object.function_at(static_cast<uint32_t>(insn.operands[0].bits));
        uses[f].callees.push_back(static_cast<uint32_t>(callee - object.functions.data()));
      }
    }
  }
  for (uint32_t kernel = 0; kernel < uses.size(); ++kernel) {
    if (!object.functions[kernel].is_kernel) {
      continue;
    }
    std::set<uint32_t> seen = {kernel};
    std::vector<uint32_t> open = {kernel};
    while (!open.empty()) {
      const Use& use = uses[open.back()];
      open.pop_back();
      if (use.end > object.functions[kernel].l1_bytes) {
        return fmt::format("function '{}': {} bytes of scratchpad but it reaches symbols up to {}",
                           object.functions[kernel].name,
                           object.functions[kernel].l1_bytes,
                           use.end);
      }
      for (const uint32_t callee : use.callees) {
        if (seen.insert(callee).second) {
          open.push_back(callee);
        }
      }
    }
  }
  return "";
}

std::string check_names(const Object& object) {
  const auto wrong = [](const char* what, std::string_view name) {
    return fmt::format("{} '{}': its name is no name or occurs twice", what, shown(name));
  };
  if (const std::string* name = bad_name(object.functions)) {
    return wrong("function", *name);
  }
  for (const Function& function : object.functions) {
    if (const std::string* name = bad_name(function.params)) {
      return wrong("parameter", *name);
    }
    if (const std::string* name = bad_name(function.labels)) {
      return wrong("label", *name);
    }
  }
  std::set<std::pair<uint32_t, std::string_view>> seen;
  for (const Symbol& symbol : object.symbols) {
    if (!is_name(symbol.name) || !seen.insert({symbol.owner, symbol.name}).second) {
      return wrong("symbol", symbol.name);
    }
  }
  const bool machine_is_fine =
      std::all_of(object.machine.begin(), object.machine.end(), [](char c) {
        return c == '-' || is_name(std::string("_") + c);
      });
  return machine_is_fine ? "" : fmt::format("machine '{}': no name of one", shown(object.machine));
}

// Control must not run past the end of a function into whatever follows it. Branches stay inside
// (check_reference has seen to it), calls come back.
std::string check_flow(const Object& object, const Function& function) {
  const uint32_t end = function.first_pc + function.insn_count;
  std::vector<bool> seen(function.insn_count, false);
  std::vector<uint32_t> open = {function.first_pc};
  while (!open.empty()) {
    const uint32_t pc = open.back();
    open.pop_back();
    if (pc == end) {
      return fmt::format(
          "function '{}': control runs past its last insn, at {}", function.name, end - 1);
    }
    if (seen[pc - function.first_pc]) {
      continue;
    }
    seen[pc - function.first_pc] = true;
    const Insn& insn = object.code[pc];
    if (insn.desc->has(kReturn) && function.is_kernel) {
      return fmt::format("insn {}: {} in a kernel, which ends with exit", pc, insn.desc->mnemonic);
    }
    if (insn.desc->has(kBranch)) {
      open.push_back(static_cast<uint32_t>(insn.operands[0].bits));
    }
    if (insn.guard.present ||
        !(insn.desc->has(kBranch) || insn.desc->has(kReturn) || insn.desc->has(kEndsLane))) {
      open.push_back(pc + 1);
    }
  }
  return "";
}

} // namespace

std::string check_object(const Object& object) {
  if (std::string fault = check_names(object); !fault.empty()) {
    return fault;
  }
  if (std::string fault = check_symbols(object); !fault.empty()) {
    return fault;
  }
  uint32_t next_pc = 0;
  for (const Function& function : object.functions) {
    if (std::string fault = check_function(object, function, next_pc); !fault.empty()) {
      return fault;
    }
    next_pc += function.insn_count;
  }
  if (next_pc != object.code.size()) {
    return "code that belongs to no function";
  }
  for (const Function& function : object.functions) {
    for (uint32_t pc = function.first_pc; pc < function.first_pc + function.insn_count; ++pc) {
      const Insn& insn = object.code[pc];
      for (unsigned i = 0; i < insn.operand_count; ++i) {
        const std::string fault = check_reference(object, function, insn, insn.operands[i], i);
        if (!fault.empty()) {
          return fmt::format("insn {}: {}: {}", pc, insn.desc->mnemonic, fault);
        }
      }
      if (object.locs[pc].line != 0 && object.locs[pc].file >= object.files.size()) {
        return fmt::format("insn {}: a source file that does not exist", pc);
      }
    }
    if (std::string fault = check_flow(object, function); !fault.empty()) {
      return fault;
    }
  }
  if (std::string fault = check_scratchpad(object); !fault.empty()) {
    return fault;
  }
  return check_canonical(object);
}

} // namespace pto::isa
