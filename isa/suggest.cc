// SPDX-License-Identifier: Apache-2.0
// Edit distance in a band, and the choice of the nearest candidate.
#include "isa/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pto::isa {

namespace {

constexpr size_t kLongestName = 64;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

} // namespace

size_t edit_distance(std::string_view a, std::string_view b, size_t limit) {
  if (a.size() > kLongestName || b.size() > kLongestName) {
    return limit + 1;
  }
  const size_t length_gap = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (length_gap > limit) {
    return limit + 1;
  }
  // Three rows suffice: the current one, the one above, and the one above that for swaps.
  std::array<std::array<size_t, kLongestName + 1>, 3> rows = {};
  for (size_t j = 0; j <= b.size(); ++j) {
    rows[0][j] = j;
  }
  for (size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i - 1) % 3];
    row[0] = i;
    size_t best = row[0];
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                           lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) {
        row[j] = std::min(row[j], rows[(i - 2) % 3][j - 2] + 1);
      }
      best = std::min(best, row[j]);
    }
    if (best > limit + 1) {
      return limit + 1;
    }
  }
  return std::min(rows[a.size() % 3][b.size()], limit + 1);
}

std::optional<std::string_view> nearest_name(std::string_view name,
                                             std::span<const std::string_view> candidates) {
  std::optional<std::string_view> nearest;
  size_t limit = (name.size() + 2) / 3;
  for (const std::string_view candidate : candidates) {
    const size_t distance = edit_distance(name, candidate, limit);
    // A distance that replaces the whole name is no likeness ("x" for "n").
    if (distance <= limit && distance < std::max(name.size(), candidate.size())) {
      nearest = candidate;
      if (distance == 0) {
        break;
      }
      limit = distance - 1;
    }
  }
  return nearest;
}

std::optional<std::string_view> nearest_name(std::string_view name,
                                             const std::vector<std::string>& candidates) {
  const std::vector<std::string_view> views(candidates.begin(), candidates.end());
  return nearest_name(name, std::span<const std::string_view>(views));
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates) {
  const std::optional<std::string_view> nearest = nearest_name(name, candidates);
  return nearest ? fmt::format("; did you mean '{}'?", *nearest) : std::string();
}

} // namespace pto::isa
