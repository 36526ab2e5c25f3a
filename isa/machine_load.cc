// SPDX-License-Identifier: Apache-2.0
// Profiles by name, path or text: where the text comes from, what it inherits, what overrides it.
// What one text holds is machine_reader.cc's.
#include "isa/machine_load.h"

#include "isa/file_io.h"
#include "isa/machine_fields.h"
#include "isa/machine_json.h"
#include "isa/machine_reader.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace pto::isa {

namespace {

constexpr size_t kMaxInheritance = 16;

std::optional<MachineProfile> parse_chain(std::string_view text,
                                          std::string_view file,
                                          const ProfileResolver& resolve,
                                          std::vector<std::string>& chain,
                                          ProfileIssues& issues) {
  detail::FileComplaints complaints(file, issues);
  const std::optional<nlohmann::ordered_json> root = detail::parse_profile_json(text, complaints);
  if (!root) {
    return std::nullopt;
  }
  MachineProfile profile;
  std::string based_on;
  if (const auto parent = root->find("based_on"); parent != root->end()) {
    if (!parent->is_string() || parent->get_ref<const std::string&>().empty()) {
      complaints.add("based_on",
                     "expected the name of a profile, got " + detail::type_name(*parent));
      return std::nullopt;
    }
    based_on = parent->get<std::string>().substr(0, 4096);
    chain.push_back(based_on);
    if (std::find(chain.begin(), chain.end() - 1, based_on) != chain.end() - 1 ||
        chain.size() > kMaxInheritance) {
      std::string way;
      for (const std::string& name : chain) {
        way += (way.empty() ? "" : " -> ") + name;
      }
      complaints.add("based_on", "the profile inherits from itself: " + way);
      return std::nullopt;
    }
    const std::optional<std::string> parent_text = resolve ? resolve(based_on) : std::nullopt;
    if (!parent_text) {
      complaints.add(
          "based_on",
          fmt::format("no profile `{}` is known, neither shipped nor as a file", based_on),
          detail::nearest(based_on, shipped_machine_names()));
      return std::nullopt;
    }
    std::optional<MachineProfile> inherited =
        parse_chain(*parent_text, based_on, resolve, chain, issues);
    if (!inherited) {
      complaints.add("based_on", fmt::format("profile `{}` has errors of its own", based_on));
      return std::nullopt;
    }
    profile = std::move(*inherited);
    profile.based_on = based_on;
  }
  detail::read_profile(*root, profile, complaints);
  if (!complaints.any()) {
    const size_t before = issues.size();
    detail::check_consistency(profile, file, issues);
    if (issues.size() == before) {
      return profile;
    }
  }
  return std::nullopt;
}

std::optional<std::string> read_text(const std::string& path, std::string& error) {
  constexpr uint64_t kLimitBytes = uint64_t{64} << 20;
  const std::optional<std::vector<std::byte>> bytes = read_file(path, error, kLimitBytes);
  return bytes ? std::optional<std::string>(
                     std::in_place, reinterpret_cast<const char*>(bytes->data()), bytes->size())
               : std::nullopt;
}

bool is_path(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".json");
}

} // namespace

std::optional<MachineProfile> parse_machine(std::string_view json_text,
                                            std::string_view file,
                                            const ProfileResolver& resolve,
                                            ProfileIssues& issues) {
  std::vector<std::string> chain = {std::string(file)};
  return parse_chain(json_text, file, resolve, chain, issues);
}

std::optional<MachineProfile> load_machine(std::string_view name_or_path, ProfileIssues& issues) {
  const std::string name(name_or_path);
  if (const auto text = shipped_machine_text(name_or_path)) {
    const ProfileResolver shipped = [](std::string_view parent) -> std::optional<std::string> {
      const auto found = shipped_machine_text(parent);
      return found ? std::optional<std::string>(*found) : std::nullopt;
    };
    return parse_machine(*text, name_or_path, shipped, issues);
  }
  if (!is_path(name_or_path)) {
    std::string list;
    for (const std::string& known : shipped_machine_names()) {
      list += (list.empty() ? "" : ", ") + known;
    }
    issues.push_back({{},
                      {},
                      fmt::format("no machine profile `{}`: expected one of {}, or a .json file",
                                  name_or_path.substr(0, 100),
                                  list),
                      detail::nearest(name_or_path, shipped_machine_names()),
                      0,
                      0});
    return std::nullopt;
  }
  std::string error;
  const std::optional<std::string> text = read_text(name, error);
  if (!text) {
    std::error_code code;
    const bool is_missing = !std::filesystem::exists(name, code);
    issues.push_back({name,
                      {},
                      is_missing ? "cannot read this machine profile: no such file" : error,
                      {},
                      0,
                      0});
    return std::nullopt;
  }
  const std::filesystem::path file(name);
  const std::filesystem::path folder = file.parent_path();
  const ProfileResolver beside = [folder](std::string_view parent) -> std::optional<std::string> {
    if (const auto found = shipped_machine_text(parent)) {
      return std::string(*found);
    }
    std::string problem; // the reader of the chain says that it is missing
    return is_path(parent) ? read_text((folder / std::string(parent)).string(), problem)
                           : std::nullopt;
  };
  // As a profile of that folder would name this one, so that an inheritance from itself is seen at
  // once; other names are never of a file.
  const std::string own = file.filename().string();
  std::vector<std::string> chain = {is_path(own) ? own : name};
  return parse_chain(*text, name, beside, chain, issues);
}

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
