// SPDX-License-Identifier: Apache-2.0
// Order, threads and lifetimes of one device.
#include "runtime/core.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace pto::rt {

namespace {

constexpr auto kWaitSlice = std::chrono::milliseconds(50);

std::string place_clause(std::string_view word, const std::string& place) {
  return place.empty() ? std::string() : fmt::format("{}{}", word, place);
}

} // namespace

std::string Memory::label() const {
  return "buffer " + name;
}

Core::Core(std::unique_ptr<Backend> backend, std::function<void()> on_wait)
    : backend_(std::move(backend)), on_wait_(std::move(on_wait)) {
  default_stream_ = make_stream();
}

Core::~Core() {
  {
    const Lock lock(mutex_);
    is_closing_ = true;
  }
  changed_.notify_all();
  for (const std::shared_ptr<StreamState>& stream : streams_) {
    if (stream->thread.joinable()) {
      stream->thread.join();
    }
  }
}

template <class Condition> void Core::wait_until(Lock& lock, const Condition& condition) {
  if (!on_wait_) {
    changed_.wait(lock, condition);
    return;
  }
  while (!changed_.wait_for(lock, kWaitSlice, condition)) {
    lock.unlock();
    on_wait_();
    lock.lock();
  }
}

// ---------------------------------------------------------------- memory

std::shared_ptr<Memory> Core::allocate(uint64_t size_bytes, std::string name, std::string made_by) {
  const Lock lock(mutex_);
  auto memory = std::make_shared<Memory>();
  memory->name = name.empty() ? fmt::format("#{}", next_memory_) : std::move(name);
  ++next_memory_;
  memory->made_by = std::move(made_by);
  memory->backend = backend_;
  memory->device_memory = backend_->allocate(size_bytes, memory->name, memory->made_by);
  memory->address = memory->device_memory->address();
  memory->size_bytes = size_bytes;
  usage_.bytes += size_bytes;
  ++usage_.buffers;
  return memory;
}

void Core::retire(Memory& memory, std::string where) {
  memory.is_freed = true;
  memory.freed_by = std::move(where);
  usage_.bytes -= memory.size_bytes;
  --usage_.buffers;
  for (const std::weak_ptr<Op>& weak : memory.unwatched) {
    const std::shared_ptr<Op> op = weak.lock();
    if (op != nullptr && !is_watched(*op)) {
      op->early_frees.push_back({memory.address,
                                 memory.size_bytes,
                                 memory.label(),
                                 fmt::format("{} ({} bytes{}) was freed{}",
                                             memory.label(),
                                             memory.size_bytes,
                                             place_clause(", allocated at ", memory.made_by),
                                             place_clause(" at ", memory.freed_by))});
    }
  }
  memory.unwatched.clear();
  memory.device_memory->retire(memory.freed_by);
}

void Core::free(Memory& memory, std::string where) {
  const Lock lock(mutex_);
  if (memory.is_freed) {
    throw FreedBufferError("cannot free", memory.label(), memory.size_bytes, memory.freed_by);
  }
  retire(memory, std::move(where));
}

void Core::drop(Memory& memory) noexcept {
  const Lock lock(mutex_);
  if (!memory.is_freed) {
    retire(memory, {});
  }
}

bool Core::is_freed(const Memory& memory) const {
  const Lock lock(mutex_);
  return memory.is_freed;
}

Device::Usage Core::usage() const {
  const Lock lock(mutex_);
  return usage_;
}

// ---------------------------------------------------------------- order

/// An op whose wait was given up is done, but what was to come before it may still run.
bool Core::is_settled(const Op& op) {
  return op.is_done && may_run(op);
}

bool Core::may_run(const Op& op) {
  return std::all_of(op.waits_for.begin(),
                     op.waits_for.end(),
                     [](const std::shared_ptr<Op>& before) { return is_settled(*before); });
}

void Core::watch(Op& op) {
  op.is_watched = true;
  if (op.stream != nullptr) {
    op.stream->watched = std::max(op.stream->watched, op.sequence + 1);
  }
}

bool Core::is_watched(const Op& op) const {
  return op.is_watched || op.sequence < watched_ ||
         (op.stream != nullptr && op.sequence < op.stream->watched);
}

void Core::finish(Op& op, std::vector<std::shared_ptr<Memory>>& released) {
  op.is_done = true;
  if (may_run(op)) {
    op.waits_for.clear();
  }
  for (const std::shared_ptr<Memory>& memory : op.memories) {
    if (memory->last.get() == &op && op.waits_for.empty()) {
      memory->last.reset();
    }
  }
  // The caller drops them without the lock: releasing memory may take the device a while.
  released = std::move(op.memories);
  op.memories.clear();
}

