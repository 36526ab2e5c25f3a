// SPDX-License-Identifier: Apache-2.0
// Values: what registers hold, conversions, text, and C's arithmetic: integers in 64 bits (signed
// unless an operand is u64), floats in double.
#include "debugger/expression_tree.h"
#include "isa/insn_desc.h"
#include "simulator/block.h"
#include "simulator/element.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pto::dbg {

// ---------------------------------------------------------------- values

Value Value::of_bytes(isa::Type type, std::span<const uint8_t> bytes) {
  Value value;
  value.type = type;
  for (size_t i = 0; i < bytes.size(); ++i) {
    value.bits |= uint64_t{bytes[i]} << (8 * i);
  }
  return value;
}

double Value::as_real() const {
  if (is_real) {
    return real;
  }
  const std::optional<sim::ElementType> element = sim::element_type(type);
  if (element && element->is_float()) {
    return sim::load_real(*element, reinterpret_cast<const std::byte*>(&bits));
  }
  return type == isa::Type::kU64 || type == isa::Type::kB64 ? static_cast<double>(bits)
                                                            : static_cast<double>(as_integer());
}

int64_t Value::as_integer() const {
  if (is_float()) {
    const double value = as_real();
    if (std::isnan(value)) {
      return 0;
    }
    constexpr double kLimit = 9223372036854775807.0;
    return value >= kLimit ? INT64_MAX : value <= -kLimit ? INT64_MIN : static_cast<int64_t>(value);
  }
  const unsigned width = isa::bits(type);
  if (width == 0 || width >= 64) {
    return static_cast<int64_t>(bits);
  }
  const uint64_t low = bits & ((uint64_t{1} << width) - 1);
  const unsigned shift = 64 - width;
  return isa::is_signed(type) ? static_cast<int64_t>(low << shift) >> shift
                              : static_cast<int64_t>(low);
}

bool Value::is_true() const {
  return is_float() ? as_real() != 0 : as_integer() != 0;
}

std::string to_string(const Value& value) {
  if (value.is_real) {
    return std::isnan(value.real) ? "nan" : fmt::format("{}", value.real);
  }
  if (value.type == isa::Type::kPred) {
    return value.is_true() ? "true" : "false";
  }
  const std::optional<sim::ElementType> element = sim::element_type(value.type);
  if (!element) {
    return fmt::format("{}", value.as_integer());
  }
  return sim::format_element(*element, reinterpret_cast<const std::byte*>(&value.bits));
}

namespace {

std::optional<uint64_t> float_bits(const Value& value,
                                   sim::ElementType element,
                                   std::string_view name,
                                   std::string& error) {
  uint64_t bits = 0;
  auto* const bytes = reinterpret_cast<std::byte*>(&bits);
  sim::store_real(element, value.as_real(), bytes);
  if (std::isfinite(value.as_real()) && !std::isfinite(sim::load_real(element, bytes))) {
    error = fmt::format("{} is more than {} can hold", to_string(value), name);
    return std::nullopt;
  }
  return bits;
}

} // namespace

std::optional<uint64_t> bits_for(const Value& value, isa::Type type, std::string& error) {
  const std::optional<sim::ElementType> element = sim::element_type(type);
  if (element && element->is_float()) {
    return float_bits(value, *element, isa::name(type), error);
  }
  const unsigned width = isa::bits(type);
  if (value.is_float() && width == 32 && element &&
      element->element_class == sim::ElementClass::kBits) {
    return float_bits(value, {sim::ElementClass::kFloat, 4}, "f32", error);
  }
  if (type == isa::Type::kPred && (value.as_real() != 0 && value.as_real() != 1)) {
    error = fmt::format("a predicate holds 0 or 1, not {}", to_string(value));
    return std::nullopt;
  }
  if (value.is_float()) {
    const double real = value.as_real();
    const double limit = std::ldexp(1.0, static_cast<int>(width));
    const bool is_whole = std::isfinite(real) && std::trunc(real) == real;
    if (!is_whole || real >= limit || real < -limit / 2) {
      error =
          fmt::format("{} is no {}, which holds whole numbers of {} bits; ({}) before it cuts it",
                      to_string(value),
                      isa::name(type),
                      width,
                      isa::name(type));
      return std::nullopt;
    }
    const uint64_t bits =
        real < 0 ? uint64_t{0} - static_cast<uint64_t>(-real) : static_cast<uint64_t>(real);
    return width < 64 ? bits & ((uint64_t{1} << width) - 1) : bits;
  }
  const int64_t number = value.as_integer();
  const bool is_unsigned64 = value.type == isa::Type::kU64 || value.type == isa::Type::kB64;
  if (width >= 64) {
    return static_cast<uint64_t>(number);
  }
  const int64_t low = width <= 1 ? 0 : -(int64_t{1} << (width - 1));
  const int64_t high = (int64_t{1} << std::max(1u, width)) - 1;
  if ((is_unsigned64 && number < 0) || number < low || number > high) {
    error = fmt::format("{} does not fit the {} bits of {}",
                        is_unsigned64 ? fmt::format("{}", static_cast<uint64_t>(number))
                                      : fmt::format("{}", number),
                        std::max(1u, width),
                        isa::name(type));
    return std::nullopt;
  }
  return static_cast<uint64_t>(number) & ((uint64_t{1} << std::max(1u, width)) - 1);
}

