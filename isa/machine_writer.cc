// SPDX-License-Identifier: Apache-2.0
// Profiles as JSON text, and the schema of profile files.
#include "isa/machine.h"
#include "isa/machine_fields.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace pto::isa {

namespace {

using Json = nlohmann::ordered_json;

Json field_schema(detail::FieldRef ref, double min, double max, const char* choices) {
  Json schema;
  if (std::holds_alternative<std::string*>(ref)) {
    schema["type"] = "string";
    if (choices != nullptr) {
      std::string_view rest = choices;
      while (!rest.empty()) {
        const size_t bar = std::min(rest.find('|'), rest.size());
        schema["enum"].push_back(std::string(rest.substr(0, bar)));
        rest.remove_prefix(std::min(bar + 1, rest.size()));
      }
    }
    return schema;
  }
  schema["type"] = std::holds_alternative<double*>(ref) ? "number" : "integer";
  schema["minimum"] = static_cast<int64_t>(min);
  schema["maximum"] = static_cast<int64_t>(max);
  return schema;
}

std::string meaning_text(const char* meaning, const char* unit) {
  return *unit != '\0' ? fmt::format("{} [{}]", meaning, unit) : std::string(meaning);
}

Json number_json(detail::FieldRef ref) {
  if (auto** u32 = std::get_if<uint32_t*>(&ref)) {
    return **u32;
  }
  if (auto** u64 = std::get_if<uint64_t*>(&ref)) {
    return **u64;
  }
  if (auto** real = std::get_if<double*>(&ref)) {
    return **real;
  }
  return *std::get<std::string*>(ref);
}

// "hbm.latency" -> root["hbm"]["latency"], with `properties` between for schemas.
Json& at_path(Json& root, std::string_view path, bool is_schema) {
  const size_t dot = path.find('.');
  if (dot == std::string_view::npos) {
    return is_schema ? root["properties"][std::string(path)] : root[std::string(path)];
  }
  Json& group = is_schema ? root["properties"][std::string(path.substr(0, dot))]
                          : root[std::string(path.substr(0, dot))];
  if (is_schema) {
    group["type"] = "object";
    group["additionalProperties"] = false;
    return group["properties"][std::string(path.substr(dot + 1))];
  }
  return group[std::string(path.substr(dot + 1))];
}

} // namespace

std::string to_json_text(const MachineProfile& profile) {
  MachineProfile copy = profile;
  Json root;
  for (const detail::MachineField& field : detail::machine_fields()) {
    at_path(root, field.path, false) = number_json(field.ref(copy));
  }
  for (const auto& step : profile.register_budget) {
    root["register_budget"][std::to_string(step.first)] = step.second;
  }
  for (const LatencyEntry& entry : profile.latency.entries()) {
    LatencyEntry entry_copy = entry;
    Json& out = root["latency"][entry.key];
    for (const detail::LatencyField& field : detail::latency_fields()) {
      const Json value = number_json(field.ref(entry_copy));
      const bool is_unset = value.is_string() ? value.get_ref<const std::string&>().empty()
                                              : value.get<double>() == 0;
      if (field.is_required || !is_unset) {
        out[field.name] = value;
      }
    }
  }
  root["fusion"] = Json::array();
  for (const FusionRule& rule : profile.fusion) {
    root["fusion"].push_back({{"name", rule.name},
                              {"pattern", {rule.first, rule.second}},
                              {"connect", rule.connect},
                              {"latency", rule.latency_cycles},
                              {"keeps_first", rule.keeps_first},
                              {"source", rule.source}});
  }
  for (const auto& source : profile.sources) {
    // Notes of `--set` on latencies stand in the entries.
    if (!source.first.starts_with("latency.") && !source.first.starts_with("register_budget.")) {
      root["sources"][source.first] = source.second;
    }
  }
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string machine_schema_text() {
  Json root;
  root["$schema"] = "http://json-schema.org/draft-07/schema#";
  root["title"] = "PTO machine profile";
  root["description"] =
      "The figures of one machine. Generated from the field table of the library.";
  root["type"] = "object";
  root["additionalProperties"] = false;
  root["required"] = {"name", "description", "source"};
  root["properties"]["$schema"] = {{"type", "string"}};
  root["properties"]["based_on"] = {
      {"type", "string"},
      {"description", "profile that this one refines: a shipped name or a path beside this file"}};
  MachineProfile profile;
  for (const detail::MachineField& field : detail::machine_fields()) {
    Json schema = field_schema(field.ref(profile), field.min, field.max, field.choices);
    schema["description"] = meaning_text(field.meaning, field.unit);
    at_path(root, field.path, true) = std::move(schema);
  }
  root["properties"]["register_budget"] = {
      {"type", "object"},
      {"description", "lanes a block, up to -> registers a lane"},
      {"additionalProperties", false},
      {"patternProperties",
       {{"^[1-9][0-9]*$", {{"type", "integer"}, {"minimum", 1}, {"maximum", 255}}}}}};
  Json entry;
  entry["type"] = "object";
  entry["additionalProperties"] = false;
  LatencyEntry latency;
  for (const detail::LatencyField& field : detail::latency_fields()) {
    Json schema = field_schema(field.ref(latency), field.min, field.max, nullptr);
    schema["description"] = meaning_text(field.meaning, field.unit);
    entry["properties"][field.name] = std::move(schema);
  }
  root["properties"]["latency"] = {
      {"type", "object"},
      {"description",
       "latency key -> figures; the most specific key that fits an insn wins (FMA.f16 over FMA)"},
      {"additionalProperties", false},
      {"patternProperties", {{"^[A-Z][A-Z0-9_]*(\\.[a-z0-9_]+)*$", entry}}}};
  root["properties"]["fusion"] = {
      {"type", "array"},
      {"description", "neighbouring insns that the firmware joins"},
      {"items",
       {{"type", "object"},
        {"additionalProperties", false},
        {"required", {"name", "pattern", "latency", "source"}},
        {"properties",
         {{"name", {{"type", "string"}}},
          {"pattern",
           {{"type", "array"}, {"items", {{"type", "string"}}}, {"minItems", 2}, {"maxItems", 2}}},
          {"connect",
           {{"type", "string"},
            {"description", "any, none, or operand names such as d->a"},
            {"pattern", "^(any|none|.+->.+)$"}}},
          {"latency", {{"type", "integer"}, {"minimum", 1}, {"maximum", 10'000'000}}},
          {"keeps_first", {{"type", "boolean"}}},
          {"source", {{"type", "string"}}}}}}}};
  root["properties"]["sources"] = {
      {"type", "object"},
      {"description", "key path or its first part -> where the figure comes from"},
      {"additionalProperties", {{"type", "string"}}}};
  return root.dump(2) + "\n";
}

} // namespace pto::isa
