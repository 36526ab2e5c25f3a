// SPDX-License-Identifier: Apache-2.0
// The kinds of devices, a row each.
#include "runtime/open.h"

#include "isa/issue_text.h"
#include "isa/machine_load.h"
#include "isa/suggest.h"
#include "runtime/npu_backend.h"
#include "runtime/sim_backend.h"

#include <fmt/format.h>

#include <array>

namespace pto::rt {

namespace {

struct DeviceKind {
  std::string_view name;
  std::string_view form; // as messages show it
  std::unique_ptr<Backend> (*open)(std::string_view detail, const DeviceOptions& options);
  std::vector<DeviceProbe> (*probe)();
};

constexpr std::array kKinds = {
    DeviceKind{"sim", "sim[:PROFILE]", &open_sim, &probe_sim},
    DeviceKind{"emulated", "emulated:PROFILE", &open_emulated, &probe_emulated},
    DeviceKind{"npu", "npu[:NUMBER]", &open_npu, &probe_npu},
};

} // namespace

std::unique_ptr<Backend> open_backend(std::string_view name, const DeviceOptions& options) {
  const size_t colon = name.find(':');
  const std::string_view kind = name.substr(0, colon);
  const std::string_view detail =
      colon == std::string_view::npos ? std::string_view() : name.substr(colon + 1);
  std::vector<std::string_view> names;
  std::vector<std::string_view> forms;
  for (const DeviceKind& row : kKinds) {
    if (row.name == kind) {
      return row.open(detail, options);
    }
    names.push_back(row.name);
    forms.push_back(row.form);
  }
  throw UnknownDeviceError(fmt::format("there is no device '{}'{}; expected one of: {}",
                                       name,
                                       isa::did_you_mean(kind, names),
                                       fmt::join(forms, ", ")));
}

isa::MachineProfile
load_profile(std::string_view device, std::string_view name, const DeviceOptions& options) {
  if (options.machine) {
    return *options.machine;
  }
  isa::ProfileIssues issues;
  std::optional<isa::MachineProfile> profile = isa::load_machine(name, issues);
  if (!profile) {
    std::vector<std::string> messages;
    for (const isa::ProfileIssue& issue : issues) {
      messages.push_back(isa::message_of(issue));
    }
    const std::string message = fmt::format("device {}: {}", device, fmt::join(messages, "; "));
    if (isa::is_wrong_usage(issues)) {
      throw UnknownDeviceError(message);
    }
    throw DeviceUnavailableError(message);
  }
  return std::move(*profile);
}

std::vector<DeviceProbe> probe_devices() {
  std::vector<DeviceProbe> probes;
  for (const DeviceKind& row : kKinds) {
    for (DeviceProbe& probe : row.probe()) {
      probes.push_back(std::move(probe));
    }
  }
  return probes;
}

} // namespace pto::rt
