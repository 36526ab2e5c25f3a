// SPDX-License-Identifier: Apache-2.0
// What an object states although code and declarations determine it: registers that functions use
// and where scratchpad symbols lie. The assembler fills it in, the reader of files holds it against
// the same rules.
#pragma once

#include "isa/object.h"
#include "isa/register_use.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace pto::isa {

/// Scratchpad offsets end here.
inline constexpr uint64_t kMostScratchpadBytes = uint64_t{1} << 31;
inline constexpr uint64_t kMostSymbolBytes = uint64_t{1} << 30;
inline constexpr uint32_t kMostAlignBytes = 4096;

/// Of a function and all that it reaches by calls.
struct FunctionReach {
  RegSet registers;
  bool uses_file_scratchpad = false; // names a scratchpad symbol of the file
};

[[nodiscard]] bool names_file_scratchpad(const Object& object, const Insn& insn);

/// One entry a function. References and calls of the object must be valid.
[[nodiscard]] std::vector<FunctionReach> find_reach(const Object& object);

/// Sets Function::reg32_count and reg64_count.
void count_registers(std::vector<Function>& functions, const std::vector<FunctionReach>& reach);

struct ScratchpadOverflow {
  size_t symbol = 0;
  uint64_t end_bytes = 0;
};
/// Sets offsets of scratchpad symbols, which must stand in canonical order (those of the file, then
/// function by function), and Function::l1_bytes. Symbols of the file come first, at the same
/// offsets in every kernel that can reach a use of one; a kernel's own follow, or start at 0 where
/// it reaches none. Gives the first symbol that ends behind kMostScratchpadBytes, where it stops.
[[nodiscard]] std::optional<ScratchpadOverflow>
place_scratchpad(std::vector<Symbol>& symbols,
                 std::vector<Function>& functions,
                 const std::vector<FunctionReach>& reach);

} // namespace pto::isa
