// SPDX-License-Identifier: Apache-2.0
// ptoas: assembles, checks, lists and disassembles PTO programs.
#include "assembler/asm_command.h"
#include "assembler/cli_options.h"

int main(int argc, char** argv) {
  using namespace pto;
  return isa::run_program(
      "ptoas", "the input and the command line", argc, argv, [&](isa::ProgramState& state) {
        const as::ParsedAsmOptions parsed = as::parse_asm_options(argc, argv, state);
        return parsed.options ? as::run_asm(*parsed.options, state) : parsed.exit_status;
      });
}
