// SPDX-License-Identifier: Apache-2.0
#include "isa/machine_load.h"

#include <algorithm>

namespace pto::isa {

std::optional<MachineProfile> load_machine(std::string_view name_or_path,
                                           std::span<const std::string> overrides,
                                           ProfileIssues& issues) {
  std::optional<MachineProfile> profile = load_machine(name_or_path, issues);
  for (const std::string& assignment : overrides) {
    if (profile) {
      static_cast<void>(apply_override(*profile, assignment, issues)); // it is among the issues
    }
  }
  return profile;
}

bool is_wrong_usage(const ProfileIssues& issues) {
  return std::any_of(
      issues.begin(), issues.end(), [](const ProfileIssue& issue) { return issue.file.empty(); });
}

} // namespace pto::isa
