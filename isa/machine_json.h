// SPDX-License-Identifier: Apache-2.0
// What the readers of profile files share: complaints about one file, and its text as a tree of
// JSON values. Private to isa/machine*.
#pragma once

#include "isa/machine.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace pto::isa::detail {

/// What is wrong in one file of a chain of profiles, as issues that the whole chain shares.
class FileComplaints {
public:
  /// Both must outlive this.
  FileComplaints(std::string_view file, ProfileIssues& issues) : file_(file), issues_(issues) {}

  /// Of the value at a path of keys; dropped when there are too many issues to read.
  void add(std::string_view path, std::string message, std::string suggestion = {});
  /// Of the whole file, at a byte of its text.
  void add_at(std::string_view text, size_t byte, std::string message);
  /// There was one, dropped or not.
  [[nodiscard]] bool any() const { return any_; }

private:
  std::string_view file_;
  ProfileIssues& issues_;
  bool any_ = false;
};

/// A value as messages quote it: "the number 5", "a list".
[[nodiscard]] std::string type_name(const nlohmann::ordered_json& value);

/// The object that a profile's text holds; any bytes are valid input. Nothing, with a complaint,
/// when it is no JSON, too large, too deep, or gives a key twice.
[[nodiscard]] std::optional<nlohmann::ordered_json> parse_profile_json(std::string_view text,
                                                                       FileComplaints& complaints);

} // namespace pto::isa::detail
