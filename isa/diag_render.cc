// SPDX-License-Identifier: Apache-2.0
// Diagnostics as text and as JSON.
//
// The text form is the one that editors already parse: "file:line:column: error: message", then
// the source line and a run of ^~~~ below it. A source line is untrusted: it may hold tabs, wide
// characters, bytes that are not UTF-8, control characters, or be megabytes long. It is turned
// into cells (what to print, how wide, which bytes it stands for) and the caret line is drawn over
// cells, so the caret stands under the right character in every case.
#include "isa/clipped.h"
#include "isa/diag.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace pto::isa {

namespace {

constexpr uint32_t kTabWidth = 8;

struct Cell {
  std::string text;
  uint32_t width = 0;
  uint32_t first_byte = 0;
};

uint32_t decode(std::string_view character) {
  const auto byte = [&](size_t i) {
    return static_cast<uint32_t>(static_cast<unsigned char>(character[i]));
  };
  switch (character.size()) {
  case 1:
    return byte(0);
  case 2:
    return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
  case 3:
    return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  default:
    return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 |
           (byte(3) & 0x3F);
  }
}

// Columns on a terminal. The main blocks of Unicode suffice: a wrong guess moves a caret, no more.
uint32_t display_width(uint32_t code_point) {
  struct Block {
    uint32_t first;
    uint32_t last;
    uint32_t width;
  };
  static constexpr Block kBlocks[] = {
      {0x0300, 0x036F, 0},
      {0x200B, 0x200F, 0},
      {0x20D0, 0x20F0, 0},
      {0xFE00, 0xFE0F, 0},
      {0x1100, 0x115F, 2},
      {0x2E80, 0x303E, 2},
      {0x3041, 0xA4CF, 2},
      {0xAC00, 0xD7A3, 2},
      {0xF900, 0xFAFF, 2},
      {0xFE30, 0xFE6F, 2},
      {0xFF00, 0xFF60, 2},
      {0xFFE0, 0xFFE6, 2},
      {0x1F300, 0x1F64F, 2},
      {0x1F900, 0x1F9FF, 2},
      {0x20000, 0x3FFFD, 2},
  };
  for (const Block& block : kBlocks) {
    if (code_point >= block.first && code_point <= block.last) {
      return block.width;
    }
  }
  return 1;
}

// C0 and C1 controls and the bidirectional overrides, which would let a line lie about itself.
bool is_unprintable(uint32_t code_point) {
  return code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0) ||
         (code_point >= 0x202A && code_point <= 0x202E) ||
         (code_point >= 0x2066 && code_point <= 0x2069);
}

// The cells of the part of `line` about bytes [from, to) that fits `width`; a line that is cut gets
// "..." at that end.
std::vector<Cell> cells_about(std::string_view line, uint32_t from, uint32_t to, uint32_t width) {
  // Bound the work on a line of megabytes: only bytes near the caret can be shown.
  const uint32_t reach = width * 4;
  const auto size = static_cast<uint32_t>(line.size());
  uint32_t begin = from > reach ? from - reach : 0;
  while (begin > 0 && begin < size && (static_cast<unsigned char>(line[begin]) & 0xC0) == 0x80) {
    --begin;
  }
  const uint32_t end = std::min(size, std::max(from, std::min(to, from + reach)) + reach);

  std::vector<Cell> cells;
  uint32_t column = 0;
  for (uint32_t at = begin; at < end;) {
    const size_t length = utf8_length(line.substr(at));
    const std::string_view bytes = line.substr(at, std::max<size_t>(1, length));
    Cell cell = {.text = std::string(bytes), .width = 1, .first_byte = at};
    if (length == 0) {
      cell.text = fmt::format("<{:02X}>", static_cast<unsigned char>(line[at]));
      cell.width = 4;
    } else if (line[at] == '\t') {
      cell.width = kTabWidth - column % kTabWidth;
      cell.text = std::string(cell.width, ' ');
    } else if (const uint32_t code_point = decode(bytes); is_unprintable(code_point)) {
      cell.text = fmt::format("<{}{:02X}>", code_point > 0xFF ? "U+" : "", code_point);
      cell.width = static_cast<uint32_t>(cell.text.size());
    } else {
      cell.width = display_width(code_point);
    }
    column += cell.width;
    at += static_cast<uint32_t>(bytes.size());
    cells.push_back(std::move(cell));
  }

  const Cell dots = {.text = "...", .width = 3, .first_byte = 0};
  if (column <= width && begin == 0 && end == size) {
    return cells;
  }
  // Keep what fits, with the caret at most two thirds along.
  size_t caret = 0;
  while (caret < cells.size() && cells[caret].first_byte < from) {
    ++caret;
  }
  size_t first = caret;
  uint32_t used = 0;
  while (first > 0 && used + cells[first - 1].width <= width * 2 / 3) {
    used += cells[--first].width;
  }
  size_t last = caret;
  while (last < cells.size() && used + cells[last].width <= width) {
    used += cells[last++].width;
  }
  const bool cut_left = first > 0 || begin > 0;
  const bool cut_right = last < cells.size() || end < size;
  std::vector<Cell> window;
  if (cut_left) {
    window.push_back(dots);
    window.back().first_byte = cells.empty() ? 0 : cells[first].first_byte;
    window.back().first_byte = window.back().first_byte == 0 ? 0 : window.back().first_byte - 1;
  }
  window.insert(window.end(),
                cells.begin() + static_cast<ptrdiff_t>(first),
                cells.begin() + static_cast<ptrdiff_t>(last));
  if (cut_right) {
    window.push_back(dots);
    window.back().first_byte = last < cells.size() ? cells[last].first_byte : end;
  }
  return window;
}

