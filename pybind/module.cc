// SPDX-License-Identifier: Apache-2.0
// pypto._pypto: the libraries as a Python extension module.
#include "pybind/bindings.h"

PYBIND11_MODULE(_pypto, module) {
  module.doc() = "Shims over the PTO libraries; use the package pypto.";
  module.attr("__version__") = PTO_VERSION;
  pto::py::bind_errors(module);
  pto::py::bind_isa(module);
  pto::py::bind_sim(module);
  pto::py::bind_runtime(module);
  pto::py::bind_debug(module);
  pto::py::bind_profile(module);
}
