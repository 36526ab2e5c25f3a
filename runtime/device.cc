// SPDX-License-Identifier: Apache-2.0
// The handles: each a reference to the Core and to what it names there.
#include "runtime/device.h"

#include "runtime/core.h"
#include "runtime/open.h"

#include <fmt/format.h>

namespace pto::rt {

// ---------------------------------------------------------------- Buffer

Buffer::Buffer(std::shared_ptr<Core> core, std::shared_ptr<Memory> memory)
    : core_(std::move(core)), memory_(std::move(memory)) {}

Buffer::Buffer(Buffer&&) noexcept = default;

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    if (memory_ != nullptr) {
      core_->drop(*memory_);
    }
    memory_ = std::move(other.memory_); // before the Core, which may end with this handle
    core_ = std::move(other.core_);
  }
  return *this;
}

Buffer::~Buffer() {
  if (memory_ != nullptr) {
    core_->drop(*memory_);
    memory_.reset();
  }
}

uint64_t Buffer::address() const {
  return memory_->address;
}
uint64_t Buffer::size_bytes() const {
  return memory_->size_bytes;
}
const std::string& Buffer::name() const {
  return memory_->name;
}
bool Buffer::is_freed() const {
  return core_->is_freed(*memory_);
}
void Buffer::free(std::string where) {
  core_->free(*memory_, std::move(where));
}

namespace {

void check_range(std::string_view action, const Memory& memory, uint64_t offset, uint64_t bytes) {
  if (offset > memory.size_bytes || bytes > memory.size_bytes - offset) {
    throw CopySizeError(action, memory.label(), memory.size_bytes, offset, bytes);
  }
}

} // namespace

void Buffer::write(std::span<const uint8_t> from, uint64_t offset) {
  check_range("cannot copy to", *memory_, offset, from.size());
  const Device::Turn turn(core_, core_->begin_turn({memory_}, "cannot copy to"));
  memory_->device_memory->write(offset, from);
}

void Buffer::read(std::span<uint8_t> to, uint64_t offset) const {
  check_range("cannot copy from", *memory_, offset, to.size());
  const Device::Turn turn(core_, core_->begin_turn({memory_}, "cannot copy from"));
  memory_->device_memory->read(offset, to);
}

void Buffer::wait() const {
  const Device::Turn turn(core_, core_->begin_turn({memory_}, "cannot wait for"));
}

// ---------------------------------------------------------------- Ticket, Event

Ticket::Ticket(std::shared_ptr<Core> core, std::shared_ptr<Op> op)
    : core_(std::move(core)), op_(std::move(op)) {}

bool Ticket::is_done() const {
  return core_->is_done(*op_);
}
void Ticket::wait() const {
  core_->wait(op_);
}
LaunchResult Ticket::result() const {
  return core_->result(op_);
}

bool Event::is_done() const {
  return op_ == nullptr || core_->is_done(*op_);
}
void Event::wait() const {
  if (op_ != nullptr) {
    core_->wait(op_);
  }
}

// ---------------------------------------------------------------- Stream

struct Stream::Handle {
  Handle(std::shared_ptr<Core> of, std::shared_ptr<StreamState> named, bool closes)
      : core(std::move(of)), state(std::move(named)), closes_on_drop(closes) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (closes_on_drop) {
      core->close_stream(*state);
    }
  }

  std::shared_ptr<Core> core;
  std::shared_ptr<StreamState> state;
  bool closes_on_drop; // the default stream ends with the device
};

Stream::Stream(std::shared_ptr<Handle> handle) : handle_(std::move(handle)) {}

void Stream::sync() const {
  handle_->core->sync_stream(*handle_->state);
}
bool Stream::is_idle() const {
  return handle_->core->is_idle(*handle_->state);
}

Event Stream::record() const {
  Event event;
  event.core_ = handle_->core;
  event.op_ = handle_->core->last_op(*handle_->state);
  return event;
}

void Stream::wait(const Event& event) {
  if (event.op_ == nullptr) {
    return;
  }
  if (event.core_ != handle_->core) {
    throw WrongDeviceError(
        fmt::format("a stream of device {} cannot wait for an event of device {}; wait on the host",
                    handle_->core->backend().info().name,
                    event.core_->backend().info().name));
  }
  handle_->core->add_wait(*handle_->state, event.op_);
}

