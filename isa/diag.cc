// SPDX-License-Identifier: Apache-2.0
// Collecting diagnostics and the -W switches. The printed forms are in diag_render.cc.
#include "isa/diag.h"

#include <algorithm>
#include <utility>

namespace pto::isa {

namespace {

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

} // namespace

Diagnostic& Diagnostic::expect(std::string text) {
  expected = std::move(text);
  return *this;
}

Diagnostic& Diagnostic::advise(std::string text) {
  help = std::move(text);
  return *this;
}

Diagnostic& Diagnostic::replace(SourceRange where, std::string text) {
  replaced = where;
  replacement = std::move(text);
  return *this;
}

Diagnostic& Diagnostic::note(SourceRange where, std::string text) {
  notes.push_back({std::move(text), where});
  return *this;
}

bool apply_warning_switch(std::string_view text,
                          const std::vector<std::string_view>& known_names,
                          DiagnosticOptions& options) {
  const auto is_known = [&](std::string_view name) {
    return std::find(known_names.begin(), known_names.end(), name) != known_names.end();
  };
  if (text == "error" || text == "no-error") {
    options.warnings_as_errors = text == "error";
    return true;
  }
  constexpr std::string_view kErrorPrefix = "error=";
  if (text.substr(0, kErrorPrefix.size()) == kErrorPrefix) {
    const std::string_view name = text.substr(kErrorPrefix.size());
    if (!is_known(name)) {
      return false;
    }
    options.error_warnings.emplace_back(name);
    std::erase(options.disabled_warnings, name);
    return true;
  }
  const bool disables = text.substr(0, 3) == "no-";
  const std::string_view name = disables ? text.substr(3) : text;
  if (!is_known(name)) {
    return false;
  }
  if (disables) {
    options.disabled_warnings.emplace_back(name);
  } else {
    std::erase(options.disabled_warnings, name);
  }
  return true;
}

Diagnostics::Diagnostics(DiagnosticOptions options) : options_(std::move(options)) {}

const SourceFile& Diagnostics::add_source(std::string name, std::string text) {
  return add_source(std::make_unique<SourceFile>(std::move(name), std::move(text)));
}

const SourceFile& Diagnostics::add_source(std::unique_ptr<SourceFile> file) {
  sources_.push_back(std::move(file));
  return *sources_.back();
}

bool Diagnostics::is_full() const {
  return options_.error_limit != 0 && error_count_ > options_.error_limit;
}

bool Diagnostics::is_enabled(std::string_view warning) const {
  return !options_.no_warnings && !contains(options_.disabled_warnings, warning);
}

Diagnostic& Diagnostics::keep(Diagnostic diagnostic) {
  const bool is_error = diagnostic.severity == Severity::kError;
  (is_error ? error_count_ : warning_count_) += 1;
  const bool is_past_limit = is_error && is_full();
  Diagnostic& place = is_past_limit ? dropped_ : kept_.emplace_back();
  place = std::move(diagnostic);
  // The way here: each macro call, innermost first. Includes are shown above the message.
  std::vector<const SourceFile*> expansions;
  for (const SourceFile* file = place.range.file; file != nullptr; file = file->parent().file) {
    if (file->origin() == SourceFile::Origin::kMacro) {
      expansions.push_back(file);
    }
  }
  // Of a deep chain the ends say most.
  constexpr size_t kShownInner = 4;
  constexpr size_t kShownOuter = 2;
  for (size_t i = 0; i < expansions.size(); ++i) {
    if (expansions.size() > kShownInner + kShownOuter + 1 && i == kShownInner) {
      const size_t hidden = expansions.size() - kShownInner - kShownOuter;
      place.note({}, std::to_string(hidden) + " further macro expansions");
      i += hidden;
    }
    place.note(expansions[i]->parent(), "expanded from macro '" + expansions[i]->macro() + "'");
  }
  return place;
}

Diagnostic& Diagnostics::error(SourceRange range, std::string message) {
  Diagnostic diagnostic;
  diagnostic.message = std::move(message);
  diagnostic.range = range;
  return keep(std::move(diagnostic));
}

Diagnostic& Diagnostics::warning(std::string_view name, SourceRange range, std::string message) {
  Diagnostic diagnostic;
  diagnostic.message = std::move(message);
  diagnostic.range = range;
  diagnostic.warning = name;
  if (!is_enabled(name)) {
    dropped_ = std::move(diagnostic);
    return dropped_;
  }
  const bool is_error = options_.warnings_as_errors || contains(options_.error_warnings, name);
  diagnostic.severity = is_error ? Severity::kError : Severity::kWarning;
  return keep(std::move(diagnostic));
}

} // namespace pto::isa