Value convert(const Value& value, isa::Type type) {
  Value result;
  result.type = type;
  const std::optional<sim::ElementType> element = sim::element_type(type);
  if (element && element->is_float()) {
    sim::store_real(*element, value.as_real(), reinterpret_cast<std::byte*>(&result.bits));
  } else if (type == isa::Type::kPred) {
    result.bits = value.is_true() ? 1 : 0;
  } else {
    result.bits = static_cast<uint64_t>(value.as_integer());
    if (isa::bits(type) < 64) {
      result.bits &= (uint64_t{1} << isa::bits(type)) - 1;
    }
  }
  return result;
}

// ---------------------------------------------------------------- registers

uint64_t register_bits(const sim::BlockRun& block, RegisterRef reg, uint32_t lane) {
  switch (reg.file) {
  case RegisterFile::kReg32:
    return block.reg32(reg.index, lane);
  case RegisterFile::kReg64:
    return block.reg64(reg.index, lane);
  case RegisterFile::kPred:
    return block.pred(reg.index, lane) ? 1 : 0;
  case RegisterFile::kTile:
    break;
  }
  return block.tiles()[reg.index].offset;
}

bool has_register(const sim::Program& program, RegisterRef reg, std::string& error) {
  const bool is_reg64 = reg.file == RegisterFile::kReg64;
  if (!is_reg64 && reg.file != RegisterFile::kReg32) {
    return true;
  }
  const uint32_t limit = is_reg64 ? program.reg64_limit() : program.reg32_limit();
  if (reg.index < limit) {
    return true;
  }
  const char letter = is_reg64 ? 'd' : 'r';
  error = fmt::format("kernel {} uses no register {}{}: {}",
                      program.kernel().name,
                      letter,
                      reg.index,
                      limit == 0 ? fmt::format("it has no {} registers", letter)
                                 : fmt::format("it has {0}0 to {0}{1}", letter, limit - 1));
  return false;
}

std::vector<RegisterRef> shown_registers(const sim::Program& program) {
  std::vector<RegisterRef> registers;
  const auto add = [&](RegisterFile file, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      registers.push_back({file, i});
    }
  };
  add(RegisterFile::kReg32, program.reg32_limit());
  add(RegisterFile::kReg64, program.reg64_limit());
  add(RegisterFile::kPred, isa::kPredCount);
  return registers;
}

isa::Type register_type(const sim::Program& program, RegisterRef reg, uint32_t pc) {
  if (reg.file == RegisterFile::kPred) {
    return isa::Type::kPred;
  }
  if (reg.file == RegisterFile::kTile) {
    return isa::Type::kU32;
  }
  const isa::OperandKind kind =
      reg.file == RegisterFile::kReg32 ? isa::OperandKind::kReg32 : isa::OperandKind::kReg64;
  const isa::Type unknown = reg.file == RegisterFile::kReg32 ? isa::Type::kB32 : isa::Type::kB64;
  const std::vector<isa::Insn>& code = program.object().code;
  const isa::Function* function = program.object().function_at(pc);
  const uint32_t begin = function != nullptr ? function->first_pc : 0;
  const uint32_t end =
      function != nullptr ? begin + function->insn_count : static_cast<uint32_t>(code.size());
  const auto written = [&](uint32_t at) -> std::optional<isa::Type> {
    const isa::Insn& insn = code[at];
    for (unsigned i = 0; i < insn.operand_count; ++i) {
      const isa::Operand& operand = insn.operand(i);
      const isa::OperandSpec& spec = isa::spec_of(insn, i);
      const unsigned count = spec.vector ? isa::vector_count(insn) : 1;
      if (operand.kind == kind && isa::writes(spec.role) && reg.index >= operand.index &&
          reg.index - operand.index < count) {
        return isa::operand_type(insn, i);
      }
    }
    return std::nullopt;
  };
  for (uint32_t at = std::min(pc, end); at > begin; --at) {
    if (const auto type = written(at - 1)) {
      return *type;
    }
  }
  for (uint32_t at = pc; at < end; ++at) {
    if (const auto type = written(at)) {
      return *type;
    }
  }
  // A function may use what its caller has written.
  for (uint32_t at = 0; at < code.size(); ++at) {
    if (const auto type = written(at)) {
      return *type;
    }
  }
  return unknown;
}

