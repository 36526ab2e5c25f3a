// SPDX-License-Identifier: Apache-2.0
// The NPU as a device: kernels are emitted as Ascend C, compiled by the toolkit when they are first
// launched, and run through libascendcl.so. Every return code is checked; what was made is
// destroyed on every path. None of this has run on hardware: tests use a toolkit of their own
// (docs/npu.md).
//
// The library keeps a current device for each thread, so every call that needs one sets it. A
// launch has a stream of its own.
#include "runtime/npu_backend.h"

#include "runtime/errors.h"
#include "runtime/npu/acl.h"
#include "runtime/npu/ascendc_emitter.h"
#include "runtime/npu/toolkit.h"
#include "runtime/open.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <utility>

namespace pto::rt {

namespace {

// Codes of rt_error_codes.h that say that the kernel went wrong, and not the runtime.
constexpr std::pair<int, std::string_view> kKernelErrors[] = {
    {507014, "timeout of the core"},
    {507015, "exception of the core"},
    {507016, "trap of the core"},
    {507034, "timeout of the vector core"},
    {507035, "exception of the vector core"},
    {507042, "trap: read beyond the memory"},
    {507043, "trap: write beyond the memory"},
};

/// The library, initialised; one for all devices of the process.
class AclSession {
public:
  explicit AclSession(const std::string& library) : acl_(library) {
    const int code = acl_.functions().aclInit(nullptr);
    if (code != kAclRepeatInitialize) { // somebody else in the process has done it
      acl_.check(code, "aclInit", "starting the NPU runtime");
      must_finalize_ = true;
    }
  }
  ~AclSession() {
    if (must_finalize_) {
      acl_.functions().aclFinalize(); // nobody is left to tell
    }
  }
  AclSession(const AclSession&) = delete;
  AclSession& operator=(const AclSession&) = delete;

  [[nodiscard]] const Acl& acl() const { return acl_; }

  static std::shared_ptr<AclSession> open(const std::string& library) {
    static std::mutex lock;
    static std::weak_ptr<AclSession> current;
    const std::scoped_lock hold(lock);
    std::shared_ptr<AclSession> session = current.lock();
    if (session == nullptr) {
      session = std::make_shared<AclSession>(library);
      current = session;
    }
    return session;
  }

private:
  Acl acl_;
  bool must_finalize_ = false;
};

/// A device of the session, current on the thread that made it, reset when the last user is gone.
class AclDevice {
public:
  AclDevice(std::shared_ptr<AclSession> session, int32_t number)
      : session_(std::move(session)), number_(number) {
    use();
  }
  ~AclDevice() { functions().aclrtResetDevice(number_); }
  AclDevice(const AclDevice&) = delete;
  AclDevice& operator=(const AclDevice&) = delete;

  [[nodiscard]] const AclFunctions& functions() const { return session_->acl().functions(); }
  void check(int code, std::string_view function, std::string_view doing) const {
    session_->acl().check(code, function, doing);
  }
  void use() const {
    check(functions().aclrtSetDevice(number_), "aclrtSetDevice", fmt::format("npu:{}", number_));
  }
  [[nodiscard]] std::string last_message() const { return session_->acl().last_message(); }
  [[nodiscard]] int32_t number() const { return number_; }

private:
  std::shared_ptr<AclSession> session_;
  int32_t number_;
};

class NpuMemory : public DeviceMemory {
public:
  NpuMemory(std::shared_ptr<AclDevice> device, uint64_t size_bytes, std::string name)
      : device_(std::move(device)), size_bytes_(std::max<uint64_t>(size_bytes, 1)),
        name_(std::move(name)) {
    device_->use();
    device_->check(device_->functions().aclrtMalloc(&memory_, size_bytes_, kAclMallocHugeFirst),
                   "aclrtMalloc",
                   fmt::format("allocating {} bytes for {}", size_bytes_, name_));
    try {
      device_->check(device_->functions().aclrtMemset(memory_, size_bytes_, 0, size_bytes_),
                     "aclrtMemset",
                     fmt::format("zeroing {} bytes of {}", size_bytes_, name_));
    } catch (...) {
      device_->functions().aclrtFree(memory_);
      throw;
    }
  }
  ~NpuMemory() override {
    // Nobody is left to tell of a failure; the memory is given back in any case.
    device_->functions().aclrtSetDevice(device_->number());
    device_->functions().aclrtFree(memory_);
  }
  NpuMemory(const NpuMemory&) = delete;
  NpuMemory& operator=(const NpuMemory&) = delete;