std::shared_ptr<Op> Core::submit(LaunchRequest request,
                                 const std::vector<std::shared_ptr<Memory>>& pointers,
                                 const std::shared_ptr<StreamState>& stream) {
  auto op = std::make_shared<Op>();
  op->stream = stream;
  op->program = request.program;
  op->launched_by = request.options.launched_by;
  const bool checks_memory = request.options.checks.contains(sim::CheckKind::kMem);
  Lock lock(mutex_);
  wait_until(lock, [&] { return stream->queue.size() < Device::kMaxQueued; });
  for (size_t i = 0; i < pointers.size(); ++i) {
    const std::shared_ptr<Memory>& memory = pointers[i];
    if (memory == nullptr) {
      continue;
    }
    if (memory->is_freed) {
      throw FreedBufferError(
          fmt::format("argument {} of kernel {} is", i + 1, request.program->kernel().name),
          memory->label(),
          memory->size_bytes,
          memory->freed_by);
    }
    request.args[i].bits += memory->address;
    if (std::find(op->memories.begin(), op->memories.end(), memory) == op->memories.end()) {
      op->memories.push_back(memory);
    }
  }
  op->sequence = request.sequence = next_sequence_;
  const bool is_in_order = backend_->runs_in_order(request.options);
  op->prepared = backend_->prepare(std::move(request));
  // Nothing below throws: from here on the launch is made.
  ++next_sequence_;
  op->waits_for = std::move(stream->next_waits_for);
  stream->next_waits_for.clear();
  for (const std::shared_ptr<Memory>& memory : op->memories) {
    if (memory->last != nullptr) {
      op->waits_for.push_back(std::move(memory->last));
    }
    memory->last = op;
    if (checks_memory) {
      std::erase_if(memory->unwatched, [&](const std::weak_ptr<Op>& weak) {
        const std::shared_ptr<Op> other = weak.lock();
        return other == nullptr || is_watched(*other);
      });
      memory->unwatched.push_back(op);
    }
  }
  if (is_in_order) {
    if (last_in_order_ != nullptr) {
      op->waits_for.push_back(std::move(last_in_order_));
    }
    last_in_order_ = op;
  }
  stream->queue.push_back(op);
  stream->last = op;
  start_thread(stream);
  changed_.notify_all();
  return op;
}

std::shared_ptr<Op> Core::begin_turn(std::vector<std::shared_ptr<Memory>> memories,
                                     std::string_view action) {
  auto op = std::make_shared<Op>();
  std::sort(memories.begin(), memories.end());
  memories.erase(std::unique(memories.begin(), memories.end()), memories.end());
  std::vector<std::shared_ptr<Memory>> released;
  Lock lock(mutex_);
  for (const std::shared_ptr<Memory>& memory : memories) {
    if (memory->is_freed) {
      throw FreedBufferError(action, memory->label(), memory->size_bytes, memory->freed_by);
    }
  }
  op->memories = std::move(memories);
  for (const std::shared_ptr<Memory>& memory : op->memories) {
    if (memory->last != nullptr) {
      op->waits_for.push_back(std::move(memory->last));
    }
    memory->last = op;
  }
  try {
    wait_until(lock, [&] { return may_run(*op); });
    op->waits_for.clear();
    for (const std::shared_ptr<Memory>& memory : op->memories) {
      for (const std::weak_ptr<Op>& weak : memory->unwatched) {
        if (const std::shared_ptr<Op> other = weak.lock()) {
          watch(*other);
        }
      }
      memory->unwatched.clear();
      if (const std::shared_ptr<Op> failure = std::move(memory->failure)) {
        report(failure);
      }
    }
  } catch (...) {
    if (!lock.owns_lock()) {
      lock.lock();
    }
    finish(*op, released);
    lock.unlock();
    changed_.notify_all();
    throw;
  }
  return op;
}

void Core::end_turn(const std::shared_ptr<Op>& op) {
  std::vector<std::shared_ptr<Memory>> released;
  {
    const Lock lock(mutex_);
    finish(*op, released);
  }
  changed_.notify_all();
}

// ---------------------------------------------------------------- streams

std::shared_ptr<StreamState> Core::make_stream() {
  auto stream = std::make_shared<StreamState>();
  const Lock lock(mutex_);
  reap_streams();
  streams_.push_back(stream);
  return stream;
}

