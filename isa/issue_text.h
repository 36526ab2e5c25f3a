// SPDX-License-Identifier: Apache-2.0
// Complaints about machine profiles among other messages.
#pragma once

#include "isa/diag.h"
#include "isa/machine.h"

#include <string>

namespace pto::isa {

/// As ProfileIssue::to_string, without "error: ", which the other message says: "file:line:col:
/// key: what is wrong".
[[nodiscard]] std::string message_of(const ProfileIssue& issue);

/// Each as an error without a place in a source.
void report_issues(const ProfileIssues& issues, Diagnostics& diags);

} // namespace pto::isa
