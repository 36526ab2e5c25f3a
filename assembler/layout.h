// SPDX-License-Identifier: Apache-2.0
// The last steps to an object: canonical order, places of symbols, control flow and register use.
//
// Canonical order is the one that the disassembler prints, so that text -> object -> text -> object
// gives the same bytes: symbols of the file before those of each kernel, constants packed in that
// order, file names in the order of their first insn.
#pragma once

#include "assembler/liveness.h"
#include "assembler/program.h"
#include "isa/cfg.h"

#include <vector>

namespace pto::as {

struct Analysis {
  std::vector<isa::Cfg> cfgs;    // one a function
  std::vector<FunctionUse> uses; // one a function
};

/// Completes `program` (whose branches and calls are resolved). Reports control that runs off the
/// end and functions without insns; false after an error.
[[nodiscard]] bool finish_program(Program& program, Analysis& analysis, isa::Diagnostics& diags);

/// Analysis of an object that was read from a file.
[[nodiscard]] Analysis analyze(const isa::Object& object);

} // namespace pto::as
