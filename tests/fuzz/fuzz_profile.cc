// SPDX-License-Identifier: Apache-2.0
// Any bytes are a valid input to the reader of measured profiles; an accepted one reads back and
// can be shown.
#include "runtime/profile/breakdown.h"
#include "runtime/profile/profile.h"

#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pto;
  isa::ProfileIssues issues;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto profile = rt::read_profile(text, "fuzz", issues);
  if (!profile) {
    if (issues.empty() || isa::to_string(issues).empty()) {
      std::abort();
    }
    return 0;
  }
  if (!issues.empty() || !rt::read_profile(rt::to_json_text(*profile), "again", issues)) {
    std::abort();
  }
  for (const rt::KernelProfile& kernel : profile->kernels) {
    if (rt::cycle_breakdown(*profile, kernel).to_string().empty()) {
      std::abort();
    }
  }
  return 0;
}
