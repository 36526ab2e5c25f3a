// SPDX-License-Identifier: Apache-2.0
// Object -> Graphviz and JSON.
#include "assembler/disassemble.h"
#include "isa/cfg.h"
#include "isa/insn_desc.h"
#include "isa/print.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pto::as {

using isa::BasicBlock;
using isa::Cfg;
using isa::Function;
using isa::Object;
using Json = nlohmann::ordered_json;

namespace {

std::string dot_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
    }
    out += c;
  }
  return out;
}

std::string label_at(const Function& function, uint32_t pc) {
  std::string out;
  for (const isa::Label& label : function.labels) {
    if (label.pc == pc) {
      out += label.name + ":\\l";
    }
  }
  return out;
}

Json param_json(const isa::Param& param) {
  Json out;
  out["name"] = param.name;
  out["type"] = param.is_pointer ? std::string("ptr") : std::string(isa::name(param.type));
  if (param.element != isa::Type::kNone) {
    out["element"] = isa::name(param.element);
  }
  return out;
}

Json function_json(const Object& object, const Function& function) {
  Json out;
  out["name"] = function.name;
  out["kind"] = function.is_kernel ? "kernel" : "function";
  out["params"] = Json::array();
  for (const isa::Param& param : function.params) {
    out["params"].push_back(param_json(param));
  }
  out["first_pc"] = function.first_pc;
  out["insn_count"] = function.insn_count;
  out["registers"] = {{"r", function.reg32_count},
                      {"d", function.reg64_count},
                      {"budget", function.register_use()}};
  out["l1_bytes"] = function.l1_bytes;
  if (function.max_lanes != 0) {
    out["max_lanes"] = function.max_lanes;
  }
  out["labels"] = Json::array();
  for (const isa::Label& label : function.labels) {
    out["labels"].push_back({{"name", label.name}, {"pc", label.pc}});
  }
  out["reconvergence"] = Json::array();
  for (const isa::Reconvergence& point : function.reconvergence) {
    Json entry;
    entry["branch_pc"] = point.branch_pc;
    if (point.join_pc == isa::kNoReconvergence) {
      entry["join_pc"] = nullptr;
    } else {
      entry["join_pc"] = point.join_pc;
    }
    out["reconvergence"].push_back(std::move(entry));
  }
  out["insns"] = Json::array();
  for (uint32_t pc = function.first_pc; pc < function.first_pc + function.insn_count; ++pc) {
    Json insn;
    insn["pc"] = pc;
    insn["text"] = isa::print_insn(object.code[pc], object, function);
    insn["mnemonic"] = object.code[pc].desc->mnemonic;
    const isa::SourceLoc& loc = object.locs[pc];
    if (loc.line != 0 && loc.file < object.files.size()) {
      insn["file"] = object.files[loc.file];
      insn["line"] = loc.line;
      insn["column"] = loc.column;
    }
    out["insns"].push_back(std::move(insn));
  }
  return out;
}

std::string_view kind_name(isa::SymbolKind kind) {
  return kind == isa::SymbolKind::kTile     ? "tile"
         : kind == isa::SymbolKind::kShared ? "shared"
                                            : "const";
}

} // namespace

std::string print_cfg(const Object& object) {
  std::string out = "digraph pto {\n  node [shape=box, fontname=\"monospace\"];\n";
  for (size_t f = 0; f < object.functions.size(); ++f) {
    const Function& function = object.functions[f];
    const Cfg cfg(object, function);
    const std::vector<uint32_t> joins = cfg.immediate_post_dominators();
    out +=
        fmt::format("  subgraph cluster_{} {{\n    label=\"{}\";\n", f, dot_escape(function.name));
    for (size_t b = 0; b < cfg.blocks().size(); ++b) {
      const BasicBlock& block = cfg.blocks()[b];
      std::string text = label_at(function, block.first_pc); // ends its lines with \\l
      for (uint32_t pc = block.first_pc; pc < block.end_pc; ++pc) {
        text += fmt::format(
            "{} {}\\l", pc, dot_escape(isa::print_insn(object.code[pc], object, function)));
      }
      out += fmt::format("    f{}b{} [label=\"{}\"{}];\n",
                         f,
                         b,
                         text,
                         block.is_reachable ? "" : ", color=gray, fontcolor=gray");
    }
    for (size_t b = 0; b < cfg.blocks().size(); ++b) {
      const BasicBlock& block = cfg.blocks()[b];
      for (unsigned i = 0; i < block.successor_count; ++i) {
        out += fmt::format("    f{}b{} -> f{}b{};\n", f, b, f, block.successors[i]);
      }
      const isa::Insn& last = object.code[block.end_pc - 1];
      if (last.desc->has(isa::kBranch) && last.guard.present && joins[b] < cfg.blocks().size()) {
        out += fmt::format(
            "    f{}b{} -> f{}b{} [style=dashed, constraint=false];\n", f, b, f, joins[b]);
      }
    }
    out += "  }\n";
  }
  return out + "}\n";
}

std::string object_to_json(const Object& object) {
  Json out;
  out["isa_version"] = isa::kIsaVersion;
  if (!object.machine.empty()) {
    out["machine"] = object.machine;
  }
  out["functions"] = Json::array();
  for (const Function& function : object.functions) {
    out["functions"].push_back(function_json(object, function));
  }
  out["symbols"] = Json::array();
  for (const isa::Symbol& symbol : object.symbols) {
    Json entry;
    entry["name"] = symbol.name;
    entry["kind"] = kind_name(symbol.kind);
    entry["type"] = isa::name(symbol.type);
    entry["rows"] = symbol.rows;
    entry["cols"] = symbol.cols;
    entry["offset"] = symbol.offset;
    entry["size_bytes"] = symbol.size_bytes;
    entry["align_bytes"] = symbol.align_bytes;
    if (symbol.owner < object.functions.size()) {
      entry["owner"] = object.functions[symbol.owner].name;
    }
    out["symbols"].push_back(std::move(entry));
  }
  out["files"] = object.files;
  out["strings"] = object.strings;
  return out.dump(2, ' ', false, Json::error_handler_t::replace);
}

} // namespace pto::as
