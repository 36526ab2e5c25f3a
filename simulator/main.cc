// SPDX-License-Identifier: Apache-2.0
// ptosim: runs a kernel on a simulated machine.
#include "isa/run_program.h"
#include "simulator/cli_options.h"
#include "simulator/diff_command.h"
#include "simulator/run_command.h"

#include <string_view>

int main(int argc, char** argv) {
  using namespace pto;
  return isa::run_program("ptosim", "the command line", argc, argv, [&](isa::ProgramState& state) {
    if (argc > 1 && std::string_view(argv[1]) == "diff") {
      return sim::diff_command(argc, argv, state);
    }
    const sim::ParsedCommandLine command_line = sim::parse_command_line(argc, argv, state);
    return command_line.options ? sim::run_command(*command_line.options, state)
                                : command_line.exit_status;
  });
}
