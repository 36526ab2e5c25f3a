// SPDX-License-Identifier: Apache-2.0
// The timeline as rows of numbers, shared by the saved run and the HTML page.
#pragma once

#include "simulator/report/timing_report.h"

#include <string>

namespace pto::sim {

/// `["issue", ...]`: names of the numbers of a row.
[[nodiscard]] std::string timeline_columns_json();
/// `[[0,4,...],...]` of the first `max_entries` entries, one a line.
[[nodiscard]] std::string timeline_rows_json(const TimingReport& report, size_t max_entries);

} // namespace pto::sim