class TextRenderer {
public:
  TextRenderer(std::string& out, const RenderOptions& options) : out_(out), options_(options) {}

  void show(const Diagnostic& diagnostic) {
    include_stack(diagnostic.range.file);
    const bool is_error = diagnostic.severity == Severity::kError;
    std::string message = clipped(diagnostic.message);
    if (!diagnostic.warning.empty()) {
      message += fmt::format(" [-W{}{}]", is_error ? "error=" : "", diagnostic.warning);
    }
    headline(diagnostic.range,
             is_error ? "error" : "warning",
             is_error ? "\033[1;31m" : "\033[1;35m",
             message);
    snippet(diagnostic.range, diagnostic.replaced, diagnostic.replacement);
    detail("expected", clipped(diagnostic.expected));
    detail("help", clipped(diagnostic.help));
    for (const DiagnosticNote& note : diagnostic.notes) {
      if (note.range.file != diagnostic.range.file) {
        include_stack(note.range.file);
      }
      headline(note.range, "note", "\033[1;36m", clipped(note.message));
      snippet(note.range, {}, {});
    }
  }

  void closing(std::string_view text) { headline({}, "error", "\033[1;31m", text); }

private:
  void styled(std::string_view code, std::string_view text) {
    if (options_.color) {
      fmt::format_to(std::back_inserter(out_), "{}{}\033[0m", code, text);
    } else {
      out_ += text;
    }
  }

  void include_stack(const SourceFile* file) {
    while (file != nullptr && file->origin() == SourceFile::Origin::kMacro) {
      file = file->parent().file;
    }
    for (; file != nullptr && file->parent(); file = file->parent().file) {
      if (file->origin() == SourceFile::Origin::kInclude) {
        const SourceRange& from = file->parent();
        fmt::format_to(std::back_inserter(out_),
                       "in file included from {}:{}:\n",
                       from.file->name(),
                       from.file->locate(from.offset).line);
      }
    }
  }

  void headline(const SourceRange& range,
                std::string_view kind,
                std::string_view color,
                std::string_view message) {
    if (range) {
      const LineColumn place = range.file->locate(range.offset);
      styled("\033[1m", fmt::format("{}:{}:{}: ", range.file->name(), place.line, place.column));
    }
    styled(color, fmt::format("{}: ", kind));
    styled("\033[1m", message);
    out_ += '\n';
  }

  void detail(std::string_view label, std::string_view text) {
    if (!text.empty()) {
      out_ += "  = ";
      styled("\033[1m", label);
      fmt::format_to(std::back_inserter(out_), ": {}\n", text);
    }
  }

  void snippet(const SourceRange& range, const SourceRange& replaced, std::string_view text) {
    if (!range || range.file->text().empty()) {
      return;
    }
    const uint32_t start = range.file->line_start(
        std::min(range.offset, static_cast<uint32_t>(range.file->text().size())));
    const std::string_view line = range.file->line_around(range.offset);
    const auto size = static_cast<uint32_t>(line.size());
    const uint32_t from = std::min(range.offset - start, size);
    const uint32_t to = std::min(from + range.length, std::max(size, from));
    const std::vector<Cell> cells = cells_about(line, from, to, options_.width);

    std::string shown;
    std::string marks;
    const bool can_fix = !text.empty() && replaced.file == range.file && replaced.offset >= start &&
                         replaced.offset - start <= size;
    std::optional<size_t> fix_column;
    size_t column = 0;
    for (const Cell& cell : cells) {
      shown += cell.text;
      if (can_fix && !fix_column && cell.first_byte >= replaced.offset - start) {
        fix_column = column;
      }
      const bool is_caret = cell.first_byte == from;
      const bool is_run = cell.first_byte > from && cell.first_byte < to;
      for (uint32_t i = 0; i < cell.width; ++i) {
        marks += is_caret && i == 0 ? '^' : is_caret || is_run ? '~' : ' ';
      }
      if (is_caret && to <= from + 1) {
        marks.resize(column + 1);
        marks.resize(column + cell.width, ' ');
      }
      column += cell.width;
    }
    if (from >= size) {
      marks += '^';
    }
    marks.erase(marks.find_last_not_of(' ') + 1);
    shown.erase(shown.find_last_not_of(' ') + 1);
    out_ += shown;
    out_ += '\n';
    styled("\033[1;32m", marks);
    out_ += '\n';
    if (can_fix) {
      out_ += std::string(fix_column.value_or(column), ' ');
      styled("\033[32m", text);
      out_ += '\n';
    }
  }

