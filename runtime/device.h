// SPDX-License-Identifier: Apache-2.0
// The runtime: devices, buffers, streams, launches and events.
//
// Order. Work on one stream runs in the order in which it was made, on the stream's own thread.
// Work on different streams runs at the same time unless it shares a buffer: what uses a buffer
// waits for whatever used it before, copies by the host included. So results never depend on
// timing; to order launches that share memory by addresses stored in memory only, use events.
//
// Lifetimes. A launch keeps its buffers. Freeing or dropping one while a launch uses it is safe:
// its memory is released when the last user is done. With the check `mem` that is a finding (see
// Ticket::result), because a real device would have crashed or computed nonsense. Handles may be
// dropped in any order; the device ends with its last handle, after the work that was made.
//
// Errors. Misuse throws at the call. A launch that faults throws a KernelError once, from the first
// wait that covers it: Ticket::wait, Stream::sync, Device::sync, Event::wait or a copy of one of
// its buffers.
//
// Thread rule: every function may be called from any thread; a handle object itself is not to be
// assigned while another thread uses it.
#pragma once

#include "runtime/backend.h"
#include "runtime/errors.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pto::rt {

class Core;
struct Memory;
struct Op;
struct StreamState;

/// Owns memory of a device. Move-only; dropping it frees.
class Buffer {
public:
  Buffer(Buffer&&) noexcept;
  Buffer& operator=(Buffer&&) noexcept;
  ~Buffer();

  [[nodiscard]] uint64_t address() const;
  [[nodiscard]] uint64_t size_bytes() const;
  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] bool is_freed() const;
  /// Throws FreedBufferError the second time. `where` is what later messages say: "train.py:12".
  void free(std::string where = {});
  /// Copies between host and device, complete on return; waits for the launches that use the
  /// buffer. Throws CopySizeError where the range is not within it.
  void write(std::span<const uint8_t> from, uint64_t offset = 0);
  void read(std::span<uint8_t> to, uint64_t offset = 0) const;
  /// Until no launch made so far uses it.
  void wait() const;

private:
  friend class Device;
  Buffer(std::shared_ptr<Core> core, std::shared_ptr<Memory> memory);
  std::shared_ptr<Core> core_;
  std::shared_ptr<Memory> memory_;
};

/// An argument of a launch: a place in a buffer, or the bits of a scalar.
struct LaunchArgument {
  const Buffer* buffer = nullptr;
  uint64_t bits = 0; // of a scalar; byte offset in a buffer
  isa::Type type = isa::Type::kNone;

  static LaunchArgument pointer(const Buffer& to, uint64_t offset_bytes = 0) {
    return {.buffer = &to, .bits = offset_bytes};
  }
  /// With kNone the bits are taken as the parameter's type says.
  static LaunchArgument scalar(uint64_t bits, isa::Type type = isa::Type::kNone) {
    return {.buffer = nullptr, .bits = bits, .type = type};
  }
};

struct LaunchSpec {
  std::shared_ptr<const sim::Program> program;
  sim::Dim3 grid{};
  sim::Dim3 block{};
  std::vector<LaunchArgument> args;
  LaunchOptions options;
};

/// One launch that was made.
class Ticket {
public:
  [[nodiscard]] bool is_done() const;
  /// Until it is done; throws its KernelError if nobody was told yet, InterruptedError if it was
  /// interrupted.
  void wait() const;
  /// A copy of what came of it, early frees among the findings; waits, but throws only what kept it
  /// from running.
  [[nodiscard]] LaunchResult result() const;

private:
  friend class Device;
  Ticket(std::shared_ptr<Core> core, std::shared_ptr<Op> op);
  std::shared_ptr<Core> core_;
  std::shared_ptr<Op> op_;
};

/// A point in a stream.
class Event {
public:
  /// Nothing was recorded: is_done() is true and waits return at once.
  Event() = default;
  [[nodiscard]] bool is_done() const;
  void wait() const;

private:
  friend class Stream;
  std::shared_ptr<Core> core_;
  std::shared_ptr<Op> op_; // the last work before the point; null: none
};

