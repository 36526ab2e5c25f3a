// SPDX-License-Identifier: Apache-2.0
// The HTML page: a template with style and scripts (simulator/report/page), and the saved run as
// JSON that the scripts draw. Nothing is loaded from elsewhere.
#include "isa/insn_desc.h"
#include "simulator/report/reports.h"
#include "simulator/report/run_json.h"
#include "simulator/report/text_table.h"
#include "simulator/report/timeline_export.h"
#include "simulator/report/timing_report.h"

#include <fmt/format.h>

#include <span>
#include <utility>

namespace pto::sim {

namespace detail {
std::span<const std::pair<std::string_view, std::string_view>> report_page_files();
}

namespace {

constexpr size_t kMaxEntries = 60000; // of the timeline: what a browser draws without waiting

std::string_view page_file(std::string_view stem) {
  for (const auto& [name, text] : detail::report_page_files()) {
    if (name == stem) {
      return text;
    }
  }
  PTO_CHECK(false);
  return {};
}

/// Inside a script element "</script" and "<!--" would end or hide it.
std::string escape_script(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      result += "\\u003c";
    } else {
      result += c;
    }
  }
  return result;
}

nlohmann::ordered_json legend_json() {
  nlohmann::ordered_json reasons = nlohmann::ordered_json::array();
  for (const StallInfo& stall : kStallInfo) {
    reasons.push_back({{"name", stall.name}, {"meaning", stall.meaning}, {"hint", stall.hint}});
  }
  return reasons;
}

std::string data_json(const TimingReport& report) {
  nlohmann::ordered_json json = run_to_json(report);
  json["reasons"] = legend_json();
  std::string text = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.pop_back();
  const uint64_t shown = std::min<uint64_t>(kMaxEntries, report.timeline.size());
  text += fmt::format(",\"timeline\":{{\"not_recorded\":{},\"not_shown\":{},\"columns\":{},"
                      "\"rows\":{}}}}}",
                      report.timeline_dropped,
                      report.timeline.size() - shown,
                      timeline_columns_json(),
                      timeline_rows_json(report, kMaxEntries));
  return escape_script(text);
}

/// Replaces each `@NAME@` of the template.
std::string fill(std::string_view page,
                 std::span<const std::pair<std::string_view, std::string>> values) {
  std::string result;
  size_t at = 0;
  for (const auto& [name, value] : values) { // in the order of the template
    const size_t found = page.find(name, at);
    PTO_CHECK(found != std::string_view::npos);
    result += page.substr(at, found - at);
    result += value;
    at = found + name.size();
  }
  result += page.substr(at);
  return result;
}

} // namespace

std::string html_report(const TimingReport& report) {
  const std::pair<std::string_view, std::string> values[] = {
      {"@TITLE@", escape_html(report.title())},
      {"@STYLE@", std::string(page_file("style"))},
      {"@NOSCRIPT@", escape_html(counters_text(report) + "\n" + stalls_text(report))},
      {"@DATA@", data_json(report)},
      {"@SCRIPTS@",
       fmt::format("{}\n{}\n{}\n{}",
                   page_file("common"),
                   page_file("gantt"),
                   page_file("charts"),
                   page_file("main"))},
  };
  return fill(page_file("page"), values);
}

} // namespace pto::sim
