// SPDX-License-Identifier: Apache-2.0
// Labels, functions, lines and pcs as places.
#include "debugger/location.h"

#include "isa/suggest.h"
#include "simulator/number_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace pto::dbg {

namespace {

using sim::Program;

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Insns of a line: the first of each run of insns that came from it.
std::vector<uint32_t> insns_of_line(const Program& program, uint32_t file, uint64_t line) {
  std::vector<uint32_t> pcs;
  for (uint32_t pc = 0; pc < program.insns().size(); ++pc) {
    const isa::SourceLoc loc = program.loc(pc);
    const bool is_here = loc.file == file && loc.line == line;
    if (is_here) {
      const isa::SourceLoc before = pc != 0 ? program.loc(pc - 1) : isa::SourceLoc{};
      if (pc == 0 || before.file != file || before.line != line) {
        pcs.push_back(pc);
      }
    }
  }
  return pcs;
}

std::optional<uint32_t> find_file(const Program& program, std::string_view name) {
  const std::vector<std::string>& files = program.object().files;
  for (uint32_t i = 0; i < files.size(); ++i) {
    const std::string_view file = files[i];
    if (file == name || (file.size() > name.size() && file.ends_with(name) &&
                         file[file.size() - name.size() - 1] == '/')) {
      return i;
    }
  }
  return std::nullopt;
}

std::optional<std::vector<uint32_t>>
line_location(const Program& program, uint32_t file, uint64_t line, std::string& error) {
  const uint64_t at = line_with_insn(program, file, line);
  if (at == 0) {
    const std::string name =
        file < program.object().files.size() ? program.object().files[file] : "the program";
    error = fmt::format("no insn comes from line {} of {} or after it", line, name);
    return std::nullopt;
  }
  return insns_of_line(program, file, at);
}

/// The file of the kernel's first insn.
uint32_t main_file(const Program& program) {
  return program.loc(program.entry_pc()).file;
}

} // namespace

std::optional<std::vector<uint32_t>> find_location(const Program& program,
                                                   std::string_view text,
                                                   std::optional<uint32_t> here,
                                                   std::string& error) {
  const isa::Object& object = program.object();
  if (text.empty() || text[0] == '+' || text[0] == '-') {
    if (!here) {
      error = "there is no current insn; expected a label, a line, a kernel or *PC";
      return std::nullopt;
    }
    if (text.empty()) {
      return std::vector<uint32_t>{*here};
    }
    std::string reason;
    const std::optional<uint64_t> count = sim::parse_count(text.substr(1), reason);
    const isa::SourceLoc loc = program.loc(*here);
    if (!count || loc.line == 0 || (text[0] == '-' && *count >= loc.line)) {
      error = fmt::format("'{}' is no line; expected +LINES or -LINES within the file", text);
      return std::nullopt;
    }
    const uint64_t line = text[0] == '+' ? loc.line + *count : loc.line - *count;
    if (*count != 0 && text[0] == '-' && line_with_insn(program, loc.file, line) >= loc.line) {
      error = fmt::format(
          "no insn comes from lines {} to {}, which is before the current one", line, loc.line - 1);
      return std::nullopt;
    }
    return line_location(program, loc.file, line, error);
  }
  if (text[0] == '*') {
    std::string reason;
    const std::optional<uint64_t> pc = sim::parse_count(text.substr(1), reason);
    if (!pc || *pc >= program.insns().size()) {
      error = fmt::format("there is no insn at '{}'; expected * and a pc from 0 to {}",
                          text,
                          program.insns().size() - 1);
      return std::nullopt;
    }
    return std::vector<uint32_t>{static_cast<uint32_t>(*pc)};
  }
  for (const isa::Function& function : object.functions) {
    if (function.name == text && function.insn_count != 0) {
      return std::vector<uint32_t>{function.first_pc};
    }
  }
  std::vector<uint32_t> pcs;
  const auto add_labels = [&](const isa::Function& function) {
    for (const isa::Label& label : function.labels) {
      if (label.name == text && label.pc < program.insns().size()) {
        pcs.push_back(label.pc);
      }
    }
  };
  add_labels(program.kernel());
  if (!pcs.empty()) {
    return pcs;
  }
  for (const isa::Function& function : object.functions) {
    if (!function.is_kernel) {
      add_labels(function);
    }
  }
  if (!pcs.empty()) {
    return pcs;
  }
  const size_t colon = text.rfind(':');
  const std::string_view line_text =
      colon == std::string_view::npos ? text : text.substr(colon + 1);
  std::string reason;
  if (is_number(line_text)) {
    const std::optional<uint64_t> line = sim::parse_count(line_text, reason);
    const std::optional<uint32_t> file = colon == std::string_view::npos
                                             ? std::optional<uint32_t>(main_file(program))
                                             : find_file(program, text.substr(0, colon));
    if (!line || *line == 0) {
      error = line ? std::string("there is no line 0: lines count from 1; *0 is the first insn")
                   : reason;
      return std::nullopt;
    }
    if (!file) {
      error = fmt::format("the program has no file '{}'{}; it has {}",
                          text.substr(0, colon),
                          "",
                          fmt::join(object.files, ", "));
      return std::nullopt;
    }
    return line_location(program, *file, *line, error);
  }
  const std::vector<std::string> names = location_names(program);
  const auto nearest = isa::nearest_name(text, names);
  error = fmt::format("there is no label, kernel or line '{}'{}",
                      text,
                      nearest ? fmt::format("; did you mean '{}'?", *nearest)
                              : "; expected a label, a kernel, LINE, FILE:LINE or *PC");
  return std::nullopt;
}

uint64_t line_with_insn(const Program& program, uint32_t file, uint64_t line) {
  uint64_t best = 0;
  for (uint32_t pc = 0; pc < program.insns().size(); ++pc) {
    const isa::SourceLoc loc = program.loc(pc);
    if (loc.file == file && loc.line >= line && (best == 0 || loc.line < best)) {
      best = loc.line;
    }
  }
  return best;
}

std::string describe_location(const Program& program, uint32_t pc) {
  if (pc >= program.insns().size()) {
    return "nowhere";
  }
  std::string text = program.place(pc);
  const isa::Function* function = program.object().function_at(pc);
  if (function == nullptr) {
    return text;
  }
  const isa::Label* nearest = nullptr;
  for (const isa::Label& label : function->labels) {
    if (label.pc <= pc && (nearest == nullptr || label.pc > nearest->pc)) {
      nearest = &label;
    }
  }
  const std::string_view name = nearest != nullptr ? nearest->name : function->name;
  const uint32_t offset = pc - (nearest != nullptr ? nearest->pc : function->first_pc);
  return offset == 0 ? fmt::format("{} in {}", text, name)
                     : fmt::format("{} in {}+{}", text, name, offset);
}

std::vector<std::string> location_names(const Program& program) {
  std::set<std::string> names;
  for (const isa::Function& function : program.object().functions) {
    names.insert(function.name);
    if (!function.is_kernel || &function == &program.kernel()) {
      for (const isa::Label& label : function.labels) {
        names.insert(label.name);
      }
    }
  }
  return {names.begin(), names.end()};
}

} // namespace pto::dbg
