// SPDX-License-Identifier: Apache-2.0
// Suffixes against the columns of the row.
#include "assembler/mnemonic.h"

#include "isa/suggest.h"
#include "isa/table.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

namespace pto::as {

using isa::InsnDesc;
using isa::ModGroup;
using isa::SourceRange;
using isa::Type;

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  }
  return out;
}

std::vector<std::string_view> suffixes_of(const InsnDesc& desc) {
  std::vector<std::string_view> names;
  for (unsigned i = 1; i < isa::kTypeCount; ++i) {
    const auto type = static_cast<Type>(i);
    if (desc.types.contains(type) || desc.types2.contains(type)) {
      names.push_back(isa::name(type));
    }
  }
  for (const ModGroup* group : desc.mods) {
    for (const isa::ModValue& value : group->values) {
      if (!value.suffix.empty()) {
        names.push_back(value.suffix);
      }
    }
  }
  return names;
}

std::string list(const std::vector<std::string_view>& names) {
  std::string out;
  for (const std::string_view name : names) {
    out += fmt::format("{}.{}", out.empty() ? "" : " ", name);
  }
  return out;
}

} // namespace

std::string list_types(isa::TypeSet types) {
  std::vector<std::string_view> names;
  for (unsigned i = 1; i < isa::kTypeCount; ++i) {
    if (types.contains(static_cast<Type>(i))) {
      names.push_back(isa::name(static_cast<Type>(i)));
    }
  }
  return list(names);
}

std::string list_mods(const ModGroup& group) {
  std::vector<std::string_view> names;
  for (const isa::ModValue& value : group.values) {
    if (!value.suffix.empty()) {
      names.push_back(value.suffix);
    }
  }
  return list(names);
}

const Mnemonic& MnemonicReader::read(const Token& token,
                                     const TokenCursor& cursor,
                                     const std::function<bool(std::string_view)>& is_macro) {
  const auto found = known_.find(token.text);
  if (found != known_.end()) {
    return found->second;
  }
  const Mnemonic result = parse(token, cursor, is_macro);
  if (result.desc == nullptr) {
    return failed_; // not remembered: each place gets its message
  }
  return known_.emplace(token.text, result).first->second;
}

Mnemonic MnemonicReader::parse(const Token& token,
                               const TokenCursor& cursor,
                               const std::function<bool(std::string_view)>& is_macro) {
  const std::string_view text = token.text;
  const std::string_view base = text.substr(0, text.find('.'));
  const auto part = [&](size_t at, size_t length) {
    return SourceRange{
        &cursor.file(), token.offset + static_cast<uint32_t>(at), static_cast<uint32_t>(length)};
  };
  Mnemonic result;
  const InsnDesc* desc = isa::find_insn(base);
  if (desc == nullptr) {
    const SourceRange range = part(0, base.size());
    if (is_macro(text)) {
      diags_.error(range, fmt::format("'{}' is a macro and cannot be predicated", text))
          .advise("put the predicate before the instructions of its body");
      return result;
    }
    const auto nearest = isa::nearest_name(base, isa::all_mnemonics());
    isa::Diagnostic& error =
        diags_.error(range,
                     fmt::format("unknown instruction '{}'{}",
                                 base,
                                 nearest ? fmt::format("; did you mean '{}'?", *nearest) : ""));
    if (nearest) {
      error.replace(range, std::string(*nearest));
    } else {
      error.advise("ptoas --list-instructions shows all of them");
    }
    return result;
  }
  result.desc = desc;
  std::array<bool, isa::kMaxModGroups> seen{};
  size_t at = base.size();
  while (at < text.size()) {
    const size_t dot = text.find('.', at + 1);
    const size_t end = dot == std::string_view::npos ? text.size() : dot;
    if (!parse_suffix(result, text.substr(at + 1, end - at - 1), part(at, end - at), seen)) {
      return {};
    }
    at = end;
  }
  return check_complete(result, part(0, text.size()), seen) ? result : Mnemonic{};
}

