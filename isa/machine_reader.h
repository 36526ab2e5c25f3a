// SPDX-License-Identifier: Apache-2.0
// The tree of a profile file into a MachineProfile. Private to isa/machine*.
#pragma once

#include "isa/machine.h"
#include "isa/machine_json.h"

#include <nlohmann/json.hpp>

namespace pto::isa::detail {

/// Puts what the file gives into the profile: of defaults, or of the one that it inherits from,
/// whose name is then in `based_on`. Every complaint is collected; a value that does not fit leaves
/// the one before in place.
void read_profile(const nlohmann::ordered_json& root,
                  MachineProfile& profile,
                  FileComplaints& complaints);

} // namespace pto::isa::detail
