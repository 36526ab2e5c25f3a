// SPDX-License-Identifier: Apache-2.0
// Measuring on devices, emulated or not, breakdowns and calibration; profiles travel as their JSON
// text.
#include "isa/machine.h"
#include "pybind/bindings.h"
#include "runtime/profile/breakdown.h"
#include "runtime/profile/calibrate.h"
#include "runtime/profile/measure.h"
#include "runtime/profile/measure_device.h"
#include "runtime/profile/report.h"

#include <algorithm>
#include <atomic>
#include <optional>

namespace pto::py {

namespace {

namespace pyb = pybind11;

rt::Profile read_profile_or_throw(const std::string& text) {
  isa::ProfileIssues issues;
  auto profile = rt::read_profile(text, "<profile>", issues);
  if (!profile) {
    throw InputError(isa::to_string(issues));
  }
  return std::move(*profile);
}

const rt::KernelProfile& kernel_of(const rt::Profile& profile, const std::string& name) {
  for (const rt::KernelProfile& kernel : profile.kernels) {
    if (!kernel.micro.is_set() && (name.empty() || kernel.name == name)) {
      return kernel;
    }
  }
  throw InputError("the profile holds no kernel" + (name.empty() ? "" : " '" + name + "'"));
}

/// An argument: bits with the name of their type, or without one the index of an array.
using Argument = std::pair<uint64_t, std::optional<std::string>>;

/// What a kernel is given; arguments with the same index share the array's memory.
struct Input {
  std::vector<std::string> arrays;
  std::vector<Argument> arguments;
};

std::vector<sim::LaunchArg> place(const Input& input, sim::Hbm& hbm) {
  std::vector<uint64_t> bases;
  for (const std::string& bytes : input.arrays) {
    bases.push_back(hbm.alloc(bytes.size(), "argument"));
    if (!bytes.empty()) {
      PTO_CHECK(
          hbm.write(bases.back(), {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
    }
  }
  std::vector<sim::LaunchArg> args;
  for (const auto& [value, type] : input.arguments) {
    if (type) {
      args.push_back({value, isa::find_type(*type).value_or(isa::Type::kNone), false});
    } else {
      args.push_back({bases.at(value), isa::Type::kNone, true});
    }
  }
  return args;
}

/// Lets Ctrl-C end what is measured.
class MeasureWatch {
public:
  explicit MeasureWatch(rt::MeasureOptions& options) {
    options.interrupt = &is_interrupted_;
    options.progress = [this] {
      if (signals_.look()) {
        is_interrupted_ = true;
      }
    };
  }

  /// Runs `call`, which gives up with MeasureError, and raises the signal's exception if there was
  /// one.
  template <class Call> std::string run(Call&& call) {
    std::string text;
    try {
      text = call();
    } catch (const rt::MeasureError&) {
      signals_.rethrow();
      throw;
    }
    signals_.rethrow();
    return text;
  }

private:
  std::atomic<bool> is_interrupted_{false};
  SignalWatch signals_;
};

/// What each of the machines would have said of the launch.
void add_simulations(rt::KernelProfile& kernel,
                     const ProgramHandle& program,
                     const Input& input,
                     sim::LaunchConfig config,
                     const std::vector<isa::MachineProfile>& machines,
                     const rt::MeasureOptions& options) {
  for (const isa::MachineProfile& simulated : machines) {
    sim::Machine machine(simulated);
    config.args = place(input, machine.hbm);
    kernel.simulated.push_back(rt::simulate(machine, program.program, config, options));
  }
}

std::string measure_emulated(const ProgramHandle& program,
                             const Dim& grid,
                             const Dim& block,
                             std::vector<std::string> arrays,
                             std::vector<Argument> arguments,
                             const std::string& device_name,
                             const isa::MachineProfile& device,
                             const std::vector<isa::MachineProfile>& machines,
                             uint32_t runs,
                             double noise,
                             uint64_t seed,
                             uint32_t dynamic_l1_bytes) {
  const Input input{std::move(arrays), std::move(arguments)};
  sim::LaunchConfig config;
  config.grid = to_dim3(grid);
  config.block = to_dim3(block);
  config.dynamic_l1_bytes = dynamic_l1_bytes;
  rt::MeasureOptions options;
  options.runs = runs;
  options.noise = {noise, seed, 0};
  MeasureWatch watch(options);
  const auto measure = [&] {
    rt::Profile profile;
    profile.device = rt::emulated_device(device_name, device, options.noise);
    profile.tool = "pypto " PTO_VERSION;
    {
      sim::Machine machine(device);
      config.args = place(input, machine.hbm);
      profile.kernels.push_back(rt::measure_emulated(machine, program.program, config, options));
    }
    add_simulations(profile.kernels.back(), program, input, config, machines, options);
    return rt::to_json_text(profile);
  };
  return watch.run([&] { return without_lock(measure); });
}

std::string measure_on_device(const DeviceHandle& handle,
                              const ProgramHandle& program,
                              const Dim& grid,
                              const Dim& block,
                              std::vector<std::string> arrays,
                              std::vector<Argument> arguments,
                              const std::vector<isa::MachineProfile>& machines,
                              uint32_t runs,
                              uint32_t warm_ups,
                              uint32_t dynamic_l1_bytes) {
  const Input input{std::move(arrays), std::move(arguments)};
  rt::DeviceInput on_device;
  on_device.program = program.program;
  on_device.grid = to_dim3(grid);
  on_device.block = to_dim3(block);
  on_device.dynamic_l1_bytes = dynamic_l1_bytes;
  for (const std::string& bytes : input.arrays) {
    on_device.arrays.emplace_back(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  for (const auto& [value, type] : input.arguments) {
    rt::DeviceInput::Arg arg;
    if (type) {
      arg.bits = value;
      arg.type = isa::find_type(*type).value_or(isa::Type::kNone);
    } else {
      arg.array = value;
    }
    on_device.args.push_back(arg);
  }
  rt::MeasureOptions options;
  options.runs = runs;
  MeasureWatch watch(options);
  rt::Device& device = *handle;
  const auto measure = [&] {
    rt::Profile profile;
    profile.device = rt::profile_device(device);
    profile.tool = "pypto " PTO_VERSION;
    profile.kernels.push_back(rt::measure_on_device(device, on_device, options, warm_ups));
    sim::LaunchConfig config;
    config.grid = on_device.grid;
    config.block = on_device.block;
    config.dynamic_l1_bytes = dynamic_l1_bytes;
    add_simulations(profile.kernels.back(), program, input, config, machines, options);
    return rt::to_json_text(profile);
  };
  return watch.run([&] { return waiting(device, measure); });
}

pyb::dict
breakdown_dict(const std::string& text, const std::string& kernel, const std::string& machine) {
  const rt::Profile profile = read_profile_or_throw(text);
  const rt::CycleBreakdown breakdown =
      rt::cycle_breakdown(profile, kernel_of(profile, kernel), machine);
  pyb::list rows;
  for (const rt::BreakdownRow& row : breakdown.rows) {
    rows.append(pyb::make_tuple(row.key, row.count, row.cycles, row.simulated));
  }
  pyb::list pairs;
  for (const rt::BreakdownPair& pair : breakdown.pairs) {
    pairs.append(pyb::make_tuple(pair.first, pair.second, pair.is_joined, pair.count, pair.cycles));
  }
  pyb::dict result;
  result["kernel"] = breakdown.kernel;
  result["device"] = breakdown.device;
  result["machine"] = breakdown.machine;
  result["cycles"] = breakdown.cycles;
  result["spread"] = breakdown.spread;
  result["simulated_cycles"] = breakdown.simulated_cycles;
  result["rows"] = rows;
  result["pairs"] = pairs;
  result["warnings"] = breakdown.warnings;
  result["text"] = breakdown.to_string();
  return result;
}

pyb::tuple calibrate(const std::vector<std::string>& texts,
                     const isa::MachineProfile& base,
                     const std::string& name) {
  std::vector<rt::Profile> profiles;
  profiles.reserve(texts.size());
  for (const std::string& text : texts) {
    profiles.push_back(read_profile_or_throw(text));
  }
  rt::CalibrateOptions options;
  options.name = name;
  std::vector<std::string> errors;
  const std::optional<rt::Calibration> calibration =
      without_lock([&] { return rt::calibrate(profiles, base, options, errors); });
  if (!calibration) {
    std::string message;
    for (const std::string& error : errors) {
      message += message.empty() ? error : "\n" + error;
    }
    throw InputError(message);
  }
  return pyb::make_tuple(calibration->machine,
                         rt::report_text(rt::calibration_report(*calibration)));
}

} // namespace

void bind_profile(pyb::module_& module) {
  module.def("measure_emulated", &measure_emulated);
  module.def("measure_on_device", &measure_on_device);
  module.def("check_profile",
             [](const std::string& text) { return rt::to_json_text(read_profile_or_throw(text)); });
  module.def("profile_breakdown", &breakdown_dict);
  module.def("profile_report", [](const std::string& text, bool is_html) {
    const rt::Report report = rt::profile_report(read_profile_or_throw(text));
    return is_html ? rt::report_html(report) : rt::report_text(report);
  });
  module.def("calibrate", &calibrate);
}

} // namespace pto::py
