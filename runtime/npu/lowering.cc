// SPDX-License-Identifier: Apache-2.0
#include "runtime/npu/lowering.h"

#include "isa/insn_desc.h"
#include "isa/print.h"
#include "isa/print_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace pto::rt {

namespace {

using isa::BaseKind;
using isa::Insn;
using isa::Operand;
using isa::OperandKind;
using isa::OperandSpec;
using isa::Space;
using isa::Type;

// ---------------------------------------------------------------- special registers

struct SpecialText {
  std::string_view pure;
  std::string_view hybrid; // empty: the same
};

// In the order of isa::Special. An empty text in pure mode: only the scalar unit of a hybrid kernel
// gives it.
constexpr std::array<SpecialText, isa::kSpecialCount> kSpecialTexts = {{
    {"pto::lane()", ""},
    {"pto::warp()", ""},
    {"threadIdx.x", ""},
    {"threadIdx.y", ""},
    {"threadIdx.z", ""},
    {"blockDim.x", ""},
    {"blockDim.y", ""},
    {"blockDim.z", ""},
    {"blockIdx.x", "pto::ctaid_x(shape, block_index)"},
    {"blockIdx.y", "pto::ctaid_y(shape, block_index)"},
    {"blockIdx.z", "pto::ctaid_z(shape, block_index)"},
    {"gridDim.x", "shape.grid_x"},
    {"gridDim.y", "shape.grid_y"},
    {"gridDim.z", "shape.grid_z"},
    {"blockIdx.x * blockDim.x + threadIdx.x",
     "pto::ctaid_x(shape, block_index) * shape.block_x + threadIdx.x"},
    {"blockIdx.y * blockDim.y + threadIdx.y",
     "pto::ctaid_y(shape, block_index) * shape.block_y + threadIdx.y"},
    {"blockIdx.z * blockDim.z + threadIdx.z",
     "pto::ctaid_z(shape, block_index) * shape.block_z + threadIdx.z"},
    {"gridDim.x * blockDim.x", "shape.grid_x * shape.block_x"},
    {"gridDim.y * blockDim.y", "shape.grid_y * shape.block_y"},
    {"gridDim.z * blockDim.z", "shape.grid_z * shape.block_z"},
    {"blockDim.x * blockDim.y * blockDim.z", ""},
    {"", "pto::core(board)"}, // the scalar unit asks
    {"pto::clock_now()", ""},
    {"pto::activemask()", ""},
    {"static_cast<uint32_t>(lanemask_eq())", ""},
    {"static_cast<uint32_t>(lanemask_lt())", ""},
    {"static_cast<uint32_t>(lanemask_le())", ""},
    {"static_cast<uint32_t>(lanemask_gt())", ""},
    {"static_cast<uint32_t>(lanemask_ge())", ""},
}};

// ---------------------------------------------------------------- literals

std::string integer_text(uint64_t value, bool wide) {
  const char* suffix = wide ? "ull" : "u";
  return value < 65536 ? fmt::format("{}{}", value, suffix) : fmt::format("{:#x}{}", value, suffix);
}

std::string literal_text(uint64_t bits, Type type) {
  const unsigned width = isa::bits(type);
  if (type == Type::kPred) {
    return (bits & 1) != 0 ? "true" : "false";
  }
  if (type == Type::kF32) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!std::isfinite(value)) {
      return fmt::format("{:#010x}u", bits);
    }
    std::string text = fmt::format("{}", value); // shortest that reads back to the same bits
    if (text.find_first_of(".e") == std::string::npos) {
      text += ".0";
    }
    return fmt::format("pto::bits({}f)", text);
  }
  if (isa::is_float(type) || type == Type::kF16x2) {
    return fmt::format("{:#x}u", bits);
  }
  if (isa::is_signed(type)) {
    const auto value = static_cast<int64_t>(bits << (64 - width)) >> (64 - width);
    if (value < 0 && value > -65536) {
      return fmt::format("{}", value);
    }
    return integer_text(width == 64 ? bits : static_cast<uint32_t>(value), width == 64);
  }
  return integer_text(bits, width == 64);
}

std::string string_literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += fmt::format("\\{}", c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '?') { // no trigraphs
      out += "\\?";
    } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
      out += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

