// SPDX-License-Identifier: Apache-2.0
// Words that may follow what was typed: what a row's `completes` column says.
#include "debugger/command.h"
#include "debugger/expression_tree.h"
#include "debugger/setting.h"
#include "isa/table.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace pto::dbg {

namespace {

/// The word that is being typed: what stands behind the last character that no name has.
std::string_view last_word(std::string_view line, std::string_view extra) {
  size_t begin = line.size();
  while (begin > 0) {
    const char c = line[begin - 1];
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' &&
        extra.find(c) == std::string_view::npos) {
      break;
    }
    --begin;
  }
  return line.substr(begin);
}

class Words {
public:
  explicit Words(std::string_view prefix) : prefix_(prefix) {}
  void add(std::string_view word) {
    if (word.starts_with(prefix_)) {
      words_.emplace(word);
    }
  }
  std::vector<std::string> take() const { return {words_.begin(), words_.end()}; }

private:
  std::string_view prefix_;
  std::set<std::string> words_;
};

void add_expression_words(const sim::Program& program, Words& words) {
  for (const isa::Param& param : program.kernel().params) {
    words.add(param.name);
  }
  for (const isa::Symbol& symbol : program.object().symbols) {
    words.add(symbol.name);
  }
  for (const RegisterRef reg : shown_registers(program)) {
    words.add("$" + to_string(reg));
  }
  for (const std::string_view name : kVariableNames) {
    words.add(fmt::format("${}", name));
  }
  for (const isa::SpecialInfo& special : isa::kSpecials) {
    words.add(fmt::format("%{}", special.name));
  }
}

void add_files(Words& words, std::string_view prefix) {
  const size_t slash = prefix.rfind('/');
  const std::string folder(slash == std::string_view::npos ? "" : prefix.substr(0, slash + 1));
  std::error_code problem;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder.empty() ? "." : folder, problem)) {
    std::error_code ignored;
    words.add(folder + entry.path().filename().string() + (entry.is_directory(ignored) ? "/" : ""));
  }
}

} // namespace

std::vector<std::string> Debugger::complete(std::string_view line) const {
  while (!line.empty() && line.front() == ' ') {
    line.remove_prefix(1);
  }
  std::string error;
  // The command itself, while its words are being typed.
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) {
    Words words(line);
    for (const Command* command : all_commands()) {
      words.add(command->name.substr(0, command->name.find(' ')));
    }
    return words.take();
  }
  const std::string_view first = line.substr(0, space);
  for (const std::string_view group : {"info", "delete"}) {
    const std::string_view rest = line.substr(space + 1);
    if (!first.empty() && group.starts_with(first) && (group == "info" || first == group) &&
        rest.find(' ') == std::string_view::npos) {
      Words words(rest);
      for (const Command* command : all_commands()) {
        if (command->name.starts_with(group) && command->name.size() > group.size() &&
            command->name[group.size()] == ' ') {
          words.add(command->name.substr(group.size() + 1));
        }
      }
      return words.take();
    }
  }
  const FoundCommand found = find_command(line, error);
  if (found.command == nullptr) {
    return {};
  }
  const bool is_condition = found.arguments.find("if ") != std::string_view::npos;
  const Completes kind = found.command->completes == Completes::kLocation && is_condition
                             ? Completes::kExpression
                             : found.command->completes;
  switch (kind) {
  case Completes::kLocation: {
    Words words(last_word(line, ".:*/-"));
    if (program_) {
      for (const std::string& name : location_names(*program_)) {
        words.add(name);
      }
      for (const std::string& file : program_->object().files) {
        words.add(file + ":");
      }
    }
    return words.take();
  }
  case Completes::kExpression: {
    Words words(last_word(line, "$%."));
    if (program_) {
      add_expression_words(*program_, words);
    }
    return words.take();
  }
  case Completes::kFile: {
    const std::string_view prefix = line.substr(line.rfind(' ') + 1);
    Words words(prefix);
    add_files(words, prefix);
    return words.take();
  }
  case Completes::kCommand: {
    const std::string_view prefix = line.substr(line.rfind(' ') + 1);
    Words words(prefix);
    for (const Command* command : all_commands()) {
      words.add(command->name);
    }
    for (const isa::InsnDesc* desc : isa::all_insns()) {
      words.add(desc->mnemonic);
    }
    return words.take();
  }
  case Completes::kSetting: {
    Words words(last_word(line, "-$%."));
    for (const Setting& setting : all_settings()) {
      words.add(setting.name);
    }
    if (program_) {
      add_expression_words(*program_, words);
    }
    return words.take();
  }
  case Completes::kStopPoint: {
    Words words(last_word(line, ""));
    for (const StopPoint& point : session_ ? session_->stops().all() : stops_.all()) {
      words.add(std::to_string(point.id));
    }
    return words.take();
  }
  case Completes::kEvent: {
    Words words(last_word(line, ""));
    for (unsigned i = 0; i < kCatchKindCount; ++i) {
      words.add(name(static_cast<CatchKind>(i)));
    }
    return words.take();
  }
  case Completes::kNothing:
    break;
  }
  return {};
}

} // namespace pto::dbg
