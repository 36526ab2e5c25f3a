// SPDX-License-Identifier: Apache-2.0
// What CLI11 leaves to its users, as templates, so that libraries need not know it: values that are
// there and empty, which it takes for not given, and help that nobody can read. Also the values
// that options of several programs take.
#pragma once

#include "isa/diag.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <initializer_list>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

namespace pto::isa {

/// What is said of such.
inline constexpr const char* kEmptyValue = "its value is empty; give one, or leave it out";

/// The first option (`CLI::App` and its subcommands) that was given an empty text, "--max-cycles";
/// empty if there is none. Those in `allowed` may have one.
template <class App>
[[nodiscard]] std::string empty_option(const App& app,
                                       std::initializer_list<std::string_view> allowed = {}) {
  for (const auto* option : app.get_options()) {
    const std::string name = option->get_name();
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
    if (const std::string name = empty_option(*subcommand, allowed); !name.empty()) {
      return name;
    }
  }
  return {};
}

/// Of --color.
[[nodiscard]] inline std::map<std::string, ColorMode> color_modes() {
  return {{"auto", ColorMode::kAuto}, {"always", ColorMode::kAlways}, {"never", ColorMode::kNever}};
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
