// SPDX-License-Identifier: Apache-2.0
// Look-up of types by name.
#include "isa/types.h"

namespace pto::isa {

std::optional<Type> find_type(std::string_view name) {
  for (unsigned i = 1; i < kTypeCount; ++i) {
    if (kTypeInfo[i].name == name) {
      return static_cast<Type>(i);
    }
  }
  return std::nullopt;
}

} // namespace pto::isa
