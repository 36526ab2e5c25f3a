// SPDX-License-Identifier: Apache-2.0
// Profile files: JSON text to MachineProfile with inheritance. The way back is in
// machine_writer.cc.
//
// Reading is total: any bytes give a profile or issues. Every complaint of a file is collected, so
// that one run shows them all; a value that does not fit leaves the inherited one in place.
#include "isa/file_io.h"
#include "isa/machine.h"
#include "isa/machine_fields.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

namespace pto::isa {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxFileBytes = 4u << 20;
constexpr int kMaxDepth = 8;
constexpr size_t kMaxInheritance = 16;
constexpr size_t kMaxIssues = 20;

std::string type_name(const Json& value) {
  if (value.is_number()) {
    return "the number " + detail::number_text(value.get<double>());
  }
  if (value.is_string()) {
    return fmt::format("the text \"{}\"", value.get_ref<const std::string&>().substr(0, 40));
  }
  if (value.is_object()) {
    return "an object";
  }
  return value.is_array() ? "a list" : value.is_null() ? "null" : "a truth value";
}

class Reader {
public:
  Reader(std::string_view file, ProfileIssues& issues) : file_(file), issues_(issues) {}

  void complain(std::string_view path, std::string message, std::string suggestion = {}) {
    if (issues_.size() < kMaxIssues) {
      issues_.push_back(
          {std::string(file_), std::string(path), std::move(message), std::move(suggestion), 0, 0});
    }
    failed_ = true;
  }
  [[nodiscard]] bool failed() const { return failed_; }

  std::optional<Json> parse(std::string_view text);
  void read(const Json& root, MachineProfile& profile, std::set<std::string>& given);

private:
  void read_field(const Json& value,
                  const detail::MachineField& field,
                  MachineProfile& profile,
                  std::set<std::string>& given);
  void read_text(const Json& value, const std::string& path, const char* choices, std::string& out);
  void read_latencies(const Json& value, MachineProfile& profile, bool is_derived);
  void read_latency(const std::string& key, const Json& value, MachineProfile& profile);
  void read_fusion(const Json& value, MachineProfile& profile);
  void read_registers(const Json& value, MachineProfile& profile);
  void read_sources(const Json& value, MachineProfile& profile);
  void unknown_key(const std::string& path, const std::vector<std::string>& known);

