// SPDX-License-Identifier: Apache-2.0
// What a profile file gives, by the table of fields. The way back is in machine_writer.cc.
//
// Reading is total: any tree gives a profile or issues. Every complaint of a file is collected, so
// that one run shows them all; a value that does not fit leaves the inherited one in place.
#include "isa/machine_reader.h"

#include "isa/machine_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace pto::isa::detail {

namespace {

using Json = nlohmann::ordered_json;

class Reader {
public:
  explicit Reader(FileComplaints& complaints) : complaints_(complaints) {}

  void read(const Json& root, MachineProfile& profile);

private:
  void complain(std::string_view path, std::string message, std::string suggestion = {}) {
    complaints_.add(path, std::move(message), std::move(suggestion));
  }
  void read_field(const Json& value, const MachineField& field, MachineProfile& profile);
  void read_text(const Json& value, const std::string& path, const char* choices, std::string& out);
  void read_latencies(const Json& value, MachineProfile& profile, bool is_derived);
  void read_latency(const std::string& key, const Json& value, MachineProfile& profile);
  void read_fusion(const Json& value, MachineProfile& profile);
  void read_registers(const Json& value, MachineProfile& profile);
  void read_sources(const Json& value, MachineProfile& profile);
  void unknown_key(const std::string& path, const std::vector<std::string>& known);

  FileComplaints& complaints_;
  std::set<std::string> given_; // paths of fields, and groups that are no fields
};

void Reader::unknown_key(const std::string& path, const std::vector<std::string>& known) {
  complain(path, "unknown key", nearest(path, known));
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

void Reader::read_field(const Json& value, const MachineField& field, MachineProfile& profile) {
  given_.insert(field.path);
  const FieldRef ref = field.ref(profile);
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
  if (!store_number(ref, value.get<double>(), field.min, field.max, field.unit, why)) {
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
    for (const LatencyField& field : latency_fields()) {
      if (field.is_required && !value.contains(field.name)) {
        complain(path + "." + field.name, fmt::format("missing: {}", field.meaning));
      }
    }
  }
  std::vector<std::string> known;
  for (const LatencyField& field : latency_fields()) {
    known.push_back(path + "." + field.name);
  }
  for (const auto& item : value.items()) {
    const std::string item_path = path + "." + item.key();
    const auto field = std::find_if(latency_fields().begin(),
                                    latency_fields().end(),
                                    [&](const auto& f) { return item.key() == f.name; });
    if (field == latency_fields().end()) {
      unknown_key(item_path, known);
      continue;
    }
    const FieldRef ref = field->ref(entry);
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
    if (!store_number(ref, number, field->min, field->max, field->unit, why)) {
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
    if (!is_latency_key(item.key())) {
      complain(path.substr(0, 100),
               "expected a key such as LOAD or FMA.f16: base in upper case, types in lower case",
               nearest(path, known));
      continue;
    }
    const std::string base = item.key().substr(0, item.key().find('.'));
    if (is_derived && profile.latency.find_exact(base) == nullptr) {
      complain(path,
               fmt::format("unknown key: profile `{}` knows no `{}`", profile.based_on, base),
               nearest(path, known));
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
            !store_number(&rule.latency_cycles, v.get<double>(), 1, 1e7, "cycles", why)) {
          complain(entry_path, why);
        }
      } else if (entry.key() == "pattern") {
        if (v.is_array() && v.size() == 2 && v[0].is_string() && v[1].is_string() &&
            is_latency_key(v[0].get_ref<const std::string&>()) &&
            is_latency_key(v[1].get_ref<const std::string&>())) {
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
               !store_number(&registers, item.value().get<double>(), 1, 255, "registers", why)) {
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
  for (const MachineField& field : machine_fields()) {
    known.emplace_back(field.path);
    const std::string path = field.path;
    if (const size_t dot = path.find('.'); dot != std::string::npos) {
      known.push_back(path.substr(0, dot));
    }
  }
  known.emplace_back("register_budget");
  for (const auto& item : value.items()) {
    if (std::find(known.begin(), known.end(), item.key()) == known.end()) {
      complain(
          "sources." + item.key().substr(0, 80), "unknown key path", nearest(item.key(), known));
      continue;
    }
    read_text(item.value(), "sources." + item.key(), nullptr, profile.sources[item.key()]);
  }
}

void Reader::read(const Json& root, MachineProfile& profile) {
  const bool is_derived = !profile.based_on.empty();
  std::vector<std::string> known = {
      "$schema", "based_on", "register_budget", "latency", "fusion", "sources"};
  std::set<std::string> groups;
  for (const MachineField& field : machine_fields()) {
    const std::string path = field.path;
    known.push_back(path);
    if (const size_t dot = path.find('.'); dot != std::string::npos) {
      groups.insert(path.substr(0, dot));
    }
  }
  known.insert(known.end(), groups.begin(), groups.end());
  const auto find_field = [](const std::string& path) -> const MachineField* {
    for (const MachineField& field : machine_fields()) {
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
      given_.insert(key);
    } else if (key == "latency") {
      read_latencies(item.value(), profile, is_derived);
      given_.insert(key);
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
        if (const MachineField* field = find_field(path)) {
          read_field(member.value(), *field, profile);
        } else {
          unknown_key(path.substr(0, 100), known);
        }
      }
    } else if (const MachineField* field = find_field(key);
               field != nullptr && key.find('.') == std::string::npos) {
      read_field(item.value(), *field, profile);
    } else {
      unknown_key(key.substr(0, 100), known);
    }
  }
  for (const MachineField& field : machine_fields()) {
    const std::string_view path = field.path;
    const bool is_own = path == "name" || path == "source" || path == "description";
    if ((is_own || !is_derived) && given_.count(field.path) == 0) {
      complain(field.path,
               fmt::format("missing: {}{}{}{}",
                           field.meaning,
                           *field.unit != '\0' ? " (" : "",
                           field.unit,
                           *field.unit != '\0' ? ")" : ""));
    }
  }
  for (const char* key : {"register_budget", "latency"}) {
    if (!is_derived && given_.count(key) == 0) {
      complain(key, "missing");
    }
  }
}

} // namespace

void read_profile(const Json& root, MachineProfile& profile, FileComplaints& complaints) {
  Reader(complaints).read(root, profile);
}

} // namespace pto::isa::detail