// ---------------------------------------------------------------- arithmetic

namespace {

bool real(Op op, double a, double b, Value& out, std::string& error) {
  switch (op) {
  case Op::kAdd:
    out = Value::of_real(a + b);
    return true;
  case Op::kSubtract:
    out = Value::of_real(a - b);
    return true;
  case Op::kMultiply:
    out = Value::of_real(a * b);
    return true;
  case Op::kDivide:
    out = Value::of_real(a / b);
    return true;
  case Op::kLess:
    out = Value::integer(a < b ? 1 : 0);
    return true;
  case Op::kLessEqual:
    out = Value::integer(a <= b ? 1 : 0);
    return true;
  case Op::kGreater:
    out = Value::integer(a > b ? 1 : 0);
    return true;
  case Op::kGreaterEqual:
    out = Value::integer(a >= b ? 1 : 0);
    return true;
  case Op::kEqual:
    out = Value::integer(a == b ? 1 : 0);
    return true;
  case Op::kNotEqual:
    out = Value::integer(a != b ? 1 : 0);
    return true;
  default:
    error = "this operator needs integers";
    return false;
  }
}

bool whole(Op op, const Value& left, const Value& right, Value& out, std::string& error) {
  const auto is_unsigned64 = [](const Value& value) {
    return value.type == isa::Type::kU64 || value.type == isa::Type::kB64;
  };
  const bool is_unsigned = is_unsigned64(left) || is_unsigned64(right);
  const int64_t a = left.as_integer();
  const int64_t b = right.as_integer();
  const auto ua = static_cast<uint64_t>(a);
  const auto ub = static_cast<uint64_t>(b);
  uint64_t bits = 0;
  switch (op) {
  case Op::kAdd:
    bits = ua + ub;
    break;
  case Op::kSubtract:
    bits = ua - ub;
    break;
  case Op::kMultiply:
    bits = ua * ub;
    break;
  case Op::kDivide:
  case Op::kRemainder:
    if (b == 0) {
      error = "division by zero";
      return false;
    }
    if (is_unsigned) {
      bits = op == Op::kDivide ? ua / ub : ua % ub;
    } else if (b == -1) { // INT64_MIN / -1 wraps
      bits = op == Op::kDivide ? uint64_t{0} - ua : 0;
    } else {
      bits = static_cast<uint64_t>(op == Op::kDivide ? a / b : a % b);
    }
    break;
  case Op::kShiftLeft:
    bits = ub > 63 ? 0 : ua << ub;
    break;
  case Op::kShiftRight:
    bits = ub > 63       ? (a < 0 && !is_unsigned ? ~uint64_t{0} : 0)
           : is_unsigned ? ua >> ub
                         : static_cast<uint64_t>(a >> b);
    break;
  case Op::kAnd:
    bits = ua & ub;
    break;
  case Op::kXor:
    bits = ua ^ ub;
    break;
  case Op::kOr:
    bits = ua | ub;
    break;
  default: {
    const bool is_less = is_unsigned ? ua < ub : a < b;
    const bool is_equal = ua == ub;
    const bool is_true = op == Op::kLess           ? is_less
                         : op == Op::kLessEqual    ? is_less || is_equal
                         : op == Op::kGreater      ? !is_less && !is_equal
                         : op == Op::kGreaterEqual ? !is_less
                         : op == Op::kEqual        ? is_equal
                                                   : !is_equal;
    out = Value::integer(is_true ? 1 : 0);
    return true;
  }
  }
  out = {is_unsigned ? isa::Type::kU64 : isa::Type::kS64, false, bits, 0};
  return true;
}

} // namespace

bool compute(Op op, const Value& left, const Value& right, Value& out, std::string& error) {
  return left.is_float() || right.is_float() ? real(op, left.as_real(), right.as_real(), out, error)
                                             : whole(op, left, right, out, error);
}

} // namespace pto::dbg