/// Forgets streams whose threads have ended: join() returns at once.
void Core::reap_streams() {
  std::erase_if(streams_, [](const std::shared_ptr<StreamState>& stream) {
    if (!stream->is_closed || !stream->queue.empty()) {
      return false;
    }
    if (stream->thread.joinable()) {
      if (!stream->is_finished) {
        return false;
      }
      stream->thread.join();
    }
    return true;
  });
}

void Core::close_stream(StreamState& stream) {
  {
    const Lock lock(mutex_);
    stream.is_closed = true;
  }
  changed_.notify_all();
}

void Core::start_thread(const std::shared_ptr<StreamState>& stream) {
  if (!stream->thread.joinable()) {
    // The Core keeps the state and joins the thread.
    stream->thread = std::thread([this, state = stream.get()] { run_stream(*state); });
  }
}

void Core::run_stream(StreamState& stream) {
  Lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] {
      return stream.queue.empty() ? stream.is_closed || is_closing_
                                  : may_run(*stream.queue.front());
    });
    if (stream.queue.empty()) {
      break;
    }
    const std::shared_ptr<Op> op = stream.queue.front();
    const std::unique_ptr<PreparedLaunch> prepared = std::move(op->prepared);
    lock.unlock();
    LaunchResult result;
    std::exception_ptr error;
    if (op->interrupt.load()) {
      result.run.status = sim::RunStatus::kInterrupted;
    } else {
      try {
        result = prepared->run(op->interrupt);
      } catch (...) {
        error = std::current_exception();
      }
    }
    std::vector<std::shared_ptr<Memory>> released;
    lock.lock();
    op->result = std::move(result);
    op->error = error;
    if (!op->result.run.prints.empty()) {
      std::vector<std::string>& lines = prints_[op->sequence];
      for (const sim::PrintLine& line : op->result.run.prints) {
        lines.push_back(line.text);
      }
    }
    if (!op->is_reported && (op->error != nullptr || !op->result.is_completed())) {
      note_failure(op);
    }
    finish(*op, released);
    if (last_in_order_ == op) {
      last_in_order_.reset();
    }
    stream.queue.pop_front();
    changed_.notify_all();
    lock.unlock();
    released.clear();
    lock.lock();
  }
  stream.is_finished = true;
}

void Core::sync_stream(StreamState& stream) {
  Lock lock(mutex_);
  const std::shared_ptr<Op> target = stream.last;
  if (target != nullptr) {
    wait_until(lock, [&] { return target->is_done; });
    watch(*target);
  }
  report_first(&stream);
}

bool Core::is_idle(const StreamState& stream) const {
  const Lock lock(mutex_);
  return stream.queue.empty();
}

std::shared_ptr<Op> Core::last_op(const StreamState& stream) const {
  const Lock lock(mutex_);
  return stream.last;
}

void Core::add_wait(StreamState& stream, std::shared_ptr<Op> op) {
  const Lock lock(mutex_);
  if (!is_settled(*op)) {
    stream.next_waits_for.push_back(std::move(op));
  }
}

// ---------------------------------------------------------------- results

void Core::note_failure(const std::shared_ptr<Op>& op) {
  failures_.push_back(op);
  for (const std::shared_ptr<Memory>& memory : op->memories) {
    if (memory->failure == nullptr || memory->failure->is_reported) {
      memory->failure = op;
    }
  }
}

/// Throws the op's failure unless somebody was told.
void Core::report(const std::shared_ptr<Op>& op) {
  if (op->is_reported || (op->error == nullptr && op->result.is_completed())) {
    return;
  }
  op->is_reported = true;
  std::erase(failures_, op);
  throw_failure(*op);
}

void Core::throw_failure(const Op& op) {
  if (op.error != nullptr) {
    std::rethrow_exception(op.error);
  }
  const sim::RunResult& run = op.result.run;
  const std::string& kernel = op.program->kernel().name;
  const std::string where = place_clause(", launched at ", op.launched_by);
  if (run.status == sim::RunStatus::kInterrupted) {
    throw InterruptedError(fmt::format("kernel {}{} was interrupted after {} warp instructions",
                                       kernel,
                                       where,
                                       run.counts.warp_insns));
  }
  std::string message;
  if (run.status == sim::RunStatus::kLimit) {
    message = fmt::format("kernel {}{} was stopped at its limit, after {} warp instructions, with "
                          "{} blocks done; raise the limit if that is no endless loop",
                          kernel,
                          where,
                          run.counts.warp_insns,
                          run.blocks_done);
  } else if (run.fault) {
    message = sim::format_fault(*run.fault, *op.program);
    while (!message.empty() && message.back() == '\n') {
      message.pop_back();
    }
    if (!op.launched_by.empty()) {
      message += "\n  launched at " + op.launched_by;
    }
  } else {
    message = fmt::format("kernel {}{} failed: {}", kernel, where, name(run.status));
  }
  throw KernelError(op.program, run.status, run.fault, message);
}

