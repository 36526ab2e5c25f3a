// SPDX-License-Identifier: Apache-2.0
// Conversions of PRINT.
#include "isa/print_format.h"

#include <fmt/format.h>

#include <string_view>

namespace pto::isa {

namespace {

constexpr std::string_view kConversions = "duxfp";
constexpr std::string_view kExpected = "%d %u %x %f %p or %%";

} // namespace

bool is_wide_print_value(const Operand& value, const std::vector<Param>& params) {
  if (value.kind == OperandKind::kParam && value.index < params.size()) {
    return params[value.index].is_pointer || is_wide(params[value.index].type);
  }
  return value.kind == OperandKind::kReg64;
}

std::optional<PrintFormatFault>
check_print_format(const Insn& insn, const std::string& format, const std::vector<Param>& params) {
  unsigned count = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      continue;
    }
    const char conversion = i + 1 < format.size() ? format[i + 1] : '\0';
    ++i;
    if (conversion == '%') {
      continue;
    }
    if (conversion == '\0') {
      return PrintFormatFault{0, "the format ends with a lone %", std::string(kExpected)};
    }
    if (kConversions.find(conversion) == std::string_view::npos) {
      return PrintFormatFault{0,
                              fmt::format("unknown conversion '%{}' in the format", conversion),
                              std::string(kExpected)};
    }
    if (++count >= insn.operand_count) {
      continue;
    }
    const Operand& value = insn.operands[count];
    const bool is_param = value.kind == OperandKind::kParam;
    const bool has_width =
        is_param || value.kind == OperandKind::kReg32 || value.kind == OperandKind::kReg64;
    const bool is_wide_value = is_wide_print_value(value, params);
    const bool wants_32 = conversion == 'f' && is_wide_value;
    const bool wants_64 = conversion == 'p' && has_width && !is_wide_value;
    if (wants_32 || wants_64) {
      return PrintFormatFault{count,
                              fmt::format("'%{}' shows {}, but value {} is a {}-bit {}",
                                          conversion,
                                          wants_32 ? "an f32" : "a 64-bit address",
                                          count,
                                          wants_32 ? 64 : 32,
                                          is_param ? "parameter" : "register"),
                              wants_32 ? "an r register" : "a d register"};
    }
  }
  const unsigned values = insn.operand_count - 1U;
  if (count != values) {
    return PrintFormatFault{0,
                            fmt::format("the format shows {} value{}, but {} {} given",
                                        count,
                                        count == 1 ? "" : "s",
                                        values,
                                        values == 1 ? "is" : "are"),
                            "one value for each of %d %u %x %f %p"};
  }
  return std::nullopt;
}

} // namespace pto::isa
