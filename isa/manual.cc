// SPDX-License-Identifier: Apache-2.0
// Walks the rows; nothing here knows an instruction.
#include "isa/manual.h"

#include "isa/insns/modifiers.h"
#include "isa/special.h"
#include "isa/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <vector>

namespace pto::isa {

using Json = nlohmann::ordered_json;

namespace {

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  }
  return out;
}

std::vector<std::string_view> type_names(TypeSet types) {
  std::vector<std::string_view> names;
  for (unsigned i = 1; i < kTypeCount; ++i) {
    if (types.contains(static_cast<Type>(i))) {
      names.push_back(name(static_cast<Type>(i)));
    }
  }
  return names;
}

std::string join(const std::vector<std::string_view>& parts, std::string_view separator) {
  std::string out;
  for (const std::string_view part : parts) {
    out += out.empty() ? "" : separator;
    out += part;
  }
  return out;
}

std::string_view scope_name(Scope scope) {
  return scope == Scope::kLane ? "lane" : scope == Scope::kWarp ? "warp" : "block";
}

std::string_view role_name(Role role) {
  return role == Role::kDst ? "written" : role == Role::kSrc ? "read" : "read and written";
}

std::string_view type_rule(const OperandSpec& spec) {
  switch (spec.type) {
  case TypeRule::kFirst:
    return "the insn's type";
  case TypeRule::kSecond:
    return "the second type";
  case TypeRule::kU32:
    return "u32";
  case TypeRule::kS32:
    return "s32";
  case TypeRule::kPred:
    return "pred";
  case TypeRule::kWidened:
    return "the insn's type, 64 bits with .wide";
  case TypeRule::kAny:
    return "32 or 64 bits, by the register";
  case TypeRule::kNone:
    break;
  }
  return "";
}

std::vector<const InsnDesc*> alphabetical() {
  const auto rows = all_insns();
  std::vector<const InsnDesc*> sorted(rows.begin(), rows.end());
  std::sort(sorted.begin(), sorted.end(), [](const InsnDesc* a, const InsnDesc* b) {
    return a->mnemonic < b->mnemonic;
  });
  return sorted;
}

std::vector<std::string_view> flag_names(const InsnDesc& desc) {
  struct FlagName {
    Flags flag;
    std::string_view name;
  };
  static constexpr FlagName kNames[] = {
      {kReadsMem, "reads memory"},
      {kWritesMem, "writes memory"},
      {kAtomic, "atomic"},
      {kAsync, "asynchronous"},
      {kBranch, "branches"},
      {kCall, "calls"},
      {kReturn, "returns"},
      {kEndsLane, "ends the lane"},
      {kWarpBarrier, "warp barrier"},
      {kBlockBarrier, "block barrier"},
      {kFence, "fence"},
      {kWaits, "waits"},
      {kCrossLane, "reads other lanes"},
      {kAllocates, "allocates"},
      {kFrees, "frees"},
      {kPrints, "prints"},
      {kTraps, "traps"},
      {kCacheControl, "cache control"},
  };
  std::vector<std::string_view> names;
  for (const FlagName& entry : kNames) {
    if (desc.has(entry.flag)) {
      names.push_back(entry.name);
    }
  }
  return names;
}

void append_section(std::string& out, const InsnDesc& desc) {
  out += fmt::format("\n### {}\n\n{}\n\n```\n", upper(desc.mnemonic), desc.summary);
  for (unsigned f = 0; f < desc.form_count(); ++f) {
    out += insn_syntax(desc, f) + "\n";
  }
  out += fmt::format("```\n\n{}\n\n", fmt::format("`{}`", desc.formula));
  if (!desc.types.empty()) {
    out += fmt::format("- Types: {}\n", join(type_names(desc.types), " "));
  }
  if (!desc.types2.empty()) {
    out += fmt::format("- Second types: {}\n", join(type_names(desc.types2), " "));
  }
  for (const ModGroup* group : desc.mods) {
    out += fmt::format("- {}:", upper(group->name));
    bool first = true;
    for (const ModValue& value : group->values) {
      const std::string suffix = value.suffix.empty() ? "none" : fmt::format("`.{}`", value.suffix);
      out += fmt::format("{} {} ({})", first ? "" : ",", suffix, value.summary);
      first = false;
    }
    out += '\n';
  }
  out += fmt::format("- Acts once per {}, unit {} ({}), latency key {}\n",
                     scope_name(desc.scope),
                     info(desc.unit).letter,
                     info(desc.unit).summary,
                     desc.latency);
  if (const auto flags = flag_names(desc); !flags.empty()) {
    out += fmt::format("- Properties: {}\n", join(flags, ", "));
  }
  for (unsigned f = 0; f < desc.form_count(); ++f) {
    if (desc.form(f).empty()) {
      continue;
    }
    out += "\n| operand | | type | may be |\n| --- | --- | --- | --- |\n";
    for (const OperandSpec& spec : desc.form(f)) {
      out += fmt::format("| {}{} | {} | {} | {} |\n",
                         spec.name,
                         spec.variadic   ? " ..."
                         : spec.optional ? " (optional)"
                                         : "",
                         role_name(spec.role),
                         type_rule(spec),
                         accepted_kinds(spec));
    }
  }
  if (!desc.details.empty()) {
    out += fmt::format("\n{}\n", desc.details);
  }
  out += fmt::format("\nExample: `{}`\n", desc.example);
}