void Core::report_first(const StreamState* only) {
  std::shared_ptr<Op> first;
  for (const std::shared_ptr<Op>& op : failures_) {
    const bool counts = only == nullptr || op->stream.get() == only;
    if (counts && (first == nullptr || op->sequence < first->sequence)) {
      first = op;
    }
  }
  if (first == nullptr) {
    return;
  }
  // One error tells of the first; what came after it has most likely followed from it.
  std::erase_if(failures_, [&](const std::shared_ptr<Op>& op) {
    const bool goes = only == nullptr || op->stream.get() == only;
    if (goes && op != first) {
      op->is_reported = true;
    }
    return goes && op != first;
  });
  report(first);
}

bool Core::is_done(const Op& op) const {
  const Lock lock(mutex_);
  return op.is_done;
}

void Core::wait(const std::shared_ptr<Op>& op) {
  Lock lock(mutex_);
  wait_until(lock, [&] { return op->is_done; });
  watch(*op);
  report(op);
  if (op->result.run.status == sim::RunStatus::kInterrupted) {
    throw_failure(*op); // whoever waits for this one launch must not take it for complete
  }
}

LaunchResult Core::result(const std::shared_ptr<Op>& op) {
  Lock lock(mutex_);
  wait_until(lock, [&] { return op->is_done; });
  watch(*op);
  if (op->error != nullptr) {
    op->is_reported = true;
    std::erase(failures_, op);
    std::rethrow_exception(op->error);
  }
  LaunchResult result = op->result;
  for (const EarlyFree& early : op->early_frees) {
    sim::Finding finding;
    finding.kind = sim::CheckKind::kMem;
    finding.message =
        fmt::format("{} while kernel {}{} could still use it",
                    early.text,
                    op->program->kernel().name,
                    op->launched_by.empty() ? std::string()
                                            : fmt::format(" (launched at {})", op->launched_by));
    finding.hint = "wait before freeing: sync the device or the stream, or copy the result back "
                   "first; the runtime kept the memory until the kernel was done, a board does not";
    const auto first = result.first_accesses.find(early.address);
    finding.here =
        first != result.first_accesses.end()
            ? first->second
            : sim::FindingSite{.pc = op->program->entry_pc(), .what = "start of the kernel"};
    finding.has_address = true;
    finding.address = early.address;
    finding.size_bytes = early.size_bytes;
    finding.location = early.label;
    result.findings.push_back(std::move(finding));
  }
  return result;
}

bool Core::is_queue_empty() const {
  return std::all_of(
      streams_.begin(), streams_.end(), [](const auto& stream) { return stream->queue.empty(); });
}

void Core::sync() {
  Lock lock(mutex_);
  const uint64_t end = next_sequence_;
  wait_until(lock, [&] {
    return std::all_of(streams_.begin(), streams_.end(), [&](const auto& stream) {
      return stream->queue.empty() || stream->queue.front()->sequence >= end;
    });
  });
  watched_ = std::max(watched_, end);
  report_first(nullptr);
}

void Core::interrupt() {
  const Lock lock(mutex_);
  for (const std::shared_ptr<StreamState>& stream : streams_) {
    for (const std::shared_ptr<Op>& op : stream->queue) {
      op->is_reported = true; // who interrupts knows
      op->interrupt.store(true);
    }
  }
}

bool Core::is_idle() const {
  const Lock lock(mutex_);
  return is_queue_empty();
}

bool Core::wait_idle(double seconds) {
  Lock lock(mutex_);
  return changed_.wait_for(
      lock, std::chrono::duration<double>(seconds), [&] { return is_queue_empty(); });
}

std::vector<std::string> Core::take_prints() {
  const Lock lock(mutex_);
  std::vector<std::string> lines;
  for (auto& [sequence, of_launch] : prints_) {
    std::move(of_launch.begin(), of_launch.end(), std::back_inserter(lines));
  }
  prints_.clear();
  return lines;
}

std::unique_ptr<sim::Machine> Core::view() {
  const Lock lock(mutex_);
  std::unique_ptr<sim::Machine> machine = backend_->view();
  if (machine == nullptr) {
    throw DeviceUnavailableError(
        fmt::format("device {} is not simulated, so nothing can look inside a kernel that runs on "
                    "it; debug on \"sim\" or \"emulated:PROFILE\"",
                    backend_->info().name));
  }
  return machine;
}

} // namespace pto::rt
