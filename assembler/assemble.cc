// SPDX-License-Identifier: Apache-2.0
// Order of the passes, and refusal of what is no text.
#include "assembler/assemble.h"

#include "assembler/lints.h"
#include "assembler/parser.h"
#include "isa/issue_text.h"
#include "isa/machine.h"

#include <fmt/format.h>

#include <cstring>

namespace pto::as {

namespace {

constexpr std::string_view kDefaultMachine = "reference";

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Text has no NUL bytes; other bytes are met one by one by the lexer.
bool check_is_text(const isa::SourceFile& file, isa::Diagnostics& diags) {
  const std::string_view text = file.text();
  if (isa::looks_like_object(bytes_of(text))) {
    const isa::SourceFile& magic = diags.add_source(file.name(), std::string(text.substr(0, 4)));
    diags.error({&magic, 0, 4}, "this is an object file, not text")
        .expect("PTO assembly")
        .advise("ptoas -d shows it as text; ptosim and ptodbg take it as it is");
    return false;
  }
  const size_t nul = text.substr(0, 65536).find('\0');
  if (nul != std::string_view::npos) {
    const bool is_utf16 = text.substr(0, 2) == "\xFF\xFE" || text.substr(0, 2) == "\xFE\xFF";
    diags
        .error({&file, static_cast<uint32_t>(nul), 1},
               is_utf16 ? "the file is UTF-16"
                        : "this is a binary file, not text: it holds a NUL "
                          "byte")
        .expect("PTO assembly as UTF-8 text");
    return false;
  }
  return true;
}

} // namespace

std::optional<Assembly> assemble_program(const isa::SourceFile& file,
                                         const AssembleOptions& options,
                                         isa::Diagnostics& diags) {
  if (!check_is_text(file, diags)) {
    return std::nullopt;
  }
  std::optional<Assembly> assembly(std::in_place);
  Parser(file, options.preprocess, assembly->program, diags).parse();
  if (diags.has_errors() || !finish_program(assembly->program, assembly->analysis, diags)) {
    return std::nullopt;
  }
  if (options.run_lints) {
    const std::string& named = assembly->program.object.machine;
    isa::ProfileIssues issues;
    const std::optional<isa::MachineProfile> machine =
        isa::load_machine(!named.empty()            ? std::string_view(named)
                          : options.machine.empty() ? kDefaultMachine
                                                    : options.machine,
                          issues);
    isa::report_issues(issues, diags);
    run_lints(assembly->program, assembly->analysis, machine ? &*machine : nullptr, diags);
  }
  if (diags.has_errors()) {
    return std::nullopt;
  }
  return assembly;
}

std::optional<isa::Object>
assemble(const isa::SourceFile& file, const AssembleOptions& options, isa::Diagnostics& diags) {
  std::optional<Assembly> assembly = assemble_program(file, options, diags);
  return assembly ? std::optional(std::move(assembly->program.object)) : std::nullopt;
}

std::optional<isa::Object> assemble_text(std::string name,
                                         std::string text,
                                         const AssembleOptions& options,
                                         isa::Diagnostics& diags) {
  const isa::SourceFile& file = diags.add_source(std::move(name), std::move(text));
  return assemble(file, options, diags);
}

std::optional<isa::Object>
load_program(const std::string& path, const AssembleOptions& options, isa::Diagnostics& diags) {
  std::string error;
  std::optional<std::string> text = options.preprocess.read_file(path, error);
  if (!text) {
    diags.error({}, error);
    return std::nullopt;
  }
  if (isa::looks_like_object(bytes_of(*text))) {
    std::optional<isa::Object> object = isa::read_object(bytes_of(*text), error);
    if (!object) {
      diags.error({}, fmt::format("{}: {}", path, error));
    }
    return object;
  }
  return assemble_text(path, std::move(*text), options, diags);
}

} // namespace pto::as
