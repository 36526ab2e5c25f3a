// SPDX-License-Identifier: Apache-2.0
// Object -> assembly text, and the listing.
#include "assembler/disassemble.h"

#include "isa/cfg.h"
#include "isa/codec.h"
#include "isa/insn_desc.h"
#include "isa/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace pto::as {

using isa::Function;
using isa::Object;
using isa::Symbol;
using isa::SymbolKind;

namespace {

void append(std::string& out, std::string_view text) {
  out += text;
}

std::string symbol_text(const Object& object, const Symbol& symbol) {
  std::string out;
  const uint32_t usual =
      symbol.kind == SymbolKind::kConst ? static_cast<uint32_t>(isa::size_bytes(symbol.type)) : 32U;
  if (symbol.align_bytes != usual) {
    out += fmt::format(".align {}\n", symbol.align_bytes);
  }
  const std::string_view type = isa::name(symbol.type);
  switch (symbol.kind) {
  case SymbolKind::kTile:
    return out + fmt::format(".tile {}, {}[{}][{}]\n", symbol.name, type, symbol.rows, symbol.cols);
  case SymbolKind::kShared:
    return out + fmt::format(".shared {}, {}[{}]\n", symbol.name, type, symbol.rows * symbol.cols);
  case SymbolKind::kConst:
    break;
  }
  out += fmt::format(".const {}, {} {{", symbol.name, type);
  const unsigned size = isa::size_bytes(symbol.type);
  for (uint32_t at = 0; at < symbol.size_bytes; at += size) {
    uint64_t bits = 0;
    for (unsigned i = 0; i < size; ++i) {
      bits |= uint64_t{object.const_data[symbol.offset + at + i]} << (8 * i);
    }
    // Long data goes over several lines, eight values each.
    append(out, at == 0 ? "" : at / size % 8 == 0 ? ",\n    " : ", ");
    out += isa::print_literal(bits, symbol.type);
  }
  return out + "}\n";
}

std::string head_text(const Function& function) {
  if (!function.is_kernel) {
    return fmt::format(".func {}\n", function.name);
  }
  std::string params;
  for (const isa::Param& param : function.params) {
    params += params.empty() ? "" : ", ";
    if (param.is_pointer) {
      params += param.element == isa::Type::kNone
                    ? fmt::format("ptr {}", param.name)
                    : fmt::format("ptr.{} {}", isa::name(param.element), param.name);
    } else {
      params += fmt::format("{} {}", isa::name(param.type), param.name);
    }
  }
  std::string out = fmt::format(".kernel {}({})\n", function.name, params);
  if (function.max_lanes != 0) {
    out += fmt::format(".maxlanes {}\n", function.max_lanes);
  }
  return out;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

// Names of the labels of one function: its own, and made-up ones for targets without.
class LabelNames {
public:
  LabelNames(const Object& object, const Function& function) {
    std::set<std::string> taken;
    for (const isa::Label& label : function.labels) {
      names_[label.pc].push_back(label.name);
      taken.insert(label.name);
    }
    for (uint32_t pc = function.first_pc; pc < function.first_pc + function.insn_count; ++pc) {
      const isa::Insn& insn = object.code[pc];
      for (unsigned i = 0; i < insn.operand_count; ++i) {
        const auto target = static_cast<uint32_t>(insn.operands[i].bits);
        if (insn.operands[i].kind == isa::OperandKind::kLabel && !insn.desc->has(isa::kCall) &&
            names_.find(target) == names_.end()) {
          std::string name = fmt::format("L{}", target);
          while (!taken.insert(name).second) {
            name += '_';
          }
          names_[target].push_back(name);
        }
      }
    }
  }

  [[nodiscard]] const std::vector<std::string>* at(uint32_t pc) const {
    const auto found = names_.find(pc);
    return found == names_.end() ? nullptr : &found->second;
  }

private:
  std::map<uint32_t, std::vector<std::string>> names_;
};

isa::PrintOptions print_options(const Object& object, const LabelNames& labels) {
  isa::PrintOptions options;
  options.label_name = [&object, &labels](uint32_t pc) {
    if (const std::vector<std::string>* names = labels.at(pc)) {
      return names->front();
    }
    const Function* callee = object.function_at(pc);
    return callee != nullptr ? callee->name : fmt::format("L{}", pc);
  };
  return options;
}

void print_function(std::string& out,
                    const Object& object,
                    uint32_t index,
                    const DisassembleOptions& options) {
  const Function& function = object.functions[index];
  out += '\n';
  out += head_text(function);
  for (const Symbol& symbol : object.symbols) {
    if (symbol.owner == index) {
      out += symbol_text(object, symbol);
    }
  }
  const LabelNames labels(object, function);
  const isa::PrintOptions printing = print_options(object, labels);
  isa::SourceLoc last;
  for (uint32_t pc = function.first_pc; pc < function.first_pc + function.insn_count; ++pc) {
    if (const std::vector<std::string>* names = labels.at(pc)) {
      for (const std::string& name : *names) {
        out += name + ":\n";
      }
    }
    const isa::SourceLoc& loc = object.locs[pc];
    if (options.with_loc && !(loc == last) && loc.file < object.files.size() && loc.line != 0) {
      out += fmt::format(".loc {} {}", quoted(object.files[loc.file]), loc.line);
      out += loc.column > 1 ? fmt::format(" {}\n", loc.column) : "\n";
      last = loc;
    }
    out += "    " + isa::print_insn(object.code[pc], object, function, printing) + '\n';
  }
  out += ".end\n";
}

std::string use_text(const Function& function) {
  std::string out = fmt::format("{} registers a lane ({} r, {} d)",
                                function.register_use(),
                                function.reg32_count,
                                function.reg64_count);
  out += fmt::format(
      ", {} bytes of scratchpad, {} instructions", function.l1_bytes, function.insn_count);
  return out;
}

} // namespace

std::string disassemble(const Object& object, const DisassembleOptions& options) {
  std::string out = fmt::format(".pto {}\n", isa::kIsaVersion);
  if (!object.machine.empty()) {
    out += fmt::format(".machine {}\n", object.machine);
  }
  for (const Symbol& symbol : object.symbols) {
    if (symbol.owner == isa::kFileScope) {
      out += symbol_text(object, symbol);
    }
  }
  for (uint32_t f = 0; f < object.functions.size(); ++f) {
    print_function(out, object, f, options);
  }
  return out;
}

std::string list_program(const Object& object, std::span<const isa::SourceRange> ranges) {
  std::string out;
  isa::Pool pool;
  for (const Function& function : object.functions) {
    out += fmt::format("{}{} {}: {}\n",
                       out.empty() ? "" : "\n",
                       function.is_kernel ? "kernel" : "function",
                       function.name,
                       use_text(function));
    const LabelNames labels(object, function);
    const isa::PrintOptions printing = print_options(object, labels);
    const isa::SourceFile* file = nullptr;
    for (uint32_t pc = function.first_pc; pc < function.first_pc + function.insn_count; ++pc) {
      if (const std::vector<std::string>* names = labels.at(pc)) {
        for (const std::string& name : *names) {
          out += fmt::format("{:>5}  {:<32}         {}:\n", "", "", name);
        }
      }
      std::string error;
      const std::optional<isa::Word> word = isa::encode(object.code[pc], pool, error);
      const std::string code = word ? fmt::format("{:016x}{:016x}", word->high, word->low) : error;
      std::string text = isa::print_insn(object.code[pc], object, function, printing);
      std::string line;
      if (!ranges.empty()) {
        const isa::SourceRange& range = ranges[pc];
        const isa::LineColumn place = range.file->locate(range.offset);
        if (range.file != file && range.file->origin() != isa::SourceFile::Origin::kMacro) {
          file = range.file;
          out += fmt::format("{:>5}  {}\n", "", file->name());
        }
        line = fmt::format(
            "{}{}", place.line, range.file->origin() == isa::SourceFile::Origin::kMacro ? "m" : "");
        text = std::string(range.file->line_around(range.offset));
      } else if (object.locs[pc].line != 0) {
        line = fmt::format("{}", object.locs[pc].line);
        text.insert(0, "    ");
      }
      out += fmt::format("{:05x}  {}  {:>5}  {}\n", pc * 16, code, line, text);
    }
  }
  return out;
}

} // namespace pto::as
