// SPDX-License-Identifier: Apache-2.0
// The features behind each level are those in the attributes of its copies (host_level.h).
#include "isa/host_level.h"

#include "isa/clipped.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <span>

namespace pto::isa {

HostLevel highest_host_level() {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  // Both look at what the operating system keeps of the registers, too.
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2")) {
    return HostLevel::kBaseline;
  }
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512cd") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has_avx512 ? HostLevel::kAvx512 : HostLevel::kAvx2;
#else
  return HostLevel::kBaseline;
#endif
}

HostLevel choose_host_level(const char* wanted, HostLevel highest) {
  const std::string_view name = wanted == nullptr ? "" : wanted;
  if (name.empty()) {
    return std::min(highest, kHighestUnasked);
  }
  const auto* const found = std::find(kHostLevelNames.begin(), kHostLevelNames.end(), name);
  const auto index = static_cast<size_t>(found - kHostLevelNames.begin());
  const auto available = std::span(kHostLevelNames).first(static_cast<size_t>(highest) + 1);
  if (index >= available.size()) {
    throw HostLevelError(fmt::format(
        "{}={}: {}; this computer has {}",
        kHostLevelVariable,
        clipped(name),
        found == kHostLevelNames.end() ? "no such level" : "the processor does not have that level",
        fmt::join(available, ", ")));
  }
  return static_cast<HostLevel>(index);
}

HostLevel host_level_of_environment() {
  return choose_host_level(std::getenv(kHostLevelVariable), highest_host_level());
}

} // namespace pto::isa
