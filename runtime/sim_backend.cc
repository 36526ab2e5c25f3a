// SPDX-License-Identifier: Apache-2.0
// Simulated devices.
//
// The device has one Hbm, changed only under the device's lock. A launch gets a view of it, taken
// when it is prepared, so that it runs on the allocations of that moment while others come and go.
// Timed launches share the device's L2 and so run one after another (runs_in_order).
#include "runtime/sim_backend.h"

#include "runtime/noise.h"
#include "runtime/open.h"
#include "simulator/functional.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace pto::rt {

namespace {

class SimMemory : public DeviceMemory {
public:
  SimMemory(sim::Hbm& hbm, uint64_t base)
      : hbm_(hbm), base_(base), bytes_(hbm.find_base(base)->memory) {}

  uint64_t address() const override { return base_; }
  void write(uint64_t offset, std::span<const uint8_t> from) override {
    if (!from.empty()) {
      std::memcpy(bytes_.get() + offset, from.data(), from.size());
    }
  }
  void read(uint64_t offset, std::span<uint8_t> to) const override {
    if (!to.empty()) {
      std::memcpy(to.data(), bytes_.get() + offset, to.size());
    }
  }
  void retire(const std::string& freed_by) override { hbm_.free(base_, freed_by); }

private:
  sim::Hbm& hbm_; // of the backend, which outlives its memory
  uint64_t base_;
  std::shared_ptr<uint8_t> bytes_;
};

/// Where each allocation was accessed first: the place that a finding about it names.
class FirstAccess : public sim::Observer {
public:
  explicit FirstAccess(const sim::Hbm& hbm) : hbm_(hbm) {}
  sim::Wants wants() const override { return sim::kWantsIssue | sim::kWantsCopy; }

  void after_insn(const sim::BlockRun& /*block*/, const sim::IssueRecord& record) override {
    if (record.addresses == nullptr || record.space != isa::Space::kHbm) {
      return;
    }
    for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
      if ((record.exec_mask >> lane & 1) == 0 || is_latest(record.addresses[lane])) {
        continue;
      }
      note(record.addresses[lane],
           {.pc = record.pc,
            .block = record.block,
            .warp = record.warp,
            .lane_mask = 1u << lane,
            .what = fmt::format("first {} of {} bytes",
                                record.is_atomic       ? "atomic"
                                : record.writes_memory ? "store"
                                                       : "load",
                                record.access_bytes)});
    }
  }

  void copy_start(const sim::EventSite& site, const sim::CopyRecord& copy) override {
    if (copy.bytes() != 0 && !is_latest(copy.hbm_address)) {
      note(copy.hbm_address,
           {.pc = site.pc,
            .block = site.block.state().index,
            .warp = site.warp,
            .what = fmt::format("first copy of {} bytes", copy.bytes())});
    }
  }

  std::map<uint64_t, sim::FindingSite> take() { return std::move(sites_); }

private:
  bool is_latest(uint64_t address) const {
    return latest_ != nullptr && address - latest_->base < latest_->size_bytes;
  }
  void note(uint64_t address, sim::FindingSite site) {
    if (const sim::Allocation* found = hbm_.find(address)) {
      latest_ = found;
      sites_.emplace(found->base, std::move(site));
    }
  }

  const sim::Hbm& hbm_;
  const sim::Allocation* latest_ = nullptr;
  std::map<uint64_t, sim::FindingSite> sites_;
};

class SimLaunch : public PreparedLaunch {
public:
  SimLaunch(const isa::MachineProfile& profile,
            std::shared_ptr<const sim::HbmTable> table,
            sim::SharedMemory* shared,
            const DeviceOptions& device,
            LaunchRequest request)
      : shared_(shared), noise_(device.noise), noise_seed_(device.noise_seed),
        host_threads_(device.host_threads), request_(std::move(request)),
        machine_(profile, std::move(table)),
        launch_(machine_,
                request_.program,
                {.grid = request_.grid,
                 .block = request_.block,
                 .args = std::move(request_.args),
                 .dynamic_l1_bytes = request_.options.dynamic_l1_bytes}) {}

  LaunchResult run(const std::atomic<bool>& interrupt) override {
    LaunchResult result;
    sim::Checks checks(request_.options.checks);
    checks.attach(launch_);
    FirstAccess first(machine_.hbm);
    const bool checks_memory = request_.options.checks.contains(sim::CheckKind::kMem);
    if (checks_memory) {
      launch_.observers().attach(first);
    }
    if (shared_ != nullptr) {
      run_timed(interrupt, result);
    } else {
      run_untimed(interrupt, result);
    }
    checks.add_result(launch_, result.run);
    result.findings = checks.findings().list();
    result.findings_dropped = checks.findings().dropped();
    if (checks_memory) {
      launch_.observers().detach(first);
      result.first_accesses = first.take();
    }
    return result;
  }

private:
  void run_untimed(const std::atomic<bool>& interrupt, LaunchResult& result) {
    sim::RunOptions options;
    options.max_insns = request_.options.max_insns;
    options.interrupt = &interrupt;
    options.host_threads = host_threads_;
    result.run = request_.options.schedule
                     ? sim::run_scheduled(launch_, *request_.options.schedule, options)
                     : sim::run_functional(launch_, options);
  }

