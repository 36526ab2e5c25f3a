// SPDX-License-Identifier: Apache-2.0
// What a profile answers: latency lookup, limits, sources, overrides and listings. No JSON here.
#include "isa/machine.h"

#include "isa/machine_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace pto::isa {

namespace {

uint64_t ceil_div(uint64_t value, uint64_t by) {
  return (value + by - 1) / by;
}

std::vector<std::string_view> split_key(std::string_view key) {
  std::vector<std::string_view> parts;
  size_t at = 0;
  while (at <= key.size()) {
    const size_t dot = std::min(key.find('.', at), key.size());
    parts.push_back(key.substr(at, dot - at));
    at = dot + 1;
  }
  return parts;
}

// How well an entry fits: the positions in the query of its suffixes, or nothing.
std::optional<std::vector<size_t>> match_positions(std::span<const std::string_view> entry_suffixes,
                                                   std::span<const std::string_view> suffixes) {
  std::vector<size_t> positions;
  size_t at = 0;
  for (const std::string_view wanted : entry_suffixes) {
    while (at < suffixes.size() && suffixes[at] != wanted) {
      ++at;
    }
    if (at == suffixes.size()) {
      return std::nullopt;
    }
    positions.push_back(at++);
  }
  return positions;
}

std::string value_text(detail::FieldRef ref) {
  if (auto** u32 = std::get_if<uint32_t*>(&ref)) {
    return std::to_string(**u32);
  }
  if (auto** u64 = std::get_if<uint64_t*>(&ref)) {
    return std::to_string(**u64);
  }
  if (auto** real = std::get_if<double*>(&ref)) {
    return detail::number_text(**real);
  }
  return *std::get<std::string*>(ref);
}

// Stores the text of an override; `why` says what was expected when it does not fit.
template <typename Field>
bool store_text(const Field& field, detail::FieldRef ref, std::string_view text, std::string& why) {
  if (auto** string = std::get_if<std::string*>(&ref)) {
    if (text.size() > 4096) {
      why = "expected at most 4096 characters";
      return false;
    }
    **string = std::string(text);
    return true;
  }
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || end != copy.c_str() + copy.size() || !std::isfinite(value)) {
    why = fmt::format("expected a number{}{}, got `{}`",
                      *field.unit != '\0' ? " of " : "",
                      field.unit,
                      text.substr(0, 40));
    return false;
  }
  return detail::store_number(ref, value, field.min, field.max, field.unit, why);
}

bool fits_choices(const char* choices, std::string_view text) {
  std::string_view rest = choices;
  while (!rest.empty()) {
    const size_t bar = std::min(rest.find('|'), rest.size());
    if (rest.substr(0, bar) == text) {
      return true;
    }
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  return false;
}

void complain(ProfileIssues& issues,
              std::string_view path,
              std::string message,
              std::string suggestion = {}) {
  issues.push_back({{}, std::string(path), std::move(message), std::move(suggestion), 0, 0});
}

bool override_latency(MachineProfile& profile,
                      std::string_view path,
                      std::string_view value,
                      ProfileIssues& issues) {
  const std::string_view rest = path.substr(std::string_view("latency.").size());
  const size_t dot = rest.rfind('.');
  const std::string_view field_name = dot == std::string_view::npos ? "" : rest.substr(dot + 1);
  const std::string_view key = rest.substr(0, dot);
  const detail::LatencyField* field = nullptr;
  std::vector<std::string> field_names;
  for (const detail::LatencyField& candidate : detail::latency_fields()) {
    field_names.push_back(fmt::format("latency.{}.{}", key, candidate.name));
    if (field_name == candidate.name) {
      field = &candidate;
    }
  }
  std::vector<std::string> keys;
  for (const LatencyEntry& entry : profile.latency.entries()) {
    keys.push_back(entry.key);
  }
  const LatencyEntry* base = detail::is_latency_key(key) ? profile.latency.find(key) : nullptr;
  if (field == nullptr) {
    // "latency.FMA=5" and "latency.FMA.latncy=5" alike.
    const bool is_whole_key = profile.latency.find_exact(rest) != nullptr;
    const std::string near =
        is_whole_key ? fmt::format("latency.{}.latency", rest) : detail::nearest(path, field_names);
    complain(issues, path, "no such figure: a latency ends in .latency, .interval or .step", near);
    return false;
  }
  if (base == nullptr) {
    const std::string near = detail::nearest(key, keys);
    complain(issues,
             path,
             fmt::format("no latency key `{}` in profile `{}`", key, profile.name),
             near.empty() ? near : fmt::format("latency.{}.{}", near, field_name));
    return false;
  }
  LatencyEntry entry = *base;
  entry.key = std::string(key);
  std::string why;
  if (!store_text(*field, field->ref(entry), value, why)) {
    complain(issues, path, why);
    return false;
  }
  if (field_name != "source") {
    entry.source = fmt::format("set by hand ({}={})", path, value);
  }
  profile.latency.put(std::move(entry));
  return true;
}

} // namespace