  uint64_t address() const override { return reinterpret_cast<uint64_t>(memory_); }
  void write(uint64_t offset, std::span<const uint8_t> from) override {
    if (from.empty()) {
      return;
    }
    device_->use();
    device_->check(device_->functions().aclrtMemcpy(static_cast<uint8_t*>(memory_) + offset,
                                                    size_bytes_ - offset,
                                                    from.data(),
                                                    from.size(),
                                                    kAclHostToDevice),
                   "aclrtMemcpy",
                   fmt::format("copying {} bytes to {}", from.size(), name_));
  }
  void read(uint64_t offset, std::span<uint8_t> to) const override {
    if (to.empty()) {
      return;
    }
    device_->use();
    device_->check(device_->functions().aclrtMemcpy(to.data(),
                                                    to.size(),
                                                    static_cast<const uint8_t*>(memory_) + offset,
                                                    to.size(),
                                                    kAclDeviceToHost),
                   "aclrtMemcpy",
                   fmt::format("copying {} bytes from {}", to.size(), name_));
  }

private:
  std::shared_ptr<AclDevice> device_;
  uint64_t size_bytes_;
  std::string name_;
  void* memory_ = nullptr;
};

/// A stream and two events, destroyed in any case.
class LaunchStream {
public:
  explicit LaunchStream(const AclDevice& device) : device_(device) {
    try {
      check(functions().aclrtCreateStream(&stream_), "aclrtCreateStream");
      check(functions().aclrtCreateEvent(&begin_), "aclrtCreateEvent");
      check(functions().aclrtCreateEvent(&end_), "aclrtCreateEvent");
    } catch (...) {
      destroy();
      throw;
    }
  }
  ~LaunchStream() { destroy(); }
  LaunchStream(const LaunchStream&) = delete;
  LaunchStream& operator=(const LaunchStream&) = delete;

  [[nodiscard]] void* stream() const { return stream_; }
  void begin() const { check(functions().aclrtRecordEvent(begin_, stream_), "aclrtRecordEvent"); }
  void end() const { check(functions().aclrtRecordEvent(end_, stream_), "aclrtRecordEvent"); }
  [[nodiscard]] double microseconds() const {
    float milliseconds = 0;
    check(functions().aclrtEventElapsedTime(&milliseconds, begin_, end_), "aclrtEventElapsedTime");
    return static_cast<double>(milliseconds) * 1000;
  }

private:
  [[nodiscard]] const AclFunctions& functions() const { return device_.functions(); }
  void check(int code, std::string_view function) const {
    device_.check(code, function, "preparing a launch");
  }
  void destroy() const {
    if (end_ != nullptr) {
      functions().aclrtDestroyEvent(end_);
    }
    if (begin_ != nullptr) {
      functions().aclrtDestroyEvent(begin_);
    }
    if (stream_ != nullptr) {
      functions().aclrtDestroyStream(stream_);
    }
  }

  const AclDevice& device_;
  void* stream_ = nullptr;
  void* begin_ = nullptr;
  void* end_ = nullptr;
};

// Clock reads write an entry for each region and warp; beyond this the kernel is too large to look
// at.
constexpr uint64_t kMaxProbeBytes = uint64_t{256} << 20;

/// A compiled kernel and its constants, kept as long as the device.
struct NpuKernel {
  EmittedKernel emitted;
  std::vector<ProbeRegion> regions;
  LaunchFn launch = nullptr;
  std::unique_ptr<NpuMemory> constants; // null: none
};

uint64_t warps_per_block(const LaunchRequest& request) {
  return (request.block.total() + isa::kWarpLanes - 1) / isa::kWarpLanes;
}
/// Two words an entry.
uint64_t probe_words(const NpuKernel& kernel, const LaunchRequest& request) {
  return kernel.emitted.probe_entries * 2 * warps_per_block(request) * request.grid.total();
}

class NpuLaunch : public PreparedLaunch {
public:
  NpuLaunch(std::shared_ptr<AclDevice> device,
            std::shared_ptr<const NpuKernel> kernel,
            uint64_t scratch_bytes,
            LaunchRequest request)
      : device_(std::move(device)), kernel_(std::move(kernel)), scratch_bytes_(scratch_bytes),
        request_(std::move(request)) {}

