// SPDX-License-Identifier: Apache-2.0
// The assembler as a library: text -> Object.
#pragma once

#include "assembler/layout.h"
#include "assembler/preprocess.h"
#include "assembler/program.h"
#include "isa/diag.h"
#include "isa/object.h"

#include <optional>
#include <string>

namespace pto::as {

struct AssembleOptions {
  PreprocessOptions preprocess;
  /// Profile whose limits the warnings use, where the text names none; empty: the default one.
  std::string machine;
  bool run_lints = true;
};

/// Assembles `file` (added to `diags` before). Empty if an error was reported; warnings do not
/// count unless they were made errors.
[[nodiscard]] std::optional<isa::Object>
assemble(const isa::SourceFile& file, const AssembleOptions& options, isa::Diagnostics& diags);

/// The same from text; `name` is what messages call it and where .include looks first.
[[nodiscard]] std::optional<isa::Object> assemble_text(std::string name,
                                                       std::string text,
                                                       const AssembleOptions& options,
                                                       isa::Diagnostics& diags);

/// The same, with the places of insns and the analysis, for listings.
struct Assembly {
  Program program;
  Analysis analysis;
};
[[nodiscard]] std::optional<Assembly> assemble_program(const isa::SourceFile& file,
                                                       const AssembleOptions& options,
                                                       isa::Diagnostics& diags);

/// A program from a file of either kind: an object is read, a text assembled. Problems, also of
/// reading, go to `diags`.
[[nodiscard]] std::optional<isa::Object>
load_program(const std::string& path, const AssembleOptions& options, isa::Diagnostics& diags);

} // namespace pto::as
