// SPDX-License-Identifier: Apache-2.0
// Address operands: hbm[base + rI*scale + imm], parts in any order, and string literals.
#include "assembler/operand_place.h"
#include "isa/suggest.h"

#include <fmt/format.h>

#include <array>

namespace pto::as {

using isa::BaseKind;
using isa::MemRef;
using isa::Operand;
using isa::OperandKind;
using isa::SourceRange;
using isa::Space;

// An address while its terms are read. The first r register without a scale may turn out to be the
// base (l1, const) or the index (where there is another base), so it is kept apart until the end.
struct OperandReader::Address {
  Space space = Space::kHbm;
  std::optional<BaseKind> base;
  uint32_t base_index = 0;
  SourceRange base_range;
  struct Register {
    uint32_t index = 0;
    SourceRange range;
  };
  std::array<Register, 2> plain; // r registers without a scale
  unsigned plain_count = 0;
  std::optional<Register> scaled;
  unsigned scale_log2 = 0;
  WideInt offset = 0;
  SourceRange offset_range;
};

namespace {

std::string_view expected_base(Space space) {
  switch (space) {
  case Space::kHbm:
    return "a pointer parameter or a 64-bit register (d0..d62) as base";
  case Space::kL1:
    return "a tile, a .tile or .shared symbol, or a 32-bit register as base";
  case Space::kConst:
    break;
  }
  return "a .const symbol or a 32-bit register as base";
}

std::optional<unsigned> log2_of_scale(WideInt scale) {
  for (unsigned i = 0; i <= 4; ++i) {
    if (scale == WideInt{1} << i) {
      return i;
    }
  }
  return std::nullopt;
}

} // namespace

std::optional<Operand>
OperandReader::read_memory(TokenCursor& cursor, Space space, const Place& place) {
  const Token& first = cursor.peek();
  const isa::Accepts needed = space == Space::kHbm  ? isa::kAcceptHbm
                              : space == Space::kL1 ? isa::kAcceptL1
                                                    : isa::kAcceptConst;
  if (!place.accepts(needed)) {
    return refuse(cursor, place, fmt::format("in {}", isa::name(space)));
  }
  cursor.next();
  const Token& open = cursor.next();
  Address address;
  address.space = space;
  if (cursor.peek().is(Punct::kCloseBracket)) {
    diags_.error(cursor.range(open).to(cursor.range(cursor.peek())), "the address is empty")
        .expect(std::string(expected_base(space)));
    return std::nullopt;
  }
  const Token* sign = nullptr;
  bool is_negative = false;
  while (true) {
    if (!read_term(cursor, address, is_negative, sign)) {
      return std::nullopt;
    }
    const Token& separator = cursor.peek();
    if (separator.is(Punct::kCloseBracket)) {
      cursor.next();
      break;
    }
    if (!separator.is(Punct::kPlus) && !separator.is(Punct::kMinus)) {
      diags_.error(cursor.range(separator), fmt::format("']' expected before {}", quote(separator)))
          .expect("base + register*scale + constant, then ']'")
          .note(cursor.range(open), "to close this '['");
      return std::nullopt;
    }
    sign = &cursor.next();
    is_negative = sign->is(Punct::kMinus);
  }
  return finish_address(address, cursor.range_from(first));
}

bool OperandReader::read_term(TokenCursor& cursor,
                              Address& address,
                              bool is_negative,
                              const Token* sign) {
  const Token& first = cursor.peek();
  const auto refuse_negative = [&] {
    if (is_negative) {
      diags_.error(cursor.range(*sign), fmt::format("'{}' cannot be subtracted", first.text))
          .expect("a constant after '-'");
    }
    return is_negative;
  };
  if (const auto reg = peek_register(cursor)) {
    if (refuse_negative()) {
      return false;
    }
    const SourceRange range = cursor.range(cursor.next());
    unsigned scale_log2 = 0;
    const bool has_scale = cursor.peek().is(Punct::kStar);
    if (has_scale && !read_scale(cursor, scale_log2)) {
      return false;
    }
    return add_register(*reg, range, has_scale, scale_log2, address);
  }
  if (first.kind == TokenKind::kWord) {
    if (const Scope::Entry* entry = scope_.find(first.text)) {
      if (refuse_negative()) {
        return false;
      }
      cursor.next();
      return add_name(*entry, first, cursor.range(first), address);
    }
    if (constants_.find(first.text) == nullptr) {
      std::vector<std::string_view> names = scope_.names();
      const std::vector<std::string_view> constants = constants_.names();
      names.insert(names.end(), constants.begin(), constants.end());
      const auto nearest = isa::nearest_name(first.text, names);
      isa::Diagnostic& error =
          diags_.error(cursor.range(first),
                       fmt::format("unknown name '{}' in an address{}",
                                   first.text,
                                   nearest ? fmt::format("; did you mean '{}'?", *nearest) : ""));
      if (nearest) {
        error.replace(error.range, std::string(*nearest));
      } else {
        error.expect(std::string(expected_base(address.space)));
      }
      return false;
    }
  }
  // scale*register
  if (first.kind == TokenKind::kInteger && cursor.peek_next().is(Punct::kStar)) {
    TokenCursor after = cursor;
    after.next();
    after.next();
    if (const auto reg = peek_register(after)) {
      if (refuse_negative()) {
        return false;
      }
      const std::optional<unsigned> scale = log2_of_scale(static_cast<WideInt>(first.value));
      if (!scale) {
        diags_.error(cursor.range(first), fmt::format("index scale {}", first.text))
            .expect("1, 2, 4, 8 or 16");
        return false;
      }
      const SourceRange range = after.range(after.next());
      cursor = after;
      return add_register(*reg, range, true, *scale, address);
    }
  }
  const std::optional<ConstValue> value = evaluate(cursor, constant_context(), ExprLevel::kTerm);
  if (!value) {
    return false;
  }
  const SourceRange range = cursor.range_from(first);
  if (value->is_float) {
    diags_.error(range, "a float constant in an address").expect("an integer, in bytes");
    return false;
  }
  address.offset += is_negative ? -value->integer : value->integer;
  address.offset_range = range;
  // Keep the sum bounded whatever the number of terms; the range check comes at the end.
  if (address.offset > kGreatestInteger || address.offset < kLeastInteger) {
    diags_.error(range, "the constant part of the address does not fit 64 bits")
        .expect("-2147483648 to 2147483647");
    return false;
  }
  return true;
}

// At the '*' behind a register.
bool OperandReader::read_scale(TokenCursor& cursor, unsigned& scale_log2) {
  cursor.next();
  const Token& first = cursor.peek();
  const std::optional<ConstValue> value = evaluate(cursor, constant_context(), ExprLevel::kTerm);
  if (!value) {
    return false;
  }
  const std::optional<unsigned> log2 =
      value->is_float ? std::nullopt : log2_of_scale(value->integer);
  if (!log2) {
    diags_.error(cursor.range_from(first), fmt::format("index scale {}", to_string(*value)))
        .expect("1, 2, 4, 8 or 16")
        .advise("multiply the index by anything else with MUL or MAD");
    return false;
  }
  scale_log2 = *log2;
  return true;
}

bool OperandReader::add_register(const RegisterName& reg,
                                 SourceRange range,
                                 bool has_scale,
                                 unsigned scale_log2,
                                 Address& address) {
  const auto name = [&] { return fmt::format("{}{}", reg.file->letter, reg.index); };
  if (!reg.in_range()) {
    diags_.error(range, fmt::format("register '{}' does not exist", name()))
        .expect(fmt::format("{}0..{}{}", reg.file->letter, reg.file->letter, reg.file->count - 1));
    return false;
  }
  if (reg.file->kind == OperandKind::kReg32) {
    const unsigned count = address.plain_count + (address.scaled ? 1 : 0);
    if (count == 2 || (has_scale && address.scaled)) {
      diags_.error(range, fmt::format("one register too many in the address: '{}'", name()))
          .expect("base + register*scale + constant");
      return false;
    }
    if (has_scale) {
      address.scaled = Address::Register{reg.index, range};
      address.scale_log2 = scale_log2;
    } else {
      address.plain[address.plain_count++] = {reg.index, range};
    }
    return true;
  }
  const bool is_hbm_base = reg.file->kind == OperandKind::kReg64 && address.space == Space::kHbm;
  const bool is_l1_base = reg.file->kind == OperandKind::kTile && address.space == Space::kL1;
  if (!is_hbm_base && !is_l1_base) {
    diags_
        .error(range,
               fmt::format("{} ('{}') in an address of {}",
                           reg.file->description,
                           name(),
                           isa::name(address.space)))
        .expect(fmt::format("{}, and a 32-bit register (r0..r126) as index",
                            expected_base(address.space)));
    return false;
  }
  if (has_scale) {
    diags_.error(range, fmt::format("the base '{}' cannot be scaled", name()))
        .expect("base + register*scale + constant");
    return false;
  }
  if (address.base) {
    diags_.error(range, fmt::format("second base '{}' in the address", name()))
        .note(address.base_range, "the first one");
    return false;
  }
  address.base = is_hbm_base ? BaseKind::kReg : BaseKind::kTile;
  address.base_index = reg.index;
  address.base_range = range;
  return true;
}

bool OperandReader::add_name(const Scope::Entry& entry,
                             const Token& token,
                             SourceRange range,
                             Address& address) {
  if (address.base) {
    diags_.error(range, fmt::format("second base '{}' in the address", token.text))
        .note(address.base_range, "the first one");
    return false;
  }
  if (entry.kind == Scope::Kind::kParam) {
    const isa::Param& param = (*params_)[entry.index];
    if (address.space != Space::kHbm || !param.is_pointer) {
      isa::Diagnostic& error =
          diags_.error(range,
                       fmt::format("parameter '{}' ({}) as base of an address in {}",
                                   token.text,
                                   param.is_pointer ? "ptr" : isa::name(param.type),
                                   isa::name(address.space)));
      error.expect(std::string(expected_base(address.space))).note(entry.range, "declared here");
      return false;
    }
    address.base = BaseKind::kParam;
  } else {
    const bool is_const = program_.object.symbols[entry.index].kind == isa::SymbolKind::kConst;
    const Space space = is_const ? Space::kConst : Space::kL1;
    if (space != address.space) {
      diags_
          .error(range,
                 fmt::format("'{}' lies in {}, not in {}",
                             token.text,
                             isa::name(space),
                             isa::name(address.space)))
          .expect(std::string(expected_base(address.space)))
          .advise(fmt::format("write {}[...]", isa::name(space)))
          .note(entry.range, "declared here");
      return false;
    }
    address.base = BaseKind::kSymbol;
  }
  address.base_index = entry.index;
  address.base_range = range;
  return true;
}

std::optional<Operand> OperandReader::finish_address(Address& address, SourceRange range) {
  MemRef ref;
  ref.space = address.space;
  // A plain r register is the base where there is none yet and the space allows it.
  unsigned index_at = 0; // of the one that is no base
  if (!address.base && address.space != Space::kHbm && address.plain_count > 0) {
    address.base = BaseKind::kReg;
    address.base_index = address.plain[index_at++].index;
  }
  if (index_at < address.plain_count) {
    const Address::Register& last = address.plain[address.plain_count - 1];
    if (address.scaled || index_at + 1 < address.plain_count) {
      diags_
          .error(last.range,
                 fmt::format("one register too many in the address: "
                             "'r{}'",
                             last.index))
          .expect("base + register*scale + constant");
      return std::nullopt;
    }
    address.scaled = address.plain[index_at];
  }
  if (address.space == Space::kHbm && !address.base) {
    isa::Diagnostic& error = diags_.error(range, "the hbm address has no base");
    error.expect(std::string(expected_base(address.space)));
    if (address.scaled) {
      error.note(address.scaled->range, "a 32-bit register is an index only");
    }
    return std::nullopt;
  }
  if (address.offset < INT32_MIN || address.offset > INT32_MAX) {
    diags_
        .error(address.offset_range,
               fmt::format("the constant part of the address, {}, does not fit 32 bits",
                           to_string(ConstValue{.integer = address.offset})))
        .expect("-2147483648 to 2147483647");
    return std::nullopt;
  }
  ref.base = address.base.value_or(BaseKind::kAbsolute);
  ref.base_index = static_cast<uint16_t>(address.base_index);
  ref.offset = static_cast<int32_t>(address.offset);
  if (address.scaled) {
    ref.index_reg = static_cast<uint8_t>(address.scaled->index);
    ref.scale_log2 = static_cast<uint8_t>(address.scale_log2 & 7U);
  }
  return Operand::memory(ref);
}

// ---------------------------------------------------------------- strings

std::optional<std::string>
decode_string(const Token& token, const TokenCursor& cursor, isa::Diagnostics& diags) {
  const std::string_view body = token.text.substr(1, token.text.size() - 2);
  const auto hex = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  std::string out;
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\') {
      out += body[i];
      continue;
    }
    const char c = i + 1 < body.size() ? body[i + 1] : '\0';
    if (c == 'x' && i + 3 < body.size() && hex(body[i + 2]) >= 0 && hex(body[i + 3]) >= 0) {
      out += static_cast<char>(hex(body[i + 2]) * 16 + hex(body[i + 3]));
      i += 3;
      continue;
    }
    static constexpr std::array<std::array<char, 2>, 6> kEscapes = {
        {{'n', '\n'}, {'t', '\t'}, {'r', '\r'}, {'"', '"'}, {'\\', '\\'}, {'0', '\0'}}};
    bool is_known = false;
    for (const auto& escape : kEscapes) {
      if (escape[0] == c) {
        out += escape[1];
        is_known = true;
      }
    }
    if (!is_known) {
      diags
          .error({&cursor.file(), token.offset + 1 + static_cast<uint32_t>(i), 2},
                 "unknown escape in a string")
          .expect("\\n \\t \\r \\\" \\\\ \\0 or \\x and two hexadecimal digits");
      return std::nullopt;
    }
    ++i;
  }
  return out;
}

} // namespace pto::as
