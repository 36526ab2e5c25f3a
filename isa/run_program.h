// SPDX-License-Identifier: Apache-2.0
// What the mains of all programs share: exit statuses, messages as text or JSON, exceptions as
// messages, and standard output that was lost.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace pto::isa {

/// What a program ends with.
namespace exit_status {
inline constexpr int kGood = 0;
inline constexpr int kFailed = 1; // errors in the input, or a check failed
inline constexpr int kUsage = 2;
inline constexpr int kInternal = 3; // our bug
inline constexpr int kInterrupted = 130;
} // namespace exit_status

/// What a program knows about itself while it runs.
struct ProgramState {
  std::string_view name;
  bool is_json = false;                  // --json: messages on stderr are one JSON object
  bool has_reported_lost_output = false; // that standard output failed was said already
};

/// Messages of a program that are not about a place in a source, on stderr: "ptosim: error: ..."
/// each, then `advice`; with --json one object of diagnostics (render_json).
void print_errors(const ProgramState& state,
                  std::span<const std::string> messages,
                  std::string_view advice = {});
void print_error(const ProgramState& state,
                 const std::string& message,
                 std::string_view advice = {});

/// Writes `bytes` and all that waits to standard output; false with a sentence in `error` if that
/// cannot be.
[[nodiscard]] bool write_output(std::span<const std::byte> bytes, std::string& error);

/// Passes on what waits to be written to standard output. Throws std::system_error, which
/// run_program tells about, if that cannot be.
void flush_output();

/// Runs `body` and returns its exit status, or 1 with a message if standard output could not be
/// written, memory ran out or a library call was misused (pto::Error), or 3 for a bug of ours;
/// 2 where the environment asks for a level that the host does not have (host_level.h).
/// `to_report` is what a report of such needs: "the command line". Descriptors 0 to 2 that are
/// closed are taken first, so that no file of the program lands there and is written over.
[[nodiscard]] int run_program(std::string_view name,
                              std::string_view to_report,
                              int argc,
                              const char* const* argv,
                              const std::function<int(ProgramState&)>& body);

} // namespace pto::isa
