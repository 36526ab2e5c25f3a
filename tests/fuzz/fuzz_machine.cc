// SPDX-License-Identifier: Apache-2.0
// Any bytes are a valid input to the profile reader and to `--set`; an accepted profile reads back.
#include "isa/machine.h"

#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pto::isa;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const ProfileResolver shipped = [](std::string_view name) -> std::optional<std::string> {
    const auto found = shipped_machine_text(name);
    return found ? std::optional<std::string>(*found) : std::nullopt;
  };
  ProfileIssues issues;
  if (const auto profile = parse_machine(text, "fuzz", shipped, issues)) {
    if (!issues.empty() || !parse_machine(to_json_text(*profile), "again", {}, issues)) {
      std::abort();
    }
  } else if (issues.empty() || to_string(issues).empty()) {
    std::abort();
  }
  ProfileIssues override_issues;
  auto reference = load_machine("reference", override_issues);
  if (!reference || apply_override(*reference, text, override_issues) != override_issues.empty()) {
    std::abort();
  }
  return 0;
}
