// SPDX-License-Identifier: Apache-2.0
// Measured profiles for pypto.profile_on_npu.
#include "pybind/bindings.h"
#include "runtime/profile/breakdown.h"
#include "runtime/profile/measure.h"
#include "runtime/profile/profile.h"

#include <fmt/format.h>

#include <map>

namespace pto::py {

namespace {

namespace pyb = pybind11;

/// A machine of its own with copies of the arguments: measuring leaves the tensors as they are.
struct Bench {
  std::unique_ptr<sim::Machine> machine;
  sim::LaunchConfig config;
};

Bench make_bench(const isa::MachineProfile& profile,
                 const ProgramHandle& program,
                 const Dim& grid,
                 const Dim& block,
                 const std::vector<rt::LaunchArgument>& args) {
  Bench bench{std::make_unique<sim::Machine>(profile), {}};
  bench.config.grid = to_dim3(grid);
  bench.config.block = to_dim3(block);
  std::map<const rt::Buffer*, uint64_t> bases; // a tensor given twice stays one
  const std::vector<isa::Param>& params = program.program->kernel().params;
  for (size_t i = 0; i < args.size(); ++i) {
    const rt::LaunchArgument& arg = args[i];
    if (arg.buffer == nullptr) {
      bench.config.args.push_back({.bits = arg.bits, .type = arg.type, .is_pointer = false});
      continue;
    }
    auto found = bases.find(arg.buffer);
    if (found == bases.end()) {
      std::vector<uint8_t> bytes(arg.buffer->size_bytes());
      arg.buffer->read(bytes);
      const std::string name = i < params.size() ? params[i].name : arg.buffer->name();
      const uint64_t base = bench.machine->hbm.alloc(bytes.size(), name);
      PTO_CHECK(bench.machine->hbm.write(base, bytes));
      found = bases.emplace(arg.buffer, base).first;
    }
    bench.config.args.push_back(
        {.bits = found->second + arg.bits, .type = isa::Type::kU64, .is_pointer = true});
  }
  return bench;
}

/// One kernel on an emulated device, and what another machine's figures say for it.
rt::Profile measure(const rt::Device& measured,
                    const isa::MachineProfile& compared,
                    const ProgramHandle& program,
                    const Dim& grid,
                    const Dim& block,
                    const pyb::list& args,
                    uint32_t runs,
                    double noise,
                    uint64_t seed) {
  std::vector<rt::LaunchArgument> arguments;
  for (const pyb::handle& item : args) {
    arguments.push_back(to_argument(item));
  }
  rt::Device device = measured;
  rt::Profile profile;
  waiting(device, [&] {
    rt::MeasureOptions options;
    options.runs = runs;
    options.noise.relative = noise;
    options.noise.seed = seed;
    const std::string& name = device.info().name;
    profile.device =
        rt::emulated_device(rt::emulated_profile_name(name).value_or(device.profile().name),
                            device.profile(),
                            options.noise);
    profile.tool = "pypto";
    Bench bench = make_bench(device.profile(), program, grid, block, arguments);
    rt::KernelProfile kernel =
        rt::measure_emulated(*bench.machine, program.program, bench.config, options);
    Bench other = make_bench(compared, program, grid, block, arguments);
    kernel.simulated.push_back(rt::simulate(*other.machine, program.program, other.config));
    profile.kernels.push_back(std::move(kernel));
  });
  return profile;
}

pyb::dict breakdown_dict(const rt::CycleBreakdown& breakdown) {
  pyb::dict result;
  result["kernel"] = breakdown.kernel;
  result["device"] = breakdown.device;
  result["machine"] = breakdown.machine;
  result["cycles"] = breakdown.cycles;
  result["spread"] = breakdown.spread;
  result["simulated_cycles"] = breakdown.simulated_cycles;
  result["runs"] = breakdown.runs;
  result["rejected_runs"] = breakdown.rejected_runs;
  pyb::list rows;
  for (const rt::BreakdownRow& row : breakdown.rows) {
    rows.append(pyb::make_tuple(row.key, row.count, row.cycles, row.simulated));
  }
  result["rows"] = rows;
  pyb::list pairs;
  for (const rt::BreakdownPair& pair : breakdown.pairs) {
    pairs.append(pyb::make_tuple(pair.first, pair.second, pair.is_joined, pair.count, pair.cycles));
  }
  result["pairs"] = pairs;
  result["warnings"] = breakdown.warnings;
  result["text"] = breakdown.to_string();
  return result;
}

} // namespace

void bind_profile(pyb::module_& module) {
  module.def("measure", &measure);
  pyb::class_<rt::Profile>(module, "Profile")
      .def_static("load",
                  [](const std::string& path) {
                    isa::ProfileIssues issues;
                    std::optional<rt::Profile> profile = rt::load_profile(path, issues);
                    if (!profile) {
                      throw InputError(isa::to_string(issues));
                    }
                    return std::move(*profile);
                  })
      .def_property_readonly("device", &rt::Profile::device_label)
      .def_property_readonly("is_emulated",
                             [](const rt::Profile& profile) { return profile.device.is_emulated; })
      .def_property_readonly("kernels",
                             [](const rt::Profile& profile) {
                               std::vector<std::string> names;
                               for (const rt::KernelProfile& kernel : profile.kernels) {
                                 names.push_back(kernel.name);
                               }
                               return names;
                             })
      .def("to_json", [](const rt::Profile& profile) { return rt::to_json_text(profile); })
      .def("breakdown", [](const rt::Profile& profile, const std::string& kernel) {
        const rt::KernelProfile* const found = kernel.empty() && !profile.kernels.empty()
                                                   ? &profile.kernels.front()
                                                   : profile.find(kernel);
        if (found == nullptr) {
          throw InputError(fmt::format("the profile has no kernel '{}'", kernel));
        }
        return breakdown_dict(rt::cycle_breakdown(profile, *found));
      });
}

} // namespace pto::py
