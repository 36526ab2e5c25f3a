// SPDX-License-Identifier: Apache-2.0
// The debugger itself: help, settings, files, quitting.
#include "debugger/command.h"
#include "debugger/setting.h"
#include "isa/insn_desc.h"
#include "isa/manual.h"
#include "isa/suggest.h"
#include "isa/table.h"
#include "simulator/number_text.h"

#include <algorithm>
#include <set>

namespace pto::dbg {

namespace {

// ---------------------------------------------------------------- help

void help_row(Debugger& debugger, const Command& command) {
  debugger.print("{}\n  {}\n", command.usage, command.summary);
  if (!command.help.empty()) {
    std::string_view rest = command.help;
    while (!rest.empty()) {
      const size_t end = rest.find('\n');
      debugger.print("  {}\n", rest.substr(0, end));
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    }
  }
  if (!command.aliases.empty()) {
    debugger.print("  also: {}\n", command.aliases);
  }
  debugger.print("  example: {}\n", command.example);
}

bool help(Debugger& debugger, std::string_view arguments) {
  const std::string_view topic = trim(arguments);
  if (topic.empty()) {
    for (unsigned g = 0; g <= static_cast<unsigned>(CommandGroup::kSession); ++g) {
      const auto group = static_cast<CommandGroup>(g);
      debugger.print("{}{}\n", g == 0 ? "" : "\n", title(group));
      for (const Command* command : all_commands()) {
        if (command->group == group) {
          debugger.print("  {:<18} {}\n", command->name, command->summary);
        }
      }
    }
    debugger.print("\n'help COMMAND' and 'help MNEMONIC' say more. Unique beginnings of names are "
                   "enough.\n");
    return true;
  }
  for (const Command* command : all_commands()) { // the exact name before all else
    if (command->name == topic) {
      help_row(debugger, *command);
      return true;
    }
  }
  std::set<std::string_view> seen;
  for (const Command* command : all_commands()) { // a group: info, delete
    if (command->name.size() > topic.size() && command->name.starts_with(topic) &&
        command->name[topic.size()] == ' ') {
      debugger.print("{:<18} {}\n", command->name, command->summary);
      seen.insert(command->name);
    }
  }
  if (!seen.empty()) {
    return true;
  }
  if (const isa::InsnDesc* desc = isa::find_insn(topic)) {
    debugger.print("{}", isa::explain_insn(*desc));
    return true;
  }
  for (const Setting& setting : all_settings()) {
    if (setting.name == topic) {
      debugger.print("set {} {}\n  {}\n  now: {}\n",
                     setting.name,
                     setting.usage,
                     setting.summary,
                     setting.show(debugger));
      return true;
    }
  }
  std::string error;
  const FoundCommand found = find_command(translate(topic), error);
  if (found.command == nullptr) {
    return debugger.fail_text(error);
  }
  help_row(debugger, *found.command);
  return true;
}

bool apropos(Debugger& debugger, std::string_view arguments) {
  const std::string_view word = trim(arguments);
  if (word.empty()) {
    return debugger.fail("'apropos' needs a word to look for");
  }
  uint64_t count = 0;
  for (const Command* command : all_commands()) {
    for (const std::string_view text :
         {command->name, command->aliases, command->summary, command->help}) {
      if (text.find(word) != std::string_view::npos) {
        debugger.print("{:<18} {}\n", command->name, command->summary);
        ++count;
        break;
      }
    }
  }
  if (count == 0) {
    debugger.print("Nothing about '{}'.\n", word);
  }
  return true;
}

// ---------------------------------------------------------------- set, show

bool assign(Debugger& debugger, std::string_view left, std::string_view right) {
  Evaluated place;
  Evaluated value;
  if (!debugger.evaluate(left, place) || !debugger.evaluate(right, value)) {
    return false;
  }
  std::string error;
  return debugger.session()->assign_all(place, value, error) || debugger.fail_text(error);
}

/// Position of an '=' that assigns: no comparison, outside brackets.
size_t find_assignment(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '=') {
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == '=') {
      ++i;
      continue;
    }
    if (i != 0 && (text[i - 1] == '!' || text[i - 1] == '<' || text[i - 1] == '>')) {
      continue;
    }
    return i;
  }
  return std::string_view::npos;
}

