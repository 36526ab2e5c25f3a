// SPDX-License-Identifier: Apache-2.0
// Finding rows, and the small languages that their arguments have in common.
#include "debugger/command.h"
#include "isa/suggest.h"
#include "simulator/number_text.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace pto::dbg {

namespace {

using Entry = std::pair<std::string_view, const Command*>; // a spelling and its row

/// Calls act(spelling) for the name and every alias. Aliases are separated by ", ".
template <class Act> void for_each_spelling(const Command& command, Act&& act) {
  act(command.name);
  std::string_view rest = command.aliases;
  while (!rest.empty()) {
    const size_t comma = rest.find(", ");
    act(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 2);
  }
}

std::vector<Entry> spellings() {
  std::vector<Entry> all;
  for (const Command* command : all_commands()) {
    for_each_spelling(*command, [&](std::string_view word) { all.emplace_back(word, command); });
  }
  return all;
}

/// Ends where a word of a command's name ends: at a space, and where print/x has its slash.
size_t word_end(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && std::isspace(static_cast<unsigned char>(text[end])) == 0 &&
         text[end] != '/') {
    if (std::isalnum(static_cast<unsigned char>(text[end])) == 0 && text[end] != '-' &&
        text[end] != '_' && text[end] != '?' && text[end] != '!') {
      break;
    }
    ++end;
  }
  return end;
}

/// Spellings of other debuggers (docs/debugging.md lists them); longer ones first.
constexpr std::array<std::pair<std::string_view, std::string_view>, 31> kForeign = {{
    {"ascend info devices", "info machine"},
    {"ascend info summary", "info allocations"},
    {"ascend info threads", "info warps"},
    {"ascend info stream", "info launch"},
    {"ascend info blocks", "info blocks"},
    {"ascend info cores", "info cores"},
    {"ascend info tasks", "info launch"},
    {"ascend thread", "thread"},
    {"ascend aic", "core"},
    {"ascend aiv", "core"},
    {"breakpoint delete", "delete"},
    {"breakpoint disable", "disable"},
    {"breakpoint enable", "enable"},
    {"breakpoint list", "info breakpoints"},
    {"breakpoint set -n", "break"},
    {"br l", "info breakpoints"},
    {"cuda block", "block"},
    {"cuda lane", "lane"},
    {"cuda warp", "warp"},
    {"frame variable", "info locals"},
    {"i", "info"},
    {"info cuda blocks", "info blocks"},
    {"info cuda lanes", "info lanes"},
    {"info cuda warps", "info warps"},
    {"memory read", "x"},
    {"register read", "info registers"},
    {"re r", "info registers"},
    {"thread backtrace", "backtrace"},
    {"thread step-in", "stepi"},
    {"thread step-out", "finish"},
    {"thread step-over", "next"},
}};

} // namespace

std::string_view title(CommandGroup group) {
  static constexpr std::string_view kTitles[] = {"Running",
                                                 "Going back",
                                                 "Stopping",
                                                 "Focus",
                                                 "Looking and changing",
                                                 "Information",
                                                 "Time",
                                                 "The debugger itself"};
  return kTitles[static_cast<unsigned>(group)];
}

std::vector<const Command*> all_commands() {
  std::vector<const Command*> all;
  for (const std::span<const Command> rows : {run_commands(),
                                              back_commands(),
                                              stop_commands(),
                                              focus_commands(),
                                              look_commands(),
                                              info_commands(),
                                              memory_commands(),
                                              launch_commands(),
                                              time_commands(),
                                              session_commands()}) {
    for (const Command& row : rows) {
      all.push_back(&row);
    }
  }
  return all;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.remove_suffix(1);
  }
  return text;
}

std::string_view next_word(std::string_view& text) {
  text = trim(text);
  size_t end = 0;
  while (end < text.size() && std::isspace(static_cast<unsigned char>(text[end])) == 0) {
    ++end;
  }
  const std::string_view word = text.substr(0, end);
  text = trim(text.substr(end));
  return word;
}

