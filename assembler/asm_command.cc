// SPDX-License-Identifier: Apache-2.0
// The work of ptoas. Its messages come before its results; as JSON they are one object at the end.
#include "assembler/asm_command.h"

#include "assembler/disassemble.h"
#include "assembler/lints.h"
#include "assembler/standard_input.h"
#include "isa/file_io.h"
#include "isa/issue_text.h"
#include "isa/machine_load.h"
#include "isa/manual.h"
#include "isa/output_files.h"
#include "isa/suggest.h"
#include "isa/table.h"
#include "runtime/npu/ascendc_emitter.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <map>
#include <span>
#include <unistd.h>

namespace pto::as {
namespace {

using isa::exit_status::kFailed;
using isa::exit_status::kGood;
using isa::exit_status::kUsage;

/// What --instrument reads clocks around.
const std::map<std::string, rt::Instrument> kInstruments = {
    {"", rt::Instrument::kNone},
    {"insns", rt::Instrument::kInsns},
    {"pairs", rt::Instrument::kPairs},
    {"pairs-from-second", rt::Instrument::kPairsFromSecond},
    {"blocks", rt::Instrument::kBlocks},
    {"kernel", rt::Instrument::kKernel},
};

std::optional<std::string>
print_ascendc(const isa::Object& object, const AsmOptions& options, isa::Diagnostics& diags) {
  const std::optional<rt::AscendC> file = rt::emit_ascendc(
      object, {.kernel = options.kernel, .instrument = kInstruments.at(options.instrument)}, diags);
  return file ? std::optional(file->text) : std::nullopt;
}

std::optional<std::string>
print_host(const isa::Object& object, const AsmOptions& options, isa::Diagnostics& diags) {
  return rt::emit_host(object, {.kernel = options.kernel}, diags);
}

/// What --emit can give; a further form is a further row. `translate` may fail, and warn.
struct Emitter {
  const char* name;
  std::string (*print)(const isa::Object&); // null: the object file itself, or `translate`
  std::optional<std::string> (*translate)(const isa::Object&,
                                          const AsmOptions&,
                                          isa::Diagnostics&) = nullptr;
};
constexpr Emitter kEmitters[] = {
    {"obj", nullptr},
    {"asm", [](const isa::Object& object) { return disassemble(object); }},
    {"json", [](const isa::Object& object) { return object_to_json(object) + "\n"; }},
    {"cfg-dot", [](const isa::Object& object) { return print_cfg(object); }},
    {"ascendc", nullptr, &print_ascendc},
    {"ascendc-host", nullptr, &print_host},
};

class AsmCommand {
public:
  AsmCommand(const AsmOptions& options, isa::ProgramState& state)
      : options_(options), state_(state), diags_(options.diagnostics) {
    inputs_.push_back({"the input", options.input});
    inputs_.push_back({"--machine", options.assemble.machine});
  }

  int run() {
    const int status = options_.is_table() ? print_table() : translate();
    if (options_.json && (!options_.is_table() || diags_.has_errors())) {
      show(diags_);
    }
    return status;
  }

private:
  void show(const isa::Diagnostics& diags) const {
    const isa::RenderOptions render = {.color = isa::use_color(options_.color, stderr)};
    const std::string text =
        options_.json ? isa::render_json(diags) + "\n" : isa::render(diags, render);
    std::fputs(text.c_str(), stderr);
  }

  /// A message without a place in the input.
  int fail(const std::string& message, int status = kFailed) {
    const char* advice = status == kUsage ? kAsmHelpAdvice : "";
    if (options_.json) {
      diags_.error({}, message).advise(advice);
    } else {
      isa::print_error(state_, message, advice);
    }
    return status;
  }

  int write_output(const std::string& path, std::span<const std::byte> bytes) {
    std::string error;
    if (!path.empty() && path != "-") {
      const std::vector<isa::OptionFile> outputs = {{"-o", path}};
      if (std::string same = isa::find_overwritten_file(inputs_, outputs); !same.empty()) {
        return fail(same, kUsage);
      }
      return isa::write_file_atomically(path, bytes, error) ? kGood : fail(error);
    }
    if (!isa::write_output(bytes, error)) {
      state_.has_reported_lost_output = true;
      return fail(error);
    }
    return kGood;
  }

  int write_text(const std::string& path, const std::string& text) {
    return write_output(path, std::as_bytes(std::span<const char>(text)));
  }

  int write_binary(const isa::Object& object) {
    std::string path = options_.output;
    if (path.empty()) {
      if (options_.input == "-") {
        return fail("an object from standard input needs -o FILE", kUsage);
      }
      const size_t slash = options_.input.find_last_of('/');
      const std::string name =
          slash == std::string::npos ? options_.input : options_.input.substr(slash + 1);
      path = name.substr(0, name.rfind('.')) + ".ptobj";
    }
    if (path == "-" && isatty(STDOUT_FILENO) != 0) {
      return fail("an object file is binary and not for a terminal; give -o FILE or a pipe",
                  kUsage);
    }
    std::string error;
    const std::optional<std::vector<uint8_t>> bytes = isa::write_object(object, error);
    return bytes ? write_output(path, std::as_bytes(std::span<const uint8_t>(*bytes)))
                 : fail(error);
  }

  int emit_translated(const Emitter& emitter, const isa::Object& object) {
    isa::Diagnostics own({.no_warnings = options_.quiet});
    isa::Diagnostics& diags = options_.json ? diags_ : own;
    const std::optional<std::string> text = emitter.translate(object, options_, diags);
    if (!own.all().empty()) {
      show(own);
    }
    return text ? write_text(options_.output, *text) : kFailed;
  }

