// SPDX-License-Identifier: Apache-2.0
// Places in a program as a user writes them.
#pragma once

#include "simulator/program.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pto::dbg {

/// Insns that a location names:
///   loop            a label of the kernel or of a function that it calls
///   vector_add      a kernel or function: its first insn
///   7, x.pto:7      a line: its first insn, or that of the next line that has one
///   *12             an insn by its pc
/// A line of a macro may give several insns, one a place where it was expanded. `here` is the pc
/// that `+2`, `-1` (lines relative to it) and an empty text refer to. Nothing, with a sentence in
/// `error` that names the nearest label or line, where there is no such place.
[[nodiscard]] std::optional<std::vector<uint32_t>> find_location(const sim::Program& program,
                                                                 std::string_view text,
                                                                 std::optional<uint32_t> here,
                                                                 std::string& error);

/// The first line from `line` on that has an insn; 0: none.
[[nodiscard]] uint64_t line_with_insn(const sim::Program& program, uint32_t file, uint64_t line);

/// "x.pto:7 in loop" (label + insns after it); "pc 12" where the line is unknown.
[[nodiscard]] std::string describe_location(const sim::Program& program, uint32_t pc);

/// Every word that find_location understands: labels, kernels and functions. For completion.
[[nodiscard]] std::vector<std::string> location_names(const sim::Program& program);

} // namespace pto::dbg
