// SPDX-License-Identifier: Apache-2.0
// Source text and places in it: what every diagnostic and every token points at.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pto::isa {

class SourceFile;

/// `length` bytes at `offset` of `file`; an empty length is a point. A default-made range names no
/// place (command line errors). It is valid as long as its SourceFile lives.
struct SourceRange {
  const SourceFile* file = nullptr;
  uint32_t offset = 0;
  uint32_t length = 0;

  [[nodiscard]] explicit operator bool() const { return file != nullptr; }
  [[nodiscard]] uint32_t end() const { return offset + length; }
  /// From the start of this range to the end of `last`, if both lie in the same file.
  [[nodiscard]] SourceRange to(const SourceRange& last) const;
};

/// Both start at 1. A column counts characters (UTF-8 code points), a tab is one.
struct LineColumn {
  uint32_t line = 0;
  uint32_t column = 0;
};

/// One text: a file, or the text that a macro call expanded to. Owned by Diagnostics, so that
/// whatever points at it can be shown. Not safe for use from two threads (the line index is lazy).
class SourceFile {
public:
  enum class Origin { kFile, kInclude, kMacro };

  SourceFile(std::string name, std::string text);
  /// Text that came from elsewhere: `parent` is the .include or the macro call. For a macro, `name`
  /// is the file with its definition, `first_line` the line there that the text starts on, and
  /// `macro` the macro's name.
  SourceFile(std::string name,
             std::string text,
             Origin origin,
             SourceRange parent,
             uint32_t first_line = 1,
             std::string macro = {});
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] Origin origin() const { return origin_; }
  [[nodiscard]] const SourceRange& parent() const { return parent_; }
  [[nodiscard]] const std::string& macro() const { return macro_; }
  [[nodiscard]] uint32_t first_line() const { return first_line_; }

  [[nodiscard]] LineColumn locate(uint32_t offset) const;
  /// The line that holds `offset`, without its line end ("\n" or "\r\n").
  [[nodiscard]] std::string_view line_around(uint32_t offset) const;
  [[nodiscard]] uint32_t line_start(uint32_t offset) const;

private:
  void index_lines() const;
  [[nodiscard]] size_t line_index(uint32_t offset) const;

  std::string name_;
  std::string text_;
  Origin origin_ = Origin::kFile;
  SourceRange parent_;
  uint32_t first_line_ = 1;
  std::string macro_;
  mutable std::vector<uint32_t> line_starts_;
};

/// Code points in `text`; a byte that is not UTF-8 counts as one.
[[nodiscard]] uint32_t count_characters(std::string_view text);

/// Length in bytes of the UTF-8 character at the start of `text` (which must not be empty), or 0 if
/// there is none (a stray or cut-off byte, an overlong form, a surrogate).
[[nodiscard]] size_t utf8_length(std::string_view text);

} // namespace pto::isa