  std::string_view file_;
  ProfileIssues& issues_;
  bool failed_ = false;
};

// Syntax, depth and duplicate keys. nlohmann keeps the last of two equal keys without a word, so
// the callback watches them.
std::optional<Json> Reader::parse(std::string_view text) {
  if (text.size() > kMaxFileBytes) {
    complain({},
             fmt::format("{} bytes are no machine profile (limit {})", text.size(), kMaxFileBytes));
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
    const std::string_view before = text.substr(0, byte);
    const size_t newline = before.rfind('\n');
    issues_.push_back(
        {std::string(file_),
         {},
         fmt::format(
             "no valid JSON at byte {}: expected a machine profile, an object with keys such "
             "as \"name\" and \"latency\"",
             byte),
         {},
         static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1,
         static_cast<int>(newline == std::string_view::npos ? byte + 1 : byte - newline)});
    failed_ = true;
    return std::nullopt;
  } catch (const Json::exception& error) {
    complain({}, fmt::format("no valid JSON: {}", error.what()));
    return std::nullopt;
  }
  if (is_too_deep) {
    complain({}, fmt::format("nested deeper than {} levels, which no profile is", kMaxDepth));
    return std::nullopt;
  }
  if (!duplicate.empty()) {
    complain(duplicate, "the key stands twice in one object: remove one of them");
    return std::nullopt;
  }
  if (!root.is_object()) {
    complain({}, "expected a machine profile (an object), got " + type_name(root));
    return std::nullopt;
  }
  return root;
}

void Reader::unknown_key(const std::string& path, const std::vector<std::string>& known) {
  complain(path, "unknown key", detail::nearest(path, known));
}

void Reader::read_text(const Json& value,
                       const std::string& path,
                       const char* choices,
                       std::string& out) {
  if (!value.is_string()) {
    complain(path, "expected a text, got " + type_name(value));
    return;
  }
  const std::string& text = value.get_ref<const std::string&>();
  if (choices != nullptr) {
    const std::string framed = fmt::format("|{}|", choices);
    if (text.find('|') != std::string::npos ||
        framed.find(fmt::format("|{}|", text)) == std::string::npos) {
      complain(path, fmt::format("expected one of {}, got {}", choices, type_name(value)));
      return;
    }
  }
  if (text.size() > 4096) {
    complain(path, fmt::format("expected at most 4096 characters, got {}", text.size()));
    return;
  }
  out = text;
}

void Reader::read_field(const Json& value,
                        const detail::MachineField& field,
                        MachineProfile& profile,
                        std::set<std::string>& given) {
  given.insert(field.path);
  const detail::FieldRef ref = field.ref(profile);
  if (auto* const* text = std::get_if<std::string*>(&ref)) {
    read_text(value, field.path, field.choices, **text);
    return;
  }
  if (!value.is_number()) {
    complain(field.path,
             fmt::format("expected a number of {}, got {}", field.unit, type_name(value)));
    return;
  }
  std::string why;
  if (!detail::store_number(ref, value.get<double>(), field.min, field.max, field.unit, why)) {
    complain(field.path, why);
  }
}

void Reader::read_latency(const std::string& key, const Json& value, MachineProfile& profile) {
  const std::string path = "latency." + key;
  if (!value.is_object()) {
    complain(path, "expected an object with latency, interval and source, got " + type_name(value));
    return;
  }
  LatencyEntry entry;
  if (const LatencyEntry* inherited = profile.latency.find_exact(key)) {
    entry = *inherited;
  } else {
    entry.key = key;
    for (const detail::LatencyField& field : detail::latency_fields()) {
      if (field.is_required && !value.contains(field.name)) {
        complain(path + "." + field.name, fmt::format("missing: {}", field.meaning));
      }
    }
  }
  std::vector<std::string> known;
  for (const detail::LatencyField& field : detail::latency_fields()) {
    known.push_back(path + "." + field.name);
  }
  for (const auto& item : value.items()) {
    const std::string item_path = path + "." + item.key();
    const auto field = std::find_if(detail::latency_fields().begin(),
                                    detail::latency_fields().end(),
                                    [&](const auto& f) { return item.key() == f.name; });
    if (field == detail::latency_fields().end()) {
      unknown_key(item_path, known);
      continue;
    }
    const detail::FieldRef ref = field->ref(entry);
    if (auto* const* text = std::get_if<std::string*>(&ref)) {
      read_text(item.value(), item_path, nullptr, **text);
      continue;
    }
    if (!item.value().is_number()) {
      complain(
          item_path,
          fmt::format("expected a number of {}, got {}", field->unit, type_name(item.value())));
      continue;
    }
    std::string why;
    const double number = item.value().get<double>();
    if (!detail::store_number(ref, number, field->min, field->max, field->unit, why)) {
      complain(item_path, why);
    }
  }
  if (entry.source.empty()) {
    complain(path + ".source", "missing: every latency says where it comes from");
  }
  profile.latency.put(std::move(entry));
}

void Reader::read_latencies(const Json& value, MachineProfile& profile, bool is_derived) {
  if (!value.is_object()) {
    complain("latency", "expected an object of latency keys, got " + type_name(value));
    return;
  }
  std::vector<std::string> known;
  for (const LatencyEntry& entry : profile.latency.entries()) {
    known.push_back("latency." + entry.key);
  }
  for (const auto& item : value.items()) {
    const std::string path = "latency." + item.key();
    if (!detail::is_latency_key(item.key())) {
      complain(path.substr(0, 100),
               "expected a key such as LOAD or FMA.f16: base in upper case, types in lower case",
               detail::nearest(path, known));
      continue;
    }
    const std::string base = item.key().substr(0, item.key().find('.'));
    if (is_derived && profile.latency.find_exact(base) == nullptr) {
      complain(path,
               fmt::format("unknown key: profile `{}` knows no `{}`", profile.based_on, base),
               detail::nearest(path, known));
      continue;
    }
    read_latency(item.key(), item.value(), profile);
  }
}

void Reader::read_fusion(const Json& value, MachineProfile& profile) {
  if (!value.is_array()) {
    complain("fusion", "expected a list of rules, got " + type_name(value));
    return;
  }
  profile.fusion.clear();
  size_t index = 0;
  for (const Json& item : value) {
    const std::string path = fmt::format("fusion[{}]", index++);
    if (!item.is_object()) {
      complain(path, "expected a rule (an object), got " + type_name(item));
      continue;
    }
    FusionRule rule;
    const std::vector<std::string> known = {path + ".name",
                                            path + ".pattern",
                                            path + ".connect",
                                            path + ".latency",
                                            path + ".keeps_first",
                                            path + ".source"};
    for (const auto& entry : item.items()) {
      const std::string entry_path = path + "." + entry.key();
      const Json& v = entry.value();
      if (entry.key() == "name") {
        read_text(v, entry_path, nullptr, rule.name);
      } else if (entry.key() == "source") {
        read_text(v, entry_path, nullptr, rule.source);
      } else if (entry.key() == "connect") {
        read_text(v, entry_path, nullptr, rule.connect);
        const size_t arrow = rule.connect.find("->");
        const bool is_pair =
            arrow != std::string::npos && arrow > 0 && arrow + 2 < rule.connect.size();
        if (rule.connect != "any" && rule.connect != "none" && !is_pair) {
          complain(entry_path, "expected any, none or operand names such as \"d->a\"");
        }
      } else if (entry.key() == "keeps_first") {
        if (v.is_boolean()) {
          rule.keeps_first = v.get<bool>();
        } else {
          complain(entry_path, "expected true or false, got " + type_name(v));
        }
      } else if (entry.key() == "latency") {
        std::string why = "expected a number of cycles, got " + type_name(v);
        if (!v.is_number() ||
            !detail::store_number(&rule.latency_cycles, v.get<double>(), 1, 1e7, "cycles", why)) {
          complain(entry_path, why);
        }
      } else if (entry.key() == "pattern") {
        if (v.is_array() && v.size() == 2 && v[0].is_string() && v[1].is_string() &&
            detail::is_latency_key(v[0].get_ref<const std::string&>()) &&
            detail::is_latency_key(v[1].get_ref<const std::string&>())) {
          rule.first = v[0].get<std::string>();
          rule.second = v[1].get<std::string>();
        } else {
          complain(entry_path, "expected two latency keys such as [\"LOAD\", \"MMA\"]");
        }
      } else {
        unknown_key(entry_path, known);
      }
    }
    for (const char* key : {"name", "pattern", "latency", "source"}) {
      if (!item.contains(key)) {
        complain(path + "." + key, "missing");
      }
    }
    profile.fusion.push_back(std::move(rule));
  }
}

void Reader::read_registers(const Json& value, MachineProfile& profile) {
  if (!value.is_object()) {
    complain("register_budget",
             "expected an object of lanes -> registers such as {\"256\": 127}, got " +
                 type_name(value));
    return;
  }
  profile.register_budget.clear();
  for (const auto& item : value.items()) {
    const std::string path = "register_budget." + item.key().substr(0, 20);
    const std::string& key = item.key();
    const bool is_number =
        !key.empty() && key.size() <= 6 && key[0] != '0' &&
        std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
    uint32_t registers = 0;
    std::string why = "expected a number of registers, got " + type_name(item.value());
    if (!is_number) {
      complain(path, "expected a number of lanes as key, such as \"256\"");
    } else if (!item.value().is_number() ||
               !detail::store_number(
                   &registers, item.value().get<double>(), 1, 255, "registers", why)) {
      complain(path, why);
    } else {
      profile.register_budget[static_cast<uint32_t>(std::stoul(key))] = registers;
    }
  }
}

void Reader::read_sources(const Json& value, MachineProfile& profile) {
  if (!value.is_object()) {
    complain("sources", "expected an object of key paths -> texts, got " + type_name(value));
    return;
  }
  std::vector<std::string> known;
  for (const detail::MachineField& field : detail::machine_fields()) {
    known.emplace_back(field.path);
    const std::string path = field.path;
    if (const size_t dot = path.find('.'); dot != std::string::npos) {
      known.push_back(path.substr(0, dot));
    }
  }
  known.emplace_back("register_budget");
  for (const auto& item : value.items()) {
    if (std::find(known.begin(), known.end(), item.key()) == known.end()) {
      complain("sources." + item.key().substr(0, 80),
               "unknown key path",
               detail::nearest(item.key(), known));
      continue;
    }
    read_text(item.value(), "sources." + item.key(), nullptr, profile.sources[item.key()]);
  }
}

void Reader::read(const Json& root, MachineProfile& profile, std::set<std::string>& given) {
  const bool is_derived = !profile.based_on.empty();
  std::vector<std::string> known = {
      "$schema", "based_on", "register_budget", "latency", "fusion", "sources"};
  std::set<std::string> groups;
  for (const detail::MachineField& field : detail::machine_fields()) {
    const std::string path = field.path;
    known.push_back(path);
    if (const size_t dot = path.find('.'); dot != std::string::npos) {
      groups.insert(path.substr(0, dot));
    }
  }
  known.insert(known.end(), groups.begin(), groups.end());
  const auto find_field = [](const std::string& path) -> const detail::MachineField* {
    for (const detail::MachineField& field : detail::machine_fields()) {
      if (path == field.path) {
        return &field;
      }
    }
    return nullptr;
  };
  for (const auto& item : root.items()) {
    const std::string& key = item.key();
    if (key == "based_on" || key == "$schema") {
      std::string ignored;
      read_text(item.value(), key, nullptr, ignored);
    } else if (key == "register_budget") {
      read_registers(item.value(), profile);
      given.insert(key);
    } else if (key == "latency") {
      read_latencies(item.value(), profile, is_derived);
      given.insert(key);
    } else if (key == "fusion") {
      read_fusion(item.value(), profile);
    } else if (key == "sources") {
      read_sources(item.value(), profile);
    } else if (groups.count(key) != 0) {
      if (!item.value().is_object()) {
        complain(key, "expected an object, got " + type_name(item.value()));
        continue;
      }
      for (const auto& member : item.value().items()) {
        const std::string path = key + "." + member.key();
        if (const detail::MachineField* field = find_field(path)) {
          read_field(member.value(), *field, profile, given);
        } else {
          unknown_key(path.substr(0, 100), known);
        }
      }
    } else if (const detail::MachineField* field = find_field(key);
               field != nullptr && key.find('.') == std::string::npos) {
      read_field(item.value(), *field, profile, given);
    } else {
      unknown_key(key.substr(0, 100), known);
    }
  }
  for (const detail::MachineField& field : detail::machine_fields()) {
    const std::string_view path = field.path;
    const bool is_own = path == "name" || path == "source" || path == "description";
    if ((is_own || !is_derived) && given.count(field.path) == 0) {
      complain(field.path,
               fmt::format("missing: {}{}{}{}",
                           field.meaning,
                           *field.unit != '\0' ? " (" : "",
                           field.unit,
                           *field.unit != '\0' ? ")" : ""));
    }
  }
  for (const char* key : {"register_budget", "latency"}) {
    if (!is_derived && given.count(key) == 0) {
      complain(key, "missing");
    }
  }
}

std::optional<MachineProfile> parse_chain(std::string_view text,
                                          std::string_view file,
                                          const ProfileResolver& resolve,
                                          std::vector<std::string>& chain,
                                          ProfileIssues& issues) {
  Reader reader(file, issues);
  const std::optional<Json> root = reader.parse(text);
  if (!root) {
    return std::nullopt;
  }
  MachineProfile profile;
  std::string based_on;
  if (const auto parent = root->find("based_on"); parent != root->end()) {
    if (!parent->is_string() || parent->get_ref<const std::string&>().empty()) {
      reader.complain("based_on", "expected the name of a profile, got " + type_name(*parent));
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
      reader.complain("based_on", "the profile inherits from itself: " + way);
      return std::nullopt;
    }
    const std::optional<std::string> parent_text = resolve ? resolve(based_on) : std::nullopt;
    if (!parent_text) {
      reader.complain(
          "based_on",
          fmt::format("no profile `{}` is known, neither shipped nor as a file", based_on),
          detail::nearest(based_on, shipped_machine_names()));
      return std::nullopt;
    }
    std::optional<MachineProfile> inherited =
        parse_chain(*parent_text, based_on, resolve, chain, issues);
    if (!inherited) {
      reader.complain("based_on", fmt::format("profile `{}` has errors of its own", based_on));
      return std::nullopt;
    }
    profile = std::move(*inherited);
    profile.based_on = based_on;
  }
  std::set<std::string> given;
  reader.read(*root, profile, given);
  if (!reader.failed()) {
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

} // namespace pto::isa
