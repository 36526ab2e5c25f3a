// SPDX-License-Identifier: Apache-2.0
// A shipped machine profile with some figures changed, for tests.
#pragma once

#include "isa/machine.h"

#include <doctest/doctest.h>

#include <initializer_list>

namespace pto::test {

inline isa::MachineProfile machine(const char* name,
                                   std::initializer_list<const char*> overrides = {}) {
  isa::ProfileIssues issues;
  isa::MachineProfile profile = *isa::load_machine(name, issues);
  for (const char* assignment : overrides) {
    REQUIRE(isa::apply_override(profile, assignment, issues));
  }
  return profile;
}

} // namespace pto::test