bool MnemonicReader::parse_suffix(Mnemonic& result,
                                  std::string_view suffix,
                                  SourceRange range,
                                  std::array<bool, isa::kMaxModGroups>& seen) {
  const InsnDesc& desc = *result.desc;
  const std::string name = lower(suffix);
  for (unsigned g = 0; g < desc.mods.size(); ++g) {
    const ModGroup& group = *desc.mods[g];
    for (unsigned v = 0; v < group.values.size(); ++v) {
      if (group.values[v].suffix.empty() || group.values[v].suffix != name) {
        continue;
      }
      if (seen[g]) {
        diags_
            .error(range,
                   fmt::format("second {} suffix '.{}' on {}", group.name, suffix, desc.mnemonic))
            .expect(fmt::format("one of {}", list_mods(group)));
        return false;
      }
      seen[g] = true;
      result.mods[g] = static_cast<uint8_t>(v);
      return true;
    }
  }
  const std::optional<Type> type = isa::find_type(name);
  if (type && !desc.types.empty()) {
    const bool is_second = result.type != Type::kNone;
    Type& place = is_second ? result.type2 : result.type;
    const isa::TypeSet allowed = is_second ? desc.types2 : desc.types;
    if (allowed.empty() || place != Type::kNone) {
      diags_
          .error(range,
                 fmt::format("one type suffix too many: '.{}' after '.{}'",
                             suffix,
                             isa::name(is_second ? result.type : place)))
          .expect(fmt::format("{} type suffix{} on {}",
                              desc.types2.empty() ? "one" : "two",
                              desc.types2.empty() ? "" : "es",
                              desc.mnemonic));
      return false;
    }
    if (!allowed.contains(*type)) {
      const char* which = desc.types2.empty() ? "" : is_second ? " as source" : " as destination";
      diags_
          .error(range, fmt::format("{} has no type {}{}", desc.mnemonic, isa::name(*type), which))
          .expect(fmt::format("one of {}", list_types(allowed)));
      return false;
    }
    place = *type;
    return true;
  }
  const std::vector<std::string_view> known = suffixes_of(desc);
  const auto nearest = isa::nearest_name(name, known);
  isa::Diagnostic& error =
      diags_.error(range,
                   fmt::format("{} has no suffix '.{}'{}",
                               desc.mnemonic,
                               suffix,
                               nearest ? fmt::format("; did you mean '.{}'?", *nearest) : ""));
  error.expect(known.empty() ? "no suffix" : fmt::format("suffixes from {}", list(known)));
  if (nearest) {
    error.replace(range, fmt::format(".{}", *nearest));
  }
  return false;
}

bool MnemonicReader::check_complete(const Mnemonic& result,
                                    SourceRange range,
                                    const std::array<bool, isa::kMaxModGroups>& seen) {
  const InsnDesc& desc = *result.desc;
  for (unsigned g = 0; g < desc.mods.size(); ++g) {
    const ModGroup& group = *desc.mods[g];
    if (!group.is_optional() && !seen[g]) {
      diags_.error(range, fmt::format("{} needs a {} suffix", desc.mnemonic, group.name))
          .expect(fmt::format("one of {}", list_mods(group)));
      return false;
    }
  }
  const bool lacks_first = !desc.types.empty() && result.type == Type::kNone;
  const bool lacks_second = !desc.types2.empty() && result.type2 == Type::kNone;
  if (lacks_first || lacks_second) {
    diags_
        .error(range,
               fmt::format("{} needs {} type suffix",
                           desc.mnemonic,
                           desc.types2.empty() ? "a"
                           : lacks_first       ? "a destination and a source"
                                               : "a second, the source,"))
        .expect(fmt::format("one of {}", list_types(lacks_first ? desc.types : desc.types2)))
        .advise(fmt::format("for example: {}", desc.example));
    return false;
  }
  return true;
}

} // namespace pto::as
