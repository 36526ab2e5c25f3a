// SPDX-License-Identifier: Apache-2.0
// Access to the one table of insns.
#pragma once

#include "isa/insn_desc.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pto::isa {

/// Every row, ordered by opcode. The pointers are stable for the life of the program.
std::span<const InsnDesc* const> all_insns();

/// By mnemonic in any case; null if there is none.
const InsnDesc* find_insn(std::string_view mnemonic);

/// By opcode; null if unassigned.
const InsnDesc* find_opcode(unsigned opcode);

/// Mnemonics (lower case) in alphabetical order, for completion and suggestions.
const std::vector<std::string_view>& all_mnemonics();

} // namespace pto::isa