std::string translate(std::string_view line) {
  line = trim(line);
  // breakpoint set -f FILE -l LINE
  constexpr std::string_view kSet = "breakpoint set -f ";
  if (line.starts_with(kSet)) {
    std::string_view rest = line.substr(kSet.size());
    const std::string_view file = next_word(rest);
    if (next_word(rest) == "-l") {
      return fmt::format("break {}:{}", file, rest);
    }
  }
  for (const auto& [theirs, ours] : kForeign) {
    const char after = line.size() > theirs.size() ? line[theirs.size()] : ' ';
    if (line.starts_with(theirs) && (after == ' ' || after == '/')) {
      return std::string(ours) + std::string(line.substr(theirs.size()));
    }
  }
  constexpr std::string_view kPrefix = "pto ";
  if (line.starts_with(kPrefix)) {
    return translate(line.substr(kPrefix.size()));
  }
  return std::string(line);
}

FoundCommand find_command(std::string_view line, std::string& error) {
  line = trim(line);
  std::vector<Entry> candidates = spellings();
  std::string typed;
  size_t word_index = 0;
  // Word by word: an exact word wins, else all spellings whose word has it as a prefix stay.
  for (;;) {
    const size_t end = word_end(line);
    const std::string_view word = line.substr(0, end);
    const auto word_of = [&](std::string_view spelling) -> std::string_view {
      for (size_t i = 0; i < word_index; ++i) {
        const size_t space = spelling.find(' ');
        if (space == std::string_view::npos) {
          return {};
        }
        spelling.remove_prefix(space + 1);
      }
      return spelling.substr(0, spelling.find(' '));
    };
    std::vector<Entry> exact;
    std::vector<Entry> prefixed;
    for (const Entry& entry : candidates) {
      const std::string_view theirs = word_of(entry.first);
      if (!word.empty() && theirs == word) {
        exact.push_back(entry);
      } else if (!word.empty() && theirs.starts_with(word)) {
        prefixed.push_back(entry);
      }
    }
    std::vector<Entry> kept = exact.empty() ? prefixed : exact;
    const auto is_complete = [&](const Entry& entry) {
      return static_cast<size_t>(std::count(entry.first.begin(), entry.first.end(), ' ')) ==
             word_index;
    };
    if (kept.empty()) {
      // Perhaps the words before were a command of their own.
      std::vector<Entry> shorter;
      for (const Entry& entry : candidates) {
        if (static_cast<size_t>(std::count(entry.first.begin(), entry.first.end(), ' ')) + 1 ==
            word_index) {
          shorter.push_back(entry);
        }
      }
      if (word_index != 0 && !shorter.empty()) {
        return {shorter[0].second, line};
      }
      std::vector<std::string_view> names;
      std::vector<std::string> choices;
      for (const Entry& entry : candidates) {
        const std::string_view theirs = word_of(entry.first);
        if (!theirs.empty() && std::find(names.begin(), names.end(), theirs) == names.end()) {
          names.push_back(theirs);
          choices.emplace_back(theirs);
        }
      }
      std::sort(choices.begin(), choices.end());
      if (word_index == 0) {
        error = fmt::format("there is no command '{}'{}; 'help' lists them",
                            word.empty() ? line.substr(0, 20) : word,
                            isa::did_you_mean(word, names));
      } else {
        error = fmt::format("'{}' {}{}; expected one of {}",
                            typed,
                            word.empty() ? std::string("needs a word more")
                                         : fmt::format("has no '{}'", word),
                            word.empty() ? std::string() : isa::did_you_mean(word, names),
                            fmt::join(choices, ", "));
      }
      return {};
    }
    // All spellings of one row: its name is enough. Several rows: ambiguous, unless a word follows.
    std::vector<const Command*> rows;
    std::vector<std::string_view> words;
    for (const Entry& entry : kept) {
      if (std::find(rows.begin(), rows.end(), entry.second) == rows.end()) {
        rows.push_back(entry.second);
      }
      const std::string_view theirs = word_of(entry.first);
      if (std::find(words.begin(), words.end(), theirs) == words.end()) {
        words.push_back(theirs);
      }
    }
    const bool is_group = words.size() == 1 && !is_complete(kept[0]);
    if (rows.size() > 1 && words.size() > 1) {
      // Of several words, those that are names of rows count, not aliases.
      std::sort(words.begin(), words.end());
      error = fmt::format("'{}{}{}' is ambiguous: {}",
                          typed,
                          typed.empty() ? "" : " ",
                          word,
                          fmt::join(words, ", "));
      return {};
    }
    typed += (typed.empty() ? "" : " ") + std::string(word_of(kept[0].first));
    line = trim(line.substr(end));
    const bool has_longer = std::any_of(
        kept.begin(), kept.end(), [&](const Entry& entry) { return !is_complete(entry); });
    if (rows.size() == 1 && !is_group) {
      const bool needs_words = std::none_of(kept.begin(), kept.end(), is_complete);
      if (!needs_words) {
        return {rows[0], line};
      }
    }
    if (!has_longer) {
      return {rows[0], line};
    }
    candidates = std::move(kept);
    ++word_index;
  }
}

