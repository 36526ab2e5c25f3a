// SPDX-License-Identifier: Apache-2.0
// Sizes from text; arguments into memory.
#include "simulator/launch_setup.h"

#include "isa/error.h"
#include "simulator/number_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace pto::sim {

std::optional<Dim3> parse_dim3(std::string_view text, std::string& error) {
  Dim3 dim;
  uint32_t* parts[3] = {&dim.x, &dim.y, &dim.z};
  size_t begin = 0;
  for (size_t part = 0;; ++part) {
    const size_t end = std::min(text.find_first_of(",xX", begin), text.size());
    std::string reason;
    const std::optional<uint64_t> value = parse_count(text.substr(begin, end - begin), reason);
    if (part == 3 || !value || *value == 0 || *value > UINT32_MAX) {
      error = fmt::format("'{}' is no size; expected X, X,Y or X,Y,Z (or with x between), each "
                          "from 1 to 4294967295",
                          text);
      return std::nullopt;
    }
    *parts[part] = static_cast<uint32_t>(*value);
    if (end == text.size()) {
      return dim;
    }
    begin = end + 1;
  }
}

std::vector<LaunchArg> place_arguments(const std::vector<Argument>& arguments, Hbm& hbm) {
  std::vector<LaunchArg> result;
  for (const Argument& argument : arguments) {
    const isa::Param& param = argument.param;
    if (!param.is_pointer) {
      result.push_back({argument.bits, param.type, false});
      continue;
    }
    const std::vector<std::byte>& data = argument.array.data;
    const uint64_t base = hbm.alloc(data.size(), param.name, fmt::format("--arg {}", param.name));
    if (!data.empty()) {
      PTO_CHECK(hbm.write(base, {reinterpret_cast<const uint8_t*>(data.data()), data.size()}));
    }
    result.push_back({base, isa::Type::kNone, true});
  }
  return result;
}

} // namespace pto::sim
