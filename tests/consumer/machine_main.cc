// SPDX-License-Identifier: Apache-2.0
// The smallest program on the libraries: reads a machine profile that is built into them.
#include "isa/machine.h"

#include <fmt/core.h>

int main() {
  pto::isa::ProfileIssues issues;
  const auto machine = pto::isa::load_machine("ascend950", issues);
  if (!machine) {
    fmt::print(stderr, "consumer: the built-in profile ascend950 does not load\n");
    return 1;
  }
  fmt::print("{} has {} cores\n", machine->name, machine->cores);
  return machine->name == "ascend950" && machine->cores > 0 ? 0 : 1;
}
