// SPDX-License-Identifier: Apache-2.0
// Registers, names, strings and labels as operands. Addresses are in address.cc, the bits of
// constants in operand_constant.cc.
#include "assembler/operands.h"

#include "assembler/operand_place.h"
#include "isa/suggest.h"

#include <fmt/format.h>

#include <algorithm>

namespace pto::as {

using isa::Accepts;
using isa::Insn;
using isa::Operand;
using isa::OperandKind;
using isa::OperandSpec;
using isa::Param;
using isa::SourceRange;
using isa::Type;

namespace {

std::string join(const std::vector<std::string>& parts) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    out += i == 0 ? "" : i + 1 == parts.size() ? " or " : ", ";
    out += parts[i];
  }
  return out;
}

std::string kind_of(const RegisterName& reg) {
  return fmt::format("{} ({}0..{}{})",
                     reg.file->description,
                     reg.file->letter,
                     reg.file->letter,
                     reg.file->count - 1);
}

std::string register_description(Type type) {
  return isa::is_wide(type) ? "a 64-bit register (d0..d62)" : "a 32-bit register (r0..r126)";
}

std::string type_of(const Param& param) {
  return param.is_pointer ? "pointer (64 bit)" : std::string(isa::name(param.type));
}

// Whether a parameter may stand where a value of `type` is read (docs/isa.md, Parameters).
bool param_fits(const Param& param, Type type) {
  if (type == Type::kNone || type == Type::kPred) {
    return false;
  }
  if (param.is_pointer) {
    return isa::is_wide(type) && !isa::is_float(type);
  }
  if (isa::is_wide(param.type) != isa::is_wide(type)) {
    return false;
  }
  if (isa::is_bits(param.type) || isa::is_bits(type)) {
    return true;
  }
  return isa::is_float(param.type) || isa::is_float(type) || type == Type::kF16x2 ||
                 param.type == Type::kF16x2
             ? param.type == type
             : true;
}

} // namespace

// ---------------------------------------------------------------- names

const Scope::Entry* Scope::find(std::string_view name) const {
  if (const auto local = local_.find(name); local != local_.end()) {
    return &local->second;
  }
  const auto file = file_.find(name);
  return file == file_.end() ? nullptr : &file->second;
}

bool Scope::add(std::string_view name, const Entry& entry) {
  return (is_open_ ? local_ : file_).emplace(name, entry).second;
}

