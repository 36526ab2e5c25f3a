// SPDX-License-Identifier: Apache-2.0
// The text of a profile file as a tree of JSON values, and complaints about the file.
#include "isa/machine_json.h"

#include "isa/issue_text.h"
#include "isa/machine_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace pto::isa::detail {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxFileBytes = 4u << 20;
constexpr int kMaxDepth = 8;
constexpr size_t kMaxIssues = 20;

} // namespace

void FileComplaints::add(std::string_view path, std::string message, std::string suggestion) {
  if (issues_.size() < kMaxIssues) {
    issues_.push_back(
        {std::string(file_), std::string(path), std::move(message), std::move(suggestion), 0, 0});
  }
  any_ = true;
}

void FileComplaints::add_at(std::string_view text, size_t byte, std::string message) {
  issues_.push_back(issue_at_byte(file_, text, byte, std::move(message)));
  any_ = true;
}

std::string type_name(const Json& value) {
  if (value.is_number()) {
    return "the number " + number_text(value.get<double>());
  }
  if (value.is_string()) {
    return fmt::format("the text \"{}\"", value.get_ref<const std::string&>().substr(0, 40));
  }
  if (value.is_object()) {
    return "an object";
  }
  return value.is_array() ? "a list" : value.is_null() ? "null" : "a truth value";
}

// Syntax, depth and duplicate keys. nlohmann keeps the last of two equal keys without a word, so
// the callback watches them.
std::optional<Json> parse_profile_json(std::string_view text, FileComplaints& complaints) {
  if (text.size() > kMaxFileBytes) {
    complaints.add(
        {}, fmt::format("{} bytes are no machine profile (limit {})", text.size(), kMaxFileBytes));
    return std::nullopt;
  }
  std::vector<std::set<std::string>> keys_seen;
  std::string duplicate;
  bool is_too_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kMaxDepth) {
      is_too_deep = true;
      return false;
    }
    if (event == Json::parse_event_t::object_start) {
      keys_seen.emplace_back();
    } else if (event == Json::parse_event_t::object_end && !keys_seen.empty()) {
      keys_seen.pop_back();
    } else if (event == Json::parse_event_t::key && !keys_seen.empty()) {
      const std::string& key = value.get_ref<const std::string&>();
      if (!keys_seen.back().insert(key).second && duplicate.empty()) {
        duplicate = key.substr(0, 60);
      }
    }
    return true;
  };
  Json root;
  try {
    root = Json::parse(text.begin(), text.end(), watch, true, true);
  } catch (const Json::parse_error& error) {
    const size_t byte = std::min<size_t>(error.byte == 0 ? 0 : error.byte - 1, text.size());
    complaints.add_at(
        text,
        byte,
        fmt::format(
            "no valid JSON at byte {}: expected a machine profile, an object with keys such "
            "as \"name\" and \"latency\"",
            byte));
    return std::nullopt;
  } catch (const Json::exception& error) {
    complaints.add({}, fmt::format("no valid JSON: {}", error.what()));
    return std::nullopt;
  }
  if (is_too_deep) {
    complaints.add({}, fmt::format("nested deeper than {} levels, which no profile is", kMaxDepth));
    return std::nullopt;
  }
  if (!duplicate.empty()) {
    complaints.add(duplicate, "the key stands twice in one object: remove one of them");
    return std::nullopt;
  }
  if (!root.is_object()) {
    complaints.add({}, "expected a machine profile (an object), got " + type_name(root));
    return std::nullopt;
  }
  return root;
}

} // namespace pto::isa::detail
