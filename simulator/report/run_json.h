// SPDX-License-Identifier: Apache-2.0
// A TimingReport as a tree of JSON values, for the files of this folder only.
#pragma once

#include "simulator/report/timing_report.h"

#include <nlohmann/json.hpp>

#include <stdexcept>

namespace pto::sim {

/// A saved run that contradicts itself; caught in read_run.
class RunFormatError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Everything but warps and timeline.
[[nodiscard]] nlohmann::ordered_json run_to_json(const TimingReport& report);

} // namespace pto::sim
