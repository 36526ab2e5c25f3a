// SPDX-License-Identifier: Apache-2.0
// Comma-separated values with a header line, as the vendor's profiler writes them: fields may be in
// double quotes, a last column may hold commas of its own. Private to runtime/profile/.
#pragma once

#include "isa/machine.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pto::rt::detail {

struct CsvRow {
  int line = 0; // 1-based
  std::vector<std::string> fields;
};

class CsvTable {
public:
  /// Nothing, with issues, if a required column is missing or a row has too few or too many fields.
  /// `last_takes_rest`: what is too much belongs to the last column.
  [[nodiscard]] static std::optional<CsvTable> read(std::string_view text,
                                                    std::string_view file,
                                                    const std::vector<std::string_view>& required,
                                                    bool last_takes_rest,
                                                    isa::ProfileIssues& issues);

  [[nodiscard]] const std::vector<std::string>& header() const { return header_; }
  [[nodiscard]] const std::vector<CsvRow>& rows() const { return rows_; }
  /// Column of that name; -1: none.
  [[nodiscard]] int column(std::string_view name) const;
  /// The field as a number >= 0; nothing for an empty field, NA and N/A. What is no number is an
  /// issue, and nothing.
  [[nodiscard]] std::optional<double>
  number(const CsvRow& row, int column, isa::ProfileIssues& issues) const;

private:
  std::string file_;
  std::vector<std::string> header_;
  std::vector<CsvRow> rows_;
};

/// Digits with an optional fraction and exponent, nothing else around them; nothing if negative,
/// not finite or no number.
[[nodiscard]] std::optional<double> parse_amount(std::string_view text);

} // namespace pto::rt::detail
