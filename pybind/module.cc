// SPDX-License-Identifier: Apache-2.0
// pypto._pypto: the libraries as a Python extension module.
#include "pybind/bindings.h"

#include <pthread.h>

namespace {

/// In the child: no thread of the parent waits any more.
void note_fork() {
  ++pto::py::forks();
  pto::py::Unlocked::count() = 0;
}

} // namespace

PYBIND11_MODULE(_pypto, module) {
  module.doc() = "Shims over the PTO libraries; use the package pypto.";
  module.attr("__version__") = PTO_VERSION;
  static_cast<void>(pthread_atfork(nullptr, nullptr, &note_fork));
  pto::py::bind_errors(module);
  pto::py::bind_isa(module);
  pto::py::bind_sim(module);
  pto::py::bind_runtime(module);
  pto::py::bind_debug(module);
  pto::py::bind_profile(module);
}
