// SPDX-License-Identifier: Apache-2.0
// ptoas's options: names, help and what excludes what.
#include "assembler/cli_options.h"

#include "assembler/asm_command.h"
#include "assembler/lints.h"
#include "isa/option_values.h"
#include "isa/suggest.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace pto::as {
namespace {

void declare(CLI::App& app, AsmOptions& options) {
  app.add_option("input", options.input, "PTO text or an object file; - for standard input");
  app.add_option("-o,--output", options.output, "Output file; - for standard output");
  app.add_flag("-d,--disassemble", options.disassemble, "Print an object file as text");
  app.add_flag("--no-loc", options.without_loc, "Leave .loc lines out of the disassembly");
  app.add_flag("--check", options.check, "Verify only");
  app.add_flag("--listing", options.listing, "Print address, encoding and source of each insn");
  app.add_option("--emit", options.emit, "Form of the output")
      ->check(isa::one_of(emit_forms()), fmt::format("{{{}}}", fmt::join(emit_forms(), ",")));
  app.add_option("--kernel", options.kernel, "With --emit=ascendc: this kernel alone");
  app.add_flag("--instrument{insns}",
               options.instrument,
               "With --emit=ascendc: clock reads, around insns or what =WHAT says")
      ->check(isa::one_of(instrument_forms()),
              fmt::format("{{{}}}", fmt::join(instrument_forms(), ",")));
  app.add_option("-I,--include", options.assemble.preprocess.include_dirs, "Folder for .include")
      ->allow_extra_args(false);
  app.add_option("-D,--define", options.assemble.preprocess.defines, "Constant NAME or NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option("-W", options.warnings, "NAME, no-NAME, error or error=NAME")
      ->allow_extra_args(false);
  app.add_option("--machine", options.assemble.machine, "Profile whose limits warnings use");
  app.add_flag("--list-instructions", options.list_instructions, "Every instruction in a line");
  app.add_flag("--list-warnings", options.list_warnings, "Every warning in a line");
  app.add_option("--explain", options.explain, "The page of one instruction");
  app.add_flag("--manual", options.manual, "The reference manual as Markdown");
  app.add_flag("--json", options.json, "Diagnostics and lists as JSON");
  isa::add_color(app, options.color);
  app.add_flag("-v,--verbose", options.verbose, "Say what each kernel uses");
  app.add_flag("-q,--quiet", options.quiet, "No warnings");
  app.set_version_flag("--version",
                       fmt::format("ptoas {} (PTO ISA {}, object format {})",
                                   PTO_VERSION,
                                   isa::kIsaVersion,
                                   isa::kObjectVersion));
}

void complete(const CLI::App& app, AsmOptions& options) {
  if (const std::string name = isa::empty_option(app); !name.empty()) {
    throw CLI::ValidationError(name, isa::kEmptyValue);
  }
  const std::vector<std::string_view> names = warning_names();
  options.diagnostics.no_warnings = options.quiet;
  for (const std::string& text : options.warnings) {
    if (!isa::apply_warning_switch(text, names, options.diagnostics)) {
      const std::string_view bare = std::string_view(text).substr(text.find("no-") == 0 ? 3 : 0);
      throw CLI::ParseError(
          fmt::format("unknown warning -W{}{}", text, isa::did_you_mean(bare, names)),
          CLI::ExitCodes::ValidationError);
    }
  }
  const bool is_translated = options.emit == "ascendc" || options.emit == "ascendc-host";
  if (!options.kernel.empty() && !is_translated) {
    throw CLI::ValidationError("--kernel",
                               "every kernel is taken; expected with --emit=ascendc or "
                               "ascendc-host");
  }
  if (!options.instrument.empty() && options.emit != "ascendc") {
    throw CLI::ValidationError("--instrument",
                               "no clock reads are written; expected with --emit=ascendc");
  }
  if (options.without_loc && !options.disassemble) {
    throw CLI::ValidationError("--no-loc", "nothing is disassembled; expected with -d");
  }
  if (options.check && !options.output.empty()) {
    throw CLI::ValidationError("--check", "it writes nothing; leave it or -o out");
  }
  if (options.json && options.verbose) {
    throw CLI::ValidationError("--verbose",
                               "it prints text, and --json promises JSON; --emit=json says what "
                               "each kernel uses");
  }
  if (options.json && options.manual) {
    throw CLI::ValidationError("--manual",
                               "it is Markdown, and --json promises JSON; use "
                               "--list-instructions");
  }
  if (options.input.empty() && !options.is_table()) {
    throw CLI::ParseError("no input; give a file, or - for standard input",
                          CLI::ExitCodes::RequiredError);
  }
}

} // namespace

ParsedAsmOptions parse_asm_options(int argc, char** argv, const isa::ProgramState& state) {
  AsmOptions options;
  CLI::App app("Assembler and disassembler of the PTO instruction set");
  app.name("ptoas"); // the usage line must not depend on where the program lies
  declare(app, options);
  try {
    app.parse(argc, argv);
    complete(app, options);
  } catch (const CLI::Success& success) {
    isa::print_success(app, success); // prints help or version
    return {std::nullopt, 0};
  } catch (const CLI::ParseError& error) {
    isa::print_error(state, isa::message_of(app, error), kAsmHelpAdvice);
    return {std::nullopt, 2};
  }
  return {options, 0};
}

} // namespace pto::as
