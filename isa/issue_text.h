// SPDX-License-Identifier: Apache-2.0
// A complaint about a machine profile inside of another message.
#pragma once

#include "isa/machine.h"

namespace pto::isa {

/// As ProfileIssue::to_string, without "error: ", which the other message says: "file:line:col:
/// key: what is wrong".
[[nodiscard]] std::string message_of(const ProfileIssue& issue);

} // namespace pto::isa
