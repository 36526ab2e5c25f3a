// SPDX-License-Identifier: Apache-2.0
// The frame of a main. Messages go out by fputs: where fmt throws, nobody is left to catch.
#include "isa/run_program.h"

#include "isa/clipped.h"
#include "isa/diag.h"
#include "isa/error.h"
#include "isa/host_level.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <new>
#include <system_error>
#include <unistd.h>

namespace pto::isa {
namespace {

using exit_status::kFailed;
using exit_status::kGood;
using exit_status::kInternal;
using exit_status::kUsage;

/// What can neither be read nor written takes the place of standard input and output, so that use
/// of them still fails. Messages that nobody wants to see may vanish.
void take_closed_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1) {
      continue;
    }
    const int taken = fd == STDERR_FILENO ? ::open("/dev/null", O_WRONLY) : ::open("/", O_PATH);
    if (taken < 0) {
      return; // then nothing else can be opened either
    }
  }
}

/// Before any option is read: mistakes in those are JSON as well.
bool asks_for_json(int argc, const char* const* argv) {
  return std::any_of(argv + std::min(argc, 1), argv + argc, [](const char* word) {
    return std::string_view(word) == "--json";
  });
}

std::string lost_output(std::string_view reason) {
  return fmt::format("cannot write to standard output{}{}", reason.empty() ? "" : ": ", reason);
}

} // namespace

void print_errors(const ProgramState& state,
                  std::span<const std::string> messages,
                  std::string_view advice) {
  std::string text;
  if (state.is_json) {
    Diagnostics diags(DiagnosticOptions{.error_limit = 0});
    for (const std::string& message : messages) {
      diags.error({}, message).advise(std::string(advice));
    }
    text = render_json(diags) + "\n";
  } else {
    for (const std::string& message : messages) {
      text += fmt::format("{}: error: {}\n", state.name, clipped(message));
    }
    text += advice.empty() ? std::string() : fmt::format("{}\n", advice);
  }
  std::fputs(text.c_str(), stderr);
}

void print_error(const ProgramState& state, const std::string& message, std::string_view advice) {
  print_errors(state, std::span(&message, 1), advice);
}

bool write_output(std::span<const std::byte> bytes, std::string& error) {
  const bool was_lost = std::ferror(stdout) != 0;
  std::clearerr(stdout); // so that another try tells the reason
  const bool is_written =
      (bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size()) &&
      std::fflush(stdout) == 0;
  if (was_lost || !is_written) {
    error = lost_output(is_written ? std::string_view() : std::strerror(errno));
  }
  return !was_lost && is_written;
}

void flush_output() {
  if (std::fflush(stdout) != 0) {
    throw std::system_error(errno, std::generic_category());
  }
}

int run_program(std::string_view name,
                std::string_view to_report,
                int argc,
                const char* const* argv,
                const std::function<int(ProgramState&)>& body) {
  take_closed_descriptors();
  ProgramState state{.name = name, .is_json = asks_for_json(argc, argv)};
  const auto internal = [&](const char* what) {
    print_error(state,
                fmt::format("internal error: {}", what),
                fmt::format("Please report this with {}.", to_report));
    return kInternal;
  };
  int status = kGood;
  std::string error;
  try {
    static_cast<void>(host_level()); // before anything runs
    status = body(state);
  } catch (const HostLevelError& problem) {
    print_error(state, problem.what());
    status = kUsage;
  } catch (const Error& problem) {
    print_error(state, problem.what());
    status = kFailed;
  } catch (const InternalError& problem) {
    print_error(state, problem.what()); // it says what to do
    status = kInternal;
  } catch (const std::bad_alloc&) {
    print_error(state, "the host has no memory left; use smaller arrays");
    status = kFailed;
  } catch (const std::system_error& problem) {
    // fmt throws when a stream fails; of standard error there is no place to say it.
    if (std::ferror(stdout) == 0 && std::ferror(stderr) == 0) {
      return internal(problem.what());
    }
    status = kFailed;
    error = lost_output(problem.code().message());
  } catch (const std::exception& problem) {
    status = internal(problem.what());
  }
  std::string flush_error;
  if (!write_output({}, flush_error) && !state.has_reported_lost_output) {
    print_error(state, error.empty() ? flush_error : error);
    status = status == kGood ? kFailed : status;
  }
  return status;
}

} // namespace pto::isa