// ---------------------------------------------------------------- Device

Device::Device(std::shared_ptr<Core> core) : core_(std::move(core)) {}

Device Device::open(std::string_view name, const DeviceOptions& options) {
  return Device(std::make_shared<Core>(open_backend(name, options), options.on_wait));
}

const DeviceInfo& Device::info() const {
  return core_->backend().info();
}
const isa::MachineProfile& Device::profile() const {
  return core_->backend().profile();
}

bool Device::reads_clocks() const {
  return core_->backend().reads_clocks();
}

Buffer Device::alloc(uint64_t size_bytes, std::string name, std::string made_by) {
  return {core_, core_->allocate(size_bytes, std::move(name), std::move(made_by))};
}

Ticket Device::launch(const LaunchSpec& spec, const Stream& stream) {
  if (stream.handle_->core != core_) {
    throw WrongDeviceError(fmt::format("a launch on device {} was given a stream of device {}",
                                       info().name,
                                       stream.handle_->core->backend().info().name));
  }
  LaunchRequest request{.program = spec.program,
                        .grid = spec.grid,
                        .block = spec.block,
                        .args = {},
                        .options = spec.options};
  std::vector<std::shared_ptr<Memory>> pointers;
  for (const LaunchArgument& arg : spec.args) {
    if (arg.buffer != nullptr && arg.buffer->core_ != core_) {
      throw WrongDeviceError(
          fmt::format("argument {} of kernel {} is {} of device {}; the launch is "
                      "on device {}: copy it there",
                      pointers.size() + 1,
                      spec.program->kernel().name,
                      arg.buffer->memory_->label(),
                      arg.buffer->core_->backend().info().name,
                      info().name));
    }
    const bool is_pointer = arg.buffer != nullptr;
    // The type kNone says "whatever the parameter is"; a buffer must meet a pointer.
    request.args.push_back({.bits = arg.bits,
                            .type = is_pointer ? isa::Type::kU64 : arg.type,
                            .is_pointer = is_pointer});
    pointers.push_back(is_pointer ? arg.buffer->memory_ : nullptr);
  }
  return {core_, core_->submit(std::move(request), pointers, stream.handle_->state)};
}

Ticket Device::launch(const LaunchSpec& spec) {
  return launch(spec, default_stream());
}

Stream Device::make_stream() {
  return Stream(std::make_shared<Stream::Handle>(core_, core_->make_stream(), true));
}

Stream Device::default_stream() {
  return Stream(std::make_shared<Stream::Handle>(core_, core_->default_stream(), false));
}

void Device::sync() {
  core_->sync();
}
void Device::interrupt() {
  core_->interrupt();
}
bool Device::is_idle() const {
  return core_->is_idle();
}
bool Device::wait_idle(double seconds) {
  return core_->wait_idle(seconds);
}
std::vector<std::string> Device::take_prints() {
  return core_->take_prints();
}
Device::Usage Device::usage() const {
  return core_->usage();
}
std::unique_ptr<sim::Machine> Device::view() {
  return core_->view();
}

Device::Turn Device::take_turn(std::span<const Buffer* const> buffers) {
  std::vector<std::shared_ptr<Memory>> memories;
  for (const Buffer* buffer : buffers) {
    if (buffer->core_ != core_) {
      throw WrongDeviceError(fmt::format("{} belongs to device {}, not to {}",
                                         buffer->memory_->label(),
                                         buffer->core_->backend().info().name,
                                         info().name));
    }
    memories.push_back(buffer->memory_);
  }
  return {core_, core_->begin_turn(std::move(memories), "cannot use")};
}

Device::Turn::Turn(std::shared_ptr<Core> core, std::shared_ptr<Op> op)
    : core_(std::move(core)), op_(std::move(op)) {}

Device::Turn::~Turn() {
  if (op_ != nullptr) {
    core_->end_turn(op_);
  }
}

// ---------------------------------------------------------------- kernels

std::shared_ptr<const sim::Program> find_kernel(std::shared_ptr<const isa::Object> object,
                                                std::string_view name) {
  std::string error;
  std::shared_ptr<const sim::Program> program = sim::Program::find(std::move(object), name, error);
  if (program == nullptr) {
    throw UnknownKernelError(std::string(name), error);
  }
  return program;
}

} // namespace pto::rt
