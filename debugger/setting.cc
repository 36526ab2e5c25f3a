// SPDX-License-Identifier: Apache-2.0
// The settings: what is launched, and how much is shown.
#include "debugger/setting.h"

#include "debugger/command.h"
#include "simulator/launch_setup.h"

#include <algorithm>

namespace pto::dbg {

namespace {

template <uint64_t DebuggerSettings::*kMember, uint64_t kLeast>
bool set_number(Debugger& debugger, std::string_view value) {
  if (trim(value) == "unlimited") {
    debugger.settings().*kMember = UINT64_MAX;
    return true;
  }
  const auto number = read_count(debugger, value, "value");
  if (!number) {
    return false;
  }
  if (*number < kLeast) {
    return debugger.fail("{} is too small; expected at least {}", *number, kLeast);
  }
  debugger.settings().*kMember = *number;
  return true;
}
template <uint64_t DebuggerSettings::*kMember> std::string show_number(Debugger& debugger) {
  const uint64_t value = debugger.settings().*kMember;
  return value == UINT64_MAX ? "unlimited" : std::to_string(value);
}

bool set_history(Debugger& debugger, std::string_view value) {
  const auto number = read_count(debugger, value, "megabytes");
  if (!number) {
    return false;
  }
  if (*number > kMostHistoryMb) {
    return debugger.fail("{} MB are too many; expected at most {}", *number, kMostHistoryMb);
  }
  debugger.settings().history_mb = *number;
  if (debugger.session() != nullptr) {
    debugger.session()->set_history_bytes(*number << 20);
  }
  return true;
}

bool set_arg(Debugger& debugger, std::string_view value) {
  const size_t equals = value.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return debugger.fail("expected NAME=VALUE, such as n=1024 or a=rand:f32[1024]:seed=1");
  }
  const std::string_view name = trim(value.substr(0, equals));
  std::vector<std::string>& args = debugger.target().args;
  std::erase_if(args, [&](const std::string& one) {
    return std::string_view(one).substr(0, one.find('=')) == name;
  });
  args.push_back(fmt::format("{}={}", name, trim(value.substr(equals + 1))));
  return true;
}

template <sim::Dim3 TargetOptions::*kMember>
bool set_size(Debugger& debugger, std::string_view value) {
  std::string error;
  const auto dim = sim::parse_dim3(trim(value), error);
  if (!dim) {
    return debugger.fail_text(error);
  }
  debugger.target().*kMember = *dim;
  return true;
}

bool set_checks(Debugger& debugger, std::string_view value) {
  std::string error;
  const auto checks = sim::parse_checks(trim(value), error);
  if (!checks) {
    return debugger.fail_text(error);
  }
  debugger.target().checks = *checks;
  return true;
}

std::string show_checks(Debugger& debugger) {
  std::vector<std::string_view> names;
  for (const sim::CheckKind kind : {sim::CheckKind::kMem,
                                    sim::CheckKind::kInit,
                                    sim::CheckKind::kRace,
                                    sim::CheckKind::kSync,
                                    sim::CheckKind::kNan}) {
    if (debugger.target().checks.contains(kind)) {
      names.push_back(sim::name(kind));
    }
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ","));
}

bool set_profile(Debugger& debugger, std::string_view value) {
  isa::ProfileIssues issues;
  if (!isa::load_machine(trim(value), issues)) {
    return debugger.fail_text(isa::to_string(issues));
  }
  debugger.target().profile = trim(value);
  return true;
}

bool set_mode(Debugger& debugger, std::string_view value) {
  value = trim(value);
  if (value != "timed" && value != "lockstep") {
    return debugger.fail("'{}' is no mode; expected timed or lockstep", value);
  }
  debugger.settings().is_lockstep = value == "lockstep";
  return true;
}

bool set_kernel(Debugger& debugger, std::string_view value) {
  const std::string before = debugger.target().kernel;
  debugger.target().kernel = trim(value);
  if (debugger.program() != nullptr && !debugger.load()) {
    debugger.target().kernel = before;
    return false;
  }
  return true;
}

constexpr Setting kSettings[] = {
    {"arg",
     "NAME=VALUE",
     "An argument of the kernel, as ptosim --arg takes it; from the next run.",
     set_arg,
     [](Debugger& debugger) { return fmt::format("{}", fmt::join(debugger.target().args, " ")); }},
    {"grid",
     "SIZE",
     "Blocks in the grid; from the next run.",
     set_size<&TargetOptions::grid>,
     [](Debugger& debugger) { return sim::to_string(debugger.target().grid); }},
    {"block-size",
     "SIZE",
     "Lanes in a block; from the next run.",
     set_size<&TargetOptions::block>,
     [](Debugger& debugger) { return sim::to_string(debugger.target().block); }},
    {"kernel",
     "NAME",
     "Which kernel of the file is debugged.",
     set_kernel,
     [](Debugger& debugger) {
       return debugger.program() != nullptr ? debugger.program()->kernel().name
                                            : debugger.target().kernel;
     }},
    {"profile",
     "NAME",
     "The machine; from the next run.",
     set_profile,
     [](Debugger& debugger) {
       return debugger.target().profile.empty() ? std::string("as the file says, else reference")
                                                : debugger.target().profile;
     }},
    {"checks",
     "LIST",
     "mem,init,race,sync,nan, all or none; from the next run.",
     set_checks,
     show_checks},
    {"mode",
     "timed|lockstep",
     "With the timing model, or without time; from the next run.",
     set_mode,
     [](Debugger& debugger) {
       return std::string(debugger.settings().is_lockstep ? "lockstep" : "timed");
     }},
    {"lanes-shown",
     "N",
     "Lanes that a step shows of each insn.",
     set_number<&DebuggerSettings::lanes_shown, 0>,
     show_number<&DebuggerSettings::lanes_shown>},
    {"elements",
     "N",
     "Elements that print shows of an array.",
     set_number<&DebuggerSettings::elements, 1>,
     show_number<&DebuggerSettings::elements>},
    {"list-lines",
     "N",
     "Lines that list shows.",
     set_number<&DebuggerSettings::list_lines, 1>,
     show_number<&DebuggerSettings::list_lines>},
    {"history-mb",
     "N",
     "Memory for going back, in megabytes; 0: none.",
     set_history,
     show_number<&DebuggerSettings::history_mb>},
    {"max-instructions",
     "N",
     "Stop after so many warp insns; from the next run.",
     set_number<&DebuggerSettings::max_insns, 1>,
     show_number<&DebuggerSettings::max_insns>},
    {"max-cycles",
     "N",
     "Stop after so many cycles; from the next run.",
     set_number<&DebuggerSettings::max_cycles, 1>,
     show_number<&DebuggerSettings::max_cycles>},
};

} // namespace

std::span<const Setting> all_settings() {
  return kSettings;
}

const Setting* find_setting(std::string_view name) {
  const Setting* found = nullptr;
  for (const Setting& setting : kSettings) {
    if (setting.name == name) {
      return &setting;
    }
    if (!name.empty() && setting.name.starts_with(name)) {
      if (found != nullptr) {
        return nullptr;
      }
      found = &setting;
    }
  }
  return found;
}

} // namespace pto::dbg