  LaunchResult run(const std::atomic<bool>& /*interrupt*/) override {
    device_->use();
    const LaunchStream stream(*device_);
    std::vector<uint64_t> arguments;
    for (const sim::LaunchArg& arg : request_.args) {
      arguments.push_back(arg.bits);
    }
    const uint32_t grid[3] = {request_.grid.x, request_.grid.y, request_.grid.z};
    const uint32_t block[3] = {request_.block.x, request_.block.y, request_.block.z};
    const bool is_probed = request_.options.instrument != Instrument::kNone;
    std::optional<NpuMemory> probe;
    if (is_probed) {
      probe.emplace(device_, probe_words(*kernel_, request_) * sizeof(uint64_t), "clock reads");
    }
    void* constants = kernel_->constants == nullptr
                          ? nullptr
                          : reinterpret_cast<void*>(kernel_->constants->address());
    LaunchResult result;
    stream.begin();
    int code = kernel_->launch(grid,
                               block,
                               scratch_bytes_,
                               arguments.data(),
                               constants,
                               is_probed ? reinterpret_cast<void*>(probe->address()) : nullptr,
                               stream.stream());
    if (code == kAclSuccess) {
      stream.end();
      code = device_->functions().aclrtSynchronizeStream(stream.stream());
    }
    if (code != kAclSuccess) {
      fail(code, result);
      return result;
    }
    result.microseconds = stream.microseconds();
    result.run.blocks_done = request_.grid.total();
    if (is_probed) {
      result.probe = read_back(*probe);
    }
    return result;
  }

private:
  [[nodiscard]] ProbeResult read_back(const NpuMemory& probe) const {
    std::vector<uint64_t> words(probe_words(*kernel_, request_));
    probe.read(0, {reinterpret_cast<uint8_t*>(words.data()), words.size() * sizeof(uint64_t)});
    std::string error;
    ProbeResult result = read_probe(
        words, kernel_->regions, request_.options.instrument, warps_per_block(request_), error);
    if (!error.empty()) {
      throw DeviceError(fmt::format(
          "the clock reads of kernel {} make no sense: {}", kernel_->emitted.name, error));
    }
    return result;
  }

  void fail(int code, LaunchResult& result) const {
    const std::string message = device_->last_message();
    for (const auto& [kernel_code, meaning] : kKernelErrors) {
      if (code == kernel_code) {
        result.run.status = sim::RunStatus::kFault;
        sim::Fault fault;
        fault.kind = sim::FaultKind::kTrap;
        fault.pc = kernel_->emitted.first_pc;
        fault.message = fmt::format("the NPU stopped the kernel: {} (code {}): {}; run it on "
                                    "device sim with checks for the place",
                                    meaning,
                                    code,
                                    message);
        result.run.fault = std::move(fault);
        return;
      }
    }
    throw AclError("aclrtSynchronizeStream",
                   code,
                   fmt::format("running kernel {}: the NPU runtime returned {}: {}",
                               kernel_->emitted.name,
                               code,
                               message));
  }

  std::shared_ptr<AclDevice> device_;
  std::shared_ptr<const NpuKernel> kernel_;
  uint64_t scratch_bytes_;
  LaunchRequest request_;
};

class NpuBackend : public Backend {
public:
  NpuBackend(DeviceInfo info,
             isa::MachineProfile profile,
             Toolkit toolkit,
             std::shared_ptr<AclDevice> device)
      : info_(std::move(info)), profile_(std::move(profile)), checked_(profile_),
        compiler_(std::move(toolkit)), device_(std::move(device)) {}

  const DeviceInfo& info() const override { return info_; }
  const isa::MachineProfile& profile() const override { return profile_; }

  std::unique_ptr<DeviceMemory>
  allocate(uint64_t size_bytes, const std::string& name, const std::string& /*made_by*/) override {
    return std::make_unique<NpuMemory>(device_, size_bytes, name);
  }

