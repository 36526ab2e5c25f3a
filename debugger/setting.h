// SPDX-License-Identifier: Apache-2.0
// Settings of the debugger: a setting is a row.
#pragma once

#include "debugger/debugger.h"

#include <span>
#include <string>
#include <string_view>

namespace pto::dbg {

struct Setting {
  std::string_view name;
  std::string_view usage; // of the value
  std::string_view summary;
  bool (*set)(Debugger& debugger, std::string_view value) = nullptr;
  std::string (*show)(Debugger& debugger) = nullptr;
};

std::span<const Setting> all_settings();
/// By name or unique beginning; null if there is none.
const Setting* find_setting(std::string_view name);

} // namespace pto::dbg
