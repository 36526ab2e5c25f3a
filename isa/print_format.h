// SPDX-License-Identifier: Apache-2.0
// The format of PRINT against the values behind it: one rule for the assembler and the object
// reader.
#pragma once

#include "isa/object.h"

#include <optional>
#include <string>

namespace pto::isa {

struct PrintFormatFault {
  unsigned operand = 0; // 0: the format itself
  std::string message;  // what is wrong
  std::string expected;
};

/// What is wrong with an insn whose first operand is a format; nothing if it fits. `params` are
/// those of the kernel that the insn belongs to.
std::optional<PrintFormatFault>
check_print_format(const Insn& insn, const std::string& format, const std::vector<Param>& params);

/// True if a value of PRINT has 64 bits: a d register, a pointer or a 64-bit parameter.
bool is_wide_print_value(const Operand& value, const std::vector<Param>& params);

} // namespace pto::isa
