// SPDX-License-Identifier: Apache-2.0
// Text of broken invariants.
#include "isa/error.h"

#include <string_view>

namespace pto {

void fail_check(const char* expression, const char* file, int line) {
  std::string_view path = file;
  if (const auto slash = path.find_last_of('/'); slash != std::string_view::npos) {
    path.remove_prefix(slash + 1);
  }
  throw InternalError("internal error at " + std::string(path) + ":" + std::to_string(line) + ": " +
                      expression + " does not hold; please report it with the input that led here");
}

} // namespace pto