  std::unique_ptr<PreparedLaunch> prepare(LaunchRequest request) override {
    refuse(request.options);
    // The simulator's own checks of shape, arguments, registers and scratchpad.
    const sim::Launch checked(checked_,
                              request.program,
                              {.grid = request.grid,
                               .block = request.block,
                               .args = request.args,
                               .dynamic_l1_bytes = request.options.dynamic_l1_bytes});
    const uint32_t lanes = request.block.x * request.block.y * request.block.z;
    const Instrument instrument = request.options.instrument;
    std::shared_ptr<const NpuKernel> kernel =
        launchable(request.program, bound_of(lanes), instrument);
    check_probe_size(*kernel, request);
    uint64_t scratch = kernel->emitted.scratch_bytes;
    if (kernel->emitted.allocates) {
      scratch = std::max<uint64_t>(scratch, profile_.max_scratchpad_bytes());
    }
    return std::make_unique<NpuLaunch>(device_, std::move(kernel), scratch, std::move(request));
  }

  bool runs_in_order(const LaunchOptions& /*options*/) const override { return false; }
  bool reads_clocks() const override { return true; }

private:
  static void refuse(const LaunchOptions& options) {
    const char* what = !options.checks.empty()            ? "checks"
                       : options.schedule                 ? "a schedule"
                       : options.record_timeline          ? "a timeline"
                       : options.max_insns != UINT64_MAX  ? "a limit of instructions"
                       : options.max_cycles != UINT64_MAX ? "a limit of cycles"
                                                          : nullptr;
    if (what != nullptr) {
      throw DeviceError(fmt::format("device npu cannot do {}: launch on \"sim\" or "
                                    "\"emulated:PROFILE\" for that",
                                    what));
    }
  }

  static void check_probe_size(const NpuKernel& kernel, const LaunchRequest& request) {
    const uint64_t bytes = probe_words(kernel, request) * sizeof(uint64_t);
    if (bytes > kMaxProbeBytes) {
      throw ProbeSizeError(fmt::format(
          "clock reads in {} regions of kernel {} by {} warps take {} bytes, more than {}: launch "
          "fewer blocks to see insns",
          kernel.emitted.probe_entries - 1,
          kernel.emitted.name,
          warps_per_block(request) * request.grid.total(),
          bytes,
          kMaxProbeBytes));
    }
  }

  // Launch bounds come in the steps in which the registers of a lane fall.
  static uint32_t bound_of(uint32_t lanes) {
    return lanes <= 256 ? 256 : lanes <= 512 ? 512 : lanes <= 1024 ? 1024 : 2048;
  }

  // A program is emitted for a bound once, and what is emitted compiled once.
  std::shared_ptr<const NpuKernel> launchable(const std::shared_ptr<const sim::Program>& program,
                                              uint32_t bound,
                                              Instrument instrument) {
    std::erase_if(launched_, [](const Launched& past) { return past.program.expired(); });
    for (const Launched& past : launched_) {
      if (past.bound == bound && past.instrument == instrument && past.program.lock() == program) {
        return past.kernel;
      }
    }
    std::shared_ptr<const NpuKernel> kernel = compiled(*program, bound, instrument);
    launched_.push_back({program, bound, instrument, kernel});
    return kernel;
  }

  std::shared_ptr<const NpuKernel>
  compiled(const sim::Program& program, uint32_t bound, Instrument instrument) {
    const std::string name = program.kernel().name;
    isa::Diagnostics diags;
    const std::optional<AscendC> file = emit_ascendc(
        program.object(), {.kernel = name, .instrument = instrument, .max_lanes = bound}, diags);
    if (!file) {
      throw DeviceError(
          fmt::format("kernel {} has no Ascend C form:\n{}", name, isa::render(diags)));
    }
    const std::vector<uint8_t>& constants = program.object().const_data;
    const auto found = kernels_.find({file->text, constants});
    if (found != kernels_.end()) {
      return found->second;
    }
    const std::string path = compiler_.compile(file->text, file->is_hybrid);
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); // stays until the process ends
    if (library == nullptr) {
      const char* reason = dlerror();
      throw DeviceError(fmt::format("cannot load the compiled kernel {}: {}",
                                    name,
                                    reason != nullptr ? reason : "no reason given"));
    }
    auto kernel = std::make_shared<NpuKernel>();
    kernel->emitted = file->kernels.at(0);
    kernel->regions = file->regions;
    kernel->launch =
        reinterpret_cast<LaunchFn>(dlsym(library, kernel->emitted.launch_symbol.c_str()));
    if (kernel->launch == nullptr) {
      throw DeviceError(fmt::format("the compiled kernel lacks {}", kernel->emitted.launch_symbol));
    }
    if (!constants.empty()) {
      kernel->constants = std::make_unique<NpuMemory>(device_, constants.size(), "constants");
      kernel->constants->write(0, constants);
    }
    kernels_.emplace(std::pair(file->text, constants), kernel);
    return kernel;
  }

