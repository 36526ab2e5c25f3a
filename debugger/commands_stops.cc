// SPDX-License-Identifier: Apache-2.0
// Breakpoints, watchpoints, catchpoints and what is done with them.
#include "debugger/command.h"
#include "isa/suggest.h"

#include <algorithm>

namespace pto::dbg {

namespace {

/// Cuts " if CONDITION" off a text into `condition`. False if nothing follows the word.
bool cut_condition(Debugger& debugger, std::string_view& text, std::string_view& condition) {
  if (text == "if" || text.ends_with(" if")) {
    return debugger.fail("a condition is missing after 'if'; expected such as 'if $lane == 3'");
  }
  const size_t at = text.starts_with("if ") ? 0 : text.find(" if ");
  if (at != std::string_view::npos) {
    condition = trim(text.substr(at + (at == 0 ? 3 : 4)));
    text = trim(text.substr(0, at));
  }
  return true;
}

bool add_break(Debugger& debugger, std::string_view arguments, bool is_temporary) {
  const sim::Program* program = debugger.need_program();
  if (program == nullptr) {
    return false;
  }
  std::string_view location = trim(arguments);
  std::string_view condition;
  if (!cut_condition(debugger, location, condition)) {
    return false;
  }
  std::string error;
  const auto pcs = find_location(*program, location, debugger.here(), error);
  if (!pcs) {
    return debugger.fail_text(error);
  }
  StopPoint point;
  point.kind = StopKind::kBreak;
  point.text = location.empty() || location[0] == '+' || location[0] == '-'
                   ? fmt::format("*{}", (*pcs)[0])
                   : std::string(location);
  point.pcs = *pcs;
  point.is_temporary = is_temporary;
  if (!set_condition(point, condition, *program, error)) {
    return debugger.fail_text(error);
  }
  const StopPoint& made = debugger.stops().add(std::move(point));
  debugger.print("{} {} at {}{}\n",
                 is_temporary ? "Temporary breakpoint" : "Breakpoint",
                 made.id,
                 describe_insn(*program, made.pcs[0]),
                 made.pcs.size() > 1 ? fmt::format(" and {} more", made.pcs.size() - 1) : "");
  debugger.result().data["stop_point"] = made.id;
  return true;
}

bool break_at(Debugger& debugger, std::string_view arguments) {
  return add_break(debugger, arguments, false);
}
bool tbreak_at(Debugger& debugger, std::string_view arguments) {
  return add_break(debugger, arguments, true);
}

bool add_watch(Debugger& debugger, std::string_view arguments, WatchAccess access) {
  Session* session = debugger.need_session();
  if (session == nullptr) {
    return false;
  }
  std::string_view text = trim(arguments);
  std::string_view condition;
  if (!cut_condition(debugger, text, condition)) {
    return false;
  }
  if (text.empty()) {
    return debugger.fail("expected what to watch, such as $r1, a[3], buf[0]@16 or l1:64");
  }
  std::string error;
  const std::optional<int> id = session->add_watch(text, access, condition, error);
  if (!id) {
    return debugger.fail_text(error);
  }
  const WatchTarget& target = session->stops().find(*id)->target;
  static constexpr std::string_view kNames[] = {
      "Watchpoint", "Read watchpoint", "Access watchpoint"};
  debugger.print("{} {}: {}{}\n",
                 kNames[static_cast<unsigned>(access)],
                 *id,
                 text,
                 target.is_register ? fmt::format(" of block {} warp {}", target.block, target.warp)
                 : target.space == isa::Space::kL1 ? fmt::format(" of block {}", target.block)
                                                   : "");
  debugger.result().data["stop_point"] = *id;
  return true;
}

bool watch(Debugger& debugger, std::string_view arguments) {
  return add_watch(debugger, arguments, WatchAccess::kChange);
}
bool rwatch(Debugger& debugger, std::string_view arguments) {
  return add_watch(debugger, arguments, WatchAccess::kRead);
}
bool awatch(Debugger& debugger, std::string_view arguments) {
  return add_watch(debugger, arguments, WatchAccess::kAny);
}

bool catch_event(Debugger& debugger, std::string_view arguments) {
  if (debugger.need_program() == nullptr) {
    return false;
  }
  const std::string_view event = trim(arguments);
  std::string error;
  int id = 0;
  if (Session* session = debugger.session()) {
    const std::optional<int> made = session->add_catch(event, error);
    if (!made) {
      return debugger.fail_text(error);
    }
    id = *made;
  } else {
    const auto made = make_catch(event, error);
    if (!made) {
      return debugger.fail_text(error);
    }
    id = debugger.stops().add(*made).id;
  }
  debugger.print("Catchpoint {} ({})\n", id, event);
  debugger.result().data["stop_point"] = id;
  return true;
}

/// Calls act(point) for each id, or for all where the text is empty.
template <class Act>
bool for_each_point(Debugger& debugger, std::string_view arguments, bool all, Act&& act) {
  const auto ids = read_ids(debugger, arguments, "stop point");
  if (!ids) {
    return false;
  }
  if (ids->empty()) {
    if (!all) {
      return debugger.fail("expected the number of a stop point; 'info breakpoints' lists them");
    }
    for (StopPoint& point : debugger.stops().all()) {
      act(point);
    }
    return true;
  }
  for (const int id : *ids) {
    StopPoint* point = debugger.stops().find(id);
    if (point == nullptr) {
      return debugger.fail("there is no stop point {}; 'info breakpoints' lists them", id);
    }
    act(*point);
  }
  return true;
}

void changed(Debugger& debugger) {
  if (debugger.session() != nullptr) {
    debugger.session()->stops_changed();
  }
}

bool enable(Debugger& debugger, std::string_view arguments) {
  const bool is_good =
      for_each_point(debugger, arguments, true, [](StopPoint& point) { point.is_enabled = true; });
  changed(debugger);
  return is_good;
}
bool disable(Debugger& debugger, std::string_view arguments) {
  const bool is_good =
      for_each_point(debugger, arguments, true, [](StopPoint& point) { point.is_enabled = false; });
  changed(debugger);
  return is_good;
}

bool delete_points(Debugger& debugger, std::string_view arguments) {
  std::vector<int> ids;
  if (!for_each_point(
          debugger, arguments, true, [&](StopPoint& point) { ids.push_back(point.id); })) {
    return false;
  }
  for (const int id : ids) {
    debugger.stops().erase(id);
  }
  changed(debugger);
  return true;
}

bool ignore(Debugger& debugger, std::string_view arguments) {
  const std::string_view id = next_word(arguments);
  if (id.empty() || trim(arguments).empty()) {
    return debugger.fail("expected the number of a stop point and how many hits to ignore, such "
                         "as 'ignore 1 5'");
  }
  const auto count = read_amount(debugger, arguments, 0, "number of hits");
  return count && for_each_point(debugger, id, false, [&](StopPoint& point) {
           point.ignore = *count;
           debugger.print("Will ignore the next {} hits of {}.\n", *count, point.id);
         });
}

bool condition(Debugger& debugger, std::string_view arguments) {
  const std::string_view word = next_word(arguments);
  const auto ids = read_ids(debugger, word, "stop point");
  if (!ids || ids->size() != 1) {
    return ids ? debugger.fail("expected the number of a stop point and a condition, such as "
                               "'condition 1 $lane == 3'")
               : false;
  }
  StopPoint* point = debugger.stops().find((*ids)[0]);
  if (point == nullptr) {
    return debugger.fail("there is no stop point {}; 'info breakpoints' lists them", (*ids)[0]);
  }
  if (point->kind == StopKind::kCatch) {
    return debugger.fail("{} is a catchpoint; only breakpoints and watchpoints take conditions",
                         point->id);
  }
  const std::string_view text = trim(arguments);
  std::string error;
  if (!set_condition(*point, text, *debugger.program(), error)) {
    return debugger.fail_text(error);
  }
  if (text.empty()) {
    debugger.print("{} is unconditional now.\n", point->id);
  } else {
    debugger.print("{} stops if {}\n", point->id, text);
  }
  return true;
}

bool commands(Debugger& debugger, std::string_view arguments) {
  std::vector<int> ids;
  if (trim(arguments).empty()) {
    if (debugger.stops().all().empty()) {
      return debugger.fail("there is no stop point to give commands to");
    }
    ids.push_back(debugger.stops().all().back().id);
  } else if (!for_each_point(
                 debugger, arguments, false, [&](StopPoint& point) { ids.push_back(point.id); })) {
    return false;
  }
  debugger.begin_commands(ids);
  return true;
}

bool info_breakpoints(Debugger& debugger, std::string_view /*arguments*/) {
  const std::vector<StopPoint>& points = debugger.stops().all();
  if (points.empty()) {
    debugger.print("No breakpoints, watchpoints or catchpoints.\n");
    return true;
  }
  debugger.print("Num  Type        On  Hits  What\n");
  nlohmann::ordered_json& list = debugger.result().data["stop_points"];
  list = nlohmann::ordered_json::array();
  for (const StopPoint& point : points) {
    static constexpr std::string_view kWatch[] = {"watch", "rwatch", "awatch"};
    const std::string_view type =
        point.kind == StopKind::kBreak   ? (point.is_temporary ? "tbreak" : "break")
        : point.kind == StopKind::kWatch ? kWatch[static_cast<unsigned>(point.access)]
                                         : "catch";
    debugger.print("{:<4} {:<11} {:<3} {:<5} {}",
                   point.id,
                   type,
                   point.is_enabled ? "yes" : "no",
                   point.hits,
                   point.text);
    if (point.kind == StopKind::kBreak && debugger.program() != nullptr) {
      debugger.print("  at {}", describe_insn(*debugger.program(), point.pcs[0]));
    }
    debugger.print("\n");
    if (!point.condition_text.empty()) {
      debugger.print("       stops only if {}\n", point.condition_text);
    }
    if (point.ignore != 0) {
      debugger.print("       ignores the next {} hits\n", point.ignore);
    }
    for (const std::string& command : point.commands) {
      debugger.print("       {}\n", command);
    }
    list.push_back({{"id", point.id},
                    {"type", type},
                    {"what", point.text},
                    {"enabled", point.is_enabled},
                    {"hits", point.hits},
                    {"pcs", point.pcs},
                    {"condition", point.condition_text}});
  }
  return true;
}

constexpr Command kRows[] = {
    {.name = "break",
     .aliases = "b, br",
     .group = CommandGroup::kStops,
     .usage = "break [LOCATION] [if CONDITION]",
     .summary = "Stops a block in front of an insn.",
     .help =
         "LOCATION is a label, a kernel or function, LINE, FILE:LINE, +LINES, *PC, or nothing\n"
         "for this insn. A block stops once for each time that its warps come there: at the\n"
         "first warp. The condition is evaluated in each lane: $lane, $warp, $block, registers\n"
         "and memory may stand in it; the focus goes to the first lane in which it holds.\n",
     .example = "break 9 if $lane == 3 && $r1 > 0.5",
     .completes = Completes::kLocation,
     .run = break_at},
    {.name = "tbreak",
     .aliases = "tb, thbreak",
     .group = CommandGroup::kStops,
     .usage = "tbreak [LOCATION] [if CONDITION]",
     .summary = "A breakpoint that is deleted when it stops.",
     .example = "tbreak 9",
     .completes = Completes::kLocation,
     .run = tbreak_at},
    {.name = "watch",
     .group = CommandGroup::kStops,
     .usage = "watch EXPRESSION [if CONDITION]",
     .summary = "Stops when a register or memory changes its value.",
     .help = "Any number, of any size: a[3], a[0]@1024, buf[2], l1:64, $r1 (of the focused lane),\n"
             "$r1@* (of the focused warp). Tells the old and new value and the writing lane.\n",
     .example = "watch o[5]",
     .completes = Completes::kExpression,
     .run = watch},
    {.name = "rwatch",
     .group = CommandGroup::kStops,
     .usage = "rwatch EXPRESSION [if CONDITION]",
     .summary = "Stops when a register or memory is read.",
     .example = "rwatch a[7]",
     .completes = Completes::kExpression,
     .run = rwatch},
    {.name = "awatch",
     .group = CommandGroup::kStops,
     .usage = "awatch EXPRESSION [if CONDITION]",
     .summary = "Stops when a register or memory is read or written.",
     .example = "awatch a[7]",
     .completes = Completes::kExpression,
     .run = awatch},
    {.name = "catch",
     .group = CommandGroup::kStops,
     .usage = "catch nan|race|init|sync|barrier|trap|launch|fault",
     .summary = "Stops at an event: a check finds something, a barrier opens, the kernel traps.",
     .help =
         "nan: the first insn that makes a NaN or an infinity. race: an access that conflicts\n"
         "with an earlier one. init: a read of what nobody wrote. sync: barriers and waits that\n"
         "cannot be meant. The check sees all since the launch, even if it is turned on late.\n",
     .example = "catch nan",
     .completes = Completes::kEvent,
     .run = catch_event},
    {.name = "ignore",
     .group = CommandGroup::kStops,
     .usage = "ignore N COUNT",
     .summary = "Lets the next COUNT hits of a stop point pass.",
     .example = "ignore 1 5",
     .completes = Completes::kStopPoint,
     .run = ignore},
    {.name = "condition",
     .group = CommandGroup::kStops,
     .usage = "condition N [EXPRESSION]",
     .summary = "Gives a stop point another condition, or none.",
     .example = "condition 1 $warp == 2",
     .completes = Completes::kStopPoint,
     .run = condition},
    {.name = "commands",
     .group = CommandGroup::kStops,
     .usage = "commands [N...]",
     .summary = "Commands to run when it stops: lines up to 'end'.",
     .example = "commands 1",
     .completes = Completes::kStopPoint,
     .run = commands},
    {.name = "enable",
     .aliases = "en",
     .group = CommandGroup::kStops,
     .usage = "enable [N...]",
     .summary = "Makes stop points stop again; without numbers, all.",
     .example = "enable 1",
     .completes = Completes::kStopPoint,
     .run = enable},
    {.name = "disable",
     .aliases = "dis",
     .group = CommandGroup::kStops,
     .usage = "disable [N...]",
     .summary = "Keeps stop points but does not stop at them.",
     .example = "disable 1-3",
     .completes = Completes::kStopPoint,
     .run = disable},
    {.name = "delete",
     .aliases = "d, delete breakpoints",
     .group = CommandGroup::kStops,
     .usage = "delete [N...]",
     .summary = "Deletes stop points; without numbers, all.",
     .example = "delete 2",
     .completes = Completes::kStopPoint,
     .run = delete_points},
    {.name = "info breakpoints",
     .aliases = "info watchpoints, info b",
     .group = CommandGroup::kStops,
     .usage = "info breakpoints",
     .summary = "Lists breakpoints, watchpoints and catchpoints with their hits.",
     .example = "info breakpoints",
     .run = info_breakpoints},
};

} // namespace

std::span<const Command> stop_commands() {
  return kRows;
}

} // namespace pto::dbg
