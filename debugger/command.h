// SPDX-License-Identifier: Apache-2.0
// The command table: a command is a row, and its help, completion and aliases are columns.
#pragma once

#include "debugger/debugger.h"

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pto::dbg {

enum class CommandGroup : uint8_t { kRun, kBack, kStops, kFocus, kLook, kInfo, kTime, kSession };
std::string_view title(CommandGroup group);

/// What may stand after the command, for completion.
enum class Completes : uint8_t {
  kNothing,
  kLocation,
  kExpression,
  kFile,
  kCommand,
  kSetting,
  kStopPoint,
  kEvent,
};

struct Command {
  std::string_view name;    // one word, or two ("info warps")
  std::string_view aliases; // further spellings, separated by spaces
  CommandGroup group = CommandGroup::kSession;
  std::string_view usage;   // "break [LOCATION] [if CONDITION]"
  std::string_view summary; // one sentence
  std::string_view help;    // more, lines ended; may be empty
  std::string_view example; // one line that can be typed
  Completes completes = Completes::kNothing;
  bool repeats = false; // an empty line at a terminal does it again
  bool (*run)(Debugger& debugger, std::string_view arguments) = nullptr;
};

/// A row of the group of information: its summary says all.
constexpr Command info_row(std::string_view name,
                           std::string_view aliases,
                           std::string_view usage,
                           std::string_view summary,
                           std::string_view example,
                           bool (*run)(Debugger&, std::string_view),
                           Completes completes = Completes::kNothing) {
  return {.name = name,
          .aliases = aliases,
          .group = CommandGroup::kInfo,
          .usage = usage,
          .summary = summary,
          .example = example,
          .completes = completes,
          .run = run};
}
/// Of a table of theirs that may be long.
inline constexpr size_t kRowsShown = 64;

/// Every row, by file.
std::span<const Command> run_commands();
std::span<const Command> back_commands();
std::span<const Command> stop_commands();
std::span<const Command> focus_commands();
std::span<const Command> look_commands();
std::span<const Command> info_commands();
std::span<const Command> memory_commands();
std::span<const Command> launch_commands();
std::span<const Command> time_commands();
std::span<const Command> session_commands();
/// All of them.
std::vector<const Command*> all_commands();

struct FoundCommand {
  const Command* command = nullptr;
  std::string_view arguments; // of the line
};
/// The command that a line begins with: by name, alias or unique prefix of a name, word by word.
/// Null command with a message: ambiguous (names all) or unknown (names the nearest).
FoundCommand find_command(std::string_view line, std::string& error);

/// The spelling of other debuggers at the beginning of a line, replaced by ours ("ascend info
/// cores" -> "info cores"); else the line itself.
std::string translate(std::string_view line);

// ------------------------------------------------ reading arguments
std::string_view trim(std::string_view text);
/// Cuts the first word off.
std::string_view next_word(std::string_view& text);
/// A count from 0; nothing after an error at the debugger.
std::optional<uint64_t>
read_count(Debugger& debugger, std::string_view text, std::string_view what);
/// The same from an expression; `otherwise` for an empty text.
std::optional<uint64_t>
read_amount(Debugger& debugger, std::string_view text, uint64_t otherwise, std::string_view what);
/// The name of a file at the front of `text`, which is cut off: in quotes, or up to the first of
/// `ends` that a space follows, or a word. Nothing, with a message, where a quote is not closed.
std::optional<std::string>
next_path(Debugger& debugger, std::string_view& text, std::initializer_list<std::string_view> ends);
/// "3", "1-4", "1,3 5"; every one must name something that `exists`.
std::optional<std::vector<int>>
read_ids(Debugger& debugger, std::string_view text, std::string_view what);

// ------------------------------------------------ showing
/// "block 1 warp 2 lane 5"
std::string to_string(const Focus& focus);
/// "x.pto:7  load.f32 r1, hbm[a + r0*4]"
std::string describe_insn(const sim::Program& program, uint32_t pc);
/// "LOAD", as steps and the timeline write it.
std::string upper_mnemonic(const isa::Insn& insn);
/// Stop as text, several lines, and as JSON.
std::string describe_stop(const Session& session, const StopEvent& stop);
nlohmann::ordered_json stop_json(const Session& session, const StopEvent& stop);
/// Insns from `begin` to before `end` with functions and labels, and an arrow at `here`.
std::string
list_insns(const sim::Program& program, uint32_t begin, uint32_t end, std::optional<uint32_t> here);
/// Calls and waiting parts of a warp that has not ended, a line each.
std::string describe_frames(const sim::Program& program, const sim::BlockRun& block, uint32_t warp);
/// What was watched, element by element; "..." behind the first `limit`.
std::vector<std::string>
watch_values(const WatchHit& hit, std::span<const uint8_t> bytes, size_t limit);
/// What a step did.
std::string describe_trace(const Session& session, uint64_t lanes_shown);
/// A value with a format letter of print (0: as its type says); arrays in braces.
std::string format_value(const Value& value, char format);
std::string format_evaluated(const Evaluated& value, char format, uint64_t limit);
nlohmann::ordered_json value_json(const Evaluated& value, uint64_t limit);
/// Name of what lies at an address: "a[3]", "buf[7]", "t0[1]", "l1:64".
std::string name_address(const Session& session,
                         uint64_t block,
                         isa::Space space,
                         uint64_t address,
                         uint32_t element_bytes);
/// One value after another with a number of columns, each line with the index of its first.
std::string value_table(const std::vector<std::string>& values, uint64_t first, unsigned columns);

} // namespace pto::dbg
