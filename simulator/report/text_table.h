// SPDX-License-Identifier: Apache-2.0
// Columns of text that line up.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pto::sim {

class TextTable {
public:
  /// One character a column: 'l' left, 'r' right.
  explicit TextTable(std::string_view alignment) : alignment_(alignment) {}
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  /// Two spaces between columns, `indent` before each line, no trailing spaces.
  [[nodiscard]] std::string text(unsigned indent = 0) const;

private:
  std::string alignment_;
  std::vector<std::vector<std::string>> rows_;
};

/// Columns of a terminal that the UTF-8 text takes, one a code point.
[[nodiscard]] size_t text_width(std::string_view text);
/// At most `width` columns; what is cut off shows as "..".
[[nodiscard]] std::string fit_text(std::string_view text, size_t width);
/// "1 cycle", "2 cycles"
[[nodiscard]] std::string counted(uint64_t count, std::string_view what);
/// "12.3 %" of all; "0 %" where all is 0.
[[nodiscard]] std::string share(uint64_t part, uint64_t all);
/// In quotes and escaped, as JSON.
[[nodiscard]] std::string json_string(std::string_view text);
/// As the text of an element or an attribute of HTML.
[[nodiscard]] std::string escape_html(std::string_view text);

} // namespace pto::sim
