// SPDX-License-Identifier: Apache-2.0
// The command line of ptoprof as values.
#pragma once

#include "isa/diag.h"
#include "isa/run_program.h"
#include "runtime/profile/microbench.h"
#include "simulator/launch.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pto::rt {

enum class ToolCommand : uint8_t {
  kRun,
  kImport,
  kCalibrate,
  kReport,
  kMicrobench,
  kDevices,
  kSchema
};

struct ToolOptions {
  ToolCommand command = ToolCommand::kDevices;
  std::vector<std::string> inputs; // files or folders
  std::string kernel;
  sim::Dim3 grid{};
  sim::Dim3 block{};
  std::vector<std::string> args;
  std::vector<std::string> include_dirs;
  std::vector<std::string> defines;
  uint32_t dynamic_l1_bytes = 0;
  std::string device;
  uint32_t runs = 0; // 0: the command's default
  uint32_t warm_ups = 5;
  NoiseModel noise;
  std::vector<std::string> machines; // to compare with; of microbench: the one the set is for
  std::string base = "reference";
  std::string name; // of the kernel in the profile, or of the fitted machine
  std::string group;
  std::string date;
  std::string output;
  std::string html;
  bool is_appending = false;
  bool is_strict = false;
  bool is_json = false;
  bool is_quiet = false;
  bool is_list = false;
  std::vector<std::string> roles;
  std::vector<std::string> keys;
  uint32_t types_per_entry = 0;
  std::string follow_up;
  isa::ColorMode color = isa::ColorMode::kAuto;
};

/// Options, or the status to exit with at once (0 after --help and --version, 2 after a mistake,
/// which has been reported on stderr).
struct ParsedToolOptions {
  std::optional<ToolOptions> options;
  int exit_status = 0;
};
[[nodiscard]] ParsedToolOptions
parse_tool_options(int argc, char** argv, const isa::ProgramState& state);

/// Does what was asked for; the exit status.
[[nodiscard]] int run_tool(const ToolOptions& options);

} // namespace pto::rt
