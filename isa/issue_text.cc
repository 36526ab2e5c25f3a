// SPDX-License-Identifier: Apache-2.0
// Complaints about machine profiles as text.
#include "isa/issue_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pto::isa {

namespace {

std::string place_of(const ProfileIssue& issue) {
  if (issue.file.empty()) {
    return {};
  }
  return issue.line != 0 ? fmt::format("{}:{}:{}: ", issue.file, issue.line, issue.column)
                         : issue.file + ": ";
}

std::string text_of(const ProfileIssue& issue) {
  return fmt::format(
      "{}{}{}",
      issue.key_path.empty() ? "" : issue.key_path + ": ",
      issue.message,
      issue.suggestion.empty() ? "" : fmt::format(" (did you mean `{}`?)", issue.suggestion));
}

} // namespace

std::string ProfileIssue::to_string() const {
  return place_of(*this) + "error: " + text_of(*this);
}

std::string to_string(const ProfileIssues& issues) {
  std::string text;
  for (const ProfileIssue& issue : issues) {
    text += issue.to_string() + "\n";
  }
  return text;
}

std::string message_of(const ProfileIssue& issue) {
  return place_of(issue) + text_of(issue);
}

ProfileIssue
issue_at_byte(std::string_view file, std::string_view text, size_t byte, std::string message) {
  const std::string_view before = text.substr(0, byte);
  const size_t newline = before.rfind('\n');
  return {std::string(file),
          {},
          std::move(message),
          {},
          static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1,
          static_cast<int>(newline == std::string_view::npos ? byte + 1 : byte - newline)};
}

void report_issues(const ProfileIssues& issues, Diagnostics& diags) {
  for (const ProfileIssue& issue : issues) {
    diags.error({}, message_of(issue));
  }
}

} // namespace pto::isa
