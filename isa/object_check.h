// SPDX-License-Identifier: Apache-2.0
// What the reader of object files demands beyond valid insns, so that all later parts may rely on
// it.
#pragma once

#include "isa/object.h"

#include <string>

namespace pto::isa {

/// Most lanes of a block that .maxlanes may name.
inline constexpr uint32_t kMostLanes = 2048;

/// Empty if names are names and unique, symbols fit their space, code ranges follow one another,
/// every operand refers to something that exists, control stays inside its function and the rest is
/// as the assembler writes it (object_canonical.h); else what is wrong and where. Needs as many
/// locs as insns and valid insns.
[[nodiscard]] std::string check_object(const Object& object);

} // namespace pto::isa
