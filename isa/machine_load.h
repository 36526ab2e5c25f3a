// SPDX-License-Identifier: Apache-2.0
// Machine profiles as programs are told of them: a name, and figures that replace its own.
#pragma once

#include "isa/machine.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pto::isa {

/// load_machine, then apply_override of each "path=value". What goes wrong is an issue each; a
/// profile is given whenever there is one of that name, its overrides applied as far as they can
/// be.
[[nodiscard]] std::optional<MachineProfile> load_machine(std::string_view name_or_path,
                                                         std::span<const std::string> overrides,
                                                         ProfileIssues& issues);

/// One of them is of the command line, as a name or a figure that does not exist, and not of what a
/// file holds: programs end with 2 then, otherwise with 1.
[[nodiscard]] bool is_wrong_usage(const ProfileIssues& issues);

} // namespace pto::isa