uint64_t LatencyEntry::tile_steps(uint64_t m, uint64_t n, uint64_t k) const {
  if (tile_m == 0) {
    return 0;
  }
  return ceil_div(m, tile_m) * ceil_div(n, tile_n) * ceil_div(k, tile_k);
}

const LatencyEntry* LatencyTable::find(std::string_view base,
                                       std::span<const std::string_view> suffixes) const {
  const LatencyEntry* best = nullptr;
  std::vector<size_t> best_positions;
  for (const LatencyEntry& entry : entries_) {
    const std::vector<std::string_view> parts = split_key(entry.key);
    if (parts[0] != base) {
      continue;
    }
    const auto positions = match_positions(std::span(parts).subspan(1), suffixes);
    if (!positions) {
      continue;
    }
    const bool is_better =
        best == nullptr || positions->size() > best_positions.size() ||
        (positions->size() == best_positions.size() && *positions < best_positions);
    if (is_better) {
      best = &entry;
      best_positions = *positions;
    }
  }
  return best;
}

const LatencyEntry* LatencyTable::find(std::string_view dotted_key) const {
  const std::vector<std::string_view> parts = split_key(dotted_key);
  return find(parts[0], std::span(parts).subspan(1));
}

const LatencyEntry* LatencyTable::find_exact(std::string_view key) const {
  const auto at = std::lower_bound(
      entries_.begin(), entries_.end(), key, [](const LatencyEntry& entry, std::string_view k) {
        return entry.key < k;
      });
  return at != entries_.end() && at->key == key ? &*at : nullptr;
}

size_t LatencyTable::index_of(const LatencyEntry* entry) const {
  return static_cast<size_t>(entry - entries_.data());
}

void LatencyTable::put(LatencyEntry entry) {
  const auto at = std::lower_bound(
      entries_.begin(), entries_.end(), entry.key, [](const LatencyEntry& a, const std::string& k) {
        return a.key < k;
      });
  if (at != entries_.end() && at->key == entry.key) {
    *at = std::move(entry);
  } else {
    entries_.insert(at, std::move(entry));
  }
}

std::optional<uint32_t> MachineProfile::registers_per_lane(uint32_t lanes) const {
  const auto step = register_budget.lower_bound(lanes);
  if (step == register_budget.end()) {
    return std::nullopt;
  }
  return step->second;
}

uint32_t MachineProfile::max_scratchpad_bytes() const {
  return l1.size_bytes - l1.reserved_bytes - l1.cache_min_bytes;
}

uint32_t MachineProfile::cache_bytes(uint32_t scratchpad_bytes) const {
  const uint64_t begin = cache_begin_bytes(scratchpad_bytes);
  if (scratchpad_bytes > max_scratchpad_bytes() || begin >= l1.size_bytes) {
    return 0;
  }
  const uint32_t room = l1.size_bytes - static_cast<uint32_t>(begin);
  return std::min(room / l1.line_bytes * l1.line_bytes, l1.cache_max_bytes);
}

uint32_t MachineProfile::cache_begin_bytes(uint32_t scratchpad_bytes) const {
  const uint64_t used = static_cast<uint64_t>(scratchpad_bytes) + l1.reserved_bytes;
  return static_cast<uint32_t>(
      std::min<uint64_t>(ceil_div(used, l1.line_bytes) * l1.line_bytes, UINT32_MAX));
}

std::string_view MachineProfile::source_of(std::string_view key_path) const {
  std::string_view prefix = key_path;
  while (!prefix.empty()) {
    const auto found = sources.find(std::string(prefix));
    if (found != sources.end()) {
      return found->second;
    }
    const size_t dot = prefix.rfind('.');
    prefix = dot == std::string_view::npos ? std::string_view() : prefix.substr(0, dot);
  }
  return {};
}

