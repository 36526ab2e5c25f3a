// SPDX-License-Identifier: Apache-2.0
// What the commands of ptoprof share: exit statuses, messages, files. Private to ptoprof.
#pragma once

#include "isa/diag.h"
#include "isa/machine.h"
#include "isa/run_program.h"
#include "runtime/profile/tool_options.h"

#include <optional>
#include <span>
#include <string>

namespace pto::rt {

using isa::exit_status::kFailed;
using isa::exit_status::kGood;
using isa::exit_status::kUsage;

/// Each of these puts something on stderr, as JSON where the options say so, and returns `status`.
/// A command calls one of them at most, so that there is one object.
int complain(const ToolOptions& options, const std::string& message, int status);
int complain(const ToolOptions& options, std::span<const std::string> messages, int status);
int show_issues(const ToolOptions& options, const isa::ProfileIssues& issues, int status);
int show_diagnostics(const ToolOptions& options, const isa::Diagnostics& diags, int status);

/// To stdout for "-". False, with a message, if the file cannot be written.
[[nodiscard]] bool
write_text(const ToolOptions& options, const std::string& path, const std::string& text);
/// Nothing, with messages and what to end with in `status`, if there is no such machine profile:
/// kUsage for a name that means nothing, kFailed for what a file holds.
[[nodiscard]] std::optional<isa::MachineProfile>
machine_of(const ToolOptions& options, const std::string& name, int& status);
/// What the command would write over a file that it reads, or twice; empty if nothing.
[[nodiscard]] std::string find_overwritten(const ToolOptions& options);

/// Commands with a file of their own; the exit status.
[[nodiscard]] int run_command(const ToolOptions& options);
[[nodiscard]] int microbench_command(const ToolOptions& options);

} // namespace pto::rt
