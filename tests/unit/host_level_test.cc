// SPDX-License-Identifier: Apache-2.0
// Levels of the host: which one is chosen, what is refused, and that loops run in the chosen copy.
#include "isa/host_level.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

using namespace pto::isa;

namespace {

PTO_HOST_LOOP int twice(int x) {
  return 2 * x;
}

std::string refusal(const char* wanted, HostLevel highest) {
  try {
    static_cast<void>(choose_host_level(wanted, highest));
  } catch (const HostLevelError& error) {
    return error.what();
  }
  return "";
}

} // namespace

TEST_CASE("a level is one that the host has, AVX-512 only on request") {
  CHECK(choose_host_level(nullptr, HostLevel::kAvx2) == HostLevel::kAvx2);
  CHECK(choose_host_level(nullptr, HostLevel::kBaseline) == HostLevel::kBaseline);
  CHECK(choose_host_level("", HostLevel::kAvx512) == HostLevel::kAvx2);
  CHECK(choose_host_level("baseline", HostLevel::kAvx512) == HostLevel::kBaseline);
  CHECK(choose_host_level("avx2", HostLevel::kAvx512) == HostLevel::kAvx2);
  CHECK(choose_host_level("avx512", HostLevel::kAvx512) == HostLevel::kAvx512);
  CHECK(choose_host_level("baseline", HostLevel::kBaseline) == HostLevel::kBaseline);
}

TEST_CASE("a level that does not exist, or that the host does not have, is refused") {
  CHECK(refusal("avx512", HostLevel::kAvx2) ==
        "PTO_HOST_LEVEL=avx512: the processor does not have that level; this computer has "
        "baseline, avx2");
  CHECK(refusal("avx2", HostLevel::kBaseline) ==
        "PTO_HOST_LEVEL=avx2: the processor does not have that level; this computer has baseline");
  CHECK(refusal("AVX2", HostLevel::kAvx512) ==
        "PTO_HOST_LEVEL=AVX2: no such level; this computer has baseline, avx2, avx512");
  CHECK(refusal("sse", HostLevel::kBaseline) ==
        "PTO_HOST_LEVEL=sse: no such level; this computer has baseline");
}

TEST_CASE("loops run in the copy of the level in use") {
  const HostLevel level = choose_host_level(std::getenv(kHostLevelVariable), highest_host_level());
  CHECK(host_level() == level);
  const auto& copies = host_loop<twice>.copies;
  const bool is_chosen = host_loop<twice>.on_host() == copies[static_cast<size_t>(level)];
  CHECK(is_chosen);
  const bool are_apart = copies[0] != copies[1] && copies[1] != copies[2] && copies[0] != copies[2];
  CHECK(are_apart);
  CHECK(host_loop<twice>(21) == 42);
}