/// A sequence of launches with a thread of its own. Copies of a handle are the same stream. When
/// the last one is dropped, the work that was made still runs.
class Stream {
public:
  /// Until all work made on it so far is done.
  void sync() const;
  [[nodiscard]] bool is_idle() const;
  /// The point after all work made on it so far.
  [[nodiscard]] Event record() const;
  /// Work made on this stream from now on starts after the event.
  void wait(const Event& event);

private:
  friend class Device;
  struct Handle;
  explicit Stream(std::shared_ptr<Handle> handle);
  std::shared_ptr<Handle> handle_;
};

/// Copies of a handle are the same device.
class Device {
public:
  /// "sim", "sim:PROFILE", "emulated:PROFILE", "npu", "npu:0". Throws DeviceUnavailableError.
  [[nodiscard]] static Device open(std::string_view name, const DeviceOptions& options = {});

  [[nodiscard]] const DeviceInfo& info() const;
  [[nodiscard]] const isa::MachineProfile& profile() const;
  /// True where LaunchOptions::instrument is possible.
  [[nodiscard]] bool reads_clocks() const;

  /// Zeroed. `name` and `made_by` are what messages say about it.
  [[nodiscard]] Buffer alloc(uint64_t size_bytes, std::string name = {}, std::string made_by = {});
  /// Asynchronous. Throws sim::LaunchError, FreedBufferError, WrongDeviceError or what the device
  /// refuses. Blocks while the stream has kMaxQueued launches that have not run.
  Ticket launch(const LaunchSpec& spec);
  Ticket launch(const LaunchSpec& spec, const Stream& stream);
  [[nodiscard]] Stream make_stream();
  /// The stream of launches that name none.
  [[nodiscard]] Stream default_stream();

  /// Until all work made so far, on every stream, is done.
  void sync();
  /// Ends what runs and drops what waits: those launches end with RunStatus::kInterrupted, which
  /// sync() and copies do not report again.
  void interrupt();
  [[nodiscard]] bool is_idle() const;
  /// Waits at most so long; true if idle then. Throws nothing.
  [[nodiscard]] bool wait_idle(double seconds);

  /// Lines that kernels printed, of launches that are done, in the order of the launches; each
  /// once.
  [[nodiscard]] std::vector<std::string> take_prints();
  /// Bytes of buffers that nobody freed, and how many there are.
  struct Usage {
    uint64_t bytes = 0;
    uint64_t buffers = 0;
  };
  [[nodiscard]] Usage usage() const;

  /// Work of the caller's thread on buffers: waits until nobody uses them and keeps others waiting
  /// as long as the result lives.
  class Turn;
  [[nodiscard]] Turn take_turn(std::span<const Buffer* const> buffers);
  /// A simulated machine over the memory as it is now, for a debugger (Backend::view); throws
  /// DeviceUnavailableError if the device is not simulated. Hold a Turn while it runs.
  [[nodiscard]] std::unique_ptr<sim::Machine> view();

  static constexpr size_t kMaxQueued = 256;

private:
  explicit Device(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;
};

class Device::Turn {
public:
  Turn(Turn&&) noexcept = default;
  Turn& operator=(Turn&&) = delete;
  ~Turn();

private:
  friend class Buffer;
  friend class Device;
  Turn(std::shared_ptr<Core> core, std::shared_ptr<Op> op);
  std::shared_ptr<Core> core_;
  std::shared_ptr<Op> op_;
};

/// The kernel of that name (empty: the only one), ready to launch. Throws UnknownKernelError.
[[nodiscard]] std::shared_ptr<const sim::Program>
find_kernel(std::shared_ptr<const isa::Object> object, std::string_view name = {});

/// What was looked for, and whether it can be used: one entry a device that there might be.
struct DeviceProbe {
  std::string name; // for Device::open
  bool is_usable = false;
  std::string summary;            // one line
  std::vector<std::string> tried; // every place looked at, and what was found
};
[[nodiscard]] std::vector<DeviceProbe> probe_devices();

} // namespace pto::rt
