// SPDX-License-Identifier: Apache-2.0
// What the parts of the extension module share. The module holds thin shims; everything that a user
// sees, documentation included, is Python (pybind/pypto).
//
// Rules for every shim: whatever may take long or wait releases the GIL; worker threads of the
// runtime never touch Python; errors of the libraries leave as they are and bind_errors.cc turns
// them into classes of pypto.errors.
#pragma once

#include "isa/object.h"
#include "pybind/of_process.h"
#include "runtime/device.h"
#include "simulator/checks/checks.h"
#include "simulator/checks/finding.h"
#include "simulator/program.h"
#include "simulator/timing/timeline.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cxxabi.h>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace pto::py {

/// A kernel ready to launch. Python holds no const objects, hence the wrapper.
struct ProgramHandle {
  std::shared_ptr<const sim::Program> program;
  /// Identifies the program in errors of launches (KernelError.program_key).
  [[nodiscard]] uint64_t key() const { return reinterpret_cast<uintptr_t>(program.get()); }
};

using Dim = std::array<uint32_t, 3>;
inline sim::Dim3 to_dim3(const Dim& dim) {
  return {dim[0], dim[1], dim[2]};
}

/// Bytes of a contiguous buffer object; Python keeps it alive during the call.
[[nodiscard]] std::span<const uint8_t> readable_bytes(const pybind11::buffer_info& info);
[[nodiscard]] std::span<uint8_t> writable_bytes(const pybind11::buffer_info& info);

/// Throws errors.InputError.
class InputError : public Error {
public:
  using Error::Error;
};
/// Throws errors.DebugError.
class DebugError : public Error {
public:
  using Error::Error;
};
/// "mem,race" or "all"; InputError for a text that names no check.
[[nodiscard]] sim::CheckSet read_checks_or_throw(const std::string& text);
[[nodiscard]] isa::Object read_object_or_throw(std::string_view bytes);

/// What pypto.errors.KernelError carries of a fault.
[[nodiscard]] pybind11::dict fault_dict(const sim::Fault& fault, const sim::Program& program);
/// What pypto.debug's Findings are made of.
[[nodiscard]] pybind11::list findings_list(const std::vector<sim::Finding>& findings,
                                           const sim::Program& program);
/// Tuples in the order of the fields of pypto.timeline.TimelineEntry.
[[nodiscard]] pybind11::list timeline_list(const sim::Timeline& timeline,
                                           const sim::Program& program);
[[nodiscard]] pybind11::dict counters_dict(const sim::TimedResult& timed,
                                           const sim::Program& program);

/// Without the interpreter's lock from construction to again(). Not gil_scoped_release: when the
/// interpreter ends, taking the lock ends a daemon thread by unwinding it, which must not begin in
/// a destructor.
class Unlocked {
public:
  Unlocked() : state_(PyEval_SaveThread()) { ++count(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() = default;
  void again() {
    PyEval_RestoreThread(state_);
    --count();
  }
  /// Threads that are between the two.
  static std::atomic<int>& count() {
    static std::atomic<int> threads{0};
    return threads;
  }

private:
  PyThreadState* state_;
};

/// Runs a call without the interpreter's lock.
template <class Call> auto without_lock(Call&& call) {
  Unlocked unlocked;
  try {
    if constexpr (std::is_void_v<decltype(call())>) {
      call();
      unlocked.again();
    } else {
      auto result = call();
      unlocked.again();
      return result;
    }
  } catch (const abi::__forced_unwind&) {
    throw; // the thread ends
  } catch (...) {
    unlocked.again();
    throw;
  }
}

/// The same for a call that waits for the device. If the wait is given up (Ctrl-C), what runs on
/// the device is ended, so that the next call finds it idle.
template <class Call> auto waiting(rt::Device& device, Call&& call) {
  return without_lock([&] {
    try {
      return call();
    } catch (const pybind11::error_already_set&) {
      device.interrupt();
      throw;
    }
  });
}

/// What Ctrl-C or another signal's handler raises while something runs without the interpreter's
/// lock that cannot be left by an exception: it is asked to end, and then this is raised.
class SignalWatch {
public:
  /// True if a handler has just raised something; the first time only. Takes the lock.
  [[nodiscard]] bool look() {
    const pybind11::gil_scoped_acquire locked;
    if (raised_ || PyErr_CheckSignals() == 0) {
      return false;
    }
    raised_.emplace();
    return true;
  }
  /// Throws what was raised, if something was. With the lock.
  void rethrow() {
    if (raised_) {
      const pybind11::error_already_set raised = std::move(*raised_);
      raised_.reset();
      throw raised;
    }
  }

private:
  std::optional<pybind11::error_already_set> raised_;
};

using DeviceHandle = OfProcess<rt::Device>;

/// An argument from Python: (Buffer, byte offset) or (bits, type name).
[[nodiscard]] rt::LaunchArgument to_argument(const pybind11::handle& item);

void bind_debug(pybind11::module_& module);
void bind_errors(pybind11::module_& module);
void bind_isa(pybind11::module_& module);
void bind_profile(pybind11::module_& module);
void bind_runtime(pybind11::module_& module);
void bind_sim(pybind11::module_& module);

} // namespace pto::py
