// SPDX-License-Identifier: Apache-2.0
// Messages and files of ptoprof's commands.
#include "isa/file_io.h"
#include "runtime/profile/tool_commands.h"

#include <fmt/format.h>

#include <cstdio>

namespace pto::rt {

int complain(const std::string& message, int status) {
  fmt::print(stderr, "ptoprof: error: {}\n", message);
  return status;
}

int show_issues(const isa::ProfileIssues& issues, int status) {
  for (const isa::ProfileIssue& issue : issues) {
    fmt::print(stderr, "{}\n", issue.to_string());
  }
  return status;
}

int show_diagnostics(const isa::Diagnostics& diags, const ToolOptions& options, int status) {
  if (options.is_json) {
    fmt::print(stderr, "{}\n", isa::render_json(diags));
  } else {
    isa::RenderOptions render;
    render.color = isa::use_color(options.color, stderr);
    fmt::print(stderr, "{}", isa::render(diags, render));
  }
  return status;
}

bool write_text(const std::string& path, const std::string& text) {
  std::string error;
  if (path == "-") {
    fmt::print("{}", text);
    return true;
  }
  if (isa::write_file_atomically(
          path, {reinterpret_cast<const std::byte*>(text.data()), text.size()}, error)) {
    return true;
  }
  complain(error, kFailed);
  return false;
}

std::optional<isa::MachineProfile> machine_of(const std::string& name) {
  isa::ProfileIssues issues;
  auto machine = isa::load_machine(name, issues);
  if (!machine) {
    show_issues(issues, kFailed);
  }
  return machine;
}

} // namespace pto::rt
