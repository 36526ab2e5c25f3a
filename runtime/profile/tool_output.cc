// SPDX-License-Identifier: Apache-2.0
// Messages and files of ptoprof's commands.
#include "isa/clipped.h"
#include "isa/file_io.h"
#include "isa/issue_text.h"
#include "isa/machine_load.h"
#include "isa/output_files.h"
#include "isa/run_program.h"
#include "runtime/profile/tool_commands.h"
#include "simulator/argument_files.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

namespace pto::rt {

int complain(const ToolOptions& options, std::span<const std::string> messages, int status) {
  isa::print_errors({.name = "ptoprof", .is_json = options.is_json}, messages);
  return status;
}

int complain(const ToolOptions& options, const std::string& message, int status) {
  return complain(options, std::span(&message, 1), status);
}

int show_issues(const ToolOptions& options, const isa::ProfileIssues& issues, int status) {
  if (options.is_json) {
    isa::Diagnostics diags(isa::DiagnosticOptions{.error_limit = 0});
    isa::report_issues(issues, diags);
    return show_diagnostics(options, diags, status);
  }
  for (const isa::ProfileIssue& issue : issues) {
    fmt::print(stderr, "{}\n", isa::clipped(issue.to_string()));
  }
  return status;
}

int show_diagnostics(const ToolOptions& options, const isa::Diagnostics& diags, int status) {
  if (options.is_json) {
    fmt::print(stderr, "{}\n", isa::render_json(diags));
  } else {
    isa::RenderOptions render;
    render.color = isa::use_color(options.color, stderr);
    fmt::print(stderr, "{}", isa::render(diags, render));
  }
  return status;
}

bool write_text(const ToolOptions& options, const std::string& path, const std::string& text) {
  std::string error;
  if (path == "-") {
    fmt::print("{}", text);
    return true;
  }
  if (isa::write_file_atomically(
          path, {reinterpret_cast<const std::byte*>(text.data()), text.size()}, error)) {
    return true;
  }
  complain(options, error, kFailed);
  return false;
}

std::optional<isa::MachineProfile>
machine_of(const ToolOptions& options, const std::string& name, int& status) {
  isa::ProfileIssues issues;
  auto machine = isa::load_machine(name, issues);
  if (!machine) {
    status = show_issues(options, issues, isa::is_wrong_usage(issues) ? kUsage : kFailed);
  }
  return machine;
}

std::string find_overwritten(const ToolOptions& options) {
  if (options.output.empty() && options.html.empty()) {
    return {}; // folders of the input need not be walked
  }
  std::vector<isa::OptionFile> inputs;
  const auto add = [&](const char* option, const std::string& path) {
    inputs.push_back({option, path});
  };
  for (const std::string& path : options.inputs) {
    add("the input", path);
    std::error_code code;
    for (std::filesystem::recursive_directory_iterator at(path, code), end; !code && at != end;
         at.increment(code)) {
      add("the input", at->path().string());
    }
  }
  for (const std::string& path : sim::argument_files(options.args)) {
    add("--arg", path);
  }
  for (const std::string& path : options.machines) {
    add("--machine", path);
  }
  add("--base", options.base);
  add("--follow-up", options.follow_up);
  if (const size_t colon = options.device.find(':'); colon != std::string::npos) {
    add("--device", options.device.substr(colon + 1));
  }
  const std::vector<isa::OptionFile> outputs = {{"-o", options.output}, {"--html", options.html}};
  return isa::find_overwritten_file(inputs, outputs);
}

} // namespace pto::rt
