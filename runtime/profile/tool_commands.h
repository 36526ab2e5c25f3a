// SPDX-License-Identifier: Apache-2.0
// What the commands of ptoprof share: exit statuses, messages, files. Private to ptoprof.
#pragma once

#include "isa/diag.h"
#include "isa/machine.h"
#include "runtime/profile/tool_options.h"

#include <optional>
#include <string>

namespace pto::rt {

inline constexpr int kGood = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

/// Each of these puts something on stderr and returns `status`.
int complain(const std::string& message, int status);
int show_issues(const isa::ProfileIssues& issues, int status);
int show_diagnostics(const isa::Diagnostics& diags, const ToolOptions& options, int status);

/// To stdout for "-". False, with a message, if the file cannot be written.
[[nodiscard]] bool write_text(const std::string& path, const std::string& text);
/// Nothing, with messages, if there is no such machine profile.
[[nodiscard]] std::optional<isa::MachineProfile> machine_of(const std::string& name);

/// Commands with a file of their own; the exit status.
[[nodiscard]] int run_command(const ToolOptions& options);
[[nodiscard]] int microbench_command(const ToolOptions& options);

} // namespace pto::rt
