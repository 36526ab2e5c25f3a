// SPDX-License-Identifier: Apache-2.0
// Behind the handles of runtime/device.h: what was made, in which order it may run, and how long
// memory lives. Private.
//
// The idea. Everything that uses buffers is an Op: a launch on a stream, or a Turn of a host
// thread (copies, a debugger's run). When an op is made it notes, under the one lock of the
// device, the ops it has to wait for: per buffer the last op that uses it, the events that its
// stream waits for, and on devices whose time depends on history the last launch. Those were all
// made before, so waiting can never go in a circle. Each stream has a thread that takes its ops
// in order and runs one when the ops it waits for are settled.
//
// Lifetimes. Handles own the Core; threads do not, so that the last handle always goes on a thread
// of the user, which joins the streams' threads. Ops own the Memory that they use, and Memory owns
// the Backend, so memory may well be released by a stream's thread.
//
// An early free is a matter of order, not of luck: a buffer is freed too early if no wait of the
// host since has covered a launch that uses it, even if that launch happens to be done.
#pragma once

#include "runtime/device.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace pto::rt {

struct Memory {
  std::shared_ptr<Backend> backend; // outlives device_memory
  std::unique_ptr<DeviceMemory> device_memory;
  std::string name;
  std::string made_by;
  uint64_t address = 0;
  uint64_t size_bytes = 0;

  // Under the device's lock:
  bool is_freed = false;
  std::string freed_by;
  std::shared_ptr<Op> last;                 // that uses it; null: none or settled
  std::shared_ptr<Op> failure;              // of a launch that used it, until somebody is told
  std::vector<std::weak_ptr<Op>> unwatched; // launches with check mem that no wait has covered yet

  /// "buffer x" or "buffer #7"
  [[nodiscard]] std::string label() const;
};

struct EarlyFree {
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  std::string label;
  std::string text; // "buffer x (64 bytes, allocated at a.py:3) was freed at a.py:9"
};

struct Op {
  // Fixed once made:
  uint64_t sequence = 0;               // launches; order in which they were made
  std::shared_ptr<StreamState> stream; // null: a Turn
  std::shared_ptr<const sim::Program> program;
  std::string launched_by;
  std::unique_ptr<PreparedLaunch> prepared; // the stream's thread takes it

  std::atomic<bool> interrupt{false};

  // Under the lock:
  std::vector<std::shared_ptr<Op>> waits_for;
  std::vector<std::shared_ptr<Memory>> memories;
  bool is_done = false;
  bool is_watched = false;  // a wait of the host covered it
  bool is_reported = false; // its failure was thrown, or needs no report
  std::exception_ptr error; // kept it from running
  LaunchResult result;
  std::vector<EarlyFree> early_frees;
};

struct StreamState {
  std::deque<std::shared_ptr<Op>> queue; // the running one stays in front until it is done
  std::vector<std::shared_ptr<Op>> next_waits_for;
  std::shared_ptr<Op> last;
  uint64_t watched = 0; // launches with a smaller sequence are covered by a wait
  bool is_closed = false;
  bool is_finished = false; // its thread has nothing more to do
  std::thread thread;
};

class Core {
public:
  Core(std::unique_ptr<Backend> backend, std::function<void()> on_wait);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  /// Runs what was made, then ends the threads.
  ~Core();

  [[nodiscard]] Backend& backend() const { return *backend_; }

  std::shared_ptr<Memory> allocate(uint64_t size_bytes, std::string name, std::string made_by);
  void free(Memory& memory, std::string where);
  /// The handle is gone: as free(), unless that was called.
  void drop(Memory& memory) noexcept;
  [[nodiscard]] bool is_freed(const Memory& memory) const;
  [[nodiscard]] Device::Usage usage() const;

  std::shared_ptr<StreamState> make_stream();
  void close_stream(StreamState& stream);
  [[nodiscard]] std::shared_ptr<StreamState> default_stream() const { return default_stream_; }
  void sync_stream(StreamState& stream);
  [[nodiscard]] bool is_idle(const StreamState& stream) const;
  std::shared_ptr<Op> last_op(const StreamState& stream) const;
  void add_wait(StreamState& stream, std::shared_ptr<Op> op);

  /// `pointers[i]` is the buffer of request.args[i], null for a scalar.
  std::shared_ptr<Op> submit(LaunchRequest request,
                             const std::vector<std::shared_ptr<Memory>>& pointers,
                             const std::shared_ptr<StreamState>& stream);
  /// Waits for the memories' users; they stay taken until end_turn. `action` is for messages.
  std::shared_ptr<Op> begin_turn(std::vector<std::shared_ptr<Memory>> memories,
                                 std::string_view action);
  void end_turn(const std::shared_ptr<Op>& op);

  [[nodiscard]] bool is_done(const Op& op) const;
  void wait(const std::shared_ptr<Op>& op);
  LaunchResult result(const std::shared_ptr<Op>& op);
  void sync();
  void interrupt();
  [[nodiscard]] bool is_idle() const;
  bool wait_idle(double seconds);
  std::vector<std::string> take_prints();
  std::unique_ptr<sim::Machine> view();

private:
  using Lock = std::unique_lock<std::mutex>;

  template <class Condition> void wait_until(Lock& lock, const Condition& condition);
  void run_stream(StreamState& stream);
  void start_thread(const std::shared_ptr<StreamState>& stream);
  void reap_streams();
  void finish(Op& op, std::vector<std::shared_ptr<Memory>>& released);
  void note_failure(const std::shared_ptr<Op>& op);
  void retire(Memory& memory, std::string where);
  static bool is_settled(const Op& op);
  static bool may_run(const Op& op);
  static void watch(Op& op);
  [[nodiscard]] bool is_watched(const Op& op) const;
  [[nodiscard]] bool is_queue_empty() const;
  void report(const std::shared_ptr<Op>& op);
  [[noreturn]] static void throw_failure(const Op& op);
  void report_first(const StreamState* only);

  std::shared_ptr<Backend> backend_;
  std::function<void()> on_wait_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t next_sequence_ = 0;
  uint64_t watched_ = 0; // launches with a smaller sequence are covered by a Device::sync
  std::vector<std::shared_ptr<StreamState>> streams_;
  std::shared_ptr<StreamState> default_stream_;
  std::shared_ptr<Op> last_in_order_;
  std::vector<std::shared_ptr<Op>> failures_; // that nobody was told
  std::map<uint64_t, std::vector<std::string>> prints_;
  Device::Usage usage_;
  uint64_t next_memory_ = 0;
  bool is_closing_ = false;
};

} // namespace pto::rt
