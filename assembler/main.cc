// SPDX-License-Identifier: Apache-2.0
// ptoas: assembles, checks, lists and disassembles PTO programs.
#include "assembler/assemble.h"
#include "assembler/disassemble.h"
#include "assembler/lints.h"
#include "isa/error.h"
#include "isa/file_io.h"
#include "isa/manual.h"
#include "isa/suggest.h"
#include "isa/table.h"
#include "runtime/npu/ascendc_emitter.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <iterator>
#include <unistd.h>

namespace {

using namespace pto;

constexpr int kGood = 0;
constexpr int kBadInput = 1;
constexpr int kBadUsage = 2;
constexpr int kInternal = 3;

struct Options {
  std::string input;
  std::string output;
  std::string emit = "obj";
  bool disassemble = false;
  bool without_loc = false;
  bool check = false;
  bool listing = false;
  bool list_instructions = false;
  bool list_warnings = false;
  bool manual = false;
  std::string explain;
  std::string kernel;
  bool instrument = false;
  bool json = false;
  bool verbose = false;
  bool quiet = false;
  isa::ColorMode color = isa::ColorMode::kAuto;
  std::vector<std::string> warnings;
  as::AssembleOptions assemble;
};

std::optional<std::string>
print_ascendc(const isa::Object& object, const Options& options, isa::Diagnostics& diags) {
  const std::optional<rt::AscendC> file = rt::emit_ascendc(
      object,
      {.kernel = options.kernel,
       .instrument = options.instrument ? rt::Instrument::kInsns : rt::Instrument::kNone},
      diags);
  return file ? std::optional(file->text) : std::nullopt;
}

std::optional<std::string>
print_host(const isa::Object& object, const Options& options, isa::Diagnostics& diags) {
  return rt::emit_host(object, {.kernel = options.kernel}, diags);
}

/// What --emit can give; a further form is a further row. `translate` may fail, and warn.
struct Emitter {
  const char* name;
  std::string (*print)(const isa::Object&); // null: the object file itself, or `translate`
  std::optional<std::string> (*translate)(const isa::Object&,
                                          const Options&,
                                          isa::Diagnostics&) = nullptr;
};
constexpr Emitter kEmitters[] = {
    {"obj", nullptr},
    {"asm", [](const isa::Object& object) { return as::disassemble(object); }},
    {"json", [](const isa::Object& object) { return as::object_to_json(object) + "\n"; }},
    {"cfg-dot", [](const isa::Object& object) { return as::print_cfg(object); }},
    {"ascendc", nullptr, &print_ascendc},
    {"ascendc-host", nullptr, &print_host},
};

int usage_error(const std::string& message) {
  fmt::print(stderr, "ptoas: error: {}\nTry 'ptoas --help'.\n", message);
  return kBadUsage;
}

int write_output(const std::string& path, std::span<const std::byte> bytes) {
  if (path.empty() || path == "-") {
    const bool is_good = std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() &&
                         std::fflush(stdout) == 0;
    if (!is_good) {
      fmt::print(stderr, "ptoas: error: cannot write to standard output\n");
    }
    return is_good ? kGood : kBadInput;
  }
  std::string error;
  if (!isa::write_file_atomically(path, bytes, error)) {
    fmt::print(stderr, "ptoas: error: {}\n", error);
    return kBadInput;
  }
  return kGood;
}

int write_text(const std::string& path, const std::string& text) {
  return write_output(path, std::as_bytes(std::span<const char>(text)));
}

int write_binary(const Options& options, const isa::Object& object) {
  std::string path = options.output;
  if (path.empty()) {
    if (options.input == "-") {
      return usage_error("an object from standard input needs -o FILE");
    }
    const size_t slash = options.input.find_last_of('/');
    const std::string name =
        slash == std::string::npos ? options.input : options.input.substr(slash + 1);
    path = name.substr(0, name.rfind('.')) + ".ptobj";
  }
  if (path == "-" && isatty(STDOUT_FILENO) != 0) {
    return usage_error("an object file is binary and not for a terminal; give -o FILE or a pipe");
  }
  std::string error;
  const std::optional<std::vector<uint8_t>> bytes = isa::write_object(object, error);
  if (!bytes) {
    fmt::print(stderr, "ptoas: error: {}\n", error);
    return kBadInput;
  }
  return write_output(path, std::as_bytes(std::span<const uint8_t>(*bytes)));
}

// Text or object, from a file or standard input.
std::optional<std::string> read_input(const std::string& path, std::string& error) {
  if (path != "-") {
    return as::read_text_file(path, error);
  }
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

void show(const Options& options, const isa::Diagnostics& diags) {
  if (options.json) {
    fmt::print(stderr, "{}\n", isa::render_json(diags));
  } else {
    const isa::RenderOptions render = {.color = isa::use_color(options.color, stderr)};
    fmt::print(stderr, "{}", isa::render(diags, render));
  }
}

int emit(const Options& options,
         const isa::Object& object,
         std::span<const isa::SourceRange> ranges) {
  if (options.verbose) {
    for (const isa::Function& function : object.functions) {
      fmt::print(stderr,
                 "{} {}: {} instructions, {} registers a lane, {} bytes of scratchpad\n",
                 function.is_kernel ? "kernel" : "function",
                 function.name,
                 function.insn_count,
                 function.register_use(),
                 function.l1_bytes);
    }
  }
  if (options.check) {
    return kGood;
  }
  if (options.listing) {
    const int status = write_text("", as::list_program(object, ranges));
    return status == kGood && !options.output.empty() ? write_binary(options, object) : status;
  }
  if (options.disassemble) {
    return write_text(options.output, as::disassemble(object, {.with_loc = !options.without_loc}));
  }
  for (const Emitter& emitter : kEmitters) {
    if (options.emit != emitter.name) {
      continue;
    }
    if (emitter.translate != nullptr) {
      isa::Diagnostics diags({.no_warnings = options.quiet});
      const std::optional<std::string> text = emitter.translate(object, options, diags);
      if (!diags.all().empty()) {
        show(options, diags);
      }
      return text ? write_text(options.output, *text) : kBadInput;
    }
    return emitter.print == nullptr ? write_binary(options, object)
                                    : write_text(options.output, emitter.print(object));
  }
  return usage_error("--emit: unknown form");
}

int run(const Options& options) {
  isa::DiagnosticOptions diagnostic_options;
  diagnostic_options.no_warnings = options.quiet;
  const std::vector<std::string_view> names = as::warning_names();
  for (const std::string& text : options.warnings) {
    if (!isa::apply_warning_switch(text, names, diagnostic_options)) {
      const std::string_view bare = std::string_view(text).substr(text.find("no-") == 0 ? 3 : 0);
      return usage_error(
          fmt::format("unknown warning -W{}{}", text, isa::did_you_mean(bare, names)));
    }
  }
  isa::Diagnostics diags(diagnostic_options);
  std::string error;
  std::optional<std::string> text = read_input(options.input, error);
  if (!text) {
    diags.error({}, error);
    show(options, diags);
    return kBadInput;
  }
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(text->data()),
                                       text->size());
  const bool is_object = isa::looks_like_object(bytes);
  const std::string name = options.input == "-" ? "<stdin>" : options.input;
  const bool takes_object =
      options.disassemble || options.listing || options.check || options.emit != "obj";
  std::optional<isa::Object> object;
  std::optional<as::Assembly> assembly;
  if (is_object && takes_object) {
    object = isa::read_object(bytes, error);
    if (!object) {
      diags.error({}, fmt::format("{}: {}", name, error));
    }
  } else if (options.disassemble) {
    const isa::SourceFile& file = diags.add_source(name, *text);
    diags.error({&file, 0, 0}, text->empty() ? "the file is empty" : "this is no object file")
        .expect("a .ptobj file, as -d takes")
        .advise("to see text in its canonical form: ptoas --emit=asm");
  } else {
    const isa::SourceFile& file = diags.add_source(name, std::move(*text));
    assembly = as::assemble_program(file, options.assemble, diags);
  }
  if (options.json || !diags.all().empty()) {
    show(options, diags);
  }
  if (assembly) {
    return emit(options, assembly->program.object, assembly->program.insn_ranges);
  }
  return object ? emit(options, *object, {}) : kBadInput;
}

int print_tables(const Options& options) {
  if (options.manual) {
    return write_text(options.output, isa::manual_markdown());
  }
  if (options.list_warnings) {
    std::string out;
    for (const as::WarningInfo& warning : as::all_warnings()) {
      out += fmt::format("-W{:<20} {}\n", warning.name, warning.summary);
    }
    return write_text(options.output, out);
  }
  if (options.list_instructions) {
    return write_text(options.output,
                      options.json ? isa::list_insns_json() + "\n" : isa::list_insns());
  }
  const std::string_view word = std::string_view(options.explain);
  const std::string_view mnemonic = word.substr(0, word.find('.'));
  const isa::InsnDesc* desc = isa::find_insn(mnemonic);
  if (desc == nullptr) {
    return usage_error(fmt::format(
        "unknown instruction '{}'{}", mnemonic, isa::did_you_mean(mnemonic, isa::all_mnemonics())));
  }
  return write_text(options.output, isa::explain_insn(*desc));
}

void declare(CLI::App& app, Options& options) {
  app.add_option("input", options.input, "PTO text or an object file; - for standard input");
  app.add_option("-o,--output", options.output, "Output file; - for standard output");
  app.add_flag("-d,--disassemble", options.disassemble, "Print an object file as text");
  app.add_flag("--no-loc", options.without_loc, "Leave .loc lines out of the disassembly");
  app.add_flag("--check", options.check, "Verify only");
  app.add_flag("--listing", options.listing, "Print address, encoding and source of each insn");
  std::vector<std::string> forms;
  for (const Emitter& emitter : kEmitters) {
    forms.emplace_back(emitter.name);
  }
  app.add_option("--emit", options.emit, "Form of the output")->check(CLI::IsMember(forms));
  app.add_option("--kernel", options.kernel, "With --emit=ascendc: this kernel alone");
  app.add_flag("--instrument", options.instrument, "With --emit=ascendc: clock reads around insns");
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
  const std::map<std::string, isa::ColorMode> colors = {{"auto", isa::ColorMode::kAuto},
                                                        {"always", isa::ColorMode::kAlways},
                                                        {"never", isa::ColorMode::kNever}};
  app.add_option("--color", options.color, "auto, always or never")
      ->transform(CLI::CheckedTransformer(colors));
  app.add_flag("-v,--verbose", options.verbose, "Say what each kernel uses");
  app.add_flag("-q,--quiet", options.quiet, "No warnings");
  app.set_version_flag("--version",
                       fmt::format("ptoas {} (PTO ISA {}, object format {})",
                                   PTO_VERSION,
                                   isa::kIsaVersion,
                                   isa::kObjectVersion));
}

} // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Assembler and disassembler of the PTO instruction set");
  app.name("ptoas"); // the usage line must not depend on where the program lies
  declare(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : usage_error(error.what());
  }
  try {
    if (options.manual || options.list_instructions || options.list_warnings ||
        !options.explain.empty()) {
      return print_tables(options);
    }
    if (options.input.empty()) {
      return usage_error("no input; give a file, or - for standard input");
    }
    return run(options);
  } catch (const pto::InternalError& error) {
    fmt::print(stderr, "ptoas: {}\n", error.what());
    return kInternal;
  } catch (const std::exception& error) {
    fmt::print(stderr, "ptoas: internal error: {}\n", error.what());
    return kInternal;
  }
}