  void run_timed(const std::atomic<bool>& interrupt, LaunchResult& result) {
    sim::TimedOptions options;
    options.timing.max_cycles = request_.options.max_cycles;
    options.timing.record_timeline = request_.options.record_timeline;
    options.timing.timeline_limits = request_.options.timeline_limits;
    options.max_insns = request_.options.max_insns;
    options.interrupt = &interrupt;
    result.timed = sim::run_timed(launch_, *shared_, options);
    result.run = std::move(result.timed->run);
    result.cycles = static_cast<double>(result.timed->counters.cycles);
    result.cycles *= noise_factor(noise_, noise_seed_, request_.sequence);
    result.microseconds = result.cycles / machine_.profile.clock_mhz;
  }

  sim::SharedMemory* shared_; // of the backend; null: untimed
  double noise_;
  uint64_t noise_seed_;
  unsigned host_threads_;
  LaunchRequest request_;
  sim::Machine machine_;
  sim::Launch launch_;
};

class SimBackend : public Backend {
public:
  SimBackend(DeviceInfo info, isa::MachineProfile profile, DeviceOptions options)
      : info_(std::move(info)), profile_(std::move(profile)), options_(std::move(options)),
        shared_(profile_) {}

  const DeviceInfo& info() const override { return info_; }
  const isa::MachineProfile& profile() const override { return profile_; }

  std::unique_ptr<DeviceMemory>
  allocate(uint64_t size_bytes, const std::string& name, const std::string& made_by) override {
    return std::make_unique<SimMemory>(hbm_, hbm_.alloc(size_bytes, name, made_by));
  }

  std::unique_ptr<PreparedLaunch> prepare(LaunchRequest request) override {
    const LaunchOptions& options = request.options;
    if (options.schedule && options.is_timed.value_or(false)) {
      throw DeviceError("a launch cannot follow a schedule and be timed: the timing model is the "
                        "schedule; leave one of the two out");
    }
    if (options.instrument != Instrument::kNone) {
      throw DeviceError(fmt::format("device {} is simulated and has no clock reads to put into a "
                                    "kernel; its timeline shows every insn",
                                    info_.name));
    }
    sim::SharedMemory* shared = runs_in_order(options) ? &shared_ : nullptr;
    return std::make_unique<SimLaunch>(
        profile_, hbm_.table(), shared, options_, std::move(request));
  }

  bool runs_in_order(const LaunchOptions& options) const override {
    return options.is_timed.value_or(info_.is_emulated && !options.schedule);
  }

  std::unique_ptr<sim::Machine> view() override {
    return std::make_unique<sim::Machine>(profile_, hbm_.table());
  }

private:
  DeviceInfo info_;
  isa::MachineProfile profile_;
  DeviceOptions options_;
  sim::Hbm hbm_;
  sim::SharedMemory shared_; // L2 of timed launches; refers to profile_
};

std::string_view profile_name(std::string_view detail, const DeviceOptions& options) {
  if (!options.profile.empty() && !detail.empty() && options.profile != detail) {
    throw DeviceUnavailableError(fmt::format("the device's name says profile {}, the option {}; "
                                             "give one of them",
                                             detail,
                                             options.profile));
  }
  return detail.empty() ? std::string_view(options.profile) : detail;
}

} // namespace

std::unique_ptr<Backend> open_sim(std::string_view detail, const DeviceOptions& options) {
  std::string_view name = profile_name(detail, options);
  if (options.noise != 0) {
    throw DeviceUnavailableError(
        "device sim computes and keeps no time, so it has no noise; use \"emulated:PROFILE\"");
  }
  name = name.empty() ? "reference" : name;
  isa::MachineProfile profile = load_profile("sim", name, options);
  DeviceInfo info{.name = detail.empty() ? "sim" : fmt::format("sim:{}", detail),
                  .kind = "sim",
                  .description = fmt::format("simulator, machine {}", profile.name),
                  .is_emulated = false};
  return std::make_unique<SimBackend>(std::move(info), std::move(profile), options);
}

std::unique_ptr<Backend> open_emulated(std::string_view detail, const DeviceOptions& options) {
  const std::string_view name = profile_name(detail, options);
  if (name.empty() && !options.machine) {
    throw UnknownDeviceError(
        fmt::format("device emulated needs the profile of the machine that it stands in for: "
                    "emulated:{}, or the path of a profile",
                    fmt::join(isa::shipped_machine_names(), ", emulated:")));
  }
  if (!(options.noise >= 0 && options.noise <= 1)) {
    throw DeviceUnavailableError(fmt::format(
        "device emulated: noise is {}; expected a relative deviation from 0 to 1", options.noise));
  }
  isa::MachineProfile profile = load_profile("emulated", name, options);
  DeviceInfo info{
      .name = fmt::format("emulated:{}", name.empty() ? std::string_view(profile.name) : name),
      .kind = "emulated",
      .description = fmt::format(
          "emulated: simulator in timed mode with the figures of machine {}{}, "
          "no hardware",
          profile.name,
          options.noise == 0
              ? std::string()
              : fmt::format(", noise {:g} (seed {})", options.noise, options.noise_seed)),
      .is_emulated = true};
  return std::make_unique<SimBackend>(std::move(info), std::move(profile), options);
}

std::vector<DeviceProbe> probe_sim() {
  return {{.name = "sim",
           .is_usable = true,
           .summary = "simulator, machine reference (sim:PROFILE for another)",
           .tried = {}}};
}

std::vector<DeviceProbe> probe_emulated() {
  std::vector<DeviceProbe> probes;
  for (const std::string& name : isa::shipped_machine_names()) {
    probes.push_back({.name = "emulated:" + name,
                      .is_usable = true,
                      .summary = "emulated: simulator in timed mode, no hardware",
                      .tried = {}});
  }
  return probes;
}

} // namespace pto::rt
