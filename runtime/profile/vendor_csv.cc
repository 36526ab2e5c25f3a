// SPDX-License-Identifier: Apache-2.0
// The one CSV reader of the importers.
#include "runtime/profile/vendor_csv.h"

#include "isa/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace pto::rt::detail {
namespace {

constexpr size_t kMaxIssues = 20;
constexpr size_t kMaxRows = 1u << 22;
constexpr size_t kMaxColumns = 512;

void complain(isa::ProfileIssues& issues,
              std::string_view file,
              int line,
              std::string message,
              std::string suggestion = {}) {
  if (issues.size() < kMaxIssues) {
    issues.push_back({std::string(file),
                      {},
                      std::move(message),
                      std::move(suggestion),
                      line,
                      line == 0 ? 0 : 1});
  }
}

std::vector<std::string> split(std::string_view line) {
  std::vector<std::string> fields(1);
  bool is_quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"') {
      if (is_quoted && i + 1 < line.size() && line[i + 1] == '"') {
        fields.back() += '"';
        ++i;
      } else {
        is_quoted = !is_quoted;
      }
    } else if (c == ',' && !is_quoted && fields.size() < kMaxColumns) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  for (std::string& field : fields) {
    const size_t first = field.find_first_not_of(" \t");
    const size_t last = field.find_last_not_of(" \t");
    field = first == std::string::npos ? "" : field.substr(first, last - first + 1);
  }
  return fields;
}

} // namespace

std::optional<double> parse_amount(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) ||
      value < 0 || value > 1e12) {
    return std::nullopt;
  }
  return value;
}

std::optional<CsvTable> CsvTable::read(std::string_view text,
                                       std::string_view file,
                                       const std::vector<std::string_view>& required,
                                       bool last_takes_rest,
                                       isa::ProfileIssues& issues) {
  CsvTable table;
  table.file_ = file;
  const size_t issues_before = issues.size();
  if (text.starts_with("\xef\xbb\xbf")) {
    text.remove_prefix(3);
  }
  int line_number = 0;
  while (!text.empty() && issues.size() < kMaxIssues) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line_number;
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (line.empty()) {
      continue;
    }
    std::vector<std::string> fields = split(line);
    if (table.header_.empty()) {
      table.header_ = std::move(fields);
      continue;
    }
    while (last_takes_rest && fields.size() > table.header_.size()) {
      const std::string last = std::move(fields.back());
      fields.pop_back();
      fields.back() += "," + last;
    }
    if (fields.size() != table.header_.size()) {
      complain(issues,
               file,
               line_number,
               fmt::format("{} fields where the header names {}; is the file cut short?",
                           fields.size(),
                           table.header_.size()));
      continue;
    }
    if (table.rows_.size() == kMaxRows) {
      complain(issues, file, line_number, fmt::format("more than {} rows", kMaxRows));
      break;
    }
    table.rows_.push_back({line_number, std::move(fields)});
  }
  if (table.header_.empty()) {
    complain(issues, file, 0, "the file is empty; expected a header line and rows");
  }
  std::vector<std::string_view> names(table.header_.begin(), table.header_.end());
  for (const std::string_view name : required) {
    if (!table.header_.empty() && table.column(name) == -1) {
      complain(issues,
               file,
               1,
               fmt::format("the header has no column '{}'{}; expected a file of this profiler's A5 "
                           "format",
                           name,
                           isa::did_you_mean(name, names)));
    }
  }
  if (issues.size() != issues_before) {
    return std::nullopt;
  }
  return table;
}

int CsvTable::column(std::string_view name) const {
  const auto found = std::find(header_.begin(), header_.end(), name);
  return found == header_.end() ? -1 : static_cast<int>(found - header_.begin());
}

std::optional<double>
CsvTable::number(const CsvRow& row, int column, isa::ProfileIssues& issues) const {
  if (column < 0) {
    return std::nullopt;
  }
  const std::string& field = row.fields[static_cast<size_t>(column)];
  if (field.empty() || field == "NA" || field == "N/A") {
    return std::nullopt;
  }
  const std::optional<double> value = parse_amount(field);
  if (!value) {
    complain(issues,
             file_,
             row.line,
             fmt::format("column '{}': '{}' is no number from 0 on; expected one, or NA",
                         header_[static_cast<size_t>(column)],
                         field.substr(0, 40)));
  }
  return value;
}

} // namespace pto::rt::detail
