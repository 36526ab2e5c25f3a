// SPDX-License-Identifier: Apache-2.0
// Whom the other commands talk about.
#include "debugger/command.h"
#include "simulator/block.h"
#include "simulator/number_text.h"

#include <algorithm>

namespace pto::dbg {

void Debugger::show_focus_line() {
  const Focus& focus = session_->focus();
  const std::optional<uint32_t> pc = session_->here();
  const BlockPhase phase = session_->phase(focus.block);
  result_.data["focus"] = {{"block", focus.block}, {"warp", focus.warp}, {"lane", focus.lane}};
  if (pc) {
    print("{}\n=> {}\n", to_string(focus), describe_insn(*program_, *pc));
  } else {
    print("{}: {}\n",
          to_string(focus),
          phase == BlockPhase::kWaiting    ? "the block has not started"
          : phase == BlockPhase::kResident ? "the warp has ended"
                                           : "the block has ended");
  }
}

namespace {

/// "2" or "(1,0,0)" / "1 0 0" in a grid.
std::optional<uint64_t>
read_index(Debugger& debugger, std::string_view text, sim::Dim3 extent, std::string_view what) {
  std::string flat(trim(text));
  for (char& c : flat) {
    c = c == '(' || c == ')' || c == ',' ? ' ' : c;
  }
  std::vector<uint64_t> parts;
  std::string_view rest = flat;
  while (!trim(rest).empty()) {
    const auto part = read_count(debugger, next_word(rest), what);
    if (!part) {
      return std::nullopt;
    }
    parts.push_back(*part);
  }
  if (parts.size() == 1) {
    return parts[0];
  }
  parts.resize(std::max<size_t>(parts.size(), 3));
  if (parts.size() > 3 || parts[0] >= extent.x || parts[1] >= extent.y || parts[2] >= extent.z) {
    debugger.fail("{} ({}) is not there: the extent is {}",
                  what,
                  fmt::join(parts, ","),
                  sim::to_string(extent));
    return std::nullopt;
  }
  return parts[0] + extent.x * (parts[1] + extent.y * parts[2]);
}

bool set_focus(Debugger& debugger, const Focus& focus) {
  std::string error;
  if (!debugger.session()->set_focus(focus, error)) {
    return debugger.fail_text(error);
  }
  debugger.show_focus_line();
  debugger.list_line = 0;
  return true;
}

/// "1 warp 2 lane 5" after the first word; every part is optional and in any order.
bool change(Debugger& debugger, std::string_view first, std::string_view arguments) {
  Session* session = debugger.need_session();
  if (session == nullptr) {
    return false;
  }
  Focus focus = session->focus();
  std::string_view what = first;
  std::string_view rest = trim(arguments);
  if (rest.empty()) {
    debugger.show_focus_line();
    return true;
  }
  for (;;) {
    // The value goes up to the next keyword.
    size_t end = rest.size();
    for (const std::string_view keyword : {" block ", " warp ", " lane ", " thread "}) {
      end = std::min(end, rest.find(keyword));
    }
    const std::string_view value = trim(rest.substr(0, end));
    const sim::LaunchConfig& config = session->launch().config();
    const bool is_thread = what == "thread";
    const auto index = read_index(debugger,
                                  value,
                                  what == "block" ? config.grid
                                  : is_thread     ? config.block
                                                  : sim::Dim3{UINT32_MAX, 1, 1},
                                  what);
    if (!index) {
      return false;
    }
    if (what == "block") {
      focus.block = *index;
    } else if (*index > UINT32_MAX) {
      return debugger.fail("there is no {} {}", what, *index);
    } else if (what == "warp") {
      focus.warp = static_cast<uint32_t>(*index);
    } else if (what == "lane") {
      focus.lane = static_cast<uint32_t>(*index);
    } else if (*index >= config.block.total()) {
      return debugger.fail("there is no thread {}: a block has {} (0 to {})",
                           *index,
                           config.block.total(),
                           config.block.total() - 1);
    } else {
      focus.warp = static_cast<uint32_t>(*index / isa::kWarpLanes);
      focus.lane = static_cast<uint32_t>(*index % isa::kWarpLanes);
    }
    if (end == rest.size()) {
      break;
    }
    rest = rest.substr(end);
    what = next_word(rest);
  }
  // A lane that the other warp lacks is no reason to refuse the warp.
  const std::vector<uint32_t>& masks = session->launch().image().warp_masks;
  if (focus.lane == session->focus().lane && focus.warp < masks.size() &&
      (masks[focus.warp] >> focus.lane & 1) == 0) {
    focus.lane = 0;
  }
  return set_focus(debugger, focus);
}

bool block(Debugger& debugger, std::string_view arguments) {
  return change(debugger, "block", arguments);
}
bool warp(Debugger& debugger, std::string_view arguments) {
  return change(debugger, "warp", arguments);
}
bool lane(Debugger& debugger, std::string_view arguments) {
  return change(debugger, "lane", arguments);
}
bool thread(Debugger& debugger, std::string_view arguments) {
  return change(debugger, "thread", arguments);
}

bool core(Debugger& debugger, std::string_view arguments) {
  Session* session = debugger.need_session();
  if (session == nullptr) {
    return false;
  }
  const auto wanted = read_count(debugger, arguments, "core");
  if (!wanted) {
    return false;
  }
  for (const uint64_t index : session->resident_blocks()) {
    if (session->block(index)->core() == *wanted) {
      return set_focus(debugger, {index, 0, 0});
    }
  }
  return debugger.fail("no block is resident on core {}; 'info cores' shows them", *wanted);
}

constexpr Command kRows[] = {
    {.name = "block",
     .group = CommandGroup::kFocus,
     .usage = "block [N | (X,Y,Z)] [warp N] [lane N]",
     .summary = "Moves the focus to a block, or says where it is.",
     .help =
         "The focus stays until it is moved, or until a stop in another warp moves it; the stop\n"
         "then says so.\n",
     .example = "block 1 warp 2 lane 5",
     .run = block},
    {.name = "warp",
     .group = CommandGroup::kFocus,
     .usage = "warp [N] [lane N]",
     .summary = "Moves the focus to a warp of the block.",
     .example = "warp 2",
     .run = warp},
    {.name = "lane",
     .group = CommandGroup::kFocus,
     .usage = "lane [N]",
     .summary = "Moves the focus to a lane of the warp, 0 to 31.",
     .example = "lane 17",
     .run = lane},
    {.name = "thread",
     .aliases = "tid",
     .group = CommandGroup::kFocus,
     .usage = "thread [N | (X,Y,Z)]",
     .summary = "Moves the focus to a lane by its number in the block, as step and timeline count.",
     .example = "thread 69",
     .run = thread},
    {.name = "core",
     .group = CommandGroup::kFocus,
     .usage = "core N",
     .summary = "Moves the focus to the block that is resident on a core.",
     .example = "core 1",
     .run = core},
    {.name = "focus",
     .group = CommandGroup::kFocus,
     .usage = "focus",
     .summary = "Says where the focus is.",
     .example = "focus",
     .run = [](Debugger& debugger,
               std::string_view /*arguments*/) { return change(debugger, "block", {}); }},
};

} // namespace

std::span<const Command> focus_commands() {
  return kRows;
}

} // namespace pto::dbg