std::optional<uint64_t>
read_count(Debugger& debugger, std::string_view text, std::string_view what) {
  text = trim(text);
  if (text.empty()) {
    debugger.fail("{}: a number is missing", what);
    return std::nullopt;
  }
  std::string error;
  const std::optional<uint64_t> value = sim::parse_count(text, error);
  if (!value) {
    const bool is_number = text.find_first_not_of("0123456789_") == std::string_view::npos;
    debugger.fail(
        "{}: {}", what, is_number ? error : fmt::format("'{}' is no number from 0", text));
  }
  return value;
}

std::optional<uint64_t>
read_amount(Debugger& debugger, std::string_view text, uint64_t otherwise, std::string_view what) {
  text = trim(text);
  if (text.empty()) {
    return otherwise;
  }
  Evaluated value;
  if (debugger.session() == nullptr || debugger.program() == nullptr) {
    return read_count(debugger, text, what);
  }
  if (!debugger.evaluate(text, value)) {
    return std::nullopt;
  }
  std::string error;
  const std::optional<uint64_t> amount =
      value.is_array ? std::nullopt : bits_for(value.value, isa::Type::kU64, error);
  if (!amount && !value.is_array && value.value.is_float()) {
    debugger.fail("{}: {} is no whole number from 0", what, to_string(value.value));
  } else if (!amount) {
    debugger.fail(
        "{}: {}", what, value.is_array ? fmt::format("'{}' are several numbers", text) : error);
  } else if (value.value.type != isa::Type::kU64 && value.value.type != isa::Type::kB64 &&
             value.value.as_integer() < 0) {
    debugger.fail("{}: {} is below 0", what, value.value.as_integer());
    return std::nullopt;
  }
  return amount;
}

std::optional<std::string> next_path(Debugger& debugger,
                                     std::string_view& text,
                                     std::initializer_list<std::string_view> ends) {
  text = trim(text);
  if (!text.empty() && (text[0] == '"' || text[0] == '\'')) {
    const size_t close = text.find(text[0], 1);
    if (close == std::string_view::npos) {
      debugger.fail("the closing {} of the file's name is missing", text[0]);
      return std::nullopt;
    }
    std::string path(text.substr(1, close - 1));
    text = trim(text.substr(close + 1));
    return path;
  }
  size_t end = std::string_view::npos; // the first ending that a space follows
  for (const std::string_view ending : ends) {
    const size_t at = text.find(std::string(ending) + " ");
    if (at != std::string_view::npos) {
      end = std::min(end, at + ending.size());
    }
  }
  if (end == std::string_view::npos) {
    return std::string(next_word(text));
  }
  std::string path(text.substr(0, end));
  text = trim(text.substr(end));
  return path;
}

std::optional<std::vector<int>>
read_ids(Debugger& debugger, std::string_view text, std::string_view what) {
  std::vector<int> ids;
  std::string list(text);
  std::replace(list.begin(), list.end(), ',', ' ');
  std::string_view rest = list;
  while (!trim(rest).empty()) {
    const std::string_view word = next_word(rest);
    const size_t dash = word.find('-', 1);
    std::string error;
    const auto first = sim::parse_count(word.substr(0, dash), error);
    const auto last =
        dash == std::string_view::npos ? first : sim::parse_count(word.substr(dash + 1), error);
    if (!first || !last || *first > *last || *last > 1000000) {
      debugger.fail("'{}' is no number of a {}; expected such as 3, 1-4 or 1 2 5", word, what);
      return std::nullopt;
    }
    for (uint64_t id = *first; id <= *last; ++id) {
      ids.push_back(static_cast<int>(id));
    }
  }
  return ids;
}

} // namespace pto::dbg
