// SPDX-License-Identifier: Apache-2.0
// Insn -> assembler text. Every form printed here is one that the parser reads back to equal bits.
#include "isa/print.h"

#include "isa/float16.h"
#include "isa/insn_desc.h"

#include <fmt/format.h>

#include <bit>
#include <cctype>
#include <cmath>

namespace pto::isa {

namespace {

// fmt's shortest form, made recognisable as a float literal: 1 -> 1.0, 1e+20 stays.
std::string print_float(float value, const std::string& bit_form) {
  if (std::isnan(value)) {
    return bit_form;
  }
  if (std::isinf(value)) {
    return value < 0 ? "-inf" : "inf";
  }
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) {
    text += ".0";
  }
  return text;
}

std::string print_mem(const MemRef& ref, const Object& object, const Function& function) {
  std::string inside;
  switch (ref.base) {
  case BaseKind::kAbsolute:
    break;
  case BaseKind::kParam:
    inside = ref.base_index < function.params.size() ? function.params[ref.base_index].name
                                                     : fmt::format("param{}", ref.base_index);
    break;
  case BaseKind::kReg:
    inside = fmt::format("{}{}", ref.space == Space::kHbm ? 'd' : 'r', ref.base_index);
    break;
  case BaseKind::kTile:
    inside = fmt::format("t{}", ref.base_index);
    break;
  case BaseKind::kSymbol:
    inside = ref.base_index < object.symbols.size() ? object.symbols[ref.base_index].name
                                                    : fmt::format("symbol{}", ref.base_index);
    break;
  }
  if (ref.index_reg != kNoIndexReg) {
    inside += fmt::format(
        "{}r{}*{}", inside.empty() ? "0 + " : " + ", ref.index_reg, 1u << ref.scale_log2);
  }
  if (inside.empty()) {
    inside = fmt::format("{}", ref.offset);
  } else if (ref.offset != 0) {
    inside += ref.offset < 0 ? fmt::format(" - {}", -int64_t{ref.offset})
                             : fmt::format(" + {}", ref.offset);
  }
  return fmt::format("{}[{}]", name(ref.space), inside);
}

std::string print_label(uint64_t pc,
                        bool is_call,
                        const Object& object,
                        const Function& function,
                        const PrintOptions& options) {
  const auto target = static_cast<uint32_t>(pc);
  if (is_call) {
    const Function* callee = object.function_at(target);
    return callee != nullptr ? callee->name : fmt::format("L{}", target);
  }
  if (options.label_name) {
    return options.label_name(target);
  }
  if (function.contains(target)) {
    for (const Label& label : function.labels) {
      if (label.pc == target) {
        return label.name;
      }
    }
  }
  return fmt::format("L{}", target);
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
    case '\n':
      out += "\\n";
      break;
    case '\t':
      out += "\\t";
      break;
    case '\r':
      out += "\\r";
      break;
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    default:
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      } else {
        out += c;
      }
    }
  }
  return out + '"';
}

void append_upper(std::string& out, std::string_view text, bool upper) {
  for (const char c : text) {
    out += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
  }
}

} // namespace

std::string print_literal(uint64_t bits, Type type) {
  switch (type) {
  case Type::kF32: {
    const auto raw = static_cast<uint32_t>(bits);
    return print_float(std::bit_cast<float>(raw), fmt::format("0f{:08X}", raw));
  }
  case Type::kF16:
  case Type::kBF16: {
    const auto raw = static_cast<uint16_t>(bits);
    const float value = type == Type::kF16 ? widen(F16{raw}) : widen(BF16{raw});
    return print_float(value, fmt::format("0h{:04X}", raw));
  }
  case Type::kS8:
    return fmt::format("{}", static_cast<int8_t>(bits));
  case Type::kS16:
    return fmt::format("{}", static_cast<int16_t>(bits));
  case Type::kS32:
    return fmt::format("{}", static_cast<int32_t>(bits));
  case Type::kS64:
    return fmt::format("{}", static_cast<int64_t>(bits));
  default:
    return fmt::format("{}", bits);
  }
}

std::string print_mnemonic(const Insn& insn, bool upper_case) {
  const InsnDesc& desc = *insn.desc;
  std::string types;
  for (const Type type : {insn.type, insn.type2}) {
    if (type != Type::kNone) {
      types += '.';
      append_upper(types, name(type), false);
    }
  }
  std::string mods;
  for (unsigned g = 0; g < desc.mods.size(); ++g) {
    const std::string_view suffix = desc.mods[g]->values[insn.mods[g]].suffix;
    if (!suffix.empty()) {
      mods += '.';
      mods += suffix;
    }
  }
  std::string out;
  append_upper(out, desc.mnemonic, upper_case);
  append_upper(out, desc.has(kTypesFirst) ? types + mods : mods + types, false);
  return out;
}

std::string print_operand(const Insn& insn,
                          unsigned index,
                          const Object& object,
                          const Function& function,
                          const PrintOptions& options) {
  const Operand& operand = insn.operands[index];
  switch (operand.kind) {
  case OperandKind::kNone:
    break;
  case OperandKind::kReg32:
    return fmt::format("r{}", operand.index);
  case OperandKind::kReg64:
    return fmt::format("d{}", operand.index);
  case OperandKind::kPred:
    return fmt::format("{}p{}", operand.negated ? "!" : "", operand.index);
  case OperandKind::kTile:
    return fmt::format("t{}", operand.index);
  case OperandKind::kEvent:
    return fmt::format("e{}", operand.index);
  case OperandKind::kImm:
    return print_literal(operand.bits, operand_type(insn, index));
  case OperandKind::kSpecial:
    return fmt::format("%{}", info(static_cast<Special>(operand.index)).name);
  case OperandKind::kParam:
    return operand.index < function.params.size() ? function.params[operand.index].name
                                                  : fmt::format("param{}", operand.index);
  case OperandKind::kSymbol:
    return operand.index < object.symbols.size() ? object.symbols[operand.index].name
                                                 : fmt::format("symbol{}", operand.index);
  case OperandKind::kMem:
    return print_mem(operand.mem(), object, function);
  case OperandKind::kLabel:
    return print_label(operand.bits, insn.desc->has(kCall), object, function, options);
  case OperandKind::kString:
    return operand.index < object.strings.size() ? quoted(object.strings[operand.index]) : "\"\"";
  case OperandKind::kDiscard:
    return "_";
  }
  return "";
}

std::string print_insn(const Insn& insn,
                       const Object& object,
                       const Function& function,
                       const PrintOptions& options) {
  std::string out;
  if (insn.guard.present) {
    out = fmt::format("@{}p{} ", insn.guard.negated ? "!" : "", insn.guard.pred);
  }
  out += print_mnemonic(insn, options.upper_case_mnemonic);
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    out += i == 0 ? " " : ", ";
    out += print_operand(insn, i, object, function, options);
  }
  return out;
}

} // namespace pto::isa
