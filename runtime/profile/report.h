// SPDX-License-Identifier: Apache-2.0
// Reports of measured profiles and calibrations: built once as sections with tables, then shown as
// text for a terminal or as one HTML page that opens offline.
#pragma once

#include "runtime/profile/calibrate.h"
#include "runtime/profile/profile.h"

#include <string>
#include <string_view>
#include <vector>

namespace pto::rt {

struct ReportSection {
  std::string title;
  std::vector<std::string> lines; // before the table
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows; // as wide as the header
  std::vector<std::string> remarks;           // after the table
};

struct Report {
  std::string title; // says `emulated` where it is
  std::vector<ReportSection> sections;
};

/// What was measured, kernel by kernel, beside what the simulator says (of `machine`; empty: the
/// first one recorded).
[[nodiscard]] Report profile_report(const Profile& profile, std::string_view machine = {});

/// What a calibration changed and why, what it left, and how well it predicts.
[[nodiscard]] Report calibration_report(const Calibration& calibration);

[[nodiscard]] std::string report_text(const Report& report);
[[nodiscard]] std::string report_html(const Report& report);

} // namespace pto::rt
