// SPDX-License-Identifier: Apache-2.0
// A TimingReport as a tree of JSON values, for the files of this folder only.
#pragma once

#include "simulator/report/timing_report.h"

#include <nlohmann/json.hpp>

namespace pto::sim {

/// Everything but warps and timeline.
[[nodiscard]] nlohmann::ordered_json run_to_json(const TimingReport& report);

} // namespace pto::sim
