// SPDX-License-Identifier: Apache-2.0
// Errors and warnings about input: collected with their places, shown with carets or as JSON.
//
/// A reader takes `Diagnostics&`, reports what it finds and goes on; its result is an optional that
/// is empty when it reported an error. A message says what happened with the numbers; `expected`
/// says what would have been right, `help` what to do, `replace` gives the likely correction.
#pragma once

#include "isa/source.h"

#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace pto::isa {

enum class Severity { kError, kWarning };

/// Something else to look at: the first definition, the macro call, the open bracket.
struct DiagnosticNote {
  std::string message;
  SourceRange range;
};

struct Diagnostic {
  Severity severity = Severity::kError;
  std::string message;
  SourceRange range;
  std::string expected;    // "expected: ..." line; empty for none
  std::string help;        // "help: ..." line; empty for none
  std::string replacement; // likely text in place of `replaced`; empty for none
  SourceRange replaced;
  std::string_view warning; // name for -W switches; empty for an error
  std::vector<DiagnosticNote> notes;

  /// Fluent setters: diags.error(range, "...").expect("...").note(...);
  Diagnostic& expect(std::string text);
  Diagnostic& advise(std::string text);
  Diagnostic& replace(SourceRange where, std::string text);
  Diagnostic& note(SourceRange where, std::string text);
};

struct DiagnosticOptions {
  size_t error_limit = 20; // 0: no limit
  bool warnings_as_errors = false;
  bool no_warnings = false;
  std::vector<std::string> disabled_warnings;
  std::vector<std::string> error_warnings; // -Werror=NAME
};

/// Applies a -W switch without its "-W" ("no-unused-register", "unused-register", "error",
/// "error=unused-register", "no-error"). False if it names none of `known_names`.
[[nodiscard]] bool apply_warning_switch(std::string_view text,
                                        const std::vector<std::string_view>& known_names,
                                        DiagnosticOptions& options);

class Diagnostics {
public:
  explicit Diagnostics(DiagnosticOptions options = {});

  /// Keeps `text` alive as long as this object, so that ranges into it stay valid.
  const SourceFile& add_source(std::string name, std::string text);
  const SourceFile& add_source(std::unique_ptr<SourceFile> file);

  /// The reference is for setting further fields at once; it is valid until the next report.
  Diagnostic& error(SourceRange range, std::string message);
  Diagnostic& warning(std::string_view name, SourceRange range, std::string message);

  [[nodiscard]] bool has_errors() const { return error_count_ != 0; }
  [[nodiscard]] size_t error_count() const { return error_count_; }
  [[nodiscard]] size_t warning_count() const { return warning_count_; }
  /// There was an error past the limit: such are counted but not kept, and a reader may stop.
  [[nodiscard]] bool is_full() const;
  [[nodiscard]] bool is_enabled(std::string_view warning) const;
  [[nodiscard]] const std::vector<Diagnostic>& all() const { return kept_; }
  [[nodiscard]] const DiagnosticOptions& options() const { return options_; }

private:
  Diagnostic& keep(Diagnostic diagnostic);

  DiagnosticOptions options_;
  std::deque<std::unique_ptr<SourceFile>> sources_;
  std::vector<Diagnostic> kept_;
  Diagnostic dropped_; // what a report past the limit, or of a disabled warning, writes to
  size_t error_count_ = 0;
  size_t warning_count_ = 0;
};

enum class ColorMode { kAuto, kAlways, kNever };

/// kAuto: `stream` is a terminal, NO_COLOR is not set and TERM is not "dumb".
[[nodiscard]] bool use_color(ColorMode mode, std::FILE* stream);

struct RenderOptions {
  bool color = false;
  uint32_t width = 120; // a longer source line is cut to a window about the caret
};

/// Human form, one diagnostic after another and, past the limit, "too many errors".
[[nodiscard]] std::string render(const Diagnostics& diagnostics, const RenderOptions& options = {});
[[nodiscard]] std::string render(const Diagnostic& diagnostic, const RenderOptions& options = {});

/// {"errors": n, "warnings": n, "diagnostics": [{severity, message, file, line, column, ...}]},
/// indented, without a line end.
[[nodiscard]] std::string render_json(const Diagnostics& diagnostics);

} // namespace pto::isa