bool apply_override(MachineProfile& profile,
                    std::string_view path,
                    std::string_view value,
                    ProfileIssues& issues) {
  MachineProfile changed = profile;
  const size_t issues_before = issues.size();
  if (path.starts_with("latency.")) {
    if (!override_latency(changed, path, value, issues)) {
      return false;
    }
  } else if (path.starts_with("register_budget.")) {
    const std::string lanes_text(path.substr(std::string_view("register_budget.").size()));
    const auto step =
        std::find_if(changed.register_budget.begin(),
                     changed.register_budget.end(),
                     [&](const auto& s) { return std::to_string(s.first) == lanes_text; });
    if (step == changed.register_budget.end()) {
      complain(issues,
               path,
               fmt::format("profile `{}` has no step for so many lanes", profile.name),
               fmt::format("register_budget.{}", profile.register_budget.begin()->first));
      return false;
    }
    const detail::MachineField field{"", nullptr, "registers", 1, 255, nullptr, ""};
    std::string why;
    if (!store_text(field, &step->second, value, why)) {
      complain(issues, path, why);
      return false;
    }
  } else {
    const detail::MachineField* field = nullptr;
    std::vector<std::string> names;
    for (const detail::MachineField& candidate : detail::machine_fields()) {
      names.emplace_back(candidate.path);
      if (path == candidate.path) {
        field = &candidate;
      }
    }
    if (field == nullptr) {
      for (const LatencyEntry& entry : profile.latency.entries()) {
        names.push_back(fmt::format("latency.{}.latency", entry.key));
      }
      complain(issues,
               path.substr(0, 100),
               fmt::format("no such figure in profile `{}`", profile.name),
               detail::nearest(path, names));
      return false;
    }
    std::string why;
    if (field->choices != nullptr && !fits_choices(field->choices, value)) {
      complain(issues,
               path,
               fmt::format("expected one of {}, got `{}`", field->choices, value.substr(0, 40)));
      return false;
    }
    if (!store_text(*field, field->ref(changed), value, why)) {
      complain(issues, path, why);
      return false;
    }
  }
  changed.sources[std::string(path)] = fmt::format("set by hand ({}={})", path, value);
  detail::check_consistency(changed, {}, issues);
  if (issues.size() != issues_before) {
    return false;
  }
  profile = std::move(changed);
  return true;
}

bool apply_override(MachineProfile& profile, std::string_view assignment, ProfileIssues& issues) {
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    complain(issues,
             {},
             fmt::format("expected key=value such as latency.FMA.latency=5, got `{}`",
                         assignment.substr(0, 60)));
    return false;
  }
  return apply_override(
      profile, assignment.substr(0, equals), assignment.substr(equals + 1), issues);
}

std::vector<ProfileFigure> list_figures(const MachineProfile& profile) {
  std::vector<ProfileFigure> figures;
  MachineProfile copy = profile; // the field table hands out pointers to non-const
  for (const detail::MachineField& field : detail::machine_fields()) {
    figures.push_back({field.path,
                       value_text(field.ref(copy)),
                       field.unit,
                       field.meaning,
                       std::string(profile.source_of(field.path))});
  }
  for (const auto& step : profile.register_budget) {
    const std::string path = fmt::format("register_budget.{}", step.first);
    figures.push_back({path,
                       std::to_string(step.second),
                       "registers",
                       "registers a lane may use in blocks up to so many lanes",
                       std::string(profile.source_of(path))});
  }
  for (const LatencyEntry& entry : profile.latency.entries()) {
    LatencyEntry entry_copy = entry;
    for (const detail::LatencyField& field : detail::latency_fields()) {
      const detail::FieldRef ref = field.ref(entry_copy);
      const std::string text = value_text(ref);
      const bool is_text = std::holds_alternative<std::string*>(ref);
      if (!is_text && (field.is_required || text != "0")) {
        figures.push_back({fmt::format("latency.{}.{}", entry.key, field.name),
                           text,
                           field.unit,
                           field.meaning,
                           entry.source});
      }
    }
  }
  for (const FusionRule& rule : profile.fusion) {
    figures.push_back({fmt::format("fusion.{}.latency", rule.name),
                       std::to_string(rule.latency_cycles),
                       "cycles",
                       fmt::format("{} then {} ({})", rule.first, rule.second, rule.connect),
                       rule.source});
  }
  return figures;
}

} // namespace pto::isa
