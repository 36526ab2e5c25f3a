// SPDX-License-Identifier: Apache-2.0
// ptoprof: measures, calibrates, reports.
#include "isa/error.h"
#include "runtime/profile/tool_options.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>

int main(int argc, char** argv) {
  using namespace pto;
  try {
    const rt::ParsedToolOptions parsed = rt::parse_tool_options(argc, argv);
    return parsed.options ? rt::run_tool(*parsed.options) : parsed.exit_status;
  } catch (const Error& error) {
    fmt::print(stderr, "ptoprof: error: {}\n", error.what());
    return 1;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "ptoprof: error: the host has no memory left; use smaller arrays\n");
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr,
               "ptoprof: internal error: {}\nPlease report this with the command line.\n",
               error.what());
    return 3;
  }
}
