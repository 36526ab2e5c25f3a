// SPDX-License-Identifier: Apache-2.0
// What profiles can say about themselves.
#include "runtime/profile/profile.h"

#include "runtime/profile/samples.h"
#include "simulator/timing/insn_timing.h"

#include <fmt/format.h>

namespace pto::rt {

const SimulatedKernel* KernelProfile::find_simulation(std::string_view machine) const {
  for (const SimulatedKernel& candidate : simulated) {
    if (machine.empty() || candidate.machine == machine) {
      return &candidate;
    }
  }
  return nullptr;
}

const KernelProfile* Profile::find(std::string_view name) const {
  for (const KernelProfile& kernel : kernels) {
    if (kernel.name == name) {
      return &kernel;
    }
  }
  return nullptr;
}

std::string Profile::device_label() const {
  return device.is_emulated ? device.name + " (emulated)" : device.name;
}

std::string_view key_base(std::string_view key) {
  return key.substr(0, key.find('.'));
}

std::string latency_key(const isa::Insn& insn) {
  std::string key(insn.desc->latency);
  for (const std::string_view suffix : sim::latency_suffixes(insn)) {
    key += '.';
    key += suffix;
  }
  return key;
}

void settle_runs(KernelProfile& kernel) {
  std::vector<double> samples;
  for (RunSample& run : kernel.runs) {
    run.rejected.clear();
    samples.push_back(run.cycles);
  }
  const SampleSummary summary = summarise(samples);
  kernel.cycles = summary.centre;
  kernel.spread = summary.spread;
  kernel.error = summary.error;
  for (const size_t index : summary.rejected) {
    kernel.runs[index].rejected = fmt::format("{} cycles where the median of {} runs is {}",
                                              short_number(kernel.runs[index].cycles),
                                              samples.size(),
                                              short_number(summary.median));
  }
}

} // namespace pto::rt
