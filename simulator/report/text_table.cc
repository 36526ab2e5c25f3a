// SPDX-License-Identifier: Apache-2.0
// Widths of columns and padding.
#include "simulator/report/text_table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace pto::sim {

size_t text_width(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string fit_text(std::string_view text, size_t width) {
  if (text_width(text) <= width) {
    return std::string(text);
  }
  std::string result;
  size_t columns = 0;
  for (const char c : text) {
    const bool begins = (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    if (begins && columns + 2 >= width) {
      break;
    }
    columns += begins ? 1 : 0;
    result += c;
  }
  return result + "..";
}

std::string counted(uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string share(uint64_t part, uint64_t all) {
  if (all == 0) {
    return "0 %";
  }
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(all));
}

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string escape_html(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '&':
      result += "&amp;";
      break;
    case '"':
      result += "&quot;";
      break;
    default:
      result += c;
    }
  }
  return result;
}

std::string TextTable::text(unsigned indent) const {
  std::vector<size_t> widths(alignment_.size());
  for (const std::vector<std::string>& row : rows_) {
    for (size_t i = 0; i < row.size() && i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], text_width(row[i]));
    }
  }
  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    std::string line(indent, ' ');
    for (size_t i = 0; i < row.size() && i < widths.size(); ++i) {
      const std::string padding(widths[i] - text_width(row[i]), ' ');
      line += i == 0 ? "" : "  ";
      line += alignment_[i] == 'r' ? padding + row[i] : row[i] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

} // namespace pto::sim