  std::string& out_;
  const RenderOptions& options_;
};

std::string too_many_errors(const Diagnostics& diagnostics) {
  const size_t limit = diagnostics.options().error_limit;
  return fmt::format("too many errors ({} shown); stopped here", limit);
}

void put_place(nlohmann::ordered_json& out, const SourceRange& range) {
  if (!range) {
    return;
  }
  const LineColumn begin = range.file->locate(range.offset);
  const LineColumn end = range.file->locate(range.end());
  out["file"] = range.file->name();
  out["line"] = begin.line;
  out["column"] = begin.column;
  out["end_line"] = end.line;
  out["end_column"] = end.column;
}

nlohmann::ordered_json to_json(const Diagnostic& diagnostic) {
  nlohmann::ordered_json out;
  out["severity"] = diagnostic.severity == Severity::kError ? "error" : "warning";
  out["message"] = clipped(diagnostic.message);
  put_place(out, diagnostic.range);
  if (!diagnostic.warning.empty()) {
    out["warning"] = diagnostic.warning;
  }
  if (diagnostic.range) {
    out["source"] = diagnostic.range.file->line_around(diagnostic.range.offset).substr(0, 4096);
  }
  if (!diagnostic.expected.empty()) {
    out["expected"] = clipped(diagnostic.expected);
  }
  if (!diagnostic.help.empty()) {
    out["help"] = clipped(diagnostic.help);
  }
  if (!diagnostic.replacement.empty()) {
    nlohmann::ordered_json fix;
    put_place(fix, diagnostic.replaced);
    fix["text"] = diagnostic.replacement;
    out["fix"] = std::move(fix);
  }
  out["notes"] = nlohmann::ordered_json::array();
  for (const DiagnosticNote& note : diagnostic.notes) {
    nlohmann::ordered_json entry;
    entry["message"] = clipped(note.message);
    put_place(entry, note.range);
    out["notes"].push_back(std::move(entry));
  }
  const SourceFile* file = diagnostic.range.file;
  nlohmann::ordered_json stack = nlohmann::ordered_json::array();
  for (; file != nullptr && file->parent(); file = file->parent().file) {
    if (file->origin() == SourceFile::Origin::kInclude) {
      nlohmann::ordered_json entry;
      put_place(entry, file->parent());
      stack.push_back(std::move(entry));
    }
  }
  if (!stack.empty()) {
    out["included_from"] = std::move(stack);
  }
  return out;
}

} // namespace

bool use_color(ColorMode mode, std::FILE* stream) {
  if (mode != ColorMode::kAuto) {
    return mode == ColorMode::kAlways;
  }
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const term = std::getenv("TERM");
  return (no_color == nullptr || *no_color == '\0') &&
         (term == nullptr || std::strcmp(term, "dumb") != 0) && isatty(fileno(stream)) != 0;
}

std::string render(const Diagnostic& diagnostic, const RenderOptions& options) {
  std::string out;
  TextRenderer(out, options).show(diagnostic);
  return out;
}

std::string render(const Diagnostics& diagnostics, const RenderOptions& options) {
  std::string out;
  TextRenderer renderer(out, options);
  for (const Diagnostic& diagnostic : diagnostics.all()) {
    renderer.show(diagnostic);
  }
  if (diagnostics.is_full()) {
    renderer.closing(too_many_errors(diagnostics));
  }
  return out;
}

std::string render_json(const Diagnostics& diagnostics) {
  nlohmann::ordered_json out;
  out["errors"] = diagnostics.error_count();
  out["warnings"] = diagnostics.warning_count();
  out["truncated"] = diagnostics.is_full();
  out["diagnostics"] = nlohmann::ordered_json::array();
  for (const Diagnostic& diagnostic : diagnostics.all()) {
    out["diagnostics"].push_back(to_json(diagnostic));
  }
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

} // namespace pto::isa
