// SPDX-License-Identifier: Apache-2.0
// What CLI11 leaves to its users, as templates, so that libraries need not know it: values that are
// there and empty, which it takes for not given, help that nobody can read, and messages that leave
// out what was expected. Also the values that options of several programs take.
#pragma once

#include "isa/diag.h"
#include "isa/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace pto::isa {

/// What is said of such.
inline constexpr const char* kEmptyValue = "its value is empty; give one, or leave it out";

/// The first option (`CLI::App` and its subcommands) that was given an empty text, "--max-cycles";
/// empty if there is none. Those in `allowed` may have one.
template <class App>
[[nodiscard]] std::string empty_option(const App& app,
                                       std::initializer_list<std::string_view> allowed = {}) {
  for (const auto* option : app.get_options()) {
    std::string name = option->get_name();
    if (option->count() == 0 || std::find(allowed.begin(), allowed.end(), name) != allowed.end()) {
      continue;
    }
    for (const std::string& value : option->results()) {
      if (value.empty()) {
        return name;
      }
    }
  }
  for (const auto* subcommand : app.get_subcommands()) {
    if (std::string name = empty_option(*subcommand, allowed); !name.empty()) {
      return name;
    }
  }
  return {};
}

/// Of --color.
[[nodiscard]] inline std::map<std::string, ColorMode> color_modes() {
  return {{"auto", ColorMode::kAuto}, {"always", ColorMode::kAlways}, {"never", ColorMode::kNever}};
}

/// What a check of an option says: empty if the text is good.
using OptionCheck = std::function<std::string(const std::string&)>;

/// For a whole number that is kept as a Number. Refuses what is none or does not fit; that it lies
/// between `least` and `most`, which the message names, is up to the program.
template <class Number>
[[nodiscard]] OptionCheck whole_number(Number least = 0,
                                       Number most = std::numeric_limits<Number>::max()) {
  return [=](const std::string& text) -> std::string {
    char* end = nullptr;
    errno = 0;
    const unsigned long long value = std::strtoull(text.c_str(), &end, 0);
    const bool is_number = end == text.c_str() + text.size();
    if (text.empty() || (is_number && errno == 0 && text.find('-') == std::string::npos &&
                         value <= std::numeric_limits<Number>::max())) {
      return {};
    }
    return fmt::format("'{}' is {}; expected {} to {}",
                       text,
                       is_number ? "out of range" : "no whole number",
                       least,
                       most);
  };
}

/// For a number; what the message says of its range, "0 or more", is up to the program as well.
[[nodiscard]] inline OptionCheck real_number(std::string range) {
  return [range = std::move(range)](const std::string& text) -> std::string {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || (end == text.c_str() + text.size() && !std::isnan(value))) {
      return {};
    }
    return fmt::format("'{}' is no number; expected {}", text, range);
  };
}

/// For one of some words.
[[nodiscard]] inline OptionCheck one_of(std::vector<std::string> words) {
  return [words = std::move(words)](const std::string& text) -> std::string {
    if (text.empty() || std::find(words.begin(), words.end(), text) != words.end()) {
      return {};
    }
    const std::vector<std::string_view> names(words.begin(), words.end());
    return fmt::format("there is no '{}'{}; expected one of: {}",
                       text,
                       did_you_mean(text, names),
                       fmt::join(words, ", "));
  };
}

/// --color of every program.
template <class App> void add_color(App& app, ColorMode& mode) {
  std::vector<std::string> words;
  for (const auto& [word, value] : color_modes()) {
    words.push_back(word);
  }
  app.template add_option_function<std::string>(
         "--color",
         [&mode](const std::string& word) {
           if (!word.empty()) { // empty_option() tells
             mode = color_modes().at(word);
           }
         },
         "auto (default), always or never")
      ->type_name("WHEN")
      ->check(one_of(std::move(words)));
}

/// Adds the options of `app` and of its subcommands that were given, as they are written.
template <class App> void collect_options(const App& app, std::vector<std::string>& names) {
  for (const auto* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
    for (const std::string& name : option->get_snames()) {
      names.push_back("-" + name);
    }
  }
  for (const auto* subcommand : app.get_subcommands()) {
    collect_options(*subcommand, names);
  }
}

/// What CLI::App::parse threw `error` for, with what was expected. A word that it could not place
/// is told first, whatever else is missing.
template <class App, class ParseError>
[[nodiscard]] std::string message_of(const App& app, const ParseError& error) {
  const std::string kind = error.get_name(); // that of words left over is the program's
  if (kind != app.get_name() && kind != "ExtrasError" && kind != "RequiredError") {
    return error.what();
  }
  std::vector<std::string> wrong = app.remaining(true);
  std::erase(wrong, "--");
  const bool has_option = std::any_of(
      wrong.begin(), wrong.end(), [](const std::string& word) { return word.starts_with('-'); });
  if (has_option) { // the others may be their values
    std::erase_if(wrong, [](const std::string& word) { return !word.starts_with('-'); });
  }
  std::vector<std::string> commands;
  for (const auto* subcommand : app.get_subcommands([](const App*) { return true; })) {
    commands.push_back(subcommand->get_name());
  }
  if (!has_option && !commands.empty() && app.get_subcommands().empty()) {
    return wrong.empty()
               ? fmt::format("a command is missing; expected one of: {}", fmt::join(commands, ", "))
               : one_of(commands)(wrong.front());
  }
  if (wrong.empty()) {
    return error.what();
  }
  std::vector<std::string> names;
  collect_options(app, names);
  std::string text = wrong.size() == 1 ? "The following argument was not expected: "
                                       : "The following arguments were not expected: ";
  for (const std::string& word : wrong) {
    const std::optional<std::string_view> nearest =
        nearest_name(std::string_view(word).substr(0, word.find('=')), names);
    text += fmt::format("{}{}{}",
                        &word == &wrong.front() ? "" : ", ",
                        word,
                        nearest ? fmt::format("; did you mean '{}'?", *nearest) : "");
  }
  return text;
}

/// Help or version, whatever CLI::App::parse threw `success` for. Like all results by way of stdio:
/// run_program tells why it was lost.
template <class App, class Success> void print_success(const App& app, const Success& success) {
  std::ostringstream text;
  app.exit(success, text, text);
  if (std::fputs(text.str().c_str(), stdout) == EOF) {
    throw std::system_error(errno, std::generic_category());
  }
}

} // namespace pto::isa