bool set(Debugger& debugger, std::string_view arguments) {
  std::string_view rest = trim(arguments);
  std::string_view word = next_word(rest);
  if (word == "var" || word == "variable") {
    word = {};
  } else {
    const Setting* setting = find_setting(word);
    if (setting != nullptr && !rest.starts_with("=")) {
      return setting->set(debugger, rest);
    }
    rest = trim(arguments);
  }
  const size_t equals = find_assignment(rest);
  if (equals == std::string_view::npos) {
    std::vector<std::string_view> names;
    for (const Setting& setting : all_settings()) {
      names.push_back(setting.name);
    }
    return debugger.fail("there is no setting '{}'{}; expected 'set SETTING VALUE' (show lists "
                         "them) or 'set PLACE = VALUE'",
                         word,
                         isa::did_you_mean(word, names));
  }
  return assign(debugger, rest.substr(0, equals), rest.substr(equals + 1));
}

bool show(Debugger& debugger, std::string_view arguments) {
  const std::string_view name = trim(arguments);
  if (name.empty()) {
    for (const Setting& setting : all_settings()) {
      debugger.print("{:<17} {}\n", setting.name, setting.show(debugger));
    }
    return true;
  }
  const Setting* setting = find_setting(name);
  if (setting == nullptr) {
    return debugger.fail("there is no setting '{}'; 'show' lists them", name);
  }
  debugger.print("{} is {}\n", setting->name, setting->show(debugger));
  return true;
}

// ---------------------------------------------------------------- files, quitting

bool file(Debugger& debugger, std::string_view arguments) {
  const std::string before = debugger.target().file;
  if (!trim(arguments).empty()) {
    debugger.target().file = trim(arguments);
  }
  if (debugger.target().file.empty()) {
    return debugger.fail("'file' needs a name: a .pto text or a .ptobj object");
  }
  if (!debugger.load()) {
    debugger.target().file = before;
    return false;
  }
  debugger.print("Kernel {} of {}\n", debugger.program()->kernel().name, debugger.target().file);
  return true;
}

bool source(Debugger& debugger, std::string_view arguments) {
  return trim(arguments).empty() ? debugger.fail("'source' needs the name of a file of commands")
                                 : debugger.run_script(std::string(trim(arguments)));
}

bool echo(Debugger& debugger, std::string_view arguments) {
  std::string text;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == '\\' && i + 1 < arguments.size()) {
      ++i;
      text += arguments[i] == 'n' ? '\n' : arguments[i] == 't' ? '\t' : arguments[i];
    } else {
      text += arguments[i];
    }
  }
  debugger.print("{}\n", text);
  return true;
}

bool quit(Debugger& debugger, std::string_view arguments) {
  int status = 0;
  if (!trim(arguments).empty()) {
    const auto asked = read_count(debugger, arguments, "exit status");
    if (!asked || *asked > 255) {
      return asked ? debugger.fail("an exit status is 0 to 255") : false;
    }
    status = static_cast<int>(*asked);
  }
  debugger.result().is_quit = true;
  debugger.result().exit_status = status;
  return true;
}

constexpr Command kRows[] = {
    {.name = "help",
     .aliases = "h",
     .usage = "help [COMMAND | MNEMONIC | SETTING]",
     .summary = "Lists the commands, or explains one, an insn or a setting.",
     .example = "help fma",
     .completes = Completes::kCommand,
     .run = help},
    {.name = "apropos",
     .usage = "apropos WORD",
     .summary = "Commands whose help has the word.",
     .example = "apropos barrier",
     .run = apropos},
    {.name = "set",
     .usage = "set SETTING VALUE | set PLACE = EXPRESSION",
     .summary = "Changes a setting, a register or memory.",
     .help =
         "Settings of the launch (arg, grid, block-size, profile, checks, mode) count from the\n"
         "next run. 'set $r0@* = 0' and 'set a[0]@8 = 1.5' write every lane and element. What the\n"
         "place cannot hold is refused. A write in the past replaces the former future.\n",
     .example = "set $r0 = 1",
     .completes = Completes::kSetting,
     .run = set},
    {.name = "show",
     .usage = "show [SETTING]",
     .summary = "Shows settings.",
     .example = "show lanes-shown",
     .completes = Completes::kSetting,
     .run = show},
    {.name = "file",
     .usage = "file [FILE]",
     .summary = "Loads a program, or the same one again.",
     .example = "file vector_add.pto",
     .completes = Completes::kFile,
     .run = file},
    {.name = "source",
     .usage = "source FILE",
     .summary = "Runs the commands in a file; the first that fails ends it.",
     .example = "source setup.ptodbg",
     .completes = Completes::kFile,
     .run = source},
    {.name = "echo",
     .usage = "echo TEXT",
     .summary = "Prints text.",
     .example = "echo here",
     .run = echo},
    {.name = "quit",
     .aliases = "q, exit",
     .usage = "quit [STATUS]",
     .summary = "Ends the debugger.",
     .example = "quit",
     .run = quit},
};

} // namespace

std::span<const Command> session_commands() {
  return kRows;
}

} // namespace pto::dbg
