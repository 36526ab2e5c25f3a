// SPDX-License-Identifier: Apache-2.0
// Commands that run forwards.
#include "debugger/command.h"
#include "simulator/block.h"

namespace pto::dbg {

namespace {

bool resume(Debugger& debugger, const Until& until) {
  Session* session = debugger.need_session();
  if (session == nullptr) {
    return false;
  }
  if (session->is_over()) {
    return session->is_finished()
               ? debugger.fail("the kernel has finished; 'run' starts it again, 'reverse-step' "
                               "goes back")
               : debugger.fail("the kernel has stopped for good ({}); 'run' starts it again, "
                               "'reverse-step' goes back",
                               sim::name(session->fault()->kind));
  }
  return debugger.report(session->resume(until));
}

bool run(Debugger& debugger, std::string_view /*arguments*/) {
  return debugger.launch() && resume(debugger, Until::stop());
}

bool start(Debugger& debugger, std::string_view /*arguments*/) {
  return debugger.launch() && resume(debugger, Until::start());
}

/// Steps launch the kernel where none is running.
bool step_with(Debugger& debugger, std::string_view arguments, Until until) {
  if (debugger.session() == nullptr && !debugger.launch()) {
    return false;
  }
  const auto count = read_amount(debugger, arguments, 1, "number of steps");
  if (!count) {
    return false;
  }
  until.count = *count;
  if (*count == 0) {
    return true;
  }
  return resume(debugger, until);
}

bool step(Debugger& debugger, std::string_view arguments) {
  return step_with(debugger, arguments, Until::step());
}
bool step_warp(Debugger& debugger, std::string_view arguments) {
  return step_with(debugger, arguments, Until::step_warp());
}
bool next(Debugger& debugger, std::string_view arguments) {
  return step_with(debugger, arguments, Until::next());
}

bool go_on(Debugger& debugger, std::string_view arguments) {
  Session* session = debugger.need_session();
  const auto count =
      session != nullptr ? read_amount(debugger, arguments, 1, "number of stops") : std::nullopt;
  if (!count) {
    return false;
  }
  // As in gdb: the stop point of this place passes count - 1 times more.
  if (*count > 1) {
    const std::vector<int> ids = session->last_stop().ids;
    if (ids.empty()) {
      return debugger.fail("'continue {}' passes the breakpoint at which the kernel stands; it "
                           "stands at none",
                           *count);
    }
    for (const int id : ids) {
      if (StopPoint* point = session->stops().find(id)) {
        point->ignore = *count - 1;
      }
    }
  }
  return resume(debugger, Until::stop());
}

bool finish(Debugger& debugger, std::string_view /*arguments*/) {
  return resume(debugger, Until::finish());
}

bool to_location(Debugger& debugger, std::string_view arguments) {
  Session* session = debugger.need_session();
  if (session == nullptr) {
    return false;
  }
  std::string error;
  const auto pcs = find_location(session->program(), trim(arguments), session->here(), error);
  return pcs ? resume(debugger, Until::location(*pcs)) : debugger.fail_text(error);
}

bool until(Debugger& debugger, std::string_view arguments) {
  return trim(arguments).empty() ? resume(debugger, Until::line())
                                 : to_location(debugger, arguments);
}

bool advance(Debugger& debugger, std::string_view arguments) {
  return trim(arguments).empty()
             ? debugger.fail("'advance' needs a location: a label, a line, a kernel or *PC")
             : to_location(debugger, arguments);
}

bool kill(Debugger& debugger, std::string_view /*arguments*/) {
  if (debugger.need_session() == nullptr) {
    return false;
  }
  debugger.kill();
  debugger.print("The kernel is gone; breakpoints stay.\n");
  return true;
}

constexpr Command kRows[] = {
    {.name = "run",
     .aliases = "r",
     .group = CommandGroup::kRun,
     .usage = "run",
     .summary = "Launches the kernel and runs it to the first stop.",
     .help = "A kernel that is running is dropped first, so that all starts from fresh arguments:\n"
             "'set arg NAME=VALUE', 'set grid 4', 'set block-size 256' say what is launched.\n",
     .example = "run",
     .run = run},
    {.name = "start",
     .group = CommandGroup::kRun,
     .usage = "start",
     .summary = "Launches the kernel and stops in front of its first insn.",
     .example = "start",
     .run = start},
    {.name = "step",
     .aliases = "s",
     .group = CommandGroup::kRun,
     .usage = "step [N]",
     .summary = "Executes one PTO insn of every warp of the focused block.",
     .help =
         "Warps that wait for others are not waited for. Other blocks run along, as they do in\n"
         "a free run: stepping changes neither results nor cycles. Prints what each lane did.\n",
     .example = "step 3",
     .repeats = true,
     .run = step},
    {.name = "stepw",
     .aliases = "stepi, si, step-warp",
     .group = CommandGroup::kRun,
     .usage = "stepw [N]",
     .summary = "Executes one PTO insn of the focused warp.",
     .example = "stepw",
     .repeats = true,
     .run = step_warp},
    {.name = "next",
     .aliases = "n, nexti, ni",
     .group = CommandGroup::kRun,
     .usage = "next [N]",
     .summary = "As step, but over a CALL as if it were one insn.",
     .example = "next",
     .repeats = true,
     .run = next},
    {.name = "finish",
     .aliases = "fin",
     .group = CommandGroup::kRun,
     .usage = "finish",
     .summary = "Runs until the focused warp has left its function, or its block has ended.",
     .example = "finish",
     .repeats = true,
     .run = finish},
    {.name = "continue",
     .aliases = "c, fg",
     .group = CommandGroup::kRun,
     .usage = "continue [N]",
     .summary = "Runs to the next stop; with N passes the breakpoint here N-1 times.",
     .example = "continue",
     .repeats = true,
     .run = go_on},
    {.name = "until",
     .aliases = "u",
     .group = CommandGroup::kRun,
     .usage = "until [LOCATION]",
     .summary = "Runs until the focused warp is past this insn (leaves a loop), or to a location.",
     .example = "until done",
     .completes = Completes::kLocation,
     .repeats = true,
     .run = until},
    {.name = "advance",
     .group = CommandGroup::kRun,
     .usage = "advance LOCATION",
     .summary = "Runs until a warp of the focused block stands at the location.",
     .example = "advance 9",
     .completes = Completes::kLocation,
     .run = advance},
    {.name = "kill",
     .aliases = "k",
     .group = CommandGroup::kRun,
     .usage = "kill",
     .summary = "Drops the running kernel.",
     .example = "kill",
     .run = kill},
};

} // namespace

std::span<const Command> run_commands() {
  return kRows;
}

} // namespace pto::dbg
