// SPDX-License-Identifier: Apache-2.0
// Nearest known name to a misspelt one, for "did you mean" in every message.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pto::isa {

/// Damerau-Levenshtein distance (optimal string alignment: insert, delete, replace, swap two
/// neighbours), ASCII case ignored. Returns limit + 1 as soon as the distance must exceed `limit`.
[[nodiscard]] size_t edit_distance(std::string_view a, std::string_view b, size_t limit);

/// The nearest of `candidates` if it is near enough to be a likely slip (a third of the length);
/// the first one wins a tie. Names longer than 64 characters get no suggestion.
[[nodiscard]] std::optional<std::string_view>
nearest_name(std::string_view name, std::span<const std::string_view> candidates);
[[nodiscard]] std::optional<std::string_view>
nearest_name(std::string_view name, const std::vector<std::string>& candidates);

/// "; did you mean 'load'?" or an empty string, ready to append to a message.
[[nodiscard]] std::string did_you_mean(std::string_view name,
                                       std::span<const std::string_view> candidates);

} // namespace pto::isa
