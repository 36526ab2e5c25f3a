// SPDX-License-Identifier: Apache-2.0
// Object -> text in its several forms: assembly, listing, control-flow graph, JSON.
#pragma once

#include "assembler/program.h"
#include "isa/object.h"

#include <span>
#include <string>

namespace pto::as {

struct DisassembleOptions {
  bool with_loc = true; // .loc lines, without which the line table is lost
};

/// Text that assembles to the same bytes as the object (if it came from this assembler).
[[nodiscard]] std::string disassemble(const isa::Object& object,
                                      const DisassembleOptions& options = {});

/// Address, encoding and source line of every insn under a head with register and scratchpad use.
/// `ranges` are the places of the insns in the source; empty: the insns are printed instead.
[[nodiscard]] std::string list_program(const isa::Object& object,
                                       std::span<const isa::SourceRange> ranges);

/// Graphviz: one cluster a function, one node a basic block; dashed edges lead to where the lanes
/// of a predicated branch rejoin.
[[nodiscard]] std::string print_cfg(const isa::Object& object);

/// Everything in the object as JSON, indented, without a line end.
[[nodiscard]] std::string object_to_json(const isa::Object& object);

} // namespace pto::as
