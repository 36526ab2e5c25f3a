// SPDX-License-Identifier: Apache-2.0
// Holds what an object states against what its declarations and code determine, so that an accepted
// file is the one that the assembler would have written.
#pragma once

#include "isa/object.h"

#include <string>

namespace pto::isa {

/// Empty if symbols lie where the order of their declarations puts them, functions state the
/// registers, scratchpad and reconvergence points of their code, and files and strings are listed
/// as insns first name them; else what is wrong and where. References, calls and branches must be
/// valid.
[[nodiscard]] std::string check_canonical(const Object& object);

} // namespace pto::isa