Json operands_json(const OperandList& form) {
  Json out = Json::array();
  for (const OperandSpec& spec : form) {
    Json entry;
    entry["name"] = spec.name;
    entry["role"] = role_name(spec.role);
    entry["type"] = type_rule(spec);
    entry["accepts"] = accepted_kinds(spec);
    entry["optional"] = spec.optional;
    entry["variadic"] = spec.variadic;
    entry["vector"] = spec.vector;
    out.push_back(std::move(entry));
  }
  return out;
}

/// The columns of a row.
Json insn_json(const InsnDesc& row) {
  Json entry;
  entry["mnemonic"] = row.mnemonic;
  entry["opcode"] = row.opcode;
  entry["summary"] = row.summary;
  entry["formula"] = row.formula;
  entry["details"] = row.details;
  entry["example"] = row.example;
  entry["types"] = type_names(row.types);
  entry["types2"] = type_names(row.types2);
  entry["modifiers"] = Json::array();
  for (const ModGroup* group : row.mods) {
    Json mod;
    mod["name"] = group->name;
    mod["values"] = Json::array();
    for (const ModValue& value : group->values) {
      mod["values"].push_back({{"suffix", value.suffix}, {"summary", value.summary}});
    }
    entry["modifiers"].push_back(std::move(mod));
  }
  entry["forms"] = Json::array();
  for (unsigned f = 0; f < row.form_count(); ++f) {
    entry["forms"].push_back(operands_json(row.form(f)));
  }
  entry["scope"] = scope_name(row.scope);
  entry["unit"] = info(row.unit).letter;
  entry["latency"] = row.latency;
  entry["properties"] = flag_names(row);
  entry["has_npu_lowering"] = !row.npu.empty();
  return entry;
}

} // namespace

std::string operand_signature(const OperandList& form) {
  std::string out;
  for (unsigned i = 0; i < form.size(); ++i) {
    const std::string_view comma = i == 0 ? "" : ", ";
    out += form[i].variadic   ? fmt::format("[{}{}, ...]", comma, form[i].name)
           : form[i].optional ? fmt::format("[{}{}]", comma, form[i].name)
                              : fmt::format("{}{}", comma, form[i].name);
  }
  return out;
}

std::string accepted_kinds(const OperandSpec& spec) {
  struct Kind {
    Accepts bit;
    std::string_view name;
  };
  static constexpr Kind kKinds[] = {
      {kAcceptReg, "register"},
      {kAcceptImm, "constant"},
      {kAcceptParam, "parameter"},
      {kAcceptSpecial, "special register"},
      {kAcceptAddress, "symbol"},
      {kAcceptPred, "predicate"},
      {kAcceptTile, "tile"},
      {kAcceptHbm, "hbm[...]"},
      {kAcceptL1, "l1[...]"},
      {kAcceptConst, "const[...]"},
      {kAcceptEvent, "event"},
      {kAcceptLabel, "label"},
      {kAcceptString, "string"},
      {kAcceptDiscard, "`_`"},
  };
  std::vector<std::string_view> names;
  for (const Kind& kind : kKinds) {
    if ((spec.accepts & kind.bit) != 0) {
      names.push_back(kind.name);
    }
  }
  return join(names, ", ");
}

