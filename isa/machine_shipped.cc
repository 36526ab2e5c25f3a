// SPDX-License-Identifier: Apache-2.0
// The profiles that are built into the library, from isa/machines/*.json.
#include "isa/machine.h"

#include <algorithm>
#include <utility>

namespace pto::isa {

namespace detail {
// Defined in the source that cmake/PtoEmbed.cmake writes.
std::span<const std::pair<std::string_view, std::string_view>> embedded_machines();
} // namespace detail

std::vector<std::string> shipped_machine_names() {
  std::vector<std::string> names;
  for (const auto& machine : detail::embedded_machines()) {
    names.emplace_back(machine.first);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::string_view> shipped_machine_text(std::string_view name) {
  for (const auto& machine : detail::embedded_machines()) {
    if (machine.first == name) {
      return machine.second;
    }
  }
  return std::nullopt;
}

} // namespace pto::isa
