// SPDX-License-Identifier: Apache-2.0
// Named warnings about a program that assembled: likely mistakes, each with a -Wno-NAME.
#pragma once

#include "assembler/layout.h"
#include "assembler/program.h"
#include "isa/machine.h"

#include <string_view>
#include <vector>

namespace pto::as {

namespace warnings {
#define PTO_WARNING(constant, name, summary) inline constexpr std::string_view constant = name;
#include "assembler/warnings.def"
#undef PTO_WARNING
} // namespace warnings

struct WarningInfo {
  std::string_view name;
  std::string_view summary;
};
[[nodiscard]] const std::vector<WarningInfo>& all_warnings();
[[nodiscard]] std::vector<std::string_view> warning_names();

/// `machine` may be null: what depends on it is not checked.
void run_lints(const Program& program,
               const Analysis& analysis,
               const isa::MachineProfile* machine,
               isa::Diagnostics& diags);

} // namespace pto::as
