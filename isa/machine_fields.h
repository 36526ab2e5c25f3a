// SPDX-License-Identifier: Apache-2.0
// The table of a profile's figures: key path, member, unit, limits, meaning. Private to
// isa/machine*.
#pragma once

#include "isa/machine.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pto::isa::detail {

using FieldRef = std::variant<uint32_t*, uint64_t*, double*, std::string*>;

struct MachineField {
  const char* path; // "hbm.latency"
  FieldRef (*ref)(MachineProfile&);
  const char* unit;
  double min; // numbers only
  double max;
  const char* choices; // texts only: "a|b"; null: free text
  const char* meaning;
};

struct LatencyField {
  const char* name; // "latency"
  FieldRef (*ref)(LatencyEntry&);
  const char* unit;
  double min;
  double max;
  bool is_required;
  const char* meaning;
};

[[nodiscard]] std::span<const MachineField> machine_fields();
[[nodiscard]] std::span<const LatencyField> latency_fields();

// isa/suggest's nearest name as a string; empty when none is near enough to be meant.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& names);

// A number as short text: 8, 0.5, 2147483647.
[[nodiscard]] std::string number_text(double value);

// Stores a number after checking limits and wholeness; otherwise says what was expected.
[[nodiscard]] bool store_number(
    FieldRef ref, double value, double min, double max, const char* unit, std::string& why);

// Checks that need more than one figure; adds an issue for each failure.
void check_consistency(const MachineProfile& profile, std::string_view file, ProfileIssues& issues);

// "LOAD", "FMA.f16": upper-case base, lower-case suffixes.
[[nodiscard]] bool is_latency_key(std::string_view key);

} // namespace pto::isa::detail
