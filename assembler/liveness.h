// SPDX-License-Identifier: Apache-2.0
// Which registers code uses, how many live at once, and which may be read before they are written.
#pragma once

#include "isa/object.h"

#include <bitset>
#include <cstdint>
#include <vector>

namespace pto::as {

/// r registers at 0.., d registers at kFirstReg64.., predicates at kFirstPred.. of one bit set.
inline constexpr unsigned kFirstReg64 = isa::kReg32Count;
inline constexpr unsigned kFirstPred = kFirstReg64 + isa::kReg64Count;
using RegisterSet = std::bitset<kFirstPred + isa::kPredCount>;

/// What one insn reads and writes, addresses and guard included. A guarded write also keeps the
/// old value in other lanes, so it does not define the register for certain.
struct RegisterEffects {
  RegisterSet reads;
  RegisterSet writes;
  bool is_write_certain = true;
};
RegisterEffects register_effects(const isa::Insn& insn);

/// Distinct registers used by a function and every function that it can reach by CALL.
struct RegisterUse {
  uint32_t reg32_count = 0;
  uint32_t reg64_count = 0;
};
RegisterUse register_use(const isa::Object& object, const isa::Function& function);

/// Functions reachable by CALL from `function`, itself first, each once.
std::vector<const isa::Function*> reachable_functions(const isa::Object& object,
                                                      const isa::Function& function);

/// One register that an insn reads although some path from the entry does not write it.
struct MaybeUninitialised {
  uint32_t pc = 0;
  unsigned reg = 0; // position in RegisterSet
};
/// In a kernel, by pc. Functions get their registers from callers, so for them it is empty; a CALL
/// counts as a write of all that the callee may write.
std::vector<MaybeUninitialised> maybe_uninitialised(const isa::Object& object,
                                                    const isa::Function& function);

/// Largest number of 32-bit registers (d counts two) that hold live values at once.
uint32_t max_live_registers(const isa::Object& object, const isa::Function& function);

} // namespace pto::as