  struct Launched {
    std::weak_ptr<const sim::Program> program;
    uint32_t bound = 0;
    Instrument instrument = Instrument::kNone;
    std::shared_ptr<const NpuKernel> kernel;
  };

  DeviceInfo info_;
  isa::MachineProfile profile_;
  sim::Machine checked_; // holds no memory; launches are checked against it
  NpuCompiler compiler_;
  std::shared_ptr<AclDevice> device_;
  // By emitted text and constants.
  std::map<std::pair<std::string, std::vector<uint8_t>>, std::shared_ptr<const NpuKernel>> kernels_;
  std::vector<Launched> launched_; // whose programs still exist
};

uint32_t device_count(const Acl& acl) {
  uint32_t count = 0;
  acl.check(acl.functions().aclrtGetDeviceCount(&count), "aclrtGetDeviceCount", "counting NPUs");
  return count;
}

} // namespace

std::unique_ptr<Backend> open_npu(std::string_view detail, const DeviceOptions& options) {
  int32_t number = 0;
  const auto [end, failed] = std::from_chars(detail.data(), detail.data() + detail.size(), number);
  if (!detail.empty() &&
      (failed != std::errc() || end != detail.data() + detail.size() || number < 0)) {
    throw UnknownDeviceError(
        fmt::format("device npu:{}: expected the number of a device, as in npu:0", detail));
  }
  ToolkitSearch search = find_toolkit();
  if (!search.toolkit) {
    throw DeviceUnavailableError(
        "device npu: no CANN toolkit was found; install one (9.1 or later) and set "
        "ASCEND_HOME_PATH, or use \"sim\" or \"emulated:PROFILE\"",
        search.tried);
  }
  const std::shared_ptr<AclSession> session = AclSession::open(search.toolkit->library);
  const uint32_t count = device_count(session->acl());
  if (static_cast<uint32_t>(number) >= count) {
    search.tried.push_back(fmt::format("aclrtGetDeviceCount: {} devices", count));
    throw DeviceUnavailableError(fmt::format("device npu:{}: the runtime of {} sees {} devices",
                                             number,
                                             search.toolkit->root,
                                             count),
                                 search.tried);
  }
  isa::MachineProfile profile =
      load_profile("npu", options.profile.empty() ? "ascend950" : options.profile, options);
  auto device = std::make_shared<AclDevice>(session, number);
  const char* soc = device->functions().aclrtGetSocName();
  DeviceInfo info{.name = fmt::format("npu:{}", number),
                  .kind = "npu",
                  .description = fmt::format("NPU {} ({}), toolkit {}",
                                             number,
                                             soc != nullptr ? soc : "unknown",
                                             search.toolkit->root),
                  .is_emulated = false};
  return std::make_unique<NpuBackend>(
      std::move(info), std::move(profile), std::move(*search.toolkit), std::move(device));
}

std::vector<DeviceProbe> probe_npu() {
  ToolkitSearch search = find_toolkit();
  DeviceProbe none{.name = "npu", .is_usable = false, .summary = "no CANN toolkit", .tried = {}};
  if (!search.toolkit) {
    none.tried = std::move(search.tried);
    return {none};
  }
  none.summary = "a CANN toolkit, but no NPU that its runtime can use";
  try {
    const std::shared_ptr<AclSession> session = AclSession::open(search.toolkit->library);
    search.tried.push_back(fmt::format("{}: loaded", search.toolkit->library));
    const uint32_t count = device_count(session->acl());
    search.tried.push_back(fmt::format("aclrtGetDeviceCount: {} devices", count));
    std::vector<DeviceProbe> probes;
    for (uint32_t i = 0; i < count; ++i) {
      probes.push_back({.name = fmt::format("npu:{}", i),
                        .is_usable = true,
                        .summary = fmt::format("NPU, toolkit {}", search.toolkit->root),
                        .tried = search.tried});
    }
    if (!probes.empty()) {
      return probes;
    }
  } catch (const Error& error) {
    search.tried.emplace_back(error.what());
  }
  none.tried = std::move(search.tried);
  return {none};
}

} // namespace pto::rt