constexpr std::string_view kReserved[] = {
    "alignas",     "alignof",  "and",       "asm",       "auto",      "bitand",   "bitor",
    "block_index", "board",    "bool",      "break",     "case",      "catch",    "char",
    "class",       "compl",    "concept",   "const",     "constants", "continue", "decltype",
    "default",     "delete",   "do",        "double",    "else",      "enum",     "explicit",
    "export",      "extern",   "false",     "float",     "for",       "friend",   "goto",
    "half",        "if",       "inline",    "int",       "l1",        "lane",     "long",
    "loop",        "main",     "mutable",   "namespace", "new",       "next",     "noexcept",
    "not",         "operator", "or",        "private",   "probe",     "profile",  "protected",
    "pto",         "public",   "register",  "requires",  "return",    "shape",    "short",
    "signed",      "sizeof",   "static",    "struct",    "switch",    "template", "this",
    "throw",       "true",     "try",       "typedef",   "typeid",    "typename", "union",
    "unsigned",    "using",    "virtual",   "void",      "volatile",  "while",    "xor",
    "clock",       "printf",   "block_idx", "constexpr", "span",      "scratch",  "scratch_bytes",
    "grid_x",      "grid_y",   "grid_z",    "block_x",   "block_y",   "block_z",
};

bool looks_like_register(std::string_view name) {
  return name.size() >= 2 && std::string_view("rdpte").find(name[0]) != std::string_view::npos &&
         std::all_of(name.begin() + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// ---------------------------------------------------------------- expansion

class Expansion {
public:
  Expansion(const Insn& insn, const TextContext& context) : insn_(insn), context_(context) {}

  std::optional<std::string> run(std::string& error) {
    std::string_view rest = insn_.desc->npu;
    if (rest.empty()) {
      error = "has no lowering to Ascend C";
      return std::nullopt;
    }
    while (true) {
      const size_t bar = rest.find('|');
      std::string out;
      if (expand(rest.substr(0, bar), out)) {
        if (!problem_.empty()) {
          error = problem_;
          return std::nullopt;
        }
        return out;
      }
      if (bar == std::string_view::npos) {
        error = fmt::format("has no lowering for these operands (column npu: {})", insn_.desc->npu);
        return std::nullopt;
      }
      rest.remove_prefix(bar + 1);
    }
  }

private:
  // False if a placeholder outside of brackets is absent.
  bool expand(std::string_view text, std::string& out) {
    for (size_t at = 0; at < text.size();) {
      const char c = text[at];
      if (c == '[') {
        const size_t end = text.find(']', at);
        std::string inside;
        if (expand(text.substr(at + 1, end - at - 1), inside)) {
          out += inside;
        }
        at = end + 1;
      } else if (c == '{') {
        const size_t end = text.find('}', at);
        if (!placeholder(text.substr(at + 1, end - at - 1), out)) {
          return false;
        }
        at = end + 1;
      } else {
        out += c;
        ++at;
      }
    }
    return true;
  }

  bool placeholder(std::string_view name, std::string& out) {
    const size_t fallback = name.find('?');
    if (fallback != std::string_view::npos) {
      return placeholder(name.substr(0, fallback), out) ||
             placeholder(name.substr(fallback + 1), out);
    }
    if (name == "type" || name == "type2") {
      out += fmt::format("pto::{}", isa::name(name == "type" ? insn_.type : insn_.type2));
      return true;
    }
    for (unsigned group = 0; group < insn_.desc->mods.size(); ++group) {
      if (insn_.desc->mods[group]->name == name) {
        const std::string_view suffix = insn_.desc->mods[group]->values[insn_.mods[group]].suffix;
        out += suffix;
        return !suffix.empty();
      }
    }
    enum { kText, kNumber, kBytes } wanted = kText;
    if (name.ends_with('#')) {
      wanted = kNumber;
      name.remove_suffix(1);
    } else if (name.ends_with(".bytes")) {
      wanted = kBytes;
      name.remove_suffix(6);
    }
    for (unsigned i = 0; i < insn_.operand_count; ++i) {
      const OperandSpec& spec = isa::spec_of(insn_, i);
      const Operand& operand = insn_.operands[i];
      if (spec.name != name || operand.kind == OperandKind::kDiscard) {
        continue;
      }
      if (spec.variadic) {
        out += printed_values(i);
      } else if (wanted == kNumber) {
        out += fmt::format("{}", operand.index);
      } else if (wanted == kBytes) {
        out += tile_bytes(operand);
      } else {
        out += operand_text(i);
      }
      return true;
    }
    return false;
  }

  std::string register_text(char file, uint32_t index) const {
    return fmt::format("{}{}{}", context_.register_prefix, file, index);
  }

  std::string tile_bytes(const Operand& operand) const {
    return operand.kind == OperandKind::kSymbol
               ? fmt::format("{}u", context_.object->symbols[operand.index].size_bytes)
               : fmt::format("pto::tile_bytes(board, {})", operand.index);
  }

  std::string operand_text(unsigned i) {
    const OperandSpec& spec = isa::spec_of(insn_, i);
    const Operand& operand = insn_.operands[i];
    const unsigned count = spec.vector ? isa::vector_count(insn_) : 1;
    switch (operand.kind) {
    case OperandKind::kReg32:
    case OperandKind::kReg64: {
      std::string out;
      for (unsigned k = 0; k < count; ++k) {
        out += fmt::format(
            "{}{}",
            k == 0 ? "" : ", ",
            register_text(operand.kind == OperandKind::kReg32 ? 'r' : 'd', operand.index + k));
      }
      return out;
    }
    case OperandKind::kPred:
      return predicate_text(context_, operand.index, operand.negated);
    case OperandKind::kImm:
      return literal_text(operand.bits, isa::operand_type(insn_, i));
    case OperandKind::kSpecial:
      return special_text(operand.index);
    case OperandKind::kParam:
      return param_text(context_.function->params[operand.index]);
    case OperandKind::kSymbol: {
      const isa::Symbol& symbol = context_.object->symbols[operand.index];
      const bool is_tile = (spec.accepts & isa::kAcceptTile) != 0;
      return is_tile ? fmt::format("pto::ub(l1, {})", symbol.offset)
                     : fmt::format("{}u", symbol.offset);
    }
    case OperandKind::kTile:
      return fmt::format("pto::ub(l1, pto::tile(board, {}))", operand.index);
    case OperandKind::kEvent:
      return fmt::format("{}", operand.index);
    case OperandKind::kMem:
      return mem_text(operand.mem());
    case OperandKind::kString:
      return format_text();
    default:
      problem_ = "has an operand that the back end does not know";
      return "";
    }
  }

  std::string special_text(uint32_t index) {
    const SpecialText& text = kSpecialTexts[index];
    if (text.pure.empty() && !context_.is_hybrid) {
      problem_ = fmt::format("reads %{}, which no published interface gives a pure SIMT kernel",
                             isa::kSpecials[index].name);
    }
    return std::string(context_.is_hybrid && !text.hybrid.empty() ? text.hybrid : text.pure);
  }

  static std::string param_text(const isa::Param& param) {
    const std::string name = cpp_name(param.name);
    if (param.is_pointer) {
      return fmt::format("pto::address({})", name);
    }
    return param.type == Type::kF32 ? fmt::format("pto::bits({})", name) : name;
  }

  std::string mem_text(const isa::MemRef& mem) const {
    std::string base; // of hbm and const; for l1 the first summand
    std::vector<std::string> sum;
    int64_t offset = mem.offset;
    switch (mem.base) {
    case BaseKind::kParam:
      base = cpp_name(context_.function->params[mem.base_index].name);
      break;
    case BaseKind::kReg:
      if (mem.space == Space::kHbm) {
        base = register_text('d', mem.base_index);
      } else {
        sum.push_back(fmt::format("int64_t{{{}}}", register_text('r', mem.base_index)));
      }
      break;
    case BaseKind::kTile:
      sum.push_back(fmt::format("int64_t{{pto::tile(board, {})}}", mem.base_index));
      break;
    case BaseKind::kSymbol:
      offset += context_.object->symbols[mem.base_index].offset;
      break;
    case BaseKind::kAbsolute:
      break;
    }
    if (mem.index_reg != isa::kNoIndexReg) {
      const std::string reg = register_text('r', mem.index_reg);
      sum.push_back(mem.scale_log2 == 0
                        ? fmt::format("pto::index({})", reg)
                        : fmt::format("pto::index({}) * {}", reg, 1u << mem.scale_log2));
    }
    if (offset != 0 || (sum.empty() && mem.space == Space::kL1)) {
      sum.push_back(fmt::format("{}", offset));
    }
    std::string joined = fmt::format("{}", fmt::join(sum, " + "));
    for (size_t at = joined.find("+ -"); at != std::string::npos; at = joined.find("+ -")) {
      joined.replace(at, 3, "- ");
    }
    if (mem.space == Space::kL1) {
      return fmt::format("pto::ub(l1, {})", joined);
    }
    if (mem.space == Space::kConst) {
      base = "constants";
    } else if (base.empty()) {
      base = "uint64_t{0}";
    }
    return joined.empty() ? fmt::format("pto::gm({})", base)
                          : fmt::format("pto::gm({}, {})", base, joined);
  }

  // ---------------------------------------------------------------- PRINT

  bool is_wide_value(unsigned operand) const {
    return operand < insn_.operand_count &&
           isa::is_wide_print_value(insn_.operands[operand], context_.function->params);
  }

  std::string format_text() {
    std::string out;
    unsigned operand = 1;
    const std::string& format = context_.object->strings[insn_.operands[0].index];
    for (size_t i = 0; i < format.size(); ++i) {
      if (format[i] != '%' || i + 1 == format.size() || format[i + 1] == '%') {
        out += format[i];
        if (format[i] == '%' && i + 1 < format.size()) {
          out += format[++i];
        }
        continue;
      }
      const char conversion = format[++i];
      const bool is_wide = is_wide_value(operand);
      if (conversion == 'p') {
        out += "0x%llx";
      } else if (conversion == 'f') {
        out += "%f";
      } else {
        out += fmt::format("%{}{}", is_wide ? "ll" : "", conversion);
      }
      conversions_.push_back(conversion);
      ++operand;
    }
    return string_literal(out + "\n");
  }

  std::string printed_values(unsigned first) {
    std::string out;
    for (unsigned i = first; i < insn_.operand_count; ++i) {
      const std::string value = operand_text(i);
      const char conversion = i - first < conversions_.size() ? conversions_[i - first] : 'u';
      const bool is_wide = is_wide_value(i);
      out += i == first ? "" : ", ";
      if (conversion == 'f') {
        out += fmt::format("pto::as_float({})", value);
      } else if (conversion == 'p') {
        out += fmt::format("static_cast<unsigned long long>({})", value);
      } else if (conversion == 'd') {
        out += fmt::format("static_cast<{}>({})", is_wide ? "long long" : "int", value);
      } else {
        out +=
            fmt::format("static_cast<{}>({})", is_wide ? "unsigned long long" : "unsigned", value);
      }
    }
    return out;
  }

  const Insn& insn_;
  const TextContext& context_;
  std::string problem_;
  std::vector<char> conversions_;
};

} // namespace

std::optional<std::string>
lower_insn(const Insn& insn, const TextContext& context, std::string& error) {
  return Expansion(insn, context).run(error);
}

bool needs_scalar_unit(const Insn& insn) {
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    const Operand& operand = insn.operands[i];
    if (operand.kind == OperandKind::kSpecial && kSpecialTexts[operand.index].pure.empty()) {
      return true;
    }
  }
  return false;
}

std::string predicate_text(const TextContext& context, unsigned index, bool negated) {
  return fmt::format("{}{}p{}", negated ? "!" : "", context.register_prefix, index);
}

std::string cpp_name(std::string_view name) {
  std::string out(name);
  std::replace_if(
      out.begin(),
      out.end(),
      [](char c) {
        return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '_');
      },
      '_');
  const bool is_taken =
      std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved) ||
      looks_like_register(name) || name.starts_with("__");
  return is_taken ? out + "_" : out;
}

std::string param_type(const isa::Param& param) {
  const auto value_type = [](Type type) -> std::string {
    const unsigned width = isa::bits(type);
    if (type == Type::kF32) {
      return "float";
    }
    return fmt::format("{}int{}_t", isa::is_signed(type) ? "" : "u", width < 8 ? 8 : width);
  };
  if (!param.is_pointer) {
    return value_type(param.type);
  }
  if (param.element == Type::kF16) {
    return "PTO_GM half*";
  }
  if (param.element == Type::kBF16) {
    return "PTO_GM bfloat16_t*";
  }
  return fmt::format("PTO_GM {}*",
                     param.element == Type::kNone ? "uint8_t" : value_type(param.element));
}

} // namespace pto::rt
