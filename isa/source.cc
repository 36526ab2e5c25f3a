// SPDX-License-Identifier: Apache-2.0
// Line index and UTF-8 columns of a source text.
#include "isa/source.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace pto::isa {

SourceRange SourceRange::to(const SourceRange& last) const {
  if (file != last.file || last.end() < offset) {
    return *this;
  }
  return {file, offset, last.end() - offset};
}

SourceFile::SourceFile(std::string name, std::string text)
    : name_(std::move(name)), text_(std::move(text)) {}

SourceFile::SourceFile(std::string name,
                       std::string text,
                       Origin origin,
                       SourceRange parent,
                       uint32_t first_line,
                       std::string macro)
    : name_(std::move(name)), text_(std::move(text)), origin_(origin), parent_(parent),
      first_line_(first_line), macro_(std::move(macro)) {}

void SourceFile::index_lines() const {
  line_starts_.push_back(0);
  const char* const begin = text_.data();
  const char* const end = begin + text_.size();
  const char* at = begin;
  while (at != end) {
    const auto* newline =
        static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at)));
    if (newline == nullptr) {
      break;
    }
    at = newline + 1;
    line_starts_.push_back(static_cast<uint32_t>(at - begin));
  }
}

size_t SourceFile::line_index(uint32_t offset) const {
  if (line_starts_.empty()) {
    index_lines();
  }
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  return static_cast<size_t>(after - line_starts_.begin()) - 1;
}

uint32_t SourceFile::line_start(uint32_t offset) const {
  const size_t index = line_index(offset);
  return line_starts_[index];
}

LineColumn SourceFile::locate(uint32_t offset) const {
  offset = std::min(offset, static_cast<uint32_t>(text_.size()));
  const size_t index = line_index(offset);
  const uint32_t start = line_starts_[index];
  return {first_line_ + static_cast<uint32_t>(index),
          1 + count_characters(std::string_view(text_).substr(start, offset - start))};
}

std::string_view SourceFile::line_around(uint32_t offset) const {
  offset = std::min(offset, static_cast<uint32_t>(text_.size()));
  std::string_view line = std::string_view(text_).substr(line_start(offset));
  line = line.substr(0, line.find('\n'));
  if (!line.empty() && line.back() == '\r') {
    line.remove_suffix(1);
  }
  return line;
}

size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto is_tail = [&](size_t i) { return i < text.size() && (byte(i) & 0xC0) == 0x80; };
  const unsigned char lead = byte(0);
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xC2 && lead <= 0xDF) {
    return is_tail(1) ? 2 : 0;
  }
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool bad_second =
        text.size() > 1 && ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F));
    return is_tail(1) && is_tail(2) && !bad_second ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool bad_second =
        text.size() > 1 && ((lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F));
    return is_tail(1) && is_tail(2) && is_tail(3) && !bad_second ? 4 : 0;
  }
  return 0;
}

uint32_t count_characters(std::string_view text) {
  uint32_t count = 0;
  while (!text.empty()) {
    text.remove_prefix(std::max<size_t>(1, utf8_length(text)));
    ++count;
  }
  return count;
}

} // namespace pto::isa
