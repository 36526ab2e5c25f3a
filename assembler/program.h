// SPDX-License-Identifier: Apache-2.0
// What parsing yields: the object under construction and the places that later passes report at.
#pragma once

#include "isa/diag.h"
#include "isa/object.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace pto::as {

/// A label or function named by an operand, to be resolved when all are known.
struct TargetRef {
  uint32_t pc = 0;
  uint32_t operand = 0;
  std::string_view name;
  isa::SourceRange range;
};

struct FunctionSource {
  isa::SourceRange name_range;
  isa::SourceRange end_range; // of .end
};

struct Program {
  isa::Object object;
  // One an insn: the statement from mnemonic to last operand.
  std::vector<isa::SourceRange> insn_ranges;
  std::vector<FunctionSource> function_sources; // one a function
  std::vector<isa::SourceRange> symbol_ranges;  // one a symbol
  std::vector<TargetRef> branches;              // of the open function
  std::vector<TargetRef> calls;
  isa::SourceRange machine_range; // of .machine, if any
};

} // namespace pto::as