  int emit(const isa::Object& object, std::span<const isa::SourceRange> ranges) {
    if (options_.verbose) {
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
    if (options_.check) {
      return kGood;
    }
    if (options_.listing) {
      const int status = write_text("", list_program(object, ranges));
      return status == kGood && !options_.output.empty() ? write_binary(object) : status;
    }
    if (options_.disassemble) {
      return write_text(options_.output, disassemble(object, {.with_loc = !options_.without_loc}));
    }
    for (const Emitter& emitter : kEmitters) {
      if (options_.emit != emitter.name) {
        continue;
      }
      if (emitter.translate != nullptr) {
        return emit_translated(emitter, object);
      }
      return emitter.print == nullptr ? write_binary(object)
                                      : write_text(options_.output, emitter.print(object));
    }
    return fail("--emit: unknown form", kUsage);
  }

  /// Text or object, from a file or standard input.
  std::optional<std::string> read_input(std::string& error) const {
    return options_.input == "-" ? read_standard_input(error)
                                 : read_text_file(options_.input, error);
  }

  /// A name that means nothing is of the command line, whether or not a warning needs the machine.
  int check_machine() {
    if (options_.assemble.machine.empty()) {
      return kGood;
    }
    isa::ProfileIssues issues;
    static_cast<void>(isa::load_machine(options_.assemble.machine, {}, issues));
    if (!isa::is_wrong_usage(issues)) {
      return kGood;
    }
    isa::report_issues(issues, diags_);
    if (!options_.json) {
      show(diags_);
    }
    return kUsage;
  }

  int translate() {
    if (const int status = check_machine(); status != kGood) {
      return status;
    }
    std::string error;
    std::optional<std::string> text = read_input(error);
    std::optional<isa::Object> object;
    std::optional<Assembly> assembly;
    if (!text) {
      diags_.error({}, error);
    } else {
      const bool takes_object =
          options_.disassemble || options_.listing || options_.check || options_.emit != "obj";
      const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(text->data()),
                                           text->size());
      if (takes_object && isa::looks_like_object(bytes)) {
        object = isa::read_object(bytes, error);
        if (!object) {
          diags_.error({}, fmt::format("{}: {}", input_name(), error));
        }
      } else {
        assembly = assemble(std::move(*text));
      }
    }
    if (!options_.json && !diags_.all().empty()) {
      show(diags_);
    }
    if (assembly) {
      return emit(assembly->program.object, assembly->program.insn_ranges);
    }
    return object ? emit(*object, {}) : kFailed;
  }

  [[nodiscard]] std::string input_name() const {
    return options_.input == "-" ? "<stdin>" : options_.input;
  }

  std::optional<Assembly> assemble(std::string text) {
    const bool is_empty = text.empty();
    const isa::SourceFile& file = diags_.add_source(input_name(), std::move(text));
    if (options_.disassemble) {
      diags_.error({&file, 0, 0}, is_empty ? "the file is empty" : "this is no object file")
          .expect("a .ptobj file, as -d takes")
          .advise("to see text in its canonical form: ptoas --emit=asm");
      return std::nullopt;
    }
    AssembleOptions assemble = options_.assemble;
    assemble.preprocess.read_file = [this](const std::string& path, std::string& error) {
      inputs_.push_back({"the included file", path});
      return read_text_file(path, error);
    };
    return assemble_program(file, assemble, diags_);
  }

  [[nodiscard]] static std::string warnings_text() {
    std::string out;
    for (const WarningInfo& warning : all_warnings()) {
      out += fmt::format("-W{:<20} {}\n", warning.name, warning.summary);
    }
    return out;
  }
  [[nodiscard]] static std::string warnings_json() {
    auto out = nlohmann::ordered_json::array();
    for (const WarningInfo& warning : all_warnings()) {
      out.push_back({{"name", warning.name}, {"summary", warning.summary}});
    }
    return out.dump(2) + "\n";
  }

  int print_table() {
    if (options_.manual) {
      return write_text(options_.output, isa::manual_markdown());
    }
    if (options_.list_warnings) {
      return write_text(options_.output, options_.json ? warnings_json() : warnings_text());
    }
    if (options_.list_instructions) {
      return write_text(options_.output,
                        options_.json ? isa::list_insns_json() + "\n" : isa::list_insns());
    }
    const std::string_view word = std::string_view(options_.explain);
    const std::string_view mnemonic = word.substr(0, word.find('.'));
    const isa::InsnDesc* desc = isa::find_insn(mnemonic);
    if (desc == nullptr) {
      return fail(fmt::format("unknown instruction '{}'{}",
                              mnemonic,
                              isa::did_you_mean(mnemonic, isa::all_mnemonics())),
                  kUsage);
    }
    return write_text(options_.output,
                      options_.json ? isa::explain_insn_json(*desc) + "\n"
                                    : isa::explain_insn(*desc));
  }

  const AsmOptions& options_;
  isa::ProgramState& state_;
  isa::Diagnostics diags_;
  std::vector<isa::OptionFile> inputs_;
};

} // namespace

std::vector<std::string> instrument_forms() {
  std::vector<std::string> forms;
  for (const auto& [name, instrument] : kInstruments) {
    if (instrument != rt::Instrument::kNone) {
      forms.push_back(name);
    }
  }
  return forms;
}

std::vector<std::string> emit_forms() {
  std::vector<std::string> forms;
  for (const Emitter& emitter : kEmitters) {
    forms.emplace_back(emitter.name);
  }
  return forms;
}

int run_asm(const AsmOptions& options, isa::ProgramState& state) {
  return AsmCommand(options, state).run();
}

} // namespace pto::as