std::string insn_syntax(const InsnDesc& desc, unsigned form) {
  std::string mods;
  for (const ModGroup* group : desc.mods) {
    mods += group->is_optional() ? fmt::format("[.{}]", upper(group->name))
                                 : fmt::format(".{}", upper(group->name));
  }
  std::string types;
  if (!desc.types.empty()) {
    types += desc.types2.empty() ? ".TYPE" : ".DST.SRC";
  }
  std::string out(desc.mnemonic);
  out += desc.has(kTypesFirst) ? types + mods : mods + types;
  const std::string operands = operand_signature(desc.form(form));
  return operands.empty() ? out : out + " " + operands;
}

std::string manual_markdown() {
  std::string out(detail::manual_introduction());
  out += "\n## Special registers\n\n| name | bits | value |\n| --- | --- | --- |\n";
  for (const SpecialInfo& special : kSpecials) {
    out += fmt::format("| `%{}` | {} | {} |\n", special.name, special.bits, special.summary);
  }
  out += "\n## Instructions\n\n| instruction | meaning | acts per | unit |\n"
         "| --- | --- | --- | --- |\n";
  const std::vector<const InsnDesc*> rows = alphabetical();
  for (const InsnDesc* row : rows) {
    out += fmt::format("| [{0}](#{1}) | {2} | {3} | {4} |\n",
                       upper(row->mnemonic),
                       row->mnemonic,
                       row->summary,
                       scope_name(row->scope),
                       info(row->unit).letter);
  }
  for (const InsnDesc* row : rows) {
    append_section(out, *row);
  }
  return out;
}

std::string explain_insn(const InsnDesc& desc) {
  std::string out = fmt::format("{}: {}\n\n", upper(desc.mnemonic), desc.summary);
  for (unsigned f = 0; f < desc.form_count(); ++f) {
    out += fmt::format("  {}\n", insn_syntax(desc, f));
  }
  out += fmt::format("\n  {}\n", desc.formula);
  if (!desc.types.empty()) {
    out += fmt::format(
        "\n  {:<12} {}\n", desc.types2.empty() ? "TYPE" : "DST", join(type_names(desc.types), " "));
  }
  if (!desc.types2.empty()) {
    out += fmt::format("  {:<12} {}\n", "SRC", join(type_names(desc.types2), " "));
  }
  for (const ModGroup* group : desc.mods) {
    out += fmt::format("  {}\n", upper(group->name));
    for (const ModValue& value : group->values) {
      out += fmt::format("    {:<10} {}\n",
                         value.suffix.empty() ? "(none)" : fmt::format(".{}", value.suffix),
                         value.summary);
    }
  }
  for (unsigned f = 0; f < desc.form_count(); ++f) {
    out += desc.form(f).empty() ? "" : "\n";
    for (const OperandSpec& spec : desc.form(f)) {
      out += fmt::format("  {:<12} {}; {}{}\n",
                         spec.name,
                         role_name(spec.role),
                         accepted_kinds(spec),
                         spec.optional ? " (optional)" : "");
    }
  }
  out += fmt::format("\n  acts once per {}; unit {} ({}); latency key {}\n",
                     scope_name(desc.scope),
                     info(desc.unit).letter,
                     info(desc.unit).summary,
                     desc.latency);
  if (const auto flags = flag_names(desc); !flags.empty()) {
    out += fmt::format("  {}\n", join(flags, ", "));
  }
  // Details are prose: broken at blanks to the width of a terminal.
  if (!desc.details.empty()) {
    out += '\n';
    std::string line = " ";
    std::string_view rest = desc.details;
    while (!rest.empty()) {
      const size_t blank = std::min(rest.find_first_of(" \n"), rest.size());
      const std::string_view word = rest.substr(0, blank);
      if (line.size() + 1 + word.size() > 78) {
        out += line + "\n";
        line = " ";
      }
      line += fmt::format(" {}", word);
      rest.remove_prefix(std::min(blank + 1, rest.size()));
    }
    out += line + "\n";
  }
  return out + fmt::format("\n  example: {}\n", desc.example);
}

std::string list_insns() {
  std::string out;
  for (const InsnDesc* row : alphabetical()) {
    out += fmt::format("{:<48} {}\n", insn_syntax(*row, 0), row->summary);
  }
  return out;
}

std::string list_insns_json() {
  Json out = Json::array();
  for (const InsnDesc* row : all_insns()) {
    out.push_back(insn_json(*row));
  }
  return out.dump(2);
}

std::string explain_insn_json(const InsnDesc& desc) {
  return insn_json(desc).dump(2);
}

} // namespace pto::isa
