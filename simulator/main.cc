// SPDX-License-Identifier: Apache-2.0
// ptosim: runs a kernel on a simulated machine.
#include "isa/error.h"
#include "simulator/cli_options.h"
#include "simulator/diff_command.h"
#include "simulator/run_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string_view>

int main(int argc, char** argv) {
  using namespace pto;
  try {
    if (argc > 1 && std::string_view(argv[1]) == "diff") {
      return sim::diff_command(argc, argv);
    }
    const sim::ParsedCommandLine command_line = sim::parse_command_line(argc, argv);
    if (!command_line.options) {
      return command_line.exit_status;
    }
    return sim::run_command(*command_line.options);
  } catch (const Error& error) {
    fmt::print(stderr, "ptosim: error: {}\n", error.what());
    return 1;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "ptosim: error: the host has no memory left; use smaller arrays\n");
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr,
               "ptosim: internal error: {}\nPlease report this with the command line.\n",
               error.what());
    return 3;
  }
}
