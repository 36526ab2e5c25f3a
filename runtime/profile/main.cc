// SPDX-License-Identifier: Apache-2.0
// ptoprof: measures, calibrates, reports.
#include "isa/run_program.h"
#include "runtime/profile/tool_options.h"

int main(int argc, char** argv) {
  using namespace pto;
  return isa::run_program("ptoprof", "the command line", argc, argv, [&](isa::ProgramState& state) {
    const rt::ParsedToolOptions parsed = rt::parse_tool_options(argc, argv, state);
    return parsed.options ? rt::run_tool(*parsed.options) : parsed.exit_status;
  });
}
