// SPDX-License-Identifier: Apache-2.0
// Commands that go back, and to moments.
#include "debugger/command.h"
#include "simulator/checks/finding.h"
#include "simulator/report/text_table.h"

#include <algorithm>

namespace pto::dbg {

namespace {

bool reverse(Debugger& debugger, Until until, std::string_view arguments) {
  Session* session = debugger.need_session();
  if (session == nullptr) {
    return false;
  }
  const auto count = read_amount(debugger, arguments, 1, "number of steps");
  if (!count) {
    return false;
  }
  until.count = *count;
  return *count == 0 || debugger.report(session->reverse(until));
}

bool reverse_step(Debugger& debugger, std::string_view arguments) {
  return reverse(debugger, Until::step(), arguments);
}
bool reverse_step_warp(Debugger& debugger, std::string_view arguments) {
  return reverse(debugger, Until::step_warp(), arguments);
}
bool reverse_continue(Debugger& debugger, std::string_view arguments) {
  const auto count = read_amount(debugger, arguments, 1, "number of stops");
  if (!count) {
    return false;
  }
  for (uint64_t i = 1; i < *count && debugger.session() != nullptr; ++i) {
    (void)debugger.session()->reverse(Until::stop());
  }
  return reverse(debugger, Until::stop(), {});
}

/// Memory that a place names, for `info writer` and `reverse-watch`.
bool target_of(Debugger& debugger,
               std::string_view text,
               isa::Space& space,
               uint64_t& address,
               uint64_t& bytes) {
  Evaluated value;
  if (!debugger.evaluate(text, value)) {
    return false;
  }
  if (value.place.kind != Place::Kind::kMemory) {
    return debugger.fail("'{}' names no memory; expected such as a[3], buf[0]@16 or l1:64",
                         trim(text));
  }
  space = value.place.space;
  address = value.place.address;
  bytes = std::max(1u, isa::size_bytes(value.place.type)) *
          (value.is_array ? std::max<uint64_t>(1, value.array.size()) : 1);
  return true;
}

bool writer(Debugger& debugger, std::string_view arguments, bool goes_there) {
  Session* session = debugger.need_session();
  isa::Space space{};
  uint64_t address = 0;
  uint64_t bytes = 0;
  if (session == nullptr || !target_of(debugger, arguments, space, address, bytes)) {
    return false;
  }
  const std::optional<Writer> found =
      session->last_writer(space, session->focus().block, address, bytes);
  if (!found) {
    debugger.print("Nothing has written {} since {}.\n",
                   trim(arguments),
                   session->history().first_position == 0 ? "the launch" : "the history begins");
    return true;
  }
  debugger.print("{} was written at cycle {} by {} of block {}\n  {}\n",
                 trim(arguments),
                 found->cycle,
                 found->is_copy ? std::string("a copy")
                 : found->lane_mask == 0
                     ? std::string("the block as a whole")
                     : fmt::format("warp {} {}", found->warp, sim::format_lanes(found->lane_mask)),
                 found->block,
                 describe_insn(session->program(), found->pc));
  debugger.result().data["writer"] = {{"cycle", found->cycle},
                                      {"position", found->position},
                                      {"block", found->block},
                                      {"warp", found->warp},
                                      {"lane_mask", found->lane_mask},
                                      {"pc", found->pc},
                                      {"is_copy", found->is_copy}};
  if (!goes_there) {
    return true;
  }
  std::string error;
  const uint32_t lane =
      found->lane_mask != 0 ? static_cast<uint32_t>(__builtin_ctz(found->lane_mask)) : 0;
  (void)session->set_focus({found->block, found->warp, lane}, error);
  return debugger.report(session->go_to({found->position, true}));
}

bool reverse_watch(Debugger& debugger, std::string_view arguments) {
  return writer(debugger, arguments, true);
}
bool info_writer(Debugger& debugger, std::string_view arguments) {
  return writer(debugger, arguments, false);
}

bool go_to(Debugger& debugger, std::string_view arguments) {
  Session* session = debugger.need_session();
  if (session == nullptr) {
    return false;
  }
  arguments = trim(arguments);
  const bool is_position = arguments.starts_with("#");
  if (arguments.empty()) {
    return debugger.fail("'goto' needs a cycle, or # and a number of warp insns");
  }
  const auto moment = read_amount(
      debugger, arguments.substr(is_position ? 1 : 0), 0, is_position ? "insns" : "cycle");
  return moment && debugger.report(is_position ? session->go_to_position(*moment)
                                               : session->go_to_cycle(*moment));
}

bool checkpoint(Debugger& debugger, std::string_view /*arguments*/) {
  Session* session = debugger.need_session();
  if (session == nullptr) {
    return false;
  }
  const std::optional<uint32_t> pc = session->here();
  Debugger::Checkpoint made{debugger.next_checkpoint(),
                            session->moment(),
                            session->cycle(),
                            session->focus(),
                            pc ? describe_insn(session->program(), *pc) : ""};
  debugger.print("Checkpoint {} at cycle {}\n", made.id, made.cycle);
  debugger.checkpoints().push_back(made);
  return true;
}

bool restart(Debugger& debugger, std::string_view arguments) {
  Session* session = debugger.need_session();
  if (session == nullptr) {
    return false;
  }
  const auto id = read_count(debugger, arguments, "checkpoint");
  if (!id) {
    return false;
  }
  for (const Debugger::Checkpoint& one : debugger.checkpoints()) {
    if (static_cast<uint64_t>(one.id) == *id) {
      std::string error;
      (void)session->set_focus(one.focus, error);
      return debugger.report(session->go_to(one.moment));
    }
  }
  return debugger.fail("there is no checkpoint {}; 'info checkpoints' lists them", *id);
}

bool info_checkpoints(Debugger& debugger, std::string_view /*arguments*/) {
  if (debugger.checkpoints().empty()) {
    debugger.print("No checkpoints.\n");
  }
  for (const Debugger::Checkpoint& one : debugger.checkpoints()) {
    debugger.print(
        "{:>3}  cycle {:<8} {}  {}\n", one.id, one.cycle, to_string(one.focus), one.place);
  }
  return true;
}

bool delete_checkpoint(Debugger& debugger, std::string_view arguments) {
  const auto ids = read_ids(debugger, arguments, "checkpoint");
  if (!ids) {
    return false;
  }
  for (const int id : *ids) {
    if (std::erase_if(debugger.checkpoints(),
                      [&](const Debugger::Checkpoint& one) { return one.id == id; }) == 0) {
      return debugger.fail("there is no checkpoint {}", id);
    }
  }
  return true;
}

bool info_history(Debugger& debugger, std::string_view /*arguments*/) {
  Session* session = debugger.need_session();
  if (session == nullptr) {
    return false;
  }
  const HistoryInfo info = session->history();
  debugger.print("{} executed, {} at most so far; the history begins at {}\n"
                 "{}, {:.1f} MB of at most {} MB (set history-mb)\n",
                 sim::counted(session->position(), "warp insn"),
                 info.last_position,
                 info.first_position,
                 sim::counted(info.snapshots, "snapshot"),
                 static_cast<double>(info.used_bytes) / (1 << 20),
                 info.limit_bytes >> 20);
  return true;
}

constexpr Command kRows[] = {
    {.name = "reverse-step",
     .aliases = "rs, step-back",
     .group = CommandGroup::kBack,
     .usage = "reverse-step [N]",
     .summary = "Undoes one PTO insn of every warp of the focused block.",
     .help = "Memory, registers, cycles and counters are as they were. Goes back through the end\n"
             "of the block and through faults as well.\n",
     .example = "reverse-step 10",
     .repeats = true,
     .run = reverse_step},
    {.name = "reverse-stepw",
     .aliases = "reverse-stepi, rsi, reverse-next, rn",
     .group = CommandGroup::kBack,
     .usage = "reverse-stepw [N]",
     .summary = "Undoes the last PTO insn of the focused warp.",
     .example = "reverse-stepw",
     .repeats = true,
     .run = reverse_step_warp},
    {.name = "reverse-continue",
     .aliases = "rc",
     .group = CommandGroup::kBack,
     .usage = "reverse-continue [N]",
     .summary = "Goes back to the stop point that was passed last, or to the launch.",
     .example = "reverse-continue",
     .repeats = true,
     .run = reverse_continue},
    {.name = "reverse-watch",
     .aliases = "rw",
     .group = CommandGroup::kBack,
     .usage = "reverse-watch EXPRESSION",
     .summary = "Goes back to the insn that wrote this memory last.",
     .example = "reverse-watch o[5]",
     .completes = Completes::kExpression,
     .run = reverse_watch},
    {.name = "goto",
     .group = CommandGroup::kBack,
     .usage = "goto CYCLE | goto #INSNS",
     .summary = "Goes to a moment, forwards or back, without stopping on the way.",
     .help =
         "In front of the first issue in that cycle or later; with #, where so many warp insns\n"
         "have executed since the launch.\n",
     .example = "goto 120",
     .run = go_to},
    {.name = "checkpoint",
     .group = CommandGroup::kBack,
     .usage = "checkpoint",
     .summary = "Remembers this moment for restart.",
     .example = "checkpoint",
     .run = checkpoint},
    {.name = "restart",
     .group = CommandGroup::kBack,
     .usage = "restart CHECKPOINT",
     .summary = "Goes to a remembered moment.",
     .example = "restart 1",
     .run = restart},
    {.name = "delete checkpoint",
     .group = CommandGroup::kBack,
     .usage = "delete checkpoint N...",
     .summary = "Forgets remembered moments.",
     .example = "delete checkpoint 1",
     .run = delete_checkpoint},
    {.name = "info checkpoints",
     .group = CommandGroup::kBack,
     .usage = "info checkpoints",
     .summary = "Lists the remembered moments.",
     .example = "info checkpoints",
     .run = info_checkpoints},
    {.name = "info history",
     .aliases = "info record",
     .group = CommandGroup::kBack,
     .usage = "info history",
     .summary = "Says how far back the history reaches and what memory it takes.",
     .example = "info history",
     .run = info_history},
    {.name = "info writer",
     .group = CommandGroup::kBack,
     .usage = "info writer EXPRESSION",
     .summary = "Says which insn, warp and lane wrote this memory last.",
     .example = "info writer o[5]",
     .completes = Completes::kExpression,
     .run = info_writer},
};

} // namespace

std::span<const Command> back_commands() {
  return kRows;
}

} // namespace pto::dbg
