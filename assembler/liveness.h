// SPDX-License-Identifier: Apache-2.0
// Register use: what a function needs from its caller, and what a
// kernel uses in all (docs/isa.md, Register budget).
#pragma once

#include "isa/cfg.h"
#include "isa/object.h"
#include "isa/register_use.h"

#include <cstdint>
#include <vector>

namespace pto::as {

using isa::InsnRegisters;
using isa::register_name;
using isa::registers_of;
using isa::RegSet;

/// A read of a register that some path reaches without a write.
struct EarlyRead {
  unsigned reg = 0;
  uint32_t pc = 0;
};

struct FunctionUse {
  RegSet reads; // of the function alone
  RegSet writes;
  RegSet all_reads; // with every function that it reaches
  RegSet all_writes;
  RegSet needs; // read here or below before a write on some path from its entry
  std::vector<EarlyRead> early_reads; // the first of each register, by pc
  std::vector<uint32_t> callees;      // functions called directly
  bool uses_file_symbols = false;     // here or below
};

/// One entry a function. `cfgs` are those of the functions.
[[nodiscard]] std::vector<FunctionUse> find_register_use(const isa::Object& object,
                                                         const std::vector<isa::Cfg>& cfgs);

} // namespace pto::as
