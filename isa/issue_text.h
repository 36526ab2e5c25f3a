// SPDX-License-Identifier: Apache-2.0
// Complaints about profiles: where in a file they are, and how they stand among other messages.
#pragma once

#include "isa/diag.h"
#include "isa/machine.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace pto::isa {

/// As ProfileIssue::to_string, without "error: ", which the other message says: "file:line:col:
/// key: what is wrong".
[[nodiscard]] std::string message_of(const ProfileIssue& issue);

/// Of a whole file that holds `text`, with line and column of a byte, which may be its end.
[[nodiscard]] ProfileIssue
issue_at_byte(std::string_view file, std::string_view text, size_t byte, std::string message);

/// Each as an error without a place in a source.
void report_issues(const ProfileIssues& issues, Diagnostics& diags);

} // namespace pto::isa