std::vector<std::string_view> Scope::names() const {
  std::vector<std::string_view> names;
  for (const Names* map : {&local_, &file_}) {
    for (const auto& entry : *map) {
      names.push_back(entry.first);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

OperandReader::OperandReader(Program& program,
                             const Scope& scope,
                             const ConstNames& constants,
                             isa::Diagnostics& diags)
    : program_(program), scope_(scope), constants_(constants), diags_(diags) {}

std::string OperandReader::describe_name(std::string_view name) const {
  if (const auto reg = parse_register(name)) {
    return std::string(reg->file->description);
  }
  const Scope::Entry* entry = scope_.find(name);
  if (entry == nullptr) {
    return "";
  }
  switch (entry->kind) {
  case Scope::Kind::kParam:
    return "a parameter";
  case Scope::Kind::kSymbol:
    return "a symbol";
  case Scope::Kind::kAlias:
    break;
  }
  return fmt::format("an alias of {}{}", entry->reg.file->letter, entry->reg.index);
}

ConstContext OperandReader::constant_context() {
  return {constants_, diags_, [this](std::string_view name) { return describe_name(name); }};
}

std::optional<RegisterName> OperandReader::peek_register(const TokenCursor& cursor) const {
  const Token& token = cursor.peek();
  if (token.kind != TokenKind::kWord) {
    return std::nullopt;
  }
  if (const auto reg = parse_register(token.text)) {
    return reg;
  }
  const Scope::Entry* entry = scope_.find(token.text);
  return entry != nullptr && entry->kind == Scope::Kind::kAlias ? std::optional(entry->reg)
                                                                : std::nullopt;
}

// ---------------------------------------------------------------- messages

std::string describe_accepted(const OperandSpec& spec, Type type) {
  std::vector<std::string> parts;
  const auto accepts = [&](Accepts kinds) { return (spec.accepts & kinds) != 0; };
  if (spec.type == isa::TypeRule::kAny) {
    parts.emplace_back("a register (r or d)");
  } else if (accepts(isa::kAcceptReg) && type != Type::kPred) {
    parts.push_back(register_description(type));
  }
  if (accepts(isa::kAcceptPred) && type == Type::kPred) {
    parts.emplace_back("a predicate (p0..p7)");
  }
  if (accepts(isa::kAcceptImm)) {
    parts.emplace_back(isa::is_float(type)   ? "a float constant"
                       : type == Type::kPred ? "0 or 1"
                                             : "an integer constant");
  }
  if (accepts(isa::kAcceptParam) && type != Type::kPred) {
    parts.emplace_back("a parameter");
  }
  if (accepts(isa::kAcceptSpecial) && type != Type::kPred) {
    parts.emplace_back("a special register");
  }
  if (accepts(isa::kAcceptTile)) {
    parts.emplace_back("a tile (t0..t15, or the name of a .tile or .shared)");
  }
  if (accepts(isa::kAcceptHbm)) {
    parts.emplace_back("hbm[...]");
  }
  if (accepts(isa::kAcceptL1)) {
    parts.emplace_back("l1[...]");
  }
  if (accepts(isa::kAcceptConst)) {
    parts.emplace_back("const[...]");
  }
  if (accepts(isa::kAcceptEvent)) {
    parts.emplace_back("an event (e0..e7)");
  }
  if (accepts(isa::kAcceptLabel)) {
    parts.emplace_back("a label");
  }
  if (accepts(isa::kAcceptString)) {
    parts.emplace_back("a string");
  }
  if (accepts(isa::kAcceptDiscard)) {
    parts.emplace_back("_");
  }
  return join(parts);
}

isa::Diagnostic&
OperandReader::refusal(TokenCursor& cursor, const Place& place, const std::string& found) {
  return diags_
      .error(cursor.range(cursor.peek()), fmt::format("{} cannot be {}", place.title(), found))
      .expect(describe_accepted(*place.spec, place.type));
}

std::optional<Operand>
OperandReader::refuse(TokenCursor& cursor, const Place& place, const std::string& found) {
  refusal(cursor, place, found);
  return std::nullopt;
}

std::optional<Operand> OperandReader::unknown_name(TokenCursor& cursor, const Place& place) {
  const Token& token = cursor.peek();
  std::vector<std::string_view> names = scope_.names();
  const std::vector<std::string_view> constants = constants_.names();
  names.insert(names.end(), constants.begin(), constants.end());
  const auto nearest = isa::nearest_name(token.text, names);
  std::string hint = nearest ? fmt::format("; did you mean '{}'?", *nearest) : "";
  // R1 for r1
  std::string folded(token.text);
  for (char& c : folded) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  }
  const bool is_register = parse_register(folded).has_value();
  if (is_register) {
    hint = fmt::format("; did you mean '{}'?", folded);
  }
  isa::Diagnostic& error =
      diags_.error(cursor.range(token),
                   fmt::format("unknown name '{}' as {}{}", token.text, place.title(), hint));
  error.expect(describe_accepted(*place.spec, place.type));
  if (is_register) {
    error.replace(error.range, folded);
  } else if (nearest) {
    error.replace(error.range, std::string(*nearest));
  }
  return std::nullopt;
}

// ---------------------------------------------------------------- operands

std::optional<Operand> OperandReader::read(TokenCursor& cursor, const Insn& insn, unsigned index) {
  Place place;
  place.insn = &insn;
  place.index = index;
  place.spec = &isa::spec_of(insn, index);
  place.type =
      place.spec->type == isa::TypeRule::kAny ? Type::kB32 : isa::operand_type(insn, index);
  const Token& token = cursor.peek();
  switch (token.kind) {
  case TokenKind::kWord:
    return read_word(cursor, place);
  case TokenKind::kSpecial:
    return read_special(cursor, place);
  case TokenKind::kString:
    return read_string(cursor, place);
  case TokenKind::kBad: {
    const LexFaultText text = describe_fault(token);
    diags_.error(cursor.range(token), text.message).advise(text.help);
    return std::nullopt;
  }
  case TokenKind::kEnd:
    diags_.error(cursor.range(token), fmt::format("{} is missing", place.title()))
        .expect(describe_accepted(*place.spec, place.type));
    return std::nullopt;
  default:
    break;
  }
  if (token.is(Punct::kNot) && cursor.peek_next().kind == TokenKind::kWord) {
    TokenCursor after = cursor;
    after.next();
    if (peek_register(after)) {
      return read_negated(cursor, place);
    }
  }
  if (token.is(Punct::kOpenBracket)) {
    return refuse(cursor, place, "an address without its memory");
  }
  if (starts_expression(token)) {
    return read_constant(cursor, place);
  }
  return refuse(cursor, place, quote(token));
}

std::optional<Operand> OperandReader::read_word(TokenCursor& cursor, const Place& place) {
  const Token& token = cursor.peek();
  if (place.accepts(isa::kAcceptLabel)) {
    return read_label(cursor, place);
  }
  if (const auto reg = parse_register(token.text)) {
    return read_register(cursor, *reg, place);
  }
  if (cursor.peek_next().is(Punct::kOpenBracket)) {
    for (const isa::Space space : {isa::Space::kHbm, isa::Space::kL1, isa::Space::kConst}) {
      if (isa::name(space) == token.text) {
        return read_memory(cursor, space, place);
      }
    }
    static constexpr std::string_view kSpaces[] = {"hbm", "l1", "const"};
    diags_
        .error(cursor.range(token),
               fmt::format(
                   "unknown memory '{}'{}", token.text, isa::did_you_mean(token.text, kSpaces)))
        .expect("hbm[...], l1[...] or const[...]");
    return std::nullopt;
  }
  if (token.text == "_") {
    if (!place.accepts(isa::kAcceptDiscard)) {
      return refuse(cursor, place, "left out with _");
    }
    cursor.next();
    return Operand{.kind = OperandKind::kDiscard};
  }
  if (const Scope::Entry* entry = scope_.find(token.text)) {
    switch (entry->kind) {
    case Scope::Kind::kAlias:
      return read_register(cursor, entry->reg, place);
    case Scope::Kind::kParam:
      return read_param(cursor, entry->index, place);
    case Scope::Kind::kSymbol:
      return read_symbol(cursor, entry->index, place);
    }
  }
  if (constants_.find(token.text) != nullptr || token.text == "inf" || token.text == "nan") {
    return read_constant(cursor, place);
  }
  return unknown_name(cursor, place);
}

std::optional<Operand>
OperandReader::read_register(TokenCursor& cursor, const RegisterName& reg, const Place& place) {
  const Token& token = cursor.peek();
  const SourceRange range = cursor.range(token);
  const RegisterFile& file = *reg.file;
  const bool is_any = place.spec->type == isa::TypeRule::kAny;
  bool fits_kind = false;
  switch (file.kind) {
  case OperandKind::kReg32:
    fits_kind = place.accepts(isa::kAcceptReg) && place.type != Type::kPred &&
                (is_any || !isa::is_wide(place.type));
    break;
  case OperandKind::kReg64:
    fits_kind = place.accepts(isa::kAcceptReg) && place.type != Type::kPred &&
                (is_any || isa::is_wide(place.type));
    break;
  case OperandKind::kPred:
    fits_kind = place.accepts(isa::kAcceptPred) && place.type == Type::kPred;
    break;
  case OperandKind::kTile:
    fits_kind = place.accepts(isa::kAcceptTile);
    break;
  default:
    fits_kind = place.accepts(isa::kAcceptEvent);
    break;
  }
  if (!fits_kind) {
    const bool is_width = (file.kind == OperandKind::kReg32 || file.kind == OperandKind::kReg64) &&
                          place.accepts(isa::kAcceptReg) && place.type != Type::kPred;
    isa::Diagnostic& error = diags_.error(
        range,
        is_width
            ? fmt::format("'{}' is {}, but {} has type {} ({} bit)",
                          token.text,
                          file.description,
                          place.title(),
                          isa::name(place.type),
                          isa::bits(place.type))
            : fmt::format("{} cannot be {} ('{}')", place.title(), file.description, token.text));
    error.expect(describe_accepted(*place.spec, place.type));
    return std::nullopt;
  }
  if (!reg.in_range()) {
    diags_.error(range, fmt::format("register '{}' does not exist", token.text))
        .expect(kind_of(reg));
    return std::nullopt;
  }
  const unsigned count = place.spec->vector ? isa::vector_count(*place.insn) : 1;
  if (reg.index + count > file.count) {
    diags_
        .error(range,
               fmt::format("the vector of {} registers from '{}' runs past {}{}",
                           count,
                           token.text,
                           file.letter,
                           file.count - 1))
        .expect(fmt::format("a register up to {}{}", file.letter, file.count - count));
    return std::nullopt;
  }
  cursor.next();
  return Operand{.kind = file.kind, .index = reg.index};
}

std::optional<Operand>
OperandReader::read_param(TokenCursor& cursor, uint32_t index, const Place& place) {
  const Token& token = cursor.peek();
  const Param& param = (*params_)[index];
  if (!place.accepts(isa::kAcceptParam) || place.type == Type::kPred) {
    const bool wants_memory = place.accepts(isa::kAcceptHbm) && param.is_pointer;
    isa::Diagnostic& error =
        diags_.error(cursor.range(token),
                     fmt::format("{} cannot be a parameter ('{}')", place.title(), token.text));
    error.expect(describe_accepted(*place.spec, place.type));
    if (wants_memory) {
      error.replace(error.range, fmt::format("hbm[{}]", token.text));
    } else if (place.accepts(isa::kAcceptReg) && isa::reads(place.spec->role)) {
      error.advise(fmt::format("MOV it into a register first"));
    }
    return std::nullopt;
  }
  if (place.spec->type != isa::TypeRule::kAny && !param_fits(param, place.type)) {
    isa::Diagnostic& error =
        diags_.error(cursor.range(token),
                     fmt::format("parameter '{}' has type {}, but {} has type {}",
                                 token.text,
                                 type_of(param),
                                 place.title(),
                                 isa::name(place.type)));
    error.expect(describe_accepted(*place.spec, place.type));
    if (param.is_pointer) {
      error.advise(fmt::format("hbm[{}] is the memory that it points at", token.text));
    }
    const Scope::Entry* entry = scope_.find(token.text);
    error.note(entry->range, "declared here");
    return std::nullopt;
  }
  cursor.next();
  return Operand{.kind = OperandKind::kParam, .index = index};
}

std::optional<Operand>
OperandReader::read_symbol(TokenCursor& cursor, uint32_t index, const Place& place) {
  const Token& token = cursor.peek();
  const isa::Symbol& symbol = program_.object.symbols[index];
  const bool as_tile = place.accepts(isa::kAcceptTile) && symbol.kind != isa::SymbolKind::kConst;
  const bool as_address = place.accepts(isa::kAcceptAddress) && !isa::is_float(place.type) &&
                          isa::bits(place.type) == 32;
  if (!as_tile && !as_address) {
    const char* space = symbol.kind == isa::SymbolKind::kConst ? "const" : "l1";
    isa::Diagnostic& error =
        diags_.error(cursor.range(token),
                     fmt::format("{} cannot be a symbol ('{}')", place.title(), token.text));
    error.expect(describe_accepted(*place.spec, place.type));
    if (place.accepts(symbol.kind == isa::SymbolKind::kConst ? isa::kAcceptConst
                                                             : isa::kAcceptL1)) {
      error.replace(error.range, fmt::format("{}[{}]", space, token.text));
    } else if (place.accepts(isa::kAcceptReg) && isa::reads(place.spec->role)) {
      error.advise(
          fmt::format("mov.u32 gives its offset, load what {}[{}] holds", space, token.text));
    }
    return std::nullopt;
  }
  cursor.next();
  return Operand{.kind = OperandKind::kSymbol, .index = index};
}

std::optional<Operand> OperandReader::read_special(TokenCursor& cursor, const Place& place) {
  const Token& token = cursor.peek();
  const std::string_view name = token.text.substr(1);
  const std::optional<isa::Special> special = isa::find_special(name);
  if (!special) {
    std::vector<std::string_view> names;
    names.reserve(isa::kSpecials.size());
    for (const isa::SpecialInfo& info : isa::kSpecials) {
      names.push_back(info.name);
    }
    const auto nearest = isa::nearest_name(name, names);
    isa::Diagnostic& error =
        diags_.error(cursor.range(token),
                     fmt::format("unknown special register '{}'{}",
                                 token.text,
                                 nearest ? fmt::format("; did you mean '%{}'?", *nearest) : ""));
    if (nearest) {
      error.replace(error.range, fmt::format("%{}", *nearest));
    } else {
      error.expect("one such as %lane, %tid.x, %ctaid.x or %gid.x");
    }
    return std::nullopt;
  }
  if (!place.accepts(isa::kAcceptSpecial) || place.type == Type::kPred) {
    isa::Diagnostic& error = refusal(cursor, place, "a special register");
    const bool is_long = isa::info(*special).bits == 64;
    if (isa::reads(place.spec->role)) {
      error.advise(fmt::format("special registers are read by MOV alone: mov.{} {}, {} first",
                               is_long ? "u64" : "u32",
                               is_long ? "d0" : "r0",
                               token.text));
    }
    return std::nullopt;
  }
  const unsigned bits = isa::info(*special).bits;
  if ((bits == 64) != isa::is_wide(place.type)) {
    diags_
        .error(cursor.range(token),
               fmt::format("'{}' has {} bits, but {} has type {}",
                           token.text,
                           bits,
                           place.title(),
                           isa::name(place.type)))
        .expect(fmt::format("mov.u{} with {} register", bits, bits == 64 ? "a d" : "an r"));
    return std::nullopt;
  }
  cursor.next();
  return Operand{.kind = OperandKind::kSpecial, .index = static_cast<uint32_t>(*special)};
}

std::optional<Operand> OperandReader::read_negated(TokenCursor& cursor, const Place& place) {
  const bool fits = place.accepts(isa::kAcceptPred) && place.type == Type::kPred &&
                    !isa::writes(place.spec->role);
  if (!fits) {
    return refuse(cursor, place, "negated with '!'");
  }
  cursor.next();
  const std::optional<RegisterName> reg = peek_register(cursor);
  std::optional<Operand> operand = read_register(cursor, *reg, place);
  if (operand) {
    operand->negated = true;
  }
  return operand;
}

std::optional<Operand> OperandReader::read_label(TokenCursor& cursor, const Place& place) {
  const Token& token = cursor.peek();
  if (parse_register(token.text)) {
    return refuse(cursor, place, fmt::format("a register ('{}')", token.text));
  }
  cursor.next();
  const TargetRef ref = {.pc = static_cast<uint32_t>(program_.object.code.size()),
                         .operand = place.index,
                         .name = token.text,
                         .range = cursor.range(token)};
  (place.insn->desc->has(isa::kCall) ? program_.calls : program_.branches).push_back(ref);
  return Operand{.kind = OperandKind::kLabel};
}

uint32_t OperandReader::intern_string(std::string text) {
  const auto next = static_cast<uint32_t>(program_.object.strings.size());
  const auto [entry, is_new] = strings_.emplace(text, next);
  if (is_new) {
    program_.object.strings.push_back(std::move(text));
  }
  return entry->second;
}

std::optional<Operand> OperandReader::read_string(TokenCursor& cursor, const Place& place) {
  if (!place.accepts(isa::kAcceptString)) {
    return refuse(cursor, place, "a string");
  }
  const Token& token = cursor.peek();
  const std::optional<std::string> text = decode_string(token, cursor, diags_);
  if (!text) {
    return std::nullopt;
  }
  cursor.next();
  return Operand{.kind = OperandKind::kString, .index = intern_string(*text)};
}

std::optional<Operand> OperandReader::read_constant(TokenCursor& cursor, const Place& place) {
  if (!place.accepts(isa::kAcceptImm)) {
    return refuse(cursor, place, "a constant");
  }
  const Token& first = cursor.peek();
  const std::optional<ConstValue> value = evaluate(cursor, constant_context());
  if (!value) {
    return std::nullopt;
  }
  const std::optional<uint64_t> bits =
      to_bits(*value, place.type, cursor.range_from(first), [&] { return place.title(); });
  return bits ? std::optional(Operand::immediate(*bits)) : std::nullopt;
}

} // namespace pto::as
